use serde::Serialize;
use utoipa::ToSchema;

use crate::engine::attack::report::AttackReport;
use crate::engine::read_back::measures::{AchievedMeasures, TableMeasures};
use crate::engine::read_back::published_value::{NamedValues, PublishedValue};
use crate::publication::Linkage;
use crate::report::{CheckResult, ManifestEnforcedBy, SpecificationNotice};

/// The result of a verification of submitted tables.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Verification {
    /// Whether every rule holds and every check passed.
    pub verified: bool,
    /// Always `not_checked`: only the publisher knows the assignment of rows to buckets.
    pub linkage: Linkage,
    /// The rules in their order; a rule on several separate attributes appears once for each.
    pub rules: Vec<VerifiedRule>,
    /// The tables.
    pub tables: Vec<VerifiedTable>,
    /// The checks of the verifier; `content` needs the original.
    pub checks: Vec<CheckResult>,
    /// The requested attacks.
    pub attacks: Vec<AttackReport>,
    /// Notices for readers.
    pub warnings: Vec<SpecificationNotice>,
}

/// A rule, and whether it holds.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct VerifiedRule {
    /// Its pointer in the request.
    pub pointer: String,
    /// The attributes that the adversary may know.
    pub quasi_identifiers: Vec<String>,
    /// The protected attributes.
    pub sensitive: Vec<String>,
    /// Whether only the joint value of `sensitive` is protected.
    pub combination: bool,
    /// Whether it holds.
    pub holds: bool,
    /// The reason it holds.
    pub enforced_by: Option<ManifestEnforcedBy>,
    /// The known attributes that reach the sensitive ones, when it does not hold.
    pub violated_by: Option<Vec<String>>,
    /// The measures of the table that enforces it, or should; null where no class concerns the rule.
    pub achieved: Option<AchievedMeasures>,
    /// The classes that violate it.
    pub breaks: BrokenClasses,
    /// The reason it does not hold, in a sentence.
    pub detail: Option<String>,
}

/// Classes that violate a rule.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct BrokenClasses {
    /// The number of such classes.
    pub total: u64,
    /// At most ten, the worst first.
    pub first: Vec<BrokenClass>,
}

/// A class that violates a rule: a bucket, the common values of its rows, or both. Values are those of the submitted part.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct BrokenClass {
    /// The table.
    pub table: String,
    /// The label of the bucket.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub bucket: Option<PublishedValue>,
    /// The common values of its rows; empty when the whole table is the class.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<std::collections::BTreeMap<String, PublishedValue>>)]
    pub class: Option<NamedValues>,
}

/// A table and its measures.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct VerifiedTable {
    /// Its name.
    pub name: String,
    /// The number of rows.
    pub rows: u64,
    /// The number of buckets; 0 for a table without.
    pub buckets: u64,
    /// The measures of each protected attribute.
    pub measures: Vec<TableMeasures>,
}
