//! The OpenAPI document: nothing is missing in it, its examples are real, and its schemas take what the service takes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use guardian::identity::Scope;
use guardian::problem::Kind;
use guardian::vault::Secret;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::harness::{HOSPITAL, Server, hospital_method, part_path, text, versatile};
use crate::support::openapi_judge::{document, json_pointer, lenient, resolved, wrongs};

const METHODS: [&str; 5] = ["get", "put", "post", "delete", "patch"];

/// Path, method, operation.
fn operations() -> impl Iterator<Item = (&'static str, &'static str, &'static Value)> {
    let paths = document()["paths"].as_object().unwrap();
    paths.iter().flat_map(|(path, item)| {
        let methods = item.as_object().unwrap().iter();
        methods.map(|(method, operation)| (path.as_str(), method.as_str(), operation))
    })
}

fn members(value: &'static Value) -> impl Iterator<Item = (&'static str, &'static Value)> {
    value.as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), value))
}

fn said(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.trim().is_empty())
}

/// The examples of a body or header, each of which its schema takes.
fn examples(body: &'static Value, at: &str) -> Vec<&'static str> {
    let schema = lenient(&body["schema"]);
    let named: Vec<_> = members(&body["examples"]).collect();
    for (name, example) in &named {
        let example = resolved(example);
        assert!(said(&example["summary"]), "{at}: the example {name} says nothing of itself");
        let wrongs = wrongs(&schema, &example["value"]);
        assert!(wrongs.is_empty(), "{at}: the example {name} does not fit: {wrongs:#?}");
    }
    named.into_iter().map(|(name, _)| name).collect()
}

#[test]
fn every_operation_is_complete() {
    let mut ids = BTreeSet::new();
    let tags: Vec<&str> =
        document()["tags"].as_array().unwrap().iter().filter_map(|tag| tag["name"].as_str()).collect();
    for (path, method, operation) in operations() {
        let at = format!("{method} {path}");
        assert!(METHODS.contains(&method), "{at}");
        assert!(said(&operation["summary"]) && said(&operation["description"]), "{at} says nothing of itself");
        let id = operation["operationId"].as_str().unwrap();
        assert!(ids.insert(id), "{at}: {id} is taken");
        assert!(id.contains('_') && id.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{at}: {id}");
        let of = operation["tags"].as_array().unwrap();
        assert!(!of.is_empty() && of.iter().all(|tag| tags.contains(&tag.as_str().unwrap())), "{at}: {of:?}");

        for part in path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')) {
            let declared = operation["parameters"].as_array().into_iter().flatten();
            let found =
                declared.filter(|it| it["in"] == "path" && it["name"] == part && it["required"] == true).count();
            assert_eq!(found, 1, "{at}: {part}");
        }
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let at = format!("{at}: the parameter {}", parameter["name"]);
            assert!(said(&parameter["description"]), "{at} says nothing of itself");
            // a page would send the examples of parameters that a request can do without, and ids of another service
            let is_filled_in = parameter["required"] == true && parameter["name"] != "id";
            assert_eq!(parameter["example"].is_null(), !is_filled_in, "{at}");
            let is_shown = parameter["description"].as_str().unwrap().contains(" Example: `");
            assert_eq!(is_shown, parameter["required"] != true, "{at} shows no example");
            let wrongs = wrongs(&lenient(&parameter["schema"]), &parameter["example"]);
            assert!(wrongs.is_empty() || !is_filled_in, "{at}: {wrongs:?}");
        }
        if ["post", "put", "patch"].contains(&method) {
            // what people know of columns may be nothing
            let is_optional = operation["operationId"] == "suggest_specification";
            assert_eq!(operation["requestBody"]["required"], !is_optional, "{at}");
            assert!(members(&operation["requestBody"]["content"]).count() > 0, "{at}");
        }
        for (media_type, body) in members(&operation["requestBody"]["content"]) {
            assert!(!examples(body, &format!("{at}: {media_type}")).is_empty(), "{at}: no {media_type} is shown");
        }
        let keyed = operation["security"].as_array().into_iter().flatten();
        let scopes: Vec<&str> = keyed.filter_map(|needs| needs["key"][0].as_str()).collect();
        assert_eq!(scopes.is_empty(), !path.starts_with("/v1/"), "{at} needs a scope, or none");
        assert!(scopes.iter().all(|scope| scope.parse::<Scope>().is_ok()), "{at}: {scopes:?}");
        responses_are_complete(operation, &at, &scopes);
    }
    assert_eq!(document()["components"]["securitySchemes"]["key"]["scheme"], "bearer");
}

