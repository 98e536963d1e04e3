//! Candidates for members, names and ranges.

use serde_json::{Map, Value, json};

use super::candidate::{Candidate, names_of, parted, text_of};
use crate::problem::{Fault, Kind, similar_name};
use crate::spec::grammar::reader::child;
use crate::spec::grammar::shorthand;

/// Members whose default publishes more than a mistaken value may have meant, or says more of persons.
const CAREFUL_MEMBERS: [&str; 5] = ["/hold", "/people", "/composition", "/disjoint_from", "/others"];

/// Puts the value where the nearest known member is: as it is, or as the array or element that may be meant.
pub(super) fn of_unknown_member(fault: &Fault, value: Option<&Value>) -> Vec<Candidate> {
    let (Some((parent, name)), pointer) = (parted(&fault.pointer), &fault.pointer) else { return Vec::new() };
    let mut candidates = Vec::new();
    if let Some(nearest) = text_of(fault, "nearest") {
        let (at, title) = (child(parent, nearest), format!("call it {nearest}"));
        candidates.push(Candidate::new(&title, vec![json!({"op": "move", "from": pointer, "path": at})]).of("renamed"));
        let other = match value {
            Some(Value::Array(items)) if items.len() == 1 => Some((items[0].clone(), "its element")),
            Some(Value::Array(_)) | None => None,
            Some(value) => Some((json!([value]), "an array of it")),
        };
        candidates.extend(other.map(|(value, what)| {
            let operations =
                vec![json!({"op": "remove", "path": pointer}), json!({"op": "add", "path": at, "value": value})];
            Candidate::new(format!("{title}, and write {what}"), operations).of("renamed")
        }));
    }
    candidates.push(Candidate::remove(format!("leave {name} out"), pointer));
    candidates
}

/// Puts the nearest name where the unknown one stands: as a value, as a member, or in a rule.
pub(super) fn of_unknown_attribute(fault: &Fault, value: Option<&Value>) -> Vec<Candidate> {
    let pointer = &fault.pointer;
    let Some(unknown) = text_of(fault, "attribute") else { return Vec::new() };
    let similar = similar_name(unknown, names_of(fault, "nearest").into_iter());
    match (value, parted(pointer)) {
        (Some(Value::String(text)), _) if text == unknown => {
            similar.map(|name| Candidate::replace(format!("name {name}"), pointer, name)).into_iter().collect()
        }
        (Some(Value::String(rule)), _) => {
            let renamed = similar.and_then(|name| Some((name, rule_with(rule, unknown, name)?)));
            renamed.map(|(name, rule)| Candidate::replace(format!("name {name}"), pointer, rule)).into_iter().collect()
        }
        (Some(_), Some((parent, last))) if last == unknown => {
            let moved = similar.map(|name| {
                let operation = json!({"op": "move", "from": pointer, "path": child(parent, name)});
                Candidate::new(format!("name {name}"), vec![operation])
            });
            moved.into_iter().chain([Candidate::remove(format!("leave {unknown} out"), pointer)]).collect()
        }
        _ => Vec::new(),
    }
}

/// The rule with another name in place of one.
fn rule_with(rule: &str, unknown: &str, name: &str) -> Option<String> {
    let parsed = shorthand::parse(rule).ok()?;
    let names = [&parsed.known, &parsed.sensitive].map(|side| {
        let named = side.iter().map(|mention| if mention.text == unknown { name } else { mention.text.as_str() });
        named.collect::<Vec<&str>>()
    });
    Some(shorthand::write(&names[0], &names[1], parsed.combination))
}

/// The operations that set options of an attribute.
fn options(document: &Value, attribute: &str, set: &Map<String, Value>) -> Vec<Value> {
    let at = child("/attributes", attribute);
    let add = |path: &str, value: &Value| json!({"op": "add", "path": path, "value": value});
    match document.pointer(&at).is_some_and(Value::is_object) {
        true => set.iter().map(|(name, value)| add(&child(&at, name), value)).collect(),
        false => vec![add(&at, &set.clone().into())],
    }
}

/// An empty `attributes`, where there is none.
fn opened(document: &Value) -> Option<Value> {
    let is_there = document.get("attributes").is_some_and(Value::is_object);
    (!is_there).then(|| json!({"op": "add", "path": "/attributes", "value": {}}))
}

pub(super) fn of_unclassified(fault: &Fault, document: &Value) -> Vec<Candidate> {
    let drop = Map::from_iter([("drop".to_owned(), true.into())]);
    let dropped = names_of(fault, "attributes").into_iter().flat_map(|name| options(document, name, &drop));
    let dropped = opened(document).into_iter().chain(dropped).collect();
    vec![
        Candidate::new("drop these attributes", dropped),
        Candidate::add("drop every attribute that is not named", "/unlisted", "drop"),
    ]
}

