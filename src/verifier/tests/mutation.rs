//! Faults planted in a correct publication of a random table: the check about each fault catches it.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::fixture::{Cell, VerifierFixture, failed, guardian, rule};
use crate::microdata::Attr;
use crate::publication::{EnforcedBy, ExcludedValues, Guarantee, TableName, TableProtection};
use crate::verifier::contract::checks::CheckName;
use crate::verifier::contract::checks::CheckName::{
    Buckets, Columns, Content, Dictionary, Gnf, Guarantee as Kept, Guards, Order,
};

const ROWS: usize = 60;

/// A generator of its own (SplitMix64), so that the tests share no code with the publisher.
struct Seeded(u64);

impl Seeded {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

/// Buckets of two different values each, the two most frequent first, with shuffled labels.
///
/// Empty when rows remain.
fn pairs(random: &mut Seeded, values: &[Cell]) -> Vec<u32> {
    let mut rows: Vec<usize> = (0..values.len()).collect();
    random.shuffle(&mut rows);
    let mut lists: BTreeMap<&Cell, Vec<usize>> = BTreeMap::new();
    rows.into_iter().for_each(|row| lists.entry(&values[row]).or_default().push(row));
    let mut lists: Vec<Vec<usize>> = lists.into_values().collect();
    let mut names: Vec<u32> = (1..=values.len() as u32 / 2).collect();
    random.shuffle(&mut names);
    let mut labels = vec![0; values.len()];
    for name in names {
        lists.sort_by_key(|list| Reverse(list.len()));
        for list in &mut lists[..2] {
            let Some(row) = list.pop() else { return Vec::new() };
            labels[row] = name;
        }
    }
    labels
}

/// Sixty rows in buckets of two: `t1` = 0, 1 | 3, `t2` = 2 | 4, and the plain `t3` = 5, which has missing values.
fn fixture(seed: u64) -> VerifierFixture {
    let mut random = Seeded(seed);
    loop {
        let rows: Vec<Vec<Cell>> = (0..ROWS)
            .map(|_| {
                vec![
                    Some(random.below(20).to_string()),
                    Some(["", "x", "y, z", "\"q\""][random.below(4)].to_owned()).filter(|_| random.below(8) > 0),
                    Some(format!("c{}", random.below(7))),
                    Some(format!("s{}", random.below(5))),
                    Some((random.below(6) * 5).to_string()),
                    Some(format!("{}", random.below(4))).filter(|_| random.below(6) > 0),
                ]
            })
            .collect();
        let sensitive = |attr: usize| rows.iter().map(|row| row[attr].clone()).collect::<Vec<_>>();
        let (first, second) = (pairs(&mut random, &sensitive(3)), pairs(&mut random, &sensitive(4)));
        if first.is_empty() || second.is_empty() {
            continue;
        }
        let mut fixture = VerifierFixture::new(&["a", "b", "c", "s", "t", "o"], rows);
        fixture.guarding(&[0, 1], 3, 2, first);
        fixture.guarding(&[2], 4, 2, second);
        fixture.plain(&[5]);
        fixture.plain(&[2, 5]);
        fixture.hold(rule(0, &[0, 1], 3, 2), guardian("t1", &[0, 1]));
        fixture.hold(rule(1, &[0, 2], 4, 2), guardian("t2", &[2]));
        fixture.hold(rule(2, &[2, 5], 3, 2), EnforcedBy::Unreachable);
        return fixture;
    }
}

fn shift(fixture: &mut VerifierFixture, file: &str, attrs: &[u8]) {
    let buckets = ROWS as u32 / 2;
    for row in &mut fixture.files.get_mut(file).expect("a part").rows {
        let label: u32 = row.0.parse().expect("a label");
        row.0 = (label % buckets + 1).to_string();
    }
    fixture.settle(file, attrs);
}

/// Moves the first row of a part to the last bucket.
fn move_row(fixture: &mut VerifierFixture, file: &str, attrs: &[u8]) {
    fixture.files.get_mut(file).expect("a part").rows[0].0 = (ROWS / 2).to_string();
    fixture.settle(file, attrs);
}

/// Relabels the buckets of a table by `name`, in parts and witness.
fn relabel(fixture: &mut VerifierFixture, table: usize, name: impl Fn(u32) -> u32) {
    let parts: [(&str, &[u8]); 2] = if table == 0 {
        [("t1.qi.csv", &[0, 1]), ("t1.sa.csv", &[3])]
    } else {
        [("t2.qi.csv", &[2]), ("t2.sa.csv", &[4])]
    };
    fixture.witness[table].as_mut().expect("buckets").iter_mut().for_each(|label| *label = name(*label));
    for (file, attrs) in parts {
        for row in &mut fixture.files.get_mut(file).expect("a part").rows {
            row.0 = name(row.0.parse().expect("a label")).to_string();
        }
        fixture.settle(file, attrs);
    }
}

/// Swaps the sensitive values of two buckets with different values.
fn swap_buckets(fixture: &mut VerifierFixture) {
    let rows = &mut fixture.files.get_mut("t1.sa.csv").expect("a part").rows;
    let differs = |rows: &[(String, Vec<Cell>)], b: usize| rows[2 * b].1 != rows[0].1 || rows[2 * b + 1].1 != rows[1].1;
    let other = (1..ROWS / 2).find(|&b| differs(rows, b)).expect("another bucket");
    for place in 0..2 {
        let first = rows[place].1.clone();
        rows[place].1 = std::mem::replace(&mut rows[2 * other + place].1, first);
    }
    fixture.settle("t1.sa.csv", &[3]);
}

/// Publishes an additional column in the first part of `t1`, with the cells of the rows.
fn raw_column(fixture: &mut VerifierFixture) {
    let column = fixture.published(2);
    fixture.publication.tables[0].parts[0].columns.push(column);
    tie_column(fixture);
}

/// The same in the bytes alone.
fn tie_column(fixture: &mut VerifierFixture) {
    let labels = fixture.witness[0].clone().expect("buckets");
    let grid = fixture.files.get_mut("t1.qi.csv").expect("a part");
    grid.header.push("c".to_owned());
    grid.rows =
        labels.iter().zip(&fixture.original).map(|(label, row)| (label.to_string(), row[..3].to_vec())).collect();
    fixture.settle("t1.qi.csv", &[0, 1, 2]);
}

fn rows_follow_labels(fixture: &mut VerifierFixture) {
    let mut names: Vec<u32> = Vec::new();
    for &label in fixture.witness[0].as_ref().expect("buckets") {
        if !names.contains(&label) {
            names.push(label);
        }
    }
    relabel(fixture, 0, |label| names.iter().position(|&name| name == label).expect("a label") as u32 + 1);
}

fn share_labels(fixture: &mut VerifierFixture) {
    // both tables have the buckets of the first; the second is then wrong too, which another check finds
    let labels = fixture.witness[0].clone().expect("buckets");
    for (file, attr) in [("t2.qi.csv", 2), ("t2.sa.csv", 4)] {
        let rows = labels.iter().zip(&fixture.original);
        let rows = rows.map(|(label, row)| (label.to_string(), vec![row[attr as usize].clone()])).collect();
        fixture.files.get_mut(file).expect("a part").rows = rows;
        fixture.settle(file, &[attr]);
    }
    fixture.witness[1] = Some(labels);
}

fn drop_row(fixture: &mut VerifierFixture) {
    fixture.files.get_mut("t4.rows.csv").expect("a part").rows.remove(3);
    fixture.publication.tables[3].parts[0].len -= 1;
}

fn double_row(fixture: &mut VerifierFixture) {
    let rows = &mut fixture.files.get_mut("t4.rows.csv").expect("a part").rows;
    let again = rows[3].clone();
    rows.insert(3, again);
    fixture.publication.tables[3].parts[0].len += 1;
}

/// One row twice and another not at all: the length is right.
fn replace_row(fixture: &mut VerifierFixture) {
    let rows = &mut fixture.files.get_mut("t4.rows.csv").expect("a part").rows;
    let place = (1..ROWS).find(|&row| rows[row].1 != rows[row - 1].1).expect("another row");
    rows[place] = rows[place - 1].clone();
}

fn gap(fixture: &mut VerifierFixture) {
    // no bucket 7, and an additional label
    relabel(fixture, 0, |label| if label >= 7 { label + 1 } else { label });
}

fn merge_labels(fixture: &mut VerifierFixture) {
    relabel(fixture, 0, |label| if label == 8 { 7 } else { label });
}

fn publish_raw(fixture: &mut VerifierFixture) {
    let column = fixture.published(3);
    fixture.publication.tables[3].parts[0].columns.insert(1, column);
    let rows = fixture.original.iter().map(|row| (String::new(), vec![row[2].clone(), row[3].clone(), row[5].clone()]));
    let rows = rows.collect();
    let grid = fixture.files.get_mut("t4.rows.csv").expect("a part");
    grid.rows = rows;
    grid.header = ["c", "s", "o"].map(str::to_owned).to_vec();
    fixture.settle("t4.rows.csv", &[2, 3, 5]);
}

/// A value that an attribute of `t4` does not have, in place of one that stays.
fn surplus_value(fixture: &mut VerifierFixture) {
    let rows = &mut fixture.files.get_mut("t4.rows.csv").expect("a part").rows;
    rows[0].1[0] = Some("c00".to_owned());
    fixture.settle("t4.rows.csv", &[2, 5]);
}

fn missing_to_empty(fixture: &mut VerifierFixture) {
    let rows = &mut fixture.files.get_mut("t4.rows.csv").expect("a part").rows;
    let cell = rows.iter_mut().map(|row| &mut row.1[1]).find(|cell| cell.is_none()).expect("a missing value");
    *cell = Some(String::new());
    fixture.settle("t4.rows.csv", &[2, 5]);
}

/// The null marker of the part of one column becomes a value; the bytes stay.
fn marker_to_value(fixture: &mut VerifierFixture) {
    fixture.publication.tables[2].parts[0].null = None;
    for row in &mut fixture.files.get_mut("t3.rows.csv").expect("a part").rows {
        row.1[0].get_or_insert_with(|| "NA".to_owned());
    }
    fixture.settle("t3.rows.csv", &[5]);
}

fn guard(fixture: &mut VerifierFixture, table: usize) -> &mut crate::publication::TableGuard {
    match &mut fixture.publication.tables[table].protection {
        TableProtection::Guarding(guards) => &mut guards[0],
        _ => panic!("the table is guarding"),
    }
}

type Fault = (&'static str, fn(&mut VerifierFixture), &'static [CheckName]);

/// The faults, each with the checks that must fail.
const FAULTS: &[Fault] = &[
    ("the sensitive part shifted by one bucket", |w| shift(w, "t1.sa.csv", &[3]), &[Content]),
    ("one row moved to another bucket in the first part", |w| move_row(w, "t1.qi.csv", &[0, 1]), &[Content, Buckets]),
    (
        "one row moved to another bucket in both parts",
        |w| {
            move_row(w, "t1.qi.csv", &[0, 1]);
            move_row(w, "t1.sa.csv", &[3]);
        },
        &[Content],
    ),
    ("sensitive values of two buckets swapped", swap_buckets, &[Content]),
    ("a raw column in the bytes", tie_column, &[Columns]),
    (
        "a raw column in claims and bytes, not accounted for",
        |w| {
            w.accounted = w.accounted.without(Attr(2));
            raw_column(w);
        },
        &[Columns],
    ),
    (
        "a raw column that leads round the guardian",
        |w| {
            raw_column(w);
        },
        &[Gnf],
    ),
    ("two tables share their labels", share_labels, &[Buckets]),
    ("labels in the order of rows", rows_follow_labels, &[Buckets]),
    (
        "labels in the reverse order of rows",
        |w| {
            rows_follow_labels(w);
            relabel(w, 0, |label| ROWS as u32 / 2 + 1 - label);
        },
        &[Buckets],
    ),
    ("a value that the original does not have", surplus_value, &[Dictionary, Content]),
    ("a row dropped", drop_row, &[Content, Columns]),
    (
        "a row dropped that the claim still counts",
        |w| {
            drop_row(w);
            w.publication.tables[3].parts[0].len += 1;
        },
        &[Content, Columns],
    ),
    ("a row twice", double_row, &[Content, Columns]),
    (
        "a row twice that the claim does not count",
        |w| {
            double_row(w);
            w.publication.tables[3].parts[0].len -= 1;
        },
        &[Columns],
    ),
    ("a row in place of another", replace_row, &[Content]),
    ("two rows out of order", |w| w.files.get_mut("t4.rows.csv").expect("a part").rows.swap(0, 59), &[Order]),
    ("two buckets out of order", |w| w.files.get_mut("t1.sa.csv").expect("a part").rows.rotate_left(2), &[Order]),
    ("a forgotten rule", |w| w.publication.rules.truncate(2), &[Gnf]),
    ("a guardian that is none", |w| w.publication.rules[1].enforced_by = guardian("t1", &[2]), &[Gnf, Guards]),
    ("a guardian with other known attributes", |w| w.publication.rules[1].enforced_by = guardian("t2", &[]), &[Gnf]),
    ("unreachable where there is a guardian", |w| w.publication.rules[0].enforced_by = EnforcedBy::Unreachable, &[Gnf]),
    (
        "a table that does not exist",
        |w| {
            w.publication.rules[0].enforced_by = EnforcedBy::Table(TableName::at(9));
        },
        &[Gnf, Guards],
    ),
    ("a rule listed weaker than submitted", |w| w.submitted[0].guarantee = Guarantee::LDiversity { l: 3 }, &[Gnf]),
    (
        "a guard of more than the buckets hold",
        |w| {
            guard(w, 0).guarantees[0] = Guarantee::LDiversity { l: 3 };
        },
        &[Kept],
    ),
    (
        "a guard of less than the rule needs",
        |w| {
            guard(w, 0).guarantees[0] = Guarantee::LDiversity { l: 1 };
        },
        &[Gnf, Guards],
    ),
    ("a sensitive attribute raw in a second table", publish_raw, &[Gnf]),
    ("a missing value as the empty string", missing_to_empty, &[Dictionary, Content]),
    ("a missing value as its marker", marker_to_value, &[Dictionary, Content]),
    ("a label left out", gap, &[Order]),
    (
        "two buckets under one label, against the witness",
        |w| {
            let witness = w.witness[0].clone();
            merge_labels(w);
            w.witness[0] = witness;
        },
        &[Order, Content],
    ),
    (
        "a header with another name",
        |w| w.files.get_mut("t2.qi.csv").expect("a part").header[1] = "d".to_owned(),
        &[Columns],
    ),
    (
        "a header without its bucket",
        |w| w.files.get_mut("t2.qi.csv").expect("a part").header[0] = "b".to_owned(),
        &[Columns],
    ),
    ("rows that are suppressed", |w| w.publication.suppressed = 1, &[Dictionary]),
    (
        "buckets made without excluded values",
        |w| {
            w.excludable.push(ExcludedValues { attribute: Attr(3), values: vec![Some("s0".to_owned())] });
        },
        &[Kept],
    ),
    (
        "a witness of other tables",
        |w| {
            w.witness.pop();
        },
        &[Content],
    ),
];

#[test]
fn verify_planted_faults_fails() {
    assert!(FAULTS.len() >= 14);
    for seed in 0..8 {
        let sound = fixture(seed).verify();
        assert!(sound.verified(), "seed {seed}: {:?}", sound.checks);
        for (name, plant, checks) in FAULTS {
            let mut fixture = fixture(seed);
            plant(&mut fixture);
            let report = fixture.verify();
            let failed = failed(&report);
            for check in *checks {
                assert!(failed.contains(check), "seed {seed}: {name}: {check:?} not among {failed:?}");
            }
            let details = report.checks.iter().filter_map(|check| check.detail.as_deref());
            assert!(details.clone().all(|detail| !detail.is_empty()), "{name}");
        }
    }
}

/// Whether the known cells of each row of a bucket of `t1` are those of no other row.
fn has_single_rows(fixture: &VerifierFixture, label: &str) -> bool {
    let rows = &fixture.files["t1.qi.csv"].rows;
    let single = |row: &(String, Vec<Cell>)| rows.iter().filter(|other| other.1 == row.1).count() == 1;
    rows.iter().filter(|row| row.0 == label).all(single)
}

/// Whether a bucket of `t1` has a sensitive value.
fn holds(fixture: &VerifierFixture, label: &str, value: &[Cell]) -> bool {
    fixture.files["t1.sa.csv"].rows.iter().any(|(other, held)| other == label && held == value)
}

/// Exchanges two rows of a part that `fits` finds; both are rows of a bucket whose known cells no other row has.
fn exchange(
    fixture: &mut VerifierFixture,
    file: &str,
    attrs: &[u8],
    fits: impl Fn(&VerifierFixture, [usize; 2]) -> bool,
) {
    let rows = fixture.files[file].rows.clone();
    let singles: Vec<usize> = (0..rows.len()).filter(|&row| has_single_rows(fixture, &rows[row].0)).collect();
    let mut pairs = singles.iter().flat_map(|&a| singles.iter().map(move |&b| [a, b]));
    let [a, b] = pairs.find(|pair| fits(fixture, *pair)).expect("two rows");
    let grid = fixture.files.get_mut(file).expect("a part");
    (grid.rows[a].1, grid.rows[b].1) = (rows[b].1.clone(), rows[a].1.clone());
    fixture.settle(file, attrs);
}

/// Exchanges the known cells of two rows whose buckets have no sensitive value in common.
fn swap_known(fixture: &mut VerifierFixture) {
    exchange(fixture, "t1.qi.csv", &[0, 1], |fixture, pair| {
        let [a, b] = pair.map(|row| fixture.files["t1.qi.csv"].rows[row].0.clone());
        !fixture.files["t1.sa.csv"].rows.iter().any(|(label, value)| *label == a && holds(fixture, &b, value))
    });
}

/// Exchanges two sensitive values, neither of which the other bucket has.
fn move_value(fixture: &mut VerifierFixture) {
    exchange(fixture, "t1.sa.csv", &[3], |fixture, pair| {
        let [(a, first), (b, second)] = pair.map(|row| fixture.files["t1.sa.csv"].rows[row].clone());
        !holds(fixture, &a, &second) && !holds(fixture, &b, &first)
    });
}

/// What a publisher changes.
type PlantedFault = fn(&mut VerifierFixture);

/// Without a witness, parts that are right one by one do not fit the rows of the original.
#[test]
fn verify_rows_that_stand_in_no_bucket_fails() {
    let faults: [(&str, PlantedFault); 2] =
        [("known cells of two rows exchanged", swap_known), ("a sensitive value in another bucket", move_value)];
    for seed in 0..8 {
        let sound = fixture(seed).verify_with(true, false);
        assert!(sound.verified(), "seed {seed}: {:?}", sound.checks);
        for (name, plant) in faults {
            let mut fixture = fixture(seed);
            plant(&mut fixture);
            let failed = failed(&fixture.verify_with(true, false));
            assert_eq!(failed, [Content], "seed {seed}: {name}");
            // the parts as such are in order
            assert!(fixture.verify_with(false, false).verified(), "seed {seed}: {name}");
        }
    }
}

/// The parts alone reveal their faults, without a witness and without an original.
#[test]
fn verify_faults_of_parts_without_original_fails() {
    let faults =
        ["a guard of more", "two rows out of", "a label left out", "a forgotten rule", "a sensitive attribute raw"];
    for fault in faults {
        let (name, plant, checks) =
            FAULTS.iter().find(|(name, _, _)| name.starts_with(fault)).expect("a fault of this name");
        let mut fixture = fixture(1);
        assert!(fixture.verify_with(false, false).verified() && fixture.verify_with(true, false).verified());
        plant(&mut fixture);
        for original in [false, true] {
            let failed = failed(&fixture.verify_with(original, false));
            assert!(checks.iter().all(|check| failed.contains(check)), "{name}: {failed:?}");
        }
    }
}
