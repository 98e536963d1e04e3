//! What rows of the original match over all buckets of a sliced table.
//!
//! A row matches a bucket if each column has its tuple there. Each sensitive value that stands with these tuples in all
//! chosen columns has a weight: a product of numbers of rows, divided by the number of combinations of the bucket, or by the
//! rows of shared attributes [docs/spec/overlapping-slicing.md#two-weightings]. Of columns that share no attribute, a bucket of
//! `n` rows and `c` columns has `n^c` combinations [docs/spec/slicing.md#verification].

use std::cmp::Ordering;
use std::ops::Range;

use ahash::AHashMap;
use num_bigint::BigUint;
use rayon::prelude::*;

use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, AttrSet};
use crate::publication::Ratio;
use crate::verifier::contract::checks::{CheckLog, CheckName};
use crate::verifier::read::columns_by_bucket::{ColumnsByBucket, ExactWeight, JoinOrder, ln};

/// Rows of the original whose matches are weighed by a processor at once.
const ROWS_AT_ONCE: usize = 1 << 9;

/// Above it, a product is taken apart: with one more number of rows it is not infinite.
const LARGE_PRODUCT: f64 = 1e250;

/// The number of a tuple that stands in no bucket.
const ABSENT: u32 = u32::MAX;

/// Columns of a sliced table, with what matches of rows are weighed by.
pub(super) struct MatchedColumns<'a> {
    columns: &'a ColumnsByBucket,
    /// The columns without the sensitive attribute, those with fewest tuples first.
    others: Vec<usize>,
    /// For each column the buckets of each tuple.
    buckets: Vec<BucketsOfTuples>,
    choices: Vec<WeighedChoice>,
}

/// The buckets of each tuple of a column, rising.
struct BucketsOfTuples {
    buckets: Vec<u32>,
    /// Where the buckets of each tuple begin, and the end of the last ones.
    starts: Vec<usize>,
    /// A bit for each bucket, of tuples that stand in many.
    bits: AHashMap<u32, Vec<u64>>,
}

/// The buckets of a tuple.
struct BucketsOfTuple<'t> {
    list: &'t [u32],
    bits: Option<&'t [u64]>,
}

/// A choice of columns with the sensitive attribute, together with all others.
struct WeighedChoice {
    chosen: Vec<usize>,
    /// The number of combinations of each bucket, and its logarithm.
    combinations: Vec<(BigUint, f64)>,
    /// Columns that share attributes with earlier ones in the order of a join tree; where expected rows are weighed, too.
    shared: Option<Vec<SharedRows>>,
}

/// The rows that have the same values of the attributes that a column shares with earlier ones.
struct SharedRows {
    /// The place of the column among all others and the chosen ones.
    place: usize,
    /// For each of the equal rows of the column how many rows of its bucket these are.
    rows: Vec<u32>,
}

/// What a weight is divided by.
#[derive(Clone, Copy)]
enum Divisor {
    Combinations,
    SharedRows,
}

/// Rows that match a row of the original in one bucket.
struct MatchedRows<'m> {
    bucket: usize,
    /// The place of the rows in each column: all others, and the chosen ones.
    places: &'m [usize],
    /// The logarithm of the product of the rows of the others.
    others: f64,
    value: u32,
}

/// Lists that are used again for each row.
#[derive(Default)]
struct MatchLists {
    /// For each of the columns without the sensitive attribute the buckets that match it and those before.
    levels: Vec<MatchLevel>,
    /// The buckets that match all columns of a choice.
    buckets: Vec<u32>,
    room: Vec<u32>,
    weights: Vec<(u32, f64)>,
    places: Vec<usize>,
}

/// The buckets that match some columns of a row.
#[derive(Default)]
struct MatchLevel {
    /// The tuple of the last of these columns.
    tuple: u32,
    buckets: Vec<u32>,
}

