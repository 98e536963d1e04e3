//! Errors and significance of dependencies by their definitions, on sorted rows.
//!
//! # Citations
//! [Kivinen and Mannila 1995], g3; [Goodman and Kruskal 1954], lambda; [Rissanen 1978], description length

use std::ops::RangeInclusive;
use std::sync::OnceLock;

use crate::microdata::{Attr, AttrSet, Codes, Column, Table};
use crate::publication::Ratio;

/// The evidence that random data show no accident in a search as a whole, in bits.
const EVIDENCE_BITS: f64 = 20.0;

/// Figures of a dependency on some rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::verifier) struct ObservedDependency {
    /// Number of distinct values of the determinant.
    pub(in crate::verifier) groups: usize,
    /// The fewest rows without which the dependency is exact.
    pub(in crate::verifier) errors: usize,
}

/// The original with what its dependencies are judged by.
pub(in crate::verifier) struct DependencyRows<'a> {
    original: &'a Table,
    tolerance: Ratio,
    /// For each attribute, how many rows have each value.
    counts: Vec<Vec<u64>>,
    /// The binary logarithms of the factorials of 0, [`FACTORIALS_APART`] and so on, up to the number of rows, once a dependency is
    /// judged by them.
    factorials: OnceLock<Vec<f64>>,
    /// The bits that a dependency must save.
    least_saved: f64,
}

/// Distance of the numbers whose factorials are kept.
const FACTORIALS_APART: usize = 8;

/// Inverse of the share of the rows that are looked at first.
const FIRST_ROWS_FRACTION: usize = 16;

/// The evidence in bits for a dependency on a column that is not published, with room for 2^22 candidates.
const EVIDENCE_BITS_OF_DROPPED: f64 = 42.0;

/// Rows sorted by their values of one column.
pub(in crate::verifier) struct DeterminantRows<'a> {
    rows: &'a DependencyRows<'a>,
    determinant: &'a Codes,
    /// The first rows, which refute most dependencies.
    first: Vec<u32>,
    /// All rows, once a dependency needs them.
    all: OnceLock<Vec<u32>>,
}

impl DeterminantRows<'_> {
    fn all(&self) -> &[u32] {
        self.all.get_or_init(|| self.rows.sorted(&[self.determinant]))
    }
}

/// What the rows say of a dependency.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::verifier) enum Acceptance {
    /// It is known to the adversary.
    Known,
    /// Rounding decides.
    Borderline,
    /// It does not hold within the tolerance, or may be an accident.
    Unknown,
}

/// Whether a dependency holds in every row.
pub(in crate::verifier) fn is_exact(determinant: &[&Codes], dependent: &Codes) -> bool {
    let rows = sorted((0..dependent.len() as u32).collect(), determinant);
    let value = |row: &u32| dependent.get(*row as usize);
    groups(&rows, determinant).all(|group| group.iter().all(|row| value(row) == value(&group[0])))
}

/// Sorts rows by their values of some columns.
fn sorted(mut rows: Vec<u32>, by: &[&Codes]) -> Vec<u32> {
    for codes in by {
        rows.sort_by_key(|&row| codes.get(row as usize));
    }
    rows
}

/// The rows with equal values of some columns, of rows that are sorted by them.
fn groups<'r>(rows: &'r [u32], by: &[&Codes]) -> impl Iterator<Item = &'r [u32]> {
    rows.chunk_by(move |&one, &other| by.iter().all(|codes| codes.get(one as usize) == codes.get(other as usize)))
}

impl<'a> DependencyRows<'a> {
    pub(in crate::verifier) fn new(original: &'a Table, tolerance: Ratio) -> Self {
        let counts = original.attributes().iter().map(|attr| original.column(attr).counts()).collect();
        let mut rows = Self { original, tolerance, counts, factorials: OnceLock::new(), least_saved: 0.0 };
        let columns = original.attributes().iter().filter(|&attr| rows.is_usable(attr)).count();
        let candidates = (columns + columns * columns.saturating_sub(1) / 2) * columns;
        rows.least_saved = EVIDENCE_BITS + f64::from(usize::BITS - candidates.leading_zeros());
        rows
    }

