//! A specification is understood or refused: every fault points at something, or at what is missing from something; the normal
//! form of what was understood is its own.

use guardian::engine;
use guardian::microdata::{Attr, AttributeCounts, AttributeType};
use guardian::publication::Unit;
use guardian::spec::{self, ColumnFacts, DatasetSchema, DocumentSource};
use serde_json::Value;

/// Six rows, each column with three values of two rows.
struct Six(usize);

impl AttributeCounts for Six {
    fn rows(&self) -> u64 {
        6
    }

    fn attributes(&self) -> usize {
        self.0
    }

    fn largest(&self, _: Attr) -> u64 {
        2
    }

    fn distinct(&self, _: Attr) -> u64 {
        3
    }

    fn of_values(&self, _: Attr) -> Option<Vec<u64>> {
        Some(vec![2; 3])
    }
}

fn judge(document: &Value, origin: DocumentSource) {
    let mut facts: Vec<ColumnFacts> =
        ["hospital", "age", "gender", "zipcode", "race", "icd9", "a/b~c", "id", "many"].map(ColumnFacts::unseen).into();
    facts[1].kind = AttributeType::Integer;
    facts[7].identifier = true;
    facts[8].overflow = true;
    let record_key = ["id".to_owned()];
    let schema = DatasetSchema { columns: &facts, keys: &record_key, unit: &Unit::Row };
    let reading = spec::read(document, &schema, origin);
    let points = |pointer: &str| {
        let parent = pointer.rsplit_once('/').map(|(parent, _)| parent);
        document.pointer(pointer).is_some() || parent.is_some_and(|parent| document.pointer(parent).is_some())
            // what is missing altogether has defaults of its own
            || pointer.split('/').nth(1).is_some_and(|member| document.get(member).is_none_or(Value::is_null))
    };
    for fault in &reading.faults {
        assert!(points(&fault.pointer), "{} in {document}", fault.pointer);
    }
    let Some(specification) = &reading.specification else { return };
    for fault in engine::check(specification, &Six(specification.used.len())) {
        assert!(points(&fault.pointer), "{} in {document}", fault.pointer);
    }
    if reading.faults.is_empty() {
        let again = spec::read(&specification.normalized, &schema, origin);
        assert_eq!(again.faults, [], "{}", specification.normalized);
        let again = again.specification.expect("a specification");
        assert_eq!(again.normalized, specification.normalized);
        assert_eq!(again.reuse_form, specification.reuse_form);
    }
}

/// Judges one input.
pub fn run(data: &[u8]) {
    let Ok(document) = serde_json::from_slice(data) else { return };
    judge(&document, DocumentSource::Http);
    judge(&document, DocumentSource::CommandLine);
    judge(&document, DocumentSource::Plan);
    let _ = spec::dataset_of(&document);
}