/// Drops an attribute, or gives it a published name that is free.
pub(super) fn of_attribute(fault: &Fault, document: &Value) -> Vec<Candidate> {
    let Some(name) = text_of(fault, "attribute") else { return Vec::new() };
    let with = |title: String, set: Value| {
        let set = set.as_object().cloned().unwrap_or_default();
        let operations = opened(document).into_iter().chain(options(document, name, &set)).collect();
        Candidate::new(title, operations)
    };
    if fault.kind == Kind::ReservedName {
        return vec![with(format!("publish it as {name}_1"), json!({"rename": format!("{name}_1")}))];
    }
    vec![
        with(format!("drop {name}"), json!({"drop": true, "publish": false})),
        with(format!("publish {name} although it may identify persons"), json!({"publish": true, "identifier": false})),
    ]
}

/// What a value that is not allowed can have meant; and its default.
pub(super) fn of_range(fault: &Fault, value: &Value) -> Vec<Candidate> {
    let (pointer, allowed) = (&fault.pointer, text_of(fault, "allowed").unwrap_or_default());
    let mut candidates = Vec::new();
    let meant = |value: Value| Candidate::replace(format!("write {value}"), pointer, value);
    if let Value::String(text) = value {
        let words = allowed.strip_prefix("one of ").unwrap_or_default().split(", ");
        candidates.extend(similar_name(text, words).map(|word| meant(word.into())));
        candidates.extend(serde_json::from_str::<Value>(text.trim()).ok().filter(|of| !of.is_string()).map(meant));
    }
    if value.is_number() || value.is_string() {
        let number = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok());
        candidates.extend(number.and_then(|number| nearest_bound(allowed, number)).map(|bound| meant(bound.into())));
    }
    if !value.is_array() {
        candidates.push(Candidate::replace("write an array", pointer, json!([value])));
    }
    if pointer.contains("/excludable/") {
        // no insider rules out what does not occur
        candidates.push(Candidate::remove("leave the value out", pointer));
    }
    let is_member = parted(pointer).is_some_and(|(_, name)| name.parse::<usize>().is_err());
    let is_careful = CAREFUL_MEMBERS.iter().any(|member| pointer.starts_with(member));
    // an element of an array may be a rule, or what a rule protects
    candidates.extend((is_member && !is_careful).then(|| Candidate::remove("leave it out", pointer)));
    candidates
}

/// The bound next to a number that is out of bounds, of "… from 2 to 1000" or "… of at least 2".
fn nearest_bound(allowed: &str, number: f64) -> Option<i64> {
    if let Some((_, least)) = allowed.split_once("an integer of at least ") {
        let digits: String = least.chars().take_while(char::is_ascii_digit).collect();
        return digits.parse().ok().filter(|least| number < *least as f64);
    }
    let (low, rest) = allowed.split_once("from ")?.1.split_once(" to ")?;
    let high: String = rest.chars().take_while(|character| character.is_ascii_digit() || *character == '-').collect();
    let (low, high): (i64, i64) = (low.parse().ok()?, high.parse().ok()?);
    let is_below = number < low as f64;
    (is_below || number > high as f64).then_some(if is_below { low } else { high })
}

/// Leaves out an option that does not fit, a name that stands twice, or a sensitive attribute among the known ones.
pub(super) fn of_unfit(fault: &Fault, document: &Value) -> Vec<Candidate> {
    let pointer = &fault.pointer;
    let Some((parent, name)) = parted(pointer) else { return Vec::new() };
    let (value, around) = (document.pointer(pointer), document.pointer(parent));
    let is_twice = |items: &Vec<Value>| items.iter().filter(|item| Some(*item) == value).count() > 1;
    match (around, value) {
        (Some(around), Some(Value::Array(known))) if fault.kind == Kind::BadColumns => {
            let sensitive = match &around["sensitive"] {
                Value::Array(names) => names.clone(),
                name => vec![name.clone()],
            };
            let kept: Vec<&Value> = known.iter().filter(|name| !sensitive.contains(name)).collect();
            let title = "leave out of it what is sensitive";
            (kept.len() < known.len()).then(|| Candidate::replace(title, pointer, json!(kept))).into_iter().collect()
        }
        (Some(Value::Object(_)), _) if fault.kind == Kind::GuaranteeUnsupported => {
            vec![Candidate::remove(format!("leave {name} out"), pointer)]
        }
        (Some(Value::Array(items)), _) if is_twice(items) => vec![Candidate::remove("name it once", pointer)],
        _ => Vec::new(),
    }
}

/// Leaves out a member that no night has. What a rule protects, and republication itself, stay.
pub(super) fn of_republication(fault: &Fault) -> Vec<Candidate> {
    const OPTIONS: [&str; 5] =
        ["/people", "/schema", "/method/ineligible_strata", "/method/counterfeits", "/republish/changes"];
    let pointer = &fault.pointer;
    let option = OPTIONS.contains(&pointer.as_str()).then(|| parted(pointer)).flatten();
    option.map(|(_, name)| Candidate::remove(format!("leave {name} out"), pointer)).into_iter().collect()
}
