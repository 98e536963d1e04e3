//! Dependencies: what is listed, buckets inside strata, paths around guards, and the attack.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::fixture::{Cell, VerifierFixture, column, guard, guardian, rule, table};
use crate::control::Control;
use crate::microdata::{Attr, AttrSet};
use crate::publication::{Guarantee, Protected, RowMeaning, TableGuard, TableProtection};
use crate::verifier::attack::bucket::BucketAttackReport;
use crate::verifier::attack::dependency::find_by_dependencies;
use crate::verifier::attack::possible_worlds::count_worlds;
use crate::verifier::contract::checks::{CheckName, VerifierReport};
use crate::verifier::contract::input::{DeclaredSearch, VerifierInput};
use crate::verifier::definition::gnf::{LiteralStatus, LiteralTable, status};
use crate::verifier::definition::links::{LinkedTable, LinkedTables};
use crate::verifier::definition::share::ShareOfRows;
use crate::verifier::external::submission::Submission;
use crate::verifier::external::table::{ExternalPart, ExternalTable};
use crate::verifier::verify::verify;

pub(super) const AGE: u8 = 0;
pub(super) const CHAPTER: u8 = 1;
pub(super) const DX: u8 = 2;

pub(super) fn one(attr: u8) -> AttrSet {
    AttrSet::one(Attr(attr))
}

/// Twelve diagnoses in three chapters, each with twenty ages. The first `exceptions` rows stand in another chapter.
pub(super) fn people(exceptions: usize) -> Vec<Vec<Cell>> {
    let row = |i: usize| {
        let (age, dx) = (i / 12, i % 12);
        let chapter = if dx == 0 && age < exceptions { 1 } else { dx / 4 };
        vec![Some((20 + age).to_string()), Some(format!("c{chapter}")), Some(format!("d{dx:02}"))]
    };
    (0..240).map(row).collect()
}

/// Labels of pairs of rows with different diagnoses, inside the groups of a column or over the whole table.
pub(super) fn pairs(rows: &[Vec<Cell>], inside: Option<u8>) -> Vec<u32> {
    let mut groups: BTreeMap<Option<&Cell>, Vec<usize>> = BTreeMap::new();
    for (row, cells) in rows.iter().enumerate() {
        groups.entry(inside.map(|attr| &cells[attr as usize])).or_default().push(row);
    }
    let mut labels = vec![0; rows.len()];
    let mut next = 0;
    for mut group in groups.into_values() {
        group.sort_by_key(|&row| &rows[row][DX as usize]);
        let half = group.len() / 2;
        for place in 0..half {
            next += 1;
            (labels[group[place]], labels[group[place + half]]) = (next, next);
        }
    }
    // in an order that says nothing of the rows
    let mut order: Vec<u32> = (1..=next).collect();
    order.sort_by_key(|label| label * 7919 % 1009);
    labels.iter().map(|label| order[*label as usize - 1]).collect()
}

/// The diagnosis behind buckets that are constant in the chapter, which the rule knows.
fn strata(exceptions: usize) -> VerifierFixture {
    let rows = people(exceptions);
    let labels = pairs(&rows, Some(CHAPTER));
    published(rows, labels, one(CHAPTER))
}

fn published(rows: Vec<Vec<Cell>>, labels: Vec<u32>, constant: AttrSet) -> VerifierFixture {
    let mut fixture = VerifierFixture::new(&["age", "chapter", "dx"], rows);
    fixture.searched = true;
    fixture.dependencies = vec![(one(DX), one(CHAPTER))];
    let guards = vec![TableGuard { constant, ..guard(&[AGE, CHAPTER], Protected::Attribute(Attr(DX)), 2) }];
    fixture.bucketized(&[AGE, CHAPTER], &[("sa", &[DX])], guards, labels);
    fixture.hold(rule(0, &[AGE, CHAPTER], DX, 2), guardian("t1", &[AGE, CHAPTER]));
    fixture
}

