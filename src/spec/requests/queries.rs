//! COUNT queries over the attributes of a release.

use serde_json::{Value, json};

use crate::microdata::{Attr, AttributeType, ValueSelection};
use crate::problem::Fault;
use crate::spec::grammar::columns::{ColumnOwner, DatasetColumns};
use crate::spec::grammar::document::{Array, ColumnName, Document, document, scalar};
use crate::spec::grammar::reader::FaultList;
use crate::spec::grammar::schema::ColumnFacts;

/// The most COUNT queries of one document.
pub const MAX_QUERIES: usize = 1000;

document! {
    /// The COUNT queries of a request.
    QueryMembers as "QueryDocument" {
        /// At most 1,000 queries.
        required queries: Array<CountQueryMembers, 0, MAX_QUERIES> => &format!("an array of at most {MAX_QUERIES} queries"),
    }
}

document! {
    /// Counts the rows that satisfy all conditions.
    CountQueryMembers as "CountQuery" {
        /// The conditions; without any, all rows are counted.
        required r#where: Array<ConditionMembers> => "an array of conditions",
    }
}

document! {
    /// A condition on an attribute; all given members must hold.
    ConditionMembers as "Condition" {
        /// The published name of the attribute.
        required attribute: ColumnName,
        /// One of these; null is a missing value. A value that does not occur counts nothing. Decimals are the same whatever their
        /// spelling.
        optional r#in: Array<CellValue> => "an array of texts, numbers, booleans and nulls",
        /// This or more, in the order of the attribute; never a missing value.
        optional from: RangeEnd,
        /// This or less, in the order of the attribute; never a missing value.
        optional to: RangeEnd,
    }
}

/// A value as a part would have it; `None` is the missing one.
#[derive(Clone, Debug)]
pub(in crate::spec) struct CellValue(Option<String>);

scalar! {
    CellValue: "a text, a number, a boolean or null",
    |value| if value.is_null() { Some(Self(None)) } else { text_of(value).map(|text| Self(Some(text))) },
    |value| json!(value.0),
    {"type": ["string", "number", "boolean", "null"]}
}

/// An end of a range.
#[derive(Clone, Debug)]
pub(in crate::spec) struct RangeEnd(Value);

scalar! {
    RangeEnd: "a text, a number or a boolean",
    |value| text_of(value).map(|_| Self(value.clone())),
    |end| end.0.clone(),
    {"type": ["string", "number", "boolean"]}
}

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
    let facts: Vec<ColumnFacts> =
        attributes.iter().map(|(name, kind)| ColumnFacts { kind: *kind, ..ColumnFacts::unseen(name) }).collect();
    let columns = DatasetColumns::new(&facts, ColumnOwner::Release);
    QueryMembers::read_document(document, &columns, |members, faults| {
        let queries = members.queries.value.iter().flat_map(Array::values);
        let resolved = queries.map(|query| {
            let conditions = query.r#where.value.iter().flat_map(Array::values);
            conditions.filter_map(|condition| condition.resolve(&columns, faults)).collect()
        });
        Some(resolved.collect())
    })
}

impl ConditionMembers {
    /// The values that satisfy the condition; the ends of a range must have a place in the order of the attribute.
    fn resolve(&self, columns: &DatasetColumns<'_>, faults: &mut FaultList) -> Option<ValueSelection> {
        let (among, from, to) = (&self.r#in, &self.from, &self.to);
        let is_absent = among.value.is_none() && from.value.is_none() && to.value.is_none();
        if is_absent && !(among.is_faulty || from.is_faulty || to.is_faulty) {
            faults.range(self.at("in"), "in, from or to");
        }
        let column = self.attribute.column()?;
        let kind = columns.facts[column].kind;
        let bytes = |value: &CellValue| value.0.clone().map(String::into_bytes);
        Some(ValueSelection {
            attribute: Attr::from(column),
            among: among.value.as_ref().map(|values| values.values().map(bytes).collect()),
            from: from.value.as_ref().and_then(|end| end.place(kind, self.at("from"), faults)),
            to: to.value.as_ref().and_then(|end| end.place(kind, self.at("to"), faults)),
        })
    }
}

impl RangeEnd {
    /// The end as a part would have it; a fault when it has no place in the order of these values.
    fn place(&self, kind: AttributeType, pointer: String, faults: &mut FaultList) -> Option<Vec<u8>> {
        let (order, allowed) = match kind {
            AttributeType::Integer | AttributeType::Decimal | AttributeType::Float => {
                (AttributeType::Decimal, "a decimal number")
            }
            AttributeType::Text => (kind, "a text"),
            AttributeType::Boolean => (kind, "true or false"),
            AttributeType::Date => (kind, "a date, YYYY-MM-DD"),
            AttributeType::Timestamp => (kind, "a time in UTC, RFC 3339"),
            AttributeType::LocalTimestamp => (kind, "a date and time of day, YYYY-MM-DDThh:mm:ss"),
        };
        let placed = text_of(&self.0).filter(|text| match order {
            AttributeType::Text => self.0.is_string(),
            order => order.admits(text.as_bytes()),
        });
        if placed.is_none() {
            faults.range(pointer, allowed);
        }
        placed.map(String::into_bytes)
    }
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
    use super::*;
    use crate::problem::Kind;

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
