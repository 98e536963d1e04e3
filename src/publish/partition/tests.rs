//! Splits against their definition, and counts against counting.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::control::Control;
use crate::microdata::{Arena, Attr, AttrSet, AttributeType, Axis, Codes, Column, Domain, Table};

/// Small tables are renumbered, and split in parallel.
const SMALL: PartitionTuning = PartitionTuning { unnumbered_rows: 1, parallel_rows: 1 };

fn column(values: &[u32]) -> Column {
    let mut distinct = values.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    let mut arena = Arena::default();
    distinct.iter().for_each(|value| arena.push(value.to_string().as_bytes()));
    let codes = values.iter().map(|value| distinct.binary_search(value).unwrap() as u32);
    let codes = Codes::collect(distinct.len(), codes.collect::<Vec<_>>().into_iter());
    Column { domain: Arc::new(Domain::from_sorted(AttributeType::Integer, false, arena)), codes }
}

fn table(rows: &[Vec<u32>]) -> Table {
    let columns = (0..rows[0].len()).map(|at| column(&rows.iter().map(|row| row[at]).collect::<Vec<_>>()));
    Table::new((0..rows[0].len()).map(|at| format!("a{at}")).collect(), columns.collect())
}

/// The splits of the specification: rows sorted by (value, row).
fn naive(rows: &[Vec<u32>], bucket: &[u32], split: MedianSplit) -> Vec<(Vec<u32>, Vec<u32>)> {
    let value = |row: u32, at: usize| rows[row as usize][at];
    let width = |of: &[u32], at: usize| {
        let values = || of.iter().map(|&row| value(row, at));
        values().max().unwrap() - values().min().unwrap()
    };
    let all: Vec<u32> = (0..rows.len() as u32).collect();
    let mut dimensions: Vec<usize> = (0..rows[0].len()).filter(|&at| width(bucket, at) > 0).collect();
    dimensions.sort_by(|&a, &b| {
        (width(bucket, b) * width(&all, a)).cmp(&(width(bucket, a) * width(&all, b))).then(a.cmp(&b))
    });
    let cut = |at: usize| {
        let mut sorted = bucket.to_vec();
        sorted.sort_by_key(|&row| (value(row, at), row));
        let (mut left, mut right): (Vec<u32>, Vec<u32>) = match split {
            MedianSplit::Relaxed => (sorted[..sorted.len() / 2].to_vec(), sorted[sorted.len() / 2..].to_vec()),
            MedianSplit::Strict => {
                let median = value(sorted[(sorted.len() - 1) / 2], at);
                let above = sorted.iter().any(|&row| value(row, at) > median);
                sorted.iter().partition(|&&row| value(row, at) < median + u32::from(above))
            }
        };
        left.sort_unstable();
        right.sort_unstable();
        (left, right)
    };
    dimensions.into_iter().map(cut).collect()
}

proptest! {
    #[test]
    fn candidates_are_those_of_the_definition(
        rows in prop::collection::vec(prop::collection::vec(0u32..6, 3), 1..30), members: u32, strict: bool,
    ) {
        let table = table(&rows);
        let space = SplitSpace::new(&table, table.attributes(), &NoAnnotations);
        let bucket: Vec<u32> = (0..rows.len() as u32).filter(|row| members >> row & 1 == 1).collect();
        prop_assume!(!bucket.is_empty());
        let split = if strict { MedianSplit::Strict } else { MedianSplit::Relaxed };
        let mut scratch = Scratch::default();
        let mut candidates = SplitCandidates::new(&space, split, &bucket, &mut scratch);
        let mut made = Vec::new();
        while let Some((left, right)) = candidates.next_split() {
            prop_assert!(!left.is_empty() && !right.is_empty());
            made.push((left.to_vec(), right.to_vec()));
        }
        prop_assert_eq!(made, naive(&rows, &bucket, split));
    }

    #[test]
    fn tallies_are_counts(
        rows in prop::collection::vec((0u32..4, 0u32..5), 1..40), spread in prop::sample::select(vec![1u32, 1000]),
    ) {
        // spread out, there are more cells than rows
        let groups = TallyGroups { of_row: rows.iter().map(|(group, _)| group * spread).collect(), count: 4 * spread };
        let codes = Codes::collect(5, rows.iter().map(|(_, code)| *code).collect::<Vec<_>>().into_iter());
        let bucket: Vec<u32> = (0..rows.len() as u32).filter(|row| row % 3 != 1).collect();
        let tallied = TalliedRows { rows: &bucket, groups: Some(&groups), codes: &codes, values: 5 };
        let weight = |row: u32| u64::from(row % 4) + 1;
        let several = RowWeights::new((0..rows.len() as u32).map(weight).collect());
        for weights in [RowWeights::default(), several] {
            let mut counted: BTreeMap<u32, BTreeMap<u32, u64>> = BTreeMap::new();
            for &row in &bucket {
                let (group, code) = rows[row as usize];
                *counted.entry(group * spread).or_default().entry(code).or_default() += weights.of(&[row]);
            }
            let counted: Vec<(u32, Vec<(u32, u64)>)> =
                counted.into_iter().map(|(group, counts)| (group, counts.into_iter().collect())).collect();
            let mut found = Vec::new();
            let all = GroupTally::default().weighted(tallied, &weights, |group, counts| {
                found.push((group, counts.to_vec()));
                true
            });
            prop_assert!(all);
            prop_assert_eq!(found, counted);
        }
    }

    #[test]
    fn buckets_keep_what_is_required(
        rows in prop::collection::vec(prop::collection::vec(0u32..6, 3), 4..60), strict: bool, least in 1usize..4,
        attempts in prop::option::of(1usize..3),
    ) {
        let table = table(&rows);
        let space = SplitSpace::new(&table, AttrSet::first(2), &NoAnnotations);
        let sensitive = table.column(Attr(2));
        let requirement = || BucketRequirement { groups: None, sensitive, holds: Box::new(|counts| counts.len() >= 2) };
        let mut judge = PerHalfPredicate::new(vec![requirement()]);
        let all: Vec<u32> = (0..rows.len() as u32).collect();
        let mut tally = GroupTally::default();
        prop_assume!(judge.holds(&all, &mut tally));
        let split = if strict { MedianSplit::Strict } else { MedianSplit::Relaxed };
        let limits = PartitionLimits { split, max_attempts: attempts, min_bucket: least, tuning: SMALL };
        let made = partition_apart(space, rows.len(), limits, &mut judge, &Control::default()).unwrap();
        for bucket in 0..made.buckets {
            let members: Vec<u32> = all.iter().copied().filter(|&row| made.bucket_of[row as usize] == bucket).collect();
            let judge = PerHalfPredicate::new(vec![requirement()]);
            prop_assert!(members.len() >= least && judge.holds(&members, &mut tally));
            // nothing that was allowed is left undone
            let remaining = naive(&rows_of(&rows, 2), &members, split);
            for (left, right) in remaining.into_iter().take(attempts.unwrap_or(usize::MAX)) {
                let both = judge.holds(&left, &mut tally) && judge.holds(&right, &mut tally);
                prop_assert!(left.len().min(right.len()) < least || !both);
            }
        }
    }
}

