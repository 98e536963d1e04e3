use std::cell::RefCell;
use std::collections::BTreeMap;

use ahash::{AHashMap, AHashSet};
use num_bigint::BigUint;

use super::interner::ValueInterner;
use super::part::ParsedPart;
use crate::microdata::{Attr, AttrSet};
use crate::publication::Ratio;
use crate::verifier::definition::join_tree::tree;
use crate::verifier::definition::share::ShareOfRows;

/// Maximal number of examined columns with the sensitive attribute.
pub(in crate::verifier) const MAX_SENSITIVE_COLUMNS: usize = 4;

/// Maximal number of examined combinations of a bucket.
const MAX_BUCKET_COMBINATIONS: usize = 10_000_000;

/// Relative distance from the bound below which shares are computed without rounding.
const EXACT_CHECK_EPSILON: f64 = 1e-9;

/// Number of rows with each tuple.
type TupleBuckets = BTreeMap<Vec<u32>, u64>;

/// The attributes of a part, the sensitive one last, each with the value number of every row.
pub(in crate::verifier) type InternedColumns = Vec<(Attr, Vec<u32>)>;

/// The rows of a bucket, by column.
#[derive(Default)]
pub(in crate::verifier) struct OverlapBucket {
    pub(in crate::verifier) rows: u64,
    pub(in crate::verifier) columns: Vec<TupleBuckets>,
    /// Cached numbers of combinations, by columns.
    joins: RefCell<AHashMap<Vec<usize>, BigUint>>,
    /// Cached counts of projected tuples, by attributes.
    margins: RefCell<AHashMap<AttrSet, AHashMap<Vec<u32>, u64>>>,
}

/// A sliced table with columns that share attributes.
pub(in crate::verifier) struct OverlappingColumns {
    pub(in crate::verifier) sensitive: Attr,
    /// The attributes of each column in the order of its tuples, the sensitive one last.
    pub(in crate::verifier) columns: Vec<Vec<Attr>>,
    pub(in crate::verifier) buckets: BTreeMap<u32, OverlapBucket>,
    excluded: AHashSet<u32>,
}

/// A sensitive value with its weight: a product of counts, and its divisor.
pub(in crate::verifier) type ExactWeight = (u32, BigUint, BigUint);

/// The same in machine integers: products by value and divisor.
pub(in crate::verifier) type WeighedValues = BTreeMap<(u32, u128), u128>;

/// Weighed values, by known values.
pub(in crate::verifier) type KnownValues = BTreeMap<Vec<u32>, WeighedValues>;

/// Known values with a product and a divisor.
type KnownWeight = Vec<(Vec<u32>, u128, u128)>;

/// Converts weights, as products or as quotients.
pub(in crate::verifier) fn weights(weighed: &WeighedValues, divided: bool) -> Vec<ExactWeight> {
    let weight = |(&(value, over), &times): (&(u32, u128), &u128)| -> ExactWeight {
        (value, times.into(), if divided { over.into() } else { 1_u32.into() })
    };
    weighed.iter().map(weight).collect()
}

pub(in crate::verifier) fn set(attrs: &[Attr]) -> AttrSet {
    attrs.iter().copied().collect()
}

impl OverlappingColumns {
    /// Groups columns by the bucket of each row.
    pub(in crate::verifier) fn from_columns(columns: &[(InternedColumns, Vec<u32>)], sensitive: Attr) -> Self {
        let mut buckets: BTreeMap<u32, OverlapBucket> = BTreeMap::new();
        for (at, (numbered, labels)) in columns.iter().enumerate() {
            for (row, &label) in labels.iter().enumerate() {
                let bucket = buckets.entry(label).or_default();
                bucket.columns.resize(columns.len(), TupleBuckets::new());
                bucket.rows += u64::from(at == 0);
                let tuple = numbered.iter().map(|(_, numbers)| numbers[row]).collect();
                *bucket.columns[at].entry(tuple).or_default() += 1;
            }
        }
        let columns = columns.iter().map(|(numbered, _)| numbered.iter().map(|(attr, _)| *attr).collect()).collect();
        Self { sensitive, columns, buckets, excluded: AHashSet::new() }
    }

    pub(in crate::verifier) fn new(read: &[ParsedPart], sensitive: Attr, numbers: &mut ValueInterner) -> Option<Self> {
        let (mut shown, mut excluded) = (Vec::with_capacity(read.len()), AHashSet::new());
        for part in read {
            let mut columns: Vec<_> = part.columns.iter().collect();
            columns.sort_by_key(|column| column.attribute == sensitive);
            let mut numbered = InternedColumns::with_capacity(columns.len());
            for column in &columns {
                let cells = column.cells.as_ref()?.iter();
                let known: Vec<u32> = cells.map(|cell| numbers.code(column.attribute, cell.as_deref())).collect();
                if column.attribute == sensitive {
                    excluded.extend(column.declared.excluded.iter().map(|&code| known[code as usize]));
                }
                let rows = (0..part.rows).map(|row| known[column.codes.get(row) as usize]);
                numbered.push((column.attribute, rows.collect()));
            }
            shown.push((numbered, part.labels.as_deref()?.clone()));
        }
        Some(Self { excluded, ..Self::from_columns(&shown, sensitive) })
    }

