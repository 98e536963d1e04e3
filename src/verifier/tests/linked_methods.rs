//! Faults planted in tables of each method whose adversary knows a dependency: the check of dependencies catches them.

use std::collections::BTreeMap;

use super::dependencies::{AGE, CHAPTER, DX, one, pairs, people};
use super::fixture::{Cell, VerifierFixture, failed, guard, rule};
use crate::microdata::{Attr, AttrSet};
use crate::publication::{
    BreachKind, CellContent, DecompositionDetails, EnforcedBy, InferableBucket, MethodDetails, Protected, SizeCount,
    SlicedDiversity, SubmittedRule, TableGuard, TableName, TableProtection, Thresholds,
};
use crate::verifier::contract::checks::CheckName;

/// Who knows age and chapter does not infer the diagnosis, which determines the chapter.
fn linked() -> VerifierFixture {
    let mut fixture = VerifierFixture::new(&["age", "chapter", "dx"], people(0));
    fixture.dependencies = vec![(one(DX), one(CHAPTER))];
    fixture
}

fn hold(mut fixture: VerifierFixture, method_details: MethodDetails) -> VerifierFixture {
    fixture.publication.method_details = method_details;
    let submitted = SubmittedRule { pointer: "/method".to_owned(), ..rule(0, &[AGE, CHAPTER], DX, 2) };
    fixture.hold(submitted, EnforcedBy::Table(TableName::at(0)));
    fixture
}

/// Buckets of two, inside the groups of a column or over the whole table, with what the guard claims of them.
fn bucketized(inside: Option<u8>) -> VerifierFixture {
    let mut fixture = linked();
    let constant = inside.map_or(AttrSet::EMPTY, one);
    let labels = pairs(&fixture.original, inside);
    let guards = vec![TableGuard { constant, ..guard(&[AGE, CHAPTER], Protected::Attribute(Attr(DX)), 2) }];
    fixture.bucketized(&[AGE, CHAPTER], &[("sa", &[DX])], guards, labels);
    fixture
}

fn with_thresholds(inside: Option<u8>) -> VerifierFixture {
    let setting = vec![SizeCount { size: 2, buckets: 120 }];
    let thresholds = Thresholds::Uniform { l: 2 };
    hold(bucketized(inside), MethodDetails::Bucketize { thresholds, setting, loss: 120, lower_bound: None })
}

fn columns(diversity: SlicedDiversity) -> MethodDetails {
    MethodDetails::Slicing { columns: vec![one(AGE).union(one(CHAPTER)), one(DX)], diversity, column_k: None }
}

fn sliced(inside: Option<u8>) -> VerifierFixture {
    hold(bucketized(inside), columns(SlicedDiversity::Bucket))
}

fn mixed(inside: Option<u8>) -> VerifierFixture {
    let mut fixture = bucketized(inside);
    fixture.publication.tables[0].protection = TableProtection::Exclusive;
    hold(fixture, columns(SlicedDiversity::Mixture))
}

/// One class for each interval of chapters.
fn generalized(chapters: &[&str]) -> VerifierFixture {
    let mut fixture = linked();
    let row = |row: &Vec<Cell>| {
        let chapter = row[1].as_deref().expect("a chapter");
        let cell = chapters.iter().find(|cell| {
            let (first, last) = cell.split_once("..").expect("an interval");
            (first..=last).contains(&chapter)
        });
        vec![Some("20..39".to_owned()), cell.map(|cell| (*cell).to_owned()), row[2].clone()]
    };
    let mut rows: Vec<Vec<Cell>> = fixture.original.iter().map(row).collect();
    rows.sort();
    fixture.rows_with(&[CellContent::Interval, CellContent::Interval, CellContent::Exact], rows);
    hold(fixture, MethodDetails::None)
}

fn decomposed(inside: Option<u8>) -> VerifierFixture {
    let mut fixture = linked();
    let labels = pairs(&fixture.original, inside);
    fixture.decomposed(&[AGE, CHAPTER], &[DX], &[], labels);
    let details = DecompositionDetails {
        primary: Attr(DX),
        l: BTreeMap::from([(Attr(DX), 2)]),
        noisy: AttrSet::EMPTY,
        bounded: one(DX),
        repeat_free: BTreeMap::new(),
        breach_counts: BreachKind::ALL.into_iter().map(|kind| (kind, 0)).collect(),
        first: Vec::new(),
    };
    hold(fixture, MethodDetails::Decompose(details))
}

#[test]
fn buckets_inside_strata_pass_for_every_method() {
    for (method, fixture) in
        [("bucketize", with_thresholds as fn(_) -> _), ("slicing", sliced), ("decompose", decomposed)]
    {
        for (original, witness) in [(true, true), (true, false), (false, false)] {
            assert_eq!(failed(&fixture(Some(CHAPTER)).verify_with(original, witness)), [], "{method}");
        }
    }
}

