//! Candidates for the sizes of buckets, and for counterfeits.

use serde_json::{Value, json};

use super::candidate::Candidate;
use crate::problem::Fault;
use crate::spec::grammar::reader::child;
use crate::spec::methods::bucketize::{DEFAULT_MAX_SIZE, MAX_BUCKET_SIZE};

const SIZES: &str = "/method/sizes";
const MAX_SIZE: &str = "/method/max_size";

/// Other sizes: several in place of one or two, or of those that are listed; or larger ones.
pub(super) fn of_sizes(fault: &Fault, document: &Value) -> Vec<Candidate> {
    let search = |sizes: &str, title: &str| Candidate::replace(title, SIZES, sizes).of("search");
    let several = || search("multi", "search for several sizes");
    if fault.pointer == SIZES {
        return vec![several(), search("two", "search for two sizes")];
    }
    let at = &fault.pointer;
    let asked = document.pointer(at).map_or(Some(DEFAULT_MAX_SIZE), Value::as_u64).filter(|size| *size > 0);
    let twice = |size: &u64| (*size < MAX_BUCKET_SIZE).then(|| (size * 2).min(MAX_BUCKET_SIZE));
    let larger = std::iter::successors(asked.as_ref().and_then(twice), twice);
    let larger = larger.map(|size| Candidate::add(format!("search sizes up to {size}"), at, size).of("largest"));
    let is_narrow = matches!(document.pointer(SIZES).and_then(Value::as_str), Some("one" | "two"));
    is_narrow.then(several).into_iter().chain(larger).collect()
}

/// A search of fewer sizes, or one that does not look for the best.
pub(super) fn of_work(fault: &Fault, document: &Value) -> Vec<Candidate> {
    if ![SIZES, MAX_SIZE].contains(&fault.pointer.as_str()) {
        return Vec::new();
    }
    let asked = document.pointer(MAX_SIZE).map_or(Some(DEFAULT_MAX_SIZE), Value::as_u64).unwrap_or(0);
    let halves = std::iter::successors(Some(asked / 2), |size| Some(size / 2)).take_while(|size| *size > 0);
    let fewer = halves.map(|size| Candidate::add(format!("search sizes up to {size}"), MAX_SIZE, size).of("fewer"));
    let is_best = document.pointer(SIZES).and_then(Value::as_str) == Some("optimal");
    let several = || Candidate::replace("search for several sizes", SIZES, "multi").of("search");
    is_best.then(several).into_iter().chain(fewer).collect()
}

/// Fewer counterfeits, down to none.
pub(super) fn of_counterfeits(fault: &Fault, value: Option<&Value>) -> Vec<Candidate> {
    let asked = value.and_then(|value| value["per_bucket"].as_u64()).unwrap_or(0);
    let pointer = child(&fault.pointer, "per_bucket");
    let fewer = |number: u64| {
        let title = format!("ask for {number} counterfeit{}", if number == 1 { "" } else { "s" });
        Candidate::replace(title, &pointer, number).of("fewer")
    };
    let halves = std::iter::successors(Some(asked / 2), |number| Some(number / 2)).take_while(|number| *number > 0);
    let tried = asked.checked_sub(1).into_iter().chain(halves).filter(|number| (1..asked).contains(number));
    let none = json!({"op": "remove", "path": fault.pointer});
    let none = (asked > 0).then(|| Candidate::new("leave counterfeits out", vec![none]));
    tried.map(fewer).chain(none).collect()
}
