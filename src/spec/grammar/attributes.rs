//! The member `attributes`: options of single attributes.

use std::sync::Arc;

use serde_json::{Map, Value, json};

pub(in crate::spec) use super::columns::DatasetColumns;
use super::document::{Document, Int, Member, MemberContext, SchemaMap, document, reference, scalar};
use super::reader::{child, column_value};
use super::schema::{ColumnFacts, DocumentSource};
use super::taxonomy::TaxonomyName;
use crate::microdata::Taxonomy;
use crate::problem::Kind;

/// The most excludable values of an attribute.
const MAX_VALUES: usize = 1_000;

document! {
    /// What becomes of an attribute.
    AttributeOptions as "AttributeChoice" {
        /// Not published. Not together with `publish`, and not for an attribute of a rule.
        optional drop: bool = false,
        /// Published, though no rule names it.
        optional publish: bool = false,
        /// True declares an identifier. False, beside `publish: true`, lets an attribute be published that looks like one.
        optional identifier: bool,
        /// The published name. `bucket` is reserved.
        optional rename: PublishedName,
        optional discretize: DiscretizeMembers,
        /// A tree of which all values of the attribute are leaves. It is written out in the job.
        optional taxonomy: TaxonomyChoice,
        /// Values that an insider can rule out, such as `none`; null is the missing value. What is protected is then protected from
        /// an insider who rules them out, too. Each must occur. For `l_diversity`, its distinct, entropy and recursive forms, and `alpha_k`; not
        /// for combinations.
        optional excludable: ExcludableValues = ExcludableValues::default(),
    }
}

document! {
    /// How numbers of many values are taken together to see what they go with, where columns of a sliced table are chosen by that. What
    /// is published stays as it is.
    DiscretizeMembers as "Discretize" {
        /// Into how many bins of equal width; 10 when nothing is said.
        required equal_width: Int<1, { u64::MAX }> => "an integer of at least 1",
    }
}

/// The name under which an attribute is published.
#[derive(Clone, Debug)]
pub(in crate::spec) struct PublishedName(String);

scalar! {
    PublishedName: "a name that is not empty",
    |value| value.as_str().filter(|name| !name.is_empty()).map(|name| Self(name.to_owned())),
    |name| name.0.as_str().into(),
    {"type": "string", "minLength": 1}
}

/// Values that an insider can rule out, `None` being the missing one; each once.
#[derive(Clone, Default, Debug)]
pub(in crate::spec) struct ExcludableValues(pub(in crate::spec) Vec<Option<String>>);

impl Member for ExcludableValues {
    fn allowed() -> String {
        "an array of values".to_owned()
    }

    fn read(value: &Value, context: &mut MemberContext<'_, '_>) -> Option<Self> {
        let Some(values) = value.as_array() else { return context.refuse() };
        if values.len() > MAX_VALUES {
            context.allowed = format!("an array of at most {MAX_VALUES} values");
            return context.refuse();
        }
        let mut read: Vec<Option<String>> = Vec::new();
        for (index, value) in values.iter().enumerate() {
            let allowed = match column_value(value) {
                Some(text) if !read.contains(&text) => {
                    read.push(text);
                    continue;
                }
                Some(_) => "a value that is not in the array already",
                None => "a value as text, an integer, true, false or null",
            };
            context.faults.range(child(&context.pointer, &index.to_string()), allowed);
        }
        Some(Self(read))
    }

    fn write(&self, _columns: &DatasetColumns<'_>) -> Value {
        json!(self.0)
    }

    fn schema() -> Value {
        let items = json!({"type": ["string", "integer", "boolean", "null"]});
        json!({"type": "array", "items": items, "maxItems": MAX_VALUES, "uniqueItems": true})
    }
}

/// The taxonomy of an attribute.
#[derive(Clone, Debug)]
pub(in crate::spec) enum TaxonomyChoice {
    /// The tree itself.
    Tree(Arc<Taxonomy>),
    /// One that is stored, which a policy names.
    Named,
}

impl Member for TaxonomyChoice {
    fn allowed() -> String {
        "a tree, or the name of a stored taxonomy, such as \"job\" or \"job-v3\"".to_owned()
    }

