//! Results that a manifest carries: of the verifier, and of the utility of the parts.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::ratio::ManifestRatio;
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
    /// What the cells of generalized and sliced tables say, a line for each column of a part. Absent in older releases.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<ColumnFigures>,
}

impl Utility {
    /// The figures of the parts, without an entropy.
    #[must_use]
    pub const fn of_parts(bucket_sizes: Vec<BucketSizes>, columns: Vec<ColumnFigures>) -> Self {
        Self { bucket_sizes, model_entropy_nats: None, entropy_method: None, columns }
    }
}

/// The cells of a column of a part.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ColumnFigures {
    /// The table.
    pub table: String,
    /// The part.
    pub part: String,
    /// The attribute.
    pub attribute: String,
    /// The number of different cells.
    pub distinct: u64,
    /// The rows whose cell is one value.
    pub exact: ManifestRatio,
    /// The rows whose cell stands for every value that a cell of the column stands for, and for more than one: it says nothing.
    pub whole: ManifestRatio,
    /// The values that all cells stand for, of all rows, where cells are sets of values or nodes of taxonomies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub values: Option<ManifestRatio>,
    /// The mean width of the intervals, as a share of the range of the column, where their ends are numbers or dates; to four
    /// digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub mean_width: Option<f64>,
}

impl ColumnFigures {
    /// The rows whose cell stands for several values, but not for all.
    #[must_use]
    pub fn several(&self) -> ManifestRatio {
        let of = self.exact.of;
        ManifestRatio::new(of.saturating_sub(self.exact.count).saturating_sub(self.whole.count), of)
    }

    /// What the cells say, without the name of the column.
    #[must_use]
    pub fn in_words(&self) -> String {
        let Self { exact, whole, values, mean_width, .. } = self;
        let mut said = vec![format!("{} of the rows show one value", exact.percent())];
        if self.several().count > 0 {
            said.push(format!("{} one of several", self.several().percent()));
        }
        if whole.count > 0 {
            said.push(format!("{} nothing", whole.percent()));
        }
        let values = values
            .filter(|_| exact.count < exact.of)
            .map(|values| format!("a cell stands for {:.1} values on average", values.as_share()));
        let width = mean_width.map(|width| format!("an interval covers {:.1}% of the range on average", width * 100.0));
        said.into_iter().chain(values).chain(width).collect::<Vec<_>>().join(", ")
    }
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
