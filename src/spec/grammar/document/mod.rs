//! One declaration for each object of a request document.
//!
//! `document!` declares an object and `choice!` a set of words. Each generates the reader, which names every fault, the normal form,
//! and the JSON schema. To add a member, add one line:
//!
//! ```text
//! document! {
//!     /// Description of the object in the schema.
//!     Counterfeits as "CounterfeitChoice" {
//!         /// Description of the member in the schema.
//!         required per_bucket: Int<1, 100>,
//!     }
//! }
//! ```
//!
//! - `required`: the schema requires the member, and its absence is a fault.
//! - `needed`: the schema requires the member, and the caller reports its absence in words of its own.
//! - `optional`: the member may be absent or null. With `= value` that value is the default.
//! - `=> "text"` replaces the text of [`Member::allowed`] in faults.
//! - `tagged "word"` after the name of the schema adds the member `type`, which the caller has read already.
//!
//! Members are read in the order of their declaration. A check of several members is a function of the caller.

mod macros;
mod members;

pub(in crate::spec) use macros::{choice, document};
pub(in crate::spec) use members::{ColumnName, Int, List, Names, NamesInOrder, Reason};
use serde_json::{Map, Value, json};

use super::attributes::DatasetColumns;
use super::reader::{FaultList, ObjectReader, child};

/// Schemas by their names, as `components/schemas` of OpenAPI has them.
pub(in crate::spec) type SchemaMap = Map<String, Value>;

/// What can stand as a member of a document.
pub(in crate::spec) trait Member: Sized {
    /// What the member may be, as it stands after "expected" in a fault.
    fn allowed() -> String;

    /// Reads a value other than null; `None` after a fault.
    fn read(value: &Value, context: &mut MemberContext<'_, '_>) -> Option<Self>;

    /// The value in the normal form of its document.
    fn write(&self, columns: &DatasetColumns<'_>) -> Value;

    /// The schema of a value that is not null: in full, or a reference to a named schema.
    fn schema() -> Value;

    /// Adds the named schemas that [`Member::schema`] refers to.
    fn define(_schemas: &mut SchemaMap) {}
}

/// What a member is read with.
pub(in crate::spec) struct MemberContext<'r, 'c> {
    pub(in crate::spec) pointer: String,
    /// What the member may be, for faults.
    pub(in crate::spec) allowed: String,
    pub(in crate::spec) columns: &'r DatasetColumns<'c>,
    pub(in crate::spec) faults: &'r mut FaultList,
}

impl<'c> MemberContext<'_, 'c> {
    /// Reports that the value is not what it may be.
    pub(in crate::spec) fn refuse<T>(&mut self) -> Option<T> {
        self.faults.range(self.pointer.as_str(), &self.allowed);
        None
    }

    /// The context of an element of this array.
    pub(in crate::spec) fn item(&mut self, index: usize, allowed: String) -> MemberContext<'_, 'c> {
        let pointer = child(&self.pointer, &index.to_string());
        MemberContext { pointer, allowed, columns: self.columns, faults: self.faults }
    }
}

/// A member as it was read.
#[derive(Clone, Debug)]
pub(in crate::spec) struct Given<T> {
    /// `None` when the member is absent or cannot be read.
    pub(in crate::spec) value: Option<T>,
    /// Whether there is a fault in it. A faulty array can have a value all the same: its sound elements.
    pub(in crate::spec) is_faulty: bool,
}

impl<T> Given<T> {
    pub(in crate::spec) const fn absent() -> Self {
        Self { value: None, is_faulty: false }
    }

    /// Whether a fault hides the whole value.
    pub(in crate::spec) fn is_hidden(&self) -> bool {
        self.value.is_none() && self.is_faulty
    }
}

impl<T> From<T> for Given<T> {
    fn from(value: T) -> Self {
        Self { value: Some(value), is_faulty: false }
    }
}

/// An object that `document!` declares.
pub(in crate::spec) trait Document: Sized {
    /// The name of its schema.
    const NAME: &'static str;

    /// The object at this pointer, without any member.
    fn absent(pointer: &str) -> Self;

    /// Reads all members, and reports those that are unknown.
    fn read_members(members: ObjectReader<'_>, columns: &DatasetColumns<'_>, faults: &mut FaultList) -> Self;

    /// The normal form, with defaults filled in. A member without a value is null.
    fn write_members(&self, columns: &DatasetColumns<'_>) -> Value;

    /// The schema of the object.
    fn definition() -> Value;

    /// Adds the named schemas of the members.
    fn define_members(schemas: &mut SchemaMap);

    fn pointer(&self) -> &str;

    /// The pointer of a member.
    fn at(&self, member: &str) -> String {
        child(self.pointer(), member)
    }
}

impl<D: Document> Member for D {
    fn allowed() -> String {
        "an object".to_owned()
    }

    fn read(value: &Value, context: &mut MemberContext<'_, '_>) -> Option<Self> {
        let members = ObjectReader::open(value, context.pointer.as_str(), context.faults)?;
        Some(Self::read_members(members, context.columns, context.faults))
    }

    fn write(&self, columns: &DatasetColumns<'_>) -> Value {
        self.write_members(columns)
    }

    fn schema() -> Value {
        reference(Self::NAME)
    }

    fn define(schemas: &mut SchemaMap) {
        if !schemas.contains_key(Self::NAME) {
            schemas.insert(Self::NAME.to_owned(), Self::definition());
            Self::define_members(schemas);
        }
    }
}

/// How a member is declared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(non_camel_case_types, reason = "the words of the declaration")]
pub(in crate::spec) enum Presence {
    required,
    needed,
    optional,
}

/// Reads a member of an object.
pub(in crate::spec) fn read_member<T: Member>(
    members: &mut ObjectReader<'_>,
    (name, presence, allowed): (&'static str, Presence, Option<&str>),
    columns: &DatasetColumns<'_>,
    faults: &mut FaultList,
) -> Given<T> {
    let before = faults.len();
    let value = members.take(name);
    let allowed = allowed.map_or_else(T::allowed, str::to_owned);
    let mut context = MemberContext { pointer: members.at(name), allowed, columns, faults };
    let value = match value {
        Some(value) => T::read(value, &mut context),
        None if presence == Presence::required => context.refuse(),
        None => None,
    };
    Given { value, is_faulty: faults.len() > before }
}

/// The schema of a member that is described by these lines.
pub(in crate::spec) fn member_schema<T: Member>(presence: Presence, lines: &[&str]) -> Value {
    let mut schema = T::schema();
    if presence == Presence::optional {
        schema = nullable(schema);
    }
    if !lines.is_empty() {
        schema["description"] = description(lines).into();
    }
    schema
}

/// The schema, which null satisfies, too.
fn nullable(mut schema: Value) -> Value {
    for variants in ["oneOf", "anyOf"] {
        if let Some(variants) = schema.get_mut(variants).and_then(Value::as_array_mut) {
            variants.insert(0, json!({"type": "null"}));
            return schema;
        }
    }
    match schema["type"].as_str().map(str::to_owned) {
        Some(name) => {
            schema["type"] = json!([name, "null"]);
            schema
        }
        None => json!({"oneOf": [{"type": "null"}, schema]}),
    }
}

/// The lines of a docstring as one text.
pub(in crate::spec) fn description(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}

/// The schema that refers to a named one.
pub(in crate::spec) fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// The name of a member whose identifier may be raw.
pub(in crate::spec) fn member_name(identifier: &'static str) -> &'static str {
    identifier.strip_prefix("r#").unwrap_or(identifier)
}
