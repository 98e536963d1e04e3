//! What handlers cannot say of themselves is added to the document: schemas of documents that are read by hand, names of
//! operations, every problem by its status, response headers and examples. A test holds that nothing is missing.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::hoist::parsed;
use super::problem_lists::{AUTH_PROBLEMS, BODY_PROBLEMS, COMMON_PROBLEMS, FAULT_KINDS, JOB_PROBLEMS};
use super::{examples, hoist};
use crate::api::routes::part_query::{FORMATS, Format};
use crate::api::routes::table::{Example, ROUTES, Route, RouteAnswer};
use crate::problem::{Fault, Kind, Problem};

/// Laid over the schemas that are derived from types, as a JSON merge patch (RFC 7386).
const SCHEMAS: &str = include_str!("schemas.json");

/// Laid over parameters: by name, and by operation and name.
const PARAMETERS: &str = include_str!("parameters.json");

/// The path of a part in any format.
const PART_PATH: &str = "/v1/releases/{id}/tables/{table}/parts/{part}";

/// Bodies that are bytes, not text.
const BINARY_MEDIA_TYPES: [&str; 3] =
    ["application/vnd.apache.parquet", "application/vnd.apache.arrow.stream", "application/zip"];

/// The document with everything that was not derived.
pub(super) fn complete(mut document: Value) -> Value {
    hoist::name_variants(&mut document);
    hoist::flatten_members(&mut document);
    hoist::describe_nullable_members(&mut document);
    document = hoist::rename(&document, |name| match name.strip_prefix("ListPage_") {
        Some(item) => format!("{item}List"),
        None if name == "ManifestEnforcedBy" => "EnforcedBy".to_owned(),
        None => hoist::variant_of(name, "ManifestEnforcedBy", "EnforcedBy"),
    });
    let components = &mut document["components"];
    for (name, schema) in components["schemas"].as_object_mut().into_iter().flatten() {
        require_written(schema);
        if let Some(item) = name.strip_suffix("List") {
            schema["properties"]["items"]["items"] = reference("schemas", item);
        }
    }
    components["schemas"].as_object_mut().into_iter().for_each(|schemas| schemas.extend(crate::spec::schemas()));
    merge(&mut components["schemas"], &parsed(SCHEMAS));
    components["schemas"]["Fault"]["properties"]["type"]["x-problem-types"] = names(FAULT_KINDS).into();
    components["schemas"]["Job"]["properties"]["problem"]["x-problem-types"] = names(JOB_PROBLEMS).into();
    components["schemas"]["Job"]["properties"]["problem"]["description"] =
        format!("Why it was refused or failed: {}.", quoted(&names(JOB_PROBLEMS))).into();
    components["schemas"]["Fault"]["properties"]["type"]["description"] =
        format!("What kind of fault it is: {}.", quoted(&names(FAULT_KINDS))).into();
    components["headers"] = headers();
    components["examples"] = Kind::ALL.iter().map(|kind| (kind.name().to_owned(), problem_example(*kind))).collect();
    let parameters = parsed(PARAMETERS);
    for operation in ROUTES {
        let described = &mut document["paths"][operation.path][operation.method.to_lowercase()];
        if described.is_object() {
            complete_operation(operation, described, &parameters);
        }
    }
    add_formats_of_parts(&mut document);
    document
}

/// One path for each format of a part that is streamed, as generated clients read one media type of an answer.
fn add_formats_of_parts(document: &mut Value) {
    let generic = document["paths"][PART_PATH]["get"].clone();
    for (format, media_type, _) in FORMATS.iter().filter(|(_, _, format)| matches!(format, Format::Streamed(_))) {
        let mut operation = generic.clone();
        operation["operationId"] = format!("download_part_{format}").into();
        operation["summary"] = format!("Downloads a part as {format}").into();
        operation["description"] = "As `download_part` with this format.".into();
        let is_left_out =
            |parameter: &Value| ["format", "limit", "cursor"].iter().any(|name| parameter["name"] == *name);
        if let Some(parameters) = operation["parameters"].as_array_mut() {
            parameters.retain(|parameter| !is_left_out(parameter));
        }
        for status in ["200", "206"] {
            let content = &mut operation["responses"][status]["content"];
            *content = json!({ *media_type: content[*media_type] });
        }
        document["paths"][format!("{PART_PATH}.{format}")] = json!({ "get": operation });
    }
}

