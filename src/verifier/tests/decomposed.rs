//! Faults planted in decompositions, with and without noise: the check about each fault catches it.

use std::collections::{BTreeMap, BTreeSet};

use BreachKind::{Chain, Forced};
use proptest::prelude::*;

use super::fixture::{Cell, VerifierFixture, failed, rule};
use crate::control::Control;
use crate::microdata::{Attr, AttrSet};
use crate::publication::{
    BreachKind, DecompositionDetails, EnforcedBy, Guarantee, InferableBucket, MethodDetails, RowMeaning, SubmittedRule,
    TableName, TableProtection,
};
use crate::verifier::contract::checks::CheckName;
use crate::verifier::contract::checks::CheckName::{Buckets, Columns, Content, Gnf, Guarantee as Kept, Guards, Order};
use crate::verifier::definition::feasible_worlds::{ExclusionLimits, InferenceError};
use crate::verifier::definition::observed_decomposition::ObservedDecomposition;

const OCC: Attr = Attr(2);

const SALARY: Attr = Attr(3);

/// The example table of the poster.
fn rows() -> Vec<Vec<Cell>> {
    [
        ["F", "10078", "nurse", "1"],
        ["F", "10077", "nurse", "4"],
        ["M", "10076", "police", "8"],
        ["F", "10075", "cook", "9"],
        ["F", "10085", "actor", "2"],
        ["M", "10085", "actor", "7"],
        ["M", "20086", "clerk", "8"],
        ["F", "20087", "clerk", "2"],
    ]
    .iter()
    .map(|row| row.iter().map(|cell| Some((*cell).to_owned())).collect())
    .collect()
}

fn fixture(labels: &[u32], noise: &[(u8, u32, &str)], said: DecompositionDetails) -> VerifierFixture {
    let mut fixture = VerifierFixture::new(&["sex", "zip", "occ", "salary"], rows());
    fixture.decomposed(&[0, 1], &[2, 3], noise, labels.to_vec());
    for (place, attr) in [2, 3].into_iter().enumerate() {
        let submitted = SubmittedRule { pointer: format!("/method/sensitive/{place}"), ..rule(0, &[0, 1], attr, 4) };
        fixture.hold(submitted, EnforcedBy::Table(TableName::at(0)));
    }
    fixture.publication.method_details = MethodDetails::Decompose(said);
    fixture
}

fn said(noisy: &[Attr], bounded: &[Attr], free: u64, first: &[(u32, BreachKind)]) -> DecompositionDetails {
    let first: Vec<InferableBucket> =
        first.iter().map(|&(bucket, kind)| InferableBucket { bucket, attribute: SALARY, kind }).collect();
    let count = |kind| first.iter().filter(|inferred| inferred.kind == kind).count() as u64;
    DecompositionDetails {
        primary: OCC,
        l: BTreeMap::from([(OCC, 4), (SALARY, 4)]),
        noisy: noisy.iter().copied().collect(),
        bounded: bounded.iter().copied().collect(),
        repeat_free: BTreeMap::from([(SALARY, (free, 2))]),
        breach_counts: BreachKind::ALL.into_iter().map(|kind| (kind, count(kind))).collect(),
        first,
    }
}

/// Nurse 1, actor 7, clerk 2, police 8, and nurse 4, actor 2, cook 9, clerk 8: no value repeats in a bucket.
fn exact() -> VerifierFixture {
    fixture(&[2, 1, 2, 1, 1, 2, 1, 2], &[], said(&[], &[OCC, SALARY], 2, &[(1, Chain), (2, Chain)]))
}

/// The buckets of the poster: 8 occurs twice in one of them, and 7 is added.
fn noisy() -> VerifierFixture {
    let first = [(1, Chain), (2, Chain), (2, Forced)];
    fixture(&[2, 1, 2, 1, 2, 1, 2, 1], &[(3, 2, "7")], said(&[SALARY], &[OCC], 0, &first))
}

