//! Bucket labels: a secret permutation, so that labels do not reveal the order in which buckets are made.

use super::BucketAssignment;
use crate::publication::{BucketColumn, TableName};
use crate::random::{RandomStream, RandomStreams};

/// Label of each bucket of one table.
pub struct Labels(Vec<u32>);

impl Labels {
    /// Draws the labels `1..=buckets` of one table. Tables have streams of their own, so that their labels are independent.
    #[must_use]
    pub fn draw(buckets: u32, stream: &mut RandomStream) -> Self {
        let mut labels: Vec<u32> = (1..=buckets).collect();
        stream.shuffle(&mut labels);
        Self(labels)
    }

    /// Draws the labels of a table of a release.
    #[must_use]
    pub fn of_table(name: &TableName, buckets: u32, streams: &RandomStreams) -> Self {
        Self::draw(buckets, &mut streams.stream(&format!("{name}/labels")))
    }

    /// Label of each row, in place of its bucket; 0 for a suppressed row.
    #[must_use]
    pub fn of_rows(&self, assignment: BucketAssignment) -> Vec<u32> {
        let mut labels = assignment.bucket_of;
        labels.iter_mut().for_each(|bucket| *bucket = self.0.get(*bucket as usize).copied().unwrap_or(0));
        labels
    }

    /// The `bucket` column of a part in canonical order, from the number of rows of each label. It is the only constructor of
    /// such a column.
    #[must_use]
    pub fn column(sizes: impl Iterator<Item = usize>) -> BucketColumn {
        BucketColumn::from_secret_labels(sizes)
    }
}