fn responses_are_complete(operation: &'static Value, at: &str, scopes: &[&str]) {
    let mut good = 0;
    for (status, response) in members(&operation["responses"]) {
        let at = format!("{at} -> {status}");
        assert!(said(&response["description"]), "{at} says nothing of itself");
        let headers: BTreeMap<&str, &Value> = members(&response["headers"]).collect();
        assert!(headers.contains_key("X-Request-Id"), "{at}");
        for (name, header) in headers.iter().map(|(name, header)| (name, resolved(header))) {
            assert!(said(&header["description"]) && header["schema"].is_object(), "{at}: {name}");
            assert!(wrongs(&lenient(&header["schema"]), &header["example"]).is_empty(), "{at}: {name}");
        }
        if status == "default" {
            problems_are_complete(operation, response, &at, scopes);
            continue;
        }
        let status: u16 = status.parse().unwrap_or_else(|_| panic!("{at} is no status"));
        assert!(status < 400, "{at}: problems have one response");
        good += usize::from(status < 300);
        let located = [201, 202].contains(&status) || at == "post /v1/jobs -> 200" || at.starts_with("put");
        assert_eq!(headers.contains_key("Location"), located, "{at}");
        assert_eq!(status == 304, response["content"].is_null(), "{at}");
        for (media_type, body) in members(&response["content"]) {
            assert!(!examples(body, &format!("{at}: {media_type}")).is_empty(), "{at}: no {media_type} is shown");
        }
    }
    assert!(good > 0, "{at} has no good answer");
    assert!(operation["responses"]["default"].is_object(), "{at} has no problems");
}

