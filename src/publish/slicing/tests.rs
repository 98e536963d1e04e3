//! The vectors, the paper's table, and the incremental check against the definition.

use crate::{privacy, verifier};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use serde::Deserialize;

use super::counts::{FrequencyBound, TrialCounts};
use super::posterior::{BucketWeights, MatchedBucket, PosteriorJudge};
use super::slice::Slicer;
use super::*;
use crate::control::Control;
use crate::microdata::{
    Arena, Attr, AttrSet, AttributeType, Coarse, Codes, Column, ColumnAnnotations, Domain, Table, phi_squared,
};
use crate::privacy::OverallCounts;
use crate::publication::{Guarantee, Protected, Ratio, RowMeaning, TableGuard, TableProtection};
use crate::publish::assign::BucketAssignment;
use crate::publish::generalize::CountedRows;
use crate::publish::partition::{
    MedianSplit, NoAnnotations, PartitionTuning, RowWeights, Scratch, SplitCandidates, SplitSpace, TableAnnotations,
};
use crate::verifier::{ExternalPart, ExternalTable, TupleEstimate};

fn column(values: &[u32]) -> Column {
    let distinct: Vec<u32> = values.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
    let mut arena = Arena::default();
    distinct.iter().for_each(|value| arena.push(value.to_string().as_bytes()));
    let codes: Vec<u32> = values.iter().map(|value| distinct.binary_search(value).unwrap() as u32).collect();
    let codes = Codes::collect(distinct.len(), codes.into_iter());
    Column { domain: Arc::new(Domain::from_sorted(AttributeType::Integer, false, arena)), codes }
}

pub(super) fn table(rows: &[Vec<u32>]) -> Table {
    let columns = (0..rows[0].len()).map(|at| column(&rows.iter().map(|row| row[at]).collect::<Vec<_>>()));
    Table::new((0..rows[0].len()).map(|at| format!("a{at}")).collect(), columns.collect())
}

pub(super) fn sets(columns: &[Vec<u8>]) -> Vec<AttrSet> {
    columns.iter().map(|column| column.iter().map(|&attr| Attr(attr)).collect()).collect()
}

pub(super) fn slicing(
    table: &Table,
    columns: &[Vec<u8>],
    sensitive: u8,
    diversity: SlicingDiversity,
    split: MedianSplit,
) -> SlicingPlan {
    SlicingPlan {
        attributes: table.attributes(),
        sensitive: Attr(sensitive),
        columns: ColumnChoice::Explicit(sets(columns)),
        diversity,
        split,
        dimensions: None,
        max_attempts: None,
        min_bucket: Some(1),
        column_k: None,
        bins: CorrelationBins::default(),
        tuning: PartitionTuning { unnumbered_rows: 1, parallel_rows: 1 },
        strata: None,
    }
}

pub(super) fn slice(slicing: &SlicingPlan, table: &Table) -> Result<SlicedTable, SlicingError> {
    slicing.slice(table, &NoAnnotations, &Control::default())
}

pub(super) fn ratio(numerator: u64, denominator: u64) -> Ratio {
    Ratio::new(numerator, denominator).unwrap()
}

/// A sliced table as it is read.
fn published(table: &Table, sliced: &SlicedTable) -> ExternalTable {
    let part = |attrs: &AttrSet| ExternalPart {
        name: String::new(),
        meaning: RowMeaning::Tuples,
        rows: table.rows(),
        bucket: Some(column(&sliced.buckets.bucket_of)),
        columns: attrs.iter().map(|attr| (attr, table.column(attr).clone())).collect(),
        cells: std::collections::BTreeMap::new(),
    };
    ExternalTable { name: "t1".to_owned(), parts: sliced.columns.iter().map(part).collect() }
}

/// The rows of each bucket.
pub(super) fn members(buckets: &BucketAssignment) -> Vec<Vec<u32>> {
    let mut members = vec![Vec::new(); buckets.buckets as usize];
    (0..).zip(&buckets.bucket_of).for_each(|(row, &bucket)| members[bucket as usize].push(row));
    members
}

