//! Values in the buckets of one size.

use super::sizes::loss;
use crate::publication::SizeCount;

/// Buckets of one size, with the frequencies of values in all of them together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FilledBuckets {
    /// Size and number of the buckets.
    pub class: SizeCount,
    /// Number of rows of each code in these buckets.
    pub counts: Vec<u64>,
}

impl FilledBuckets {
    /// Loss of all buckets together.
    #[must_use]
    pub fn loss(all: &[Self]) -> u64 {
        loss(&all.iter().map(|filled| filled.class).collect::<Vec<_>>())
    }
}
