//! Faults planted in tables of several sensitive attributes: a joint value, two parts with common buckets, and one
//! part with suppressed rows.

use super::fixture::{Cell, VerifierFixture, failed, guard, guardian, rule};
use crate::microdata::{Attr, AttrSet};
use crate::publication::{
    EnforcedBy, ExcludedValues, Guarantee, Protected, SubmittedRule, TableGuard, TableProtection,
};
use crate::verifier::contract::checks::CheckName;
use crate::verifier::contract::checks::CheckName::{
    Buckets, Columns, Content, Dictionary, Gnf, Guarantee as Kept, Guards,
};

const LABELS: [u32; 4] = [3, 1, 4, 2];

fn set(attrs: &[u8]) -> AttrSet {
    attrs.iter().map(|&a| Attr(a)).collect()
}

fn rows(rows: impl Iterator<Item = [u32; 4]>) -> Vec<Vec<Cell>> {
    rows.map(|row| row.map(|value| Some(value.to_string())).to_vec()).collect()
}

fn combination(number: usize, known: &[u8], sensitive: &[u8], l: u64) -> SubmittedRule {
    SubmittedRule { protects: Protected::Joint(set(sensitive)), ..rule(number, known, sensitive[0], l) }
}

/// Four buckets of six rows.
///
/// A value of attribute 1 or 2 has at most two of three rows, and a pair of values at most a third.
fn joint() -> VerifierFixture {
    let pairs = [[0, 0], [0, 0], [0, 1], [0, 1], [1, 0], [1, 0]];
    let of = |row: u32| [row, pairs[row as usize % 6][0], pairs[row as usize % 6][1], row % 5];
    let mut fixture = VerifierFixture::new(&["q", "s", "t", "o"], rows((0..24).map(of)));
    let labels = (0..24).map(|row| LABELS[row / 6]).collect();
    fixture.bucketized(&[0], &[("sa", &[1, 2])], vec![guard(&[0], Protected::Joint(set(&[1, 2])), 3)], labels);
    fixture.plain(&[3]);
    fixture.hold(combination(0, &[0], &[1, 2], 3), guardian("t1", &[0]));
    fixture.hold(combination(1, &[3], &[1, 2], 3), EnforcedBy::Unreachable);
    fixture
}

/// Four buckets of twelve rows, in which attribute 1 has four values and attribute 2 three, equally often.
fn together() -> VerifierFixture {
    let mut fixture =
        VerifierFixture::new(&["q", "s", "t", "o"], rows((0..48).map(|row| [row, row % 4, row % 3, row / 12])));
    let labels = (0..48).map(|row| LABELS[row / 12]).collect();
    fixture.together(&[0], [1, 2], 3, labels);
    fixture.hold(rule(0, &[0], 1, 3), guardian("t1", &[0]));
    fixture.hold(rule(1, &[0], 2, 3), guardian("t1", &[0]));
    fixture
}

/// Twelve buckets with the four pairs of values of 1 and 2, and three suppressed rows with one pair.
fn corners() -> VerifierFixture {
    let of = |row: u32| [row * 7 % 51, row % 4 / 2 + row / 4 % 3, row % 2 + row / 4 % 3, 0];
    let over = |row: u32| [row, 5, 5, 0];
    let mut fixture = VerifierFixture::new(&["q", "s", "t", "o"], rows((0..48).map(of).chain((48..51).map(over))));
    let labels = (0..51_u32).map(|row| if row < 48 { row / 4 * 5 % 12 + 1 } else { 0 }).collect();
    let guards = [(1, 2), (2, 1)].map(|(s, t)| guard(&[0, t], Protected::Attribute(Attr(s)), 2));
    fixture.bucketized(&[0], &[("sa", &[1, 2])], guards.to_vec(), labels);
    fixture.publication.suppressed = 3;
    fixture.hold(rule(0, &[0, 2], 1, 2), guardian("t1", &[0, 2]));
    fixture.hold(rule(1, &[0], 2, 2), guardian("t1", &[0]));
    fixture
}

fn guards(fixture: &mut VerifierFixture) -> &mut Vec<TableGuard> {
    match &mut fixture.publication.tables[0].protection {
        TableProtection::Guarding(guards) => guards,
        _ => panic!("the table is guarding"),
    }
}

/// Gives the rows of a part the labels of the next bucket.
fn shift(fixture: &mut VerifierFixture, file: &str, attrs: &[u8], buckets: u32) {
    for row in &mut fixture.files.get_mut(file).expect("a part").rows {
        row.0 = (row.0.parse::<u32>().expect("a label") % buckets + 1).to_string();
    }
    fixture.settle(file, attrs);
}

fn move_row(fixture: &mut VerifierFixture, file: &str, attrs: &[u8]) {
    let rows = &mut fixture.files.get_mut(file).expect("a part").rows;
    let last = rows[rows.len() - 1].0.clone();
    rows[0].0 = last;
    fixture.settle(file, attrs);
}

/// Replaces a published row with a suppressed one, in all parts.
fn publish_suppressed(fixture: &mut VerifierFixture) {
    let hidden = fixture.original[48].clone();
    let labels = fixture.witness[0].clone().expect("buckets");
    let shown = fixture.original[0].clone();
    for (file, attrs) in [("t1.qi.csv", &[0_u8][..]), ("t1.sa.csv", &[1, 2])] {
        let cells = |row: &[Cell]| attrs.iter().map(|&a| row[a as usize].clone()).collect::<Vec<Cell>>();
        let rows = &mut fixture.files.get_mut(file).expect("a part").rows;
        let place =
            rows.iter().position(|row| row.0 == labels[0].to_string() && row.1 == cells(&shown)).expect("the row");
        rows[place].1 = cells(&hidden);
        fixture.settle(file, attrs);
    }
}

