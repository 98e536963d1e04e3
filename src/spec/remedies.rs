//! Remedies of faults: patches of the document (RFC 6902), each of which was tried.
//!
//! A fault says what it knows: the names that a misspelled one resembles, the bounds of a number, the largest l. From that come
//! candidates. A candidate is a remedy if the document that it leads to has the fault no more, and no new fault where it was
//! changed. What only a person can decide is no candidate: no rule, and nothing that a rule protects, is left out.

use json_patch::{Patch, PatchOperation};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::grammar::reader::child;
use super::grammar::shorthand;
use crate::problem::{Fault, FaultRemedy, Kind, Problem, similar_name};

/// How many faults of a document get remedies: each candidate is a reading of the whole document.
const MAX_REMEDIED: usize = 10;

/// How many remedies a fault gets.
const MAX_REMEDIES: usize = 3;

/// The size of a document that is read again for each candidate: its values, and its texts by the word.
const MAX_SIZE: usize = 10_000;

/// About as many bytes of a text weigh as much as a value.
const WORD_BYTES: usize = 8;

/// Members whose default publishes more than a mistaken value may have meant.
const CAREFUL_MEMBERS: [&str; 3] = ["/hold", "/people", "/composition"];

/// A change that may end a fault.
struct Candidate {
    title: String,
    operations: Vec<Value>,
}

impl Candidate {
    fn new(title: impl Into<String>, operations: Vec<Value>) -> Self {
        Self { title: title.into(), operations }
    }

    fn replace(title: impl Into<String>, pointer: &str, value: impl Into<Value>) -> Self {
        Self::new(title, vec![json!({"op": "replace", "path": pointer, "value": value.into()})])
    }

    fn remove(title: impl Into<String>, pointer: &str) -> Self {
        Self::new(title, vec![json!({"op": "remove", "path": pointer})])
    }
}

/// The problem with remedies of its first faults; `read` gives the faults of another document.
pub fn with_remedies(mut problem: Problem, document: &Value, read: impl Fn(&Value) -> Vec<Fault>) -> Problem {
    if size(document, MAX_SIZE) >= MAX_SIZE {
        return problem;
    }
    let before = problem.errors.clone();
    // an unknown name may mean an attribute that seems to be without a place
    let is_misspelled = before.iter().any(|fault| fault.kind == Kind::UnknownAttribute);
    // of a fault that shows in the data alone, a reading cannot say whether it is gone; the engine says what ends it
    let read_again = read(document);
    let is_tried = |fault: &Fault| {
        fault.kind == Kind::RuleIneligible
            || read_again.iter().any(|other| (&other.pointer, other.kind) == (&fault.pointer, fault.kind))
    };
    let is_unclear = |fault: &Fault| is_misspelled && fault.kind == Kind::UnclassifiedAttributes;
    let mendable = |fault: &&mut Fault| is_tried(fault) && !is_unclear(fault);
    for fault in problem.errors.iter_mut().filter(mendable).take(MAX_REMEDIED) {
        let tried = candidates(fault, document).into_iter().filter(|candidate| {
            let is_remedy = |patched: Value| ends(fault, &before, &read(&patched), candidate);
            apply(document, &candidate.operations).is_some_and(is_remedy)
        });
        fault.remedies = tried
            .take(MAX_REMEDIES)
            .map(|candidate| FaultRemedy { title: candidate.title, patch: candidate.operations.into() })
            .collect();
    }
    problem
}

/// The size of a document, up to a bound: long texts are rules, which are parsed.
fn size(value: &Value, most: usize) -> usize {
    let text = |text: &str| text.len() / WORD_BYTES;
    let mut found = 1;
    let mut add = |name: &str, value: &Value| {
        if found < most {
            found += text(name) + size(value, most - found);
        }
    };
    match value {
        Value::Array(items) => items.iter().for_each(|item| add("", item)),
        Value::Object(members) => members.iter().for_each(|(name, member)| add(name, member)),
        Value::String(long) => found += text(long),
        _ => {}
    }
    found
}

fn apply(document: &Value, operations: &[Value]) -> Option<Value> {
    let operations: Result<Vec<PatchOperation>, _> = operations.iter().map(PatchOperation::deserialize).collect();
    let mut patched = document.clone();
    json_patch::patch(&mut patched, &Patch(operations.ok()?)).ok()?;
    Some(patched)
}

