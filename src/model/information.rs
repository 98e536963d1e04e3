//! How much tables tell, in nats: entropies of what they show, and of the reader's estimate where buckets hide which rows
//! belong together.
//!
//! The estimate of a table with known attributes X and a sensitive one S in buckets b is
//! `p~(x, s) = 1/n sum_b n_b(x) n_b(s) / n_b`: every matching inside a bucket is equally likely. Sums are taken in an order
//! that depends on the groups and buckets alone, so that equal tables give equal bits.

use std::ops::Range;

use super::groups::RowGroups;
use crate::control::{Cancelled, Control};
use crate::microdata::{Codes, Column};

/// The entropy of a table of whole tuples, of which there are so many equal ones in each group.
#[must_use]
pub fn entropy(sizes: &[u32]) -> f64 {
    let rows: u64 = sizes.iter().map(|&size| u64::from(size)).sum();
    let mut sum = CompensatedSum::default();
    sizes.iter().filter(|&&size| size > 1).for_each(|&size| sum.add(weighed(f64::from(size))));
    of_sum(&sum, rows as f64)
}

/// A sensitive column in buckets: the sensitive part of a table, and which rows stand in which bucket.
#[derive(Clone, Debug)]
pub struct BucketedColumn {
    bucket_of: Vec<u32>,
    /// The rows, bucket by bucket.
    rows: Vec<u32>,
    /// Where the values of each bucket start, and where the last ones end.
    starts: Vec<usize>,
    /// Per bucket the values, in rising order.
    values: Vec<u32>,
    /// The share that each value has of its bucket.
    shares: Vec<f64>,
    /// Per bucket the share of all its values, where these are equal: then they need not be read.
    even: Vec<Option<f64>>,
    /// Per bucket the sum of share times logarithm of share.
    certainty: Vec<f64>,
    /// How many values the column may have.
    domain: usize,
}

