//! JSON in which the members of an object have different names. Of two members with one name, two readers may take different ones.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::problem::{Kind, Problem};

/// The longest name that a problem repeats.
const REPEATED_CHARS: usize = 100;

/// The most objects with members in a document. Each takes up to 670 bytes of memory, for as few as seven in the text.
const MAX_OBJECTS: usize = 200_000;

/// Parses a document whose objects have no member twice.
///
/// # Errors
/// `malformed-body` when it is not JSON, or names a member twice.
pub fn parse(bytes: &[u8]) -> Result<Value, Problem> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let objects = Cell::new(0);
    let parsed = AnyValue { objects: &objects }.deserialize(&mut deserializer);
    parsed.and_then(|value| deserializer.end().map(|()| value)).map_err(|error| {
        let place = format!("line {}, column {}", error.line(), error.column());
        let detail = match error.classify() {
            // the only error of data that reading any value can end with
            serde_json::error::Category::Data => {
                let said = error.to_string();
                format!("{} before {place}", said.rsplit_once(" at line ").map_or(said.as_str(), |(what, _)| what))
            }
            _ => format!("not JSON at {place}"),
        };
        Problem::new(Kind::MalformedBody, detail)
    })
}

/// A value in which no object has a member twice, in a document of not too many objects.
#[derive(Clone, Copy)]
struct AnyValue<'c> {
    /// How many objects with members there are so far.
    objects: &'c Cell<usize>,
}

impl<'de> DeserializeSeed<'de> for AnyValue<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for AnyValue<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = items.next_element_seed(self)? {
            values.push(value);
        }
        Ok(values.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            if map.contains_key(&name) {
                return Err(A::Error::custom(match name.chars().count() {
                    0..=REPEATED_CHARS => format!("an object has the member {name:?} twice,"),
                    _ => "an object has a member twice,".to_owned(),
                }));
            }
            if map.is_empty() {
                self.objects.update(|objects| objects + 1);
                if self.objects.get() > MAX_OBJECTS {
                    return Err(A::Error::custom(format!(
                        "a document has at most {MAX_OBJECTS} objects with members,"
                    )));
                }
            }
            let value = members.next_value_seed(self)?;
            map.insert(name, value);
        }
        Ok(map.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn documents_with_unique_members_are_read() {
        let document = json!({"a": [1, -2, 1.5, 1e300, u64::MAX, true, null, "é\n"], "b": {"a": {}, "": []}});
        assert_eq!(parse(document.to_string().as_bytes()), Ok(document));
    }

    #[test]
    fn member_given_twice_is_named() {
        for (text, said) in [
            (r#"{"a":1,"a":1}"#, "an object has the member \"a\" twice, before line 1, column "),
            (
                r#"{"x":[{"at line ":null,"\u0061t line ":2}]}"#,
                "an object has the member \"at line \" twice, before line 1, column ",
            ),
            ("{\"b\":{},\n\"b\":{}}", "an object has the member \"b\" twice, before line 2, column "),
        ] {
            let problem = parse(text.as_bytes()).unwrap_err();
            assert_eq!(problem.kind, Kind::MalformedBody);
            assert!(problem.detail.starts_with(said), "{}", problem.detail);
        }
        let long = "x".repeat(1000);
        let problem = parse(format!("{{\"{long}\":1,\"{long}\":2}}").as_bytes()).unwrap_err();
        assert!(problem.detail.len() < 100, "{}", problem.detail);
    }

    #[test]
    fn objects_of_a_document_are_bounded() {
        let document = |number: usize| format!("[{}{{}}]", "{\"\":1},".repeat(number));
        assert!(parse(document(MAX_OBJECTS).as_bytes()).is_ok());
        let problem = parse(document(MAX_OBJECTS + 1).as_bytes()).unwrap_err();
        assert_eq!(problem.kind, Kind::MalformedBody);
        assert!(problem.detail.starts_with("a document has at most 200000 objects with members, before line 1"));
    }

    #[test]
    fn text_that_is_not_json_is_refused() {
        for text in ["", "{", "{\"a\"}", "[1,]", "nul", "{} {}", &"[".repeat(1000), "\"\\ud800\""] {
            let problem = parse(text.as_bytes()).unwrap_err();
            assert!(problem.detail.starts_with("not JSON at line 1, column "), "{text}: {}", problem.detail);
        }
        assert!(parse(b"\"\xff\"").is_err());
    }
}