/// Operations whose body may be left out.
const OPTIONAL_BODIES: [&str; 1] = ["suggest_specification"];

fn complete_operation(operation: &Route, described: &mut Value, parameters: &Value) {
    described["operationId"] = operation.id.into();
    for parameter in described.get_mut("parameters").and_then(Value::as_array_mut).into_iter().flatten() {
        complete_parameter(operation, parameter, parameters);
    }
    if !operation.requests.is_empty() {
        described["requestBody"]["required"] = (!OPTIONAL_BODIES.contains(&operation.id)).into();
        bodies(&mut described["requestBody"]["content"], operation.requests, true);
    }
    let security = described["security"].clone();
    let responses = &mut described["responses"];
    if let Some(described) = responses.as_object_mut() {
        // problems are described by their statuses below
        described.retain(|status, _| status.starts_with(['2', '3']));
    }
    for answer in operation.answers {
        complete_answer(operation, answer, &mut responses[answer.0]);
    }
    let mut kinds: Vec<Kind> = Vec::new();
    let with_keys = if security.is_array() { AUTH_PROBLEMS } else { &[] };
    let with_body = if operation.requests.is_empty() { &[] } else { BODY_PROBLEMS };
    for kind in COMMON_PROBLEMS.iter().chain(with_keys).chain(with_body).chain(operation.problems) {
        if !kinds.contains(kind) {
            kinds.push(*kind);
        }
    }
    kinds.sort_by_key(|kind| kind.status());
    responses["default"] = problem_response(&kinds, &security);
    if !security.is_array() {
        described["security"] = json!([]);
    }
}

fn complete_parameter(operation: &Route, parameter: &mut Value, parameters: &Value) {
    let name = parameter["name"].as_str().unwrap_or_default().to_owned();
    let here = format!("{} {} {name}", operation.method, operation.path);
    for overlay in [&parameters[name.as_str()], &parameters[here.as_str()]] {
        if overlay.is_object() {
            merge(parameter, overlay);
        }
    }
    if name == "id" {
        parameter["description"] = id_of(operation.path).into();
    }
    show_by_word(parameter);
}

/// Takes the example of a parameter into its description, unless every request needs it: a page that fills in forms from
/// the document would send it. An id is of another service.
fn show_by_word(parameter: &mut Value) {
    let Some(members) = parameter.as_object_mut() else { return };
    let is_id = members.get("name").is_some_and(|name| name == "id");
    if members.get("required").is_some_and(|required| *required == true) && !is_id {
        return;
    }
    let Some(example) = members.remove("example").filter(|_| !is_id) else { return };
    let example = example.as_str().map_or_else(|| example.to_string(), str::to_owned);
    let described = members.get("description").and_then(Value::as_str).unwrap_or_default();
    let described = format!("{described} Example: `{example}`.");
    members.insert("description".to_owned(), described.into());
}

fn complete_answer(operation: &Route, answer: &RouteAnswer, response: &mut Value) {
    let (status, description, examples) = *answer;
    response["description"] = description.into();
    bodies(&mut response["content"], examples, false);
    if response["content"].is_null() {
        response.as_object_mut().map(|response| response.remove("content"));
    }
    if let Some(headers) = response.get_mut("headers").and_then(Value::as_object_mut) {
        headers.iter_mut().for_each(|(name, header)| *header = reference("headers", name));
    }
    match status {
        "304" => response["headers"]["ETag"] = reference("headers", "ETag"),
        "200" | "206" if operation.id.starts_with("download_") => {
            response["headers"]["Content-Disposition"] = reference("headers", "Content-Disposition");
        }
        _ => {}
    }
    response["headers"]["X-Request-Id"] = reference("headers", "X-Request-Id");
}

