//! Candidates for taxonomies and thresholds.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::{Candidate, names_of};
use crate::problem::{Fault, similar_name};
use crate::publication::Ratio;
use crate::spec::grammar::reader::{child, column_value, ratio};

/// The most repeated labels that a remedy leaves out.
const MAX_REPEATED: usize = 50;

/// Keeps the first of equal leaves; or no taxonomy.
pub(super) fn of_conflict(fault: &Fault, tree: Option<&Value>) -> Vec<Candidate> {
    let mut repeated = RepeatedLeaves::default();
    if let Some(tree) = tree {
        repeated.look(tree, &fault.pointer);
    }
    let found = &repeated.pointers;
    let is_few = !found.is_empty() && found.len() <= MAX_REPEATED;
    let first = is_few.then(|| {
        // from behind, so that no place moves before its turn
        let operations = found.iter().rev().map(|pointer| json!({"op": "remove", "path": pointer})).collect();
        Candidate::new("keep the first of equal labels", operations)
    });
    first.into_iter().chain(without_taxonomy(fault)).collect()
}

/// Leaves the taxonomy of an attribute out.
pub(super) fn without_taxonomy(fault: &Fault) -> Vec<Candidate> {
    let is_option = fault.pointer.starts_with("/attributes/") && fault.pointer.ends_with("/taxonomy");
    is_option.then(|| Candidate::remove("leave the taxonomy out", &fault.pointer)).into_iter().collect()
}

/// The leaves of a tree whose label stood before, in the order in which the tree is read.
#[derive(Default)]
struct RepeatedLeaves {
    seen: HashSet<Option<String>>,
    pointers: Vec<String>,
}

impl RepeatedLeaves {
    fn look(&mut self, value: &Value, pointer: &str) {
        match value {
            Value::Object(nodes) => nodes.iter().for_each(|(label, below)| {
                self.seen.insert(Some(label.clone()));
                self.look(below, &child(pointer, label));
            }),
            Value::Array(items) => items.iter().enumerate().for_each(|(index, item)| {
                let at = child(pointer, &index.to_string());
                match (item, leaf(item)) {
                    (Value::Object(_), _) => self.look(item, &at),
                    (_, Some(label)) if !self.seen.insert(label.clone()) => self.pointers.push(at),
                    _ => {}
                }
            }),
            _ => {}
        }
    }
}

/// The label of a leaf: `Some(None)` is the missing value.
fn leaf(value: &Value) -> Option<Option<String>> {
    column_value(value).or_else(|| Some(Some(value.as_number()?.to_string())))
}

/// The pointers of thresholds by value that a fault speaks of.
fn thresholds_of(fault: &Fault, document: &Value) -> Option<String> {
    let places = [fault.pointer.clone(), child(&fault.pointer, "guarantee")];
    let others = ["/method/default_guarantee", "/method/guarantee"].map(str::to_owned);
    let has_values = |pointer: &String| {
        let of = document.pointer(pointer).and_then(Value::as_object);
        of.is_some_and(|of| of.contains_key("explicit") || of.contains_key("linear"))
    };
    places.into_iter().chain(others).find(has_values)
}

/// Values without a threshold take the strictest of those that are given and hold.
pub(super) fn of_missing_threshold(fault: &Fault, document: &Value) -> Vec<Candidate> {
    let Some(pointer) = thresholds_of(fault, document) else { return Vec::new() };
    let given = document.pointer(&child(&pointer, "explicit")).and_then(Value::as_object);
    let mut shares: Vec<(Ratio, &Value)> =
        given.into_iter().flatten().filter_map(|(_, share)| Some((ratio(share)?, share))).collect();
    shares.sort_by_key(|(share, _)| *share);
    shares.dedup_by(|a, b| a.0 == b.0);
    let offered = shares.into_iter().filter(|(share, _)| *share < Ratio::ONE);
    let otherwise = child(&pointer, "otherwise");
    let candidate = |(_, share): (Ratio, &Value)| {
        let title =
            format!("allow every other value {}", share.as_str().map_or_else(|| share.to_string(), str::to_owned));
        Candidate::add(title, &otherwise, share.clone()).of("otherwise")
    };
    offered.map(candidate).collect()
}

/// Values that do not occur: what is meant by them, or nothing.
pub(super) fn of_unused_thresholds(fault: &Fault, document: &Value) -> Vec<Candidate> {
    let (unused, nearest) = (names_of(fault, "unused_values"), names_of(fault, "nearest_values"));
    let Some(pointer) = thresholds_of(fault, document).filter(|_| !unused.is_empty()) else { return Vec::new() };
    let at = [child(&pointer, "explicit"), child(&child(&pointer, "linear"), "overrides")];
    let place = |at: &String| Some((at.clone(), document.pointer(at)?.as_object()?));
    let Some((at, given)) = at.iter().find_map(place) else { return Vec::new() };
    let meant: Option<Vec<Value>> = moves(&at, given, &unused, &nearest);
    let renamed = meant.map(|operations| Candidate::new("name the values that occur", operations));
    let removed = unused.iter().map(|value| json!({"op": "remove", "path": child(&at, value)})).collect();
    renamed.into_iter().chain([Candidate::new("leave these values out", removed)]).collect()
}

/// Moves each threshold to the similar value that occurs; `None` where one has none, or a threshold already.
fn moves(at: &str, given: &Map<String, Value>, unused: &[&str], nearest: &[&str]) -> Option<Vec<Value>> {
    let mut taken = HashSet::new();
    let moved = unused.iter().map(|value| {
        let similar = similar_name(value, nearest.iter().copied())?;
        let is_free = !given.contains_key(similar) && taken.insert(similar);
        is_free.then(|| json!({"op": "move", "from": child(at, value), "path": child(at, similar)}))
    });
    moved.collect()
}
