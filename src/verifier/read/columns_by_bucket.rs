//! The columns of a sliced table: the rows of each bucket and column.

use std::collections::BTreeMap;
use std::ops::Range;

use ahash::{AHashMap, AHashSet};
use num_bigint::BigUint;
use smallvec::SmallVec;

use super::interner::ValueInterner;
use super::numbered_tuples::NumberedTuples;
use super::part::{ParsedColumn, ParsedPart};
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

/// Columns in the order of a join tree, each with the attributes that it shares with earlier ones.
pub(in crate::verifier) type JoinOrder = Vec<(usize, AttrSet)>;

/// Number of rows with each tuple.
type TupleBuckets = BTreeMap<Vec<u32>, u64>;

/// The attributes of a part, the sensitive one last, each with the value number of every row.
pub(in crate::verifier) type InternedColumns = Vec<(Attr, Vec<u32>)>;

/// Rows of a column that have equal cells and stand in one bucket.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::verifier) struct RowsOfTuple {
    /// The number of the tuple of the other attributes in the column.
    pub(in crate::verifier) tuple: u32,
    /// The value of the sensitive attribute; 0 in a column without it.
    pub(in crate::verifier) value: u32,
    pub(in crate::verifier) rows: u32,
}

/// The rows of a column.
struct GroupedColumn {
    /// The tuples of the attributes other than the sensitive one.
    tuples: NumberedTuples,
    /// By bucket, tuple and value.
    rows: Vec<RowsOfTuple>,
    /// Where the rows of each bucket begin, and the end of the last ones.
    starts: Vec<usize>,
}

/// The columns of a sliced table, which may share attributes.
pub(in crate::verifier) struct ColumnsByBucket {
    pub(in crate::verifier) sensitive: Attr,
    /// The attributes of each column in the order of its tuples, the sensitive one last.
    pub(in crate::verifier) columns: Vec<Vec<Attr>>,
    /// The labels of the buckets, rising.
    pub(in crate::verifier) labels: Vec<u32>,
    grouped: Vec<GroupedColumn>,
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

impl ColumnsByBucket {
    /// Groups columns by the bucket of each row.
    pub(in crate::verifier) fn from_columns(columns: &[(InternedColumns, Vec<u32>)], sensitive: Attr) -> Self {
        let mut labels: Vec<u32> = Vec::new();
        for (_, of_rows) in columns {
            // parts are sorted by label
            labels.extend(of_rows.chunk_by(|one, next| one == next).map(|alike| alike[0]));
        }
        labels.sort_unstable();
        labels.dedup();
        let grouped = columns.iter().map(|(column, of_rows)| GroupedColumn::new(column, of_rows, &labels, sensitive));
        let grouped = grouped.collect();
        let columns = columns.iter().map(|(numbered, _)| numbered.iter().map(|(attr, _)| *attr).collect()).collect();
        Self { sensitive, columns, labels, grouped, excluded: AHashSet::new() }
    }

    /// The columns of a table whose parts share attributes; values have numbers that are equal in all parts. `None` if a part
    /// could not be read, or none has the sensitive attribute.
    pub(in crate::verifier) fn of_texts(
        read: &[ParsedPart],
        sensitive: Attr,
        numbers: &mut ValueInterner,
    ) -> Option<Self> {
        Self::of_parts(read, sensitive, |column| {
            let cells = column.cells.as_ref()?.iter();
            Some(cells.map(|cell| numbers.code(column.attribute, cell.as_deref())).collect())
        })
    }

    /// The same of parts that share no attribute; values have the codes of the parts.
    pub(in crate::verifier) fn of_codes(read: &[ParsedPart], sensitive: Attr) -> Option<Self> {
        Self::of_parts(read, sensitive, |column| Some((0..column.size as u32).collect()))
    }

