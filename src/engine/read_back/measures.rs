//! What the classes of a table show, by every measure.

use serde::Serialize;
use utoipa::ToSchema;

use crate::report::ManifestRatio;
use crate::verifier::ClassMeasures;
use crate::verifier::ShareOfRows;

/// What the classes of a table show of an attribute.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct TableMeasures {
    /// What is protected; of a combination all, joined by ` & `.
    pub sensitive: String,
    /// The attributes whose equal values make a class, in a bucketized table within a bucket.
    pub quasi_identifiers: Vec<String>,
    /// What the worst class shows, by each measure.
    #[serde(flatten)]
    pub achieved: AchievedMeasures,
}

impl TableMeasures {
    pub(in crate::engine) fn new(
        sensitive: &[String],
        quasi_identifiers: Vec<String>,
        measured: &ClassMeasures,
    ) -> Self {
        let achieved = AchievedMeasures::from_classes(measured);
        Self { sensitive: sensitive.join(" & "), quasi_identifiers, achieved }
    }
}

/// What the worst class shows, by each measure. Of values that are published without their numbers only `distinct_l` is known.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct AchievedMeasures {
    /// How many classes there are.
    pub classes: u64,
    /// The size of the smallest.
    pub k: Option<u64>,
    /// The largest l for which they are l-diverse: the inverse of `worst_posterior`.
    pub l: Option<ManifestRatio>,
    /// The fewest values of a class.
    pub distinct_l: u64,
    /// The least number of equally frequent values that have a class's entropy.
    pub entropy_l: Option<f64>,
    /// Per l, the c that recursive (c,l)-diversity needs more than: the largest quotient of the most frequent value's count and
    /// that of all from the l-th on. Up to l = 5, as far as every class has that many values.
    pub recursive_c: Vec<RecursiveC>,
    /// The largest distance of a class from the whole part, all values equally far from each other.
    pub t_equal: Option<f64>,
    /// The same over the order of values.
    pub t_ordered: Option<f64>,
    /// The same along the taxonomy, where the request states one that has all values.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub t_hierarchical: Option<f64>,
    /// The largest share that a value takes of a class.
    pub worst_posterior: Option<ManifestRatio>,
}

/// What recursive diversity would hold.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct RecursiveC {
    /// The rank.
    pub l: u64,
    /// The quotient.
    pub c: f64,
}

impl From<ShareOfRows> for ManifestRatio {
    fn from(share: ShareOfRows) -> Self {
        Self { count: share.count, of: share.of }
    }
}

impl AchievedMeasures {
    pub(in crate::engine) fn from_classes(measured: &ClassMeasures) -> Self {
        Self {
            classes: measured.classes,
            k: measured.k,
            l: measured.worst.map(|worst| ManifestRatio { count: worst.of, of: worst.count }),
            distinct_l: measured.distinct_l,
            entropy_l: measured.entropy_l,
            recursive_c: measured.recursive_c.iter().map(|&(l, c)| RecursiveC { l, c }).collect(),
            t_equal: measured.t_equal,
            t_ordered: measured.t_ordered,
            t_hierarchical: measured.t_hierarchical,
            worst_posterior: measured.worst.map(ManifestRatio::from),
        }
    }
}
