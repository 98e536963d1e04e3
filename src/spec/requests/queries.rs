//! COUNT queries over the attributes of a release.

use serde_json::Value;

use crate::microdata::{Attr, AttributeType, ValueSelection};
use crate::problem::{Fault, Kind};
use crate::spec::grammar::reader::{FaultList, ObjectReader, child};

/// The most COUNT queries of one document.
pub const MAX_QUERIES: usize = 1000;

const QUERIES: &str = "an array of at most 1000 queries";

const WHERE: &str = "an array of conditions";

const VALUES: &str = "an array of texts, numbers, booleans and nulls";

/// A conjunction: a row counts when every selection has its value.
pub type ResolvedCountQuery = Vec<ValueSelection>;

/// Reads the queries of a document over attributes, given by name and type.
///
/// # Errors
/// Every fault of the document, with its pointer.
pub fn read_queries(
    document: &Value,
    attributes: &[(String, AttributeType)],
) -> Result<Vec<ResolvedCountQuery>, Vec<Fault>> {
    let mut faults = FaultList::new();
    let mut queries = Vec::new();
    if let Some(mut members) = ObjectReader::open(document, "", &mut faults) {
        let pointer = members.at("queries");
        match members.list("queries", QUERIES, &mut faults) {
            Some(list) if list.len() <= MAX_QUERIES => {
                let read = |(at, query): (usize, &Value)| {
                    read_query(query, child(&pointer, &at.to_string()), attributes, &mut faults)
                };
                queries = list.iter().enumerate().map(read).collect();
            }
            Some(_) => faults.range(pointer, QUERIES),
            None if document.get("queries").is_none_or(Value::is_null) => faults.range(pointer, QUERIES),
            None => {}
        }
        members.finish(&mut faults);
    }
    if faults.is_empty() { Ok(queries) } else { Err(faults.into_sorted()) }
}

fn read_query(
    query: &Value,
    pointer: String,
    attributes: &[(String, AttributeType)],
    faults: &mut FaultList,
) -> ResolvedCountQuery {
    let mut selections = Vec::new();
    let Some(mut members) = ObjectReader::open(query, pointer, faults) else { return selections };
    let before = faults.len();
    let pointer = members.at("where");
    match members.list("where", WHERE, faults) {
        Some(conditions) => {
            for (at, condition) in conditions.iter().enumerate() {
                selections.extend(read_condition(condition, child(&pointer, &at.to_string()), attributes, faults));
            }
        }
        None if faults.len() == before => faults.range(pointer, WHERE),
        None => {}
    }
    members.finish(faults);
    selections
}

fn read_condition(
    condition: &Value,
    pointer: String,
    attributes: &[(String, AttributeType)],
    faults: &mut FaultList,
) -> Option<ValueSelection> {
    let mut members = ObjectReader::open(condition, pointer, faults)?;
    let before = faults.len();
    let named = members.text("attribute", "the name of an attribute", faults, |_| true);
    if named.is_none() && faults.len() == before {
        faults.range(members.at("attribute"), "the name of an attribute");
    }
    let found = named.and_then(|name| attributes.iter().position(|(known, _)| known == name));
    if let (Some(name), None) = (named, found) {
        let detail = "the release publishes no attribute of this name";
        let fault = Fault::new(members.at("attribute"), Kind::UnknownAttribute, detail);
        faults.push(fault.with("attribute", name));
    }
    let before = faults.len();
    let pointer = members.at("in");
    let among = members.list("in", VALUES, faults).map(|values| {
        let mut among = Vec::with_capacity(values.len());
        for (at, value) in values.iter().enumerate() {
            match text_of(value) {
                _ if value.is_null() => among.push(None),
                Some(text) => among.push(Some(text.into_bytes())),
                None => faults.range(child(&pointer, &at.to_string()), "a text, a number, a boolean or null"),
            }
        }
        among
    });
    let kind = found.map(|at| attributes[at].1);
    let from = read_bound(&mut members, "from", kind, faults);
    let to = read_bound(&mut members, "to", kind, faults);
    if among.is_none() && from.is_none() && to.is_none() && faults.len() == before {
        faults.range(members.at("in"), "in, from or to");
    }
    members.finish(faults);
    Some(ValueSelection { attribute: Attr::from(found?), among, from, to })
}