    /// The columns of parts; `numbers` gives the number of each code.
    fn of_parts(
        read: &[ParsedPart],
        sensitive: Attr,
        mut numbers: impl FnMut(&ParsedColumn) -> Option<Vec<u32>>,
    ) -> Option<Self> {
        let (mut shown, mut excluded) = (Vec::with_capacity(read.len()), AHashSet::new());
        for part in read {
            let mut columns: Vec<_> = part.columns.iter().collect();
            columns.sort_by_key(|column| column.attribute == sensitive);
            let mut numbered = InternedColumns::with_capacity(columns.len());
            for column in &columns {
                let known = numbers(column)?;
                if column.attribute == sensitive {
                    excluded.extend(column.declared.excluded.iter().map(|&code| known[code as usize]));
                }
                let rows = (0..part.rows).map(|row| known[column.codes.get(row) as usize]);
                numbered.push((column.attribute, rows.collect()));
            }
            shown.push((numbered, part.labels.as_deref()?.clone()));
        }
        let columns = Self { excluded, ..Self::from_columns(&shown, sensitive) };
        (!columns.sides().0.is_empty()).then_some(columns)
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
    pub(in crate::verifier) fn order(&self, columns: &[usize]) -> Option<JoinOrder> {
        let sets: Vec<AttrSet> = columns.iter().map(|&column| set(&self.columns[column])).collect();
        Some(tree(&sets)?.into_iter().map(|(at, shared)| (columns[at], shared)).collect())
    }

    /// Columns in the given order, with the attributes shared with earlier columns.
    pub(in crate::verifier) fn in_given_order(&self, columns: &[usize]) -> JoinOrder {
        let before =
            |at: usize| columns[..at].iter().fold(AttrSet::EMPTY, |all, of| all.union(set(&self.columns[*of])));
        columns.iter().enumerate().map(|(at, &of)| (of, set(&self.columns[of]).intersection(before(at)))).collect()
    }

    /// A join tree of each choice together with the columns without the sensitive attribute; `None` if one has none.
    pub(in crate::verifier) fn trees(&self) -> Option<Vec<JoinOrder>> {
        let (_, others) = self.sides();
        self.choices().iter().map(|chosen| self.order(&[&others[..], chosen].concat())).collect()
    }

    /// Number of tuples of a column, without the sensitive attribute.
    pub(in crate::verifier) fn tuples(&self, column: usize) -> usize {
        self.grouped[column].tuples.len()
    }

    /// The number of a tuple of a column, without the sensitive attribute.
    pub(in crate::verifier) fn find(&self, column: usize, tuple: &[u32]) -> Option<u32> {
        self.grouped[column].tuples.find(tuple)
    }

    /// The rows of a column, by bucket, tuple and value.
    pub(in crate::verifier) fn rows(&self, column: usize) -> &[RowsOfTuple] {
        &self.grouped[column].rows
    }

    /// Where the rows of a bucket stand in a column.
    pub(in crate::verifier) fn places(&self, bucket: usize, column: usize) -> Range<usize> {
        let starts = &self.grouped[column].starts;
        starts[bucket]..starts[bucket + 1]
    }

    /// The rows of a bucket in a column, by tuple and value.
    pub(in crate::verifier) fn rows_of(&self, bucket: usize, column: usize) -> &[RowsOfTuple] {
        &self.rows(column)[self.places(bucket, column)]
    }

    /// Number of rows of a bucket.
    pub(in crate::verifier) fn size(&self, bucket: usize) -> u64 {
        self.rows_of(bucket, 0).iter().map(|of| u64::from(of.rows)).sum()
    }

    /// The value of an attribute of a column.
    fn value(&self, column: usize, of: &RowsOfTuple, attr: Attr) -> Option<u32> {
        let at = self.columns[column].iter().position(|other| *other == attr)?;
        Some(if attr == self.sensitive { of.value } else { self.grouped[column].tuples.tuple(of.tuple)[at] })
    }

    /// Values of some attributes, in the order of the attributes.
    pub(in crate::verifier) fn within(&self, column: usize, of: &RowsOfTuple, attrs: AttrSet) -> Vec<u32> {
        attrs.iter().filter_map(|attr| self.value(column, of, attr)).collect()
    }

    /// Number of rows of a bucket and column by their values of some attributes.
    fn projected(&self, bucket: usize, column: usize, attrs: AttrSet) -> TupleBuckets {
        let mut tuples = TupleBuckets::new();
        for of in self.rows_of(bucket, column) {
            *tuples.entry(self.within(column, of, attrs)).or_default() += u64::from(of.rows);
        }
        tuples
    }

    /// Whether the columns of a bucket agree on shared attributes.
    pub(in crate::verifier) fn agree(&self, bucket: usize) -> bool {
        (0..self.columns.len()).all(|a| {
            (0..a).all(|b| {
                let shared = set(&self.columns[a]).intersection(set(&self.columns[b]));
                shared.is_empty() || self.projected(bucket, a, shared) == self.projected(bucket, b, shared)
            })
        })
    }

    /// Weights of the sensitive values of a bucket, by known values, over the columns of `order`.
    ///
    /// Also returns the known attributes in the order of their values. `None` where there are too many combinations.
    pub(in crate::verifier) fn known(
        &self,
        bucket: usize,
        order: &[(usize, AttrSet)],
        of: AttrSet,
    ) -> Option<(Vec<Attr>, KnownValues)> {
        // attributes joined so far in order of appearance, with the weight of each combination
        let (mut attrs, mut rows): (Vec<Attr>, KnownWeight) = (Vec::new(), vec![(Vec::new(), 1, 1)]);
        for &(column, shared) in order {
            let mut agreeing: AHashMap<Vec<u32>, Vec<&RowsOfTuple>> = AHashMap::new();
            for of in self.rows_of(bucket, column) {
                agreeing.entry(self.within(column, of, shared)).or_default().push(of);
            }
            let places: Vec<usize> = shared.iter().filter_map(|attr| attrs.iter().position(|of| *of == attr)).collect();
            let fresh: Vec<Attr> =
                self.columns[column].iter().copied().filter(|attr| !shared.contains(*attr)).collect();
            let is_first = attrs.is_empty();
            let mut joined = Vec::new();
            for (known, times, over) in &rows {
                let wanted: Vec<u32> = places.iter().map(|&at| known[at]).collect();
                let Some(tuples) = agreeing.get(&wanted) else { continue };
                let all: u64 = tuples.iter().map(|of| u64::from(of.rows)).sum();
                if joined.len() + tuples.len() > MAX_BUCKET_COMBINATIONS {
                    return None;
                }
                for of in tuples {
                    let more = fresh.iter().filter_map(|&attr| self.value(column, of, attr));
                    let of_all = if is_first { 1 } else { u128::from(all) };
                    let known = known.iter().copied().chain(more).collect();
                    joined.push((known, times.checked_mul(u128::from(of.rows))?, over.checked_mul(of_all)?));
                }
            }
            attrs.extend(fresh);
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
    pub(in crate::verifier) fn combinations(&self, bucket: usize, columns: &[usize]) -> BigUint {
        let mut open: Vec<Attr> = Vec::new();
        let mut sums: AHashMap<Vec<u32>, BigUint> = AHashMap::new();
        sums.insert(Vec::new(), 1_u32.into());
        for (at, &column) in columns.iter().enumerate() {
            let of =
                |columns: &[usize]| columns.iter().fold(AttrSet::EMPTY, |all, of| all.union(set(&self.columns[*of])));
            let (before, after) = (of(&columns[..at]), of(&columns[at + 1..]));
            let here = set(&self.columns[column]);
            let used = here.intersection(before.union(after));
            let projected = self.projected(bucket, column, used);
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
        sums.into_values().sum()
    }

    /// Whether no value has more than 1/l of the weights.
    ///
    /// Excluded values count among all, others among the rest.
    pub(in crate::verifier) fn keeps(&self, l: Ratio, weights: &[ExactWeight]) -> bool {
        let logarithm = |(value, times, over): &ExactWeight| (*value, ln(times) - ln(over));
        if let Some(keeps) = self.clearly_keeps(l, &mut weights.iter().map(logarithm).collect::<Vec<_>>()) {
            return keeps;
        }
        let (sums, all, left) = self.exact(weights);
        left > BigUint::ZERO
            && sums.iter().all(|(value, sum)| {
                let among = if self.excluded.contains(value) { &all } else { &left };
                sum * l.numerator() <= among * l.denominator()
            })
    }

    /// The same of logarithms of weights, which are sorted by value; `None` if a share is too near to the bound.
    pub(in crate::verifier) fn clearly_keeps(&self, l: Ratio, weights: &mut [(u32, f64)]) -> Option<bool> {
        weights.sort_unstable_by_key(|(value, _)| *value);
        let largest = weights.iter().map(|(_, ln)| *ln).fold(f64::NEG_INFINITY, f64::max);
        let sum = |alike: &[(u32, f64)]| alike.iter().map(|(_, ln)| (ln - largest).exp()).sum::<f64>();
        let sums: SmallVec<[(bool, f64); 32]> = weights
            .chunk_by(|one, next| one.0 == next.0)
            .map(|alike| (self.excluded.contains(&alike[0].0), sum(alike)))
            .collect();
        let all: f64 = sums.iter().map(|(_, sum)| sum).sum();
        let left: f64 = sums.iter().filter(|(is_excluded, _)| !is_excluded).map(|(_, sum)| sum).sum();
        let gap = |(is_excluded, sum): &(bool, f64)| l.to_f64().mul_add(-sum, if *is_excluded { all } else { left });
        let is_clear =
            left > EXACT_CHECK_EPSILON * all && sums.iter().all(|of| gap(of).abs() > EXACT_CHECK_EPSILON * all);
        is_clear.then(|| sums.iter().all(|of| gap(of) > 0.0))
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

impl GroupedColumn {
    /// The rows of a column with these labels, each of which is one of `labels`.
    fn new(column: &InternedColumns, of_rows: &[u32], labels: &[u32], sensitive: Attr) -> Self {
        let (values, others): (Vec<_>, Vec<_>) = column.iter().partition(|(attr, _)| *attr == sensitive);
        let value = |row: usize| values.first().map_or(0, |(_, numbers)| numbers[row]);
        let (mut tuples, mut tuple) = (NumberedTuples::new(others.len()), Vec::new());
        let mut listed: Vec<(u32, RowsOfTuple)> = Vec::with_capacity(of_rows.len());
        let mut bucket = 0;
        for (row, label) in of_rows.iter().enumerate() {
            if labels[bucket] != *label {
                bucket = labels.partition_point(|other| other < label);
            }
            tuple.clear();
            tuple.extend(others.iter().map(|(_, numbers)| numbers[row]));
            listed.push((bucket as u32, RowsOfTuple { tuple: tuples.number(&tuple), value: value(row), rows: 1 }));
        }
        listed.sort_unstable();
        let (mut rows, mut starts) = (Vec::new(), Vec::with_capacity(labels.len() + 1));
        for alike in listed.chunk_by(|one, next| one == next) {
            starts.resize(alike[0].0 as usize + 1, rows.len());
            rows.push(RowsOfTuple { rows: alike.len() as u32, ..alike[0].1 });
        }
        starts.resize(labels.len() + 1, rows.len());
        Self { tuples, rows, starts }
    }
}

/// The natural logarithm of a positive number.
pub(in crate::verifier) fn ln(number: &BigUint) -> f64 {
    let shift = number.bits().saturating_sub(64);
    let digits = (number >> shift).iter_u64_digits().next().unwrap_or(0);
    (digits as f64).ln() + shift as f64 * std::f64::consts::LN_2
}
