//! Patches of documents that are written out, as patches of the documents that were sent.
//!
//! A job is kept in its normal form, in which every default stands and its policy is written out. Where the document that was sent is
//! known, a patch touches the members that change and no others, so that remedies of several faults can follow each other. Where it is
//! not, a patch replaces whole members.

use serde_json::{Map, Value, json};

use super::patch::{MAX_SIZE, apply, size};
use crate::problem::Problem;
use crate::spec::grammar::reader::child;

/// The operations that make `sent`, which says what is `written` out, say what `patched` says. `None` where they are too large to be
/// read.
#[must_use]
pub fn fitted(written: &Value, patched: &Value, sent: &Value) -> Option<Value> {
    let mut operations = Vec::new();
    if let (Some(written), Some(patched), Some(sent)) = (written.as_object(), patched.as_object(), sent.as_object()) {
        differ("", [written, patched, sent], &mut operations);
    }
    small(operations)
}

/// Adds the operations that change the members at `pointer`: those written out to the patched ones, in what was sent.
fn differ(pointer: &str, [written, patched, sent]: [&Map<String, Value>; 3], operations: &mut Vec<Value>) {
    for name in changed(written, patched) {
        let (at, own) = (child(pointer, name), sent.get(name).filter(|own| !own.is_null()));
        match (written.get(name), patched.get(name), own) {
            (Some(Value::Array(old)), Some(Value::Array(new)), Some(Value::Array(own)))
                if old.len() == new.len() && old.len() == own.len() && old.iter().all(Value::is_object) =>
            {
                for (index, ((old, new), own)) in old.iter().zip(new).zip(own).enumerate() {
                    if old != new {
                        replace(&format!("{at}/{index}"), [old, new, own], operations);
                    }
                }
            }
            (old, Some(new), Some(own)) => replace(&at, [old.unwrap_or(&json!({})), new, own], operations),
            (_, Some(new), None) => operations.push(json!({"op": "add", "path": at, "value": new})),
            (_, None, Some(_)) => operations.push(json!({"op": "remove", "path": at})),
            // its default is what it is patched to
            (_, None, None) => {}
        }
    }
}

/// Replaces a value that was sent, or what changes in it.
fn replace(at: &str, [written, patched, sent]: [&Value; 3], operations: &mut Vec<Value>) {
    let kind = |of: &Map<String, Value>| of.get("type").cloned();
    match (written, patched, sent) {
        (Value::Object(old), Value::Object(new), Value::Object(own)) if kind(new) == kind(own) => {
            differ(at, [old, new, own], operations);
        }
        _ => {
            let lists_objects = patched.as_array().is_some_and(|items| items.iter().any(Value::is_object));
            // in a list, or a value of another form such as a rule in shorthand, what another remedy changed would be lost
            if lists_objects || (patched.is_object() && !sent.is_object()) {
                operations.push(json!({"op": "test", "path": at, "value": sent}));
            }
            operations.push(json!({"op": "replace", "path": at, "value": patched}));
        }
    }
}

fn small(operations: Vec<Value>) -> Option<Value> {
    let operations = Value::from(operations);
    (size(&operations, MAX_SIZE) < MAX_SIZE).then_some(operations)
}

/// The operations that make a sent document, which is not known, say what `patched` says, of which it now says `written`: whole members,
/// since the method may be a policy's. `None` where they are too large to be read.
fn in_members(written: &Value, patched: &Value) -> Option<Value> {
    let members = |of: &Value| of.as_object().cloned().unwrap_or_default();
    let (before, after) = (members(written), members(patched));
    // null is absent, whether the sent document has the member or not
    let add = |name: &String| json!({"op": "add", "path": child("", name), "value": after.get(name)});
    small(changed(&before, &after).map(add).collect())
}

/// The names of the members that differ.
fn changed<'a>(before: &'a Map<String, Value>, after: &'a Map<String, Value>) -> impl Iterator<Item = &'a String> {
    let removed = before.keys().filter(|name| !after.contains_key(*name));
    after.keys().filter(|name| before.get(*name) != after.get(*name)).chain(removed)
}

/// The problem of a document that is written out with remedies of the document that was sent, which may stand on a policy. Those
/// that fit `sent` stay as they are.
#[must_use]
pub fn in_whole_members(mut problem: Problem, written: &Value, sent: Option<&Value>) -> Problem {
    for fault in &mut problem.errors {
        let remedies = std::mem::take(&mut fault.remedies).into_iter();
        let whole = remedies.filter_map(|mut remedy| {
            let operations = remedy.patch.as_array()?;
            if sent.is_none_or(|sent| apply(sent, operations).is_none()) {
                remedy.patch = in_members(written, &apply(written, operations)?)?;
            }
            Some(remedy)
        });
        fault.remedies = whole.collect();
    }
    problem
}