    /// The columns with the sensitive attribute, and the others.
    pub(in crate::verifier) fn sides(&self) -> (Vec<usize>, Vec<usize>) {
        (0..self.columns.len()).partition(|&at| self.columns[at].contains(&self.sensitive))
    }

    /// Every non-empty choice of columns with the sensitive attribute.
    pub(in crate::verifier) fn choices(&self) -> Vec<Vec<usize>> {
        let (with, _) = self.sides();
        let with = &with[..with.len().min(MAX_SENSITIVE_COLUMNS)];
        let chosen = |mask: u32| with.iter().enumerate().filter(move |(at, _)| mask >> at & 1 == 1).map(|(_, of)| *of);
        (1..1_u32 << with.len()).map(|mask| chosen(mask).collect()).collect()
    }

    /// Columns in the order of a join tree, with the attributes shared with earlier columns.
    pub(in crate::verifier) fn order(&self, columns: &[usize]) -> Option<Vec<(usize, AttrSet)>> {
        let sets: Vec<AttrSet> = columns.iter().map(|&column| set(&self.columns[column])).collect();
        Some(tree(&sets)?.into_iter().map(|(at, shared)| (columns[at], shared)).collect())
    }

    /// Values of a tuple for some attributes, in the order of the attributes.
    fn within(&self, column: usize, tuple: &[u32], attrs: AttrSet) -> Vec<u32> {
        let value = |attr: Attr| self.columns[column].iter().position(|of| *of == attr).map(|at| tuple[at]);
        attrs.iter().filter_map(value).collect()
    }

    /// Number of rows of a bucket with the given values in some attributes of a column.
    fn margin(&self, bucket: &OverlapBucket, column: usize, attrs: AttrSet, values: &[u32]) -> u64 {
        let mut margins = bucket.margins.borrow_mut();
        let margin = margins.entry(attrs).or_insert_with(|| {
            let mut margin = AHashMap::new();
            for (tuple, rows) in &bucket.columns[column] {
                *margin.entry(self.within(column, tuple, attrs)).or_default() += rows;
            }
            margin
        });
        margin.get(values).copied().unwrap_or(0)
    }

    /// Whether the columns of a bucket agree on shared attributes.
    pub(in crate::verifier) fn agree(&self, bucket: &OverlapBucket) -> bool {
        let projected = |column: usize, shared: AttrSet| {
            let mut tuples = TupleBuckets::new();
            for (tuple, rows) in &bucket.columns[column] {
                *tuples.entry(self.within(column, tuple, shared)).or_default() += rows;
            }
            tuples
        };
        (0..self.columns.len()).all(|a| {
            (0..a).all(|b| {
                let shared = set(&self.columns[a]).intersection(set(&self.columns[b]));
                shared.is_empty() || projected(a, shared) == projected(b, shared)
            })
        })
    }

    /// Weights of the sensitive values of a bucket, by known values, over the columns of `order`.
    ///
    /// Also returns the known attributes in the order of their values. `None` where there are too many combinations.
    pub(in crate::verifier) fn known(
        &self,
        bucket: &OverlapBucket,
        order: &[(usize, AttrSet)],
        of: AttrSet,
    ) -> Option<(Vec<Attr>, KnownValues)> {
        // attributes joined so far in order of appearance, with the weight of each combination
        let (mut attrs, mut rows): (Vec<Attr>, KnownWeight) = (Vec::new(), vec![(Vec::new(), 1, 1)]);
        for &(column, shared) in order {
            let mut agreeing: AHashMap<Vec<u32>, Vec<(&Vec<u32>, u64)>> = AHashMap::new();
            for (tuple, count) in &bucket.columns[column] {
                agreeing.entry(self.within(column, tuple, shared)).or_default().push((tuple, *count));
            }
            let places: Vec<usize> = shared.iter().filter_map(|attr| attrs.iter().position(|of| *of == attr)).collect();
            let fresh: Vec<usize> =
                (0..self.columns[column].len()).filter(|&at| !shared.contains(self.columns[column][at])).collect();
            let is_first = attrs.is_empty();
            let mut joined = Vec::new();
            for (known, times, over) in &rows {
                let wanted: Vec<u32> = places.iter().map(|&at| known[at]).collect();
                let Some(tuples) = agreeing.get(&wanted) else { continue };
                let all: u64 = tuples.iter().map(|(_, count)| count).sum();
                if joined.len() + tuples.len() > MAX_BUCKET_COMBINATIONS {
                    return None;
                }
                for (tuple, count) in tuples {
                    let more = fresh.iter().map(|&at| tuple[at]);
                    let of_all = if is_first { 1 } else { u128::from(all) };
                    let known = known.iter().copied().chain(more).collect();
                    joined.push((known, times.checked_mul(u128::from(*count))?, over.checked_mul(of_all)?));
                }
            }
            attrs.extend(fresh.iter().map(|&at| self.columns[column][at]));
            rows = joined;
        }
        let sensitive = attrs.iter().position(|attr| *attr == self.sensitive)?;
        let known_places: Vec<usize> =
            (0..attrs.len()).filter(|&at| at != sensitive && of.contains(attrs[at])).collect();
        let mut known = KnownValues::new();
        for (tuple, times, over) in rows {
            let weighed = known.entry(known_places.iter().map(|&at| tuple[at]).collect()).or_default();
            let sum = weighed.entry((tuple[sensitive], over)).or_default();
            *sum = sum.checked_add(times)?;
        }
        Some((known_places.into_iter().map(|at| attrs[at]).collect(), known))
    }

