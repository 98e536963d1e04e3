//! Mixture diversity, as far as it can be judged bucket by bucket.
//!
//! A mixture of good buckets is good. While no bucket is bad by itself, a split into good halves keeps every mixture good. A half
//! that is bad for a row that matches no other bucket is always refused. Few rows of a wide table are equal, so that these two
//! cases decide nearly every split, and buckets are split in parallel.
//!
//! In the other cases, mixtures of single rows are computed once all earlier buckets are split. If these hold, a bad bucket may
//! arise, and [`super::mixture`] starts over with all matching buckets.
//!
//! The buckets that a row matches are found by the few rows that share one of its rarer values. Parallel splits see the buckets
//! as they were at the start of their level: the halves of a bucket match no more rows.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Mutex, OnceLock, PoisonError};

use ahash::RandomState;
use smallvec::SmallVec;

use super::counts::{BucketCountsView, FrequencyBound, StoredCounts, TrialCounts};
use super::keys::IdentityKeys;
use super::posterior::{BucketWeights, MatchedBucket, PosteriorJudge};
use crate::microdata::{Codes, Column};
use crate::publish::partition::{GroupTally, LocalSplitPredicate, TalliedRows, TallyGroups};

/// Largest numbers of rows that share a value, when matching buckets are searched; rarer values first.
const RARITY_LEVELS: [u32; 3] = [1, 16, 1024];

/// Largest number of rows of a half that are examined.
const SAMPLED_ROWS_PER_HALF: usize = 64;

/// Average number of times that a row may be read for mixtures of others, before the complete check takes over.
const MAX_LOOKS_PER_ROW: u64 = 64;

/// Predicate of splits that do not depend on other buckets.
pub(super) struct LocalMixtureChecker<'a> {
    keys: Cow<'a, IdentityKeys>,
    codes: Cow<'a, Codes>,
    values: usize,
    judge: PosteriorJudge,
    /// Whether every row matches its own bucket alone.
    apart: bool,
    /// For each row, the number of rows that share its rarest value.
    rarest: Vec<u32>,
    /// Bucket of each row, by its first position, and the end of each bucket.
    place: Vec<u32>,
    ends: Vec<u32>,
    /// Number of rows that may still be read for mixtures of others.
    looks: u64,
    halves: [TrialCounts; 2],
    /// Never contended: parallel judgements read no other buckets.
    others: Mutex<OtherBuckets>,
    /// Rows with each value, by column, under their current numbers.
    having: OnceLock<Vec<RowsByValue>>,
}

/// The judgement depends on other buckets.
pub(super) struct NeedsOtherBuckets;

/// Counts of other buckets that rows match.
struct OtherBuckets {
    /// Counts by the first position of the bucket.
    kept: HashMap<u32, StoredCounts, RandomState>,
    trial: TrialCounts,
}

/// Rows with each value of a column.
struct RowsByValue {
    rows: Vec<u32>,
    /// End of the rows of each value.
    ends: Vec<u32>,
}

#[derive(Default)]
pub(super) struct CheckerScratch {
    tally: GroupTally,
    /// Companion values for which a half is bad, rising.
    bad: Vec<u32>,
    /// Other buckets that a row may match, and those that share one of its values.
    matching: Vec<u32>,
    with_value: Vec<u32>,
}

impl RowsByValue {
    fn from_column(column: &TallyGroups) -> Self {
        let mut ends = vec![0_u32; column.count as usize + 1];
        column.of_row.iter().for_each(|&value| ends[value as usize + 1] += 1);
        let mut start = 0;
        ends.iter_mut().for_each(|end| {
            start += *end;
            *end = start;
        });
        let mut rows = vec![0; column.of_row.len()];
        for (row, &value) in (0..).zip(&column.of_row) {
            rows[ends[value as usize] as usize] = row;
            ends[value as usize] += 1;
        }
        Self { rows, ends }
    }

    fn rows(&self, value: u32) -> &[u32] {
        let start = value.checked_sub(1).map_or(0, |before| self.ends[before as usize]);
        &self.rows[start as usize..self.ends[value as usize] as usize]
    }
}