#[test]
fn buckets_of_several_strata_are_found_for_every_method() {
    for (method, fixture) in
        [("bucketize", with_thresholds as fn(_) -> _), ("slicing", sliced), ("decompose", decomposed)]
    {
        for (original, witness) in [(true, true), (true, false), (false, false)] {
            let report = fixture(None).verify_with(original, witness);
            assert_eq!(failed(&report), [CheckName::Dependencies], "{method}: {report:#?}");
        }
        // it is the dependency that they are at fault with
        let mut unknown = fixture(None);
        unknown.dependencies.clear();
        assert_eq!(failed(&unknown.verify()), [], "{method}");
    }
}

#[test]
fn classes_of_several_strata_are_found() {
    let guarding = |mut fixture: VerifierFixture| {
        let guards = vec![guard(&[AGE, CHAPTER], Protected::Attribute(Attr(DX)), 2)];
        fixture.publication.tables[0].protection = TableProtection::Guarding(guards);
        fixture
    };
    let constant = |mut fixture: VerifierFixture| {
        let TableProtection::Guarding(guards) = &mut fixture.publication.tables[0].protection else {
            panic!("a guard")
        };
        guards[0].constant = one(CHAPTER);
        fixture
    };
    let (apart, across) = (&["c0..c0", "c1..c1", "c2..c2"], &["c0..c1", "c2..c2"]);
    for original in [true, false] {
        for fixture in [generalized(apart), constant(guarding(generalized(apart)))] {
            let report = fixture.verify_with(original, false);
            assert_eq!(failed(&report), [], "{report:#?}");
        }
        // also where the list of constant attributes is shortened, or claims what cells of two values do not show
        for fixture in [
            generalized(across),
            guarding(generalized(across)),
            guarding(generalized(apart)),
            constant(guarding(generalized(across))),
        ] {
            let report = fixture.verify_with(original, false);
            assert_eq!(failed(&report), [CheckName::Dependencies], "{report:#?}");
        }
    }
}

#[test]
fn links_across_mixed_columns_are_found() {
    for inside in [Some(CHAPTER), None] {
        assert_eq!(failed(&mixed(inside).verify()), [CheckName::Dependencies]);
        let mut unknown = mixed(inside);
        unknown.dependencies.clear();
        assert_eq!(failed(&unknown.verify()), []);
    }
}

/// Two wards of four units each; a bucket has four diagnoses and the units of its ward.
fn units(noise: &[(u8, u32, &str)]) -> VerifierFixture {
    const UNIT: Attr = Attr(3);
    let row = |i: usize| {
        let (ward, unit) = (i / 8, i / 8 * 4 + i % 4);
        [format!("{}", 20 + i), format!("w{ward}"), format!("d{}", i % 4), format!("u{unit}")].map(Some).to_vec()
    };
    let mut fixture = VerifierFixture::new(&["age", "ward", "dx", "unit"], (0..16).map(row).collect());
    fixture.dependencies = vec![(AttrSet::one(UNIT), one(1))];
    fixture.decomposed(&[0, 1], &[2, 3], noise, (0..16).map(|i| i / 4 + 1).collect());
    for (place, attr) in [2, 3].into_iter().enumerate() {
        let submitted = SubmittedRule { pointer: format!("/method/sensitive/{place}"), ..rule(0, &[0, 1], attr, 4) };
        fixture.hold(submitted, EnforcedBy::Table(TableName::at(0)));
    }
    let chain = |bucket| InferableBucket { bucket, attribute: UNIT, kind: BreachKind::Chain };
    let count = |kind| if kind == BreachKind::Chain { 4 } else { 0 };
    fixture.publication.method_details = MethodDetails::Decompose(DecompositionDetails {
        primary: Attr(2),
        l: BTreeMap::from([(Attr(2), 4), (UNIT, 4)]),
        noisy: if noise.is_empty() { AttrSet::EMPTY } else { AttrSet::one(UNIT) },
        bounded: AttrSet::one(Attr(2)).with(UNIT),
        repeat_free: BTreeMap::from([(UNIT, (4, 4))]),
        breach_counts: BreachKind::ALL.into_iter().map(|kind| (kind, count(kind))).collect(),
        first: (1..=4).map(chain).collect(),
    });
    fixture
}

#[test]
fn noise_of_another_stratum_is_found() {
    assert_eq!(failed(&units(&[]).verify()), []);
    // two buckets lend each other a unit that no row of theirs can have
    let noise = [(3, 1, "u7"), (3, 3, "u3")];
    let report = units(&noise).verify();
    assert_eq!(failed(&report), [CheckName::Dependencies], "{report:#?}");
    let mut unknown = units(&noise);
    unknown.dependencies.clear();
    assert_eq!(failed(&unknown.verify()), []);
}