/// Whether the fault is gone, and nothing that was changed has a new one.
fn ends(fault: &Fault, before: &[Fault], after: &[Fault], candidate: &Candidate) -> bool {
    let is_it = |other: &Fault, another: &Fault| {
        (&other.pointer, other.kind, &other.detail) == (&another.pointer, another.kind, &another.detail)
    };
    let changed = |other: &Fault| {
        let paths = candidate.operations.iter().filter_map(|operation| operation["path"].as_str());
        paths.into_iter().any(|path| other.pointer.starts_with(path) || path.starts_with(&other.pointer))
    };
    let place = |fault: &Fault| (fault.pointer.clone(), fault.kind);
    let is_new = |other: &&Fault| !before.iter().any(|known| place(known) == place(other));
    !after.iter().any(|other| is_it(other, fault)) && !after.iter().filter(is_new).any(changed)
}

fn candidates(fault: &Fault, document: &Value) -> Vec<Candidate> {
    let value = document.pointer(&fault.pointer);
    if fault.pointer == "/method/class" && document["method"]["goal"] == "classification" {
        return of_class(value);
    }
    match fault.kind {
        Kind::UnknownField => of_unknown_member(fault),
        Kind::UnknownAttribute => of_unknown_attribute(fault, value),
        Kind::UnclassifiedAttributes => of_unclassified(fault, document),
        Kind::IdentifierPublished | Kind::ReservedName => of_attribute(fault, document),
        Kind::ParameterRange => value.map(|value| of_range(fault, value)).unwrap_or_default(),
        Kind::VacuousGuarantee => of_vacuous(fault, value),
        Kind::RuleIneligible => of_ineligible(fault, document).into_iter().collect(),
        Kind::BadColumns | Kind::GuaranteeUnsupported => of_unfit(fault, document),
        _ => Vec::new(),
    }
}

/// Of a class that cannot be predicted: another goal.
fn of_class(value: Option<&Value>) -> Vec<Candidate> {
    let mut operations = vec![json!({"op": "replace", "path": "/method/goal", "value": "entropy"})];
    operations.extend(value.map(|_| json!({"op": "remove", "path": "/method/class"})));
    vec![Candidate::new("decide by the entropy of the reader's estimate", operations)]
}

/// The pointer of the object or array, and the last name.
fn parted(pointer: &str) -> Option<(&str, String)> {
    let (parent, name) = pointer.rsplit_once('/')?;
    Some((parent, name.replace("~1", "/").replace("~0", "~")))
}

fn text_of<'f>(fault: &'f Fault, member: &str) -> Option<&'f str> {
    fault.members.get(member)?.as_str()
}

fn of_unknown_member(fault: &Fault) -> Vec<Candidate> {
    let (Some((parent, name)), pointer) = (parted(&fault.pointer), &fault.pointer) else { return Vec::new() };
    let renamed = text_of(fault, "nearest").map(|nearest| {
        let operation = json!({"op": "move", "from": pointer, "path": child(parent, nearest)});
        Candidate::new(format!("call it {nearest}"), vec![operation])
    });
    renamed.into_iter().chain([Candidate::remove(format!("leave {name} out"), pointer)]).collect()
}

/// Puts the nearest name where the unknown one stands: as a value, as a member, or in a rule.
fn of_unknown_attribute(fault: &Fault, value: Option<&Value>) -> Vec<Candidate> {
    let (pointer, nearest) = (&fault.pointer, fault.members.get("nearest").and_then(Value::as_array));
    let Some(unknown) = text_of(fault, "attribute") else { return Vec::new() };
    let nearest: Vec<&str> = nearest.into_iter().flatten().filter_map(Value::as_str).collect();
    let similar = similar_name(unknown, nearest.into_iter());
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
    let given = document.pointer(&at).and_then(Value::as_object).cloned().unwrap_or_default();
    let options: Map<String, Value> = given.into_iter().chain(set.clone()).collect();
    vec![json!({"op": "add", "path": at, "value": options})]
}

/// An empty `attributes`, where there is none.
fn opened(document: &Value) -> Option<Value> {
    let is_there = document.get("attributes").is_some_and(Value::is_object);
    (!is_there).then(|| json!({"op": "add", "path": "/attributes", "value": {}}))
}

