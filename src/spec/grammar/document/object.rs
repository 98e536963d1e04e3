//! What the declarations generate code for: members, their contexts and schemas.

use serde_json::{Map, Value, json};

use super::super::columns::DatasetColumns;
use super::super::reader::{FaultList, ObjectReader, child, one_of};
use crate::problem::Fault;

/// The members of an object.
pub(in crate::spec) type ObjectMap = Map<String, Value>;

/// Schemas by their names, as `components/schemas` of OpenAPI has them.
pub(in crate::spec) type SchemaMap = ObjectMap;

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
        self.member(&index.to_string(), allowed)
    }

    /// The context of a member of this object.
    pub(in crate::spec) fn member(&mut self, name: &str, allowed: String) -> MemberContext<'_, 'c> {
        let pointer = child(&self.pointer, name);
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

    pub(in crate::spec) fn map<U>(self, change: impl FnOnce(T) -> U) -> Given<U> {
        Given { value: self.value.map(change), is_faulty: self.is_faulty }
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

    /// The lines that describe it.
    const ABOUT: &'static [&'static str];

    /// Its member `type`, where it has one.
    const TAG: Option<&'static str>;

    /// The object at this pointer, without any member.
    fn absent(pointer: &str) -> Self;

    /// Reads all members.
    fn take_members(members: &mut ObjectReader<'_>, columns: &DatasetColumns<'_>, faults: &mut FaultList) -> Self;

    /// Adds the members in normal form, with defaults filled in. A member without a value is null.
    fn write_into(&self, written: &mut ObjectMap, columns: &DatasetColumns<'_>);

    /// Adds the schemas of the members.
    fn define_properties(properties: &mut PropertyList);

    /// Adds the named schemas that those of the members refer to.
    fn define_members(schemas: &mut SchemaMap);

    fn pointer(&self) -> &str;

    /// The pointer of a member.
    fn at(&self, member: &str) -> String {
        child(self.pointer(), member)
    }

    /// Reads a whole document; `check` finds the faults of several members, and makes what the caller asks for.
    ///
    /// # Errors
    /// Every fault, ordered by pointer.
    fn read_document<T>(
        document: &Value,
        columns: &DatasetColumns<'_>,
        check: impl FnOnce(Self, &mut FaultList) -> Option<T>,
    ) -> Result<T, Vec<Fault>> {
        let mut faults = FaultList::new();
        let read = ObjectReader::open(document, "", &mut faults).and_then(|members| {
            let read = Self::read_members(members, columns, &mut faults);
            check(read, &mut faults)
        });
        read.filter(|_| faults.is_empty()).ok_or_else(|| faults.into_sorted())
    }

    /// Reads all members, and reports those that are unknown.
    fn read_members(mut members: ObjectReader<'_>, columns: &DatasetColumns<'_>, faults: &mut FaultList) -> Self {
        let read = Self::take_members(&mut members, columns, faults);
        members.finish(faults);
        read
    }

    /// The schema of the object.
    fn definition() -> Value {
        let mut properties = PropertyList::default();
        if let Some(tag) = Self::TAG {
            properties.schemas.insert("type".to_owned(), json!({"type": "string", "const": tag}));
            properties.required.push("type");
        }
        Self::define_properties(&mut properties);
        let mut schema = json!({
            "type": "object",
            "title": Self::NAME,
            "description": description(Self::ABOUT),
            "properties": properties.schemas,
            "additionalProperties": false,
        });
        if !properties.required.is_empty() {
            schema["required"] = properties.required.into();
        }
        schema
    }
}

/// The schemas of the members of an object.
#[derive(Default, Debug)]
pub(in crate::spec) struct PropertyList {
    schemas: SchemaMap,
    required: Vec<&'static str>,
}

impl PropertyList {
    /// Adds a member that is described by these lines.
    pub(in crate::spec) fn add<T: Member>(&mut self, name: &'static str, presence: Presence, lines: &[&str]) {
        let mut schema = T::schema();
        if presence == Presence::optional {
            schema = nullable(schema);
        } else {
            self.required.push(name);
        }
        if !lines.is_empty() {
            schema["description"] = description(lines).into();
        }
        self.schemas.insert(name.to_owned(), schema);
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
        let mut written = Map::new();
        if let Some(tag) = Self::TAG {
            written.insert("type".to_owned(), tag.into());
        }
        self.write_into(&mut written, columns);
        written.into()
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

/// A member of an object, as it is declared.
pub(in crate::spec) struct MemberDeclaration<'a> {
    pub(in crate::spec) name: &'static str,
    pub(in crate::spec) presence: Presence,
    /// What it may be, where that is not [`Member::allowed`].
    pub(in crate::spec) allowed: Option<&'a str>,
}

impl MemberDeclaration<'_> {
    /// Reads the member of an object.
    pub(in crate::spec) fn read<T: Member>(
        &self,
        members: &mut ObjectReader<'_>,
        columns: &DatasetColumns<'_>,
        faults: &mut FaultList,
    ) -> Given<T> {
        let before = faults.len();
        let value = members.take(self.name);
        let allowed = self.allowed.map_or_else(T::allowed, str::to_owned);
        let mut context = MemberContext { pointer: members.at(self.name), allowed, columns, faults };
        let value = match value {
            Some(value) => T::read(value, &mut context),
            None if self.presence == Presence::required => context.refuse(),
            None => None,
        };
        Given { value, is_faulty: faults.len() > before }
    }
}

/// The schema, which null satisfies, too.
fn nullable(mut schema: Value) -> Value {
    for variants in ["oneOf", "anyOf"] {
        if let Some(variants) = schema.get_mut(variants).and_then(Value::as_array_mut) {
            variants.insert(0, json!({"type": "null"}));
            return schema;
        }
    }
    match schema.get_mut("type") {
        Some(Value::Array(names)) => names.push("null".into()),
        Some(name) => *name = json!([name, "null"]),
        None => return json!({"oneOf": [{"type": "null"}, schema]}),
    }
    schema
}

/// The lines of a docstring as one text.
pub(in crate::spec) fn description(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}

/// Writes a member of an object; one without a value is null.
pub(in crate::spec) fn write_member<T: Member>(
    name: &str,
    value: Option<&T>,
    written: &mut ObjectMap,
    columns: &DatasetColumns<'_>,
) {
    written.insert(name.to_owned(), value.map_or(Value::Null, |value| value.write(columns)));
}

/// Opens an object whose member `type` is one of `tags`, and gives that.
pub(in crate::spec) fn open_union<'v>(
    value: &'v Value,
    tags: &[&'static str],
    context: &mut MemberContext<'_, '_>,
) -> Option<(&'static str, ObjectReader<'v>)> {
    let mut members = ObjectReader::open(value, context.pointer.as_str(), context.faults)?;
    let given = members.take("type").and_then(Value::as_str);
    let Some(tag) = tags.iter().find(|tag| given == Some(**tag)) else {
        context.faults.range(members.at("type"), &one_of(tags));
        return None;
    };
    Some((tag, members))
}

/// One of the documents that an object can be.
pub(in crate::spec) struct UnionVariant {
    /// Its member `type`.
    pub(in crate::spec) tag: &'static str,
    /// The name of its schema.
    pub(in crate::spec) schema: &'static str,
    /// Adds its schema.
    pub(in crate::spec) define: fn(&mut SchemaMap),
}

/// Adds the schema of an object that is one of several, and theirs.
pub(in crate::spec) fn define_union<'v>(
    name: &str,
    description: &str,
    variants: impl IntoIterator<Item = &'v UnionVariant>,
    schemas: &mut SchemaMap,
) {
    let (mut references, mut mapping) = (Vec::new(), Map::new());
    for variant in variants {
        references.push(reference(variant.schema));
        mapping.insert(variant.tag.to_owned(), format!("#/components/schemas/{}", variant.schema).into());
        (variant.define)(schemas);
    }
    let schema = json!({
        "oneOf": references,
        "discriminator": {"propertyName": "type", "mapping": mapping},
        "description": description,
    });
    schemas.insert(name.to_owned(), schema);
}

/// Adds a schema under a name, which becomes its title.
pub(in crate::spec) fn define_as(name: &str, mut schema: Value, schemas: &mut SchemaMap) {
    schema["title"] = name.into();
    schemas.insert(name.to_owned(), schema);
}

/// The schema that refers to a named one.
pub(in crate::spec) fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// The name of a member whose identifier may be raw.
pub(in crate::spec) fn member_name(identifier: &'static str) -> &'static str {
    identifier.strip_prefix("r#").unwrap_or(identifier)
}
