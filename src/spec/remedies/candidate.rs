//! Changes that may end a fault, and what faults and pointers say of them.

use serde_json::{Value, json};

use crate::problem::{Fault, Kind};

/// A change that may end a fault.
pub(super) struct Candidate {
    pub(super) title: String,
    pub(super) operations: Vec<Value>,
    /// Of the candidates of one family, the first that holds is offered.
    pub(super) family: Option<&'static str>,
}

impl Candidate {
    pub(super) fn new(title: impl Into<String>, operations: Vec<Value>) -> Self {
        Self { title: title.into(), operations, family: None }
    }

    pub(super) fn replace(title: impl Into<String>, pointer: &str, value: impl Into<Value>) -> Self {
        Self::new(title, vec![json!({"op": "replace", "path": pointer, "value": value.into()})])
    }

    pub(super) fn add(title: impl Into<String>, pointer: &str, value: impl Into<Value>) -> Self {
        Self::new(title, vec![json!({"op": "add", "path": pointer, "value": value.into()})])
    }

    pub(super) fn remove(title: impl Into<String>, pointer: &str) -> Self {
        Self::new(title, vec![json!({"op": "remove", "path": pointer})])
    }

    /// Whether it only spells what could not be read.
    pub(super) fn spells(&self, fault: &Fault) -> bool {
        let writes_words = |operation: &Value| !operation["value"].is_number();
        let is_unreadable = matches!(fault.kind, Kind::UnknownAttribute | Kind::RuleMalformed | Kind::ParameterRange);
        is_unreadable && self.operations.iter().all(|operation| operation["op"] == "replace" && writes_words(operation))
    }

    pub(super) fn of(self, family: &'static str) -> Self {
        Self { family: Some(family), ..self }
    }
}

/// The pointer of the object or array, and the last name.
pub(super) fn parted(pointer: &str) -> Option<(&str, String)> {
    let (parent, name) = pointer.rsplit_once('/')?;
    Some((parent, name.replace("~1", "/").replace("~0", "~")))
}

pub(super) fn text_of<'f>(fault: &'f Fault, member: &str) -> Option<&'f str> {
    fault.members.get(member)?.as_str()
}

pub(super) fn names_of<'f>(fault: &'f Fault, member: &str) -> Vec<&'f str> {
    let names = fault.members.get(member).and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str).collect()
}