impl BucketsOfTuples {
    fn new(columns: &ColumnsByBucket, column: usize) -> Self {
        let occurrences = || {
            let of_bucket = move |bucket: usize| {
                let rows = columns.rows_of(bucket, column);
                rows.chunk_by(|one, next| one.tuple == next.tuple).map(move |alike| (alike[0].tuple as usize, bucket))
            };
            (0..columns.labels.len()).flat_map(of_bucket)
        };
        let mut starts = vec![0; columns.tuples(column) + 1];
        occurrences().for_each(|(tuple, _)| starts[tuple + 1] += 1);
        for tuple in 1..starts.len() {
            starts[tuple] += starts[tuple - 1];
        }
        let (mut next, mut buckets) = (starts.clone(), vec![0; starts.last().copied().unwrap_or(0)]);
        for (tuple, bucket) in occurrences() {
            buckets[next[tuple]] = bucket as u32;
            next[tuple] += 1;
        }
        let words = columns.labels.len().div_ceil(u64::BITS as usize);
        let bits_of = |(tuple, ends): (u32, &[usize])| {
            let list = &buckets[ends[0]..ends[1]];
            // as bits they take no more room
            (list.len() >= 2 * words).then(|| {
                let mut bits = vec![0; words];
                list.iter().for_each(|&bucket| bits[(bucket / u64::BITS) as usize] |= 1 << (bucket % u64::BITS));
                (tuple, bits)
            })
        };
        let bits = (0..).zip(starts.windows(2)).filter_map(bits_of).collect();
        Self { buckets, starts, bits }
    }

    fn of(&self, tuple: u32) -> BucketsOfTuple<'_> {
        let list = &self.buckets[self.starts[tuple as usize]..self.starts[tuple as usize + 1]];
        BucketsOfTuple { list, bits: self.bits.get(&tuple).map(Vec::as_slice) }
    }
}

impl BucketsOfTuple<'_> {
    /// Puts what it has in common with some buckets, which rise, in the place of `common`.
    fn intersect(&self, buckets: &[u32], common: &mut Vec<u32>) {
        common.clear();
        if let Some(bits) = self.bits {
            let has = |bucket: &&u32| bits[(**bucket / u64::BITS) as usize] >> (**bucket % u64::BITS) & 1 == 1;
            common.extend(buckets.iter().filter(has));
            return;
        }
        let (few, mut many) = if self.list.len() < buckets.len() { (self.list, buckets) } else { (buckets, self.list) };
        let has = |bucket: &&u32| {
            many = &many[many.partition_point(|other| other < *bucket)..];
            many.first() == Some(*bucket)
        };
        common.extend(few.iter().filter(has));
    }
}

impl WeighedChoice {
    fn new(
        columns: &ColumnsByBucket,
        others: &[usize],
        chosen: Vec<usize>,
        tree: Option<&JoinOrder>,
        control: &Control,
    ) -> Result<Self, Cancelled> {
        let used = [others, &chosen].concat();
        let combined = |bucket: usize| -> Result<(BigUint, f64), Cancelled> {
            control.check()?;
            let number = columns.combinations(bucket, &used);
            let logarithm = ln(&number);
            Ok((number, logarithm))
        };
        let combinations = (0..columns.labels.len()).into_par_iter().map(combined).collect::<Result<_, _>>()?;
        let shared = |&(column, attrs): &(usize, AttrSet)| {
            let place = used.iter().position(|used| *used == column)?;
            Some(SharedRows { place, rows: rows_of_shared(columns, column, attrs) })
        };
        let shared = tree.map(|tree| tree.iter().skip(1).filter_map(shared).collect());
        Ok(Self { chosen, combinations, shared })
    }

    fn divisors(&self) -> impl Iterator<Item = Divisor> + use<> {
        std::iter::once(Divisor::Combinations).chain(self.shared.is_some().then_some(Divisor::SharedRows))
    }

    /// For each column that shares attributes with earlier ones, the rows that have the shared values of a match.
    fn shared_rows(&self, found: &MatchedRows<'_>) -> impl Iterator<Item = u32> {
        self.shared.iter().flatten().map(|shared| shared.rows[found.places[shared.place]])
    }

    /// The logarithm of what a weight is divided by.
    fn logarithm(&self, found: &MatchedRows<'_>, divisor: Divisor) -> f64 {
        match divisor {
            Divisor::Combinations => self.combinations[found.bucket].1,
            Divisor::SharedRows => logarithm(self.shared_rows(found)),
        }
    }