fn problems_are_complete(operation: &Value, response: &'static Value, at: &str, scopes: &[&str]) {
    let description = response["description"].as_str().unwrap();
    assert_eq!(response["headers"]["WWW-Authenticate"].is_object(), !scopes.is_empty(), "{at}");
    assert!(response["headers"]["Retry-After"].is_object(), "{at}");
    let content: Vec<_> = members(&response["content"]).collect();
    let [("application/problem+json", body)] = content[..] else { panic!("{at}: {content:?}") };
    assert_eq!(body["schema"]["$ref"], "#/components/schemas/Problem", "{at}");
    let names: Vec<&str> =
        response["x-problem-types"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    let mut statuses = BTreeSet::new();
    for name in &names {
        let kind = Kind::ALL.iter().find(|kind| kind.name() == *name);
        let kind = kind.unwrap_or_else(|| panic!("{at}: {name} is not in the catalogue"));
        statuses.insert(kind.status());
        assert!(description.contains(&format!("`{name}`")), "{at} does not name {name}");
        assert!(description.contains(&kind.status().to_string()), "{at} does not name the status of {name}");
        let example = resolved(&body["examples"][name]);
        assert_eq!(example["value"]["type"], kind.uri(), "{at}");
        assert_eq!(example["value"]["status"], kind.status(), "{at}");
    }
    let shown: BTreeSet<&str> = examples(body, at).into_iter().collect();
    assert_eq!(shown, names.into_iter().collect(), "{at}");
    assert!(scopes.iter().all(|scope| description.contains(scope)), "{at} does not name the scope");
    assert!([403, 500].iter().all(|status| statuses.contains(status)), "{at}");
    assert_eq!(scopes.is_empty(), operation["security"] == json!([]), "{at}");
    assert!(scopes.is_empty() || [401, 429, 503].iter().all(|status| statuses.contains(status)), "{at}");
}

/// Answered where there is no operation; the introduction names it.
const OF_NO_OPERATION: [Kind; 1] = [Kind::MethodNotAllowed];

/// What ends jobs and answers no request.
const OF_JOBS_ALONE: [Kind; 7] = [
    Kind::Deadline,
    Kind::AttemptsExhausted,
    Kind::CompositionViolated,
    Kind::PriorReleaseViolates,
    Kind::RepublishValueChanged,
    // of earlier versions
    Kind::SeriesUndeclared,
    Kind::OverlappingRowSets,
];

#[test]
fn every_kind_of_problem_is_documented() {
    let names = |list: &Value| -> Vec<String> { list.as_array().into_iter().flatten().map(text).collect() };
    let mut answered: BTreeSet<String> = BTreeSet::new();
    for (.., operation) in operations() {
        answered.extend(members(&operation["responses"]).flat_map(|(_, response)| names(&response["x-problem-types"])));
    }
    let of_jobs = names(&json_pointer("/components/schemas/Job/properties/problem/x-problem-types"));
    let of_faults = names(&json_pointer("/components/schemas/Fault/properties/type/x-problem-types"));
    for kind in Kind::ALL {
        let name = kind.name().to_owned();
        if OF_NO_OPERATION.contains(kind) {
            assert!(!answered.contains(&name) && text(&document()["info"]["description"]).contains(&name), "{name}");
        } else if OF_JOBS_ALONE.contains(kind) {
            assert!(!answered.contains(&name) && of_jobs.contains(&name), "{name}");
        } else {
            assert!(answered.contains(&name) || of_faults.contains(&name), "nothing is documented to answer {name}");
        }
    }
    let known: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
    for name in answered.iter().chain(&of_jobs).chain(&of_faults) {
        assert!(known.contains(&name.as_str()), "{name} is not in the catalogue");
    }
}

/// Where a form is filled in from the document, the first click does what the page says.
#[test]
fn the_first_click_sends_a_table_of_text() {
    let written = guardian::api::openapi_text().unwrap();
    let at = |needle: &str| written.find(needle).unwrap_or_else(|| panic!("{needle} is not in the document"));
    let upload = &written[at("\"operationId\": \"upload_dataset\"")..];
    let media_types = ["text/csv", "application/vnd.apache.arrow.stream", "application/vnd.apache.parquet"];
    let places: Vec<usize> = media_types.iter().map(|name| upload.find(&format!("\"{name}\"")).unwrap()).collect();
    assert!(places.is_sorted(), "{places:?}");
    let paths = ["/v1/datasets", "/v1/plans", "/v1/jobs", "/v1/releases/{id}", "/v1/policies"];
    assert!(paths.map(|path| at(&format!("\"{path}\": {{"))).is_sorted());
    let tags: Vec<String> = document()["tags"].as_array().unwrap().iter().map(|tag| text(&tag["name"])).collect();
    assert_eq!(tags[..4], ["datasets", "plans", "jobs", "releases"]);
    // the job that is shown first waits for an approval: to try it out publishes nothing
    let job = &written[at("\"operationId\": \"submit_job\"")..];
    let job = &job[job.find("\"requestBody\"").unwrap()..];
    let first = &job[job.find("\"examples\"").unwrap()..];
    assert!(first.find("\"held\": {").unwrap() < 40, "{}", &first[..200]);
    let held = json_pointer("/paths/~1v1~1jobs/post/requestBody/content/application~1json/examples/held/value/hold");
    assert_eq!(held, true);
}

/// Generators that know OpenAPI 3.0 alone get the same operations and schemas, in its words.
#[tokio::test(flavor = "multi_thread")]
async fn the_older_document_has_no_newer_words() {
    fn walk(value: &Value, at: &str, document: &Value) {
        for (place, item) in value.as_array().into_iter().flatten().enumerate() {
            walk(item, &format!("{at}/{place}"), document);
        }
        let Some(members) = value.as_object() else { return };
        let is_schema = at.contains("schema") && !at.ends_with("/properties") && !at.ends_with("/schemas");
        if is_schema {
            assert!(members.get("type").is_none_or(|name| name.is_string() && name != "null"), "{at}");
            for word in ["const", "if", "then", "else", "propertyNames", "prefixItems", "$defs", "contentMediaType"] {
                assert!(!members.contains_key(word), "{at}: {word}");
            }
        }
        if let Some(target) = members.get("$ref").and_then(Value::as_str) {
            assert_eq!(members.len(), 1, "{at}");
            assert!(document.pointer(&target[1..]).is_some(), "{at}: {target}");
        }
        for (name, member) in members {
            if !["example", "examples", "default", "enum", "value", "mapping"].contains(&name.as_str()) {
                walk(member, &format!("{at}/{name}"), document);
            }
        }
    }
    let server = Server::start().await;
    let older = server.get("/openapi-3.0.json").await.json();
    assert_eq!(older["openapi"], "3.0.3");
    walk(&older, "", &older);
    let names = |document: &Value, place: &str| -> Vec<String> {
        document.pointer(place).unwrap().as_object().unwrap().keys().cloned().collect()
    };
    for place in ["/paths", "/components/schemas", "/components/examples"] {
        assert_eq!(names(&older, place), names(document(), place));
    }
    server.stop().await;
}

/// Objects and choices stand in schemas of their own, so that generated clients have names for them.
#[test]
fn every_schema_has_a_name() {
    fn walk(schema: &Value, at: &str) {
        for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
            unnamed(inner, &format!("{at}.{name}"));
        }
        for choice in ["oneOf", "anyOf", "allOf"].iter().flat_map(|name| schema[name].as_array().into_iter().flatten())
        {
            unnamed(choice, &format!("{at}|"));
        }
        for inner in [&schema["items"], &schema["additionalProperties"]] {
            unnamed(inner, &format!("{at}[]"));
        }
    }
    fn unnamed(schema: &Value, at: &str) {
        if schema.is_null() {
            return;
        }
        let object = schema["properties"].is_object()
            || schema["type"] == "object" && !schema["additionalProperties"].is_object();
        assert!(!object, "{at} is an object without a name");
        assert!(schema["enum"].is_null(), "{at} is an enumeration without a name");
        walk(schema, at);
    }
    for (name, schema) in members(&document()["components"]["schemas"]) {
        assert!(said(&schema["description"]), "{name} says nothing of itself");
        assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{name}");
        walk(schema, name);
    }
    let all = document().to_string();
    for (name, _) in members(&document()["components"]["schemas"]) {
        assert!(all.contains(&format!("\"#/components/schemas/{name}\"")), "{name} is used nowhere");
    }
}

