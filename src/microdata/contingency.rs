//! The association of two attributes: the mean-square contingency coefficient [Li et al. 2012, section 4.1],
//! which is the square of Cramér's V [Cramer 1946].

use std::borrow::Cow;
use std::collections::HashMap;

use ahash::RandomState;

use super::attrs::{Attr, AttrSet};
use super::axis::bins;
use super::table::{Codes, Column, Table};
use crate::with_codes;

/// Largest number of pairs of values per row that are counted in an array; above it, by hashing.
const CELLS_PER_ROW: usize = 4;

/// Smallest number of rows for each number of rows with a value that is kept.
const ROWS_PER_KEPT_COUNT: usize = 16;

/// An attribute as correlations see it: numbers of many values in bins of equal width.
#[derive(Clone, Debug)]
pub struct Coarse {
    codes: Codes,
    values: usize,
    /// Number of rows with each value, where there are far more rows than values; of others it is counted when it is needed.
    counts: Option<Vec<u32>>,
}

impl Coarse {
    /// Cuts numbers, dates and timestamps of more than `bins` values into that many bins.
    ///
    /// # Panics
    /// When `bins` is 0.
    #[must_use]
    pub fn new(column: &Column, bins_wanted: u32) -> Self {
        assert!(bins_wanted > 0, "no bins");
        let (bin_of, values) = bins(&column.domain, bins_wanted);
        let codes = with_codes!(&column.codes, codes => {
            Codes::collect(values, codes.iter().map(|&code| bin_of[code as usize]))
        });
        Self::from_codes(codes, values)
    }

    fn from_codes(codes: Codes, values: usize) -> Self {
        let counts = (values.saturating_mul(ROWS_PER_KEPT_COUNT) <= codes.len()).then(|| counts(&codes, values));
        Self { codes, values, counts }
    }

    fn counts(&self) -> Cow<'_, [u32]> {
        self.counts.as_ref().map_or_else(|| counts(&self.codes, self.values).into(), |counts| counts[..].into())
    }
}

/// Number of bins of a numeric attribute with many values, by default.
pub const DEFAULT_BINS: u32 = 10;

/// How strongly the attributes of a table go together, each pair of them: what a profile shows, and what columns are made by.
#[derive(Clone, Debug)]
pub struct Associations {
    attributes: Vec<Attr>,
    /// Of each attribute with those before it.
    phi_squared: Vec<Vec<f64>>,
}

impl Associations {
    /// The mean-square contingency of all pairs of `attributes`; `bins` says of each into how many its values are cut, and `go_on`
    /// is asked before each pair.
    ///
    /// # Errors
    /// What `go_on` says.
    pub fn new<E>(
        table: &Table,
        attributes: AttrSet,
        bins: impl Fn(Attr) -> u32,
        mut go_on: impl FnMut() -> Result<(), E>,
    ) -> Result<Self, E> {
        let attributes: Vec<Attr> = attributes.iter().collect();
        let coarse: Vec<Coarse> = attributes.iter().map(|&attr| Coarse::new(table.column(attr), bins(attr))).collect();
        let mut all = Vec::with_capacity(coarse.len());
        for (at, a) in coarse.iter().enumerate() {
            let mut of_a = Vec::with_capacity(at);
            for b in &coarse[..at] {
                go_on()?;
                of_a.push(phi_squared(b, a));
            }
            all.push(of_a);
        }
        Ok(Self { attributes, phi_squared: all })
    }

    /// The attributes, in their order.
    #[must_use]
    pub fn attributes(&self) -> &[Attr] {
        &self.attributes
    }

    /// Of two attributes, by their places among all of them; 1 of an attribute with itself.
    #[must_use]
    pub fn between(&self, a: usize, b: usize) -> f64 {
        let (first, second) = (a.min(b), a.max(b));
        if first == second { 1.0 } else { self.phi_squared[second][first] }
    }
}

/// The mean-square contingency of two attributes of the same rows, from 0 for independent ones to 1; 0 where either has only
/// one value.
///
/// `(sum over cells of n_ij^2 / (n_i n_j) - 1) / (min(d_a, d_b) - 1)`, where only pairs that occur count and d is the number of
/// values that occur. Terms are added in the order of cells, so that the order of rows changes no bit of the result.
///
/// # Panics
/// When the attributes have different numbers of rows.
#[must_use]
pub fn phi_squared(a: &Coarse, b: &Coarse) -> f64 {
    assert_eq!(a.codes.len(), b.codes.len(), "columns of unequal length");
    let (of_a, of_b) = (a.counts(), b.counts());
    let occurring = |counts: &[u32]| counts.iter().filter(|count| **count > 0).count();
    let fewer = occurring(&of_a).min(occurring(&of_b));
    if fewer < 2 {
        return 0.0;
    }
    let term = |cell: usize, count: u64| {
        let count = count as f64;
        count * count / (f64::from(of_a[cell / b.values]) * f64::from(of_b[cell % b.values]))
    };
    let cells = a.values.saturating_mul(b.values);
    let sum: f64 = if cells / CELLS_PER_ROW <= a.codes.len().max(1 << 10) {
        let counted = (0..).zip(dense(a, b)).filter(|(_, count)| *count > 0);
        counted.map(|(cell, count)| term(cell, u64::from(count))).sum()
    } else {
        sparse(a, b).into_iter().map(|(cell, count)| term(cell, u64::from(count))).sum()
    };
    // rounding may lead a hair out of the interval
    ((sum - 1.0) / (fewer - 1) as f64).clamp(0.0, 1.0)
}

