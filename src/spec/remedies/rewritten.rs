//! Patches of documents that are written out, as patches of the documents that were sent.
//!
//! A job is kept in its normal form, in which every default stands and its policy is written out. A patch of the document that was sent
//! replaces whole members: those of `method` one by one, where the method is the document's own.

use serde_json::{Map, Value, json};

use super::{MAX_SIZE, apply, size};
use crate::problem::Problem;

/// The operations that make a sent document say what `patched` says, of which it now says `written`. `None` where they are too large
/// to be read. With a policy, the method may be the policy's, and is replaced whole.
#[must_use]
pub fn rewritten(written: &Value, patched: &Value, has_policy: bool) -> Option<Value> {
    let members = |of: &Value| of.as_object().cloned().unwrap_or_default();
    let (before, after) = (members(written), members(patched));
    let mut operations = Vec::new();
    let mut add = |path: String, value: Option<&Value>| {
        // null is absent, whether the sent document has the member or not
        operations.push(json!({"op": "add", "path": path, "value": value}));
    };
    for name in changed(&before, &after) {
        let (old, new) = (before.get(name), after.get(name));
        match (old.and_then(Value::as_object), new.and_then(Value::as_object)) {
            (Some(old), Some(new)) if name == "method" && !has_policy && old.get("type") == new.get("type") => {
                changed(old, new).for_each(|member| add(format!("/method/{member}"), new.get(member)));
            }
            _ => add(format!("/{name}"), new),
        }
    }
    let operations = Value::from(operations);
    (size(&operations, MAX_SIZE) < MAX_SIZE).then_some(operations)
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
                remedy.patch = rewritten(written, &apply(written, operations)?, true)?;
            }
            Some(remedy)
        });
        fault.remedies = whole.collect();
    }
    problem
}