/// What each row is known by, and its sensitive value: all that the definition looks at.
pub(super) struct Known {
    pub(super) others: Vec<Vec<u32>>,
    pub(super) companions: Vec<u32>,
    pub(super) sensitive: Vec<u32>,
}

impl Known {
    fn new(table: &Table, sensitive: u8, keys: &IdentityKeys) -> Self {
        Self {
            others: keys.others.iter().map(|other| other.of_row.clone()).collect(),
            companions: keys.companions.of_row.clone(),
            sensitive: table.column(Attr(sensitive)).codes.iter().collect(),
        }
    }

    /// `p(t,s)` of a row as numerators over one denominator, the last; with `sized`, buckets weigh by their size.
    fn posterior(&self, buckets: &[Vec<u32>], row: u32, sized: bool) -> (BTreeMap<u32, u128>, u128) {
        let row = row as usize;
        let columns = self.others.len() as u32 + 1;
        let common: u128 = buckets.iter().map(|bucket| (bucket.len() as u128).pow(columns)).product();
        let mut weights: BTreeMap<u32, u128> = BTreeMap::new();
        for bucket in buckets {
            let with = |of: &[u32]| bucket.iter().filter(|&&r| of[r as usize] == of[row]).count() as u128;
            let product: u128 = self.others.iter().map(|other| with(other)).product();
            let unit = common / (bucket.len() as u128).pow(columns) * if sized { bucket.len() as u128 } else { 1 };
            for &other in bucket.iter().filter(|&&r| self.companions[r as usize] == self.companions[row]) {
                *weights.entry(self.sensitive[other as usize]).or_default() += product * unit;
            }
        }
        weights.retain(|_, weight| *weight > 0);
        let all = weights.values().sum();
        (weights, all)
    }

    fn is_diverse(&self, buckets: &[Vec<u32>], l: Ratio, sized: bool) -> bool {
        self.is_diverse_without(&[], buckets, l, sized)
    }

    /// Whether that holds for an insider who can exclude the values.
    fn is_diverse_without(&self, excluded_codes: &[u32], buckets: &[Vec<u32>], l: Ratio, sized: bool) -> bool {
        (0..self.companions.len() as u32).all(|row| {
            let (weights, all) = self.posterior(buckets, row, sized);
            let (l, of) = (u128::from(l.numerator()), u128::from(l.denominator()));
            let left: u128 =
                weights.iter().filter(|(value, _)| !excluded_codes.contains(value)).map(|(_, weight)| weight).sum();
            let among = |value: &u32| if excluded_codes.contains(value) { all } else { left };
            left > 0 && weights.iter().all(|(value, weight)| weight * l <= among(value) * of)
        })
    }
}

/// The algorithm of the paper with the whole definition after every split.
pub(super) fn naive(
    known: &Known,
    space: &SplitSpace,
    split: MedianSplit,
    attempts: usize,
    least: usize,
    holds: impl Fn(&[Vec<u32>]) -> bool,
) -> Option<Vec<Vec<u32>>> {
    let mut open: Vec<Vec<u32>> = vec![(0..known.companions.len() as u32).collect()];
    if !holds(&open) {
        return None;
    }
    let mut closed: Vec<Vec<u32>> = Vec::new();
    'buckets: while !open.is_empty() {
        let bucket = open.remove(0);
        let mut scratch = Scratch::default();
        let mut candidates = SplitCandidates::new(space, split, &bucket, &mut scratch);
        for _ in 0..attempts {
            let Some((left, right)) = candidates.next_split() else { break };
            let all: Vec<Vec<u32>> =
                open.iter().chain(&closed).cloned().chain([left.to_vec(), right.to_vec()]).collect();
            if left.len().min(right.len()) >= least && holds(&all) {
                let halves = [left.to_vec(), right.to_vec()];
                open.extend(halves);
                continue 'buckets;
            }
        }
        closed.push(bucket);
    }
    Some(closed)
}

