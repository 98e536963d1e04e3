//! Classes keep what is asked, and their cells cover them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::control::Control;
use crate::microdata::{Arena, Attr, AttrSet, AttributeType, Axis, Codes, Column, Domain, Table};
use crate::privacy::{self, OverallCounts};
use crate::publication::{Guarantee, Ratio, ValueDistance};
use crate::publish::assign::BucketAssignment;
use crate::publish::partition::{MedianSplit, NoAnnotations, RowWeights};

/// A column of numbers, where 0 is a missing value.
fn column(values: &[u32]) -> Column {
    let distinct: Vec<u32> = values.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
    let mut arena = Arena::default();
    distinct.iter().filter(|value| **value > 0).for_each(|value| arena.push(value.to_string().as_bytes()));
    let codes: Vec<u32> = values.iter().map(|value| distinct.binary_search(value).unwrap() as u32).collect();
    let domain = Domain::from_sorted(AttributeType::Integer, distinct.first() == Some(&0), arena);
    Column { domain: Arc::new(domain), codes: Codes::collect(distinct.len(), codes.into_iter()) }
}

fn table(rows: &[[u32; 4]]) -> Table {
    let columns = (0..4).map(|at| column(&rows.iter().map(|row| row[at]).collect::<Vec<_>>())).collect();
    Table::new((0..4).map(|at| format!("a{at}")).collect(), columns)
}

fn generalization(k: u64, guarantees: Vec<(Attr, Guarantee)>, split: MedianSplit) -> GeneralizationInput {
    GeneralizationInput {
        quasi_identifiers: AttrSet::first(2),
        k,
        guarantees,
        split,
        max_attempts: None,
        strata: None,
        weights: RowWeights::default(),
    }
}

fn classes(generalization: &GeneralizationInput, table: &Table) -> Result<BucketAssignment, GeneralizeError> {
    generalization.classes(table, &NoAnnotations, &Control::default())
}

fn guarantees() -> impl Strategy<Value = Vec<(Attr, Guarantee)>> {
    let ratio = |a, b| Ratio::new(a, b).unwrap();
    let guarantee = prop_oneof![
        (1u64..4).prop_map(|l| Guarantee::LDiversity { l }),
        (1u64..4).prop_map(|l| Guarantee::DistinctLDiversity { l }),
        (1u64..4).prop_map(move |l| Guarantee::EntropyLDiversity { l: ratio(l, 1) }),
        (1u64..4).prop_map(move |l| Guarantee::RecursiveLDiversity { c: ratio(2, 1), l }),
        (1u64..4).prop_map(move |k| Guarantee::AlphaK { alpha: ratio(2, 3), k }),
        (2u64..9).prop_map(move |t| Guarantee::TCloseness {
            t: ratio(t, 10),
            distance: ValueDistance::Ordered,
            reference: Default::default()
        }),
    ];
    prop::collection::vec((2u8..4, guarantee).prop_map(|(attr, guarantee)| (Attr(attr), guarantee)), 0..3)
}

proptest! {
    #[test]
    fn rows_that_stand_for_several_are_in_the_classes_of_these(
        rows in prop::collection::vec([0u32..6, 0u32..4, 1u32..4, 1u32..3], 1..80),
        k in 1u64..6, guarantees in guarantees(),
    ) {
        let mut cells: BTreeMap<[u32; 4], u64> = BTreeMap::new();
        rows.iter().for_each(|row| *cells.entry(*row).or_default() += 1);
        let distinct: Vec<[u32; 4]> = cells.keys().copied().collect();
        let each = generalization(k, guarantees, MedianSplit::Strict);
        let several = GeneralizationInput { weights: RowWeights::new(cells.into_values().collect()), ..each.clone() };
        match (classes(&each, &table(&rows)), classes(&several, &table(&distinct))) {
            (Ok(of_rows), Ok(of_cells)) => {
                let class = |row| of_cells.bucket_of[distinct.binary_search(row).unwrap()];
                prop_assert_eq!(of_rows.bucket_of, rows.iter().map(class).collect::<Vec<_>>());
            }
            (of_rows, of_cells) => prop_assert_eq!(of_rows.err(), of_cells.err()),
        }
    }
}

