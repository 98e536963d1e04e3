//! Documents that publish a table night after night.

use super::*;
use crate::publication::{BucketMerging, ChangedValues};
use Kind::{ParameterRange as Range, RepublishNeedsRecordKey as Keyless, RepublishUnsupported as Unsupported};

fn nightly() -> Value {
    json!({
        "dataset": ID, "unlisted": "drop", "republish": {},
        "method": {"type": "anatomy", "sensitive": "icd9", "quasi_identifiers": ["age", "race"],
            "guarantee": {"type": "l_diversity", "l": 3}},
    })
}

fn read_by(document: &Value, keys: &[String], unit: &Unit) -> ParsedDocument {
    read(document, &DatasetSchema { columns: &hospital(), keys, unit }, DocumentSource::Http)
}

fn faults(document: &Value) -> Vec<(String, Kind)> {
    let read = read_by(document, &["hospital".to_owned()], &Unit::Row);
    read.faults.iter().map(|fault| (fault.pointer.clone(), fault.kind)).collect()
}

#[test]
fn terms_have_defaults_and_one_spelling() {
    let read = |document: &Value| read_by(document, &["hospital".to_owned()], &Unit::Row).specification.unwrap();
    let plain = read(&nightly());
    let expected = RepublishSpec {
        changes: ChangedValues::Withhold,
        merge: BucketMerging::Single,
        min_newcomers: None,
        grace: 7,
        forget_after: None,
    };
    assert_eq!(plain.republish, Some(expected));
    let spelled = json!({"changes": "withhold", "merge": "single", "min_newcomers": "auto", "grace": 7.0,
        "forget_after": null});
    let spelled = read(&with(nightly(), "/republish", spelled));
    assert_eq!((&spelled.normalized, &spelled.reuse_form), (&plain.normalized, &plain.reuse_form));
    let other = json!({"changes": "move", "merge": "never", "min_newcomers": 60, "grace": 0, "forget_after": 400});
    let other = read(&with(nightly(), "/republish", other.clone()));
    assert_eq!(other.republish.unwrap().min_newcomers, Some(60));
    assert_eq!(other.republish.unwrap().forget_after, Some(400));
    assert_ne!(other.reuse_form, plain.reuse_form);
    let mut once = nightly();
    once.as_object_mut().unwrap().remove("republish");
    assert_ne!(read(&once).reuse_form, plain.reuse_form);
}

#[test]
fn terms_out_of_range_are_faults() {
    for (pointer, value) in [
        ("/republish", json!(true)),
        ("/republish/changes", json!("ignore")),
        ("/republish/merge", json!("all")),
        ("/republish/min_newcomers", json!(0)),
        ("/republish/min_newcomers", json!("many")),
        ("/republish/grace", json!(-1)),
        ("/republish/forget_after", json!(0)),
    ] {
        assert_eq!(faults(&with(nightly(), pointer, value)), [(pointer.to_owned(), Range)]);
    }
    let unknown = with(nightly(), "/republish/population", json!("staff"));
    assert_eq!(faults(&unknown), [("/republish/population".to_owned(), Kind::UnknownField)]);
}

#[test]
fn what_no_night_offers_is_a_fault() {
    let report = json!({"mode": "report", "reason": "a trial"});
    let shares = json!({"type": "alpha_k", "alpha": "0.5", "k": 3});
    for (pointer, value, at) in [
        ("/people", json!("unpublished"), "/people"),
        ("/composition", report, "/composition/mode"),
        ("/attributes", json!({"icd9": {"excludable": ["x"]}}), "/attributes/icd9/excludable"),
        ("/method/guarantee", shares, "/method/guarantee"),
        ("/method/ineligible_strata", json!({"closed": {"reason": "because"}}), "/method/ineligible_strata"),
    ] {
        let found = faults(&with(nightly(), pointer, value));
        assert_eq!(found, [(at.to_owned(), Unsupported)], "{pointer}");
    }
    let by = |method: Value| with(nightly(), "/method", method);
    let versatile = json!({"type": "versatile", "rules": ["age -> icd9"],
        "default_guarantee": {"type": "l_diversity", "l": 3}});
    assert_eq!(faults(&by(versatile)), [("/republish".to_owned(), Unsupported)]);
    let bucketize = |thresholds: Value| json!({"type": "bucketize", "sensitive": "icd9", "quasi_identifiers": ["age"], "thresholds": thresholds});
    assert_eq!(faults(&by(bucketize(json!({"uniform": {"l": 3}})))), []);
    let linear = bucketize(json!({"linear": {"theta": 2, "c": "0.1"}}));
    assert_eq!(faults(&by(linear)), [("/method/thresholds".to_owned(), Unsupported)]);
    let moves = with(by(bucketize(json!({"uniform": {"l": 3}}))), "/republish/changes", json!("move"));
    assert_eq!(faults(&moves), [("/republish/changes".to_owned(), Unsupported)]);
}

#[test]
fn persons_need_a_key_and_have_one_row() {
    let kinds = |keys: &[String], unit: &Unit| {
        let read = read_by(&nightly(), keys, unit);
        read.faults.iter().map(|fault| (fault.pointer.clone(), fault.kind)).collect::<Vec<_>>()
    };
    let at = |kind| vec![("/republish".to_owned(), kind)];
    let key = ["hospital".to_owned()];
    assert_eq!(kinds(&[], &Unit::Row), at(Keyless));
    let unit = |max_rows, kept| Unit::Subject { attribute: "hospital".to_owned(), max_rows, kept };
    assert_eq!(kinds(&key, &unit(2, None)), at(Unsupported));
    let drawn = Some(crate::publication::ContributionChoice::Random);
    assert_eq!(kinds(&key, &unit(1, drawn)), at(Unsupported));
    assert_eq!(kinds(&key, &unit(1, None)), []);
    let local = read(
        &with(nightly(), "/dataset", Value::Null),
        &DatasetSchema { columns: &hospital(), keys: &[], unit: &Unit::Row },
        DocumentSource::CommandLine,
    );
    assert!(local.faults[0].detail.contains("--population"), "{:?}", local.faults);
}