#[derive(Deserialize)]
struct Vector {
    rows: Vec<Vec<u32>>,
    columns: Vec<Vec<u8>>,
    sensitive: u8,
    l: u64,
    relaxed: bool,
    min_bucket: usize,
    max_attempts: usize,
    root_diverse: bool,
    buckets: Option<Vec<Vec<u32>>>,
    p: Option<Vec<BTreeMap<String, String>>>,
    phi2: Option<Vec<Vec<f64>>>,
    full_tuples: Option<u64>,
    fake_full: Option<u64>,
    fake_qi: Option<u64>,
    match_hist: Option<BTreeMap<u32, u64>>,
}

#[test]
fn the_vectors_come_out() {
    let vectors: Vec<Vector> = serde_json::from_str(include_str!("../../../tests/vectors/slicing.json")).unwrap();
    assert_eq!(vectors.len(), 120);
    for vector in vectors {
        let table = table(&vector.rows);
        let split = if vector.relaxed { MedianSplit::Relaxed } else { MedianSplit::Strict };
        let diversity = SlicingDiversity::Mixture(ratio(vector.l, 1));
        let mut slicing = slicing(&table, &vector.columns, vector.sensitive, diversity, split);
        slicing.min_bucket = Some(vector.min_bucket);
        slicing.max_attempts = Some(vector.max_attempts);
        let sliced = slice(&slicing, &table);
        let Some(buckets) = vector.buckets else {
            assert!(!vector.root_diverse && matches!(sliced, Err(SlicingError::NotDiverse { .. })));
            continue;
        };
        let sliced = sliced.unwrap_or_else(|error| panic!("{error}"));
        let mut made = members(&sliced.buckets);
        made.sort();
        assert_eq!(made, buckets);

        // the published parts allow as many tuples that no row has
        let original: Vec<(Attr, &Column)> = table.attributes().iter().map(|attr| (attr, table.column(attr))).collect();
        let protected = AttrSet::one(slicing.sensitive);
        let found = verifier::members(&published(&table, &sliced), &original, protected, &Control::default());
        let found = found.unwrap().unwrap();
        let number = |tuples: TupleEstimate| Some(tuples.value as u64).filter(|_| tuples.exact);
        assert_eq!((number(found.fake_full), number(found.fake_qi)), (vector.fake_full, vector.fake_qi));
        let originals: u64 = found.originals.iter().sum();
        assert_eq!(number(found.fake_full).map(|fake| fake + originals), vector.full_tuples);
        let mut expected = [0; 3];
        for (buckets, tuples) in vector.match_hist.unwrap() {
            expected[(buckets as usize - 1).min(20) / 10] += tuples;
        }
        let matched = [0, 1, 2].map(|class| found.originals[class] + number(found.fakes[class]).unwrap());
        assert_eq!(matched, expected);
        assert_eq!(found.rows.iter().sum::<u64>(), table.rows() as u64, "a row matches its own bucket");

        // the definition of these tests is the oracle's
        let keys = keys_of(&slicing, &table, &sliced.columns, &sliced.boxes);
        let known = Known::new(&table, vector.sensitive, &keys);
        for (row, expected) in vector.p.unwrap().into_iter().enumerate() {
            let (weights, all) = known.posterior(&buckets, row as u32, false);
            assert_eq!(weights.len(), expected.len());
            for (value, share) in expected {
                let (numerator, denominator) = share.split_once('/').unwrap();
                let (numerator, denominator): (u128, u128) = (numerator.parse().unwrap(), denominator.parse().unwrap());
                let domain = &table.column(slicing.sensitive).domain;
                let code = (0..domain.len() as u32).find(|&code| domain.value(code) == Some(value.as_bytes()));
                assert_eq!(weights[&code.unwrap()] * denominator, all * numerator);
            }
        }
        let coarse: Vec<Coarse> =
            table.attributes().iter().map(|attr| Coarse::new(table.column(attr), u32::MAX)).collect();
        for (a, row) in vector.phi2.unwrap().into_iter().enumerate() {
            for (b, expected) in row.into_iter().enumerate() {
                assert!((phi_squared(&coarse[a], &coarse[b]) - expected).abs() < 1e-11, "{a} {b}");
            }
        }
    }
}

