//! Values of submitted or published parts, as reports of attacks and verifications write them.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use utoipa::openapi::schema::{SchemaType, Type};
use utoipa::openapi::{ObjectBuilder, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::microdata::{Attr, AttributeType, parse_integer};
use crate::verifier::CellText;

/// A value of a submitted or published part; null when it is missing.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(transparent)]
pub struct PublishedValue(pub Value);

impl PartialSchema for PublishedValue {
    fn schema() -> RefOr<Schema> {
        let types = SchemaType::from_iter([Type::String, Type::Integer, Type::Boolean, Type::Null]);
        let about = "A value of a submitted or published part; null when it is missing.";
        ObjectBuilder::new().schema_type(types).description(Some(about)).into()
    }
}

impl ToSchema for PublishedValue {}

/// Values by the names of their attributes.
pub type NamedValues = BTreeMap<String, PublishedValue>;

impl From<&CellText> for PublishedValue {
    /// Integers and booleans as such, all other values as text.
    fn from(cell: &CellText) -> Self {
        let Some(value) = &cell.value else { return Self(Value::Null) };
        let text = || String::from_utf8_lossy(value).into();
        Self(match cell.kind {
            AttributeType::Integer => parse_integer(value).map_or_else(text, Value::from),
            AttributeType::Boolean => (value == b"true").into(),
            _ => text(),
        })
    }
}

/// The values of cells, by the names of their attributes.
pub(in crate::engine) fn named_values<V, C>(names: &[String], cells: &[(Attr, CellText)]) -> C
where
    V: From<PublishedValue>,
    C: FromIterator<(String, V)>,
{
    cells.iter().map(|(attr, cell)| (names[attr.index()].clone(), PublishedValue::from(cell).into())).collect()
}