fn method_details(fixture: &mut VerifierFixture) -> &mut DecompositionDetails {
    match &mut fixture.publication.method_details {
        MethodDetails::Decompose(said) => said,
        _ => panic!("a decomposition"),
    }
}

fn values(fixture: &mut VerifierFixture) -> &mut Vec<(String, Vec<Cell>)> {
    &mut fixture.files.get_mut("t1.values1.csv").expect("a part").rows
}

/// Replaces a value of a bucket.
fn replace(fixture: &mut VerifierFixture, file: &str, attr: u8, (label, value): (&str, &str), by: &str) {
    let rows = &mut fixture.files.get_mut(file).expect("a part").rows;
    let row = rows.iter_mut().find(|row| row.0 == label && row.1[0].as_deref() == Some(value)).expect("a row");
    row.1 = vec![Some(by.to_owned())];
    fixture.settle(file, &[attr]);
}

fn add(fixture: &mut VerifierFixture, label: &str, value: &str) {
    values(fixture).push((label.to_owned(), vec![Some(value.to_owned())]));
    fixture.settle("t1.values1.csv", &[3]);
    fixture.publication.tables[0].parts[2].len += 1;
}

fn drop_value(fixture: &mut VerifierFixture, label: &str, value: &str) {
    values(fixture).retain(|row| !(row.0 == label && row.1[0].as_deref() == Some(value)));
    fixture.publication.tables[0].parts[2].len -= 1;
}

/// Removes a row of the joint table.
fn drop_joint(fixture: &mut VerifierFixture, occ: &str) {
    let rows = &mut fixture.files.get_mut("t2.rows.csv").expect("a part").rows;
    let at = rows.iter().position(|row| row.1[0].as_deref() == Some(occ)).expect("a row");
    rows.remove(at);
    fixture.publication.tables[1].parts[0].len -= 1;
}

type Fault = (&'static str, fn(&mut VerifierFixture), &'static [CheckName]);

