//! Faults planted in tables whose values have thresholds of their own, and in tables with counterfeits: each must be caught, and by the
//! check that is about it.

use std::collections::BTreeMap;

use super::fixture::{Cell, World, failed, rule};
use crate::publication::{
    EnforcedBy, Guarantee, MethodDetails, Ratio, RowMeaning, SubmittedRule, TableName, TableProtection, Thresholds,
};
use crate::verifier::contract::checks::CheckName;
use crate::verifier::contract::checks::CheckName::{Buckets, Columns, Content, Gnf, Guarantee as Kept, Guards};

/// What stands in each bucket, and its label.
type Filled = [(u32, &'static [&'static str])];

/// Three buckets of four rows and two of six: v0 is once in each, which is a quarter or less.
const BY_VALUE: &Filled = &[
    (3, &["v0", "v1", "v2", "v3"]),
    (1, &["v0", "v1", "v1", "v2", "v3", "v4"]),
    (5, &["v0", "v2", "v3", "v4"]),
    (2, &["v0", "v4", "v4", "v3", "v1", "v4"]),
    (4, &["v0", "v1", "v3", "v4"]),
];

/// Buckets of two and of three different values.
const DISTINCT: &Filled =
    &[(3, &["v0", "v1"]), (1, &["v1", "v2", "v3"]), (5, &["v4", "v0"]), (2, &["v2", "v3", "v4"]), (4, &["v3", "v1"])];

fn ratio(text: &str) -> Ratio {
    text.parse().expect("a fraction")
}

/// A quarter of v0, half of all others.
fn by_value() -> Thresholds {
    let values = BTreeMap::from([("v0".to_owned(), ratio("1/4"))]);
    Thresholds::Explicit { values, otherwise: Some(ratio("1/2")) }
}

fn guard(world: &mut World) -> &mut Guarantee {
    match &mut world.publication.tables[0].protection {
        TableProtection::Guarding(guards) => &mut guards[0].guarantees[0],
        _ => panic!("the table is guarding"),
    }
}

/// One table of two known attributes and a sensitive one, filled as said.
fn world(filled: &Filled, thresholds: Thresholds) -> World {
    let cells = filled.iter().flat_map(|(label, values)| values.iter().map(move |value| (*label, *value)));
    let mut rows: Vec<(u32, Vec<Cell>)> = cells
        .enumerate()
        .map(|(row, (label, value))| {
            (label, vec![Some((row % 7).to_string()), Some(format!("b{}", row % 3)), Some(value.to_owned())])
        })
        .collect();
    // rows of a bucket do not stand together
    rows.sort_by_key(|(_, cells)| cells[0].clone());
    let (labels, rows): (Vec<u32>, Vec<Vec<Cell>>) = rows.into_iter().unzip();
    let mut world = World::new(&["a", "b", "s"], rows);
    world.guarding(&[0, 1], 2, 2, labels);
    let guarantee = thresholds.guarantee();
    *guard(&mut world) = guarantee;
    let submitted = SubmittedRule { pointer: "/method".to_owned(), guarantee, ..rule(0, &[0, 1], 2, 2) };
    world.hold(submitted, EnforcedBy::Table(TableName::at(0)));
    let mut sizes: BTreeMap<u64, u64> = BTreeMap::new();
    filled.iter().for_each(|(_, values)| *sizes.entry(values.len() as u64).or_default() += 1);
    let loss = sizes.iter().map(|(size, buckets)| buckets * (size - 1) * (size - 1)).sum();
    let setting = sizes.into_iter().collect();
    world.publication.method_details = MethodDetails::Bucketize { thresholds, setting, loss, lower_bound: Some(loss) };
    world
}

/// The same, each bucket with a counterfeit.
fn counterfeited() -> World {
    let mut world = world(DISTINCT, Thresholds::Uniform { l: 2 });
    let part = &mut world.publication.tables[0].parts[1];
    part.rows = RowMeaning::TuplesAndCounterfeits { per_bucket: 1 };
    part.len += DISTINCT.len() as u64;
    for (label, values) in DISTINCT {
        let fake = (0..5).map(|value| format!("v{value}")).find(|value| !values.contains(&value.as_str()));
        world.files.get_mut("t1.sa.csv").expect("a part").rows.push((label.to_string(), vec![fake]));
    }
    world.settle("t1.sa.csv", &[2]);
    world
}

