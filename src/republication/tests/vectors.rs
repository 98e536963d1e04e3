//! Histories whose every release and posterior is known.

use std::collections::BTreeMap;

use serde_json::Value;

use super::slot_worlds::{Version, posteriors};
use super::{TestBucket, TestRow, TestTerms, Threshold, Thresholds, published};
use crate::publication::{BucketMerging, ChangedValues};
use crate::random::RandomStreams;
use crate::republication::{Diversity, FoundingRule, NightError, PublishedSlots, State, least_newcomers};

fn vectors() -> Value {
    serde_json::from_str(include_str!("../../../tests/vectors/republication.json")).unwrap()
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().unwrap().iter().map(|item| item.as_str().unwrap().to_owned()).collect()
}

fn terms(history: &Value) -> TestTerms {
    let l = history["l"].as_u64();
    let founding: Box<dyn FoundingRule> = match l {
        Some(l) => Box::new(Diversity { l }),
        None => Box::new(Thresholds(history["thresholds"].as_object().unwrap().values().map(threshold).collect())),
    };
    TestTerms {
        founding,
        l: l.unwrap_or(0) as u32,
        changes: match history["changes"].as_str().unwrap() {
            "withhold" => ChangedValues::Withhold,
            "move" => ChangedValues::Move,
            "refuse" => ChangedValues::Refuse,
            other => panic!("{other}"),
        },
        merging: if history["merge"] == "never" { BucketMerging::Never } else { BucketMerging::Single },
        min_newcomers: history["min_newcomers"].as_u64().unwrap(),
        grace: history["grace"].as_u64().unwrap() as u32,
        forget_after: None,
    }
}

fn threshold(share: &Value) -> Threshold {
    let (numerator, denominator) = share.as_str().unwrap().split_once('/').unwrap();
    Threshold { numerator: numerator.parse().unwrap(), denominator: denominator.parse().unwrap() }
}

#[test]
fn histories_publish_what_the_vectors_say() {
    let vectors = vectors();
    let histories = vectors["histories"].as_array().unwrap();
    assert_eq!(histories.len(), 73);
    let (mut refused, mut merged, mut moved, mut exact) = (0, 0, 0, 0);
    for history in histories {
        let (name, terms) = (&history["name"], terms(history));
        let mut state = State::new(Vec::new());
        let mut nights = Vec::new();
        for night in history["nights"].as_array().unwrap() {
            let row = |row: &Value| TestRow { person: texts(row)[0].clone(), value: texts(row)[1].clone() };
            let rows: Vec<TestRow> = night["rows"].as_array().unwrap().iter().map(row).collect();
            let expected = &night["expected"];
            let made = match terms.night(&state, &rows, &RandomStreams::Identity) {
                Ok(made) => made,
                Err(error) => {
                    assert!(matches!(error, NightError::ValueChanged { .. }), "{name}: {error}");
                    assert_eq!(expected["problem"], "republish-value-changed", "{name}");
                    refused += 1;
                    continue;
                }
            };
            let bucket = |bucket: &Value| {
                let bucket =
                    (bucket, TestBucket { persons: texts(&bucket["persons"]), signature: texts(&bucket["signature"]) });
                let counterfeits = bucket.1.signature.len() - bucket.1.persons.len();
                assert_eq!(bucket.0["counterfeits"].as_u64(), Some(counterfeits as u64));
                bucket.1
            };
            let mut buckets: Vec<TestBucket> = expected["buckets"].as_array().unwrap().iter().map(bucket).collect();
            buckets.sort();
            let found = published(&made, &rows);
            assert_eq!(found, buckets, "{name}, night {}", nights.len());
            assert_eq!(made.tally.waiting, texts(&expected["waiting"]).len() as u64, "{name}");
            assert_eq!(made.tally.withheld, texts(&expected["withheld"]).len() as u64, "{name}");
            merged += made.tally.merged;
            moved += made.tally.moved;
            let again = State::from_bytes(&made.state.to_bytes()).unwrap();
            assert!(again == made.state, "{name}");
            state = again;
            nights.push(found);
        }
        let found = posteriors(&nights);
        let expected = history["posteriors"].as_array().unwrap();
        assert_eq!(found.len(), expected.len(), "{name}");
        for posterior in expected {
            let since = posterior["since_published_night"].as_u64().unwrap() as usize;
            let version = Version { person: posterior["person"].as_str().unwrap().to_owned(), since };
            let counts = &found[&version];
            let all: u64 = counts.values().sum();
            let shares: BTreeMap<&String, Threshold> = posterior["values"]
                .as_object()
                .unwrap()
                .iter()
                .map(|(value, share)| (value, threshold(share)))
                .collect();
            assert_eq!(counts.len(), shares.len(), "{name}: {version:?}");
            for (value, share) in shares {
                assert_eq!(counts[value] * share.denominator, all * share.numerator, "{name}: {version:?} {value}");
                exact += 1;
            }
        }
    }
    assert!(refused > 0 && merged > 0 && moved > 0 && exact > 1_000, "{refused} {merged} {moved} {exact}");
}

#[test]
fn least_newcomers_is_that_of_the_vectors() {
    let vectors = vectors();
    let cases = vectors["min_newcomers"].as_array().unwrap();
    assert_eq!(cases.len(), 6);
    for case in cases {
        let by_value = case["published"].as_object().unwrap().values().map(|slots| slots.as_u64().unwrap()).collect();
        let least = least_newcomers(&PublishedSlots { by_value }, case["l"].as_u64().unwrap());
        assert_eq!(least, case["min_newcomers"].as_u64(), "{case}");
    }
}