/// What is documented is routed, and no other method of a path.
#[tokio::test(flavor = "multi_thread")]
async fn the_document_has_the_routes_of_the_service() {
    let server = Server::start().await;
    for (path, item) in members(&document()["paths"]) {
        let path = path.replace("{id}", "018f0000-0000-7000-8000-00000000abcd").replace(['{', '}'], "");
        for method in METHODS {
            let request = server.request(Method::from_bytes(method.to_uppercase().as_bytes()).unwrap(), &path);
            let answer = request.send().await.unwrap();
            let (status, text) = (answer.status().as_u16(), answer.text().await.unwrap());
            assert_eq!(item[method].is_null(), status == 405, "{method} {path}: {status} {text}");
            assert!(!text.contains("the path does not exist"), "{method} {path}");
        }
    }
    server.stop().await;
    // and there is one list of routes, which the document is made from
    let program = super::dependencies::program();
    for (file, source) in program.iter().filter(|(file, _)| file.starts_with("api/")) {
        // the document and its pages, and the address for operators, are not in it
        let is_apart = ["api/openapi/ui.rs", "api/admin.rs"].contains(&file.as_str());
        assert!(is_apart || !source.contains(".route("), "{file} adds routes of its own");
        assert!(!source.contains("routes!(") || file == "api/routes/table.rs", "{file}");
    }
}

/// Ids and times are replaced by others that stay the same: each id by its place in the order of their first occurrence.
#[derive(Default)]
struct Steady(Vec<String>);

impl Steady {
    fn text(&mut self, text: &str) -> String {
        let is_id = |piece: &&str| piece.len() == 36 && uuid::Uuid::try_parse(piece).is_ok();
        let mut out = text.to_owned();
        for at in 0..text.len() {
            if let Some(id) = text.get(at..at + 36).filter(is_id) {
                let number = self.0.iter().position(|seen| seen == id).unwrap_or_else(|| {
                    self.0.push(id.to_owned());
                    self.0.len() - 1
                });
                out = out.replace(id, &format!("018f0000-0000-7000-8000-{:012}", number + 1));
            }
        }
        out
    }

    fn document(&mut self, value: &Value) -> Value {
        match value {
            Value::String(text) if text.len() > 18 && chrono::DateTime::parse_from_rfc3339(text).is_ok() => {
                "2026-03-01T02:00:00Z".into()
            }
            Value::String(text) => self.text(text).into(),
            Value::Array(items) => items.iter().map(|item| self.document(item)).collect(),
            Value::Object(members) => {
                // how far a worker got before it last found time to say so differs from run to run
                let noted = members.get("status").is_some_and(|status| status == "refused");
                let member = |(name, value): (&String, &Value)| match name.as_str() {
                    "progress" if noted => (name.clone(), json!({"phase": "load", "done": 1, "of": 2})),
                    _ => (name.clone(), self.document(value)),
                };
                members.iter().map(member).collect::<serde_json::Map<_, _>>().into()
            }
            other => other.clone(),
        }
    }
}