const EXACT: &[Fault] = &[
    ("a listed value that is not the bucket's", |w| replace(w, "t1.values1.csv", 3, ("2", "1"), "9"), &[Content]),
    ("a value that the original does not have", |w| replace(w, "t1.values1.csv", 3, ("2", "1"), "5"), &[Content, Kept]),
    ("a value left out", |w| drop_value(w, "2", "7"), &[Content, Kept]),
    ("a value twice", |w| add(w, "2", "7"), &[Buckets]),
    ("undeclared noise", |w| add(w, "1", "7"), &[Content, Kept]),
    (
        "a primary value in another bucket",
        |w| {
            replace(w, "t1.primary.csv", 2, ("1", "cook"), "police");
            replace(w, "t1.primary.csv", 2, ("2", "police"), "cook");
        },
        &[Content],
    ),
    (
        "a primary value twice in a bucket",
        |w| {
            replace(w, "t1.primary.csv", 2, ("1", "cook"), "clerk");
            replace(w, "t1.primary.csv", 2, ("2", "clerk"), "cook");
        },
        &[Content, Kept],
    ),
    (
        "rows of another bucket",
        |w| {
            let rows = &mut w.files.get_mut("t1.qi.csv").expect("a part").rows;
            let (first, last) = (rows[0].1.clone(), rows[7].1.clone());
            (rows[0].1, rows[7].1) = (last, first);
            w.settle("t1.qi.csv", &[0, 1]);
        },
        &[Content],
    ),
    (
        "joint values of no row",
        |w| {
            let row = &mut w.files.get_mut("t2.rows.csv").expect("a part").rows[0];
            row.1[1] = Some("9".to_owned());
            w.settle("t2.rows.csv", &[2, 3]);
        },
        &[Content],
    ),
    ("a joint row left out", |w| drop_joint(w, "clerk"), &[Content, Kept]),
    ("values out of order", |w| values(w).swap(0, 1), &[Order]),
    ("joint rows out of order", |w| w.files.get_mut("t2.rows.csv").expect("a part").rows.swap(0, 7), &[Order]),
    (
        "more diversity than buckets have",
        |w| {
            method_details(w).l.insert(SALARY, 5);
            for rule in [&mut w.submitted[1].guarantee, &mut w.publication.rules[1].guarantee] {
                *rule = Guarantee::LDiversity { l: 5 };
            }
        },
        &[Kept, Gnf],
    ),
    (
        "diversity that no rule asks for",
        |w| {
            method_details(w).l.insert(OCC, 3);
        },
        &[Guards],
    ),
    (
        "a rule of which nothing is said",
        |w| {
            w.publication.rules.pop();
            w.submitted.pop();
        },
        &[Guards],
    ),
    (
        "a rule not listed",
        |w| {
            w.publication.rules.pop();
        },
        &[Gnf, Guards],
    ),
    (
        "a bucket said to repeat",
        |w| {
            method_details(w).repeat_free.insert(SALARY, (1, 2));
        },
        &[Kept],
    ),
    ("a bound kept back", |w| method_details(w).bounded = AttrSet::one(OCC), &[Kept]),
    (
        "a chain kept back",
        |w| {
            method_details(w).first.pop();
        },
        &[Kept],
    ),
    (
        "chains miscounted",
        |w| {
            method_details(w).breach_counts.insert(Chain, 1);
        },
        &[Kept],
    ),
    ("another primary attribute", |w| method_details(w).primary = SALARY, &[Guards, Columns]),
    ("lists said to be tuples", |w| w.publication.tables[0].parts[2].rows = RowMeaning::Tuples, &[Columns, Guards]),
    (
        "buckets said to be guarding",
        |w| w.publication.tables[0].protection = TableProtection::Guarding(Vec::new()),
        &[Columns, Guards],
    ),
    (
        "joint values said to be plain",
        |w| w.publication.tables[1].protection = TableProtection::Plain,
        &[Columns, Guards],
    ),
    (
        "a dependency that ties rows to values",
        |w| {
            w.dependencies.push((AttrSet::one(Attr(1)).with(OCC), AttrSet::one(SALARY)));
        },
        &[Gnf],
    ),
    (
        "a dependency that determines a value",
        |w| {
            w.dependencies.push((AttrSet::one(Attr(1)), AttrSet::one(SALARY)));
        },
        &[Gnf],
    ),
];

const NOISY: &[Fault] = &[
    // 4 belongs to a nurse, and the bucket of the other nurse does not list 1
    ("noise that the joint values rule out", |w| replace(w, "t1.values1.csv", 3, ("2", "7"), "4"), &[Kept]),
    (
        "noise that no primary value of the bucket goes with",
        |w| replace(w, "t1.values1.csv", 3, ("2", "7"), "9"),
        &[Kept],
    ),
    ("noise in place of a value", |w| replace(w, "t1.values1.csv", 3, ("2", "1"), "4"), &[Content]),
    ("noise said not to be", |w| method_details(w).noisy = AttrSet::EMPTY, &[Content]),
    ("a bound that is none", |w| method_details(w).bounded = AttrSet::one(OCC).with(SALARY), &[Kept]),
    (
        "a bucket said not to repeat",
        |w| {
            method_details(w).repeat_free.insert(SALARY, (1, 2));
        },
        &[Kept],
    ),
    (
        "what is forced kept back",
        |w| {
            method_details(w).first.pop();
            method_details(w).breach_counts.insert(Forced, 0);
        },
        &[Kept],
    ),
];

