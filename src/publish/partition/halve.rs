//! Halving of buckets, level by level.

use std::convert::Infallible;
use std::mem;
use std::ops::Range;

use rayon::prelude::*;

use super::candidates::{Scratch, SplitCandidates};
use super::limits::PartitionLimits;
use super::space::SplitSpace;
use crate::control::{Cancelled, Control};
use crate::privacy::links::StratumRows;
use crate::publish::assign::BucketAssignment;

/// Rows are renumbered once a bucket has at most one in this number of the rows at the last renumbering.
const RENUMBER_BELOW_FRACTION: usize = 16;

/// Predicate of splits that is notified of their results.
pub trait SplitPredicate {
    /// Whether `bucket` may be split into `left` and `right`, rows rising.
    ///
    /// Buckets are numbered in the order of making. The whole table is 0; the left half of an allowed split gets the next number,
    /// then the right half.
    fn allows(&mut self, bucket: u32, left: &[u32], right: &[u32]) -> bool;

    /// Notifies that `bucket` is final.
    fn closed(&mut self, _bucket: u32) {}

    /// Renumbers rows: row `order[row]` becomes `row`.
    fn reorder(&mut self, order: &[u32]);
}

/// Predicate of splits that does not depend on other buckets, or says that it does.
pub trait LocalSplitPredicate: Sync {
    /// Memory for counts.
    type Memory: Default + Send;

    /// Reason why a split depends on other buckets.
    type Unclear: Send;

    /// Whether a bucket may be split into `left` and `right`, rows rising.
    ///
    /// # Errors
    /// [`Self::Unclear`] if it depends on other buckets.
    fn allows(&self, left: &[u32], right: &[u32], memory: &mut Self::Memory) -> Result<bool, Self::Unclear>;

    /// Decides an unclear split once all earlier buckets of the level are split. Each is a range of `order`.
    ///
    /// # Errors
    /// [`Self::Unclear`] if it still depends on other buckets.
    fn among(
        &mut self,
        unclear: Self::Unclear,
        _halves: [&[u32]; 2],
        _order: &[u32],
        _memory: &mut Self::Memory,
    ) -> Result<bool, Self::Unclear> {
        Err(unclear)
    }

    /// Notifies that the bucket at this range of `order` is split at `middle`.
    fn split(&mut self, _order: &[u32], _bucket: &Range<usize>, _middle: usize) {}

    /// Renumbers rows, as [`SplitPredicate::reorder`].
    fn reorder(&mut self, order: &[u32]);
}

/// Splits the `rows` rows of a table as far as `limits` and `judge` allow.
///
/// Buckets are split first in, first out, each by its first allowed split. A bucket without an allowed split is final, and
/// buckets are numbered in this order. The caller has checked the whole table. Nothing is drawn: rows of equal value keep the
/// order of the table, which was permuted secretly.
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
            let halver = Halver { space: &halving.space, limits, control };
            let halves =
                halver.halve::<Cancelled>(rows, &mut scratch, |left, right| Ok(judge.allows(bucket, left, right)))?;
            match halves {
                Some(_) => made += 2,
                None => judge.closed(bucket),
            }
            halving.settle(range, halves, control)?;
            bucket += 1;
        }
    }
    if cfg!(any(test, debug_assertions)) {
        assert_eq!(bucket, made, "each that was made was looked at");
    }
    Ok(halving.assignment())
}

/// Why a partition was not finished.
#[derive(Clone, Copy, Debug)]
pub enum PartitionError<U> {
    /// The predicate depends on other buckets.
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
    /// The cancellation of a predicate that is never unclear.
    #[must_use]
    pub fn cancelled(self) -> Cancelled {
        match self {
            Self::Unclear(never) => match never {},
            Self::Cancelled => Cancelled,
        }
    }
}