/// Table 1(a) of the paper: age, sex, zip code, disease.
pub(super) fn patients() -> Table {
    let rows = [
        [22, 1, 47906, 1],
        [22, 0, 47906, 2],
        [33, 0, 47905, 2],
        [52, 0, 47905, 0],
        [54, 1, 47302, 2],
        [60, 1, 47302, 1],
        [60, 1, 47304, 1],
        [64, 0, 47304, 3],
    ];
    table(&rows.map(Vec::from))
}

fn keys_of(
    slicing: &SlicingPlan,
    table: &Table,
    columns: &[AttrSet],
    boxes: &[Option<BucketAssignment>],
) -> IdentityKeys {
    let control = Control::default();
    Slicer {
        plan: slicing,
        table,
        weights: &RowWeights::default(),
        columns,
        annotations: &NoAnnotations,
        control: &control,
    }
    .keys(boxes)
    .unwrap()
}

fn keys_for(table: &Table, columns: &[Vec<u8>], sensitive: u8) -> IdentityKeys {
    let ungeneralized: Vec<Option<BucketAssignment>> = columns.iter().map(|_| None).collect();
    let slicing = slicing(table, columns, sensitive, SlicingDiversity::Mixture(Ratio::ONE), MedianSplit::Relaxed);
    keys_of(&slicing, table, &sets(columns), &ungeneralized)
}

#[test]
fn the_sliced_table_of_the_paper_is_two_diverse_and_not_more() {
    let table = patients();
    let (first, second) = ([0, 1, 2, 3], [4, 5, 6, 7]);
    let buckets = vec![first.to_vec(), second.to_vec()];
    // (f) two columns of two attributes, (e) one attribute in every column, (c) bucketization
    for columns in
        [vec![vec![0, 1], vec![2, 3]], vec![vec![0], vec![1], vec![2], vec![3]], vec![vec![0, 1, 2], vec![3]]]
    {
        let keys = keys_for(&table, &columns, 3);
        let known = Known::new(&table, 3, &keys);
        assert!(known.is_diverse(&buckets, ratio(2, 1), false));
        assert!(!known.is_diverse(&buckets, ratio(2_000_001, 1_000_000), false));
        // and so says the arithmetic of the check
        let count = |rows: &[u32]| {
            let mut trial = TrialCounts::new(&keys);
            let bound = FrequencyBound { l: Ratio::ONE, annotations: ColumnAnnotations::default() };
            trial.count(rows, &keys, &table.column(Attr(3)).codes, 4, &bound);
            trial
        };
        let counted = [count(&first), count(&second)];
        let judged = |l: Ratio| {
            let mut judge = PosteriorJudge::new(
                FrequencyBound { l, annotations: ColumnAnnotations::default() },
                BucketWeights::Shares,
                4,
            );
            (0..8).all(|row: usize| {
                let others: Vec<u32> = keys.others.iter().map(|other| other.of_row[row]).collect();
                let companion = keys.companions.of_row[row];
                let matching = counted.iter().filter(|bucket| bucket.matches(&others, companion));
                let matching: Vec<MatchedBucket<'_>> =
                    matching.map(|bucket| MatchedBucket::new(&others, bucket)).collect();
                judge.holds(&others, companion, &matching)
            })
        };
        assert!(judged(ratio(2, 1)) && !judged(ratio(2_000_001, 1_000_000)));
    }

    // p(t,s) of table 1(f), row by row: t1 dyspepsia 1/2, flu 1/2; ...
    let known = Known::new(&table, 3, &keys_for(&table, &[vec![0, 1], vec![2, 3]], 3));
    let expected = [[1, 2], [1, 2], [0, 2], [0, 2], [1, 2], [1, 2], [1, 3], [1, 3]];
    for (row, expected) in (0..).zip(expected) {
        let (weights, all) = known.posterior(&buckets, row, false);
        let halves: Vec<u32> =
            weights.iter().filter(|(_, weight)| **weight * 2 == all).map(|(value, _)| *value).collect();
        assert_eq!(halves, expected, "t{}", row + 1);
    }
}