fn every_fault_is_caught(sound: fn() -> VerifierFixture, faults: &[Fault]) {
    for (original, witness) in [(true, true), (true, false), (false, false)] {
        let report = sound().verify_with(original, witness);
        assert!(report.verified(), "{original} {witness}: {:?}", report.checks);
    }
    for (name, plant, checks) in faults {
        let mut fixture = sound();
        plant(&mut fixture);
        let failed = failed(&fixture.verify());
        for check in *checks {
            assert!(failed.contains(check), "{name}: {check:?} not among {failed:?}");
        }
        // the parts alone show the inferences
        if checks.iter().all(|check| *check == Kept) {
            assert!(!fixture.verify_with(false, false).verified(), "{name}");
        }
    }
}

#[test]
fn verify_faults_in_decompositions_fails() {
    every_fault_is_caught(exact, EXACT);
}

#[test]
fn verify_faults_in_noise_fails() {
    every_fault_is_caught(noisy, NOISY);
}

#[test]
fn joint_table_without_a_primary_value_passes() {
    let mut fixture = exact();
    // the joint table determines the salaries of nurses, actors, police and cooks, but not of clerks
    for occ in ["nurse", "nurse", "actor", "actor", "police", "cook"] {
        drop_joint(&mut fixture, occ);
    }
    let details = method_details(&mut fixture);
    (details.first, details.breach_counts) = (Vec::new(), BreachKind::ALL.into_iter().map(|kind| (kind, 0)).collect());
    for (original, witness) in [(true, true), (true, false), (false, false)] {
        let report = fixture.verify_with(original, witness);
        assert!(report.verified(), "{original} {witness}: {:?}", report.checks);
    }
    drop_joint(&mut fixture, "clerk");
    assert!(failed(&fixture.verify()).contains(&Content));
    assert!(failed(&fixture.verify_with(false, false)).contains(&Kept));
}

/// Enumerates every possible world: calls `seen` with each complete assignment of joint rows to slots.
fn worlds(
    shown: &ObservedDecomposition,
    places: &[(usize, u32)],
    fixture: &mut Vec<usize>,
    seen: &mut dyn FnMut(&[usize]),
) {
    let Some(&(bucket, primary)) = places.get(fixture.len()) else { return seen(fixture) };
    for (row, (value, others)) in shown.joint.iter().enumerate() {
        let fits = others.iter().zip(&shown.sets[bucket]).all(|(value, set)| set.contains(value));
        if *value == primary && fits && !fixture.contains(&row) {
            fixture.push(row);
            worlds(shown, places, fixture, seen);
            fixture.pop();
        }
    }
}

