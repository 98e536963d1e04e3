//! Bucket labels: a secret permutation, so that a label tells nothing of the order in which buckets were made.

use super::Assignment;
use crate::publication::BucketColumn;
use crate::random::Stream;

/// The label of each bucket of one table.
pub struct Labels(Vec<u32>);

impl Labels {
    /// Draws the labels `1..=buckets` of one table. Independent between tables: each has its own stream.
    #[must_use]
    pub fn draw(buckets: u32, stream: &mut Stream) -> Self {
        let mut labels: Vec<u32> = (1..=buckets).collect();
        stream.shuffle(&mut labels);
        Self(labels)
    }

    /// The label of each row.
    #[must_use]
    pub fn of_rows(&self, assignment: &Assignment) -> Vec<u32> {
        assignment.bucket_of.iter().map(|&bucket| self.0[bucket as usize]).collect()
    }

    /// The `bucket` column of a part whose rows, in canonical order, are `order`: the only constructor of such a column.
    #[must_use]
    pub fn column(labels_of_rows: &[u32], order: &[u32]) -> BucketColumn {
        BucketColumn::from_secret_labels(order.iter().map(|&row| labels_of_rows[row as usize]).collect())
    }
}