#[test]
fn violating_table_is_refused_with_its_largest_share() {
    let table = patients();
    // among women, flu is two of four; among men, dyspepsia three of four
    let columns = [vec![0, 2], vec![1, 3]];
    for diversity in [
        SlicingDiversity::Bucket(vec![Guarantee::LDiversity { l: 2 }]),
        SlicingDiversity::Mixture(ratio(2, 1)),
        SlicingDiversity::MixtureWeighted(ratio(2, 1)),
    ] {
        let refused = slice(&slicing(&table, &columns, 3, diversity, MedianSplit::Relaxed), &table).err();
        assert_eq!(refused, Some(SlicingError::NotDiverse { most: 3, of: 4 }));
    }
    assert!(
        slice(&slicing(&table, &columns, 3, SlicingDiversity::Mixture(ratio(4, 3)), MedianSplit::Relaxed), &table)
            .is_ok()
    );
    let below = slicing(&table, &columns, 3, SlicingDiversity::Mixture(ratio(1, 2)), MedianSplit::Relaxed);
    assert_eq!(slice(&below, &table).err(), Some(SlicingError::BelowOne));
    let mut frequent = slicing(&table, &columns, 3, SlicingDiversity::Mixture(Ratio::ONE), MedianSplit::Relaxed);
    frequent.column_k = Some(9);
    assert_eq!(slice(&frequent, &table).err(), Some(SlicingError::TooFewRows { rows: 8 }));
    let empty = table.reordered(&[]);
    assert_eq!(slice(&below_one_free(&empty), &empty).err(), Some(SlicingError::Empty));
}

fn below_one_free(table: &Table) -> SlicingPlan {
    slicing(table, &[vec![0, 1, 2, 3]], 3, SlicingDiversity::Mixture(Ratio::ONE), MedianSplit::Strict)
}

#[test]
fn bucket_diversity_is_guarding() {
    let guarantee = Guarantee::LDiversity { l: 2 };
    let columns = sets(&[vec![0, 1], vec![2, 3]]);
    let protection = |diversity: SlicingDiversity| diversity.protection(&columns, Attr(3));
    let guard = TableGuard::new(AttrSet::first(3), Protected::Attribute(Attr(3)), vec![guarantee]);
    assert_eq!(protection(SlicingDiversity::Bucket(vec![guarantee])), TableProtection::Guarding(vec![guard]));
    assert_eq!(protection(SlicingDiversity::Mixture(ratio(2, 1))), TableProtection::Exclusive);
    assert_eq!(protection(SlicingDiversity::MixtureWeighted(ratio(2, 1))), TableProtection::Exclusive);
    let shared = sets(&[vec![0, 1, 2], vec![2, 3]]);
    assert_eq!(SlicingDiversity::Bucket(vec![guarantee]).protection(&shared, Attr(3)), TableProtection::Exclusive);
    assert_eq!(SlicingDiversity::Mixture(ratio(5, 2)).least_rows(), 3);
    assert_eq!(SlicingDiversity::Bucket(vec![guarantee]).least_rows(), 2);
}

/// These values of the sensitive attribute can be ruled out.
pub(super) struct Excluded(pub(super) Vec<u32>);

impl TableAnnotations for Excluded {
    fn annotations(&self, _: Attr) -> ColumnAnnotations {
        ColumnAnnotations::without(self.0.clone())
    }
}