fn method_details(world: &mut World) -> (&mut Thresholds, &mut Vec<(u64, u64)>, &mut u64, &mut Option<u64>) {
    match &mut world.publication.method_details {
        MethodDetails::Bucketize { thresholds, setting, loss, lower_bound } => (thresholds, setting, loss, lower_bound),
        _ => panic!("buckets by size"),
    }
}

/// Gives a value of one bucket to another, and the other's to it.
fn swap(world: &mut World, one: (&str, &str), other: (&str, &str)) {
    let rows = &mut world.files.get_mut("t1.sa.csv").expect("a part").rows;
    let find = |rows: &[(String, Vec<Cell>)], (label, value): (&str, &str)| {
        rows.iter().position(|row| row.0 == label && row.1[0].as_deref() == Some(value)).expect("a row")
    };
    let (left, right) = (find(rows, one), find(rows, other));
    rows[left].1 = vec![Some(other.1.to_owned())];
    rows[right].1 = vec![Some(one.1.to_owned())];
    world.settle("t1.sa.csv", &[2]);
}

/// Replaces a value of a bucket.
fn replace(world: &mut World, (label, value): (&str, &str), by: &str) {
    let rows = &mut world.files.get_mut("t1.sa.csv").expect("a part").rows;
    let row = rows.iter_mut().find(|row| row.0 == label && row.1[0].as_deref() == Some(value)).expect("a row");
    row.1 = vec![Some(by.to_owned())];
    world.settle("t1.sa.csv", &[2]);
}

/// Lets all that is stated be of other thresholds.
fn state(world: &mut World, thresholds: Thresholds) {
    let guarantee = thresholds.guarantee();
    *guard(world) = guarantee;
    world.submitted[0].guarantee = guarantee;
    world.publication.rules[0].guarantee = guarantee;
    *method_details(world).0 = thresholds;
}

/// Moves a row of a bucket to another, in both parts and the witness: to what was not decided.
fn move_row(world: &mut World) {
    let witness = world.witness[0].as_mut().expect("buckets");
    let row = witness.iter().position(|label| *label == 1).expect("a row");
    let cells = world.original[row].clone();
    witness[row] = 5;
    for (file, attrs) in [("t1.qi.csv", &[0_u8, 1][..]), ("t1.sa.csv", &[2])] {
        let rows = &mut world.files.get_mut(file).expect("a part").rows;
        let wanted: Vec<Cell> = attrs.iter().map(|attr| cells[*attr as usize].clone()).collect();
        let at = rows.iter().position(|found| found.0 == "1" && found.1 == wanted).expect("the row");
        rows[at].0 = "5".to_owned();
        world.settle(file, attrs);
    }
}

type Fault = (&'static str, fn(&mut World), &'static [CheckName]);

const BY_THRESHOLDS: &[Fault] = &[
    ("a rare value twice in a bucket", |w| swap(w, ("3", "v1"), ("5", "v0")), &[Kept, Content]),
    ("sizes that the buckets have not", |w| method_details(w).1[0] = (3, 4), &[Buckets]),
    ("fewer buckets than there are", |w| method_details(w).1[1].1 -= 1, &[Buckets]),
    ("a loss that is not theirs", |w| *method_details(w).2 += 1, &[Buckets]),
    ("a bound above the loss", |w| *method_details(w).3 = Some(1000), &[Buckets]),
    (
        "weaker thresholds than were submitted",
        |w| *method_details(w).0 = Thresholds::Explicit { values: BTreeMap::new(), otherwise: Some(ratio("1/2")) },
        &[Kept],
    ),
    (
        "a threshold that a bucket does not keep",
        |w| {
            let values = BTreeMap::from([("v0".to_owned(), ratio("1/5"))]);
            state(w, Thresholds::Explicit { values, otherwise: Some(ratio("1/2")) });
        },
        &[Kept],
    ),
    (
        "a threshold that is missed by a hair",
        |w| {
            let values = BTreeMap::from([("v0".to_owned(), ratio("0.249999999"))]);
            state(w, Thresholds::Explicit { values, otherwise: Some(ratio("1/2")) });
        },
        &[Kept],
    ),
    (
        "values without a threshold",
        |w| {
            let values = BTreeMap::from([("v0".to_owned(), ratio("1/4"))]);
            state(w, Thresholds::Explicit { values, otherwise: None });
        },
        &[Kept],
    ),
    (
        "thresholds by frequency that buckets do not keep",
        |w| {
            let overrides = BTreeMap::new();
            state(w, Thresholds::Linear { theta: ratio("1"), c: ratio("0"), overrides });
        },
        &[Kept],
    ),
    ("no thresholds at all", |w| w.publication.method_details = MethodDetails::None, &[Kept]),
    ("a guard of something else", |w| *guard(w) = Guarantee::LDiversity { l: 2 }, &[Guards, Gnf]),
    (
        "a rule listed weaker than submitted",
        |w| {
            w.submitted[0].guarantee =
                Thresholds::Explicit { values: BTreeMap::new(), otherwise: Some(ratio("1/9")) }.guarantee()
        },
        &[Gnf, Kept],
    ),
    ("a row in another bucket", move_row, &[Buckets]),
    (
        "counterfeits that are not there",
        |w| w.publication.tables[0].parts[1].rows = RowMeaning::TuplesAndCounterfeits { per_bucket: 1 },
        &[Columns, Content],
    ),
];