type Fault = (&'static str, fn() -> VerifierFixture, fn(&mut VerifierFixture), &'static [CheckName]);

const FAULTS: &[Fault] = &[
    ("a joint part shifted by one bucket", joint, |w| shift(w, "t1.qi.csv", &[0], 4), &[Content]),
    ("a row of a joint part moved", joint, |w| move_row(w, "t1.sa.csv", &[1, 2]), &[Content, Buckets]),
    (
        "a joint guard of more than the buckets hold",
        joint,
        |w| guards(w)[0].guarantees[0] = Guarantee::LDiversity { l: 4 },
        &[Kept],
    ),
    (
        "a joint guard of less than the rule needs",
        joint,
        |w| guards(w)[0].guarantees[0] = Guarantee::LDiversity { l: 2 },
        &[Gnf, Guards],
    ),
    (
        "a joint guard said of one of its attributes",
        joint,
        |w| guards(w)[0].protects = Protected::Attribute(Attr(1)),
        &[Kept, Gnf],
    ),
    ("half of a combination in a second table", joint, |w| w.plain(&[2]), &[Gnf]),
    ("a combination whole in a second table", joint, |w| w.plain(&[1, 2]), &[Gnf]),
    (
        "a rule of another combination",
        joint,
        |w| w.hold(combination(2, &[0], &[1, 3], 3), guardian("t1", &[0])),
        &[Gnf, Guards],
    ),
    ("the first of three parts shifted", together, |w| shift(w, "t1.qi.csv", &[0], 4), &[Content]),
    ("a row of the second part moved", together, |w| move_row(w, "t1.sa2.csv", &[2]), &[Content, Buckets]),
    ("the guard of the second part missing", together, |w| drop(guards(w).pop()), &[Gnf, Guards]),
    (
        "a guard that knows what stands in the other part",
        together,
        |w| {
            w.hold(rule(2, &[1], 2, 3), guardian("t1", &[1]));
        },
        &[Gnf, Guards],
    ),
    (
        "a guard that takes the other sensitive part as known",
        together,
        |w| guards(w)[0].known = set(&[0, 2]),
        &[Guards],
    ),
    (
        "a rule that knows the other sensitive part, and a guard that says so",
        together,
        |w| {
            guards(w)[1].known = set(&[0, 1]);
            w.hold(rule(2, &[1], 2, 3), guardian("t1", &[1]));
        },
        &[Guards],
    ),
    (
        "a way around the buckets by the other sensitive attribute",
        together,
        |w| {
            w.plain(&[2, 3]);
            w.hold(rule(2, &[3], 1, 3), guardian("t1", &[2]));
        },
        &[Gnf, Guards],
    ),
    ("a row that is nowhere, published for another", corners, publish_suppressed, &[Content]),
    ("more rows suppressed than the witness says", corners, |w| w.publication.suppressed = 4, &[Content, Columns]),
    ("suppressed rows not said", corners, |w| w.publication.suppressed = 0, &[Content, Columns]),
    ("rows suppressed next to another table", corners, |w| w.plain(&[3]), &[Dictionary, Columns]),
    ("a row of corners moved", corners, |w| move_row(w, "t1.sa.csv", &[1, 2]), &[Content, Buckets, Kept]),
    (
        "a guard of more than the corners hold",
        corners,
        |w| guards(w)[0].guarantees[0] = Guarantee::LDiversity { l: 3 },
        &[Kept],
    ),
    ("a guard of which less is known", corners, |w| guards(w)[0].known = set(&[0]), &[Gnf, Guards]),
];

#[test]
fn verify_faults_in_several_sensitive_attributes_fails() {
    for fixture in [joint, together, corners] {
        for (original, witness) in [(true, true), (true, false), (false, false)] {
            let report = fixture().verify_with(original, witness);
            assert!(report.verified(), "{original} {witness}: {:?}", report.checks);
        }
    }
    for (name, fixture, plant, checks) in FAULTS {
        let mut fixture = fixture();
        plant(&mut fixture);
        let failed = failed(&fixture.verify());
        for check in *checks {
            assert!(failed.contains(check), "{name}: {check:?} not among {failed:?}");
        }
    }
}

/// Buckets of four values with an excluded one; another attribute determines the value.
#[test]
fn excluded_value_requires_exclusion_of_its_determinant() {
    let report = |declared: &[(u8, &[&str])]| {
        let of = |row: u32| [row, row % 4, row % 4 * 2 + row / 4 % 2, 0];
        let mut fixture = VerifierFixture::new(&["q", "s", "x", "o"], rows((0..16).map(of)));
        let labels = (0..16).map(|row| LABELS[row / 4]).collect();
        fixture.bucketized(&[0], &[("sa", &[1])], vec![guard(&[0], Protected::Attribute(Attr(1)), 2)], labels);
        fixture.plain(&[2]);
        fixture.hold(rule(0, &[0], 1, 2), guardian("t1", &[0]));
        fixture.dependencies.push((set(&[2]), set(&[1])));
        for &(attr, values) in declared {
            let values = values.iter().map(|&value| Some(value.to_owned())).collect();
            fixture.excludable.push(ExcludedValues { attribute: Attr(attr), values });
        }
        failed(&fixture.verify())
    };
    assert_eq!(report(&[]), []);
    assert_eq!(report(&[(1, &["0"])]), [Gnf]);
    assert_eq!(report(&[(1, &["0"]), (2, &["1"])]), [Gnf]);
    assert_eq!(report(&[(1, &["0"]), (2, &["0", "1"])]), []);
}