    /// What a weight is divided by.
    fn exact(&self, found: &MatchedRows<'_>, divisor: Divisor) -> BigUint {
        match divisor {
            Divisor::Combinations => self.combinations[found.bucket].0.clone(),
            Divisor::SharedRows => self.shared_rows(found).product(),
        }
    }
}

/// For each of the equal rows of a column the rows of its bucket that have the same values of some attributes.
fn rows_of_shared(columns: &ColumnsByBucket, column: usize, attrs: AttrSet) -> Vec<u32> {
    let mut shared = Vec::with_capacity(columns.rows(column).len());
    for bucket in 0..columns.labels.len() {
        let rows = columns.rows_of(bucket, column);
        let values: Vec<Vec<u32>> = rows.iter().map(|of| columns.within(column, of, attrs)).collect();
        let mut sums: AHashMap<&[u32], u32> = AHashMap::new();
        values.iter().zip(rows).for_each(|(values, of)| *sums.entry(values).or_default() += of.rows);
        shared.extend(values.iter().map(|values| sums[&values[..]]));
    }
    shared
}

impl<'a> MatchedColumns<'a> {
    /// With the join tree of each choice of [`ColumnsByBucket::choices`], where expected rows are weighed, too.
    pub(super) fn new(
        columns: &'a ColumnsByBucket,
        trees: Option<&[JoinOrder]>,
        control: &Control,
    ) -> Result<Self, Cancelled> {
        let buckets = (0..columns.columns.len()).map(|column| BucketsOfTuples::new(columns, column)).collect();
        let (_, mut others) = columns.sides();
        others.sort_by_key(|&column| columns.tuples(column));
        let choice = |(number, chosen): (usize, Vec<usize>)| {
            WeighedChoice::new(columns, &others, chosen, trees.map(|trees| &trees[number]), control)
        };
        let choices = columns.choices().into_iter().enumerate().map(choice).collect::<Result<_, _>>()?;
        Ok(Self { columns, others, buckets, choices })
    }

    /// Checks that no value has more than 1/l of the weights of what matches a row of the original. `values` gives the value of
    /// each row for an attribute.
    pub(super) fn check(
        &self,
        l: Ratio,
        rows: usize,
        values: impl FnMut(Attr) -> Vec<u32>,
        control: &Control,
        log: &mut CheckLog,
    ) -> Result<(), Cancelled> {
        let broken = self.broken(l, rows, values, control)?;
        if broken > 0 {
            let detail = format!("{broken} kinds of rows do not keep l over the buckets that match them");
            log.fail(CheckName::Guarantee, detail);
        }
        Ok(())
    }

    /// How many kinds of rows have a value with more than 1/l of the weights.
    fn broken(
        &self,
        l: Ratio,
        rows: usize,
        mut values: impl FnMut(Attr) -> Vec<u32>,
        control: &Control,
    ) -> Result<u64, Cancelled> {
        let columns = 0..self.buckets.len();
        let tuples: Vec<Vec<u32>> = columns.map(|column| self.tuples_of(column, rows, &mut values)).collect();
        control.check()?;
        // rows with equal tuples in the first columns stand together
        let chosen = (0..self.buckets.len()).filter(|column| !self.others.contains(column));
        let order: Vec<&Vec<u32>> = self.others.iter().copied().chain(chosen).map(|column| &tuples[column]).collect();
        let compare = |one: u32, other: u32| {
            let differing = order.iter().map(|of| of[one as usize].cmp(&of[other as usize])).find(|of| of.is_ne());
            differing.unwrap_or(Ordering::Equal)
        };
        let mut kinds: Vec<u32> = (0..rows as u32).collect();
        kinds.par_sort_unstable_by(|one, other| compare(*one, *other));
        kinds.dedup_by(|next, one| compare(*next, *one).is_eq());
        let broken = |kinds: &[u32]| -> Result<u64, Cancelled> {
            let (mut lists, mut broken) = (MatchLists::default(), 0);
            for &row in kinds {
                control.check()?;
                let tuples: Vec<u32> = tuples.iter().map(|of| of[row as usize]).collect();
                broken += u64::from(!self.keeps(l, &tuples, &mut lists));
            }
            Ok(broken)
        };
        kinds.par_chunks(ROWS_AT_ONCE).map(broken).sum()
    }