/// An end of a range: it must have a place in the order of the attribute.
fn read_bound(
    members: &mut ObjectReader<'_>,
    name: &'static str,
    kind: Option<AttributeType>,
    faults: &mut FaultList,
) -> Option<Vec<u8>> {
    let bound = members.take(name)?;
    let text = text_of(bound);
    let allowed = match kind {
        // the type of an unknown attribute is unknown
        None => return text.map(String::into_bytes),
        Some(AttributeType::Integer | AttributeType::Decimal) => "a decimal number",
        Some(AttributeType::Text) => "a text",
        Some(AttributeType::Boolean) => "true or false",
        Some(AttributeType::Date) => "a date, YYYY-MM-DD",
        Some(AttributeType::Timestamp) => "a time in UTC, RFC 3339",
    };
    let placed = text.filter(|text| match kind {
        Some(AttributeType::Integer | AttributeType::Decimal) => AttributeType::Decimal.admits(text.as_bytes()),
        Some(AttributeType::Text) => bound.is_string(),
        Some(kind) => kind.admits(text.as_bytes()),
        None => true,
    });
    if placed.is_none() {
        faults.range(members.at(name), allowed);
    }
    placed.map(String::into_bytes)
}

/// The text of a value, as a part would have it.
fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn attributes() -> Vec<(String, AttributeType)> {
        let kinds = [("age", AttributeType::Integer), ("race", AttributeType::Text), ("born", AttributeType::Date)];
        kinds.map(|(name, kind)| (name.to_owned(), kind)).to_vec()
    }

    fn faults(document: &Value) -> Vec<(String, Kind)> {
        let faults = read_queries(document, &attributes()).unwrap_err();
        faults.into_iter().map(|fault| (fault.pointer, fault.kind)).collect()
    }

    #[test]
    fn conditions_name_values_or_ranges() {
        let document = json!({"queries": [
            {"where": [{"attribute": "race", "in": ["white", null, 7, true]}, {"attribute": "age", "from": 20, "to": "30.5"}]},
            {"where": [{"attribute": "born", "from": "2000-01-01", "to": null}]},
            {"where": []},
        ]});
        let queries = read_queries(&document, &attributes()).unwrap();
        assert_eq!(queries.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1, 0]);
        let bytes = |text: &str| Some(text.as_bytes().to_vec());
        assert_eq!(queries[0][0].among, Some(vec![bytes("white"), None, bytes("7"), bytes("true")]));
        assert_eq!((&queries[0][1].from, &queries[0][1].to), (&bytes("20"), &bytes("30.5")));
        assert_eq!((queries[1][0].attribute, &queries[1][0].to), (Attr(2), &None));
    }

    #[test]
    fn every_fault_is_named() {
        let document = json!({"queries": [
            {"where": [{"attribute": "absent", "in": ["x"]}, {"attribute": "age", "from": "twenty"}, {"in": [[]]}]},
            {"wher": []},
            {"where": [{"attribute": "age"}, {"attribute": "race", "from": 3}, {"attribute": "born", "to": "2000-13-01"}]},
            7,
        ], "x": 1});
        let range = |pointer: &str| (pointer.to_owned(), Kind::ParameterRange);
        let unknown = |pointer: &str| (pointer.to_owned(), Kind::UnknownField);
        assert_eq!(
            faults(&document),
            [
                ("/queries/0/where/0/attribute".to_owned(), Kind::UnknownAttribute),
                range("/queries/0/where/1/from"),
                range("/queries/0/where/2/attribute"),
                range("/queries/0/where/2/in/0"),
                unknown("/queries/1/wher"),
                range("/queries/1/where"),
                range("/queries/2/where/0/in"),
                range("/queries/2/where/1/from"),
                range("/queries/2/where/2/to"),
                range("/queries/3"),
                unknown("/x"),
            ]
        );
        assert_eq!(faults(&json!({})), [range("/queries")]);
        assert_eq!(faults(&json!({"queries": 7})), [range("/queries")]);
        let many: Vec<Value> = (0..=MAX_QUERIES).map(|_| json!({"where": []})).collect();
        assert_eq!(faults(&json!({"queries": many})), [range("/queries")]);
        assert!(read_queries(&json!({"queries": many[1..]}), &attributes()).is_ok());
    }
}
