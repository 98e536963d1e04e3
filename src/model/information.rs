//! Entropies, in nats, of tables, and of a reader's estimate where buckets hide which rows belong together.
//!
//! The estimate of a table with known attributes X and a sensitive one S in buckets b is `p~(x, s) = 1/n sum_b n_b(x) n_b(s) /
//! n_b`: all matchings within a bucket are equally likely. The order of summation depends on groups and buckets alone, so that
//! equal tables give equal bits.
//!
//! # Citations
//! - [Neumaier 1974], compensated summation.

use std::ops::Range;

use super::groups::RowGroups;
use crate::control::{Cancelled, Control};
use crate::microdata::{Codes, Column};

/// Entropy of a plain table, from the number of equal rows in each group.
#[must_use]
pub fn entropy(sizes: &[u32]) -> f64 {
    let rows: u64 = sizes.iter().map(|&size| u64::from(size)).sum();
    let mut sum = CompensatedSum::default();
    sizes.iter().filter(|&&size| size > 1).for_each(|&size| sum.add(weighed(f64::from(size))));
    of_sum(&sum, rows as f64)
}

/// A value with its share of a bucket.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ValueShare {
    /// Code of the value.
    pub value: u32,
    /// Its share of the rows.
    pub share: f64,
}

/// A sensitive column in buckets, with the bucket of each row.
#[derive(Clone, Debug)]
pub struct BucketedColumn {
    bucket_of: Vec<u32>,
    /// Rows, bucket by bucket.
    rows: Vec<u32>,
    /// Start of the values of each bucket, and the end of the last ones.
    starts: Vec<usize>,
    /// Values of each bucket, rising.
    values: Vec<u32>,
    /// Share of each value in its bucket.
    shares: Vec<f64>,
    /// Common share of all values of a bucket, if they are equal: then the list is not read.
    even: Vec<Option<f64>>,
    /// Sum of `share * ln share` of each bucket.
    certainty: Vec<f64>,
    /// Number of values of the column.
    domain: usize,
}

impl BucketedColumn {
    /// The buckets of `column`; `bucket_of` holds one of `count` buckets for each row.
    ///
    /// # Errors
    /// [`Cancelled`] on cancellation.
    pub fn new(column: &Column, bucket_of: Vec<u32>, count: usize, control: &Control) -> Result<Self, Cancelled> {
        let rows = sorted_by(count, &bucket_of, 0..bucket_of.len() as u32);
        let mut buckets = Self::empty(Vec::new(), Vec::new(), column.domain.len());
        let mut codes: Vec<u32> = Vec::new();
        for (at, bucket) in rows.chunk_by(|&a, &b| bucket_of[a as usize] == bucket_of[b as usize]).enumerate() {
            if at % Control::STRIDE == 0 {
                control.check()?;
            }
            codes.clear();
            codes.extend(bucket.iter().map(|&row| column.codes.get(row as usize)));
            codes.sort_unstable();
            let size = codes.len() as f64;
            // an empty bucket has no shares
            let number = bucket_of[bucket[0] as usize] as usize;
            while buckets.count() < number {
                buckets.push(std::iter::empty());
            }
            let share = |run: &[u32]| ValueShare { value: run[0], share: run.len() as f64 / size };
            buckets.push(codes.chunk_by(|a, b| a == b).map(share));
        }
        while buckets.count() < count {
            buckets.push(std::iter::empty());
        }
        Ok(Self { bucket_of, rows, ..buckets })
    }

    /// Buckets with given shares of values below `values`, bucket by bucket; `bucket_of` holds the bucket of each row.
    ///
    /// # Errors
    /// [`Cancelled`] on cancellation.
    pub fn of_shares(
        bucket_of: Vec<u32>,
        of_buckets: Vec<Vec<ValueShare>>,
        values: usize,
        control: &Control,
    ) -> Result<Self, Cancelled> {
        let rows = sorted_by(of_buckets.len(), &bucket_of, 0..bucket_of.len() as u32);
        let mut buckets = Self::empty(bucket_of, rows, values);
        for bucket in of_buckets {
            control.check()?;
            buckets.push(bucket.into_iter());
        }
        Ok(buckets)
    }

    /// Without buckets.
    const fn empty(bucket_of: Vec<u32>, rows: Vec<u32>, domain: usize) -> Self {
        Self {
            bucket_of,
            rows,
            starts: Vec::new(),
            values: Vec::new(),
            shares: Vec::new(),
            even: Vec::new(),
            certainty: Vec::new(),
            domain,
        }
    }