/// The chapter stands in the column of the diagnosis, and the rule does not know it.
fn moved() -> VerifierFixture {
    let rows = people(0);
    let labels = pairs(&rows, None);
    let mut fixture = VerifierFixture::new(&["age", "chapter", "dx"], rows);
    fixture.searched = true;
    fixture.dependencies = vec![(one(DX), one(CHAPTER))];
    let guards = vec![guard(&[AGE], Protected::Attribute(Attr(DX)), 2)];
    fixture.bucketized(&[AGE], &[("sa", &[CHAPTER, DX])], guards, labels);
    fixture.hold(rule(0, &[AGE], DX, 2), guardian("t1", &[AGE]));
    fixture
}

/// The chapter stands in the column of the diagnosis, and the rule knows it: each chapter of a bucket keeps the guarantee.
fn in_one_part(labels: Vec<u32>, constant: AttrSet) -> VerifierFixture {
    let mut fixture = VerifierFixture::new(&["age", "chapter", "dx"], people(0));
    fixture.searched = true;
    fixture.dependencies = vec![(one(DX), one(CHAPTER))];
    let guards = vec![TableGuard { constant, ..guard(&[AGE, CHAPTER], Protected::Attribute(Attr(DX)), 2) }];
    fixture.bucketized(&[AGE], &[("sa", &[CHAPTER, DX])], guards, labels);
    fixture.hold(rule(0, &[AGE, CHAPTER], DX, 2), guardian("t1", &[AGE, CHAPTER]));
    fixture
}

fn failed(report: &VerifierReport) -> Vec<CheckName> {
    report.checks.iter().filter(|check| !check.passed).map(|check| check.check).collect()
}

/// The failed checks with the original and the witness, with the original, and with the parts alone.
fn failed_by_input(fixture: &VerifierFixture) -> [Vec<CheckName>; 3] {
    [(true, true), (true, false), (false, false)]
        .map(|(original, witness)| failed(&fixture.verify_with(original, witness)))
}

fn guard_of(fixture: &mut VerifierFixture) -> &mut TableGuard {
    match &mut fixture.publication.tables[0].protection {
        TableProtection::Guarding(guards) => &mut guards[0],
        TableProtection::Plain | TableProtection::Exclusive => panic!("a guarding table"),
    }
}

#[test]
fn buckets_inside_strata_pass_every_check() {
    for fixture in [strata(0), strata(2), moved()] {
        for (original, witness) in [(true, true), (true, false), (false, false)] {
            let report = fixture.verify_with(original, witness);
            assert!(report.verified(), "{report:#?}");
            assert!(report.checks.iter().any(|check| check.check == CheckName::Dependencies));
        }
    }
}

#[test]
fn values_in_the_protected_part_divide_buckets() {
    let rows = people(0);
    // two pairs of one chapter each, mostly of different ones
    let labels: Vec<u32> = pairs(&rows, Some(CHAPTER)).iter().map(|label| label.div_ceil(2)).collect();
    let buckets: BTreeMap<u32, Vec<&Cell>> = rows.iter().zip(&labels).fold(BTreeMap::new(), |mut all, (row, label)| {
        all.entry(*label).or_insert_with(Vec::new).push(&row[CHAPTER as usize]);
        all
    });
    assert!(buckets.values().any(|chapters| chapters.iter().any(|chapter| *chapter != chapters[0])));
    let none = [const { Vec::new() }; 3];
    assert_eq!(failed_by_input(&in_one_part(labels.clone(), one(CHAPTER))), none);
    // the link leads around a guard that does not name it
    assert_eq!(
        failed_by_input(&in_one_part(labels, AttrSet::EMPTY)),
        [const { [CheckName::Dependencies] }; 3].map(Vec::from)
    );
    // a chapter with one row in its bucket reveals it
    for failed in failed_by_input(&in_one_part(pairs(&rows, None), one(CHAPTER))) {
        assert!(failed.contains(&CheckName::Guarantee), "{failed:?}");
    }
}

