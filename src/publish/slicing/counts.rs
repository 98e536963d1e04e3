//! Counts of one bucket: the factors of posteriors.

use std::cell::{Cell, RefCell};

use crate::microdata::{Codes, ColumnAnnotations};
use crate::publication::Ratio;
use crate::publish::partition::{GroupTally, TalliedRows, TallyGroups};

use super::keys::IdentityKeys;

/// Rows of a bucket with one companion value: the known values in the sensitive column.
#[derive(Clone, Copy)]
pub(super) struct QiRows {
    /// The companion value.
    companion: u32,
    /// End of the sensitive values of these rows in the list of the bucket.
    end: u32,
    /// Whether a sensitive value is too frequent among these rows.
    pub(super) bad: bool,
}

/// Read access to the counts of a bucket.
pub(super) trait BucketCountsView {
    /// Number of rows of the bucket.
    fn size(&self) -> u64;
    /// Number of rows with `value` in the column at `at`, the sensitive column apart.
    fn rows_with(&self, at: usize, value: u32) -> u64;
    /// Sensitive values of the rows with `companion`, each with its count; empty without such rows.
    fn sensitive(&self, companion: u32) -> &[(u32, u32)];
}

/// Counts of a bucket that stays.
pub(super) struct StoredCounts {
    size: u64,
    rows_with: Box<[OccurringValues]>,
    /// Rising by companion value.
    pub(super) sides: Box<[QiRows]>,
    sensitive: Box<[(u32, u32)]>,
}

/// Values of a column that occur in a bucket, as `(value, rows)`.
///
/// They are sorted at the first query, since most buckets are split before any.
struct OccurringValues {
    rows: RefCell<Box<[(u32, u32)]>>,
    rising: Cell<bool>,
}

impl OccurringValues {
    /// Applies new numbers of values.
    fn renumber(&mut self, numbers: &[u32]) {
        self.rows.get_mut().iter_mut().for_each(|(value, _)| *value = numbers[*value as usize]);
        self.rising.set(false);
    }

    fn rows_with(&self, value: u32) -> u64 {
        if !self.rising.replace(true) {
            self.rows.borrow_mut().sort_unstable();
        }
        let rows = self.rows.borrow();
        rows.binary_search_by_key(&value, |(value, _)| *value).map_or(0, |at| u64::from(rows[at].1))
    }
}

/// Values of a column that occur, one bit each, so that all of them fit the cache.
struct ValueBitmap(Vec<u64>);

impl ValueBitmap {
    fn insert(&mut self, value: u32) {
        self.0[value as usize / 64] |= 1 << (value % 64);
    }

    fn remove(&mut self, value: u32) {
        self.0[value as usize / 64] &= !(1 << (value % 64));
    }

    fn contains(&self, value: u32) -> bool {
        self.0[value as usize / 64] >> (value % 64) & 1 == 1
    }
}

/// Counts of a bucket under trial, in arrays over all values.
pub(super) struct TrialCounts {
    size: u64,
    /// Number of rows with each value of each column.
    rows_with: Vec<Vec<u32>>,
    /// Values that occur, by column: a list and a bitmap.
    occurring: Vec<(Vec<u32>, ValueBitmap)>,
    /// Position of each companion value in `sides`, plus 1; 0 for a value that does not occur.
    side_of: Vec<u32>,
    sides: Vec<QiRows>,
    sensitive: Vec<(u32, u32)>,
    tally: GroupTally,
}

impl TrialCounts {
    pub(super) fn new(keys: &IdentityKeys) -> Self {
        Self {
            size: 0,
            rows_with: keys.others.iter().map(|other| vec![0; other.count as usize]).collect(),
            occurring: keys
                .others
                .iter()
                .map(|other| (Vec::new(), ValueBitmap(vec![0; (other.count as usize).div_ceil(64)])))
                .collect(),
            side_of: vec![0; keys.companions.count as usize],
            sides: Vec::new(),
            sensitive: Vec::new(),
            tally: GroupTally::default(),
        }
    }

    /// Resets all counts.
    pub(super) fn clear(&mut self) {
        self.size = 0;
        for (counts, (occurring, present)) in self.rows_with.iter_mut().zip(&mut self.occurring) {
            for value in occurring.drain(..) {
                counts[value as usize] = 0;
                present.remove(value);
            }
        }
        self.sides.drain(..).for_each(|side| self.side_of[side.companion as usize] = 0);
        self.sensitive.clear();
    }

