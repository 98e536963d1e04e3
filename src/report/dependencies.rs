//! The dependencies that the adversary is assumed to know, as manifests and plans write them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::publication::{DependencyUse, Ratio, SearchedDependencies};

/// What the adversary is assumed to know of dependencies.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ManifestDependencies {
    /// The share of rows for which a dependency on one attribute may not hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<String>)]
    pub tolerance: Option<Ratio>,
    /// What the data was searched for; absent where rows were not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub searched: Option<SearchedDependencies>,
    /// Declared by the caller, also where the release makes no use of one.
    pub declared: Vec<UsedDependencyForm>,
    /// Known from earlier releases of the series or from its statements, where one changed a rule, the strata or the place of an
    /// attribute.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recorded: Vec<UsedDependencyForm>,
    /// Found in the data, where one changed a rule, the strata or the place of an attribute.
    pub discovered: Vec<UsedDependencyForm>,
    /// Withdrawn by the caller, with a reason.
    pub assumed_unknown: Vec<AssumedUnknownForm>,
    /// Why strata that break a guarantee are published without a bound; absent where they are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub ineligible_strata: Option<ClosedStrataForm>,
}

/// The choice that strata are published though they break a guarantee by themselves.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = PublishedClosedStrata)]
pub struct ClosedStrataForm {
    /// Each is one bucket.
    pub closed: ClosingReasonForm,
}

/// Why strata are published without a bound.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = PublishedClosingReason)]
pub struct ClosingReasonForm {
    /// The reason the caller gives.
    pub reason: String,
}

// members of the forms below stand in alphabetical order, as releases have always had them

/// A functional dependency, by the published names of its attributes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Dependency)]
pub struct DependencyForm {
    /// The determined attributes.
    pub dependent: Vec<String>,
    /// The determining attributes.
    pub determinant: Vec<String>,
}

/// A dependency, and what a release makes of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = UsedDependency)]
pub struct UsedDependencyForm {
    /// The determined attributes.
    pub dependent: Vec<String>,
    /// The determining attributes.
    pub determinant: Vec<String>,
    /// Whether the determined attribute is a column of the upload that the release does not publish, and the data show the
    /// dependency.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unpublished: bool,
    /// What the release makes of it; absent where it makes no use of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub used: Vec<DependencyUse>,
}

/// A dependency of the data that the adversary is assumed not to know.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = AssumedUnknown)]
pub struct AssumedUnknownForm {
    /// The determined attributes.
    pub dependent: Vec<String>,
    /// The determining attributes.
    pub determinant: Vec<String>,
    /// The reason the caller gives.
    pub reason: String,
}

/// What made a rule implied or added, as documents write it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
#[schema(as = Because)]
pub enum RuleDerivationForm {
    /// Another rule, which implies it.
    #[schema(title = "BecauseOfRule")]
    Rule {
        /// The pointer of that rule.
        rule: String,
    },
    /// A dependency, from which it follows.
    Dependency(DependencyForm),
}