    /// Appends a bucket with its values and shares.
    fn push(&mut self, bucket: impl Iterator<Item = ValueShare>) {
        if self.starts.is_empty() {
            self.starts.push(0);
        }
        let first = self.shares.len();
        for ValueShare { value, share } in bucket {
            self.values.push(value);
            self.shares.push(share);
        }
        let shares = &self.shares[first..];
        self.even.push(shares.first().copied().filter(|first| shares.iter().all(|share| share == first)));
        self.certainty.push(shares.iter().map(|&share| weighed(share)).sum());
        self.starts.push(self.shares.len());
    }

    fn bucket(&self, row: u32) -> u32 {
        self.bucket_of[row as usize]
    }

    /// Number of shares: distinct values, summed over all buckets.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.shares.len()
    }

    /// Whether the table has no rows.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.shares.is_empty()
    }

    /// Number of buckets of the column.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.certainty.len()
    }

    /// Range of the values of a bucket, and of their shares.
    fn rows(&self, bucket: u32) -> Range<usize> {
        self.starts[bucket as usize]..self.starts[bucket as usize + 1]
    }

    /// Entropy of the estimate of a table whose known attributes group the rows like `known`.
    ///
    /// It does not depend on which row of a bucket has which sensitive value.
    ///
    /// # Errors
    /// [`Cancelled`] on cancellation.
    pub fn estimate_entropy(&self, known: &RowGroups, control: &Control) -> Result<f64, Cancelled> {
        let mut sum = CompensatedSum::default();
        let mut weighed = EntropyTerms::default();
        let rows = self.bucket_of.len() as f64;
        self.visit(known, control, |group| match group {
            KnownGroup::InOne { rows: 1, bucket } => sum.add(self.certainty[bucket as usize]),
            // each share of a single bucket counts n times
            KnownGroup::InOne { rows, bucket } => {
                let rows = f64::from(rows);
                sum.add(rows * self.certainty[bucket as usize] + weighed.x_ln_x(rows));
            }
            KnownGroup::InSeveral { weights, touched, .. } => {
                sum.add(touched.iter().map(|&value| weighed.x_ln_x(weights[value as usize])).sum());
            }
        })?;
        Ok(of_sum(&sum, rows))
    }

    /// Cross entropy between the original, with sensitive values `codes`, and the estimate of the same table. It reveals the
    /// original: for the owner alone.
    ///
    /// # Errors
    /// [`Cancelled`] on cancellation.
    pub fn cross_entropy(&self, known: &RowGroups, codes: &Codes, control: &Control) -> Result<f64, Cancelled> {
        let mut sum = CompensatedSum::default();
        let all = self.bucket_of.len() as f64;
        // rows whose group lies in one bucket come last, in their order
        let mut in_one: Vec<Option<u32>> = vec![None; known.sizes().len()];
        let mut at = 0;
        self.visit(known, control, |group| match group {
            KnownGroup::InOne { rows, .. } => {
                in_one[at] = Some(rows);
                at += 1;
            }
            KnownGroup::InSeveral { weights, rows, .. } => {
                let of = |row: u32| weights[codes.get(row as usize) as usize].ln();
                rows.iter().for_each(|of_bucket| sum.add(of(of_bucket.row)));
                at += 1;
            }
        })?;
        for (row, (&group, &bucket)) in known.of_row().iter().zip(&self.bucket_of).enumerate() {
            if let Some(rows) = in_one[group as usize] {
                let code = codes.get(row);
                let of = self.rows(bucket);
                let share = self.values[of.clone()].binary_search(&code).map_or(0.0, |at| self.shares[of][at]);
                sum.add((f64::from(rows) * share).ln());
            }
        }
        Ok(of_sum(&sum, all))
    }

    /// Visits every group of `known` in the order of numbers.
    fn visit(
        &self,
        known: &RowGroups,
        control: &Control,
        mut shown: impl FnMut(KnownGroup<'_>),
    ) -> Result<(), Cancelled> {
        let sizes = known.sizes();
        let EntropyGroups { place, rows } = self.grouped(known);
        let mut weights = vec![0f64; self.domain];
        let mut touched: Vec<u32> = Vec::new();
        let (mut from, mut since_check) = (0, 0);
        for (group, &size) in sizes.iter().enumerate() {
            if size == 1 {
                shown(KnownGroup::InOne { rows: 1, bucket: place[group] });
                continue;
            }
            let members = &rows[from..from + size as usize];
            from += size as usize;
            since_check += members.len();
            if since_check >= Control::STRIDE {
                control.check()?;
                since_check = 0;
            }
            let bucket = members[0].bucket;
            if members[members.len() - 1].bucket == bucket {
                shown(KnownGroup::InOne { rows: size, bucket });
                continue;
            }
            for run in members.chunk_by(|a, b| a.bucket == b.bucket) {
                self.weigh(run[0].bucket, run.len() as f64, &mut weights, &mut touched);
            }
            shown(KnownGroup::InSeveral { weights: &weights, touched: &touched, rows: members });
            touched.drain(..).for_each(|value| weights[value as usize] = 0.0);
        }
        Ok(())
    }

    /// Rows by group, then by bucket. Groups of one row need only the bucket.
    fn grouped(&self, known: &RowGroups) -> EntropyGroups {
        let (sizes, of_row) = (known.sizes(), known.of_row());
        let mut place = vec![0u32; sizes.len()];
        let mut shared = 0;
        for (place, &size) in place.iter_mut().zip(sizes).filter(|(_, size)| **size > 1) {
            *place = shared;
            shared += size;
        }
        let mut rows = vec![RowInBucket { bucket: 0, row: 0 }; shared as usize];
        for &row in &self.rows {
            let (group, bucket) = (of_row[row as usize] as usize, self.bucket(row));
            if sizes[group] > 1 {
                rows[place[group] as usize] = RowInBucket { bucket, row };
                place[group] += 1;
            } else {
                place[group] = bucket;
            }
        }
        EntropyGroups { place, rows }
    }

    /// Adds the expected rows of each value for some rows of a bucket; `touched` gets the values that had no weight.
    fn weigh(&self, bucket: u32, rows: f64, weights: &mut [f64], touched: &mut Vec<u32>) {
        let mut add = |value: u32, more: f64| {
            let weight = &mut weights[value as usize];
            if *weight == 0.0 {
                touched.push(value);
            }
            *weight += more;
        };
        let of = self.rows(bucket);
        match self.even[bucket as usize] {
            Some(share) => self.values[of].iter().for_each(|&value| add(value, rows * share)),
            None => {
                let shares = self.shares[of.clone()].iter();
                self.values[of].iter().zip(shares).for_each(|(&value, share)| add(value, rows * share));
            }
        }
    }
}