/// What the id in a path names.
fn id_of(path: &str) -> &'static str {
    match path {
        _ if path.starts_with("/v1/datasets") => "The id of the dataset.",
        _ if path.starts_with("/v1/jobs") => "The id of the job.",
        _ => "The id of the release.",
    }
}

fn bodies(content: &mut Value, examples: &[Example], sent: bool) {
    if let Some(content) = content.as_object_mut() {
        for (media_type, body) in content.iter_mut() {
            // what is sent may also be compressed, whatever it is
            let packed = sent && !matches!(media_type.as_str(), "application/json" | "multipart/form-data");
            if packed || BINARY_MEDIA_TYPES.contains(&media_type.as_str()) {
                body["schema"] = json!({"type": "string", "format": "binary"});
            }
        }
    }
    for (media_type, file) in examples {
        let body = &mut content[*media_type];
        let name = file.split('.').next().unwrap_or_default();
        body["examples"][name] = json!({"summary": examples::summary(file), "value": examples::value(file)});
        if *media_type == "text/event-stream" {
            body["schema"] = json!({"type": "string"});
            body["x-event-data"] = reference("schemas", "Job");
        }
    }
}

/// What every operation answers in place of what was asked for.
fn problem_response(kinds: &[Kind], security: &Value) -> Value {
    let mut by_status: BTreeMap<u16, Vec<&str>> = BTreeMap::new();
    for kind in kinds {
        by_status.entry(kind.status()).or_default().push(kind.name());
    }
    let listed: Vec<String> = by_status.iter().map(|(status, names)| format!("{status} {}", quoted(names))).collect();
    let mut description = format!("A problem, and nothing was done: {}.", listed.join("; "));
    let scopes: Vec<&str> =
        security.as_array().into_iter().flatten().filter_map(|needs| needs["key"][0].as_str()).collect();
    let mut headers = json!({
        "X-Request-Id": reference("headers", "X-Request-Id"),
        "Retry-After": reference("headers", "Retry-After"),
    });
    if !scopes.is_empty() {
        description.push_str(&format!(" The key needs the scope {}.", either(&scopes)));
        headers["WWW-Authenticate"] = reference("headers", "WWW-Authenticate");
    }
    if kinds.contains(&Kind::InvalidSpecification) {
        description.push_str(&format!(
            " Each fault of an `invalid-specification` stands in `errors`, with its pointer: {}.",
            quoted(&self::names(FAULT_KINDS))
        ));
    }
    let names = names(kinds);
    let examples: Map<String, Value> =
        names.iter().map(|name| ((*name).to_owned(), reference("examples", name))).collect();
    json!({
        "description": description,
        "headers": headers,
        "content": {"application/problem+json": {"schema": reference("schemas", "Problem"), "examples": examples}},
        "x-problem-types": names,
    })
}

fn names(kinds: &[Kind]) -> Vec<&'static str> {
    kinds.iter().map(|kind| kind.name()).collect()
}

fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn either(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" or ")
}

fn problem_example(kind: Kind) -> Value {
    let mut problem = Problem::new(kind, kind.remedy());
    match kind {
        Kind::InvalidSpecification => {
            problem = Problem::of_faults(vec![
                Fault::new("/method/rules/1", Kind::RuleIneligible, "at most 2-diversity is possible")
                    .with("requested", "4")
                    .with("largest_l", 2),
                Fault::new("/priority", Kind::ParameterRange, "expected an integer from -100 to 100")
                    .with("allowed", "an integer from -100 to 100"),
            ]);
        }
        Kind::UploadMalformed => {
            problem.detail = "record 7 has 5 fields, the header has 6".to_owned();
            problem = problem.with("row", 7).with("column", Value::Null).with("byte", 412);
        }
        Kind::TooLarge => problem = problem.with("limit", 16_777_216),
        Kind::Forbidden => problem = problem.with("scope", "jobs"),
        _ => {}
    }
    let document = problem.to_json("urn:uuid:018f0000-0000-7000-8000-0000000000ff");
    json!({"summary": kind.title(), "value": document})
}

