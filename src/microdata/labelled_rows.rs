use std::ops::Range;

/// Rows of one bucket; of none where the part has no buckets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelledRows {
    /// The label of the bucket.
    pub label: Option<u32>,
    /// The rows.
    pub rows: Range<usize>,
}
