//! Reasons why a release must not be published together with earlier ones.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// Reason why a release must not be published together with earlier ones.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Violation)]
pub struct CompositionViolation {
    /// The violated rule.
    pub rule: ViolatedRule,
    /// The earlier release in conflict.
    pub release: Uuid,
    /// A path from known attributes to the sensitive one; empty for reasons such as a second bucketization.
    pub path: Vec<JoinStep>,
    /// The reason in words.
    pub detail: String,
}

impl CompositionViolation {
    /// Whether attributes that a dependency ties are on the path.
    pub(super) fn leads_over_link(&self) -> bool {
        self.path.iter().any(|step| matches!(step, JoinStep::Link { .. }))
    }
}

/// Rule of an earlier or of the new release.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = RuleReference)]
pub struct ViolatedRule {
    /// The release of the rule; null for the new one.
    pub release: Option<Uuid>,
    /// The pointer into its specification; null for a rule that follows from a dependency.
    pub pointer: Option<String>,
}

/// A step of a path over several releases.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
#[schema(as = PathStep)]
pub enum JoinStep {
    /// A table that the path enters.
    #[schema(title = "TablePathStep")]
    Table {
        /// The release of the table; null for the new one.
        release: Option<Uuid>,
        /// The name of the table in its release.
        table: String,
        /// The attributes through which the path enters the table.
        via: Vec<String>,
    },
    /// A link that the path enters.
    #[schema(title = "LinkPathStep")]
    Link {
        /// The attributes that a dependency ties, in alphabetical order.
        link: Vec<String>,
        /// The attributes through which the path enters the link.
        via: Vec<String>,
    },
}

impl JoinStep {
    /// The earlier release of the table; `None` for a link and for the new release.
    pub(super) const fn earlier_release(&self) -> Option<Uuid> {
        match self {
            Self::Table { release, .. } => *release,
            Self::Link { .. } => None,
        }
    }
}

/// Error: all releases together have more attributes than one check can hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooManyAttributesError(pub usize);
