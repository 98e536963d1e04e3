//! Nights with known faults.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::chain::{ChainAudit, ChainBucket, ChainFault, ChainNight};
use super::audit_chain;
use crate::control::Control;
use crate::verifier::definition::share::ShareOfRows;

fn person(name: &str) -> [u8; 16] {
    let mut hash = [0; 16];
    hash[..name.len()].copy_from_slice(name.as_bytes());
    hash
}

fn night(buckets: &Value) -> ChainNight {
    let texts = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    let bucket = |(bucket, label): (&Value, u32)| ChainBucket {
        label,
        members: texts(&bucket["persons"]).iter().map(|name| Some(person(name))).collect(),
        signature: texts(&bucket["signature"]).into_iter().map(|value| Some(value.into_bytes())).collect(),
    };
    let buckets = buckets.as_array().unwrap().iter().zip(1..).map(bucket).collect();
    ChainNight { buckets, unplaced: Vec::new() }
}

/// The name of a fault in the vectors.
const fn name(fault: ChainFault) -> &'static str {
    match fault {
        ChainFault::TooManyMembers => "fewer slots than persons",
        ChainFault::Guarantee => "guarantee",
        ChainFault::Signature => "signature",
        ChainFault::Entry => "founding bucket of others or with counterfeits",
        ChainFault::Recombined => "recombined",
        ChainFault::LabelsKept => "labels",
    }
}

fn vectors() -> Value {
    serde_json::from_str(include_str!("../../../../tests/vectors/republication.json")).unwrap()
}

#[test]
fn chain_audit_finds_the_faults_of_the_vectors() {
    let vectors = vectors();
    let cases = vectors["audits"].as_array().unwrap();
    assert_eq!(cases.len(), 10);
    for case in cases {
        let nights: Vec<ChainNight> = case["nights"].as_array().unwrap().iter().map(night).collect();
        let report = audit_chain(&nights, case["l"].as_u64().unwrap(), &Control::default()).unwrap();
        let found: BTreeSet<&str> = report.faults.keys().map(|fault| name(*fault)).collect();
        let expected: BTreeSet<&str> =
            case["violations"].as_array().unwrap().iter().map(|fault| fault.as_str().unwrap()).collect();
        assert_eq!(found, expected, "{}", case["name"]);
    }
}

#[test]
fn chain_audit_passes_the_histories_of_the_vectors() {
    let vectors = vectors();
    let mut persons = 0;
    for history in vectors["histories"].as_array().unwrap().iter().filter(|history| !history["l"].is_null()) {
        let nights = history["nights"].as_array().unwrap().iter();
        let published = nights.filter(|night| night["expected"]["problem"].is_null());
        let nights: Vec<ChainNight> = published.map(|published| night(&published["expected"]["buckets"])).collect();
        let report = audit_chain(&nights, history["l"].as_u64().unwrap(), &Control::default()).unwrap();
        assert!(report.faults.is_empty(), "{}: {:?}", history["name"], report.faults);
        assert_eq!(report.above, 0, "{}", history["name"]);
        persons += report.persons;
    }
    assert!(persons > 300, "{persons}");
}

fn bucket(label: u32, members: &str, signature: &str) -> ChainBucket {
    // a row that is linked with no person is written as a dash
    let member = |name: char| (name != '-').then(|| person(&name.to_string()));
    ChainBucket {
        label,
        members: members.chars().map(member).collect(),
        signature: signature.chars().map(|value| Some(value.to_string().into_bytes())).collect(),
    }
}

fn plain(buckets: Vec<ChainBucket>) -> ChainNight {
    ChainNight { buckets, unplaced: Vec::new() }
}

#[test]
fn chain_audit_intersects_independent_releases() {
    let nights = [plain(vec![bucket(1, "ab", "xy")]), plain(vec![bucket(1, "ac", "xz")])];
    let report = audit_chain(&nights, 2, &Control::default()).unwrap();
    // of a only x remains
    assert_eq!((report.above, report.worst), (1, Some(ShareOfRows::new(1, 1))));
    assert!(report.faults.contains_key(&ChainFault::Signature));
}

#[test]
fn chain_audit_does_not_follow_who_was_not_linked() {
    // b and e look alike on the first night
    let first = ChainNight {
        buckets: vec![bucket(1, "a-c", "xyz"), bucket(2, "d-f", "xyz")],
        unplaced: vec![person("b"), person("e")],
    };
    let second = plain(vec![bucket(2, "abc", "xyz"), bucket(1, "def", "xyz")]);
    let report = audit_chain(&[first.clone(), second], 3, &Control::default()).unwrap();
    assert!(report.faults.is_empty(), "{report:?}");
    // the others are followed: a and d joined two buckets, and c and f do so again
    let merged = plain(vec![bucket(1, "ad", "xyz")]);
    let again = plain(vec![bucket(1, "cef", "xyz")]);
    let report = audit_chain(&[first, merged, again], 3, &Control::default()).unwrap();
    assert_eq!(report.faults.into_iter().collect::<Vec<_>>(), [(ChainFault::Recombined, 2)]);
}

/// Who enters on a night that is not among those given is seen later, perhaps with counterfeits or with others.
#[test]
fn chain_audit_judges_no_entry_after_a_missing_night() {
    let first = plain(vec![bucket(1, "abc", "xyz")]);
    let second = plain(vec![bucket(1, "abf", "xyz"), bucket(2, "de", "xyz")]);
    for has_gap in [false, true] {
        let mut audit = ChainAudit::new(3);
        audit.night(&first, &Control::default()).unwrap();
        if has_gap {
            audit.skip();
        }
        for _ in 0..2 {
            audit.night(&second, &Control::default()).unwrap();
        }
        let faults: Vec<ChainFault> = audit.report().faults.into_keys().collect();
        let expected = if has_gap { vec![] } else { vec![ChainFault::Entry, ChainFault::Recombined] };
        assert_eq!(faults, expected);
    }
}