proptest! {
    #[test]
    fn what_is_concluded_is_what_all_worlds_say(
        rows in prop::collection::vec((0_u32..3, 0_u32..3, 0_u32..2), 7),
        joint in prop::collection::vec((0_u32..3, 0_u32..3, 0_u32..2), 7),
        same in any::<bool>(),
        cut in 1_usize..7,
        more in prop::collection::vec((0_usize..2, 0_usize..2, 0_u32..3), 0..5),
    ) {
        let buckets = [&rows[..cut], &rows[cut..]];
        let set = |of: &[(u32, u32, u32)]| vec![of.iter().map(|row| row.1).collect(), of.iter().map(|row| row.2).collect()];
        let mut shown = ObservedDecomposition {
            primary: buckets.iter().map(|of| of.iter().map(|row| row.0).collect()).collect(),
            sets: Vec::new(),
 // also of tables that contradict each other
            joint: if same { &rows } else { &joint }.iter().map(|row| (row.0, vec![row.1, row.2])).collect(),
            exact: vec![false; 2],
        };
        let mut sets: Vec<Vec<BTreeSet<u32>>> = buckets.iter().map(|of| set(of)).collect();
        more.into_iter().for_each(|(bucket, at, value)| { sets[bucket][at].insert(value); });
        shown.sets = sets.into_iter().map(|of| of.into_iter().map(|set| set.into_iter().collect()).collect()).collect();
        let places: Vec<(usize, u32)> =
            shown.primary.iter().enumerate().flat_map(|(at, of)| of.iter().map(move |value| (at, *value))).collect();
        let mut at_place = vec![vec![BTreeSet::new(); 2]; places.len()];
        let mut any = false;
        let mut alike = [[0_u64; 2]; 2];
        worlds(&shown, &places, &mut Vec::new(), &mut |fixture| {
            any = true;
            for (bucket, of) in alike.iter_mut().enumerate() {
                for (at, most) in of.iter_mut().enumerate() {
                    let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
                    let here = places.iter().zip(fixture).filter(|((of, _), _)| *of == bucket);
                    here.for_each(|(_, &row)| *counts.entry(shown.joint[row].1[at]).or_default() += 1);
                    *most = counts.into_values().max().unwrap_or(0).max(*most);
                }
            }
            for (of, &row) in at_place.iter_mut().zip(fixture) {
                (0..2).for_each(|at| { of[at].insert(shown.joint[row].1[at]); });
            }
        });
        let known: BTreeSet<u32> = shown.joint.iter().map(|row| row.0).collect();
        let possible = shown.possible(&Control::default());
 // the enumeration does not know the rows of primary values that the joint table lacks
        prop_assume!(places.iter().all(|(_, value)| known.contains(value)));
        if !any {
            prop_assert!(matches!(possible, Err(InferenceError::Contradiction)));
            return Ok(());
        }
        let Ok(possible) = possible else { return Err(TestCaseError::fail("worlds are possible")) };
 // the largest probability of a value in a row proves the verified bounds
        for (bucket, of) in alike.iter().enumerate() {
            for (at, most) in of.iter().enumerate() {
                prop_assert!(*most <= shown.alike(&possible, bucket, at));
            }
        }
        let chains = possible.chains(2, 2);
        let exclusions = possible.exclusions(ExclusionLimits { attributes: 2, fewest: 2, excluded: 2, work: u64::MAX }, &Control::default()).expect("an answer").expect("few choices");
        let forced = possible.forced(&[2, 2]);
        for bucket in 0..2 {
            for at in 0..2 {
                let of: Vec<(u32, &BTreeSet<u32>)> = places.iter().zip(&at_place)
                    .filter(|((of, _), _)| *of == bucket).map(|((_, value), sets)| (*value, &sets[at])).collect();
                for (value, set) in &of {
                    let found = chains.iter().any(|c| (c.bucket, c.attribute) == (bucket, at) && c.known == [*value]);
                    prop_assert_eq!(found, set.len() < 2);
                }
                let values: BTreeSet<u32> = of.iter().map(|(value, _)| *value).collect();
                for out in values.iter().flat_map(|a| values.iter().map(move |b| BTreeSet::from([*a, *b]))) {
                    if out.len() == values.len() { continue; }
                    let left: BTreeSet<u32> = of.iter().filter(|(v, _)| !out.contains(v)).flat_map(|(_, s)| s.iter().copied()).collect();
                    let found = exclusions.iter().any(|c| {
                        (c.bucket, c.attribute) == (bucket, at) && c.known.iter().all(|value| out.contains(value))
                    });
                    prop_assert_eq!(found, left.len() < 2);
                }
                let sure = |value: u32| of.iter().filter(|(_, set)| set.len() == 1 && set.contains(&value)).count();
                for value in 0..3 {
                    let found = forced.iter().any(|c| (c.bucket, c.attribute) == (bucket, at) && c.values.contains(&value));
                    prop_assert_eq!(found, sure(value) * 2 > of.len());
                }
                let all: BTreeSet<u32> = of.iter().flat_map(|(_, set)| set.iter().copied()).collect();
                let excluded: BTreeSet<u32> = shown.excludable(&possible).into_iter()
                    .filter(|(b, a, _)| (*b, *a) == (bucket, at)).map(|(_, _, value)| value).collect();
                let listed: BTreeSet<u32> = shown.sets[bucket][at].iter().copied().collect();
                prop_assert_eq!(excluded, listed.difference(&all).copied().collect::<BTreeSet<u32>>());
            }
        }
    }
}
