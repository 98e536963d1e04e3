//! Measures of the worst bucket of a table, in the terms of a guarantee.

use serde::{Deserialize, Serialize};

use super::guarantee::BucketShares;
use crate::publication::Guarantee;

/// Measure of the worst bucket, in the terms of a guarantee; computed values are rounded.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BucketMeasure {
    /// The smallest number of distinct values in a bucket.
    DistinctValues(u64),
    /// The smallest number of equally frequent values with the entropy of a bucket.
    EntropyL(f64),
    /// The largest ratio of the most frequent value's count to the sum of the counts from the l-th on.
    RecursiveC(f64),
    /// The largest distance of a bucket from the whole table.
    Distance(f64),
    /// The largest ratio of a value's share in a bucket to its share in the whole table.
    Gain(f64),
}

impl BucketMeasure {
    /// Whether a guarantee has a measure other than posteriors and bucket sizes.
    pub(in crate::verifier) const fn is_of(guarantee: Guarantee) -> bool {
        !matches!(
            guarantee,
            Guarantee::KAnonymity { .. }
                | Guarantee::LDiversity { .. }
                | Guarantee::AlphaK { .. }
                | Guarantee::Thresholds { .. }
        )
    }

    /// The measure of a bucket without its excluded values; `None` where the guarantee has none.
    pub(in crate::verifier) fn new(guarantee: Guarantee, bucket: &BucketShares) -> Option<Self> {
        let left = || bucket.left();
        Some(match guarantee {
            Guarantee::KAnonymity { .. }
            | Guarantee::LDiversity { .. }
            | Guarantee::AlphaK { .. }
            | Guarantee::Thresholds { .. } => return None,
            Guarantee::DistinctLDiversity { .. } => Self::DistinctValues(left().distinct()),
            Guarantee::EntropyLDiversity { .. } => Self::EntropyL(left().entropy_l()),
            Guarantee::RecursiveLDiversity { l, .. } => {
                let (most, tail) = left().recursive(l)?;
                Self::RecursiveC(most as f64 / tail as f64)
            }
            Guarantee::TCloseness { distance, .. } => Self::Distance(bucket.distance(distance)?.to_f64()),
            Guarantee::Rho { .. } => Self::Gain(bucket.gain()),
            Guarantee::Delta { distance, .. } => Self::Distance(bucket.divergence(distance)),
        })
    }

    /// The worse of two measures of one guarantee.
    pub(in crate::verifier) fn worse(a: Option<Self>, b: Option<Self>) -> Option<Self> {
        Some(match (a?, b?) {
            (Self::DistinctValues(a), Self::DistinctValues(b)) => Self::DistinctValues(a.min(b)),
            (Self::EntropyL(a), Self::EntropyL(b)) => Self::EntropyL(a.min(b)),
            (Self::RecursiveC(a), Self::RecursiveC(b)) => Self::RecursiveC(a.max(b)),
            (Self::Distance(a), Self::Distance(b)) => Self::Distance(a.max(b)),
            (Self::Gain(a), Self::Gain(b)) => Self::Gain(a.max(b)),
            (kept, _) => kept,
        })
    }
}
