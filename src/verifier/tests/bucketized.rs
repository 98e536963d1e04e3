//! Faults planted in tables with thresholds by value, and in tables with counterfeits: the check about each fault
//! catches it.

use std::collections::BTreeMap;

use super::fixture::{Cell, VerifierFixture, failed, rule};
use crate::publication::{
    EnforcedBy, Guarantee, MethodDetails, Ratio, RowMeaning, SizeCount, SubmittedRule, TableName, TableProtection,
    Thresholds,
};
use crate::verifier::contract::checks::CheckName;
use crate::verifier::contract::checks::CheckName::{Buckets, Columns, Content, Gnf, Guarantee as Kept, Guards};

/// The values of each bucket, with its label.
type Filled = [(u32, &'static [&'static str])];

/// Three buckets of four rows and two of six: v0 occurs once in each, a share of at most a quarter.
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

/// A threshold of a quarter for v0, and of half for other values.
fn by_value() -> Thresholds {
    let values = BTreeMap::from([("v0".to_owned(), ratio("1/4"))]);
    Thresholds::Explicit { values, otherwise: Some(ratio("1/2")) }
}

fn guard(fixture: &mut VerifierFixture) -> &mut Guarantee {
    match &mut fixture.publication.tables[0].protection {
        TableProtection::Guarding(guards) => &mut guards[0].guarantees[0],
        _ => panic!("the table is guarding"),
    }
}

/// One table of two known attributes and a sensitive one.
fn fixture(filled: &Filled, thresholds: Thresholds) -> VerifierFixture {
    let cells = filled.iter().flat_map(|(label, values)| values.iter().map(move |value| (*label, *value)));
    let mut rows: Vec<(u32, Vec<Cell>)> = cells
        .enumerate()
        .map(|(row, (label, value))| {
            (label, vec![Some((row % 7).to_string()), Some(format!("b{}", row % 3)), Some(value.to_owned())])
        })
        .collect();
    // the rows of a bucket are apart
    rows.sort_by_key(|(_, cells)| cells[0].clone());
    let (labels, rows): (Vec<u32>, Vec<Vec<Cell>>) = rows.into_iter().unzip();
    let mut fixture = VerifierFixture::new(&["a", "b", "s"], rows);
    fixture.guarding(&[0, 1], 2, 2, labels);
    let guarantee = thresholds.guarantee();
    *guard(&mut fixture) = guarantee;
    let submitted = SubmittedRule { pointer: "/method".to_owned(), guarantee, ..rule(0, &[0, 1], 2, 2) };
    fixture.hold(submitted, EnforcedBy::Table(TableName::at(0)));
    let mut sizes: BTreeMap<u64, u64> = BTreeMap::new();
    filled.iter().for_each(|(_, values)| *sizes.entry(values.len() as u64).or_default() += 1);
    let loss = sizes.iter().map(|(size, buckets)| buckets * (size - 1) * (size - 1)).sum();
    let setting = sizes.into_iter().map(|(size, buckets)| SizeCount { size, buckets }).collect();
    fixture.publication.method_details =
        MethodDetails::Bucketize { thresholds, setting, loss, lower_bound: Some(loss) };
    fixture
}

/// The same, with a counterfeit in each bucket.
fn counterfeited() -> VerifierFixture {
    let mut fixture = fixture(DISTINCT, Thresholds::Uniform { l: 2 });
    let part = &mut fixture.publication.tables[0].parts[1];
    part.rows = RowMeaning::TuplesAndCounterfeits { per_bucket: 1 };
    part.len += DISTINCT.len() as u64;
    for (label, values) in DISTINCT {
        let fake = (0..5).map(|value| format!("v{value}")).find(|value| !values.contains(&value.as_str()));
        fixture.files.get_mut("t1.sa.csv").expect("a part").rows.push((label.to_string(), vec![fake]));
    }
    fixture.settle("t1.sa.csv", &[2]);
    fixture
}

fn method_details(fixture: &mut VerifierFixture) -> (&mut Thresholds, &mut Vec<SizeCount>, &mut u64, &mut Option<u64>) {
    match &mut fixture.publication.method_details {
        MethodDetails::Bucketize { thresholds, setting, loss, lower_bound } => (thresholds, setting, loss, lower_bound),
        _ => panic!("buckets by size"),
    }
}

