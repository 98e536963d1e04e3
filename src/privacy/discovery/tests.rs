//! Discovery against reference vectors, a naive definition and planted dependencies.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use proptest::prelude::*;
use serde::Deserialize;

use super::logarithm::{FactorialLogarithms, log2_down};
use super::search::discover_within;
use super::significance::{CountFrequency, Savings, threshold};
use super::*;
use crate::control::{Cancelled, Control};
use crate::microdata::{Arena, Attr, AttrSet, AttributeType, Codes, Column, Domain, Table};
use crate::publication::Ratio;

pub(super) fn column(values: &[u32]) -> Column {
    let mut present = values.to_vec();
    present.sort_unstable();
    present.dedup();
    let mut arena = Arena::default();
    present.iter().for_each(|value| arena.push(format!("{value:09}").as_bytes()));
    let domain = Arc::new(Domain::from_sorted(AttributeType::Text, false, arena));
    let code = |value: &u32| present.binary_search(value).unwrap() as u32;
    Column { domain, codes: Codes::collect(present.len(), values.iter().map(code)) }
}

fn table(columns: &[Vec<u32>]) -> Table {
    let names = (0..columns.len()).map(|at| at.to_string()).collect();
    Table::new(names, columns.iter().map(|values| column(values)).collect())
}

fn discover(columns: &[Vec<u32>], tolerance: Ratio) -> Discovery {
    let options = DiscoveryOptions { tolerance, ..DiscoveryOptions::default() };
    discover_dependencies(&table(columns), &options, &Control::default()).unwrap()
}

/// The determinant and the dependent of each dependency.
fn links(found: &[DiscoveredDependency]) -> Vec<(Vec<usize>, usize)> {
    let members = |set: AttrSet| set.iter().map(Attr::index).collect();
    found.iter().map(|found| (members(found.dependency.determinant), found.dependency.dependent.index())).collect()
}

pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, bound: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % u64::from(bound)) as u32
    }

    fn column(&mut self, rows: usize, values: u32) -> Vec<u32> {
        (0..rows).map(|_| self.below(values)).collect()
    }
}

#[derive(Deserialize)]
struct Vectors {
    discover: Vec<DiscoverVector>,
    logarithms: LogarithmVectors,
}

#[derive(Deserialize)]
struct DiscoverVector {
    rows: Vec<Vec<u32>>,
    epsilon: String,
    threshold: i64,
    found: Vec<FoundVector>,
}

#[derive(Deserialize)]
struct FoundVector {
    determinant: Vec<usize>,
    dependent: usize,
    errors: usize,
    groups: usize,
    saved: i64,
}

/// A candidate: its rows, groups, counts of the dependent's values and errors, then what it saves.
type SavedVector = (usize, usize, Vec<u64>, usize, i64);

#[derive(Deserialize)]
struct LogarithmVectors {
    values: Vec<(u64, i64)>,
    saved: Vec<SavedVector>,
}

fn vectors() -> Vectors {
    serde_json::from_str(include_str!("../../../tests/vectors/dependencies/discovery.json")).unwrap()
}

#[test]
fn logarithms_match_reference_vectors() {
    let LogarithmVectors { values, saved } = vectors().logarithms;
    assert_eq!((values.len(), saved.len()), (10, 4));
    for (value, logarithm) in values {
        assert_eq!(log2_down(value), logarithm, "{value}");
    }
    for (rows, groups, counts, errors, expected) in saved {
        let factorials = FactorialLogarithms::new(rows);
        let mut counts = CountFrequency::collect(counts.into_iter());
        let savings = Savings::new(&factorials, &counts);
        assert_eq!(savings.saved(groups, errors), expected, "{rows} rows");
        counts.reverse();
        assert_eq!(Savings::new(&factorials, &counts).saved(groups, errors), expected, "in any order");
    }
}

#[test]
fn discover_matches_reference_vectors() {
    let vectors = vectors().discover;
    assert_eq!(vectors.len(), 14);
    for (at, vector) in vectors.iter().enumerate() {
        let columns: Vec<Vec<u32>> = (0..6).map(|at| vector.rows.iter().map(|row| row[at]).collect()).collect();
        let discovery = discover(&columns, vector.epsilon.parse().unwrap());
        let expected: Vec<DiscoveredDependency> = vector.found.iter().map(FoundVector::discovered).collect();
        assert_eq!(discovery.found, expected, "vector {at}");
        assert_eq!(threshold(6), vector.threshold);
        assert_eq!(discovery.searched, SearchedScope::SinglesAndPairs);
    }
}