impl<'a> LocalMixtureChecker<'a> {
    /// Begins with the whole table as one bucket; `None` if that violates the bound.
    ///
    /// `apart` says that every row matches its own bucket alone, however buckets are split.
    pub(super) fn begin(
        keys: &'a IdentityKeys,
        sensitive: &'a Column,
        bound: FrequencyBound,
        weights: BucketWeights,
        apart: bool,
    ) -> Option<Self> {
        let rows = sensitive.codes.len();
        let mut rarest = vec![u32::MAX; rows];
        for column in columns(keys) {
            let mut rows_with = vec![0_u32; column.count as usize];
            column.of_row.iter().for_each(|&value| rows_with[value as usize] += 1);
            rarest
                .iter_mut()
                .zip(&column.of_row)
                .for_each(|(least, &value)| *least = rows_with[value as usize].min(*least));
        }
        let (keys, codes) = (Cow::Borrowed(keys), Cow::Borrowed(&sensitive.codes));
        let values = sensitive.domain.len();
        let begun = Self {
            codes,
            values,
            judge: PosteriorJudge::new(bound, weights, values),
            apart,
            rarest,
            place: vec![0; rows],
            ends: vec![rows as u32; rows],
            looks: MAX_LOOKS_PER_ROW * rows as u64,
            halves: [TrialCounts::new(&keys), TrialCounts::new(&keys)],
            others: Mutex::new(OtherBuckets { kept: HashMap::default(), trial: TrialCounts::new(&keys) }),
            keys,
            having: OnceLock::new(),
        };
        let all: Vec<u32> = (0..rows as u32).collect();
        let mut memory = CheckerScratch::default();
        begun.count(&all, &mut memory);
        memory.bad.is_empty().then_some(begun)
    }

    /// Collects the companion values for which a half is bad.
    fn count(&self, half: &[u32], CheckerScratch { tally, bad, .. }: &mut CheckerScratch) {
        bad.clear();
        let groups = (self.keys.companions.count > 1).then_some(&self.keys.companions);
        let tallied = TalliedRows { rows: half, groups, codes: &self.codes, values: self.values };
        tally.groups(tallied, |companion, counts| {
            if !self.judge.bound().holds(counts) {
                bad.push(companion);
            }
            true
        });
    }

    /// Whether a row for which a half is bad matches neither another bucket nor the other half.
    fn refuses(&self, half: &[u32], other: &[u32], memory: &mut CheckerScratch) -> bool {
        if self.apart {
            return true;
        }
        let mut asked = 0;
        let mut before = 0;
        for rare in RARITY_LEVELS {
            for &row in half.iter().filter(|row| (before..rare).contains(&(self.rarest[**row as usize] - 1))) {
                if memory.bad.binary_search(&self.keys.companions.of_row[row as usize]).is_err() {
                    continue;
                }
                if rare == 1 || self.matches_one(row, other, memory) {
                    return true;
                }
                asked += 1;
                if asked == SAMPLED_ROWS_PER_HALF {
                    return false;
                }
            }
            before = rare;
        }
        false
    }

    fn having(&self) -> &[RowsByValue] {
        self.having.get_or_init(|| columns(&self.keys).map(RowsByValue::from_column).collect())
    }

    /// Whether `row` certainly matches neither another bucket nor the half `other`. One of its values is rare.
    fn matches_one(
        &self,
        row: u32,
        other: &[u32],
        CheckerScratch { matching, with_value, .. }: &mut CheckerScratch,
    ) -> bool {
        let most = RARITY_LEVELS[RARITY_LEVELS.len() - 1] as usize;
        let own = self.place[row as usize];
        let (mut first, mut in_other) = (true, true);
        for (column, having) in columns(&self.keys).zip(self.having()) {
            let rows = having.rows(column.of_row[row as usize]);
            if rows.len() > most {
                continue;
            }
            with_value.clear();
            let mut has_other = false;
            for &row in rows {
                let place = self.place[row as usize];
                if place == own {
                    has_other = has_other || other.binary_search(&row).is_ok();
                } else {
                    with_value.push(place);
                }
            }
            in_other &= has_other;
            with_value.sort_unstable();
            if first {
                with_value.dedup();
                std::mem::swap(matching, with_value);
                first = false;
            } else {
                matching.retain(|bucket| with_value.binary_search(bucket).is_ok());
            }
            if !in_other && matching.is_empty() {
                return true;
            }
        }
        false
    }
}