    fn read(value: &Value, context: &mut MemberContext<'_, '_>) -> Option<Self> {
        let Value::String(text) = value else { return Arc::<Taxonomy>::read(value, context).map(Self::Tree) };
        match context.columns.origin {
            origin if origin.is_local() => {
                let detail = "stored taxonomies are those of a service; state the tree itself";
                context.faults.unsupported(context.pointer.as_str(), detail);
                None
            }
            DocumentSource::Policy if TaxonomyName::parse(text).is_some() => Some(Self::Named),
            _ => context.refuse(),
        }
    }

    fn write(&self, columns: &DatasetColumns<'_>) -> Value {
        match self {
            Self::Tree(tree) => tree.write(columns),
            Self::Named => Value::Null,
        }
    }

    fn schema() -> Value {
        let name = json!({
            "type": "string",
            "pattern": "^[a-z0-9][a-z0-9._-]*$",
            "description": "A stored one: `job`, or a version of it, `job-v3`.",
        });
        json!({"oneOf": [name, Arc::<Taxonomy>::schema()]})
    }

    fn define(schemas: &mut SchemaMap) {
        Arc::<Taxonomy>::define(schemas);
    }
}

impl AttributeOptions {
    /// The name under which it is published, where it is not that of the dataset.
    pub(in crate::spec) fn rename(&self) -> Option<&str> {
        self.rename.value.as_ref().map(|name| name.0.as_str())
    }

    /// The number of bins of equal width for its association with others.
    pub(in crate::spec) fn equal_width(&self) -> Option<u64> {
        Some(self.discretize.value.as_ref()?.equal_width.value?.0)
    }

    /// Whether the caller takes responsibility for publishing an identifier.
    pub(in crate::spec) fn overrides_identifier(&self) -> bool {
        self.publish && self.identifier.value == Some(false)
    }
}

/// The columns that are marked with `publish`.
pub(in crate::spec) fn published_columns(attributes: &[AttributeOptions]) -> impl Iterator<Item = usize> {
    attributes.iter().enumerate().filter(|(_, options)| options.publish && !options.drop).map(|(column, _)| column)
}

/// The member `attributes`: the options of each column.
#[derive(Clone, Debug)]
pub(in crate::spec) struct AttributeMap(pub(in crate::spec) Vec<AttributeOptions>);

impl AttributeMap {
    /// No options for any column.
    pub(in crate::spec) fn absent(columns: &DatasetColumns<'_>) -> Self {
        let options = |column: &ColumnFacts| AttributeOptions::absent(&child("/attributes", &column.name));
        Self(columns.facts.iter().map(options).collect())
    }
}

impl Member for AttributeMap {
    fn allowed() -> String {
        "an object".to_owned()
    }

    fn read(value: &Value, context: &mut MemberContext<'_, '_>) -> Option<Self> {
        let Some(attributes) = value.as_object() else { return context.refuse() };
        let mut options = Self::absent(context.columns);
        for (name, value) in attributes {
            let mut member = context.member(name, AttributeOptions::allowed());
            let column = member.columns.resolve(name, &member.pointer, member.faults);
            let before = member.faults.len();
            let read = if value.is_null() { None } else { AttributeOptions::read(value, &mut member) };
            for fault in member.faults.after(before).filter(|fault| fault.kind == Kind::TaxonomyConflict) {
                fault.members.insert("attribute".to_owned(), name.as_str().into());
            }
            let Some(read) = read else { continue };
            if read.drop && read.publish {
                member.faults.range(read.at("drop"), "either publish or drop, not both");
            }
            if let Some(column) = column {
                options.0[column] = read;
            }
        }
        Some(options)
    }

    fn write(&self, columns: &DatasetColumns<'_>) -> Value {
        let written =
            columns.facts.iter().zip(&self.0).map(|(column, options)| (column.name.clone(), options.write(columns)));
        written.collect::<Map<_, _>>().into()
    }

    fn schema() -> Value {
        reference("AttributeChoices")
    }

    fn define(schemas: &mut SchemaMap) {
        AttributeOptions::define(schemas);
        let schema = json!({
            "type": "object",
            "description": "Choices for attributes, by their names in the dataset.",
            "additionalProperties": {"oneOf": [{"type": "null"}, AttributeOptions::schema()]},
        });
        schemas.insert("AttributeChoices".to_owned(), schema);
    }
}