impl FoundVector {
    fn discovered(&self) -> DiscoveredDependency {
        let &Self { errors, groups, saved, .. } = self;
        let determinant = self.determinant.iter().map(|&at| Attr::from(at)).collect();
        let dependency = super::super::dependencies::Dependency { determinant, dependent: Attr::from(self.dependent) };
        DiscoveredDependency { dependency, groups, errors, saved }
    }
}

/// Counts of the values of a column in some rows.
fn counted(column: &[u32], rows: &[usize]) -> Vec<u64> {
    let mut counts: HashMap<u32, u64> = HashMap::new();
    rows.iter().for_each(|&row| *counts.entry(column[row]).or_default() += 1);
    counts.into_values().collect()
}

/// Rows in groups of equal values of some columns.
fn groups(columns: &[Vec<u32>], determinant: &[usize], rows: &[usize]) -> Vec<Vec<usize>> {
    let mut groups: HashMap<Vec<u32>, Vec<usize>> = HashMap::new();
    for &row in rows {
        groups.entry(determinant.iter().map(|&at| columns[at][row]).collect()).or_default().push(row);
    }
    groups.into_values().collect()
}

/// The dependencies by definition: groups, errors and significance of every candidate on all rows.
fn naive(columns: &[Vec<u32>], tolerance: Ratio) -> Vec<FoundVector> {
    let rows: Vec<usize> = (0..columns[0].len()).collect();
    let factorials = FactorialLogarithms::new(rows.len());
    let varied: Vec<usize> = (0..columns.len()).filter(|&at| counted(&columns[at], &rows).len() > 1).collect();
    let least = threshold(varied.len() as u64);
    let singles = varied.iter().map(|&one| vec![one]);
    let pairs = varied.iter().flat_map(|&one| varied.iter().map(move |&other| vec![one, other]));
    let mut found: Vec<FoundVector> = Vec::new();
    for determinant in singles.chain(pairs.filter(|pair| pair[0] < pair[1])) {
        let of_determinant = groups(columns, &determinant, &rows);
        for &dependent in varied.iter().filter(|at| !determinant.contains(at)) {
            let exact = |one: &FoundVector| one.dependent == dependent && one.errors == 0;
            if found
                .iter()
                .any(|one| exact(one) && determinant.contains(&one.determinant[0]) && one.determinant.len() == 1)
            {
                continue;
            }
            let top = |rows: &Vec<usize>| counted(&columns[dependent], rows).into_iter().max().unwrap() as usize;
            let errors: usize = of_determinant.iter().map(|rows| rows.len() - top(rows)).sum();
            let is_tolerated = determinant.len() == 1
                && errors as u64 * tolerance.denominator() <= tolerance.numerator() * rows.len() as u64
                && 2 * errors <= rows.len() - top(&rows);
            if errors > 0 && !is_tolerated {
                continue;
            }
            let saved_in = |rows: &Vec<usize>, groups: usize| {
                let counts = CountFrequency::collect(counted(&columns[dependent], rows).into_iter());
                (counts.iter().map(|count| count.values).sum::<usize>() > 1)
                    .then(|| Savings::new(&factorials, &counts).saved(groups, errors))
            };
            let mut saved = saved_in(&rows, of_determinant.len()).unwrap();
            for member in determinant.iter().filter(|_| determinant.len() > 1) {
                let inside = groups(columns, &[*member], &rows);
                let inside = inside.iter().filter_map(|rows| saved_in(rows, groups(columns, &determinant, rows).len()));
                saved = saved.min(inside.map(|saved| saved.max(0)).sum());
            }
            if saved >= least {
                let determinant = determinant.clone();
                found.push(FoundVector { determinant, dependent, errors, groups: of_determinant.len(), saved });
            }
        }
    }
    found
}

