//! Types of members that many documents have.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use uuid::Uuid;

use super::super::columns::DatasetColumns;
use super::super::reader::{child, integer, is_reason, ratio};
use super::macros::scalar;
use super::object::{Given, Member, MemberContext, ObjectMap, SchemaMap, define_as, reference};
use crate::problem::{Fault, Kind};
use crate::publication::Ratio;

scalar! { bool: "true or false", Value::as_bool, |truth| (*truth).into(), {"type": "boolean"} }

scalar! { String: "a text", |value| value.as_str().map(str::to_owned), |text| text.as_str().into(), {"type": "string"} }

/// An integer from `MIN` to `MAX`; integral floats such as `1e3` count. The schema says that it is from `LEAST` to `MOST`, where the
/// caller reports others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::spec) struct Int<const MIN: u64, const MAX: u64, const LEAST: u64 = MIN, const MOST: u64 = MAX>(
    pub(in crate::spec) u64,
);

impl<const MIN: u64, const MAX: u64, const LEAST: u64, const MOST: u64> Int<MIN, MAX, LEAST, MOST> {
    /// The number as a size.
    pub(in crate::spec) fn to_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl<const MIN: u64, const MAX: u64, const LEAST: u64, const MOST: u64> Member for Int<MIN, MAX, LEAST, MOST> {
    fn allowed() -> String {
        format!("an integer from {MIN} to {MAX}")
    }

    fn read(value: &Value, context: &mut MemberContext<'_, '_>) -> Option<Self> {
        let read = integer(value).and_then(|number| u64::try_from(number).ok());
        read.filter(|number| (MIN..=MAX).contains(number)).map(Self).or_else(|| context.refuse())
    }

    fn write(&self, _columns: &DatasetColumns<'_>) -> Value {
        self.0.into()
    }

    fn schema() -> Value {
        json!({"type": "integer", "minimum": LEAST, "maximum": MOST})
    }
}

/// The name of an attribute.
#[derive(Clone, Copy, Debug)]
pub(in crate::spec) struct ColumnName {
    /// `None` when the dataset has no attribute of that name, which is a fault.
    pub(in crate::spec) column: Option<usize>,
}

impl Member for ColumnName {
    fn allowed() -> String {
        "the name of an attribute".to_owned()
    }

    fn read(value: &Value, context: &mut MemberContext<'_, '_>) -> Option<Self> {
        let Some(name) = value.as_str() else { return context.refuse() };
        Some(Self { column: context.columns.resolve(name, &context.pointer, context.faults) })
    }

    fn write(&self, columns: &DatasetColumns<'_>) -> Value {
        self.column.map(|column| columns.name(column)).into()
    }

    fn schema() -> Value {
        json!({"type": "string"})
    }
}

impl Given<ColumnName> {
    /// The column, when the dataset has it.
    pub(in crate::spec) fn column(&self) -> Option<usize> {
        self.value.and_then(|name| name.column)
    }
}

/// Names of attributes, each once, in the order of the document.
#[derive(Clone, Default, Debug)]
pub(in crate::spec) struct NamesInOrder {
    /// The columns that the dataset has, each with its position in the array.
    pub(in crate::spec) columns: Vec<(usize, usize)>,
    /// Whether the array itself has no element.
    pub(in crate::spec) is_empty: bool,
}

impl Member for NamesInOrder {
    fn allowed() -> String {
        "an array of names of attributes".to_owned()
    }

    fn read(value: &Value, context: &mut MemberContext<'_, '_>) -> Option<Self> {
        let Some(items) = value.as_array() else { return context.refuse() };
        let names = Array::<String>::read_items(items, context, &ColumnName::allowed());
        let mut columns: Vec<(usize, usize)> = Vec::new();
        for (position, name) in names.iter().enumerate() {
            let Some(name) = &name.value else { continue };
            let pointer = child(&context.pointer, &position.to_string());
            match context.columns.resolve(name, &pointer, context.faults) {
                Some(column) if columns.iter().any(|(other, _)| *other == column) => {
                    context.faults.push(Fault::new(pointer, Kind::BadColumns, format!("{name} is named twice")));
                }
                Some(column) => columns.push((column, position)),
                None => {}
            }
        }
        Some(Self { columns, is_empty: items.is_empty() })
    }

    fn write(&self, columns: &DatasetColumns<'_>) -> Value {
        self.columns.iter().map(|(column, _)| columns.name(*column)).collect()
    }

    fn schema() -> Value {
        Array::<String, 1>::schema()
    }
}

/// At least `MIN` names of attributes, each once; the normal form has them in the order of the dataset. The caller reports an array
/// that is too short.
#[derive(Clone, Default, Debug)]
pub(in crate::spec) struct Names<const MIN: usize = 0> {
    pub(in crate::spec) columns: BTreeSet<usize>,
    /// Whether the array itself has no element.
    pub(in crate::spec) is_empty: bool,
}

impl<const MIN: usize> Member for Names<MIN> {
    fn allowed() -> String {
        NamesInOrder::allowed()
    }

