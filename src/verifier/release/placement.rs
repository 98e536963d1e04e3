//! Check without a witness that the rows of the original can stand in the buckets with all their columns.
//!
//! A row stands in one bucket, with its tuple in every part. How many rows of each kind stand in each bucket is not known; but
//! the parts say how often a bucket has each tuple, and the original how many rows of a kind there are. From these sums follow
//! bounds of every unknown number, which are tightened until none changes. Bounds that contradict each other prove that no
//! assignment of rows has these parts. The converse is not proved: the problem of three sums is NP-hard.
//!
//! # Citations
//! [Buzzigoli and Giusti 1999], the bounds; `docs/security/threat-model.md#verifier`

use std::collections::VecDeque;

use ahash::AHashMap;

use crate::control::Control;
use crate::verifier::contract::checks::{CheckLog, CheckName};
use crate::verifier::contract::input::VerifierError;
use crate::verifier::read::row_keys::RowKeys;

/// The most unknown numbers whose bounds are tightened. With more of them, each row still needs some bucket.
const MAX_UNKNOWNS: usize = 1 << 22;
/// The most unknown numbers that are looked at while bounds are tightened.
const MAX_TIGHTENED: usize = 1 << 27;

/// How the rows of a part count the rows of the original.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::verifier) enum RowCounting {
    /// A row for each row.
    Equal,
    /// Also rows that are none of the original.
    AtMost,
    /// A row for each value.
    Listed,
}

/// A bucketed part, and which of its tuples the rows of the original have.
pub(in crate::verifier) struct PlacedPart {
    counting: RowCounting,
    /// The tuple of each row of the original, by number.
    tuple_of: Vec<u32>,
    /// For each tuple, the buckets that have it and how often, in the order of labels.
    buckets_of: Vec<Vec<(u32, u64)>>,
}

impl PlacedPart {
    /// The rows of a part with these labels and keys; `expected` are the keys of all rows of the original.
    pub(in crate::verifier) fn new(
        counting: RowCounting,
        labels: &[u32],
        keys: &RowKeys,
        expected: &RowKeys,
        rows: usize,
    ) -> Self {
        let mut numbers: AHashMap<&[u32], u32> = AHashMap::new();
        let mut tuple_of = Vec::with_capacity(rows);
        for row in 0..rows {
            let next = numbers.len() as u32;
            tuple_of.push(*numbers.entry(expected.slice(row..row + 1)).or_insert(next));
        }
        let mut counts: AHashMap<(u32, u32), u64> = AHashMap::new();
        for (row, &label) in labels.iter().enumerate() {
            // another check finds the tuples that the original does not have
            if let Some(&tuple) = numbers.get(keys.slice(row..row + 1)) {
                *counts.entry((tuple, label)).or_default() += 1;
            }
        }
        let mut buckets_of = vec![Vec::new(); numbers.len()];
        for ((tuple, label), count) in counts {
            buckets_of[tuple as usize].push((label, count));
        }
        buckets_of.iter_mut().for_each(|buckets: &mut Vec<(u32, u64)>| buckets.sort_unstable());
        Self { counting, tuple_of, buckets_of }
    }

    /// The position of a bucket among those of a tuple.
    fn find(&self, tuple: u32, bucket: u32) -> Option<usize> {
        self.buckets_of[tuple as usize].binary_search_by_key(&bucket, |(label, _)| *label).ok()
    }
}

/// Checks that the rows can stand in the buckets of all parts of a table; `suppressed` of them stand in none.
pub(in crate::verifier) fn check(
    parts: &[PlacedPart],
    suppressed: u64,
    place: &str,
    control: &Control,
    log: &mut CheckLog,
) -> Result<(), VerifierError> {
    let Some(first) = parts.first().filter(|_| parts.len() > 1) else { return Ok(()) };
    let mut kinds: AHashMap<Vec<u32>, u64> = AHashMap::new();
    for row in 0..first.tuple_of.len() {
        *kinds.entry(parts.iter().map(|part| part.tuple_of[row]).collect()).or_default() += 1;
    }
    control.check()?;
    let mut sums = PlacementSums::new(parts);
    let mut homeless = 0;
    for (kind, rows) in &kinds {
        if !sums.add(parts, kind, *rows, suppressed == 0) {
            homeless += rows;
        }
    }
    if homeless > suppressed {
        let detail = format!("{place}: {homeless} rows of the original stand in no bucket with all their columns");
        log.fail(CheckName::Content, detail);
    } else if sums.unknowns.len() <= MAX_UNKNOWNS && sums.contradict(control)? {
        let detail = format!("{place}: no assignment of the rows of the original to buckets has these parts");
        log.fail(CheckName::Content, detail);
    }
    Ok(())
}

/// Bounds of the number of rows of one kind in one bucket.
#[derive(Clone, Copy)]
struct Unknown {
    least: u64,
    most: u64,
}