    /// Number of combinations of columns in a bucket, with one join after the other.
    fn join(&self, bucket: &OverlapBucket, columns: &[usize]) -> BigUint {
        if let Some(known) = bucket.joins.borrow().get(columns) {
            return known.clone();
        }
        let mut open: Vec<Attr> = Vec::new();
        let mut sums: AHashMap<Vec<u32>, BigUint> = AHashMap::new();
        sums.insert(Vec::new(), 1_u32.into());
        for (at, &column) in columns.iter().enumerate() {
            let of =
                |columns: &[usize]| columns.iter().fold(AttrSet::EMPTY, |all, of| all.union(set(&self.columns[*of])));
            let (before, after) = (of(&columns[..at]), of(&columns[at + 1..]));
            let here = set(&self.columns[column]);
            let used = here.intersection(before.union(after));
            let mut projected = TupleBuckets::new();
            for (tuple, rows) in &bucket.columns[column] {
                *projected.entry(self.within(column, tuple, used)).or_default() += rows;
            }
            let used: Vec<Attr> = used.iter().collect();
            let kept: Vec<Attr> = before.union(here).intersection(after).iter().collect();
            let mut by_open: AHashMap<Vec<u32>, Vec<(&Vec<u32>, &BigUint)>> = AHashMap::new();
            let shared: Vec<usize> = (0..open.len()).filter(|&at| here.contains(open[at])).collect();
            for (key, multiplicity) in &sums {
                by_open.entry(shared.iter().map(|&at| key[at]).collect()).or_default().push((key, multiplicity));
            }
            let mut next: AHashMap<Vec<u32>, BigUint> = AHashMap::new();
            for (tuple, rows) in &projected {
                let value = |attr: Attr| used.iter().position(|of| *of == attr).map(|at| tuple[at]);
                let wanted: Vec<u32> = shared.iter().filter_map(|&at| value(open[at])).collect();
                for (key, multiplicity) in by_open.get(&wanted).into_iter().flatten() {
                    let old = |attr: Attr| open.iter().position(|of| *of == attr).map(|at| key[at]);
                    let of_kept = kept.iter().filter_map(|&attr| old(attr).or_else(|| value(attr))).collect();
                    *next.entry(of_kept).or_default() += *multiplicity * *rows;
                }
            }
            (open, sums) = (kept, next);
        }
        let all: BigUint = sums.into_values().sum();
        bucket.joins.borrow_mut().insert(columns.to_vec(), all.clone());
        all
    }

    /// Whether no value has more than 1/l of the weights.
    ///
    /// Excluded values count among all, others among the rest.
    pub(in crate::verifier) fn keeps(&self, l: Ratio, weights: &[ExactWeight]) -> bool {
        let mut sums: BTreeMap<u32, f64> = BTreeMap::new();
        let logarithms: Vec<f64> = weights.iter().map(|(_, times, over)| ln(times) - ln(over)).collect();
        let largest = logarithms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        weights
            .iter()
            .zip(logarithms)
            .for_each(|((value, ..), ln)| *sums.entry(*value).or_default() += (ln - largest).exp());
        let all: f64 = sums.values().sum();
        let left: f64 = sums.iter().filter(|(value, _)| !self.excluded.contains(value)).map(|(_, sum)| sum).sum();
        let gap = |(value, sum): (&u32, &f64)| {
            l.to_f64().mul_add(-sum, if self.excluded.contains(value) { all } else { left })
        };
        if left > EXACT_CHECK_EPSILON * all && sums.iter().all(|sum| gap(sum).abs() > EXACT_CHECK_EPSILON * all) {
            return sums.iter().all(|sum| gap(sum) > 0.0);
        }
        let (sums, all, left) = self.exact(weights);
        left > BigUint::ZERO
            && sums.iter().all(|(value, sum)| {
                let among = if self.excluded.contains(value) { &all } else { &left };
                sum * l.numerator() <= among * l.denominator()
            })
    }