fn headers() -> Value {
    let header = |description: &str, required: bool, schema: Value, example: Value| json!({"description": description, "required": required, "schema": schema, "example": example});
    let text = || json!({"type": "string"});
    let seconds = || json!({"type": "integer", "minimum": 0});
    json!({
        "X-Request-Id": header(
            "Names this request in the log; the one that was sent, or a new one.", true, text(),
            "018f0000-0000-7000-8000-0000000000fe".into()),
        "Location": header(
            "Where the resource is.", true, json!({"type": "string", "format": "uri-reference"}),
            "/v1/jobs/018f0000-0000-7000-8000-000000000002".into()),
        "ETag": header(
            "Names these bytes: send it as `If-None-Match` to be told that nothing changed.", true, text(),
            "\"5f70bf18a08660aa-csv\"".into()),
        "Content-Disposition": header(
            "A name for the file; not of a page of JSON.", false, text(),
            "attachment; filename=\"t1.qi.csv\"".into()),
        "Accept-Ranges": header(
            "Whether ranges are answered: `none` if the content is too large for them; not of a page of JSON.", false,
            json!({"type": "string", "enum": ["bytes", "none"]}), "bytes".into()),
        "Content-Range": header(
            "The range and the length of the whole; of 416 the length alone.", true, text(), "bytes 0-99/1234".into()),
        "Guardian-Linkage": header(
            "`synthetic` where rows of different parts were put side by side at random; only of `view=linked`.", false,
            json!({"type": "string", "enum": ["synthetic"]}), "synthetic".into()),
        "Retry-After": header(
            "After how many seconds it is worth to try again: of 429 and 503, and of 409 while the first request with the same key \
             still runs.",
            false, seconds(), 5.into()),
        "WWW-Authenticate": header(
            "How to send a key, of 401; the scope that the key has not, of 403.", false, text(),
            "Bearer realm=\"guardian\", error=\"insufficient_scope\", scope=\"jobs\"".into()),
    })
}

fn reference(kind: &str, name: &str) -> Value {
    json!({"$ref": format!("#/components/{kind}/{name}")})
}

/// Requires every member that an answer always writes: those that utoipa requires, and those that are written as null. A member that
/// is left out where it has no value is `nullable = false`.
fn require_written(schema: &mut Value) {
    let Some(properties) = schema["properties"].as_object() else { return };
    if schema["additionalProperties"] == false {
        // a document of a request, from which members that can be null may be absent
        return;
    }
    let required = schema["required"].as_array();
    let is_required = |name: &str| required.into_iter().flatten().any(|required| required == name);
    let written = properties.iter().filter(|(name, member)| is_required(name) || hoist::is_nullable(member));
    schema["required"] = written.map(|(name, _)| name.as_str()).collect();
}

/// RFC 7386.
pub(super) fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(members) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    for (name, value) in members {
        if value.is_null() {
            target.as_object_mut().map(|target| target.remove(name));
        } else {
            merge(&mut target[name.as_str()], value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_document_are_json() {
        for text in [SCHEMAS, PARAMETERS] {
            assert!(parsed(text).as_object().is_some_and(|members| !members.is_empty()));
        }
    }

    #[test]
    fn a_patch_replaces_adds_and_removes() {
        let mut target = json!({"a": 1, "b": {"c": 2, "d": 3}, "e": [1]});
        merge(&mut target, &json!({"a": null, "b": {"c": 4}, "e": [2], "f": {"g": null, "h": 5}}));
        assert_eq!(target, json!({"b": {"c": 4, "d": 3}, "e": [2], "f": {"h": 5}}));
    }
}