/// A row with its bucket.
#[derive(Clone, Copy)]
struct RowInBucket {
    bucket: u32,
    row: u32,
}

/// Rows of the groups with several rows.
struct EntropyGroups {
    /// Bucket of each group of one row.
    place: Vec<u32>,
    /// Rows by group, then by bucket.
    rows: Vec<RowInBucket>,
}

/// Rows with equal known values, by their buckets.
enum KnownGroup<'a> {
    /// Number of rows, all in one bucket.
    InOne { rows: u32, bucket: u32 },
    /// Several buckets: expected rows of each value, possible values, and the rows.
    InSeveral { weights: &'a [f64], touched: &'a [u32], rows: &'a [RowInBucket] },
}

/// Rows sorted by key, otherwise in their order; `key_of` holds one of `keys` for each row.
fn sorted_by(keys: usize, key_of: &[u32], rows: impl IntoIterator<Item = u32> + Clone) -> Vec<u32> {
    let mut next = vec![0usize; keys + 1];
    for row in rows.clone() {
        next[key_of[row as usize] as usize + 1] += 1;
    }
    for key in 0..keys {
        next[key + 1] += next[key];
    }
    let mut sorted = vec![0u32; next[keys]];
    for row in rows {
        let place = &mut next[key_of[row as usize] as usize];
        sorted[*place] = row;
        *place += 1;
    }
    sorted
}

/// Memoized `x ln x`: most weights are the shares of a few sizes of buckets.
struct EntropyTerms(Box<[(u64, f64); 256]>);

impl Default for EntropyTerms {
    fn default() -> Self {
        Self(Box::new([(0, 0.0); 256]))
    }
}

impl EntropyTerms {
    /// `x ln x` of a positive number.
    fn x_ln_x(&mut self, x: f64) -> f64 {
        let bits = x.to_bits();
        let (known, weight) = &mut self.0[(bits.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as usize];
        if *known != bits {
            (*known, *weight) = (bits, weighed(x));
        }
        *weight
    }
}

/// `x ln x`, 0 at 0.
fn weighed(x: f64) -> f64 {
    x * x.ln()
}

/// Entropy of weights that sum to `rows`, and whose `x ln x` sum to `sum`.
fn of_sum(sum: &CompensatedSum, rows: f64) -> f64 {
    if rows == 0.0 { 0.0 } else { (rows.ln() - sum.total() / rows).max(0.0) }
}

/// Compensated sum, which keeps small terms next to large ones [Neumaier 1974].
#[derive(Default)]
pub(super) struct CompensatedSum {
    sum: f64,
    lost: f64,
}

impl CompensatedSum {
    pub(super) fn add(&mut self, term: f64) {
        let next = self.sum + term;
        self.lost += if self.sum.abs() >= term.abs() { (self.sum - next) + term } else { (term - next) + self.sum };
        self.sum = next;
    }

    pub(super) fn total(&self) -> f64 {
        self.sum + self.lost
    }
}

#[cfg(test)]
mod tests;
