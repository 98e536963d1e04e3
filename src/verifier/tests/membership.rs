//! The membership attack on the table of [Li et al. 2012], and on random tables, compared with all combinations of
//! rows.

use std::collections::{BTreeMap, BTreeSet};

use ahash::AHashMap;
use proptest::prelude::*;

use super::external_overlapping::{COVERS, buckets, given, original as rows_of};
use super::fixture::{Cell, column};
use crate::control::Control;
use crate::microdata::{Attr, AttrSet, Column};
use crate::publication::RowMeaning;
use crate::verifier::attack::membership::join::PartJoin;
use crate::verifier::attack::membership::members::members;
use crate::verifier::attack::membership::part_tuples::{PartTuples, in_turn};
use crate::verifier::attack::membership::report::MembershipError;
use crate::verifier::attack::membership::sampling::drawn;
use crate::verifier::external::table::{ExternalPart, ExternalTable};

/// The table of [Li et al. 2012, Table 1].
const ROWS: [[&str; 4]; 8] = [
    ["22", "M", "47906", "dyspepsia"],
    ["22", "F", "47906", "flu"],
    ["33", "F", "47905", "flu"],
    ["52", "F", "47905", "bronchitis"],
    ["54", "M", "47302", "flu"],
    ["60", "M", "47302", "dyspepsia"],
    ["60", "M", "47304", "dyspepsia"],
    ["64", "F", "47304", "gastritis"],
];

fn cells(attr: usize) -> Vec<Cell> {
    ROWS.iter().map(|row| Some(row[attr].to_owned())).collect()
}

fn table(parts: &[&[usize]]) -> (ExternalTable, Vec<(Attr, Column)>) {
    let bucket: Vec<Cell> = (0..8).map(|row| Some((row / 4 + 1).to_string())).collect();
    let part = |attrs: &&[usize]| ExternalPart {
        name: String::new(),
        meaning: RowMeaning::Tuples,
        rows: 8,
        bucket: Some(column(&bucket)),
        columns: attrs.iter().map(|&attr| (Attr::from(attr), column(&cells(attr)))).collect(),
        cells: std::collections::BTreeMap::new(),
    };
    let original = (0..4).map(|attr| (Attr::from(attr), column(&cells(attr)))).collect();
    (ExternalTable { name: "t1".to_owned(), parts: parts.iter().map(part).collect() }, original)
}

fn fakes(parts: &[&[usize]]) -> (f64, f64) {
    let (table, original) = table(parts);
    let original: Vec<(Attr, &Column)> = original.iter().map(|(attr, column)| (*attr, column)).collect();
    let found = members(&table, &original, AttrSet::one(Attr(3)), &Control::default()).expect("done").expect("found");
    assert!(found.fake_full.exact && found.fake_qi.exact);
    assert_eq!((found.rows, found.originals), ([8, 0, 0], [8, 0, 0]));
    assert_eq!(found.fakes[0].value, found.fake_full.value);
    (found.fake_full.value, found.fake_qi.value)
}

#[test]
fn members_tables_of_the_paper_matches_its_fakes() {
    assert_eq!(fakes(&[&[0, 1], &[2, 3]]), (20.0, 6.0));
    assert_eq!(fakes(&[&[0], &[1], &[2], &[3]]), (64.0, 16.0));
    assert_eq!(fakes(&[&[0, 1, 2], &[3]]), (16.0, 0.0));
}

#[test]
fn drawn_estimate_is_near_the_exact_count() {
    let (table, original) = table(&[&[0], &[1], &[2], &[3]]);
    let original: Vec<(Attr, &Column)> = original.iter().map(|(attr, column)| (*attr, column)).collect();
    let labels: AHashMap<Option<&[u8]>, u32> =
        table.parts[0].bucket.as_ref().expect("buckets").domain.iter().zip(0..).collect();
    let parts: Vec<PartTuples> = table
        .parts
        .iter()
        .map(|part| PartTuples::new(part, &original, AttrSet::first(4), &labels, 1).expect("a part"))
        .collect();
    let joined = PartJoin::new(in_turn(parts), AttrSet::EMPTY, 1);
    let drawn = drawn(&joined, 2, &Control::default()).expect("done");
    assert!((drawn[0].value - 72.0).abs() <= 5.0 * drawn[0].standard_error.max(1e-9), "{drawn:?}");
    assert!(!drawn[0].exact);
}

#[test]
fn members_table_of_other_rows_is_none() {
    let (mut table, original) = table(&[&[0, 1], &[2, 3]]);
    let original: Vec<(Attr, &Column)> = original.iter().map(|(attr, column)| (*attr, column)).collect();
    let mut other = cells(0);
    other[0] = Some("23".to_owned());
    table.parts[0].columns[0].1 = column(&other);
    assert_eq!(members(&table, &original, AttrSet::one(Attr(3)), &Control::default()).expect("done"), None);
}

