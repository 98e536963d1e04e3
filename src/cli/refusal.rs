//! Refusals on standard error: text on a terminal, JSON elsewhere.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};

use serde_json::{Map, Value};

use super::words::{BAD, HEADLINE, only_styles, styled, value_in_words, wrapped};
use crate::problem::{Fault, Kind, Problem};

/// Prints a refusal: the problem document with `json` or where standard error is no terminal, else its text.
pub(super) fn print(problem: &Problem, json: bool) -> io::Result<()> {
    if json || !io::stderr().is_terminal() {
        let instance = format!("urn:uuid:{}", uuid::Uuid::now_v7());
        return writeln!(io::stderr().lock(), "{:#}", problem.to_json(&instance));
    }
    anstream::stderr().lock().write_all(only_styles(&in_words(problem)).as_bytes())
}

/// A problem as text with styles.
pub(super) fn in_words(problem: &Problem) -> String {
    let mut text = format!("{} {}\n", styled(BAD, "refused:"), styled(HEADLINE, problem.title()));
    if problem.errors.is_empty() {
        text += &wrapped(2, &problem.detail);
        text += &members_in_words(&problem.members, 2);
        text += &wrapped(2, &format!("to do: {}", problem.kind.remedy()));
    }
    for fault in &problem.errors {
        text += &fault_in_words(fault);
    }
    if let Some(others) = problem.members.get("others").filter(|_| problem.kind == Kind::InvalidSpecification) {
        // writing to a text cannot fail
        let _ = writeln!(text, "\nand {others} more");
    }
    text
}

fn fault_in_words(fault: &Fault) -> String {
    let pointer = if fault.pointer.is_empty() { "the document" } else { &fault.pointer };
    let mut text = format!("\n{}  {}\n", styled(HEADLINE, pointer), fault.kind.name());
    text += &wrapped(2, &fault.detail);
    text += &members_in_words(&fault.members, 2);
    if fault.remedies.is_empty() {
        text += &wrapped(2, &format!("to do: {}", fault.kind.remedy()));
    }
    for remedy in &fault.remedies {
        text += &wrapped(2, &format!("remedy: {}", remedy.title));
        for operation in remedy.patch.as_array().into_iter().flatten() {
            text += &wrapped(4, &operation_in_words(operation));
        }
    }
    text
}

/// The members of a problem type, a line each: nearest names, limits, counts.
fn members_in_words(members: &Map<String, Value>, indent: usize) -> String {
    let is_plain = |value: &Value| match value {
        Value::Array(items) => !items.is_empty() && items.iter().all(|item| !item.is_object() && !item.is_array()),
        other => !other.is_object() && !other.is_null(),
    };
    let plain = members.iter().filter(|(name, value)| *name != "others" && is_plain(value));
    plain
        .map(|(name, value)| wrapped(indent, &format!("{}: {}", name.replace('_', " "), value_in_words(value))))
        .collect()
}

/// An operation of a JSON Patch.
fn operation_in_words(operation: &Value) -> String {
    let text = |member: &str| operation[member].as_str().unwrap_or_default().to_owned();
    let value = value_in_words(&Value::String(operation["value"].to_string()));
    match operation["op"].as_str() {
        Some("add") => format!("add {}: {value}", text("path")),
        Some("replace") => format!("set {} to {value}", text("path")),
        Some("move") => format!("move {} to {}", text("from"), text("path")),
        Some("test") => format!("if {} is {value}", text("path")),
        _ => format!("{} {}", text("op"), text("path")),
    }
}