/// How a column comes about.
#[derive(Clone, Debug)]
enum Planted {
    /// Random values.
    Values(u32),
    /// A function of the first column.
    Function(u32),
    /// A function of the first two columns.
    PairFunction(u32),
    /// A rare value.
    Rare(u32),
}

fn planted() -> impl Strategy<Value = Planted> {
    prop_oneof![
        (1u32..40).prop_map(Planted::Values),
        (1u32..6).prop_map(Planted::Function),
        (1u32..6).prop_map(Planted::PairFunction),
        (10u32..60).prop_map(Planted::Rare),
    ]
}

proptest! {
    #[test]
    fn discover_random_tables_matches_the_definition(
        rows in 2usize..250, values in (2u32..30, 2u32..6), plan in proptest::collection::vec(planted(), 1..4),
        wrong in 0usize..4, seed: u64, tolerance in 0u64..6,
    ) {
        let mut random = Random(seed);
        let (first, second) = (random.column(rows, values.0), random.column(rows, values.1));
        let mut columns = vec![first.clone(), second.clone()];
        for plan in plan {
            let mut cell = |row: usize| match plan {
                Planted::Values(values) => random.below(values),
                Planted::Function(values) => first[row] * 7 % 11 % values,
                Planted::PairFunction(values) => (first[row] * 7 + second[row] * 3) % 11 % values,
                Planted::Rare(inverse) => u32::from(first[row] == 0 || random.below(inverse) == 0),
            };
            columns.push((0..rows).map(&mut cell).collect());
        }
        for _ in 0..wrong {
            let (at, row) = (random.below(columns.len() as u32) as usize, random.below(rows as u32) as usize);
            columns[at][row] += 1;
        }
        let tolerance = Ratio::new(tolerance, 100).unwrap();
        let expected: Vec<DiscoveredDependency> = naive(&columns, tolerance).iter().map(FoundVector::discovered).collect();
        prop_assert_eq!(discover(&columns, tolerance).found, expected);
    }
}

#[test]
fn independent_columns_have_no_dependencies() {
    let mut random = Random(1);
    for at in 0..1_000 {
        let rows = [30, 60, 120][at % 3];
        let domains = [2, 3, 5, 11, rows / 4, rows / 2, rows, 4 * rows];
        let columns: Vec<Vec<u32>> = domains.iter().map(|&values| random.column(rows as usize, values)).collect();
        let found = discover(&columns, Ratio::new(1, 20).unwrap()).found;
        assert!(found.is_empty(), "table {at}: {found:?}");
    }
}

#[test]
fn recodings_with_few_rows_a_value_are_found() {
    for rows_per_value in [2, 5, 11] {
        let mut random = Random(rows_per_value);
        let first: Vec<u32> = (0..60 * rows_per_value as u32).map(|row| row % 60).collect();
        let recoded = first.iter().map(|value| value * 7 % 61 + 100).collect();
        let other = random.column(first.len(), 5);
        let found = discover(&[first, recoded, other], Ratio::new(1, 100).unwrap()).found;
        assert_eq!(links(&found), [(vec![0], 1), (vec![1], 0)], "{rows_per_value} rows a value");
    }
}

#[test]
fn a_dirty_cell_in_a_large_column_is_tolerated() {
    let mut random = Random(3);
    let code = random.column(40_000, 483);
    let mut group: Vec<u32> = code.iter().map(|code| code % 3).collect();
    group[12_345] = (group[12_345] + 1) % 3;
    let other = random.column(40_000, 7);
    let found = discover(&[code, group.clone(), other], Ratio::new(1, 100).unwrap()).found;
    assert_eq!(links(&found), [(vec![0], 1)]);
    assert_eq!((found[0].errors, found[0].groups), (1, 483));
}

#[test]
fn a_nearly_distinct_column_determines_nothing() {
    let mut random = Random(4);
    // a key, and a column in which one of twenty values occurs twice
    let mut columns: Vec<Vec<u32>> =
        vec![(0..2_000).collect(), (0..2_000).map(|row| row / 21 * 20 + row % 21).collect()];
    columns.extend([2, 9, 100].map(|values| random.column(2_000, values)));
    let discovery = discover(&columns, Ratio::new(1, 20).unwrap());
    assert!(discovery.found.is_empty(), "{:?}", discovery.found);
}