/// A small table, its columns, and its sensitive attribute.
fn tables() -> impl Strategy<Value = (Vec<Vec<u32>>, Vec<Vec<u8>>, u8)> {
    (
        2usize..6,
        0usize..5,
        prop::collection::vec(prop::collection::vec(0u32..60, 5), 2..17),
        prop::collection::vec(0usize..3, 5),
    )
        .prop_map(|(width, sensitive, rows, places)| {
            let sensitive = sensitive % width;
            // two to five values, of the sensitive attribute more
            let domain = |at: usize| if at == sensitive { 5 } else { [2, 3, 5, 4, 2][at] };
            let row = |row: Vec<u32>| (0..width).map(|at| row[at] % domain(at)).collect();
            let mut columns = vec![Vec::new(); 3];
            (0..width).for_each(|at| columns[places[at]].push(at as u8));
            columns.retain(|column| !column.is_empty());
            (rows.into_iter().map(row).collect(), columns, sensitive as u8)
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_incremental_check_is_the_definition(
        (rows, columns, sensitive) in tables(), l in (2u64..7, 2u64..4), strict: bool, on_sensitive: bool, weighted: bool,
        attempts in 1usize..6, least in 1usize..3, column_k in prop::option::of(2u64..5),
        excluded_codes in prop_oneof![2 => Just(Vec::new()), 1 => prop::collection::vec(0u32..5, 1..3)],
    ) {
        let table = table(&rows);
        let l = ratio(l.0.max(l.1), l.1);
        let split = if strict { MedianSplit::Strict } else { MedianSplit::Relaxed };
        let diversity = if weighted { SlicingDiversity::MixtureWeighted(l) } else { SlicingDiversity::Mixture(l) };
        let dimensions = if on_sensitive { table.attributes() } else { table.attributes().without(Attr(sensitive)) };
        let slicing = SlicingPlan {
            dimensions: Some(dimensions),
            max_attempts: Some(attempts),
            min_bucket: Some(least),
            column_k: column_k.filter(|k| *k <= rows.len() as u64),
            ..slicing(&table, &columns, sensitive, diversity, split)
        };
        let declared_value = Excluded(excluded_codes.clone());
        let columns = slicing.columns.divide(&table, slicing.attributes, Attr(sensitive), &CorrelationBins::default(), &Control::default()).unwrap();
        let control = Control::default();
        let weights = &RowWeights::default();
        let slicer = Slicer {
            plan: &slicing, table: &table, weights, columns: &columns, annotations: &declared_value, control: &control,
        };
        let boxes = slicer.boxes().unwrap();
        let keys = slicer.keys(&boxes).unwrap();
        let known = Known::new(&table, sensitive, &keys);
        let space = SplitSpace::new(&table, dimensions, &declared_value);
        let holds = |buckets: &[Vec<u32>]| {
            let holds = |sized| known.is_diverse_without(&excluded_codes, buckets, l, sized);
            holds(false) && (!weighted || holds(true))
        };
        let expected = naive(&known, &space, split, attempts, least, holds);
        // with all buckets looked at, whether needed or not
        let bound = FrequencyBound { l, annotations: declared_value.annotations(Attr(sensitive)) };
        let weights = if weighted { BucketWeights::SharesAndSizes } else { BucketWeights::Shares };
        let mixed = slicer.mixed(&keys, bound, weights);
        let sliced = slicing.slice(&table, &declared_value, &Control::default()).map(|sliced| sliced.buckets);
        for buckets in [sliced, mixed] {
            match buckets {
                Ok(buckets) => {
                    // in the order of closing
                    prop_assert_eq!(Some(members(&buckets)), expected.clone());
                }
                Err(error) => {
                    prop_assert!(matches!(error, SlicingError::NotDiverse { .. }), "{error}");
                    prop_assert!(expected.is_none());
                }
            }
        }
    }

    #[test]
    fn every_bucket_holds_alone_and_so_does_every_mixture(
        (rows, columns, sensitive) in tables(), l in 2u64..4, form in 0usize..4, strict: bool,
        column_k in prop::option::of(2u64..4),
    ) {
        let table = table(&rows);
        let guarantee = [
            Guarantee::LDiversity { l },
            Guarantee::DistinctLDiversity { l },
            Guarantee::EntropyLDiversity { l: ratio(l, 1) },
            Guarantee::AlphaK { alpha: ratio(2, 5), k: 1 },
        ][form];
        let split = if strict { MedianSplit::Strict } else { MedianSplit::Relaxed };
        let mut slicing = slicing(&table, &columns, sensitive, SlicingDiversity::Bucket(vec![guarantee]), split);
        slicing.min_bucket = None;
        slicing.column_k = column_k.filter(|k| *k <= rows.len() as u64);
        let Ok(sliced) = slice(&slicing, &table) else { return Ok(()) };
        let keys = keys_of(&slicing, &table, &sliced.columns, &sliced.boxes);
        let population = OverallCounts::new(table.column(Attr(sensitive)).counts());
        let buckets = members(&sliced.buckets);
        let known = Known::new(&table, sensitive, &keys);
        for bucket in &buckets {
            prop_assert!(bucket.len() as u64 >= slicing.diversity.least_rows());
            for &row in bucket {
                let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
                let alike = |&&other: &&u32| known.companions[other as usize] == known.companions[row as usize];
                bucket.iter().filter(alike).for_each(|&r| *counts.entry(known.sensitive[r as usize]).or_default() += 1);
                let counts: Vec<(u32, u64)> = counts.into_iter().collect();
                prop_assert!(privacy::holds(guarantee, &counts, &population));
            }
        }
        if form == 0 {
            prop_assert!(known.is_diverse(&buckets, ratio(l, 1), false) && known.is_diverse(&buckets, ratio(l, 1), true));
        }
        // the boxes of a column are as frequent as asked
        for boxes in sliced.boxes.iter().flatten() {
            prop_assert!(members(boxes).iter().all(|rows| rows.len() as u64 >= slicing.column_k.unwrap()));
        }
    }

    /// Strict splits on quasi-identifiers that are published as they are leave every row one bucket to be in.
    #[test]
    fn strict_splits_give_every_row_one_bucket((rows, columns, sensitive) in tables()) {
        let table = table(&rows);
        let slicing = slicing(&table, &columns, sensitive, SlicingDiversity::Mixture(ratio(2, 1)), MedianSplit::Strict);
        let Ok(sliced) = slice(&slicing, &table) else { return Ok(()) };
        let keys = keys_for(&table, &columns, sensitive);
        let buckets = members(&sliced.buckets);
        for row in 0..rows.len() {
            let matching = buckets.iter().filter(|bucket| {
                let has = |of: &[u32]| bucket.iter().any(|&other| of[other as usize] == of[row]);
                has(&keys.companions.of_row) && keys.others.iter().all(|other| has(&other.of_row))
            });
            prop_assert_eq!(matching.count(), 1);
        }
    }
}

proptest! {
    #[test]
    fn buckets_of_counted_rows_are_those_of_the_rows(
        rows in prop::collection::vec([0u32..3, 0u32..4, 0u32..2, 0u32..4], 2..80), wide: bool, l in 1u64..4,
        least in 1usize..4, attempts in prop::option::of(1usize..3),
    ) {
        let mut equal: BTreeMap<Vec<u32>, u64> = BTreeMap::new();
        rows.iter().for_each(|row| *equal.entry(row.to_vec()).or_default() += 1);
        let distinct: Vec<Vec<u32>> = equal.keys().cloned().collect();
        let rows: Vec<Vec<u32>> = rows.iter().map(|row| row.to_vec()).collect();
        let columns: &[Vec<u8>] = if wide { &[vec![0, 1], vec![2, 3]] } else { &[vec![0], vec![1, 2], vec![3]] };
        let diversity = SlicingDiversity::Bucket(vec![Guarantee::LDiversity { l }]);
        let (whole, counted) = (table(&rows), table(&distinct));
        let plan = SlicingPlan {
            max_attempts: attempts,
            min_bucket: Some(least),
            ..slicing(&whole, columns, 3, diversity, MedianSplit::Strict)
        };
        let weights = RowWeights::new(equal.into_values().collect());
        let of_counted = CountedRows { table: &counted, weights: &weights };
        let found = plan.counted_buckets(of_counted, &sets(columns), &Control::default());
        match (slice(&plan, &whole).map(|sliced| sliced.buckets), found) {
            (Ok(of_rows), Ok(found)) => {
                let bucket = |row| found.bucket_of[distinct.binary_search(row).unwrap()];
                prop_assert_eq!(of_rows.buckets, found.buckets);
                prop_assert_eq!(of_rows.bucket_of, rows.iter().map(bucket).collect::<Vec<_>>());
            }
            (of_rows, found) => prop_assert_eq!(of_rows.err(), found.err()),
        }
    }
}
