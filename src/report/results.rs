//! Results that a manifest carries: of the verifier, and of the utility of the parts.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::publication::{CheckName, Linkage, ModelKind};

/// The results of the verifier.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct VerificationSummary {
    /// Whether every check passed.
    pub verified: bool,
    /// Whether each part was compared with the secret assignment.
    pub linkage: Linkage,
    /// The checks.
    pub checks: Vec<CheckResult>,
}

/// One check of the verifier.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct CheckResult {
    /// Its name.
    pub check: CheckName,
    /// Whether it passed.
    pub passed: bool,
    /// The first failure that the check found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub detail: Option<String>,
}

/// Public utility of a release.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Utility {
    /// The number of buckets of each size in each bucketized table.
    pub bucket_sizes: Vec<BucketSizes>,
    /// The entropy of the model of the parts, in nats; where the specification asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub model_entropy_nats: Option<f64>,
    /// How the model is made: `closed_form` of all tables, or `acyclic_subset` of some where they form no join tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub entropy_method: Option<ModelKind>,
}

/// Buckets of one size.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct BucketSizes {
    /// The table.
    pub table: String,
    /// Rows in each bucket.
    pub size: u64,
    /// The number of such buckets.
    pub buckets: u64,
}
