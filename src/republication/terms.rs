use super::founding::FoundingRule;
use crate::publication::{BucketMerging, ChangedValues};

/// The terms of a night.
#[derive(Clone, Copy)]
pub struct NightTerms<'a> {
    /// The number of founding buckets of a cohort.
    pub founding: &'a dyn FoundingRule,
    /// What becomes of changed values.
    pub changes: ChangedValues,
    /// The size of a mover group: the l of the guarantee.
    pub group: u32,
    /// Which buckets are joined.
    pub merging: BucketMerging,
    /// Smaller cohorts wait, whatever their values are.
    pub min_newcomers: u64,
    /// A bucket is single if no other member was published in the last nights, this number of them.
    pub grace: u32,
    /// Persons who were absent on this number of nights are forgotten.
    pub forget_after: Option<u32>,
}