impl BucketedColumn {
    /// The buckets of `column`; `bucket_of` gives for each row one of `count` of them.
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
            // a bucket that holds no row has no shares
            let number = bucket_of[bucket[0] as usize] as usize;
            while buckets.count() < number {
                buckets.push(std::iter::empty());
            }
            buckets.push(codes.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as f64 / size)));
        }
        while buckets.count() < count {
            buckets.push(std::iter::empty());
        }
        Ok(Self { bucket_of, rows, ..buckets })
    }

    /// Buckets of which the values and their shares are given, bucket by bucket, the values below `values`; `bucket_of` gives for each
    /// row one of them.
    ///
    /// # Errors
    /// [`Cancelled`] on cancellation.
    pub fn of_shares(
        bucket_of: Vec<u32>,
        of_buckets: Vec<Vec<(u32, f64)>>,
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

    /// No buckets yet.
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

    /// Appends a bucket.
    fn push(&mut self, bucket: impl Iterator<Item = (u32, f64)>) {
        if self.starts.is_empty() {
            self.starts.push(0);
        }
        let first = self.shares.len();
        for (value, share) in bucket {
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

    /// How many shares there are: the rows of the sensitive part, equal ones counted once.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.shares.len()
    }

    /// Whether there are no rows.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.shares.is_empty()
    }

    /// How many buckets there are.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.certainty.len()
    }

    /// Where the values of a bucket and their shares stand.
    fn rows(&self, bucket: u32) -> Range<usize> {
        self.starts[bucket as usize]..self.starts[bucket as usize + 1]
    }

    /// The entropy of the estimate of a table whose known attributes group the rows like `known`. It depends on what the
    /// table shows and not on which row has which sensitive value.
    ///
    /// # Errors
    /// [`Cancelled`] on cancellation.
    pub fn estimate_entropy(&self, known: &RowGroups, control: &Control) -> Result<f64, Cancelled> {
        let mut sum = CompensatedSum::default();
        let mut weighed = EntropyTerms::default();
        let rows = self.bucket_of.len() as f64;
        self.visit(known, control, |group| match group {
            KnownGroup::InOne { rows: 1, bucket } => sum.add(self.certainty[bucket as usize]),
            // of n rows in one bucket every share counts n times
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

    /// The cross entropy between the rows as they are, their sensitive values in `codes`, and the estimate of the same table. It
    /// tells of the original: for the one who holds it.
    ///
    /// # Errors
    /// [`Cancelled`] on cancellation.
    pub fn cross_entropy(&self, known: &RowGroups, codes: &Codes, control: &Control) -> Result<f64, Cancelled> {
        let mut sum = CompensatedSum::default();
        let all = self.bucket_of.len() as f64;
        // rows whose group stands in one bucket are taken last, in their order
        let mut in_one: Vec<Option<u32>> = vec![None; known.sizes().len()];
        let mut at = 0;
        self.visit(known, control, |group| match group {
            KnownGroup::InOne { rows, .. } => {
                in_one[at] = Some(rows);
                at += 1;
            }
            KnownGroup::InSeveral { weights, rows, .. } => {
                let of = |(_, row): &(u32, u32)| weights[codes.get(*row as usize) as usize].ln();
                rows.iter().for_each(|row| sum.add(of(row)));
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

    /// Shows every group of `known` in the order of their numbers.
    fn visit(
        &self,
        known: &RowGroups,
        control: &Control,
        mut shown: impl FnMut(KnownGroup<'_>),
    ) -> Result<(), Cancelled> {
        let (sizes, of_row) = (known.sizes(), known.of_row());
        // of groups of one row no more than the bucket is needed; of the others the rows, by bucket
        let mut place = vec![0u32; sizes.len()];
        let mut shared = 0;
        for (place, &size) in place.iter_mut().zip(sizes).filter(|(_, size)| **size > 1) {
            *place = shared;
            shared += size;
        }
        let mut rows = vec![(0u32, 0u32); shared as usize];
        for &row in &self.rows {
            let (group, bucket) = (of_row[row as usize] as usize, self.bucket(row));
            if sizes[group] > 1 {
                rows[place[group] as usize] = (bucket, row);
                place[group] += 1;
            } else {
                place[group] = bucket;
            }
        }
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
            let first = members[0].0;
            if members[members.len() - 1].0 == first {
                shown(KnownGroup::InOne { rows: size, bucket: first });
                continue;
            }
            for run in members.chunk_by(|(a, _), (b, _)| a == b) {
                let (bucket, rows) = (run[0].0, run.len() as f64);
                let mut weigh = |value: u32, more: f64| {
                    let weight = &mut weights[value as usize];
                    if *weight == 0.0 {
                        touched.push(value);
                    }
                    *weight += more;
                };
                let of = self.rows(bucket);
                match self.even[bucket as usize] {
                    Some(share) => self.values[of].iter().for_each(|&value| weigh(value, rows * share)),
                    None => {
                        let shares = self.shares[of.clone()].iter();
                        self.values[of].iter().zip(shares).for_each(|(&value, share)| weigh(value, rows * share));
                    }
                }
            }
            shown(KnownGroup::InSeveral { weights: &weights, touched: &touched, rows: members });
            touched.drain(..).for_each(|value| weights[value as usize] = 0.0);
        }
        Ok(())
    }
}

/// The rows with equal known values, in the buckets.
enum KnownGroup<'a> {
    /// So many, all in one bucket.
    InOne { rows: u32, bucket: u32 },
    /// In several: the expected number of rows with each value, the values that may occur, and the rows, each after its bucket.
    InSeveral { weights: &'a [f64], touched: &'a [u32], rows: &'a [(u32, u32)] },
}

/// Some rows, those of key 0 first, otherwise in the order in which they come; `key_of` gives for each row one of `keys`.
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

/// `x ln x`, of numbers that come again and again: most weights are the shares of a few sizes of buckets.
struct EntropyTerms(Box<[(u64, f64); 256]>);

impl Default for EntropyTerms {
    fn default() -> Self {
        Self(Box::new([(0, 0.0); 256]))
    }
}

impl EntropyTerms {
    /// Of a number above 0.
    fn x_ln_x(&mut self, x: f64) -> f64 {
        let bits = x.to_bits();
        let (known, weight) = &mut self.0[(bits.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as usize];
        if *known != bits {
            (*known, *weight) = (bits, weighed(x));
        }
        *weight
    }
}

/// `x ln x`.
fn weighed(x: f64) -> f64 {
    x * x.ln()
}

/// The entropy of weights that are `rows` together and whose `x ln x` are `sum` together.
fn of_sum(sum: &CompensatedSum, rows: f64) -> f64 {
    if rows == 0.0 { 0.0 } else { (rows.ln() - sum.total() / rows).max(0.0) }
}

/// A sum that does not lose small terms beside large ones (Neumaier).
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