const WITH_COUNTERFEITS: &[Fault] = &[
    ("a counterfeit that the bucket has already", |w| replace(w, ("3", "v2"), "v1"), &[Content]),
    ("a counterfeit for a row", |w| replace(w, ("3", "v0"), "v4"), &[Content]),
    (
        "two counterfeits where one is said",
        |w| {
            w.files.get_mut("t1.sa.csv").expect("a part").rows.push(("3".to_owned(), vec![Some("v4".to_owned())]));
            w.publication.tables[0].parts[1].len += 1;
            w.settle("t1.sa.csv", &[2]);
        },
        &[Columns, Buckets, Content],
    ),
    (
        "a bucket without its counterfeit, another with two",
        |w| {
            let rows = &mut w.files.get_mut("t1.sa.csv").expect("a part").rows;
            let at = rows.iter().position(|row| row.0 == "3" && row.1[0].as_deref() == Some("v2")).expect("a row");
            rows[at] = ("5".to_owned(), vec![Some("v2".to_owned())]);
            w.settle("t1.sa.csv", &[2]);
        },
        &[Buckets, Content],
    ),
    (
        "counterfeits that nobody tells of",
        |w| w.publication.tables[0].parts[1].rows = RowMeaning::Tuples,
        &[Columns, Buckets, Content],
    ),
    (
        "counterfeits of what is not protected",
        |w| {
            let part = &mut w.publication.tables[0].parts[0];
            part.rows = RowMeaning::TuplesAndCounterfeits { per_bucket: 1 };
        },
        &[Columns],
    ),
    (
        "diversity that counterfeits lend",
        |w| {
            // three values with the counterfeit, two without
            state(w, Thresholds::Uniform { l: 3 });
        },
        &[Kept],
    ),
];

fn every_fault_is_caught(sound: fn() -> World, faults: &[Fault]) {
    let audit = sound().audit();
    assert!(audit.verified(), "{:?}", audit.checks);
    assert!(sound().audit_with(false, false).verified(), "{:?}", sound().audit_with(false, false).checks);
    for (name, plant, checks) in faults {
        let mut world = sound();
        plant(&mut world);
        let audit = world.audit();
        let failed = failed(&audit);
        for check in *checks {
            assert!(failed.contains(check), "{name}: {check:?} not among {failed:?}");
        }
    }
}

#[test]
fn faults_in_buckets_by_thresholds_are_caught() {
    assert!(BY_THRESHOLDS.len() >= 8);
    every_fault_is_caught(|| world(BY_VALUE, by_value()), BY_THRESHOLDS);
}

#[test]
fn faults_in_counterfeits_are_caught() {
    every_fault_is_caught(counterfeited, WITH_COUNTERFEITS);
}

#[test]
fn thresholds_by_frequency_are_those_of_the_table() {
    let linear = |c: &str| Thresholds::Linear { theta: ratio("1"), c: ratio(c), overrides: BTreeMap::new() };
    let mut world = world(BY_VALUE, by_value());
    // v4 is half of a bucket, and six of 24 rows: a quarter, and a quarter beside
    state(&mut world, linear("1/4"));
    assert!(world.audit().verified(), "{:?}", world.audit().checks);
    state(&mut world, linear("0.249999999"));
    assert!(failed(&world.audit()).contains(&Kept));
}