/// For each bucket, the tuples of all attributes that it might hold: the agreeing combinations of one row of each
/// column.
fn held(codes: &[[u32; 4]], bucket: &[usize], columns: &[&[u8]]) -> BTreeSet<BTreeMap<u8, u32>> {
    let mut held: BTreeSet<BTreeMap<u8, u32>> = BTreeSet::from([BTreeMap::new()]);
    for column in columns {
        let mut more = BTreeSet::new();
        for known in &held {
            for &row in bucket {
                let mut known = known.clone();
                let of_row = column.iter().map(|&attr| (attr, codes[row][usize::from(attr)]));
                if of_row.into_iter().all(|(attr, value)| *known.entry(attr).or_insert(value) == value) {
                    more.insert(known);
                }
            }
        }
        held = more;
    }
    held
}

const CIRCLE: &[&[u8]] = &[&[0, 1], &[1, 2], &[0, 2], &[2, 3]];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn overlapping_columns_hold_the_join_of_their_rows(
        rows in prop::collection::vec((0u32..3, 0u32..3, 0u32..2, 0u32..3, 0usize..2), 1..9),
        cover in 0..COVERS.len() + 1,
    ) {
        let columns = *COVERS.get(cover).unwrap_or(&CIRCLE);
        let (codes, buckets) = buckets(&rows);
        let (table, original) = (given(&codes, columns, &rows), rows_of(&codes));
        let present = table.attributes();
        let read: Vec<(Attr, &Column)> =
            original.columns.iter().filter(|(attr, _)| present.contains(*attr)).map(|(attr, column)| (*attr, column)).collect();
        let protected = AttrSet::one(Attr(3));
        let found = members(&table, &read, protected, &Control::default()).unwrap().unwrap();

        let of_buckets: Vec<BTreeSet<BTreeMap<u8, u32>>> =
            buckets.iter().map(|bucket| held(&codes, bucket, columns)).collect();
        let all: BTreeSet<&BTreeMap<u8, u32>> = of_buckets.iter().flatten().collect();
        let without = |tuple: &BTreeMap<u8, u32>| {
            let mut tuple = tuple.clone();
            tuple.remove(&3);
            tuple
        };
        let row = |row: &[u32; 4]| present.iter().map(|attr| (attr.0, row[attr.index()])).collect::<BTreeMap<u8, u32>>();
        let originals: BTreeSet<BTreeMap<u8, u32>> = codes.iter().map(row).collect();
        let known: BTreeSet<BTreeMap<u8, u32>> = all.iter().map(|tuple| without(tuple)).collect();
        let of_originals: BTreeSet<BTreeMap<u8, u32>> = originals.iter().map(&without).collect();
        prop_assert!(found.fake_full.exact && found.fake_qi.exact);
        prop_assert_eq!(found.fake_full.value as usize, all.len() - originals.len());
        prop_assert_eq!(found.fake_qi.value as usize, known.len() - of_originals.len());
        prop_assert_eq!((found.rows[0] as usize, found.originals[0] as usize), (codes.len(), originals.len()));

 // the same by sampling
        for (shown, hidden, wanted) in [
            (present, AttrSet::EMPTY, all.len()),
            (present.minus(protected), protected.intersection(table.repeated()), known.len()),
        ] {
            let labels: AHashMap<Option<&[u8]>, u32> =
                table.parts[0].bucket.as_ref().unwrap().domain.iter().zip(0..).collect();
            let used = table.parts.iter().filter(|part| part.attributes().meets(shown.union(hidden)));
            let parts = used.map(|part| PartTuples::new(part, &read, shown.union(hidden), &labels, 1).unwrap()).collect();
            let joined = PartJoin::new(in_turn(parts), hidden, 1);
            match drawn(&joined, labels.len(), &Control::default()) {
                Ok(drawn) => {
                    let error = drawn[0].standard_error.max(1e-9);
                    prop_assert!((drawn[0].value - wanted as f64).abs() <= 6.0 * error, "{:?} {}", drawn, wanted);
                }
                Err(why) => prop_assert!(why == MembershipError::Circle && cover == COVERS.len()),
            }
        }
    }
}

/// The number of matching buckets reveals a row in another bucket.
#[test]
fn members_shared_attribute_reduces_matches() {
    let rows: Vec<(u32, u32, u32, u32, usize)> = (0..8).map(|row| (row % 4, row % 2, 0, row / 4, 0)).collect();
    let (codes, _) = buckets(&rows);
    let original = rows_of(&codes);
    let read: Vec<(Attr, &Column)> = original.columns.iter().map(|(attr, column)| (*attr, column)).collect();
    let fakes = |columns: &[&[u8]]| {
        let found = members(&given(&codes, columns, &rows), &read, AttrSet::one(Attr(3)), &Control::default());
        found.unwrap().unwrap().fake_full.value
    };
    // a determines b; where both columns hold b, the joins are the rows
    assert_eq!((fakes(&[&[0, 1], &[1, 2, 3]]), fakes(&[&[0, 1], &[2, 3]])), (0.0, 0.0));
    assert_eq!((fakes(&[&[0], &[1, 2, 3]]), fakes(&[&[0, 1, 2], &[3]])), (8.0, 0.0));
}