#[test]
fn bucket_with_two_strata_is_found() {
    let rows = people(0);
    let mut labels = pairs(&rows, Some(CHAPTER));
    // a row of the first chapter and one of the last change places
    let place = |chapter: &str| rows.iter().position(|row| row[1].as_deref() == Some(chapter)).expect("a row");
    labels.swap(place("c0"), place("c2"));
    let fixture = published(rows, labels, one(CHAPTER));
    assert_eq!(failed_by_input(&fixture), [const { [CheckName::Dependencies] }; 3].map(Vec::from));
}

#[test]
fn stratum_below_the_bound_that_is_merged_is_found() {
    // one diagnosis in a chapter of its own, each row in a bucket of another chapter
    let mut rows = people(0);
    let labels = pairs(&rows, Some(CHAPTER));
    for row in rows.iter_mut().filter(|row| row[2].as_deref() == Some("d11")) {
        row[1] = Some("c3".to_owned());
    }
    for constant in [one(CHAPTER), AttrSet::EMPTY] {
        let fixture = published(rows.clone(), labels.clone(), constant);
        assert_eq!(failed_by_input(&fixture), [const { [CheckName::Dependencies] }; 3].map(Vec::from));
    }
}

#[test]
fn shortened_list_of_constant_attributes_is_found() {
    let mut fixture = strata(0);
    guard_of(&mut fixture).constant = AttrSet::EMPTY;
    assert_eq!(failed_by_input(&fixture), [const { [CheckName::Dependencies] }; 3].map(Vec::from));
}

#[test]
fn moved_attribute_on_the_row_side_is_found() {
    let rows = people(0);
    let labels = pairs(&rows, None);
    let mut fixture = VerifierFixture::new(&["age", "chapter", "dx"], rows);
    fixture.searched = true;
    fixture.dependencies = vec![(one(DX), one(CHAPTER))];
    let guards = vec![guard(&[AGE], Protected::Attribute(Attr(DX)), 2)];
    fixture.bucketized(&[AGE, CHAPTER], &[("sa", &[DX])], guards, labels);
    fixture.hold(rule(0, &[AGE], DX, 2), guardian("t1", &[AGE]));
    assert_eq!(failed_by_input(&fixture), [const { [CheckName::Dependencies] }; 3].map(Vec::from));
}

#[test]
fn moved_attribute_of_other_rows_is_found() {
    let mut fixture = moved();
    let sensitive = &mut fixture.files.get_mut("t1.sa.csv").expect("a part").rows;
    let chapter = sensitive[0].1[0].clone();
    let other = sensitive.iter().position(|row| row.1[0] != chapter).expect("another chapter");
    let swapped = std::mem::replace(&mut sensitive[other].1[0], chapter);
    sensitive[0].1[0] = swapped;
    fixture.settle("t1.sa.csv", &[CHAPTER, DX]);
    assert_eq!(failed(&fixture.verify()), [CheckName::Content]);
}

#[test]
fn forgotten_dependency_is_found() {
    // exact, and with two exceptions
    for exceptions in [0, 2] {
        let mut fixture = strata(exceptions);
        fixture.dependencies.clear();
        assert_eq!(failed(&fixture.verify()), [CheckName::Dependencies]);
        fixture.withdrawn = vec![(one(DX), one(CHAPTER))];
        assert_eq!(failed(&fixture.verify()), []);
    }
    // four exceptions are more than one row in a hundred
    let mut fixture = strata(4);
    fixture.dependencies.clear();
    assert_eq!(failed(&fixture.verify()), []);
}