    fn read(value: &Value, context: &mut MemberContext<'_, '_>) -> Option<Self> {
        let NamesInOrder { columns, is_empty } = NamesInOrder::read(value, context)?;
        Some(Self { columns: columns.into_iter().map(|(column, _)| column).collect(), is_empty })
    }

    fn write(&self, columns: &DatasetColumns<'_>) -> Value {
        self.columns.iter().map(|column| columns.name(*column)).collect()
    }

    fn schema() -> Value {
        Array::<String, MIN>::schema()
    }
}

impl<const MIN: usize> From<BTreeSet<usize>> for Names<MIN> {
    fn from(columns: BTreeSet<usize>) -> Self {
        Self { is_empty: columns.is_empty(), columns }
    }
}

impl<const MIN: usize> Given<Names<MIN>> {
    /// The columns that are named.
    pub(in crate::spec) fn columns(&self) -> &BTreeSet<usize> {
        static NONE: BTreeSet<usize> = BTreeSet::new();
        self.value.as_ref().map_or(&NONE, |names| &names.columns)
    }
}

/// A text of 1 to 500 characters that is not blank.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::spec) struct Reason(pub(in crate::spec) String);

scalar! {
    Reason: "a reason of 1 to 500 characters",
    |value| value.as_str().filter(|text| is_reason(text)).map(|text| Self(text.to_owned())),
    |reason| reason.0.as_str().into(),
    {"type": "string", "minLength": 1, "maxLength": 500, "pattern": "^[^\\u0000]*[^\\u0000\\s][^\\u0000]*$"}
}

/// An exact fraction: a number such as `0.02`, or a text such as `1/3`.
#[derive(Clone, Copy, Debug)]
pub(in crate::spec) struct Fraction(pub(in crate::spec) Ratio);

scalar! {
    Fraction as "NonNegativeFraction": "a fraction of at least 0, such as 8, 0.02 or \"1/3\"",
    |value| ratio(value).map(Self),
    |fraction| json!(fraction.0),
    {
        "description": "A fraction of at least 0, exact: a number or a text of at most nine decimals, or p/q",
        "oneOf": [
            {"type": "number", "minimum": 0, "maximum": 1_000_000_000},
            {"type": "string", "pattern": "^([0-9]{1,18}(\\.[0-9]{1,9})?|[0-9]{1,18}/[0-9]{1,18})$"},
        ],
    }
}

/// A fraction above 0.
#[derive(Clone, Copy, Debug)]
pub(in crate::spec) struct PositiveFraction(pub(in crate::spec) Ratio);

scalar! {
    PositiveFraction as "PositiveFraction": "a fraction above 0, such as 2.5 or \"5/2\"",
    |value| ratio(value).filter(|ratio| ratio.numerator() > 0).map(Self),
    |fraction| json!(fraction.0),
    {
        "description": "A fraction above 0, exact: a number or a text of at most nine decimals, or p/q",
        "oneOf": [
            {"type": "number", "exclusiveMinimum": 0, "maximum": 1_000_000_000},
            {"type": "string", "pattern": "^([0-9]{1,18}(\\.[0-9]{1,9})?|[0-9]{1,18}/[0-9]{1,18})$"},
        ],
    }
}

/// A share: exact, above 0 and at most 1.
#[derive(Clone, Copy, Debug)]
pub(in crate::spec) struct Share(pub(in crate::spec) Ratio);

impl Share {
    pub(in crate::spec) fn parse(value: &Value) -> Option<Self> {
        ratio(value).filter(|ratio| ratio.numerator() > 0 && *ratio <= Ratio::ONE).map(Self)
    }
}

scalar! {
    Share as "Share": "a fraction above 0 and at most 1, such as 0.02 or \"1/3\"",
    Self::parse,
    |share| json!(share.0),
    {
        "description": "A fraction above 0 and at most 1, exact: a number or a text of at most nine decimals, or p/q",
        "oneOf": [
            {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
            {"type": "string", "pattern": "^([0-9]{1,18}(\\.[0-9]{1,9})?|[0-9]{1,18}/[0-9]{1,18})$"},
        ],
    }
}

/// The id of something that the service keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::spec) struct Id(pub(in crate::spec) Uuid);

scalar! {
    Id: "an id",
    Self::parse,
    |id| id.0.to_string().into(),
    {"type": "string", "format": "uuid"}
}

impl Id {
    /// The id that a text spells; other spellings, such as braces, are not ids of this service.
    pub(in crate::spec) fn parse(value: &Value) -> Option<Self> {
        value.as_str().filter(|text| text.len() == 36).and_then(|text| Uuid::try_parse(text).ok()).map(Self)
    }
}

/// An array of at most `MAX` elements. The schema says that it has `MIN`; the caller reports an array that is too short.
#[derive(Clone, Debug)]
pub(in crate::spec) struct Array<T, const MIN: usize = 0, const MAX: usize = { usize::MAX }> {
    pub(in crate::spec) items: Vec<Given<T>>,
}

impl<T: Member, const MIN: usize, const MAX: usize> Array<T, MIN, MAX> {
    /// The elements that could be read.
    pub(in crate::spec) fn values(&self) -> impl Iterator<Item = &T> {
        self.items.iter().filter_map(|item| item.value.as_ref())
    }

    /// Whether it has no element.
    pub(in crate::spec) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Reads the elements, each of which may be what `allowed` says.
    fn read_items(items: &[Value], context: &mut MemberContext<'_, '_>, allowed: &str) -> Vec<Given<T>> {
        let read = |(index, item)| {
            let before = context.faults.len();
            let value = T::read(item, &mut context.item(index, allowed.to_owned()));
            Given { value, is_faulty: context.faults.len() > before }
        };
        items.iter().enumerate().map(read).collect()
    }
}

impl<T: Member, const MIN: usize, const MAX: usize> Member for Array<T, MIN, MAX> {
    fn allowed() -> String {
        "an array".to_owned()
    }

    fn read(value: &Value, context: &mut MemberContext<'_, '_>) -> Option<Self> {
        let Some(list) = value.as_array().filter(|list| list.len() <= MAX) else { return context.refuse() };
        Some(Self { items: Self::read_items(list, context, &T::allowed()) })
    }

    fn write(&self, columns: &DatasetColumns<'_>) -> Value {
        self.values().map(|item| item.write(columns)).collect()
    }

    fn schema() -> Value {
        let mut schema = json!({"type": "array", "items": T::schema()});
        if MIN > 0 {
            schema["minItems"] = MIN.into();
        }
        if MAX < usize::MAX {
            schema["maxItems"] = MAX.into();
        }
        schema
    }

    fn define(schemas: &mut SchemaMap) {
        T::define(schemas);
    }
}

impl<T, const MIN: usize, const MAX: usize> Given<Array<T, MIN, MAX>> {
    /// The elements, those that cannot be read included.
    pub(in crate::spec) fn items(&self) -> &[Given<T>] {
        self.value.as_ref().map_or(&[], |list| &list.items)
    }
}

impl<T, const MIN: usize, const MAX: usize> From<Vec<T>> for Array<T, MIN, MAX> {
    fn from(items: Vec<T>) -> Self {
        Self { items: items.into_iter().map(Given::from).collect() }
    }
}

/// An object whose names are data.
#[derive(Clone, Debug)]
pub(in crate::spec) struct Entries<T>(pub(in crate::spec) Vec<Entry<T>>);

/// A member of such an object.
#[derive(Clone, Debug)]
pub(in crate::spec) struct Entry<T> {
    pub(in crate::spec) name: String,
    pub(in crate::spec) pointer: String,
    pub(in crate::spec) value: Given<T>,
}

/// What can stand below each name of an object whose names are data.
pub(in crate::spec) trait EntryValue: Member {
    /// The name of the schema of the object.
    const OBJECT: &'static str;

    /// The description of the object.
    const ABOUT: &'static str;
}

impl<T: EntryValue> Member for Entries<T> {
    fn allowed() -> String {
        "an object".to_owned()
    }

    fn read(value: &Value, context: &mut MemberContext<'_, '_>) -> Option<Self> {
        let Some(members) = value.as_object() else { return context.refuse() };
        let read = |(name, value): (&String, &Value)| {
            let before = context.faults.len();
            let mut member = context.member(name, T::allowed());
            let value = T::read(value, &mut member);
            let pointer = member.pointer;
            Entry { name: name.clone(), pointer, value: Given { value, is_faulty: context.faults.len() > before } }
        };
        Some(Self(members.iter().map(read).collect()))
    }

    fn write(&self, columns: &DatasetColumns<'_>) -> Value {
        let written = |entry: &Entry<T>| Some((entry.name.clone(), entry.value.value.as_ref()?.write(columns)));
        self.0.iter().filter_map(written).collect::<ObjectMap>().into()
    }

    fn schema() -> Value {
        reference(T::OBJECT)
    }

    fn define(schemas: &mut SchemaMap) {
        T::define(schemas);
        let schema = json!({"type": "object", "additionalProperties": T::schema(), "description": T::ABOUT});
        define_as(T::OBJECT, schema, schemas);
    }
}