/// [`partition`] in parallel, by a predicate that does not depend on other buckets. Buckets and numbers are the same.
///
/// # Errors
/// [`PartitionError`] if the predicate depends on other buckets, or on cancellation.
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
        let (halver, asked) = (Halver { space: &halving.space, limits, control }, &*judge);
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
                halver.halve(rows, scratch, |left, right| {
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

/// Halves buckets along the splits of a space, within limits.
#[derive(Clone, Copy)]
struct Halver<'a> {
    space: &'a SplitSpace,
    limits: PartitionLimits,
    control: &'a Control,
}

impl Halver<'_> {
    /// Reorders the rows of a bucket by its first allowed split, and returns the size of the left half.
    fn halve<E: From<Cancelled>>(
        &self,
        rows: &mut [u32],
        scratch: &mut Scratch,
        mut allows: impl FnMut(&[u32], &[u32]) -> Result<bool, E>,
    ) -> Result<Option<usize>, E> {
        let Self { space, limits, control } = *self;
        control.check()?;
        let fewest = limits.min_bucket as u64;
        if space.weights.of(rows) / 2 < fewest {
            return Ok(None);
        }
        let mut candidates = SplitCandidates::new(space, limits.split, rows, scratch);
        for _ in 0..limits.max_attempts.unwrap_or(usize::MAX) {
            let Some((left, right)) = candidates.next_split() else { break };
            control.check()?;
            let smaller = space.weights.of(left).min(space.weights.of(right));
            if smaller >= fewest && allows(left, right)? {
                let middle = left.len();
                rows[..middle].copy_from_slice(&scratch.left);
                rows[middle..].copy_from_slice(&scratch.right);
                return Ok(Some(middle));
            }
        }
        Ok(None)
    }
}

/// The rows of all strata, stratum by stratum, and the range of each.
fn ordered(strata: &StratumRows) -> (Vec<u32>, Vec<Range<usize>>) {
    let mut order = Vec::new();
    let mut ranges = Vec::with_capacity(strata.iter().len());
    for rows in strata.iter() {
        ranges.push(order.len()..order.len() + rows.len());
        order.extend_from_slice(rows);
    }
    (order, ranges)
}

/// A partition in progress.
struct PartitionState {
    space: SplitSpace,
    /// Rows of all buckets, bucket by bucket.
    order: Vec<u32>,
    /// Number of each row in the table; `None` before rows are renumbered.
    originals: Option<Vec<u32>>,
    /// Size of the largest bucket at the last renumbering, and the size below which rows are never renumbered.
    among: usize,
    unnumbered_rows: usize,
    /// Ranges of the buckets of one level that may still be split.
    open: Vec<Range<usize>>,
    bucket_of: Vec<u32>,
    closed: u32,
}

impl PartitionState {
    fn new(mut space: SplitSpace, rows: usize, limits: PartitionLimits) -> Self {
        let (order, open) = match space.strata.take() {
            None => ((0..rows as u32).collect(), (rows > 0).then_some(0..rows).into_iter().collect()),
            Some(strata) => ordered(&strata),
        };
        let unnumbered_rows = limits.tuning.unnumbered_rows;
        let bucket_of = vec![0; rows];
        Self { space, order, originals: None, among: rows, unnumbered_rows, open, bucket_of, closed: 0 }
    }

    /// Renumbers rows if the buckets of a level have become small.
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

    /// Halves a bucket whose splits may depend on earlier buckets.
    fn among<J: LocalSplitPredicate>(
        &mut self,
        bucket: Range<usize>,
        limits: PartitionLimits,
        judge: &mut J,
        control: &Control,
    ) -> Result<Option<usize>, PartitionError<J::Unclear>> {
        let (mut scratch, mut memory) = (Scratch::default(), J::Memory::default());
        let mut rows = self.order[bucket.clone()].to_vec();
        let halver = Halver { space: &self.space, limits, control };
        let halves = halver.halve(&mut rows, &mut scratch, |left, right| {
            judge
                .allows(left, right, &mut memory)
                .or_else(|unclear| judge.among(unclear, [left, right], &self.order, &mut memory))
                .map_err(PartitionError::Unclear)
        });
        self.order[bucket].copy_from_slice(&rows);
        halves
    }

    /// Opens the halves of a bucket, or makes it final.
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