fn of_unclassified(fault: &Fault, document: &Value) -> Vec<Candidate> {
    let names = fault.members.get("attributes").and_then(Value::as_array).into_iter().flatten();
    let drop = Map::from_iter([("drop".to_owned(), true.into())]);
    let dropped = names.filter_map(Value::as_str).flat_map(|name| options(document, name, &drop));
    let dropped = opened(document).into_iter().chain(dropped).collect();
    vec![
        Candidate::new("drop these attributes", dropped),
        Candidate::new(
            "drop every attribute that is not named",
            vec![json!({"op": "add", "path": "/unlisted", "value": "drop"})],
        ),
    ]
}

/// Drops an attribute, or gives it a published name that is free.
fn of_attribute(fault: &Fault, document: &Value) -> Vec<Candidate> {
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
fn of_range(fault: &Fault, value: &Value) -> Vec<Candidate> {
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
    let is_member = parted(pointer).is_some_and(|(_, name)| name.parse::<usize>().is_err());
    let is_careful = CAREFUL_MEMBERS.iter().any(|member| pointer.starts_with(member));
    // an element of an array may be a rule, or what a rule protects
    candidates
        .extend((is_member && !is_careful).then(|| Candidate::remove("leave it out, and take the default", pointer)));
    candidates
}

/// The bound next to a number that is out of bounds, of "… from 2 to 1000".
fn nearest_bound(allowed: &str, number: f64) -> Option<i64> {
    let (low, rest) = allowed.split_once("from ")?.1.split_once(" to ")?;
    let high: String = rest.chars().take_while(|character| character.is_ascii_digit() || *character == '-').collect();
    let (low, high): (i64, i64) = (low.parse().ok()?, high.parse().ok()?);
    let is_below = number < low as f64;
    (is_below || number > high as f64).then_some(if is_below { low } else { high })
}

/// The weakest guarantee that protects.
fn of_vacuous(fault: &Fault, value: Option<&Value>) -> Vec<Candidate> {
    let is_one = value.and_then(Value::as_f64).is_some_and(|number| number < 2.0);
    is_one.then(|| Candidate::replace("ask for 2", &fault.pointer, 2)).into_iter().collect()
}

/// The largest l that the data can hold.
fn of_ineligible(fault: &Fault, document: &Value) -> Option<Candidate> {
    let largest = fault.members.get("largest_l")?.as_u64().filter(|largest| *largest > 1)?;
    with_l(&fault.pointer, largest, document)
}

fn with_l(pointer: &str, largest: u64, document: &Value) -> Option<Candidate> {
    let title = format!("ask for l = {largest}");
    let value = document.pointer(pointer)?;
    if value.is_number() {
        return Some(Candidate::replace(title, pointer, largest));
    }
    if value.get("l").is_some() {
        return Some(Candidate::replace(title, &child(pointer, "l"), largest));
    }
    let mut rule = rule_object(value)?;
    let guarantee = rule.get("guarantee").or_else(|| document.pointer("/method/default_guarantee"))?;
    // another guarantee is not weakened to this one
    if guarantee["type"] != "l_diversity" {
        return None;
    }
    rule.insert("guarantee".to_owned(), json!({"type": "l_diversity", "l": largest}));
    Some(Candidate::replace(title, pointer, rule))
}

/// A rule as an object.
fn rule_object(rule: &Value) -> Option<Map<String, Value>> {
    let Value::String(text) = rule else { return rule.as_object().cloned() };
    let parsed = shorthand::parse(text).ok()?;
    let names = |side: &[shorthand::RuleName]| side.iter().map(|of| Value::from(of.text.as_str())).collect::<Value>();
    let protected = if parsed.combination { "sensitive_combination" } else { "sensitive" };
    Some(Map::from_iter([
        ("quasi_identifiers".to_owned(), names(&parsed.known)),
        (protected.to_owned(), names(&parsed.sensitive)),
    ]))
}

/// Leaves out an option that does not fit, or a name that stands twice.
fn of_unfit(fault: &Fault, document: &Value) -> Vec<Candidate> {
    let pointer = &fault.pointer;
    let Some((parent, name)) = parted(pointer) else { return Vec::new() };
    let (value, around) = (document.pointer(pointer), document.pointer(parent));
    let is_twice = |items: &Vec<Value>| items.iter().filter(|item| Some(*item) == value).count() > 1;
    match around {
        Some(Value::Object(_)) if fault.kind == Kind::GuaranteeUnsupported => {
            vec![Candidate::remove(format!("leave {name} out"), pointer)]
        }
        Some(Value::Array(items)) if is_twice(items) => vec![Candidate::remove("name it once", pointer)],
        _ => Vec::new(),
    }
}