    /// Counts `rows` in place of earlier ones.
    pub(super) fn count(
        &mut self,
        rows: &[u32],
        keys: &IdentityKeys,
        codes: &Codes,
        values: usize,
        bound: &FrequencyBound,
    ) {
        self.clear();
        self.size = rows.len() as u64;
        for ((counts, (occurring, present)), TallyGroups { of_row, .. }) in
            self.rows_with.iter_mut().zip(&mut self.occurring).zip(&keys.others)
        {
            for &row in rows {
                let value = of_row[row as usize];
                let count = &mut counts[value as usize];
                if *count == 0 {
                    occurring.push(value);
                    present.insert(value);
                }
                *count += 1;
            }
        }
        let Self { side_of, sides, sensitive, tally, .. } = self;
        let tallied = TalliedRows { rows, groups: Some(&keys.companions), codes, values };
        tally.groups(tallied, |companion, counts| {
            sensitive.extend(counts.iter().map(|&(value, count)| (value, count as u32)));
            let bad = !bound.holds(counts);
            sides.push(QiRows { companion, end: sensitive.len() as u32, bad });
            side_of[companion as usize] = sides.len() as u32;
            true
        });
    }

    /// Whether some row has each of these values.
    pub(super) fn matches(&self, others: &[u32], companion: u32) -> bool {
        self.side_of[companion as usize] > 0
            && self.occurring.iter().zip(others).all(|((_, present), &value)| present.contains(value))
    }

    /// Whether a sensitive value is too frequent among the rows with `companion`.
    pub(super) fn is_bad(&self, companion: u32) -> bool {
        let side = self.side_of[companion as usize] as usize;
        side > 0 && self.sides[side - 1].bad
    }

    /// Whether a sensitive value is too frequent among the rows with some companion value.
    pub(super) fn has_bad(&self) -> bool {
        self.sides.iter().any(|side| side.bad)
    }

    /// A copy of the counts that stays.
    pub(super) fn kept(&self) -> StoredCounts {
        let columns = self.occurring.iter().zip(&self.rows_with).map(|((occurring, _), counts)| OccurringValues {
            rows: RefCell::new(occurring.iter().map(|&value| (value, counts[value as usize])).collect()),
            rising: Cell::new(false),
        });
        StoredCounts {
            size: self.size,
            rows_with: columns.collect(),
            sides: self.sides.as_slice().into(),
            sensitive: self.sensitive.as_slice().into(),
        }
    }
}

impl StoredCounts {
    /// Applies new numbers of values, column by column.
    pub(super) fn renumber(&mut self, numbers: &[Vec<u32>]) {
        self.rows_with.iter_mut().zip(numbers).for_each(|(occurring, numbers)| occurring.renumber(numbers));
    }
}

/// Bound on the frequency of a sensitive value.
pub(super) struct FrequencyBound {
    /// No value takes more than 1/l of the rows.
    pub(super) l: Ratio,
    /// Excluded values. They are bounded by 1/l of all rows, the others by 1/l of the rows without excluded values.
    ///
    /// See `docs/spec/slicing.md#diversity`.
    pub(super) annotations: ColumnAnnotations,
}

impl FrequencyBound {
    /// Whether rows with these sensitive values keep the bound by themselves. Some value must not be excluded.
    pub(super) fn holds(&self, counts: &[(u32, u64)]) -> bool {
        let (mut all, mut informative) = (0, 0);
        for &(value, count) in counts {
            all += count;
            informative += if self.annotations.is_excludable(value) { 0 } else { count };
        }
        let (l, of) = (u128::from(self.l.numerator()), u128::from(self.l.denominator()));
        informative > 0
            && counts.iter().all(|&(value, count)| {
                let among = if self.annotations.is_excludable(value) { all } else { informative };
                u128::from(count) * l <= u128::from(among) * of
            })
    }
}

fn of_side<'a>(sides: &[QiRows], at: usize, sensitive: &'a [(u32, u32)]) -> &'a [(u32, u32)] {
    let start = at.checked_sub(1).map_or(0, |before| sides[before].end);
    &sensitive[start as usize..sides[at].end as usize]
}

impl QiRows {
    pub(super) fn companion(self) -> u32 {
        self.companion
    }
}

impl BucketCountsView for TrialCounts {
    fn size(&self) -> u64 {
        self.size
    }

    fn rows_with(&self, at: usize, value: u32) -> u64 {
        u64::from(self.rows_with[at][value as usize])
    }

    fn sensitive(&self, companion: u32) -> &[(u32, u32)] {
        match self.side_of[companion as usize] as usize {
            0 => &[],
            side => of_side(&self.sides, side - 1, &self.sensitive),
        }
    }
}

impl BucketCountsView for StoredCounts {
    fn size(&self) -> u64 {
        self.size
    }

    fn rows_with(&self, at: usize, value: u32) -> u64 {
        self.rows_with[at].rows_with(value)
    }

    fn sensitive(&self, companion: u32) -> &[(u32, u32)] {
        match self.sides.binary_search_by_key(&companion, |side| side.companion) {
            Ok(at) => of_side(&self.sides, at, &self.sensitive),
            Err(_) => &[],
        }
    }
}
