//! Faults planted in a correct generalized table: the check about each fault catches it.

use std::sync::Arc;

use super::fixture::{Cell, VerifierFixture, failed, guard, protection, rule, table as table_of, verified};
use crate::microdata::taxonomy::TaxonomyBuilder;
use crate::microdata::{Attr, AttrSet, Taxonomy};
use crate::publication::{
    CellContent, DeclaredTaxonomy, EnforcedBy, Guarantee, Part, Protected, SubmittedRule, TableProtection,
    TableWitness, Witness,
};
use crate::verifier::contract::checks::CheckName::{
    Columns, Content, Dictionary, Gnf, Guarantee as Kept, Guards, Order,
};
use crate::verifier::contract::checks::{CheckName, VerifierReport};
use crate::verifier::contract::input::VerifierInput;
use crate::verifier::definition::share::ShareOfRows;

const FILE: &str = "t1.rows.csv";

/// Age and job in classes, and a sensitive attribute.
const ROWS: [[&str; 3]; 8] = [
    ["20", "a", "x"],
    ["22", "b", "y"],
    ["24", "a", "z"],
    ["30", "c", "x"],
    ["31", "c", "y"],
    ["", "d", "z"],
    ["40", "a", "x"],
    ["45", "b", "y"],
];

/// The published cells, and the position of each row.
const CELLS: [[&str; 3]; 8] = [
    ["..31", "[\"c\",\"d\"]", "x"],
    ["..31", "[\"c\",\"d\"]", "y"],
    ["..31", "[\"c\",\"d\"]", "z"],
    ["20..24", "[\"a\",\"b\"]", "x"],
    ["20..24", "[\"a\",\"b\"]", "y"],
    ["20..24", "[\"a\",\"b\"]", "z"],
    ["40..45", "[\"a\",\"b\"]", "x"],
    ["40..45", "[\"a\",\"b\"]", "y"],
];

const PLACES: [u32; 8] = [3, 4, 5, 0, 1, 2, 6, 7];

struct Case {
    fixture: VerifierFixture,
    places: Vec<u32>,
}

fn cells(row: &[&str; 3]) -> Vec<Cell> {
    row.iter().map(|cell| Some((*cell).to_owned()).filter(|cell| !cell.is_empty())).collect()
}

fn anonymity(k: u64) -> SubmittedRule {
    let guarantee = Guarantee::KAnonymity { k };
    SubmittedRule { pointer: "/method".into(), known: AttrSet::first(2), protects: Protected::Rows, guarantee }
}

fn case(guarding: bool) -> Case {
    let mut fixture = VerifierFixture::new(&["age", "job", "s"], ROWS.iter().map(cells).collect());
    let cells_of = [CellContent::Interval, CellContent::Set, CellContent::Exact];
    fixture.rows_with(&cells_of, CELLS.iter().map(cells).collect());
    let table = &mut fixture.publication.tables[0];
    if guarding {
        let guards = vec![guard(&[0, 1], Protected::Attribute(Attr(2)), 2)];
        table.protection = TableProtection::Guarding(guards);
    }
    let name = table.name.clone();
    for rule in [anonymity(2), SubmittedRule { pointer: "/method".into(), ..rule(0, &[0, 1], 2, 2) }] {
        fixture.publication.rules.push(protection(&rule, EnforcedBy::Table(name.clone())));
        fixture.submitted.push(rule);
    }
    Case { fixture, places: PLACES.to_vec() }
}

/// A taxonomy of nodes with their leaves, and of leaves directly below its root.
fn tree(nodes: &[(&str, &[&str])], leaves: &[&str]) -> Arc<Taxonomy> {
    let mut tree = TaxonomyBuilder::from_root("any");
    for (node, below) in nodes {
        let above = tree.add(0, Some(node)).expect("a node");
        for leaf in *below {
            tree.add(above, Some(leaf)).expect("a leaf");
        }
    }
    for leaf in leaves {
        tree.add(0, Some(leaf)).expect("a leaf");
    }
    Arc::new(tree.finish().expect("a tree"))
}

