//! Candidates for rules that cannot be read.

use serde_json::{Map, Value, json};

use super::candidate::Candidate;
use crate::problem::Fault;
use crate::spec::grammar::reader::child;
use crate::spec::grammar::shorthand;

/// What may be written for the arrow of a rule.
const ARROWS: [&str; 6] = ["-->", "=>", "→", "⇒", "~>", ":"];

/// Spells the arrow, and names each attribute once; of two sides, on the sensitive one.
pub(super) fn of_malformed(fault: &Fault, document: &Value) -> Vec<Candidate> {
    let pointer = &fault.pointer;
    let each_once = "name each attribute once";
    match document.pointer(pointer) {
        Some(Value::String(text)) => {
            let spelled =
                ARROWS.iter().filter(|arrow| text.contains(*arrow)).map(|arrow| text.replacen(arrow, "->", 1));
            let spelled = spelled.filter(|rule| shorthand::parse(rule).is_ok());
            let arrow = spelled.map(|rule| Candidate::replace("write -> between the sides", pointer, rule).of("arrow"));
            let once = rule_with_each_once(text).map(|rule| Candidate::replace(each_once, pointer, rule));
            arrow.chain(once).collect()
        }
        Some(Value::Object(rule)) => {
            let sides = sides_with_each_once(pointer, rule);
            sides.map(|operations| Candidate::new(each_once, operations)).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// Names, each once, without those of another side.
fn once<'n>(names: &[&'n str], without: &[&str]) -> Vec<&'n str> {
    let mut kept: Vec<&str> = Vec::new();
    for name in names {
        if !without.contains(name) && !kept.contains(name) {
            kept.push(name);
        }
    }
    kept
}

fn rule_with_each_once(rule: &str) -> Option<String> {
    let parsed = shorthand::parse(rule).ok()?;
    let known: Vec<&str> = parsed.known.iter().map(|of| of.text.as_str()).collect();
    let sensitive: Vec<&str> = parsed.sensitive.iter().map(|of| of.text.as_str()).collect();
    let kept = once(&sensitive, &[]);
    Some(shorthand::write(&once(&known, &kept), &kept, parsed.combination))
}

/// The operations that name each attribute of a rule once.
fn sides_with_each_once(pointer: &str, rule: &Map<String, Value>) -> Option<Vec<Value>> {
    let names = |side: &str| -> Option<Vec<&str>> { rule.get(side)?.as_array()?.iter().map(Value::as_str).collect() };
    let side = ["sensitive", "sensitive_combination"].into_iter().find(|side| rule.get(*side).is_some())?;
    let (sensitive, known) = (names(side)?, names("quasi_identifiers")?);
    let kept = once(&sensitive, &[]);
    let sides = [("quasi_identifiers", once(&known, &kept), known), (side, kept, sensitive)];
    let changed = sides.into_iter().filter(|(_, kept, given)| kept != given);
    let replaced = changed.map(|(side, kept, _)| json!({"op": "replace", "path": child(pointer, side), "value": kept}));
    Some(replaced.collect())
}
