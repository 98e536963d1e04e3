//! Names every variant of a schema, so that generated clients have named types.

use serde_json::{Map, Value, json};

/// Parses an embedded document.
pub(in crate::api) fn parsed(text: &str) -> Value {
    // a test parses all of them
    serde_json::from_str(text).unwrap_or_default()
}

const SCHEMAS: &str = "#/components/schemas/";

/// Moves the objects of `oneOf` into named schemas. Variants with `type` get a discriminator and reject unknown members.
pub(super) fn name_variants(document: &mut Value) {
    let Some(schemas) = document["components"]["schemas"].as_object_mut() else { return };
    let mut moved = Map::new();
    for (parent, schema) in schemas.iter_mut() {
        let Some(variants) = schema.get_mut("oneOf").and_then(Value::as_array_mut) else { continue };
        let mut mapping = Map::new();
        for variant in variants {
            let Some(name) = variant["properties"].as_object().and_then(|_| variant_name(parent, variant)) else {
                continue;
            };
            let target = format!("{SCHEMAS}{name}");
            let mut variant = std::mem::replace(variant, json!({ "$ref": target }));
            if let Some(tag) = variant["properties"]["type"]["enum"][0].as_str().map(str::to_owned) {
                variant["properties"]["type"] = json!({"type": "string", "const": tag});
                variant["additionalProperties"] = false.into();
                mapping.insert(tag, target.into());
            }
            variant["title"] = name.as_str().into();
            moved.insert(name, variant);
        }
        if !mapping.is_empty() {
            schema["discriminator"] = json!({"propertyName": "type", "mapping": mapping});
        }
    }
    schemas.extend(moved);
}

/// The name of a variant: its title, its tag, or otherwise its first required member.
fn variant_name(parent: &str, variant: &Value) -> Option<String> {
    match (variant["title"].as_str(), variant["properties"]["type"]["enum"][0].as_str()) {
        (Some(title), _) => Some(title.to_owned()),
        (None, Some(tag)) => Some(format!("{}{parent}", camel(tag))),
        (None, None) => variant["required"][0].as_str().map(|member| format!("{parent}{}", camel(member))),
    }
}

/// Writes the members of `allOf`, which stands for a flattened member, into the object that flattens it.
pub(super) fn flatten_members(document: &mut Value) {
    let Some(schemas) = document["components"]["schemas"].as_object_mut() else { return };
    let unflattened = schemas.clone();
    for schema in schemas.values_mut() {
        let Some(objects) = schema.as_object_mut().and_then(|schema| schema.remove("allOf")) else { continue };
        schema["type"] = "object".into();
        for object in objects.as_array().into_iter().flatten() {
            let name = object["$ref"].as_str().and_then(|target| target.strip_prefix(SCHEMAS));
            let object = name.and_then(|name| unflattened.get(name)).unwrap_or(object);
            for (name, member) in object["properties"].as_object().into_iter().flatten() {
                schema["properties"][name] = member.clone();
            }
            let required = object["required"].as_array().cloned().unwrap_or_default();
            match schema["required"].as_array_mut() {
                Some(all) => all.extend(required),
                None => schema["required"] = required.into(),
            }
        }
    }
}

/// Moves the description of a reference that may be null to the member itself, where readers look for it.
pub(super) fn describe_nullable_members(document: &mut Value) {
    let schemas = document["components"]["schemas"].as_object_mut().into_iter().flat_map(Map::values_mut);
    let objects = schemas.filter_map(|schema| schema.get_mut("properties").and_then(Value::as_object_mut));
    let members = objects.flat_map(Map::values_mut);
    for member in members.filter(|member| is_nullable(member) && member["description"].is_null()) {
        let variants = member.get_mut("oneOf").and_then(Value::as_array_mut).into_iter().flatten();
        let description = variants.filter_map(Value::as_object_mut).find_map(|variant| variant.remove("description"));
        if let Some(description) = description {
            member["description"] = description;
        }
    }
}

/// Whether null satisfies a schema of utoipa.
pub(super) fn is_nullable(schema: &Value) -> bool {
    let types = schema["type"].as_array().into_iter().flatten().chain([&schema["type"]]);
    types
        .chain(schema["oneOf"].as_array().into_iter().flatten().map(|variant| &variant["type"]))
        .any(|name| name == "null")
}

fn camel(name: &str) -> String {
    let word = |word: &str| {
        let mut letters = word.chars();
        letters.next().map(|first| first.to_uppercase().chain(letters).collect::<String>()).unwrap_or_default()
    };
    name.split('_').map(word).collect()
}

/// The name of a variant after its parent was renamed.
pub(super) fn variant_of(name: &str, parent: &str, renamed: &str) -> String {
    name.strip_prefix(parent).map_or_else(|| name.to_owned(), |variant| format!("{renamed}{variant}"))
}

/// Renames schemas and all references to them.
pub(super) fn rename(document: &Value, to: impl Fn(&str) -> String + Copy) -> Value {
    let mut renamed = references(document, to);
    if let Some(schemas) = renamed["components"]["schemas"].as_object_mut() {
        *schemas = std::mem::take(schemas)
            .into_iter()
            .map(|(name, mut schema)| {
                let name = to(&name);
                if schema["title"].is_string() {
                    schema["title"] = name.as_str().into();
                }
                (name, schema)
            })
            .collect();
    }
    renamed
}

fn references(value: &Value, to: impl Fn(&str) -> String + Copy) -> Value {
    match value {
        Value::String(text) => match text.strip_prefix(SCHEMAS) {
            Some(name) => format!("{SCHEMAS}{}", to(name)).into(),
            None => value.clone(),
        },
        Value::Array(items) => items.iter().map(|item| references(item, to)).collect(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| (name.clone(), references(value, to))).collect::<Map<_, _>>().into()
        }
        other => other.clone(),
    }
}