/// Number of rows with each value.
fn counts(codes: &Codes, values: usize) -> Vec<u32> {
    let mut counts = vec![0; values];
    with_codes!(codes, codes => codes.iter().for_each(|&code| counts[code as usize] += 1));
    counts
}

/// How often each pair of values occurs, all pairs in order.
fn dense(a: &Coarse, b: &Coarse) -> Vec<u32> {
    let mut counts = vec![0; a.values * b.values];
    with_codes!(&a.codes, of_a => with_codes!(&b.codes, of_b => {
        of_a.iter().zip(of_b).for_each(|(&x, &y)| counts[x as usize * b.values + y as usize] += 1);
    }));
    counts
}

/// How often each pair of values that occurs does so, in order.
fn sparse(a: &Coarse, b: &Coarse) -> Vec<(usize, u32)> {
    let mut counts: HashMap<usize, u32, RandomState> = HashMap::default();
    with_codes!(&a.codes, of_a => with_codes!(&b.codes, of_b => {
        of_a.iter().zip(of_b).for_each(|(&x, &y)| *counts.entry(x as usize * b.values + y as usize).or_default() += 1);
    }));
    let mut counts: Vec<(usize, u32)> = counts.into_iter().collect();
    counts.sort_unstable();
    counts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn coarse(values: usize, codes: &[u32]) -> Coarse {
        Coarse::from_codes(Codes::collect(values, codes.iter().copied()), values)
    }

    /// The definition, over all pairs of values.
    fn naive(a: &[u32], b: &[u32]) -> f64 {
        let n = a.len() as f64;
        let share = |is: &dyn Fn(usize) -> bool| (0..a.len()).filter(|&row| is(row)).count() as f64 / n;
        let (mut values_a, mut values_b) = (a.to_vec(), b.to_vec());
        for values in [&mut values_a, &mut values_b] {
            values.sort_unstable();
            values.dedup();
        }
        let fewer = values_a.len().min(values_b.len());
        if fewer < 2 {
            return 0.0;
        }
        let mut sum = 0.0;
        for &x in &values_a {
            for &y in &values_b {
                let alone = share(&|row| a[row] == x) * share(&|row| b[row] == y);
                sum += (share(&|row| a[row] == x && b[row] == y) - alone).powi(2) / alone;
            }
        }
        sum / (fewer - 1) as f64
    }

    #[test]
    fn the_worked_table_comes_out() {
        // Table 1(a) of slicing: sex, zip code, disease, age
        let sex = coarse(2, &[1, 0, 0, 0, 1, 1, 1, 0]);
        let zip = coarse(4, &[3, 3, 2, 2, 0, 0, 1, 1]);
        let disease = coarse(4, &[1, 2, 2, 0, 2, 1, 1, 3]);
        let age = coarse(6, &[0, 0, 1, 2, 3, 4, 4, 5]);
        let pairs = [
            (&sex, &zip, 0.5),
            (&sex, &disease, 0.6667),
            (&zip, &disease, 0.3333),
            (&age, &sex, 0.75),
            (&age, &disease, 0.8889),
            (&age, &zip, 0.8333),
        ];
        for (a, b, expected) in pairs {
            assert!((phi_squared(a, b) - expected).abs() < 5e-5);
            assert!((phi_squared(b, a) - expected).abs() < 5e-5);
        }
    }

    proptest! {
        #[test]
        fn it_is_the_naive_formula(rows in prop::collection::vec((0u32..5, 0u32..4), 1..60), spread in 1u32..1000) {
            let (a, b): (Vec<u32>, Vec<u32>) = rows.iter().copied().unzip();
            let naive = naive(&a, &b);
            let dense = phi_squared(&coarse(5, &a), &coarse(4, &b));
            prop_assert!((dense - naive).abs() < 1e-12, "{dense} {naive}");
            // declared values that do not occur are no values; many of them are counted by hashing, to the last bit alike
            let apart: Vec<u32> = a.iter().map(|code| code * spread * 100).collect();
            let sparse = phi_squared(&coarse(400_001, &apart), &coarse(4, &b));
            prop_assert_eq!(dense.to_bits(), sparse.to_bits());
            let (mut reversed_a, mut reversed_b) = (a, b);
            reversed_a.reverse();
            reversed_b.reverse();
            let reversed = phi_squared(&coarse(5, &reversed_a), &coarse(4, &reversed_b));
            prop_assert_eq!(dense.to_bits(), reversed.to_bits());
        }

        #[test]
        fn what_determines_each_other_is_fully_correlated(rows in prop::collection::vec(0u32..4, 2..40)) {
            prop_assume!(rows.iter().any(|code| *code != rows[0]));
            let renamed: Vec<u32> = rows.iter().map(|code| 3 - code).collect();
            prop_assert!((phi_squared(&coarse(4, &rows), &coarse(4, &renamed)) - 1.0).abs() < 1e-12);
        }
    }
}