    /// The weights by value, of all values, and of the values that are not excluded.
    ///
    /// All have a common divisor.
    fn exact(&self, weights: &[ExactWeight]) -> (BTreeMap<u32, BigUint>, BigUint, BigUint) {
        let divisors: std::collections::BTreeSet<&BigUint> = weights.iter().map(|(.., over)| over).collect();
        let unit: BigUint = divisors.into_iter().product();
        let mut sums: BTreeMap<u32, BigUint> = BTreeMap::new();
        for (value, times, over) in weights {
            *sums.entry(*value).or_default() += times * (&unit / over);
        }
        let all = sums.values().sum();
        let left = sums.iter().filter(|(value, _)| !self.excluded.contains(value)).map(|(_, sum)| sum).sum();
        (sums, all, left)
    }

    /// The largest share of a value, in lowest terms; rounded where a term exceeds 63 bits.
    pub(in crate::verifier) fn largest(&self, weights: &[ExactWeight]) -> ShareOfRows {
        let (sums, all, left) = self.exact(weights);
        let shares = sums.iter().map(|(value, sum)| (sum, if self.excluded.contains(value) { &all } else { &left }));
        let largest = shares.reduce(|a, b| if b.0 * a.1 > a.0 * b.1 { b } else { a });
        let Some((most, of)) = largest else { return ShareOfRows::new(0, 1) };
        let (mut a, mut b) = (most.clone(), of.clone());
        while b > BigUint::ZERO {
            (a, b) = (b.clone(), a % b);
        }
        let (most, of) = (most / &a, of / &a);
        let shift = most.bits().max(of.bits()).saturating_sub(63);
        let number = |big: BigUint| (big >> shift).iter_u64_digits().next().unwrap_or(0);
        ShareOfRows::new(number(most), number(of).max(1))
    }
}

/// The natural logarithm of a positive number.
fn ln(number: &BigUint) -> f64 {
    let shift = number.bits().saturating_sub(64);
    let digits = (number >> shift).iter_u64_digits().next().unwrap_or(0);
    (digits as f64).ln() + shift as f64 * std::f64::consts::LN_2
}

impl OverlappingColumns {
    /// Columns in the given order, with the attributes shared with earlier columns.
    pub(in crate::verifier) fn in_given_order(&self, columns: &[usize]) -> Vec<(usize, AttrSet)> {
        let before =
            |at: usize| columns[..at].iter().fold(AttrSet::EMPTY, |all, of| all.union(set(&self.columns[*of])));
        columns.iter().enumerate().map(|(at, &of)| (of, set(&self.columns[of]).intersection(before(at)))).collect()
    }

    /// Adds the weights of a row in a bucket, over the given columns.
    ///
    /// With `tree` the divisor is the product of margins, otherwise the number of combinations.
    pub(in crate::verifier) fn weigh(
        &self,
        known: &AHashMap<Attr, u32>,
        bucket: &OverlapBucket,
        columns: &[usize],
        tree: Option<&[(usize, AttrSet)]>,
        out: &mut Vec<ExactWeight>,
    ) {
        let tuple = |column: usize| -> Vec<u32> {
            self.columns[column].iter().filter_map(|attr| known.get(attr).copied()).collect()
        };
        let Some(&first) = columns.iter().find(|&&column| self.columns[column].contains(&self.sensitive)) else {
            return;
        };
        let (low, high) = ([&tuple(first)[..], &[0]].concat(), [&tuple(first)[..], &[u32::MAX]].concat());
        for values in bucket.columns[first].range(low..=high).map(|(values, _)| values) {
            let Some(&value) = values.last() else { continue };
            let (mut times, mut over) = (BigUint::from(1_u32), BigUint::from(1_u32));
            for &column in columns {
                let mut whole = tuple(column);
                if self.columns[column].contains(&self.sensitive) {
                    whole.push(value);
                }
                times *= bucket.columns[column].get(&whole).copied().unwrap_or(0);
            }
            if times == BigUint::ZERO {
                continue;
            }
            match tree {
                None => over = self.join(bucket, columns),
                Some(tree) => {
                    for &(column, shared) in &tree[1..] {
                        let of =
                            |attr: Attr| if attr == self.sensitive { Some(value) } else { known.get(&attr).copied() };
                        let values: Vec<u32> = shared.iter().filter_map(of).collect();
                        over *= self.margin(bucket, column, shared, &values);
                    }
                }
            }
            out.push((value, times, over));
        }
    }
}