#[test]
fn accidents_within_the_tolerance_are_rejected() {
    // 100 rows, 95 groups, a balanced column: it saves more than nothing, and less than an accident may
    let many: Vec<u32> = (0..100).map(|row: u32| row.saturating_sub(5)).collect();
    let balanced: Vec<u32> = (0..100).map(|row| if row < 6 { 0 } else { row % 2 }).collect();
    let discovery = discover(&[many, balanced], Ratio::new(1, 100).unwrap());
    assert_eq!(links(&discovery.rejected), [(vec![0], 1)]);
    assert!(discovery.found.is_empty());
    assert_eq!(discovery.rejected[0].errors, 0);
    assert!((1..threshold(2)).contains(&discovery.rejected[0].saved));
}

/// Columns in which a pair determines a third column and a rare one, in enough rows that prefixes decide most.
fn large() -> Vec<Vec<u32>> {
    let mut random = Random(5);
    let rows = 200_000;
    let (one, other) = (random.column(rows, 50), random.column(rows, 8));
    let both: Vec<u32> = one.iter().zip(&other).map(|(one, other)| (one * 3 + other * 5) % 13).collect();
    let rare: Vec<u32> = one.iter().zip(&other).map(|(&one, &other)| u32::from(one == 7 && other == 2)).collect();
    let noisy: Vec<u32> = rare.iter().enumerate().map(|(row, &rare)| rare ^ u32::from(row == 150_000)).collect();
    let rarest: Vec<u32> = (0..rows).map(|row| u32::from(row % 30_000 == 7)).collect();
    vec![one, other, both, rare, noisy, rarest]
}

#[test]
fn pairs_in_many_rows_are_found_exactly() {
    let columns = large();
    let found = discover(&columns, Ratio::new(0, 1).unwrap()).found;
    assert_eq!(links(&found), [(vec![0, 1], 2), (vec![0, 1], 3), (vec![0, 2], 1), (vec![0, 2], 3)]);
    assert!(found.iter().all(|found| found.errors == 0 && found.groups == 400), "{found:?}");
    // one exception: single determinants may have it, pairs may not
    let tolerant = discover(&columns, Ratio::new(1, 100).unwrap()).found;
    let approximate: Vec<_> = tolerant.iter().filter(|found| found.errors > 0).collect();
    assert!(approximate.iter().all(|found| found.dependency.determinant.len() == 1 && found.errors == 1));
    assert_eq!(approximate.len(), 2, "{approximate:?}");
}

#[test]
fn the_work_limit_leaves_out_pairs_alone() {
    let columns = large();
    let table = table(&columns);
    let within = |most| discover_within(most, &table, &DiscoveryOptions::default(), &Control::default()).unwrap();
    let (some, all) = (within(1), within(u64::MAX));
    assert_eq!((some.searched, all.searched), (SearchedScope::SinglesAndSomePairs, SearchedScope::SinglesAndPairs));
    let singles: HashSet<_> = links(&all.found).into_iter().filter(|(determinant, _)| determinant.len() == 1).collect();
    assert_eq!(links(&some.found).into_iter().collect::<HashSet<_>>(), singles);
    let options = |scope| DiscoveryOptions { scope, ..DiscoveryOptions::default() };
    let of = |scope| discover_dependencies(&table, &options(scope), &Control::default()).unwrap();
    assert_eq!(of(DiscoveryScope::Singles), Discovery { searched: SearchedScope::Singles, ..some });
    let none = of(DiscoveryScope::None);
    assert!(none.found.is_empty() && none.rejected.is_empty() && none.searched == SearchedScope::None);
}

#[test]
fn tables_without_rows_or_varied_columns_have_none() {
    for columns in [vec![], vec![vec![]], vec![vec![1], vec![2]], vec![vec![1; 90], vec![2; 90]]] {
        assert!(discover(&columns, Ratio::new(1, 100).unwrap()).found.is_empty());
    }
}

#[test]
fn a_cancelled_search_ends() {
    let control = Control::default();
    control.cancel();
    let found = discover_dependencies(&table(&large()), &DiscoveryOptions::default(), &control);
    assert_eq!(found, Err(Cancelled));
}
