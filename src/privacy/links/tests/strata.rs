//! Strata against a partition by definition.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::*;
use super::data::{bits, set, table};
use crate::control::Control;
use crate::microdata::{Attr, AttrSet, ColumnAnnotations};
use crate::privacy::guarantee::{OverallCounts, holds};
use crate::publication::{Guarantee, Ratio, Reference, ValueDistance};

fn guarantees() -> [Guarantee; 5] {
    [
        Guarantee::LDiversity { l: 2 },
        Guarantee::DistinctLDiversity { l: 3 },
        Guarantee::EntropyLDiversity { l: Ratio::new(9, 5).unwrap() },
        Guarantee::TCloseness {
            t: Ratio::new(1, 2).unwrap(),
            distance: ValueDistance::Ordered,
            reference: Default::default(),
        },
        Guarantee::KAnonymity { k: 100 },
    ]
}

fn small_rows() -> impl Strategy<Value = Vec<Vec<u32>>> {
    prop::collection::vec((0..3_u32, 0..2_u32, 0..4_u32).prop_map(|(a, b, c)| vec![a, b, c]), 1..40)
}

proptest! {
    /// The guarantee of a stratum is that of its rows as one bucket.
    #[test]
    fn strata_are_eligible_where_their_rows_are(
        rows in small_rows(),
        attributes in 0..4_u8,
        protects in prop::sample::select(vec![4_u8, 5, 6]),
        excluded in any::<bool>(),
    ) {
        let mut table = table(&rows);
        if excluded {
            table = table.on(Attr(2), ColumnAnnotations::without(vec![0]));
        }
        let (attributes, protects) = (bits(attributes), bits(protects));
        let value = |row: &[u32], attrs: AttrSet| attrs.iter().map(|attr| row[attr.index()]).collect::<Vec<_>>();
        let mut codes: Vec<Vec<u32>> = rows.iter().map(|row| value(row, protects)).collect();
        codes.sort();
        codes.dedup();
        let code = |row: &[u32]| codes.binary_search(&value(row, protects)).unwrap();
        let mut whole = vec![0; codes.len()];
        rows.iter().for_each(|row| whole[code(row)] += 1);
        let annotations = if protects.len() == 1 { table.annotations(Attr(2)).clone() } else { Default::default() };
        let population = OverallCounts::new(whole).on(annotations);
        let mut strata: BTreeMap<Vec<u32>, BTreeMap<u32, u64>> = BTreeMap::new();
        for row in &rows {
            let counts = strata.entry(value(row, attributes)).or_default();
            *counts.entry(code(row) as u32).or_insert(0) += 1;
        }
        let control = Control::default();
        for guarantee in guarantees() {
            let demand = StratumDemand { protects, guarantee, reference: Reference::Table };
            let mut tests = StrataTests::new(&table, &[demand], &control);
            let tested = tests.test(attributes).unwrap();
            let bad = (0..).zip(strata.values()).filter(|(_, counts)| {
                let bucket: Vec<(u32, u64)> = counts.iter().map(|(&code, &count)| (code, count)).collect();
                !matches!(guarantee, Guarantee::KAnonymity { .. }) && !holds(guarantee, &bucket, &population)
            });
            prop_assert_eq!(&tested.ineligible, &bad.map(|(stratum, _)| stratum).collect::<Vec<u32>>());
            prop_assert_eq!(tested.of, strata.len());
        }
        // the largest diversity is the largest that every stratum satisfies
        let demand = |l| [StratumDemand { protects, guarantee: Guarantee::LDiversity { l }, reference: Reference::Table }];
        let mut tests = StrataTests::new(&table, &demand(2), &control);
        let l = tests.test(attributes).unwrap().largest_l.unwrap();
        for (l, expected) in [(l, true), (l + 1, false)] {
            if l > 0 {
                let mut tests = StrataTests::new(&table, &demand(l), &control);
                prop_assert_eq!(tests.test(attributes).unwrap().is_eligible(), expected, "{}", l);
            }
        }
    }

    #[test]
    fn split_lists_every_row_of_its_stratum_once(rows in small_rows(), attributes in 0..8_u8) {
        let strata = Strata::new(&table(&rows), bits(attributes));
        let groups = strata.split();
        let mut seen = vec![false; rows.len()];
        for ((stratum, group), &size) in (0..).zip(groups.iter()).zip(strata.sizes()) {
            prop_assert!(group.is_sorted());
            prop_assert_eq!(group.len(), size as usize);
            for &row in group {
                prop_assert_eq!(strata.of_row()[row as usize], stratum);
                prop_assert!(!std::mem::replace(&mut seen[row as usize], true));
            }
        }
        prop_assert!(seen.into_iter().all(|seen| seen));
    }
}

#[test]
fn strata_of_wide_domains_keep_the_order_of_values() {
    // more combinations than are ranked by an array
    let rows: Vec<Vec<u32>> = (0..400_u32).map(|row| vec![10_000 + row * 7 % 397, 10_000 + row * 11 % 389]).collect();
    let table = table(&rows);
    let strata = Strata::new(&table, set(&[0, 1]));
    let mut sorted = rows.clone();
    sorted.sort();
    sorted.dedup();
    let expected: Vec<u32> = rows.iter().map(|row| sorted.binary_search(row).unwrap() as u32).collect();
    assert_eq!(strata.of_row(), expected);
    assert!(Strata::new(&super::data::table(&[]), AttrSet::EMPTY).is_empty());
}

#[test]
fn a_stratum_is_at_no_distance_from_itself() {
    // the protected value determines the stratum, so both are far from the table
    let table = table(&(0..20).map(|row| vec![row / 10, row / 2]).collect::<Vec<_>>());
    let guarantee = Guarantee::TCloseness {
        t: Ratio::new(1, 5).unwrap(),
        distance: ValueDistance::Equal,
        reference: Default::default(),
    };
    let control = Control::default();
    let eligible = |reference| {
        let demand = StratumDemand { protects: set(&[1]), guarantee, reference };
        StrataTests::new(&table, &[demand], &control).test(set(&[0])).unwrap().is_eligible()
    };
    assert!(!eligible(Reference::Table));
    assert!(eligible(Reference::Stratum));
}

#[test]
fn a_cancelled_test_of_strata_stops() {
    let control = Control::default();
    control.cancel();
    let table = table(&[vec![0, 1]]);
    let demand =
        StratumDemand { protects: set(&[1]), guarantee: Guarantee::LDiversity { l: 2 }, reference: Reference::Table };
    assert!(StrataTests::new(&table, &[demand], &control).test(set(&[0])).is_err());
}
