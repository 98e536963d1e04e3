//! The OpenAPI document as a judge: every request and answer of the harness's client is held against it.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use guardian::problem::Kind;
use jsonschema::{Registry, Validator};
use reqwest::header::HeaderMap;
use reqwest::{Method, Request};
use serde_json::{Value, json};

use super::harness::{Answer, kind};

/// The same, so strict that an object has no members but those that its schema names.
static STRICT: LazyLock<Value> = LazyLock::new(|| {
    let mut strict = document().clone();
    close(&mut strict["components"]["schemas"]);
    strict
});

/// The document that is served.
pub(crate) fn document() -> &'static Value {
    guardian::api::openapi_document()
}

fn close(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(close),
        Value::Object(members) => {
            members.values_mut().for_each(close);
            if members.get("type").is_some_and(|kind| kind == "object") && members.contains_key("properties") {
                members.entry("additionalProperties").or_insert(false.into());
            }
        }
        _ => {}
    }
}

/// What a reference of the document points at; anything else as it is.
pub(crate) fn resolved(value: &'static Value) -> &'static Value {
    match value["$ref"].as_str() {
        Some(pointer) => document().pointer(&pointer[1..]).unwrap_or_else(|| panic!("{pointer} is not there")),
        None => value,
    }
}

/// The components of both, to which schemas refer.
static REGISTRY: LazyLock<Registry<'static>> = LazyLock::new(|| {
    let components = |of: &'static Value| json!({"components": of["components"]});
    let registry = Registry::new().add(LENIENT_URI, components(document())).unwrap();
    registry.add(STRICT_URI, components(&STRICT)).unwrap().prepare().unwrap()
});

const LENIENT_URI: &str = "urn:document:lenient";
const STRICT_URI: &str = "urn:document:strict";

/// The strict validators of schemas of the document, by the place of the schema in memory: one answer after the other is held
/// against the same ones.
static VALIDATORS: LazyLock<Mutex<HashMap<usize, Arc<Validator>>>> = LazyLock::new(Mutex::default);

fn validator(schema: &Value, uri: &str) -> Validator {
    let mut schema = schema.clone();
    refer_to(uri, &mut schema);
    jsonschema::options().with_registry(&REGISTRY).should_validate_formats(true).build(&schema).unwrap()
}

/// Lets the references of a schema lead into the document at `uri`.
fn refer_to(uri: &str, value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| refer_to(uri, item)),
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::String(target) if name == "$ref" => *target = format!("{uri}{target}"),
                    member => refer_to(uri, member),
                }
            }
        }
        _ => {}
    }
}

/// A schema of the document as it is.
pub(crate) fn lenient(schema: &Value) -> Validator {
    validator(schema, LENIENT_URI)
}

fn strict(schema: &'static Value) -> Arc<Validator> {
    let mut validators = VALIDATORS.lock().unwrap();
    let kept = validators.entry(std::ptr::from_ref(schema) as usize);
    Arc::clone(kept.or_insert_with(|| Arc::new(validator(schema, STRICT_URI))))
}

/// What is wrong with a value, in words.
pub(crate) fn wrongs(validator: &Validator, value: &Value) -> Vec<String> {
    validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

#[track_caller]
fn assert_fits(schema: &'static Value, value: &Value, what: &str) {
    let wrongs = wrongs(&strict(schema), value);
    assert!(wrongs.is_empty(), "{what} is not as the document says: {wrongs:#?}\n{value:#}");
}

/// The operation behind a method and a path.
pub(crate) fn operation(method: &Method, path: &str) -> Option<&'static Value> {
    let method = if method == Method::HEAD { "get" } else { &method.as_str().to_ascii_lowercase() };
    let here: Vec<&str> = path.split('/').collect();
    let matches = |template: &&String| {
        let there: Vec<&str> = template.split('/').collect();
        there.len() == here.len()
            && there.iter().zip(&here).all(|(there, here)| there.starts_with('{') || there == here)
    };
    let paths = document()["paths"].as_object().unwrap();
    let template = paths.keys().find(matches)?;
    paths[template].get(method)
}

/// What was asked of a service.
pub(crate) struct Asked {
    method: Method,
    path: String,
    query: Vec<String>,
    document: Option<Value>,
}

impl Asked {
    /// A request to the service at `base`.
    pub(crate) fn of(request: &Request, base: &str) -> Self {
        let url = request.url().as_str().strip_prefix(base).unwrap_or_default();
        let path = url.split(['?', '#']).next().unwrap_or_default();
        let body = request.body().and_then(reqwest::Body::as_bytes);
        Self {
            method: request.method().clone(),
            path: path.to_owned(),
            query: request.url().query_pairs().map(|(name, _)| name.into_owned()).collect(),
            document: body.and_then(|body| serde_json::from_slice(body).ok()),
        }
    }