    /// The number of the tuple of each row of the original in a column.
    fn tuples_of(&self, column: usize, rows: usize, values: impl FnMut(Attr) -> Vec<u32>) -> Vec<u32> {
        let attrs = self.columns.columns[column].iter().copied().filter(|attr| *attr != self.columns.sensitive);
        let values: Vec<Vec<u32>> = attrs.map(values).collect();
        let mut tuple = Vec::with_capacity(values.len());
        let number = |row: usize| {
            tuple.clear();
            tuple.extend(values.iter().map(|values| values[row]));
            self.columns.find(column, &tuple).unwrap_or(ABSENT)
        };
        (0..rows).map(number).collect()
    }

    /// Whether the row with these tuples keeps the bound, for every choice and weighting.
    fn keeps(&self, l: Ratio, tuples: &[u32], lists: &mut MatchLists) -> bool {
        if tuples.contains(&ABSENT) {
            return false;
        }
        self.match_others(tuples, &mut lists.levels);
        self.choices.iter().all(|choice| {
            let MatchLists { levels, buckets, room, .. } = &mut *lists;
            for (at, &column) in choice.chosen.iter().enumerate() {
                let of_tuple = self.buckets[column].of(tuples[column]);
                match (at, levels.last()) {
                    (0, None) => of_tuple.list.clone_into(buckets),
                    (0, Some(level)) => of_tuple.intersect(&level.buckets, buckets),
                    _ => {
                        of_tuple.intersect(buckets, room);
                        std::mem::swap(buckets, room);
                    }
                }
            }
            choice.divisors().all(|divisor| self.keeps_choice(l, tuples, choice, divisor, lists))
        })
    }

    /// Finds the buckets that match the columns without the sensitive attribute, from the first that differs from the row before.
    fn match_others(&self, tuples: &[u32], levels: &mut Vec<MatchLevel>) {
        let is_same = |(level, column): (&MatchLevel, &usize)| level.tuple == tuples[*column];
        let same = levels.iter().zip(&self.others).take_while(|of| is_same(*of)).count();
        levels.resize_with(self.others.len(), MatchLevel::default);
        for (at, &column) in self.others.iter().enumerate().skip(same) {
            let of_tuple = self.buckets[column].of(tuples[column]);
            let (before, level) = levels.split_at_mut(at);
            level[0].tuple = tuples[column];
            match before.last() {
                None => of_tuple.list.clone_into(&mut level[0].buckets),
                Some(before) => of_tuple.intersect(&before.buckets, &mut level[0].buckets),
            }
        }
    }

    /// The same for one choice and weighting, of the buckets that match.
    fn keeps_choice(
        &self,
        l: Ratio,
        tuples: &[u32],
        choice: &WeighedChoice,
        divisor: Divisor,
        lists: &mut MatchLists,
    ) -> bool {
        let MatchLists { buckets, weights, places, .. } = lists;
        weights.clear();
        self.visit(tuples, choice, buckets, places, |found| {
            let times = found.others + logarithm(self.counts(choice, found).skip(self.others.len()));
            weights.push((found.value, times - choice.logarithm(found, divisor)));
        });
        self.columns.clearly_keeps(l, weights).unwrap_or_else(|| {
            let mut weights: Vec<ExactWeight> = Vec::new();
            self.visit(tuples, choice, buckets, places, |found| {
                let times = self.counts(choice, found).product();
                weights.push((found.value, times, choice.exact(found, divisor)));
            });
            self.columns.keeps(l, &weights)
        })
    }

    /// The number of rows of each column in a match.
    fn counts<'m>(&'m self, choice: &'m WeighedChoice, found: &'m MatchedRows<'_>) -> impl Iterator<Item = u32> + 'm {
        let columns = self.others.iter().chain(&choice.chosen).zip(found.places);
        columns.map(|(&column, &place)| self.columns.rows(column)[place].rows)
    }

