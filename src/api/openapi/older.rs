//! The document for generators that know OpenAPI 3.0 and not 3.1. It says nothing else; what 3.0 cannot say it leaves out.

use serde_json::{Map, Value, json};

/// Members whose values are data, and no part of the description.
const DATA: [&str; 5] = ["default", "enum", "example", "examples", "value"];

/// Words of JSON Schema that OpenAPI 3.0 has not, and whose loss only admits more.
const UNKNOWN: [&str; 4] = ["else", "if", "propertyNames", "then"];

/// The document in the words of OpenAPI 3.0.
pub(super) fn for_3_0(mut document: Value) -> Value {
    rewrite(&mut document);
    document["openapi"] = "3.0.3".into();
    document["info"]["license"] =
        json!({"name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0.html"});
    document
}

fn rewrite(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(rewrite),
        Value::Object(members) => {
            members.retain(|name, _| !UNKNOWN.contains(&name.as_str()));
            let described = members.iter_mut().filter(|(name, _)| !DATA.contains(&name.as_str()));
            // the names of properties are free
            for (name, member) in described {
                match member {
                    Value::Object(properties) if name == "properties" => properties.values_mut().for_each(rewrite),
                    other => rewrite(other),
                }
            }
            // an empty list of required members is none
            members.retain(|name, value| name != "required" || value.as_array().is_none_or(|names| !names.is_empty()));
            rewrite_constant(members);
            rewrite_bounds(members);
            rewrite_types(members);
            rewrite_choice(members, "oneOf");
            rewrite_choice(members, "anyOf");
            wrap_reference(members);
        }
        _ => {}
    }
}

/// An exclusive bound is a bound with a flag.
fn rewrite_bounds(members: &mut Map<String, Value>) {
    for (exclusive, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        if members.get(exclusive).is_some_and(Value::is_number)
            && let Some(limit) = members.insert(exclusive.to_owned(), true.into())
        {
            members.insert(bound.to_owned(), limit);
        }
    }
}

fn rewrite_constant(members: &mut Map<String, Value>) {
    if let Some(constant) = members.remove("const") {
        members.insert("enum".to_owned(), json!([constant]));
    }
}

/// One type, which may be null, or a choice of types.
fn rewrite_types(members: &mut Map<String, Value>) {
    let Some(Value::Array(types)) = members.get("type") else { return };
    let (nulls, mut types): (Vec<Value>, Vec<Value>) = types.iter().cloned().partition(|name| name == "null");
    members.remove("type");
    if !nulls.is_empty() {
        members.insert("nullable".to_owned(), true.into());
    }
    if types.len() == 1 {
        members.extend(types.pop().map(|only| ("type".to_owned(), only)));
    } else {
        let choices = types.into_iter().map(|name| json!({"type": name, "nullable": !nulls.is_empty()}));
        members.insert("anyOf".to_owned(), choices.collect());
    }
}

/// A choice of which null is one is a choice of the others that may be null.
fn rewrite_choice(members: &mut Map<String, Value>, choice: &str) {
    let Some(Value::Array(choices)) = members.get_mut(choice) else { return };
    let before = choices.len();
    choices.retain(|one| one["type"] != "null");
    let (is_nullable, is_single) = (choices.len() < before, choices.len() == 1);
    if is_nullable {
        members.insert("nullable".to_owned(), true.into());
    }
    if is_single && let Some(only) = members.remove(choice) {
        members.insert("allOf".to_owned(), only);
    }
}

/// Beside a reference nothing else counts.
fn wrap_reference(members: &mut Map<String, Value>) {
    if members.len() > 1
        && members.get("$ref").is_some_and(Value::is_string)
        && let Some(reference) = members.remove("$ref")
    {
        members.insert("allOf".to_owned(), json!([{ "$ref": reference }]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(mut value: Value) -> Value {
        rewrite(&mut value);
        value
    }

    #[test]
    fn what_is_new_in_3_1_is_rewritten() {
        let may_be_null = json!({"type": "string", "nullable": true});
        assert_eq!(rewritten(json!({"type": ["string", "null"]})), may_be_null);
        assert_eq!(rewritten(json!({"const": "a", "type": "string"})), json!({"enum": ["a"], "type": "string"}));
        assert_eq!(rewritten(json!({"required": [], "type": "object"})), json!({"type": "object"}));
        let reference = json!({"$ref": "#/a"});
        assert_eq!(
            rewritten(json!({"oneOf": [{"type": "null"}, reference], "description": "d"})),
            json!({"allOf": [reference], "nullable": true, "description": "d"})
        );
        assert_eq!(
            rewritten(json!({"$ref": "#/a", "description": "d"})),
            json!({"allOf": [reference], "description": "d"})
        );
        let both = json!([{"type": "integer", "nullable": false}, {"type": "boolean", "nullable": false}]);
        assert_eq!(rewritten(json!({"type": ["integer", "boolean"]})), json!({"anyOf": both}));
        let above = json!({"minimum": 0, "exclusiveMinimum": true, "maximum": 2});
        assert_eq!(rewritten(json!({"exclusiveMinimum": 0, "maximum": 2})), above);
        // data and names stay
        let data = json!({"example": {"const": 1, "if": 2}, "enum": [["a", "null"]]});
        assert_eq!(rewritten(data.clone()), data);
        let named = json!({"properties": {"if": {"type": "string"}, "const": {"type": "string"}}});
        assert_eq!(rewritten(named.clone()), named);
    }
}
