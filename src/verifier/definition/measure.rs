//! What the worst bucket of a table shows, in the terms of a rule's guarantee.

use serde::{Deserialize, Serialize};

use super::guarantee::BucketShares;
use crate::publication::Guarantee;

/// The worst bucket in the terms of a guarantee; computed values are rounded.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BucketMeasure {
    /// The fewest values of a bucket.
    DistinctValues(u64),
    /// The least number of equally frequent values that have a bucket's entropy.
    EntropyL(f64),
    /// The largest quotient of a most frequent value's count and that of all from the l-th on.
    RecursiveC(f64),
    /// The largest distance of a bucket from the whole table.
    Distance(f64),
    /// How many times likelier a value is in a bucket than in the whole table, at most.
    Gain(f64),
}

impl BucketMeasure {
    /// Whether buckets are measured for this guarantee by more than their posteriors and sizes.
    pub(in crate::verifier) const fn is_of(guarantee: Guarantee) -> bool {
        !matches!(
            guarantee,
            Guarantee::KAnonymity { .. }
                | Guarantee::LDiversity { .. }
                | Guarantee::AlphaK { .. }
                | Guarantee::Thresholds { .. }
        )
    }

    /// A bucket in the terms of a guarantee, values that an insider can rule out left aside; `None` where it has no such value.
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
            Guarantee::TCloseness { distance, .. } => {
                let (work, unit) = bucket.distance(distance)?;
                Self::Distance(work as f64 / unit as f64)
            }
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