    /// Passes on what matches the row with these tuples in some buckets.
    fn visit(
        &self,
        tuples: &[u32],
        choice: &WeighedChoice,
        buckets: &[u32],
        places: &mut Vec<usize>,
        mut found: impl FnMut(&MatchedRows<'_>),
    ) {
        let Some((first, more)) = choice.chosen.split_first() else { return };
        for &bucket in buckets {
            let of_tuple = |&column: &usize| self.of_tuple(bucket as usize, column, tuples[column]);
            places.clear();
            places.extend(self.others.iter().map(|column| of_tuple(column).start));
            let rows = self.others.iter().zip(&*places).map(|(&column, &place)| self.columns.rows(column)[place].rows);
            let others = logarithm(rows);
            for place in of_tuple(first) {
                let value = self.columns.rows(*first)[place].value;
                places.truncate(self.others.len());
                places.push(place);
                let with_value = |column: &usize| {
                    let within = of_tuple(column);
                    let rows = &self.columns.rows(*column)[within.clone()];
                    Some(within.start + rows.binary_search_by_key(&value, |of| of.value).ok()?)
                };
                places.extend(more.iter().map_while(with_value));
                if places.len() == self.others.len() + choice.chosen.len() {
                    found(&MatchedRows { bucket: bucket as usize, places, others, value });
                }
            }
        }
    }

    /// Where the rows with a tuple stand in a column of a bucket.
    fn of_tuple(&self, bucket: usize, column: usize, tuple: u32) -> Range<usize> {
        let within = self.columns.places(bucket, column);
        let rows = self.columns.rows_of(bucket, column);
        let end = |upto: u32| within.start + rows.partition_point(|of| of.tuple < upto);
        end(tuple)..end(tuple + 1)
    }
}

/// The logarithm of a product of numbers of rows.
fn logarithm(rows: impl Iterator<Item = u32>) -> f64 {
    let (mut sum, mut product) = (0.0, 1.0_f64);
    for rows in rows {
        product *= f64::from(rows);
        if product > LARGE_PRODUCT {
            sum += product.ln();
            product = 1.0;
        }
    }
    sum + product.ln()
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    /// Attributes 0 to 2, and the sensitive one.
    const SENSITIVE: Attr = Attr(3);

    /// Columns that share nothing, or attributes, or the sensitive one.
    const COVERS: [&[&[u8]]; 6] = [
        &[&[0, 1], &[2, 3]],
        &[&[0], &[1, 2], &[3]],
        &[&[0, 1], &[1, 2], &[2, 3]],
        &[&[0, 1, 2], &[0, 3], &[1, 3]],
        &[&[0, 1, 3], &[1, 2, 3]],
        &[&[0, 3], &[1, 3], &[2, 3]],
    ];

    type Row = [u32; 4];

    fn columns(cover: &[&[u8]], rows: &[Row], labels: &[u32]) -> ColumnsByBucket {
        let column = |attrs: &&[u8]| {
            let of_attr = |&attr: &u8| (Attr(attr), rows.iter().map(|row| row[usize::from(attr)]).collect());
            (attrs.iter().map(of_attr).collect(), labels.to_vec())
        };
        ColumnsByBucket::from_columns(&cover.iter().map(column).collect::<Vec<_>>(), SENSITIVE)
    }

    fn within(row: &Row, attrs: &[u8]) -> Vec<u32> {
        attrs.iter().map(|attr| row[usize::from(*attr)]).collect()
    }

    /// All combinations of one row of each column of a bucket that agree on shared attributes.
    fn combinations(cover: &[&[u8]], bucket: &[Row]) -> Vec<BTreeMap<u8, u32>> {
        let mut all = vec![BTreeMap::new()];
        for attrs in cover {
            let more = all.iter().flat_map(|known: &BTreeMap<u8, u32>| {
                bucket.iter().filter_map(move |row| {
                    let cells = attrs.iter().map(|&attr| (attr, row[usize::from(attr)]));
                    let agrees = cells.clone().all(|(attr, value)| known.get(&attr).is_none_or(|of| *of == value));
                    agrees.then(|| known.iter().map(|(attr, value)| (*attr, *value)).chain(cells).collect())
                })
            });
            all = more.collect();
        }
        all
    }

    /// By the words of the definition, in fractions: how many kinds of rows have a value with more than 1/l.
    fn broken(cover: &[&[u8]], buckets: &[Vec<Row>], l: u64, is_weighted: bool) -> u64 {
        let kinds: BTreeSet<Vec<u32>> = buckets.iter().flatten().map(|row| row[..3].to_vec()).collect();
        let (with, without): (Vec<&[u8]>, Vec<&[u8]>) = cover.iter().partition(|attrs| attrs.contains(&3));
        let choices = (1..1_u32 << with.len())
            .map(|mask| (0..with.len()).filter(|at| mask >> at & 1 == 1).map(|at| with[at]).collect::<Vec<_>>());
        let choices: Vec<Vec<&[u8]>> = choices.map(|chosen| [&without[..], &chosen].concat()).collect();
        let weights = |kind: &[u32], used: &[&[u8]], is_divided: bool| {
            let mut sums: BTreeMap<u32, (u128, u128)> = BTreeMap::new();
            for bucket in buckets {
                let all = combinations(used, bucket);
                for value in 0..3 {
                    let row: Row = [kind[0], kind[1], kind[2], value];
                    let of_columns = |attrs: &[u8]| {
                        bucket.iter().filter(|other| within(other, attrs) == within(&row, attrs)).count() as u128
                    };
                    let times: u128 = used.iter().map(|attrs| of_columns(attrs)).product();
                    let mut over = all.len() as u128;
                    if is_divided {
                        over = 1;
                        for (at, attrs) in used.iter().enumerate().skip(1) {
                            let known: BTreeSet<u8> = used[..at].concat().into_iter().collect();
                            let shared: Vec<u8> = attrs.iter().copied().filter(|attr| known.contains(attr)).collect();
                            over *= of_columns(&shared);
                        }
                    }
                    if times > 0 {
                        let (above, below) = sums.get(&value).copied().unwrap_or((0, 1));
                        sums.insert(value, (above * over + times * below, below * over));
                    }
                }
            }
            sums
        };
        let keeps = |sums: BTreeMap<u32, (u128, u128)>| {
            let fraction = |(above, below): &(u128, u128)| (BigUint::from(*above), BigUint::from(*below));
            let unit: BigUint = sums.values().map(|of| fraction(of).1).product();
            let scaled: Vec<BigUint> =
                sums.values().map(fraction).map(|(above, below)| above * (&unit / below)).collect();
            let all: BigUint = scaled.iter().sum();
            !scaled.is_empty() && scaled.iter().all(|of| of * l <= all)
        };
        let weightings = if is_weighted { &[false, true][..] } else { &[false] };
        let is_kept =
            |kind: &Vec<u32>| choices.iter().all(|used| weightings.iter().all(|of| keeps(weights(kind, used, *of))));
        kinds.iter().filter(|kind| !is_kept(kind)).count() as u64
    }

    proptest! {
        #[test]
        fn kinds_are_broken_as_the_definition_says(
            rows in prop::collection::vec(([0u32..2, 0..2, 0..2, 0..3], 0u32..3), 1..9),
            cover in prop::sample::select(&COVERS[..]), l in 1u64..4, is_weighted: bool,
        ) {
            let mut rows = rows;
            rows.sort_by_key(|(_, label)| *label);
            let (rows, labels): (Vec<Row>, Vec<u32>) = rows.into_iter().unzip();
            let of_bucket = |label: u32| rows.iter().zip(&labels).filter(|of| *of.1 == label).map(|of| *of.0).collect();
            let buckets: Vec<Vec<Row>> = (0..3).map(of_bucket).filter(|rows: &Vec<Row>| !rows.is_empty()).collect();
            let columns = columns(cover, &rows, &labels);
            // the definition divides along the order of a tree
            let trees = columns.trees().filter(|_| is_weighted);
            prop_assume!(!is_weighted || trees.is_some());
            let control = Control::default();
            let matched = MatchedColumns::new(&columns, trees.as_deref(), &control).unwrap();
            let values = |attr: Attr| rows.iter().map(|row| row[usize::from(attr.0)]).collect();
            let found = matched.broken(Ratio::new(l, 1).unwrap(), rows.len(), values, &control).unwrap();
            prop_assert_eq!(found, broken(cover, &buckets, l, is_weighted));
        }
    }
}
