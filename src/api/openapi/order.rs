//! The order in which the document is written: that of the work. Pages show operations, media types and examples in it.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

use crate::api::routes::table::ROUTES;

/// What comes first among members of one object.
const FIRST: [&str; 5] = ["held", "post", "get", "put", "delete"];

/// The media type that a request is first shown with. Of answers JSON comes first, which generated clients read.
const FIRST_REQUEST: &str = "text/csv";

/// A part of the document. Members that have no place of their own are in alphabetical order.
pub(super) struct InOrder<'a> {
    value: &'a Value,
    is_request: bool,
}

impl<'a> InOrder<'a> {
    pub(super) const fn new(document: &'a Value) -> Self {
        Self { value: document, is_request: false }
    }

    /// Where a path or another member stands.
    fn place(&self, name: &str) -> usize {
        let place = if name.starts_with('/') {
            let is_it = |path| name == path || name.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'));
            ROUTES.iter().position(|route| is_it(route.path))
        } else if self.is_request && name == FIRST_REQUEST {
            Some(0)
        } else {
            FIRST.iter().position(|first| *first == name)
        };
        place.unwrap_or(usize::MAX)
    }
}

impl Serialize for InOrder<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.value {
            Value::Object(members) => {
                let mut members: Vec<(&String, &Value)> = members.iter().collect();
                members.sort_by_key(|(name, _)| (self.place(name), *name));
                let mut map = serializer.serialize_map(Some(members.len()))?;
                for (name, value) in members {
                    map.serialize_entry(name, &Self { value, is_request: self.is_request || name == "requestBody" })?;
                }
                map.end()
            }
            Value::Array(items) => {
                serializer.collect_seq(items.iter().map(|value| Self { value, is_request: self.is_request }))
            }
            other => other.serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_work_has_an_order() {
        let media_types = json!({"a": 3, "text/csv": 4});
        let upload = json!({"requestBody": media_types, "responses": media_types});
        let document = json!({"/v1/jobs": {"get": 1, "post": 2}, "/v1/datasets": upload});
        let written = serde_json::to_string(&InOrder::new(&document)).unwrap();
        let upload = r#"{"requestBody":{"text/csv":4,"a":3},"responses":{"a":3,"text/csv":4}}"#;
        assert_eq!(written, format!(r#"{{"/v1/datasets":{upload},"/v1/jobs":{{"post":2,"get":1}}}}"#));
    }
}