/// One bucket after the other.
struct InTurn<'a>(PerHalfPredicate<'a>, GroupTally);

impl SplitPredicate for InTurn<'_> {
    fn allows(&mut self, _: u32, left: &[u32], right: &[u32]) -> bool {
        self.0.holds(left, &mut self.1) && self.0.holds(right, &mut self.1)
    }

    fn reorder(&mut self, order: &[u32]) {
        self.0.reorder(order);
    }
}

proptest! {
    /// Rows are given to the judge under their numbers of the moment, and come out under their own.
    #[test]
    fn renumbered_rows_are_split_alike_in_turn_and_side_by_side(
        rows in prop::collection::vec(prop::collection::vec(0u32..40, 3), 64..400), strict: bool,
    ) {
        let table = table(&rows);
        let sensitive = table.column(Attr(2));
        let group: Vec<u32> = rows.iter().map(|row| row[1] % 3).collect();
        let groups = TallyGroups { of_row: group, count: 3 };
        let split = if strict { MedianSplit::Strict } else { MedianSplit::Relaxed };
        let limits = PartitionLimits { split, max_attempts: None, min_bucket: 1, tuning: SMALL };
        let space = || SplitSpace::new(&table, AttrSet::first(2), &NoAnnotations);
        let two = |groups| BucketRequirement { groups, sensitive, holds: Box::new(|counts: &[(u32, u64)]| counts.len() >= 2) };
        let judge = || PerHalfPredicate::new(vec![two(None), two(Some(&groups))]);
        let partitioned = |unnumbered_rows| {
            let limits = PartitionLimits { tuning: PartitionTuning { unnumbered_rows, ..SMALL }, ..limits };
            let mut judge = InTurn(judge(), GroupTally::default());
            partition(space(), rows.len(), limits, &mut judge, &Control::default()).unwrap()
        };
        let (once, often) = (partitioned(usize::MAX), partitioned(0));
        prop_assert_eq!(&once.bucket_of, &often.bucket_of);
        prop_assert_eq!(once.buckets, often.buckets);
        let parallel_value = partition_apart(space(), rows.len(), limits, &mut judge(), &Control::default()).unwrap();
        prop_assert_eq!(once.bucket_of, parallel_value.bucket_of);
        prop_assert_eq!(once.buckets, parallel_value.buckets);
    }
}

fn rows_of(rows: &[Vec<u32>], columns: usize) -> Vec<Vec<u32>> {
    rows.iter().map(|row| row[..columns].to_vec()).collect()
}

#[test]
fn a_declared_order_decides_where_rows_are_cut() {
    let table = table(&[vec![1], vec![2], vec![3], vec![4]]);
    // 3 1 4 2
    struct Declared;
    impl TableAnnotations for Declared {
        fn axis(&self, _: Attr) -> Option<Axis> {
            Some(Axis::from_places(&[1, 3, 0, 2]))
        }
    }
    let space = SplitSpace::new(&table, table.attributes(), &Declared);
    let limits = PartitionLimits { split: MedianSplit::Strict, max_attempts: None, min_bucket: 2, tuning: SMALL };
    let made = partition_apart(space, 4, limits, &mut PerHalfPredicate::default(), &Control::default()).unwrap();
    assert_eq!(made.bucket_of, [0, 1, 0, 1]);
}

#[test]
fn cancelled_partition_stops() {
    let table = table(&[vec![1], vec![2]]);
    let space = SplitSpace::new(&table, table.attributes(), &NoAnnotations);
    let control = Control::default();
    control.cancel();
    let limits = PartitionLimits { split: MedianSplit::Relaxed, max_attempts: None, min_bucket: 1, tuning: SMALL };
    assert!(partition_apart(space, 2, limits, &mut PerHalfPredicate::default(), &control).is_err());
    let space = || SplitSpace::new(&table, table.attributes(), &NoAnnotations);
    assert!(
        partition(space(), 2, limits, &mut InTurn(PerHalfPredicate::default(), GroupTally::default()), &control)
            .is_err()
    );
    let none = partition_apart(space(), 0, limits, &mut PerHalfPredicate::default(), &Control::default()).unwrap();
    assert_eq!(none.buckets, 0);
}
