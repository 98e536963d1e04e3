//! Halving, level by level.

use std::convert::Infallible;
use std::mem;
use std::ops::Range;

use rayon::prelude::*;

use super::candidates::{Scratch, SplitCandidates};
use super::limits::PartitionLimits;
use super::space::SplitSpace;
use crate::control::{Cancelled, Control};
use crate::publish::assign::BucketAssignment;

/// Rows are renumbered once a bucket has at most one in this number of the rows at the last renumbering.
const RENUMBER_BELOW_FRACTION: usize = 16;

/// Says which splits are made, and is told what became of them.
pub trait SplitPredicate {
    /// Whether `bucket` may be split into `left` and `right`, rows rising. Buckets are numbered in the order of making: the whole
    /// table is 0; of an allowed split the left half gets the next number, the right half the one after.
    fn allows(&mut self, bucket: u32, left: &[u32], right: &[u32]) -> bool;

    /// `bucket` is not split any more.
    fn closed(&mut self, _bucket: u32) {}

    /// Rows are renumbered: what was row `order[row]` is `row` from now on.
    fn reorder(&mut self, order: &[u32]);
}

/// Says which splits are made whatever becomes of other buckets.
pub trait LocalSplitPredicate: Sync {
    /// What it counts in.
    type Memory: Default + Send;

    /// Why it cannot say: not without other buckets.
    type Unclear: Send;

    /// Whether a bucket may be split into `left` and `right`, rows rising.
    ///
    /// # Errors
    /// When that depends on other buckets.
    fn allows(&self, left: &[u32], right: &[u32], memory: &mut Self::Memory) -> Result<bool, Self::Unclear>;

    /// The same once all buckets before it are split: each is a stretch of `order`. Says what it cannot say when that is not enough either.
    ///
    /// # Errors
    /// As [`Self::allows`].
    fn among(
        &mut self,
        unclear: Self::Unclear,
        _halves: [&[u32]; 2],
        _order: &[u32],
        _memory: &mut Self::Memory,
    ) -> Result<bool, Self::Unclear> {
        Err(unclear)
    }

    /// The bucket that is this stretch of `order` is split at `middle`.
    fn split(&mut self, _order: &[u32], _bucket: &Range<usize>, _middle: usize) {}

    /// As [`SplitPredicate::reorder`].
    fn reorder(&mut self, order: &[u32]);
}

/// Splits the rows of a table of `rows` rows as far as `limits` and `judge` allow: first in, first out; of each bucket the
/// first split that is allowed. A bucket whose splits were all refused stays as it is.
///
/// The caller has checked the whole table. Buckets are numbered in the order in which they were closed. Nothing is drawn: rows
/// of equal value are taken in the order of the table, which was permuted secretly.
///
/// # Errors
/// [`Cancelled`] on cancellation.
pub fn partition(
    space: SplitSpace,
    rows: usize,
    limits: PartitionLimits,
    judge: &mut impl SplitPredicate,
    control: &Control,
) -> Result<BucketAssignment, Cancelled> {
    let mut halving = PartitionState::new(space, rows, limits);
    let mut scratch = Scratch::default();
    let (mut bucket, mut made) = (0, 1);
    while !halving.open.is_empty() {
        halving.renumber(|order| judge.reorder(order));
        for range in mem::take(&mut halving.open) {
            let rows = &mut halving.order[range.clone()];
            let halves = halve::<Cancelled>(&halving.space, rows, limits, &mut scratch, control, |left, right| {
                Ok(judge.allows(bucket, left, right))
            })?;
            match halves {
                Some(_) => made += 2,
                None => judge.closed(bucket),
            }
            halving.settle(range, halves, control)?;
            bucket += 1;
        }
    }
    debug_assert_eq!(bucket, made, "each that was made was looked at");
    Ok(halving.assignment())
}

/// Why rows were not split.
#[derive(Clone, Copy, Debug)]
pub enum PartitionError<U> {
    /// What the judge could not say.
    Unclear(U),
    /// The job was cancelled.
    Cancelled,
}

impl<U> From<Cancelled> for PartitionError<U> {
    fn from(Cancelled: Cancelled) -> Self {
        Self::Cancelled
    }
}

impl PartitionError<Infallible> {
    /// Of a judge who can always say.
    #[must_use]
    pub fn cancelled(self) -> Cancelled {
        match self {
            Self::Unclear(never) => match never {},
            Self::Cancelled => Cancelled,
        }
    }
}