    /// Holds the answer against the document, and the request too when it was successful.
    #[track_caller]
    pub(crate) fn judge(&self, answer: &Answer) {
        let what = format!("{} {} -> {}", self.method, self.path, answer.status);
        let Some(operation) = operation(&self.method, &self.path) else {
            assert!(answer.status >= 300 || !self.path.starts_with("/v1/"), "{what}: no such operation is documented");
            return;
        };
        // asked outside of the prefix, where a gateway passes one on
        if answer.status == 404 && answer.json()["detail"] == "the path does not exist" {
            return;
        }
        let is_problem = answer.status >= 400;
        let status = if is_problem { "default".to_owned() } else { answer.status.to_string() };
        let response = &operation["responses"][status];
        assert!(response.is_object(), "{what} is not documented: {}", String::from_utf8_lossy(&answer.body));
        if is_problem {
            let needed = [(401, "www-authenticate"), (429, "retry-after"), (503, "retry-after")];
            for (_, header) in needed.iter().filter(|(status, _)| *status == answer.status) {
                assert!(answer.headers.contains_key(*header), "{what}: the header {header} is not sent");
            }
        }
        headers_are_sent(response, &answer.headers, &what);
        if self.method != Method::HEAD {
            self.judge_body(response, answer, &what);
        }
        if answer.status < 300 {
            let declared = operation["parameters"].as_array().into_iter().flatten();
            let declared: Vec<&str> = declared.map(|parameter| parameter["name"].as_str().unwrap()).collect();
            for name in &self.query {
                assert!(declared.contains(&name.as_str()), "{what}: the parameter {name} is not documented");
            }
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
            if let (Some(sent), true) = (&self.document, schema.is_object()) {
                assert_fits(schema, sent, &format!("what was sent: {what}"));
            }
        }
    }

    #[track_caller]
    fn judge_body(&self, response: &'static Value, answer: &Answer, what: &str) {
        let media_type = answer.header("content-type").split(';').next().unwrap_or_default();
        let Some(content) = response["content"].as_object() else {
            assert!(answer.body.is_empty(), "{what}: no body is documented");
            return;
        };
        let described = content.get(media_type).unwrap_or_else(|| panic!("{what}: {media_type} is not documented"));
        match media_type {
            "application/json" => {
                let document = answer.json();
                assert_fits(&described["schema"], &document, what);
                let of_jobs = json_pointer("/components/schemas/Job/properties/problem/x-problem-types");
                if document["specification"].is_object() && document["problem"].is_object() {
                    assert!(holds(&of_jobs, kind(&document["problem"])), "{what}: {document:#}");
                }
            }
            "application/problem+json" => {
                let document = answer.json();
                assert_fits(&described["schema"], &document, what);
                let name = kind(&document);
                assert!(holds(&response["x-problem-types"], name), "{what}: {name} is not documented: {document:#}");
                let known = Kind::ALL.iter().find(|known| known.name() == name).map(|known| known.status());
                assert_eq!(known, Some(answer.status), "{what}: {name}");
                let of_faults = json_pointer("/components/schemas/Fault/properties/type/x-problem-types");
                for fault in document["errors"].as_array().into_iter().flatten() {
                    assert!(holds(&of_faults, kind(fault)), "{what}: the fault {} is not documented", kind(fault));
                }
            }
            "text/event-stream" => {
                let text = answer.text();
                for data in text.lines().filter_map(|line| line.strip_prefix("data:")) {
                    assert_fits(&described["x-event-data"], &serde_json::from_str(data).unwrap(), what);
                }
            }
            _ => {}
        }
    }
}

/// A place of the document.
pub(crate) fn json_pointer(pointer: &str) -> Value {
    document().pointer(pointer).cloned().unwrap_or_else(|| panic!("{pointer} is not in the document"))
}

fn holds(list: &Value, name: &str) -> bool {
    list.as_array().is_some_and(|names| names.iter().any(|other| other == name))
}

#[track_caller]
fn headers_are_sent(response: &'static Value, sent: &HeaderMap, what: &str) {
    for (name, header) in response["headers"].as_object().into_iter().flatten() {
        let header = resolved(header);
        match sent.get(name) {
            Some(value) => {
                let value = value.to_str().unwrap();
                let typed = value.parse::<u64>().map_or_else(|_| json!(value), |number| json!(number));
                let typed = if header["schema"]["type"] == "integer" { typed } else { json!(value) };
                assert_fits(&header["schema"], &typed, &format!("{what}: the header {name}"));
            }
            None => assert!(header["required"] != true, "{what}: the header {name} is not sent"),
        }
    }
}