/// A sum of unknown numbers that is known.
struct KnownSum {
    total: u64,
    /// Whether the total is reached, and not only not exceeded.
    is_exact: bool,
    unknowns: Vec<u32>,
}

/// The unknown numbers of a table and their sums.
struct PlacementSums {
    unknowns: Vec<Unknown>,
    /// The sums that each unknown number is in, `width` of each.
    sums_of: Vec<u32>,
    width: usize,
    sums: Vec<KnownSum>,
    /// For each part whose rows count, and each of its tuples, the sum of its first bucket.
    first_sums: Vec<Option<Vec<u32>>>,
}

impl PlacementSums {
    /// The sums of the parts, without unknown numbers.
    fn new(parts: &[PlacedPart]) -> Self {
        let mut sums = Vec::new();
        let mut first_sums = Vec::new();
        for part in parts {
            if part.counting == RowCounting::Listed {
                first_sums.push(None);
                continue;
            }
            let is_exact = part.counting == RowCounting::Equal;
            let mut firsts = Vec::with_capacity(part.buckets_of.len());
            for buckets in &part.buckets_of {
                firsts.push(sums.len() as u32);
                let sum = |&(_, total): &(u32, u64)| KnownSum { total, is_exact, unknowns: Vec::new() };
                sums.extend(buckets.iter().map(sum));
            }
            first_sums.push(Some(firsts));
        }
        let width = 1 + first_sums.iter().flatten().count();
        Self { unknowns: Vec::new(), sums_of: Vec::new(), width, sums, first_sums }
    }

    /// Adds the rows of one kind, by their tuples in the parts; whether there is a bucket for them.
    fn add(&mut self, parts: &[PlacedPart], kind: &[u32], rows: u64, is_exact: bool) -> bool {
        let buckets = |(part, tuple): (&PlacedPart, u32)| part.buckets_of[tuple as usize].len();
        let places = || parts.iter().zip(kind.iter().copied());
        let Some((rarest, tuple)) = places().min_by_key(|place| buckets(*place)) else { return true };
        let own_sum = self.sums.len() as u32;
        let mut unknowns = Vec::new();
        let mut has_bucket = false;
        for &(bucket, _) in &rarest.buckets_of[tuple as usize] {
            let found: Option<Vec<usize>> = places().map(|(part, tuple)| part.find(tuple, bucket)).collect();
            let Some(found) = found else { continue };
            has_bucket = true;
            if self.unknowns.len() > MAX_UNKNOWNS {
                break;
            }
            let number = self.unknowns.len() as u32;
            let mut most = rows;
            self.sums_of.push(own_sum);
            for (((part, tuple), at), firsts) in places().zip(found).zip(&self.first_sums) {
                let Some(firsts) = firsts else { continue };
                let sum = firsts[tuple as usize] + at as u32;
                most = most.min(part.buckets_of[tuple as usize][at].1);
                self.sums_of.push(sum);
                self.sums[sum as usize].unknowns.push(number);
            }
            self.unknowns.push(Unknown { least: 0, most });
            unknowns.push(number);
        }
        self.sums.push(KnownSum { total: rows, is_exact, unknowns });
        has_bucket
    }

    /// Tightens bounds until none changes; whether they contradict each other.
    fn contradict(&mut self, control: &Control) -> Result<bool, VerifierError> {
        let mut waiting: VecDeque<u32> = (0..self.sums.len() as u32).collect();
        let mut is_waiting = vec![true; self.sums.len()];
        let mut looked_at = 0;
        while let Some(number) = waiting.pop_front() {
            is_waiting[number as usize] = false;
            let sum = &self.sums[number as usize];
            looked_at += sum.unknowns.len();
            if looked_at > MAX_TIGHTENED {
                break;
            }
            if number.is_multiple_of(1 << 12) {
                control.check()?;
            }
            let bounds = || sum.unknowns.iter().map(|&unknown| self.unknowns[unknown as usize]);
            let (least, most) = bounds().fold((0, 0), |(least, most), of| (least + of.least, most + of.most));
            if least > sum.total || (sum.is_exact && most < sum.total) {
                return Ok(true);
            }
            for &unknown in &sum.unknowns {
                let known = &mut self.unknowns[unknown as usize];
                let highest = known.most.min(sum.total - (least - known.least));
                let lowest = if sum.is_exact { sum.total.saturating_sub(most - known.most) } else { 0 };
                let lowest = known.least.max(lowest);
                if (lowest, highest) == (known.least, known.most) {
                    continue;
                }
                if lowest > highest {
                    return Ok(true);
                }
                (known.least, known.most) = (lowest, highest);
                for &other in &self.sums_of[unknown as usize * self.width..][..self.width] {
                    if !std::mem::replace(&mut is_waiting[other as usize], true) {
                        waiting.push_back(other);
                    }
                }
            }
        }
        Ok(false)
    }
}