/// The same by a judge who looks at no other buckets: the same buckets, under the same numbers, by all processors.
///
/// # Errors
/// [`PartitionError`] when the judge has to look at other buckets, or on cancellation.
pub fn partition_apart<J: LocalSplitPredicate>(
    space: SplitSpace,
    rows: usize,
    limits: PartitionLimits,
    judge: &mut J,
    control: &Control,
) -> Result<BucketAssignment, PartitionError<J::Unclear>> {
    let mut halving = PartitionState::new(space, rows, limits);
    while !halving.open.is_empty() {
        halving.renumber(|order| judge.reorder(order));
        let (space, asked) = (&halving.space, &*judge);
        let mut buckets = Vec::with_capacity(halving.open.len());
        let (mut rest, mut before) = (&mut halving.order[..], 0);
        for range in &halving.open {
            let (bucket, after) = rest[range.start - before..].split_at_mut(range.len());
            (rest, before) = (after, range.end);
            buckets.push(bucket);
        }
        let several = limits.tuning.parallel_rows * buckets.len() / rows;
        let memory = || (Scratch::default(), J::Memory::default());
        let halves =
            buckets.into_par_iter().with_min_len(several.max(1)).map_init(memory, |(scratch, memory), rows| {
                halve(space, rows, limits, scratch, control, |left, right| {
                    asked.allows(left, right, memory).map_err(PartitionError::Unclear)
                })
            });
        let halves: Vec<Result<Option<usize>, PartitionError<J::Unclear>>> = halves.collect();
        for (range, halves) in mem::take(&mut halving.open).into_iter().zip(halves) {
            let halves = match halves {
                Err(PartitionError::Unclear(_)) => halving.among(range.clone(), limits, judge, control),
                halves => halves,
            }?;
            if let Some(left) = halves {
                judge.split(&halving.order, &range, range.start + left);
            }
            halving.settle(range, halves, control)?;
        }
    }
    Ok(halving.assignment())
}

/// Puts the rows of the first allowed split of a bucket behind each other; how many are on its left.
fn halve<E: From<Cancelled>>(
    space: &SplitSpace,
    rows: &mut [u32],
    limits: PartitionLimits,
    scratch: &mut Scratch,
    control: &Control,
    mut allows: impl FnMut(&[u32], &[u32]) -> Result<bool, E>,
) -> Result<Option<usize>, E> {
    control.check()?;
    if rows.len() / 2 < limits.min_bucket {
        return Ok(None);
    }
    let mut candidates = SplitCandidates::new(space, limits.split, rows, scratch);
    for _ in 0..limits.max_attempts.unwrap_or(usize::MAX) {
        let Some((left, right)) = candidates.next_split() else { break };
        control.check()?;
        if left.len().min(right.len()) >= limits.min_bucket && allows(left, right)? {
            let middle = left.len();
            rows[..middle].copy_from_slice(&scratch.left);
            rows[middle..].copy_from_slice(&scratch.right);
            return Ok(Some(middle));
        }
    }
    Ok(None)
}

/// Rows on their way to buckets.
struct PartitionState {
    space: SplitSpace,
    /// The rows of buckets, one bucket behind the other.
    order: Vec<u32>,
    /// What rows are called outside of here, once they were renumbered.
    originals: Option<Vec<u32>>,
    /// The rows of a bucket when they were, and when they are again to be few among these.
    among: usize,
    unnumbered_rows: usize,
    /// Where the buckets stand that may still be split, all of one level.
    open: Vec<Range<usize>>,
    bucket_of: Vec<u32>,
    closed: u32,
}

impl PartitionState {
    fn new(space: SplitSpace, rows: usize, limits: PartitionLimits) -> Self {
        let order = (0..rows as u32).collect();
        let open = (rows > 0).then_some(0..rows).into_iter().collect();
        let unnumbered_rows = limits.tuning.unnumbered_rows;
        let bucket_of = vec![0; rows];
        Self { space, order, originals: None, among: rows, unnumbered_rows, open, bucket_of, closed: 0 }
    }

    /// Renumbers rows where those of the buckets of a level have become few.
    fn renumber(&mut self, mut reorder: impl FnMut(&[u32])) {
        let largest = self.open.iter().map(ExactSizeIterator::len).max().unwrap_or(0);
        if largest <= self.unnumbered_rows || largest > self.among / RENUMBER_BELOW_FRACTION {
            return;
        }
        self.among = largest;
        self.space.reorder(&self.order);
        reorder(&self.order);
        self.originals = Some(match self.originals.take() {
            None => self.order.clone(),
            Some(originals) => self.order.iter().map(|&row| originals[row as usize]).collect(),
        });
        self.order.iter_mut().zip(0..).for_each(|(row, at)| *row = at);
    }

    /// Halves a bucket with a look at those before it.
    fn among<J: LocalSplitPredicate>(
        &mut self,
        bucket: Range<usize>,
        limits: PartitionLimits,
        judge: &mut J,
        control: &Control,
    ) -> Result<Option<usize>, PartitionError<J::Unclear>> {
        let (mut scratch, mut memory) = (Scratch::default(), J::Memory::default());
        let mut rows = self.order[bucket.clone()].to_vec();
        let halves = halve(&self.space, &mut rows, limits, &mut scratch, control, |left, right| {
            judge
                .allows(left, right, &mut memory)
                .or_else(|unclear| judge.among(unclear, [left, right], &self.order, &mut memory))
                .map_err(PartitionError::Unclear)
        });
        self.order[bucket].copy_from_slice(&rows);
        halves
    }

    /// Opens the halves of a bucket, or closes it.
    fn settle(&mut self, bucket: Range<usize>, halves: Option<usize>, control: &Control) -> Result<(), Cancelled> {
        if let Some(left) = halves {
            let middle = bucket.start + left;
            self.open.extend([bucket.start..middle, middle..bucket.end]);
            return Ok(());
        }
        for &row in &self.order[bucket.clone()] {
            let row = self.originals.as_ref().map_or(row, |originals| originals[row as usize]);
            self.bucket_of[row as usize] = self.closed;
        }
        self.closed += 1;
        control.advance(bucket.len() as u64)
    }

    fn assignment(self) -> BucketAssignment {
        BucketAssignment { bucket_of: self.bucket_of, buckets: self.closed }
    }
}
