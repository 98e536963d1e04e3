//! Nights of the engine: what each publishes, and what all of them together show.

use std::collections::BTreeMap;

use guardian::engine;
use guardian::engine::EngineError;
use guardian::problem::{Kind, Problem};
use guardian::publication::CheckName;
use guardian::report::{Manifest, MethodDetailsForm, NightCounts, RepublishForm};
use serde_json::{Value, json};

use crate::support::library::verified;
use crate::support::nights::{Churn, Intersection, Night, Person, Population, Published, adult, csv, document, shown};

#[track_caller]
fn refused(result: Result<Published, EngineError>) -> Problem {
    match result {
        Err(EngineError::Refused(problem)) => problem,
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("it was published"),
    }
}

fn form(published: &Published) -> &RepublishForm {
    match &published.manifest.method_details {
        Some(MethodDetailsForm::Republish(form)) => form,
        other => panic!("{other:?}"),
    }
}

fn counts(published: &Published) -> NightCounts {
    published.released.internal.night.unwrap()
}

/// Persons with these values, the first with key `first`.
fn persons(first: usize, values: &[&str]) -> Night {
    let person = |value: &&str| Person { age: "40".to_owned(), value: (*value).to_owned() };
    (first..).zip(values.iter().map(person)).collect()
}

#[test]
fn an_intersection_of_all_nights_finds_no_one() {
    const L: usize = 3;
    const NIGHTS: usize = 20;
    let mut churn = Churn::new(adult(), 1_200, 5);
    let mut population = Population::default();
    let (mut nights, mut once) = (Intersection::default(), Intersection::default());
    let mut counterfeits = Vec::new();
    for night in 1..=NIGHTS {
        let table = churn.table();
        let published =
            population.publish(&csv(&table), &document(L as u64, json!({"min_newcomers": 24})), night as u8);
        let published = published.unwrap();
        assert_eq!(form(&published).night as usize, night);
        assert_eq!(form(&published).rows as usize, table.len() - counts(&published).waiting as usize);
        counterfeits.push(form(&published).counterfeits);
        nights.add(&shown(&published.manifest, &published.files));
        if night <= 4 {
            // four releases of the same tables, each by itself
            let alone = Population::default().publish(&csv(&table), &document(L as u64, json!({})), 99 - night as u8);
            let alone = alone.unwrap();
            once.add(&shown(&alone.manifest, &alone.files));
        }
        if night == NIGHTS {
            let verification = &published.manifest.verification;
            assert!(verification.checks.iter().any(|check| check.check == CheckName::Republication && check.passed));
            verified(&published.job, &published.manifest, &published.files, false);
        }
        churn.turn(24);
    }
    assert_eq!(nights.above(L), 0);
    assert!(nights.persons() > 1_500);
    assert!(once.above(L) > 1_000, "{} of {}", once.above(L), once.persons());
    assert!(counterfeits[0] == 0 && counterfeits.is_sorted(), "{counterfeits:?}");
}

#[test]
fn a_night_that_is_made_again_has_equal_bytes() {
    let mut churn = Churn::new(adult(), 300, 3);
    let mut population = Population::default();
    let terms = document(3, json!({"min_newcomers": 6}));
    population.publish(&csv(&churn.table()), &terms, 1).unwrap();
    churn.turn(12);
    let before = population.clone();
    let first = population.publish(&csv(&churn.table()), &terms, 2).unwrap();
    let mut again = before.clone();
    let second = again.publish(&csv(&churn.table()), &terms, 2).unwrap();
    assert_eq!(first.files.0, second.files.0);
    assert_eq!(population.state, again.state);
    let mut other = before;
    let third = other.publish(&csv(&churn.table()), &terms, 3).unwrap();
    assert_ne!(first.files.0, third.files.0);
}

