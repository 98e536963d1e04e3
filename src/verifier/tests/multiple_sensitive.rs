//! Tables of several sensitive attributes, and faults planted in them: a joint value, two parts tied by one bucket, and all
//! sensitive attributes in one part with rows left out.

use super::fixture::{Cell, World, failed, guard, guardian, rule};
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

/// Four buckets of six rows. Of 1 and 2 each has a value in two of three rows, no pair of them is more than a third.
fn joint() -> World {
    let pairs = [[0, 0], [0, 0], [0, 1], [0, 1], [1, 0], [1, 0]];
    let of = |row: u32| [row, pairs[row as usize % 6][0], pairs[row as usize % 6][1], row % 5];
    let mut world = World::new(&["q", "s", "t", "o"], rows((0..24).map(of)));
    let labels = (0..24).map(|row| LABELS[row / 6]).collect();
    world.tied(&[0], &[("sa", &[1, 2])], vec![guard(&[0], Protected::Joint(set(&[1, 2])), 3)], labels);
    world.plain(&[3]);
    world.hold(combination(0, &[0], &[1, 2], 3), guardian("t1", &[0]));
    world.hold(combination(1, &[3], &[1, 2], 3), EnforcedBy::Unreachable);
    world
}

/// Four buckets of twelve rows, in which 1 has four and 2 three values, equally often.
fn together() -> World {
    let mut world = World::new(&["q", "s", "t", "o"], rows((0..48).map(|row| [row, row % 4, row % 3, row / 12])));
    let labels = (0..48).map(|row| LABELS[row / 12]).collect();
    world.together(&[0], [1, 2], 3, labels);
    world.hold(rule(0, &[0], 1, 3), guardian("t1", &[0]));
    world.hold(rule(1, &[0], 2, 3), guardian("t1", &[0]));
    world
}

/// Twelve buckets of the four corners of 1 and 2, and three rows of one corner that are nowhere.
fn corners() -> World {
    let of = |row: u32| [row * 7 % 51, row % 4 / 2 + row / 4 % 3, row % 2 + row / 4 % 3, 0];
    let over = |row: u32| [row, 5, 5, 0];
    let mut world = World::new(&["q", "s", "t", "o"], rows((0..48).map(of).chain((48..51).map(over))));
    let labels = (0..51_u32).map(|row| if row < 48 { row / 4 * 5 % 12 + 1 } else { 0 }).collect();
    let guards = [(1, 2), (2, 1)].map(|(s, t)| guard(&[0, t], Protected::Attribute(Attr(s)), 2));
    world.tied(&[0], &[("sa", &[1, 2])], guards.to_vec(), labels);
    world.publication.suppressed = 3;
    world.hold(rule(0, &[0, 2], 1, 2), guardian("t1", &[0, 2]));
    world.hold(rule(1, &[0], 2, 2), guardian("t1", &[0]));
    world
}

fn guards(world: &mut World) -> &mut Vec<TableGuard> {
    match &mut world.publication.tables[0].protection {
        TableProtection::Guarding(guards) => guards,
        _ => panic!("the table is guarding"),
    }
}

/// Gives the rows of a part the labels of the next bucket.
fn shift(world: &mut World, file: &str, attrs: &[u8], buckets: u32) {
    for row in &mut world.files.get_mut(file).expect("a part").rows {
        row.0 = (row.0.parse::<u32>().expect("a label") % buckets + 1).to_string();
    }
    world.settle(file, attrs);
}

fn move_row(world: &mut World, file: &str, attrs: &[u8]) {
    let rows = &mut world.files.get_mut(file).expect("a part").rows;
    let last = rows[rows.len() - 1].0.clone();
    rows[0].0 = last;
    world.settle(file, attrs);
}

/// A row that is nowhere in the place of one that is published, in all parts.
fn publish_suppressed(world: &mut World) {
    let hidden = world.original[48].clone();
    let labels = world.witness[0].clone().expect("buckets");
    let shown = world.original[0].clone();
    for (file, attrs) in [("t1.qi.csv", &[0_u8][..]), ("t1.sa.csv", &[1, 2])] {
        let cells = |row: &[Cell]| attrs.iter().map(|&a| row[a as usize].clone()).collect::<Vec<Cell>>();
        let rows = &mut world.files.get_mut(file).expect("a part").rows;
        let place =
            rows.iter().position(|row| row.0 == labels[0].to_string() && row.1 == cells(&shown)).expect("the row");
        rows[place].1 = cells(&hidden);
        world.settle(file, attrs);
    }
}

type Fault = (&'static str, fn() -> World, fn(&mut World), &'static [CheckName]);

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
    ("rows suppressed beside another table", corners, |w| w.plain(&[3]), &[Dictionary, Columns]),
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
fn every_fault_planted_among_several_sensitive_attributes_is_caught() {
    for world in [joint, together, corners] {
        for (original, witness) in [(true, true), (true, false), (false, false)] {
            let audit = world().audit_with(original, witness);
            assert!(audit.verified(), "{original} {witness}: {:?}", audit.checks);
        }
    }
    for (name, world, plant, checks) in FAULTS {
        let mut world = world();
        plant(&mut world);
        let failed = failed(&world.audit());
        for check in *checks {
            assert!(failed.contains(check), "{name}: {check:?} not among {failed:?}");
        }
    }
}

/// Buckets of four values, of which one can be ruled out; another attribute tells the value.
#[test]
fn who_rules_values_out_rules_out_what_determines_them() {
    let audit = |stated: &[(u8, &[&str])]| {
        let of = |row: u32| [row, row % 4, row % 4 * 2 + row / 4 % 2, 0];
        let mut world = World::new(&["q", "s", "x", "o"], rows((0..16).map(of)));
        let labels = (0..16).map(|row| LABELS[row / 4]).collect();
        world.tied(&[0], &[("sa", &[1])], vec![guard(&[0], Protected::Attribute(Attr(1)), 2)], labels);
        world.plain(&[2]);
        world.hold(rule(0, &[0], 1, 2), guardian("t1", &[0]));
        world.dependencies.push((set(&[2]), set(&[1])));
        for &(attr, values) in stated {
            let values = values.iter().map(|&value| Some(value.to_owned())).collect();
            world.excludable.push(ExcludedValues { attribute: Attr(attr), values });
        }
        failed(&world.audit())
    };
    assert_eq!(audit(&[]), []);
    assert_eq!(audit(&[(1, &["0"])]), [Gnf]);
    assert_eq!(audit(&[(1, &["0"]), (2, &["1"])]), [Gnf]);
    assert_eq!(audit(&[(1, &["0"]), (2, &["0", "1"])]), []);
}