/// The same with taxonomy nodes in place of sets; one leaf does not occur.
fn nodes() -> Case {
    let mut case = case(true);
    let tree = tree(&[("u", &["a", "b"]), ("v", &["c", "d"])], &["e"]);
    case.fixture.taxonomies.push(DeclaredTaxonomy { attribute: Attr(1), tree });
    case.part().columns[1].cells = CellContent::Node { taxonomy: "job".into(), cut: None };
    case.set(0..3, 1, "v");
    case.set(3..8, 1, "u");
    case
}

impl Case {
    fn verify(&self, original: bool, witness: bool) -> VerifierReport {
        let of = table_of(&self.fixture.names, &self.fixture.original);
        let assigned = Witness { tables: vec![TableWitness::Rows(self.places.clone())] };
        let parts = self.fixture.bytes();
        let (original, witness) = (original.then_some(&of), witness.then_some(&assigned));
        verified(&VerifierInput { original, witness, ..self.fixture.input(&parts) })
    }

    fn set(&mut self, rows: std::ops::Range<usize>, column: usize, cell: &str) {
        let grid = self.fixture.files.get_mut(FILE).expect("the part");
        grid.rows[rows].iter_mut().for_each(|(_, cells)| cells[column] = Some(cell.to_owned()));
    }

    fn part(&mut self) -> &mut Part {
        &mut self.fixture.publication.tables[0].parts[0]
    }
}

#[test]
fn verify_generalized_table_passes() {
    for guarding in [true, false] {
        for (original, witness) in [(true, true), (true, false), (false, false)] {
            let report = case(guarding).verify(original, witness);
            assert!(report.verified(), "guarding {guarding}, original {original}: {:?}", report.checks);
            let figures = &report.tables[0];
            assert_eq!((figures.rows, figures.buckets), (8, 3));
            assert_eq!(figures.sizes.clone().into_iter().collect::<Vec<_>>(), [(2, 1), (3, 2)]);
            let posteriors = figures.posteriors[&Attr(2)];
            assert_eq!((posteriors.worst, posteriors.smallest_bucket), (ShareOfRows::new(1, 2), 2));
        }
    }
}