impl LocalMixtureChecker<'_> {
    /// Whether the mixture of `row` violates the bound, its bucket being split into the halves under trial. `None` if that reads
    /// too many rows.
    fn fails(&mut self, row: u32, order: &[u32]) -> Option<bool> {
        let companion = self.keys.companions.of_row[row as usize];
        let values: SmallVec<[u32; 8]> = self.keys.others.iter().map(|other| other.of_row[row as usize]).collect();
        let rows_with =
            columns(&self.keys).zip(self.having()).map(|(column, having)| having.rows(column.of_row[row as usize]));
        let fewest = rows_with.min_by_key(|rows| rows.len())?;
        let own = self.place[row as usize];
        let mut places: Vec<u32> = fewest.iter().map(|&row| self.place[row as usize]).filter(|of| *of != own).collect();
        places.sort_unstable();
        places.dedup();
        let mut looks = fewest.len() as u64;
        let OtherBuckets { kept, trial } = self.others.get_mut().unwrap_or_else(PoisonError::into_inner);
        for &place in &places {
            kept.entry(place).or_insert_with(|| {
                let rows = &order[place as usize..self.ends[place as usize] as usize];
                looks += rows.len() as u64;
                trial.count(rows, &self.keys, &self.codes, self.values, self.judge.bound());
                trial.kept()
            });
        }
        self.looks = self.looks.checked_sub(looks)?;
        let matches = |bucket: &dyn BucketCountsView| {
            !bucket.sensitive(companion).is_empty()
                && values.iter().enumerate().all(|(at, &value)| bucket.rows_with(at, value) > 0)
        };
        let others = places.iter().filter_map(|place| kept.get(place)).map(|kept| kept as &dyn BucketCountsView);
        let halves = self.halves.iter().map(|half| half as &dyn BucketCountsView);
        let matching = others.chain(halves).filter(|bucket| matches(*bucket));
        let matching: Vec<MatchedBucket<'_>> = matching.map(|bucket| MatchedBucket::new(&values, bucket)).collect();
        Some(!self.judge.holds(&values, companion, &matching))
    }
}

/// Columns of the known values of rows.
fn columns(keys: &IdentityKeys) -> impl Iterator<Item = &TallyGroups> {
    keys.others.iter().chain([&keys.companions])
}

impl LocalSplitPredicate for LocalMixtureChecker<'_> {
    type Memory = CheckerScratch;
    type Unclear = NeedsOtherBuckets;

    fn allows(&self, left: &[u32], right: &[u32], memory: &mut CheckerScratch) -> Result<bool, NeedsOtherBuckets> {
        let mut clear = true;
        for (half, other) in [(left, right), (right, left)] {
            self.count(half, memory);
            if !memory.bad.is_empty() {
                if self.refuses(half, other, memory) {
                    return Ok(false);
                }
                clear = false;
            }
        }
        if clear { Ok(true) } else { Err(NeedsOtherBuckets) }
    }

    fn among(
        &mut self,
        NeedsOtherBuckets: NeedsOtherBuckets,
        [left, right]: [&[u32]; 2],
        order: &[u32],
        memory: &mut CheckerScratch,
    ) -> Result<bool, NeedsOtherBuckets> {
        for (trial, half) in self.halves.iter_mut().zip([left, right]) {
            trial.count(half, &self.keys, &self.codes, self.values, self.judge.bound());
        }
        for half in [left, right] {
            self.count(half, memory);
            let keys = &self.keys;
            let is_bad = |row: &&u32| memory.bad.binary_search(&keys.companions.of_row[**row as usize]).is_ok();
            let mut bad: Vec<u32> = half.iter().filter(is_bad).copied().collect();
            // rows with rarer values match fewer buckets and come first
            bad.sort_by_key(|&row| self.rarest[row as usize]);
            bad.truncate(SAMPLED_ROWS_PER_HALF);
            for row in bad {
                match self.fails(row, order) {
                    Some(true) => return Ok(false),
                    Some(false) => {}
                    None => return Err(NeedsOtherBuckets),
                }
            }
        }
        Err(NeedsOtherBuckets)
    }

    fn split(&mut self, order: &[u32], bucket: &Range<usize>, middle: usize) {
        order[middle..bucket.end].iter().for_each(|&row| self.place[row as usize] = middle as u32);
        self.ends[bucket.start] = middle as u32;
        self.ends[middle] = bucket.end as u32;
        self.others.get_mut().unwrap_or_else(PoisonError::into_inner).kept.remove(&(bucket.start as u32));
    }

    fn reorder(&mut self, order: &[u32]) {
        let gather = |of: &[u32]| order.iter().map(|&row| of[row as usize]).collect();
        (self.rarest, self.place) = (gather(&self.rarest), gather(&self.place));
        self.keys = Cow::Owned(self.keys.gather(order));
        self.codes = Cow::Owned(self.codes.gather(order));
        self.having = OnceLock::new();
    }
}