    /// Whether a column has two values.
    pub(in crate::verifier) fn is_usable(&self, attr: Attr) -> bool {
        self.counts(attr).iter().filter(|&&rows| rows > 0).count() > 1
    }

    fn counts(&self, attr: Attr) -> &[u64] {
        &self.counts[attr.index()]
    }

    /// The binary logarithm of the factorial of `number`.
    fn factorial(&self, number: usize) -> f64 {
        let added =
            |sum: f64, factors: RangeInclusive<usize>| factors.fold(sum, |sum, factor| sum + (factor as f64).log2());
        let all = || {
            let rows = self.original.rows();
            let mut factorials = Vec::with_capacity(rows / FACTORIALS_APART + 1);
            factorials.push(0.0);
            for kept in (FACTORIALS_APART..=rows).step_by(FACTORIALS_APART) {
                factorials.push(added(factorials[factorials.len() - 1], kept - FACTORIALS_APART + 1..=kept));
            }
            factorials
        };
        let kept = number / FACTORIALS_APART;
        added(self.factorials.get_or_init(all)[kept], kept * FACTORIALS_APART + 1..=number)
    }

    /// All rows, sorted by their values of some columns.
    fn sorted(&self, by: &[&Codes]) -> Vec<u32> {
        sorted((0..self.original.rows() as u32).collect(), by)
    }