type Fault = (&'static str, CheckName, fn(&mut Case));

const FAULTS: [Fault; 20] = [
    ("an interval that is too narrow", Content, |case| case.set(3..6, 0, "20..22")),
    ("an interval that is too wide", Dictionary, |case| case.set(3..6, 0, "20..30")),
    ("an end that is no value", Dictionary, |case| case.set(3..6, 0, "20..25")),
    ("an interval that hides a missing value", Content, |case| case.set(0..3, 0, "30..31")),
    ("a set that lacks a value", Content, |case| case.set(6..8, 1, "[\"a\"]")),
    ("a set with a surplus value", Dictionary, |case| case.set(6..8, 1, "[\"a\",\"b\",\"c\"]")),
    ("a set in another spelling", Dictionary, |case| case.set(6..8, 1, "[\"a\", \"b\"]")),
    ("a raw cell", Dictionary, |case| case.set(3..4, 0, "20")),
    ("a narrower cell of one row", Kept, |case| case.set(3..4, 0, "20..20")),
    ("a row in another class", Content, |case| case.set(5..6, 0, "40..45")),
    ("another sensitive value", Content, |case| case.set(5..6, 2, "y")),
    ("rows that changed places", Content, |case| case.places.swap(0, 6)),
    ("two rows in one place", Content, |case| case.places[0] = 4),
    ("a class below k", Kept, |case| {
        case.fixture.submitted[0] = anonymity(3);
        case.fixture.publication.rules[0].guarantee = Guarantee::KAnonymity { k: 3 };
    }),
    ("a k that is not listed", Gnf, |case| case.fixture.submitted[0] = anonymity(1)),
    ("a class that breaks a guarantee", Kept, |case| {
        case.fixture.original[7][2] = Some("x".into());
        case.set(7..8, 2, "x");
    }),
    ("rows out of order", Order, |case| {
        case.fixture.files.get_mut(FILE).expect("the part").rows.swap(0, 7);
        case.places.swap(3, 7);
    }),
    ("exact values next to a guard", Guards, |case| {
        let jobs = ["c", "c", "d", "a", "b", "a", "a", "b"];
        (0..8).for_each(|row| case.set(row..row + 1, 1, jobs[row]));
        case.part().columns[1].cells = CellContent::Exact;
    }),
    ("a plain table", Guards, |case| case.fixture.publication.tables[0].protection = TableProtection::Plain),
    ("a row that is left out", Columns, |case| {
        case.fixture.files.get_mut(FILE).expect("the part").rows.pop();
        case.part().len = 7;
    }),
];

#[test]
fn verify_faults_in_generalized_table_fails() {
    for (name, check, plant) in FAULTS {
        let mut faulty = case(true);
        plant(&mut faulty);
        let report = faulty.verify(true, true);
        assert!(failed(&report).contains(&check), "{name}: {:?}", report.checks);
    }
}

const FAULTS_OF_NODES: [Fault; 9] = [
    ("a node that does not cover", Content, |case| case.set(6..8, 1, "v")),
    ("a leaf that covers one of two", Content, |case| case.set(6..8, 1, "a")),
    ("a node above the lowest", Dictionary, |case| case.set(6..8, 1, "any")),
    ("a leaf that does not occur", Content, |case| case.set(6..8, 1, "e")),
    ("a label that is no node", Dictionary, |case| case.set(6..8, 1, "w")),
    ("a narrower cell of one row", Kept, |case| case.set(3..4, 1, "a")),
    ("no tree", Guards, |case| case.fixture.taxonomies.clear()),
    ("another tree", Dictionary, |case| case.fixture.taxonomies[0].tree = tree(&[("u", &["a", "b", "c"])], &["d"])),
    ("a tree without a value", Dictionary, |case| {
        case.fixture.taxonomies[0].tree = tree(&[("u", &["a", "b"]), ("v", &["c"])], &[]);
    }),
];

#[test]
fn verify_faults_in_nodes_fails() {
    for (original, witness) in [(true, true), (true, false), (false, false)] {
        let report = nodes().verify(original, witness);
        assert!(report.verified(), "original {original}: {:?}", report.checks);
        assert_eq!(report.tables[0].buckets, 3);
    }
    for (name, check, plant) in FAULTS_OF_NODES {
        let mut faulty = nodes();
        plant(&mut faulty);
        let report = faulty.verify(true, true);
        assert!(failed(&report).contains(&check), "{name}: {:?}", report.checks);
    }
    // without a witness: more rows below v than exist, and one with a value that only the leaf a has
    let few: [fn(&mut Case); 2] = [|case| case.set(6..8, 1, "v"), |case| case.set(3..8, 1, "a")];
    for plant in few {
        let mut faulty = nodes();
        plant(&mut faulty);
        assert!(failed(&faulty.verify(true, false)).contains(&Content));
    }
    let mut wide = nodes();
    wide.set(0..8, 1, "any");
    assert!(!failed(&wide.verify(true, false)).contains(&Content));
}

#[test]
fn exclusive_table_violating_its_rules_fails() {
    let mut broken = case(false);
    broken.fixture.original[7][2] = Some("x".into());
    broken.set(7..8, 2, "x");
    assert!(failed(&broken.verify(true, true)).contains(&Kept));
    assert!(failed(&broken.verify(false, false)).contains(&Kept));
    // the submitted rule is not listed
    let mut unlisted = case(false);
    unlisted.fixture.publication.rules.pop();
    assert!(failed(&unlisted.verify(true, true)).contains(&Gnf));
    // the known attribute is published exactly
    let mut known = case(false);
    known.fixture.submitted[0].known = AttrSet::first(3);
    assert!(failed(&known.verify(true, true)).contains(&Gnf));
}

#[test]
fn content_without_witness_finds_uncovered_values() {
    let mut narrow = case(true);
    narrow.set(3..6, 0, "20..22");
    assert!(failed(&narrow.verify(true, false)).contains(&Content));
    let mut other = case(true);
    other.set(5..6, 2, "y");
    assert!(failed(&other.verify(true, false)).contains(&Content));
}