#[test]
fn returns_and_corrections_keep_the_signature() {
    let mut population = Population::default();
    let terms = document(3, json!({"min_newcomers": 3, "grace": 1}));
    let all = persons(0, &["a", "b", "c", "a", "b", "d"]);
    let first = population.publish(&csv(&all), &terms, 1).unwrap();
    let before = shown(&first.manifest, &first.files);
    // 0 leaves, the age of 1 is corrected, the value of 2 changes, and two newcomers are too few
    let mut second: Night = all.clone();
    second.remove(&0);
    second.get_mut(&1).unwrap().age = "41".to_owned();
    second.get_mut(&2).unwrap().value = "e".to_owned();
    second.append(&mut persons(6, &["x", "y"]));
    let published = population.publish(&csv(&second), &terms, 2).unwrap();
    let expected = NightCounts {
        known: 5,
        newcomers: 2,
        departed: 1,
        changed: 1,
        waiting: 2,
        withheld: 1,
        ..NightCounts::default()
    };
    assert_eq!(NightCounts { merged: 0, ..counts(&published) }, expected);
    assert_eq!((form(&published).rows, published.released.internal.suppressed_rows), (4, 3));
    let now = shown(&published.manifest, &published.files);
    assert_eq!(now.keys().collect::<Vec<_>>(), ["n1", "n3", "n4", "n5"]);
    assert!(now.iter().all(|(person, values)| before[person] == *values));
    // all are back, and a third newcomer is there
    let mut third = all.clone();
    third.append(&mut persons(6, &["x", "y", "z"]));
    let published = population.publish(&csv(&third), &terms, 3).unwrap();
    assert_eq!((counts(&published).returning, counts(&published).newcomers), (2, 3));
    let now = shown(&published.manifest, &published.files);
    assert!(before.iter().all(|(person, values)| now[person] == *values));
    assert_eq!(now["n6"], ["x", "y", "z"]);
}

#[test]
fn values_of_persons_who_left_stay_in_the_parts() {
    let mut population = Population::default();
    let terms = document(2, json!({"min_newcomers": 2, "merge": "never"}));
    population.publish(&csv(&persons(0, &["7", "x", "8", "9"])), &terms, 1).unwrap();
    // only numbers are left in the table, and texts in the buckets
    let mut left = persons(0, &["7", "x", "8", "9"]);
    left.remove(&1);
    let published = population.publish(&csv(&left), &terms, 2).unwrap();
    let all: Vec<String> = shown(&published.manifest, &published.files).into_values().flatten().collect();
    assert!(all.contains(&"x".to_owned()) && form(&published).counterfeits == 1, "{all:?}");
    verified(&published.job, &published.manifest, &published.files, false);
    verified(&published.job, &published.manifest, &published.files, true);
}

#[test]
fn other_terms_are_refused_with_the_way_back() {
    let mut population = Population::default();
    let table = csv(&persons(0, &["a", "b", "c", "d"]));
    let terms = document(2, json!({"merge": "never"}));
    population.publish(&table, &terms, 1).unwrap();
    let mut of_age = terms.clone();
    of_age["method"]["sensitive"] = "age".into();
    of_age["attributes"]["occupation"] = json!({"publish": true});
    let other = |pointer: &str, value: Value| {
        let mut changed = terms.clone();
        *changed.pointer_mut(pointer).unwrap() = value;
        changed
    };
    for (changed, member, pointer) in [
        (other("/republish", json!({})), "merge", "/republish/merge"),
        (other("/republish", json!({"merge": "never", "changes": "move"})), "changes", "/republish/changes"),
        (other("/republish", json!({"merge": "never", "grace": 1})), "grace", "/republish/grace"),
        (other("/method/guarantee/l", json!(3)), "guarantee", "/method/guarantee"),
        (of_age, "sensitive", "/method/sensitive"),
    ] {
        let before = population.state.clone();
        let problem = refused(population.publish(&table, &changed, 2));
        let [fault] = &problem.errors[..] else { panic!("{problem:?}") };
        assert_eq!((fault.kind, fault.pointer.as_str()), (Kind::RepublishSpecificationChanged, pointer));
        assert_eq!(fault.members["member"], member);
        assert_eq!(fault.remedies[0].patch[0]["path"], pointer);
        assert_eq!(population.state, before);
    }
    // smaller cohorts and forgetting may change
    let other = document(2, json!({"merge": "never", "min_newcomers": 9, "forget_after": 9}));
    assert_eq!(form(&population.publish(&table, &other, 3).unwrap()).night, 2);
}

