//! Mondrian: rows are halved at medians, again and again, as long as every half keeps its requirements.
//!
//! Slicing and generalization use it. A bucket is a range of one array of rows, in rising order. A split counts or selects the median
//! and then deals the rows to both sides in one pass: O(n log n) per dimension if halves are even, without an allocation per bucket.
//! Rows are renumbered bucket by bucket once those of a bucket are few among all, so that they are close in memory. Buckets that are
//! judged by themselves are split in parallel.
//!
//! # Citations
//! - [LeFevre et al. 2006], multidimensional partitioning.
//! - [Li et al. 2012, section 4.3], the tuple partition of slicing.

mod annotations;
mod candidates;
mod halve;
mod limits;
mod require;
mod space;
mod tally;
mod weights;

pub use annotations::{NoAnnotations, TableAnnotations};
pub use candidates::{Scratch, SplitCandidates};
pub use halve::{LocalSplitPredicate, PartitionError, SplitPredicate, partition, partition_apart};
pub use limits::{MedianSplit, PartitionLimits, PartitionTuning};
pub use require::{BucketRequirement, CountPredicate, PerHalfPredicate};
pub use space::SplitSpace;
pub use tally::{GroupTally, TalliedRows, TallyGroups};
pub use weights::RowWeights;

#[cfg(test)]
mod tests;