    fn codes(&self, of: AttrSet) -> Vec<&'a Codes> {
        of.iter().map(|attr| &self.original.column(attr).codes).collect()
    }

    /// The rows as determinants of one column sort them.
    pub(in crate::verifier) fn by_determinant<'r>(&'r self, determinant: &'r Codes) -> DeterminantRows<'r> {
        let first = (0..(self.original.rows() / FIRST_ROWS_FRACTION) as u32).collect();
        DeterminantRows { rows: self, determinant, first: sorted(first, &[determinant]), all: OnceLock::new() }
    }

    /// The errors of a dependency on rows that are sorted by its determinant; `None` above `most`.
    fn observe(sorted: &[u32], determinant: &[&Codes], column: &Column, most: usize) -> Option<ObservedDependency> {
        let mut counts = vec![0_usize; column.domain.len()];
        let mut observed = ObservedDependency { groups: 0, errors: 0 };
        for group in groups(sorted, determinant) {
            // one row has the most frequent value of its group
            if group.len() == 1 {
                observed.groups += 1;
                continue;
            }
            let mut top = 0;
            for (seen, &row) in (1..).zip(group) {
                let count = &mut counts[column.codes.get(row as usize) as usize];
                *count += 1;
                top = top.max(*count);
                if observed.errors + seen - top > most {
                    return None;
                }
            }
            observed.groups += 1;
            observed.errors += group.len() - top;
            for &row in group {
                counts[column.codes.get(row as usize) as usize] = 0;
            }
        }
        Some(observed)
    }

    /// Whether the adversary is assumed to know a dependency with one determinant.
    pub(in crate::verifier) fn single(&self, of: &DeterminantRows<'_>, dependent: Attr) -> Acceptance {
        self.on_column(of, self.original.column(dependent), self.counts(dependent), self.least_saved)
    }

    /// Whether the adversary is assumed to know that one column determines another one, which is not published.
    pub(in crate::verifier) fn on_dropped(&self, of: &DeterminantRows<'_>, dropped: &Column) -> Acceptance {
        self.on_column(of, dropped, &dropped.counts(), EVIDENCE_BITS_OF_DROPPED)
    }

    fn on_column(&self, of: &DeterminantRows<'_>, dependent: &Column, counts: &[u64], least_saved: f64) -> Acceptance {
        let (rows, top) = (self.original.rows(), counts.iter().copied().max().unwrap_or(0) as usize);
        let tolerated =
            rows as u128 * u128::from(self.tolerance.numerator()) / u128::from(self.tolerance.denominator());
        let most = (tolerated as usize).min((rows - top) / 2);
        let observe = |sorted: &[u32]| Self::observe(sorted, &[of.determinant], dependent, most);
        // some rows have no more errors than all rows
        match observe(&of.first).and_then(|_| observe(of.all())) {
            Some(observed) => self.judge(self.saved(counts, observed) - least_saved, observed.groups * counts.len()),
            None => Acceptance::Unknown,
        }
    }

    /// Whether the adversary is assumed to know an exact dependency with two determinants.
    pub(in crate::verifier) fn pair(&self, determinant: AttrSet, dependent: Attr) -> Acceptance {
        let (counts, column, codes) =
            (self.counts(dependent), self.original.column(dependent), self.codes(determinant));
        let exact = Self::observe(&self.sorted(&codes), &codes, column, 0);
        let Some(observed) = exact.filter(|_| !codes.iter().any(|one| is_exact(&[one], &column.codes))) else {
            return Acceptance::Unknown;
        };
        // it says more than each of its members: inside the groups of either, too
        let inside = determinant.iter().map(|member| {
            let (member, other) = (self.codes(AttrSet::one(member)), determinant.without(member));
            let sorted = self.sorted(&member);
            let groups = groups(&sorted, &member);
            groups.map(|group| self.saved_in(group, other, dependent).max(0.0)).sum::<f64>()
        });
        let saved = inside.fold(self.saved(counts, observed), f64::min);
        self.judge(saved - self.least_saved, observed.groups * counts.len())
    }

    /// The bits that an exact dependency saves in some rows.
    fn saved_in(&self, rows: &[u32], determinant: AttrSet, dependent: Attr) -> f64 {
        let codes = &self.original.column(dependent).codes;
        let mut values: Vec<u32> = rows.iter().map(|&row| codes.get(row as usize)).collect();
        values.sort_unstable();
        let counts: Vec<u64> = values.chunk_by(|a, b| a == b).map(|value| value.len() as u64).collect();
        let determinant = self.codes(determinant);
        let sorted = sorted(rows.to_vec(), &determinant);
        let groups = groups(&sorted, &determinant).count();
        self.saved(&counts, ObservedDependency { groups, errors: 0 })
    }

    /// The bits that a dependency saves of the description of a column with these counts of values.
    fn saved(&self, counts: &[u64], observed: ObservedDependency) -> f64 {
        let ObservedDependency { groups, errors } = observed;
        let mut counts: Vec<usize> = counts.iter().filter(|&&rows| rows > 0).map(|&rows| rows as usize).collect();
        counts.sort_unstable();
        let rows: usize = counts.iter().sum();
        let arrangements = self.factorial(rows) - counts.iter().map(|&rows| self.factorial(rows)).sum::<f64>();
        let others = &counts[..counts.len().saturating_sub(1)];
        let by_value: f64 = others.iter().map(|rows| self.subsets(groups, rows + errors)).sum();
        let maps = by_value.min(groups as f64 * (counts.len().max(1) as f64).log2());
        let exceptions = match errors {
            0 => 0.0,
            errors => {
                let other_values = (counts.len().saturating_sub(1).max(1) as f64).log2();
                self.subsets(rows, errors) + errors as f64 * other_values
            }
        };
        arrangements - maps - exceptions
    }

    /// A bound of the logarithm of the number of subsets of at most `size` of `set` elements.
    fn subsets(&self, set: usize, size: usize) -> f64 {
        if 2 * size >= set {
            return set as f64;
        }
        let of_this_size = self.factorial(set) - self.factorial(size) - self.factorial(set - size);
        (of_this_size + (size as f64 + 1.0).log2()).min(set as f64)
    }

    /// Judges by how many bits more than the least are saved.
    ///
    /// The search rounds logarithms of factorials, each by up to 2^-20 bit for each factor, and those of subsets of
    /// groups for each value: `cells` are the groups times the values.
    fn judge(&self, more: f64, cells: usize) -> Acceptance {
        let rounding = 1.0 + (self.original.rows() + cells) as f64 * 4.0 / f64::from(1 << 20);
        match more {
            more if more >= rounding => Acceptance::Known,
            less if less < -rounding => Acceptance::Unknown,
            _ => Acceptance::Borderline,
        }
    }
}