#[test]
fn unused_dependency_that_is_not_listed_still_counts() {
    let rows = people(0);
    let labels = pairs(&rows, None);
    let mut fixture = published(rows, labels, AttrSet::EMPTY);
    fixture.dependencies.clear();
    let (original, parts) = (table(&fixture.names, &fixture.original), fixture.bytes());
    let input = fixture.input(&parts);
    let search = input.dependency_search.expect("a search");
    for lists_all in [true, false] {
        let dependency_search = Some(DeclaredSearch { lists_all, ..search });
        let input = VerifierInput { dependency_search, original: Some(&original), ..input };
        let report = verify(&input, &Control::default()).expect("a report");
        assert_eq!(failed(&report), [CheckName::Dependencies], "{report:#?}");
    }
}

#[test]
fn dependency_that_does_not_hold_is_found() {
    for false_one in [(one(CHAPTER), one(DX)), (one(AGE), one(CHAPTER)), (one(AGE).union(one(CHAPTER)), one(DX))] {
        let mut fixture = strata(0);
        fixture.dependencies.push(false_one);
        assert!(failed(&fixture.verify()).contains(&CheckName::Dependencies), "{false_one:?}");
    }
    // a key determines everything, and says nothing
    let mut fixture = strata(0);
    fixture.dependencies.push((one(AGE).union(one(DX)), one(CHAPTER)));
    assert_eq!(failed(&fixture.verify()), [CheckName::Dependencies]);
}

/// What the attack finds in the parts, which an adversary with the original reads.
fn attacked(fixture: &VerifierFixture) -> BucketAttackReport {
    let find = |submission: &Submission<'_>| find_by_dependencies(submission, &[(0, 0)], &Control::default());
    with_submission(fixture, find).expect("an answer")
}

