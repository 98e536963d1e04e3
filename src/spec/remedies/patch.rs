//! Documents that are patched, and their size.

use json_patch::{Patch, PatchOperation};
use serde::Deserialize;
use serde_json::Value;

/// The size of a document that is read again for each candidate: its values, and its texts by the word.
pub(super) const MAX_SIZE: usize = 10_000;

/// About as many bytes of a text weigh as much as a value.
const WORD_BYTES: usize = 8;

/// The size of a document, up to a bound: long texts are rules, which are parsed.
pub(super) fn size(value: &Value, most: usize) -> usize {
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

pub(super) fn apply(document: &Value, operations: &[Value]) -> Option<Value> {
    let operations: Result<Vec<PatchOperation>, _> = operations.iter().map(PatchOperation::deserialize).collect();
    let mut patched = document.clone();
    json_patch::patch(&mut patched, &Patch(operations.ok()?)).ok()?;
    Some(patched)
}
