//! Closed strata: each bucket without a bound is a whole stratum that breaks the guarantee by itself.

use super::fixture::{Cell, VerifierFixture, failed, guard, guardian, rule};
use crate::microdata::{Attr, AttrSet};
use crate::publication::{Protected, TableGuard, TableProtection};
use crate::verifier::contract::checks::{CheckName, ClosedBuckets};
use crate::verifier::definition::share::ShareOfRows;

const AGE: u8 = 0;
const CHAPTER: u8 = 1;
const DX: u8 = 2;

/// Six diagnoses in chapters of two, four, and one: twelve rows each.
fn people() -> Vec<Vec<Cell>> {
    let row = |i: usize| {
        let (age, dx) = (i / 7, i % 7);
        let chapter = [0, 0, 1, 1, 1, 1, 2][dx];
        vec![Some((20 + age).to_string()), Some(format!("c{chapter}")), Some(format!("d{dx}"))]
    };
    (0..84).map(row).collect()
}

/// Buckets of two diagnoses in the first chapter, of four in the second, and one bucket of all rows of the third.
fn labels(rows: &[Vec<Cell>]) -> Vec<u32> {
    let label = |(at, row): (usize, &Vec<Cell>)| match row[CHAPTER as usize].as_deref() {
        Some("c0") => 1 + at as u32 / 7,
        Some("c1") => 13 + at as u32 / 7,
        _ => 25,
    };
    rows.iter().enumerate().map(label).collect()
}

fn published(labels: Vec<u32>) -> VerifierFixture {
    let mut fixture = VerifierFixture::new(&["age", "chapter", "dx"], people());
    fixture.searched = true;
    fixture.closes = true;
    fixture.dependencies = vec![(AttrSet::one(Attr(DX)), AttrSet::one(Attr(CHAPTER)))];
    let constant = AttrSet::one(Attr(CHAPTER));
    let of_dx = guard(&[AGE, CHAPTER], Protected::Attribute(Attr(DX)), 2);
    let guards = vec![TableGuard { constant, closes: true, ..of_dx }];
    fixture.bucketized(&[AGE, CHAPTER], &[("sa", &[DX])], guards, labels);
    fixture.hold(rule(0, &[AGE, CHAPTER], DX, 2), guardian("t1", &[AGE, CHAPTER]));
    fixture
}

fn guard_of(fixture: &mut VerifierFixture) -> &mut TableGuard {
    match &mut fixture.publication.tables[0].protection {
        TableProtection::Guarding(guards) => &mut guards[0],
        TableProtection::Plain | TableProtection::Exclusive => panic!("a guarding table"),
    }
}

/// The failed checks with the original and the witness, with the original, and with the parts alone.
fn failed_by_input(fixture: &VerifierFixture) -> [Vec<CheckName>; 3] {
    [(true, true), (true, false), (false, false)]
        .map(|(original, witness)| failed(&fixture.verify_with(original, witness)))
}

#[test]
fn closed_buckets_that_are_whole_strata_pass() {
    let fixture = published(labels(&people()));
    assert_eq!(failed_by_input(&fixture), [const { Vec::new() }; 3]);
    let report = fixture.verify();
    let closed = report.tables[0].closed[&AttrSet::one(Attr(DX))];
    assert_eq!(closed, ClosedBuckets { buckets: 1, rows: 12, worst: Some(ShareOfRows::new(12, 12)) });
}

#[test]
fn closing_that_was_not_asked_for_is_found() {
    let mut fixture = published(labels(&people()));
    fixture.closes = false;
    assert_eq!(failed_by_input(&fixture), [const { [CheckName::Guarantee] }; 3].map(Vec::from));
    // a guard that closes nothing is broken by the same bucket
    fixture.closes = true;
    guard_of(&mut fixture).closes = false;
    assert_eq!(failed_by_input(&fixture), [const { [CheckName::Guarantee] }; 3].map(Vec::from));
}

#[test]
fn part_of_a_closed_stratum_is_found() {
    let mut parts = labels(&people());
    let place = parts.iter().position(|label| *label == 25).expect("a row of the third chapter");
    parts[place] = 26;
    assert_eq!(failed_by_input(&published(parts)), [const { [CheckName::Guarantee] }; 3].map(Vec::from));
}

#[test]
fn broken_bucket_in_an_eligible_stratum_is_found() {
    let rows = people();
    let mut broken = labels(&rows);
    // two buckets of the first chapter exchange rows, so that each has one diagnosis twice
    let place = |label: u32, dx: &str| {
        let is_it = |at: &usize| broken[*at] == label && rows[*at][DX as usize].as_deref() == Some(dx);
        (0..rows.len()).find(is_it).expect("a row")
    };
    let (one, other) = (place(1, "d0"), place(2, "d1"));
    broken.swap(one, other);
    assert_eq!(failed_by_input(&published(broken)), [const { [CheckName::Guarantee] }; 3].map(Vec::from));
}

#[test]
fn union_of_a_closed_stratum_with_another_is_found() {
    let merged: Vec<u32> = labels(&people()).into_iter().map(|label| if label > 12 { 13 } else { label }).collect();
    for failed in failed_by_input(&published(merged)) {
        assert!(failed.contains(&CheckName::Dependencies), "{failed:?}");
    }
}

#[test]
fn closed_strata_of_no_attribute_are_found() {
    let mut fixture = published(labels(&people()));
    guard_of(&mut fixture).constant = AttrSet::EMPTY;
    for failed in failed_by_input(&fixture) {
        assert!(failed.contains(&CheckName::Guarantee), "{failed:?}");
    }
}
