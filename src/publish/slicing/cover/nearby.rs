//! Rows in the order of buckets, so that what is kept of the rows of a bucket is close in memory.

use std::convert::Infallible;

use crate::control::{Cancelled, Control};
use crate::microdata::{Column, Table};
use crate::publish::partition::{
    LocalSplitPredicate, MedianSplit, PartitionError, PartitionLimits, PartitionTuning, SplitSpace, partition_apart,
};

/// Smallest number of rows of the buckets by which rows are ordered. Predicates hardly refuse larger ones.
const NEARBY_ROWS: usize = 16;

/// A table with its rows in another order.
pub(super) struct NearbyRows {
    pub(super) table: Table,
    /// Number of each row in that order.
    pub(super) numbers: Vec<u32>,
}

/// Allows every split.
struct AnySplit;

impl LocalSplitPredicate for AnySplit {
    type Memory = ();
    type Unclear = Infallible;

    fn allows(&self, _: &[u32], _: &[u32], _: &mut Self::Memory) -> Result<bool, Infallible> {
        Ok(true)
    }

    fn reorder(&mut self, _: &[u32]) {}
}

impl NearbyRows {
    /// The rows of a table in the order of the buckets that they would come to if every split were allowed.
    pub(super) fn new(
        table: &Table,
        space: SplitSpace,
        tuning: PartitionTuning,
        control: &Control,
    ) -> Result<Self, Cancelled> {
        let limits =
            PartitionLimits { split: MedianSplit::Relaxed, max_attempts: None, min_bucket: NEARBY_ROWS, tuning };
        let buckets = partition_apart(space, table.rows(), limits, &mut AnySplit, control);
        let buckets = buckets.map_err(PartitionError::cancelled)?;
        let mut next = vec![0_u32; buckets.buckets as usize + 1];
        buckets.bucket_of.iter().for_each(|&bucket| next[bucket as usize + 1] += 1);
        let mut sum = 0;
        next.iter_mut().for_each(|next| {
            sum += *next;
            *next = sum;
        });
        let (mut numbers, mut order) = (Vec::with_capacity(table.rows()), vec![0; table.rows()]);
        for (row, &bucket) in (0..).zip(&buckets.bucket_of) {
            let next = &mut next[bucket as usize];
            numbers.push(*next);
            order[*next as usize] = row;
            *next += 1;
        }
        let column = |attr| {
            let Column { domain, codes } = table.column(attr);
            Column { domain: domain.clone(), codes: codes.gather(&order) }
        };
        let columns = table.attributes().iter().map(column).collect();
        Ok(Self { table: Table::new(table.names().to_vec(), columns), numbers })
    }
}
