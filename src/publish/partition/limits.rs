//! Limits of a partition.

/// How a bucket is halved at a median. [LeFevre et al. 2006] calls them strict and relaxed multidimensional partitioning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MedianSplit {
    /// Rows with equal values stay together.
    Strict,
    /// The halves differ by at most one row. Rows with the median value go to both halves, in the order of rows.
    Relaxed,
}

/// Limits of a partition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PartitionLimits {
    /// How a bucket is halved.
    pub split: MedianSplit,
    /// Largest number of dimensions tried for a bucket, the widest first; `None` for all.
    pub max_attempts: Option<usize>,
    /// Smallest number of rows of a bucket.
    pub min_bucket: usize,
    /// When rows are renumbered, and when buckets are split in parallel. The result does not depend on it.
    pub tuning: PartitionTuning,
}

/// Sizes at which a partition changes its memory layout and its processors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PartitionTuning {
    /// Largest number of rows of a bucket that are never renumbered: they fit the cache wherever they are.
    pub unnumbered_rows: usize,
    /// Smallest number of rows that are handed to another processor: below, the handover costs more than the split.
    pub parallel_rows: usize,
}

impl Default for PartitionTuning {
    fn default() -> Self {
        Self { unnumbered_rows: 1 << 10, parallel_rows: 1 << 12 }
    }
}