proptest! {
    #[test]
    fn classes_keep_what_is_asked_and_cells_cover_them(
        rows in prop::collection::vec([0u32..7, 0u32..4, 1u32..5, 1u32..4], 1..50),
        k in 1u64..6, guarantees in guarantees(), strict: bool,
    ) {
        let table = table(&rows);
        let split = if strict { MedianSplit::Strict } else { MedianSplit::Relaxed };
        let generalization = generalization(k, guarantees, split);
        let whole = |&(attr, guarantee): &(Attr, Guarantee)| {
            let population = OverallCounts::new(table.column(attr).counts());
            privacy::holds(guarantee, &population.as_bucket(), &population)
        };
        let made = match classes(&generalization, &table) {
            Ok(made) => made,
            Err(GeneralizeError::TooFewRows { rows: few }) => {
                prop_assert!(few == rows.len() as u64 && few < k);
                return Ok(());
            }
            Err(GeneralizeError::NotKept(index)) => {
                prop_assert_eq!(generalization.guarantees.iter().position(|kept| !whole(kept)), Some(index));
                return Ok(());
            }
            Err(error) => panic!("{error}"),
        };
        let mut members = vec![Vec::new(); made.buckets as usize];
        made.bucket_of.iter().enumerate().for_each(|(row, &class)| members[class as usize].push(row));
        for rows in &members {
            prop_assert!(rows.len() as u64 >= k);
            for &(attr, guarantee) in &generalization.guarantees {
                let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
                rows.iter().for_each(|&row| *counts.entry(table.column(attr).codes.get(row)).or_default() += 1);
                let counts: Vec<(u32, u64)> = counts.into_iter().collect();
                prop_assert!(privacy::holds(guarantee, &counts, &OverallCounts::new(table.column(attr).counts())));
            }
        }
        for attr in [Attr(0), Attr(1)] {
            let column = table.column(attr);
            let (intervals, sets) = (intervals(column, &Axis::from_domain(&column.domain), &made), sets(column, &made));
            let nodes = nodes(column, &made, &Halves);
            for (class, rows) in members.iter().enumerate() {
                let codes: BTreeSet<u32> = rows.iter().map(|&row| column.codes.get(row)).collect();
                prop_assert_eq!(&sets[class], &codes.iter().copied().collect::<Vec<_>>());
                let missing = column.domain.has_missing() && codes.contains(&0);
                let present = || codes.iter().copied().filter(|&code| code > 0 || !column.domain.has_missing());
                let ends = present().min().zip(present().max());
                prop_assert_eq!(intervals[class], ClassInterval { ends, missing });
                prop_assert_eq!(nodes[class], Halves.covering(&sets[class]));
            }
        }
        if strict {
            // classes are boxes: no two of them overlap in every attribute
            let spans = |attr: Attr| {
                let codes = &table.column(attr).codes;
                members.iter().map(|rows| {
                    let of = || rows.iter().map(|&row| codes.get(row));
                    (of().min().unwrap(), of().max().unwrap())
                }).collect::<Vec<_>>()
            };
            let (first, second) = (spans(Attr(0)), spans(Attr(1)));
            let overlap = |a: (u32, u32), b: (u32, u32)| a.0 <= b.1 && b.0 <= a.1;
            for a in 0..members.len() {
                for b in 0..a {
                    prop_assert!(!overlap(first[a], first[b]) || !overlap(second[a], second[b]));
                }
            }
        }
    }
}

/// Codes 0 to 3 under node 1, others under node 2, all under node 0.
struct Halves;

impl ValueTree for Halves {
    fn covering(&self, codes: &[u32]) -> u32 {
        match (codes.iter().any(|&code| code < 4), codes.iter().any(|&code| code >= 4)) {
            (true, false) => 1,
            (false, true) => 2,
            _ => 0,
        }
    }
}

#[test]
fn four_rows_make_two_classes_of_two() {
    let table = table(&[[1, 1, 1, 1], [2, 1, 2, 1], [8, 1, 1, 1], [9, 1, 2, 1]]);
    let kept = vec![(Attr(2), Guarantee::LDiversity { l: 2 })];
    let made = classes(&generalization(2, kept, MedianSplit::Strict), &table).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(made.bucket_of, [0, 0, 1, 1]);
    let column = table.column(Attr(0));
    let cells = intervals(column, &Axis::from_domain(&column.domain), &made);
    assert_eq!(cells.iter().map(|cell| cell.ends).collect::<Vec<_>>(), [Some((0, 1)), Some((2, 3))]);
    let empty = table.reordered(&[]);
    assert_eq!(
        classes(&generalization(1, Vec::new(), MedianSplit::Strict), &empty).err(),
        Some(GeneralizeError::Empty)
    );
}