/// Swaps a value of two buckets.
fn swap(fixture: &mut VerifierFixture, one: (&str, &str), other: (&str, &str)) {
    let rows = &mut fixture.files.get_mut("t1.sa.csv").expect("a part").rows;
    let find = |rows: &[(String, Vec<Cell>)], (label, value): (&str, &str)| {
        rows.iter().position(|row| row.0 == label && row.1[0].as_deref() == Some(value)).expect("a row")
    };
    let (left, right) = (find(rows, one), find(rows, other));
    rows[left].1 = vec![Some(other.1.to_owned())];
    rows[right].1 = vec![Some(one.1.to_owned())];
    fixture.settle("t1.sa.csv", &[2]);
}

/// Replaces a value of a bucket.
fn replace(fixture: &mut VerifierFixture, (label, value): (&str, &str), by: &str) {
    let rows = &mut fixture.files.get_mut("t1.sa.csv").expect("a part").rows;
    let row = rows.iter_mut().find(|row| row.0 == label && row.1[0].as_deref() == Some(value)).expect("a row");
    row.1 = vec![Some(by.to_owned())];
    fixture.settle("t1.sa.csv", &[2]);
}

/// Replaces all declared thresholds.
fn state(fixture: &mut VerifierFixture, thresholds: Thresholds) {
    let guarantee = thresholds.guarantee();
    *guard(fixture) = guarantee;
    fixture.submitted[0].guarantee = guarantee;
    fixture.publication.rules[0].guarantee = guarantee;
    *method_details(fixture).0 = thresholds;
}

/// Moves a row to another bucket, in both parts and the witness.
fn move_row(fixture: &mut VerifierFixture) {
    let witness = fixture.witness[0].as_mut().expect("buckets");
    let row = witness.iter().position(|label| *label == 1).expect("a row");
    let cells = fixture.original[row].clone();
    witness[row] = 5;
    for (file, attrs) in [("t1.qi.csv", &[0_u8, 1][..]), ("t1.sa.csv", &[2])] {
        let rows = &mut fixture.files.get_mut(file).expect("a part").rows;
        let wanted: Vec<Cell> = attrs.iter().map(|attr| cells[*attr as usize].clone()).collect();
        let at = rows.iter().position(|found| found.0 == "1" && found.1 == wanted).expect("the row");
        rows[at].0 = "5".to_owned();
        fixture.settle(file, attrs);
    }
}

type Fault = (&'static str, fn(&mut VerifierFixture), &'static [CheckName]);

const BY_THRESHOLDS: &[Fault] = &[
    ("a rare value twice in a bucket", |w| swap(w, ("3", "v1"), ("5", "v0")), &[Kept, Content]),
    ("sizes that the buckets have not", |w| method_details(w).1[0] = SizeCount::new(3, 4), &[Buckets]),
    ("fewer buckets than there are", |w| method_details(w).1[1].buckets -= 1, &[Buckets]),
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
        "undeclared counterfeits",
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

fn every_fault_is_caught(sound: fn() -> VerifierFixture, faults: &[Fault]) {
    let report = sound().verify();
    assert!(report.verified(), "{:?}", report.checks);
    assert!(sound().verify_with(false, false).verified(), "{:?}", sound().verify_with(false, false).checks);
    for (name, plant, checks) in faults {
        let mut fixture = sound();
        plant(&mut fixture);
        let report = fixture.verify();
        let failed = failed(&report);
        for check in *checks {
            assert!(failed.contains(check), "{name}: {check:?} not among {failed:?}");
        }
    }
}

#[test]
fn verify_faults_in_threshold_buckets_fails() {
    assert!(BY_THRESHOLDS.len() >= 8);
    every_fault_is_caught(|| fixture(BY_VALUE, by_value()), BY_THRESHOLDS);
}

#[test]
fn verify_faults_in_counterfeits_fails() {
    every_fault_is_caught(counterfeited, WITH_COUNTERFEITS);
}

#[test]
fn thresholds_by_frequency_use_counts_of_the_table() {
    let linear = |c: &str| Thresholds::Linear { theta: ratio("1"), c: ratio(c), overrides: BTreeMap::new() };
    let mut fixture = fixture(BY_VALUE, by_value());
    // v4 is half of a bucket, and a quarter of 24 rows: the bound is two quarters
    state(&mut fixture, linear("1/4"));
    assert!(fixture.verify().verified(), "{:?}", fixture.verify().checks);
    state(&mut fixture, linear("0.249999999"));
    assert!(failed(&fixture.verify()).contains(&Kept));
}