#[test]
fn what_no_night_can_be_made_of_is_refused() {
    let terms = document(2, json!({"changes": "refuse"}));
    let mut population = Population::default();
    let frequent = refused(population.publish(&csv(&persons(0, &["a", "a", "a", "b"])), &terms, 1));
    assert_eq!(frequent.errors[0].kind, Kind::RuleIneligible);
    assert_eq!(frequent.errors[0].members["largest_l"], 1);
    let twice = "pid,no,age,occupation\np1,n1,40,a\np1,n2,40,b\np2,n3,40,c\n";
    assert_eq!(refused(population.publish(twice, &terms, 1)).errors[0].kind, Kind::RepublishUnsupported);
    assert_eq!(population.state, None);
    population.publish(&csv(&persons(0, &["a", "b", "c", "d"])), &terms, 1).unwrap();
    let changed = refused(population.publish(&csv(&persons(0, &["a", "b", "c", "e"])), &terms, 2));
    assert_eq!((changed.kind, &changed.members["changed"]), (Kind::RepublishValueChanged, &json!(1)));
    let unknown = refused(population.publish(&csv(&persons(9, &["a"])), &terms, 2));
    assert_eq!(unknown.kind, Kind::EmptyTable);
    let mut damaged = Population { state: population.state.clone().map(|state| state[1..].to_vec()) };
    let lost = refused(damaged.publish(&csv(&persons(0, &["a", "b"])), &terms, 2));
    assert_eq!(lost.kind, Kind::RepublishStateLost);
}

#[test]
fn moved_persons_get_values_that_they_never_had() {
    let mut population = Population::default();
    let terms = document(2, json!({"changes": "move", "merge": "never"}));
    let first = population.publish(&csv(&persons(0, &["a", "b", "c", "d"])), &terms, 1).unwrap();
    let before = shown(&first.manifest, &first.files);
    let second = population.publish(&csv(&persons(0, &["x", "y", "c", "d"])), &terms, 2).unwrap();
    let after = shown(&second.manifest, &second.files);
    assert_eq!((counts(&second).changed, counts(&second).moved), (2, 2));
    let of_both: BTreeMap<&String, _> =
        before.iter().map(|(person, values)| (person, (values, &after[person]))).collect();
    for person in ["n0", "n1"] {
        let (old, new) = of_both[&person.to_owned()];
        assert!(new.iter().all(|value| !old.contains(value)), "{old:?} {new:?}");
    }
}

#[test]
fn uniform_bucketization_is_republished_too() {
    let mut population = Population::default();
    let mut terms = document(2, json!({"min_newcomers": 2}));
    terms["method"] = json!({"type": "bucketize", "sensitive": "occupation", "thresholds": {"uniform": {"l": 2}},
        "dependencies": {"discover": "none"},
        "assume_unknown": [{"determinant": [], "dependent": [], "reason": "everybody is known by a number"}]});
    let all = persons(0, &["a", "b", "c", "d"]);
    population.publish(&csv(&all), &terms, 1).unwrap();
    let mut left = all;
    left.remove(&0);
    let published = population.publish(&csv(&left), &terms, 2).unwrap();
    assert_eq!((form(&published).rows, form(&published).counterfeits), (3, 1));
    verified(&published.job, &published.manifest, &published.files, false);
}

#[test]
fn more_nights_or_rows_than_can_be_read_are_refused() {
    let table = csv(&persons(0, &["a", "b", "a", "b"]));
    let published = Population::default().publish(&table, &document(2, json!({})), 1).unwrap();
    let manifest = &published.manifest;
    let check = |manifests: &[&Manifest], found: u64| {
        let problem = engine::Intersection::check_work(manifests).unwrap_err();
        assert_eq!((problem.kind, problem.to_json("")["found"].as_u64()), (Kind::WorkLimit, Some(found)));
    };
    engine::Intersection::check_work(&vec![manifest; 4_096]).unwrap();
    check(&vec![manifest; 4_097], 4_097);
    let mut long = manifest.clone();
    long.tables[0].parts[0].rows = 199_999_999;
    long.tables[0].parts[1].rows = 1;
    engine::Intersection::check_work(&[&long]).unwrap();
    let rows: u64 = manifest.tables[0].parts.iter().map(|part| part.rows).sum();
    check(&[&long, manifest], 200_000_000 + rows);
}