fn with_submission<T>(fixture: &VerifierFixture, found: impl FnOnce(&Submission<'_>) -> T) -> T {
    let external = |part: &str, attributes: &[u8]| {
        let rows = &fixture.files[&format!("t1.{part}.csv")].rows;
        let cells = |at: usize| column(&rows.iter().map(|row| row.1[at].clone()).collect::<Vec<_>>());
        ExternalPart {
            name: part.to_owned(),
            meaning: RowMeaning::Tuples,
            rows: rows.len(),
            bucket: Some(column(&rows.iter().map(|row| Some(row.0.clone())).collect::<Vec<_>>())),
            columns: (0..).zip(attributes).map(|(at, attr)| (Attr(*attr), cells(at))).collect(),
            cells: BTreeMap::new(),
        }
    };
    let attributes = |part: usize| -> Vec<u8> {
        fixture.publication.tables[0].parts[part].columns.iter().map(|column| column.attribute.0).collect()
    };
    let tables = [ExternalTable {
        name: "t1".to_owned(),
        parts: vec![external("qi", &attributes(0)), external("sa", &attributes(1))],
    }];
    let cells = |at: usize| column(&fixture.original.iter().map(|row| row[at].clone()).collect::<Vec<_>>());
    let original = ExternalPart {
        name: "original".to_owned(),
        meaning: RowMeaning::Tuples,
        rows: fixture.original.len(),
        bucket: None,
        columns: (0..fixture.names.len()).map(|at| (Attr::from(at), cells(at))).collect(),
        cells: BTreeMap::new(),
    };
    let submission = Submission {
        tables: &tables,
        names: &fixture.names,
        rules: &fixture.submitted,
        dependencies: &fixture.dependencies,
        original: Some(&original),
        taxonomies: &[],
        thresholds: &[],
        exact: AttrSet::EMPTY,
    };
    found(&submission)
}

#[test]
fn worlds_keep_known_dependencies() {
    let worst = |fixture: &VerifierFixture| {
        let worlds = with_submission(fixture, |submission| count_worlds(submission, &Control::default()));
        let worlds = worlds.expect("an answer");
        assert!(worlds.possible);
        (worlds.worst, worlds.total > 0)
    };
    let of = |rows: [[&str; 3]; 4], dependencies: &[(AttrSet, AttrSet)]| {
        let rows = rows.map(|row| row.map(|cell| Some(cell.to_owned())).to_vec()).to_vec();
        let mut fixture = published(rows, vec![1, 1, 2, 2], AttrSet::EMPTY);
        fixture.dependencies = dependencies.to_vec();
        fixture
    };
    let inside = [["20", "c0", "d0"], ["21", "c0", "d1"], ["22", "c1", "d4"], ["23", "c1", "d5"]];
    // the second bucket shows the chapter of d0
    let across = [["20", "c0", "d0"], ["21", "c1", "d4"], ["22", "c0", "d0"], ["23", "c0", "d1"]];
    let known = [(one(DX), one(CHAPTER))];
    assert_eq!(worst(&of(inside, &known)), (Some(ShareOfRows::new(1, 2)), false));
    assert_eq!(worst(&of(across, &[])), (Some(ShareOfRows::new(1, 2)), false));
    assert_eq!(worst(&of(across, &known)), (Some(ShareOfRows::new(1, 1)), true));
    // a belief that no world keeps says nothing
    assert_eq!(worst(&of(across, &[(one(CHAPTER), one(DX))])), (Some(ShareOfRows::new(1, 2)), false));
}

#[test]
fn attack_breaks_buckets_over_the_whole_table_only() {
    let rows = people(0);
    let labels = pairs(&rows, None);
    let found = attacked(&published(rows, labels, AttrSet::EMPTY));
    assert_eq!(found.worst, Some(ShareOfRows::new(1, 1)));
    assert!(found.total > 100, "{}", found.total);
    assert_eq!(found.first.len(), 10);
    assert_eq!(found.first[0].posterior, ShareOfRows::new(1, 1));
    for fixture in [strata(0), strata(2), moved()] {
        let found = attacked(&fixture);
        assert_eq!((found.worst, found.total), (Some(ShareOfRows::new(1, 2)), 0));
    }
}

/// Tables of six attributes; a protected one stands behind buckets, and all others beside them.
fn schemas() -> impl Strategy<Value = Vec<(u8, Option<u8>)>> {
    prop::collection::vec((1_u8..64, prop::option::of(0_u8..6)), 1..4)
}

fn set(mask: u8) -> AttrSet {
    (0..6).filter(|attr| mask >> attr & 1 == 1).map(Attr).collect()
}

proptest! {
    /// Without links, the literal search agrees with that of Guardian Normal Form.
    #[test]
    fn paths_without_links_agree_with_gnf(schema in schemas(), known in 1_u8..64, sensitive in 0_u8..6) {
        let known = set(known).without(Attr(sensitive));
        prop_assume!(!known.is_empty());
        let guarantee = Guarantee::LDiversity { l: 2 };
        let guards: Vec<(AttrSet, Option<u8>, Vec<TableGuard>)> = schema
            .iter()
            .map(|&(mask, protects)| {
                let (all, protects) = (set(mask), protects.filter(|attr| set(mask).contains(Attr(*attr))));
                let guard = |attr: u8| {
                    TableGuard::new(all.without(Attr(attr)), Protected::Attribute(Attr(attr)), vec![guarantee])
                };
                (all, protects, protects.map(guard).into_iter().collect())
            })
            .collect();
        let literal: Vec<LiteralTable<'_>> =
            guards.iter().map(|(attributes, _, guards)| LiteralTable { attributes: *attributes, guards }).collect();
        let tables = guards
            .iter()
            .map(|(all, protects, guards)| {
                let sensitive = protects.map(one);
                let parts: Vec<AttrSet> =
                    sensitive.into_iter().chain([all.minus(sensitive.unwrap_or_default())]).collect();
                LinkedTable::new(&parts, guards)
            })
            .collect();
        let linked = LinkedTables { tables, links: Vec::new(), exact: Vec::new() };
        let by_gnf = !matches!(status(&literal, known, Attr(sensitive), guarantee), LiteralStatus::Violated(_));
        prop_assert_eq!(linked.hold(known, Protected::Attribute(Attr(sensitive)), guarantee), by_gnf);
    }
}