/// Notes the answers about populations.
async fn note_populations(server: &Server, note: &mut impl FnMut(&'static str, &Value)) {
    for name in ["births", "staff"] {
        server.put(&format!("/v1/populations/{name}"), &json!({})).await.ok(201);
    }
    let example = |text: &str| -> Value { serde_json::from_str(text).unwrap() };
    let document = example(include_str!("../../../openapi/examples/population_document.json"));
    note("population.json", &server.put("/v1/populations/clinic", &document).await.ok(201));
    let statement = example(include_str!("../../../openapi/examples/population_statement.json"));
    let path = "/v1/populations/clinic/statements";
    note("population_statements.json", &server.post(path, &statement).await.ok(201));
    note("population_details.json", &server.get("/v1/populations/clinic").await.ok(200));
    note("populations.json", &server.get("/v1/populations?limit=2").await.ok(200));
}

/// The examples of answers are those of a run. To take over what the service answers now: `GUARDIAN_BLESS=1 cargo test
/// examples_are`, then build again.
#[tokio::test(flavor = "multi_thread")]
async fn examples_equal_the_answers_of_the_service() {
    let mut steady = Steady::default();
    let mut answers: BTreeMap<&str, String> = BTreeMap::new();
    let mut note = |name: &'static str, document: &Value| {
        answers.insert(name, format!("{:#}\n", steady.document(document)));
    };
    let server = Server::start_as(|_| {}, std::sync::Arc::new(|| Ok(Secret::new([7; 32])))).await;
    let policy: Value = serde_json::from_str(include_str!("../../../openapi/examples/policy_document.json")).unwrap();
    let policy = server.send(server.request(Method::PUT, "/v1/policies/hospital").json(&policy)).await.ok(201);
    let dataset = server.upload("name=hospital", HOSPITAL).await.ok(201);
    let id = text(&dataset["id"]);
    note("dataset.json", &dataset);
    note("profile.json", &server.get(&format!("/v1/datasets/{id}/profile")).await.ok(200));
    let request: Value =
        serde_json::from_str(include_str!("../../../openapi/examples/suggestion_request.json")).unwrap();
    note("suggestion.json", &server.post(&format!("/v1/datasets/{id}/suggestion"), &request).await.ok(200));
    note("values.json", &server.get(&format!("/v1/datasets/{id}/attributes/zipcode/values?limit=3")).await.ok(200));
    note("datasets.json", &server.get("/v1/datasets").await.ok(200));
    let job = json!({"dataset": id, "method": hospital_method()});
    note("plan.json", &server.post("/v1/plans", &job).await.ok(200));
    let job = server.post("/v1/jobs?wait=60", &job).await.ok(200);
    note("job.json", &job);
    note("jobs.json", &server.get("/v1/jobs").await.ok(200));
    let manifest = server.get(&text(&job["links"]["release"])).await.ok(200);
    note("manifest.json", &manifest);
    note("releases.json", &server.get("/v1/releases").await.ok(200));
    note("report.json", &server.get(&format!("{}/report", text(&job["links"]["release"]))).await.ok(200));
    note(
        "internal_report.json",
        &server.get(&format!("{}/internal-report", text(&job["links"]["release"]))).await.ok(200),
    );
    let queries: Value = serde_json::from_str(include_str!("../../../openapi/examples/queries.json")).unwrap();
    note("answers.json", &server.post(&format!("{}/queries", text(&job["links"]["release"])), &queries).await.ok(200));
    let ratio: Value =
        serde_json::from_str(include_str!("../../../openapi/examples/differential_inference.json")).unwrap();
    note("inferred.json", &server.post("/v1/analyses/differential-inference", &ratio).await.ok(200));
    note("series.json", &server.get(&format!("/v1/series/{id}")).await.ok(200));
    let statement: Value = serde_json::from_str(include_str!("../../../openapi/examples/statement.json")).unwrap();
    note("entered.json", &server.post(&format!("/v1/series/{id}/disclosures"), &statement).await.ok(201));
    note_populations(&server, &mut note).await;
    let part = part_path(&manifest, "t1", "qi");
    note("part.json", &server.get(&format!("{part}?format=json&limit=3")).await.ok(200));
    let page = server.get(&format!("{}/report?format=html", text(&job["links"]["release"]))).await.text();
    let internal = server.get(&format!("{}/internal-report?format=html", text(&job["links"]["release"]))).await.text();
    let texts = [
        ("internal_report.html", internal),
        ("part.csv", server.get(&part).await.text()),
        ("report.html", page.replace(&text(&manifest["created_at"]), "2026-03-01T02:00:00Z")),
        ("part.ndjson", server.get(&format!("{part}?format=ndjson")).await.text()),
        ("events.txt", server.get(&text(&job["links"]["events"])).await.text()),
    ];

    let released = text(&manifest["id"]);
    let attack: Value = serde_json::from_str(include_str!("../../../openapi/examples/audit.json")).unwrap();
    note("attacked.json", &server.post(&format!("/v1/releases/{released}/attacks"), &attack).await.ok(200));
    let form: Value = serde_json::from_str(include_str!("../../../openapi/examples/verification_form.json")).unwrap();
    let patients = b"age,zip,disease\n37,71000,flu\n37,71000,cold\n41,72000,flu\n41,72000,flu\n".to_vec();
    let verified =
        crate::verification::external_tables::verify(&server, &form["request"], &[("patients.csv", patients)]).await;
    note("verification.json", &verified.ok(200));

    let tree: Value = serde_json::from_str(include_str!("../../../openapi/examples/taxonomy_document.json")).unwrap();
    note("taxonomy.json", &server.put("/v1/taxonomies/job", &tree).await.ok(201));
    note("taxonomies.json", &server.get("/v1/taxonomies").await.ok(200));
    let levels = include_str!("../../../openapi/examples/taxonomy.csv");
    let levels = server.request(Method::PUT, "/v1/taxonomies/job").header("content-type", "text/csv").body(levels);
    server.send(levels).await.ok(200);
    note("taxonomy_deleted.json", &server.delete("/v1/taxonomies/job").await.ok(200));
    note("policy.json", &policy);
    note("policies.json", &server.get("/v1/policies").await.ok(200));
    note("policy_versions.json", &server.get("/v1/policies/hospital/versions").await.ok(200));
    note("audit_log.json", &server.get("/v1/audit-log?action=policy.put").await.ok(200));

    let zips: String = (0..80).map(|row| format!("z{},c{}\n", row % 4, row % 4 / 2)).collect();
    let server = server.anew().await;
    let dependent = server.dataset(format!("zip,county\n{zips}")).await;
    note("job_refused.json", &server.job(&dependent, json!({"method": versatile(&["zip -> county"])})).await.ok(200));
    server.stop().await;
    let server = Server::start_as(|_| {}, std::sync::Arc::new(|| Ok(Secret::new([7; 32])))).await;
    let other = server.dataset(HOSPITAL).await;
    let held = server.job(&other, json!({"hold": true, "method": hospital_method()})).await.ok(200);
    let reason = json!({"reason": "the rules were not those that were agreed on"});
    let path = format!("{}/reject", text(&held["links"]["release"]));
    note("rejected.json", &server.post(&path, &reason).await.ok(200));
    let published = server.job(&other, json!({"method": hospital_method()})).await.ok(200);
    let path = format!("{}/withdraw", text(&published["links"]["release"]));
    note("withdrawn.json", &server.post(&path, &reason).await.ok(200));
    note("history.json", &server.get(&path.replace("withdraw", "history")).await.ok(200));
    note("purged.json", &server.delete(&format!("/v1/datasets/{other}")).await.ok(200));
    server.stop().await;

    let idle = Server::start_with(|config| config.workers = 0).await;
    let waiting = idle.dataset(HOSPITAL).await;
    let waiting = idle.post("/v1/jobs", &json!({"dataset": waiting, "method": hospital_method()})).await.ok(202);
    note("job_queued.json", &waiting);
    idle.stop().await;

    for (name, text) in texts {
        let lines = text.lines().map(|line| match line.strip_prefix("data: ") {
            Some(data) => format!("data: {}", steady.document(&serde_json::from_str(data).unwrap())),
            None => steady.text(line),
        });
        answers.insert(name, lines.map(|line| line + "\n").collect());
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi/examples");
    for (name, answered) in answers {
        if std::env::var_os("GUARDIAN_BLESS").is_some() {
            fs::write(folder.join(name), answered).unwrap();
        } else {
            assert_eq!(fs::read_to_string(folder.join(name)).unwrap(), answered, "{name}");
        }
    }
}
