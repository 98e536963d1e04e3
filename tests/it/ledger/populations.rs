//! Populations: what they are, what is said of their people, and what evidence says against it.

use std::collections::BTreeMap;
use std::path::Path;

use guardian::identity::Preset;
use guardian::people::{Coverage, Evidence, KeyedHash, SystemEvidence};
use guardian::ports::{AnnouncementEnd, NewCoverage, PeopleStore};
use guardian::store::sqlite::SqliteStore;
use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::security::identity::Guarded;
use crate::support::harness::{Client, HOSPITAL, Server, guardian, hospital_method, kind, run, text};

const CLINIC: &str = "/v1/populations/clinic";

fn clinic() -> Value {
    json!({"description": "patients", "person": [{"key_system": "patient", "columns": ["patient"]}]})
}

/// The places of the statements of an answer.
fn places(document: &Value) -> Vec<[String; 2]> {
    let of = |statement: &Value| [text(&statement["of"][0]), text(&statement["of"][1])];
    document["statements"].as_array().unwrap().iter().map(of).collect()
}

fn pair(one: &str, other: &str) -> [String; 2] {
    [one, other].map(|name| if name.contains(':') { name.to_owned() } else { format!("population:{name}") })
}

async fn defined(client: &Client, names: &[&str]) {
    for name in names {
        client.put(&format!("/v1/populations/{name}"), &json!({})).await.ok(201);
    }
}

/// A published table, or one that is about to be.
struct Planted<'a> {
    population: Option<&'a str>,
    dataset: Uuid,
    /// Persons of the key system `patient`.
    persons: &'a [u128],
    table: u128,
    is_pending: bool,
}

impl<'a> Planted<'a> {
    fn live(population: Option<&'a str>, dataset: u128, persons: &'a [u128], table: u128) -> Self {
        Self { population, dataset: Uuid::from_u128(dataset), persons, table, is_pending: false }
    }
}

fn hash(number: u128) -> KeyedHash {
    KeyedHash::from_bytes((number << 64 | number).to_be_bytes())
}

/// Announces coverages in the store of a stopped service, and ends the announcements of those that are live.
async fn plant(data: &Path, planted: &[Planted<'_>]) {
    let store = SqliteStore::open(data).await.unwrap();
    for table in planted {
        let system = SystemEvidence { persons: table.persons.len() as u64, columns: BTreeMap::new() };
        let systems = (!table.persons.is_empty()).then(|| ("patient".to_owned(), system));
        let evidence = Evidence {
            rows: 9,
            systems: systems.into_iter().collect(),
            table: Some(hash(table.table)),
            ..Evidence::default()
        };
        let new = NewCoverage {
            tenant: "default".to_owned(),
            job: table.dataset,
            coverage: Coverage::new(table.dataset, table.population, &evidence),
            published: ["age".to_owned()].into(),
            cuts: Vec::new(),
        };
        let id = store.announce_coverage(&new).await.unwrap();
        let persons: Vec<KeyedHash> = table.persons.iter().copied().map(hash).collect();
        if !persons.is_empty() {
            store.cover_persons("default", id, "patient", &persons).await.unwrap();
        }
        store.draw_ticket("default", id).await.unwrap();
        if !table.is_pending {
            store.end_announcement("default", id, &AnnouncementEnd::Live).await.unwrap();
        }
    }
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_population_is_defined_once_and_stays() {
    let guarded = Guarded::start().await;
    let officer = guarded.preset(Preset::Officer);
    let made = officer.put(CLINIC, &clinic()).await;
    assert_eq!(made.header("location"), CLINIC);
    let key = json!([{"key_system": "patient", "columns": ["patient"], "fold": "standard"}]);
    let expected = json!({"name": "clinic", "description": "patients", "person": key, "max_rows_per_person": 1,
        "republication": null, "statements": [], "next": null});
    assert_eq!(made.ok(201), expected);
    assert_eq!(officer.put(CLINIC, &clinic()).await.ok(200), expected);
    let mut changed = clinic();
    changed["max_rows_per_person"] = 3.into();
    changed["republication"] = Value::Null;
    assert_eq!(officer.put(CLINIC, &changed).await.ok(200)["max_rows_per_person"], 3);
    let shown = officer.get(CLINIC).await.ok(200);
    assert_eq!((&shown["person"], &shown["datasets"], &shown["releases"]), (&key, &json!([]), &json!([])));
    assert_eq!(shown["ledger"], Value::Null);
    let log = guarded.preset(Preset::Operator).items("/v1/audit-log?action=population.put").await;
    assert_eq!(log.len(), 2, "what changes nothing is not logged: {log:?}");
    assert!(log.iter().all(|entry| entry["object"] == "clinic" && entry["key"].is_string()));

    let names = ["a b/c?d", "ärzte", "dataset", "x:y"];
    for name in names {
        let path = format!("/v1/populations/{}", guardian::spec::path_segment(name));
        let made = officer.put(&path, &json!({})).await;
        assert_eq!((made.header("location"), made.ok(201)["name"].as_str()), (path.as_str(), Some(name)));
        assert_eq!(officer.get(&path).await.ok(200)["name"], name);
    }
    let mut listed = Vec::new();
    let mut page = officer.get("/v1/populations?limit=2").await.ok(200);
    loop {
        listed.extend(page["items"].as_array().unwrap().iter().map(|item| text(&item["name"])));
        let Some(cursor) = page["next"].as_str() else { break };
        page = officer.get(&format!("/v1/populations?limit=2&cursor={cursor}")).await.ok(200);
    }
    assert_eq!(listed, ["a b/c?d", "clinic", "dataset", "x:y", "ärzte"]);
    for query in ["limit=0", "cursor=%2F", "cursor=", "surprise=1", "cursor=AP8"] {
        officer.get(&format!("/v1/populations?{query}")).await.problem(400, "malformed-request");
    }
    let guarded = guarded.restarted(async |_| {}).await;
    let again = guarded.preset(Preset::Officer).get(CLINIC).await.ok(200);
    assert_eq!(again, shown);
    guarded.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_fault_of_a_population_is_named_at_once() {
    let server = Server::start().await;
    let key = |name: &str, columns: Value| json!({"key_system": name, "columns": columns});
    let faulty = json!({"description": 7, "max_rows_per_person": 0, "surprise": 1, "disjoint_from": [],
        "person": [key("a,b", json!(["x"])), key("k", json!(["x", "x"])), key("k\0", json!([])), 7]});
    let problem = server.put(CLINIC, &faulty).await.problem(422, "invalid-specification");
    let pointers: Vec<_> = problem["errors"].as_array().unwrap().iter().map(|fault| text(&fault["pointer"])).collect();
    assert_eq!(
        pointers,
        [
            "/description",
            "/disjoint_from",
            "/max_rows_per_person",
            "/person/0/key_system",
            "/person/1/columns",
            "/person/2/columns",
            "/person/2/key_system",
            "/person/3",
            "/reason",
            "/surprise"
        ]
    );
    let many: Vec<Value> = (0..17).map(|number| key(&format!("k{number}"), json!(["x"]))).collect();
    let wide: Vec<String> = (0..17).map(|number| format!("c{number}")).collect();
    let places: Vec<String> = (0..1001).map(|number| format!("p{number}")).collect();
    for (document, pointer) in [
        (json!({"person": many}), "/person"),
        (json!({"person": [key("k", json!(wide))]}), "/person/0/columns"),
        (json!({"person": [key("k", json!(["a\0"]))]}), "/person/0/columns/0"),
        (json!({"person": [key("none", json!(["a"]))]}), "/person/0/key_system"),
        (json!({"description": "x".repeat(501)}), "/description"),
        (json!({"description": "a\0b"}), "/description"),
        (json!({"max_rows_per_person": 1_000_001}), "/max_rows_per_person"),
        (json!({"disjoint_from": places, "reason": "x"}), "/disjoint_from"),
        (json!({"disjoint_from": ["dataset:7"], "reason": "x"}), "/disjoint_from/0"),
        (json!({"disjoint_from": "none", "reason": "x"}), "/disjoint_from"),
        (json!({"disjoint_from": "all", "reason": "x".repeat(501)}), "/reason"),
        (json!({"disjoint_from": "all", "reason": " "}), "/reason"),
        (json!({"disjoint_from": "all"}), "/reason"),
        (json!({"reason": "x"}), "/reason"),
    ] {
        server.put(CLINIC, &document).await.fault(pointer, "parameter-range");
    }
    server
        .put(CLINIC, &json!({"republication": {"every": "P1D"}}))
        .await
        .fault("/republication/every", "unknown-field");
    let keyless = json!({"republication": {}});
    server.put(CLINIC, &keyless).await.fault("/republication", "republish-needs-record-key");
    let long = format!("/v1/populations/{}", "x".repeat(501));
    for path in [
        "/v1/populations/all",
        "/v1/populations/dataset:x",
        "/v1/populations/population:x",
        "/v1/populations/%00",
        "/v1/populations/%20x",
        long.as_str(),
    ] {
        server.put(path, &json!({})).await.problem(400, "malformed-request");
        server.get(path).await.problem(404, "not-found");
    }
    server.put(CLINIC, &json!([])).await.problem(400, "malformed-body");
    assert_eq!(server.stored("populations").await + server.stored("key_systems").await, 0);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_system_never_changes() {
    let guarded = Guarded::start().await;
    let officer = guarded.preset(Preset::Officer);
    officer.put(CLINIC, &clinic()).await.ok(201);
    let other =
        |columns: Value, fold: &str| json!({"person": [{"key_system": "patient", "columns": columns, "fold": fold}]});
    for document in [other(json!(["patient"]), "digits"), other(json!(["first", "last"]), "standard")] {
        for path in [CLINIC, "/v1/populations/other"] {
            let problem = officer.put(path, &document).await.problem(409, "conflict");
            assert!(text(&problem["detail"]).contains("another name"), "{problem}");
        }
    }
    officer.get("/v1/populations/other").await.problem(404, "not-found");
    // the columns of uploads are not the key system
    officer.put(CLINIC, &other(json!(["pid"]), "standard")).await.ok(200);
    officer.put("/v1/populations/other", &other(json!(["no"]), "standard")).await.ok(201);

    let guarded = guarded.restarted(async |data| plant(data, &[Planted::live(Some("clinic"), 1, &[1], 1)]).await).await;
    let officer = guarded.preset(Preset::Officer);
    let key = |name: &str| json!({"key_system": name, "columns": [name]});
    for person in [json!([]), json!([key("new"), key("patient")])] {
        let problem = officer.put(CLINIC, &json!({"person": person})).await.problem(409, "conflict");
        assert!(text(&problem["detail"]).contains("earlier key systems first"), "{problem}");
    }
    let wider = officer.put(CLINIC, &json!({"person": [key("patient"), key("new")]})).await.ok(200);
    assert_eq!(wider["person"].as_array().unwrap().len(), 2);
    guarded.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_is_said_to_be_disjoint_once() {
    let guarded = Guarded::start().await;
    let officer = guarded.preset(Preset::Officer);
    defined(&officer, &["births", "staff"]).await;
    let dataset = guarded.preset(Preset::Pipeline).dataset(HOSPITAL).await;
    let table = format!("dataset:{dataset}");
    let mut document = clinic();
    document["disjoint_from"] = json!(["births", table, "population:births"]);
    document["reason"] = "born elsewhere".into();
    let made = officer.put(CLINIC, &document).await.ok(201);
    let expected = [pair("births", "clinic"), pair("clinic", &table)];
    assert_eq!(places(&made), expected);
    for statement in made["statements"].as_array().unwrap() {
        assert_eq!((&statement["kind"], &statement["reason"]), (&json!("disjoint"), &json!("born elsewhere")));
        assert!(chrono::DateTime::parse_from_rfc3339(statement["recorded_at"].as_str().unwrap()).is_ok());
        assert_eq!(Uuid::parse_str(&text(&statement["id"])).unwrap().get_version_num(), 7);
    }
    assert_eq!(officer.put(CLINIC, &document).await.ok(200), made, "again");
    // from the other side and for another reason it stands as it was declared
    let other = json!({"disjoint_from": ["clinic"], "reason": "again"});
    let births = officer.put("/v1/populations/births", &other).await.ok(200);
    assert_eq!(births["statements"], json!([made["statements"][0]]));
    let said = json!({"disjoint_from": "all", "reason": "all others"});
    let answer = officer.post(&format!("{CLINIC}/statements"), &said).await;
    assert_eq!(answer.header("location"), CLINIC);
    assert_eq!(places(&answer.ok(201)), [pair("births", "clinic"), pair("clinic", "staff")]);
    assert_eq!(places(&officer.get(CLINIC).await.ok(200)).len(), 3);
    let shown = officer.get("/v1/populations/staff").await.ok(200);
    assert_eq!(shown["statements"][0]["reason"], "all others");
    let log = guarded.preset(Preset::Operator).items("/v1/audit-log?action=population.state").await;
    assert_eq!(log.len(), 1);

    let guarded = guarded.restarted(async |_| {}).await;
    let officer = guarded.preset(Preset::Officer);
    assert_eq!(places(&officer.get(CLINIC).await.ok(200)).len(), 3);
    // another tenant has none of it
    let foreign = guarded.server.with_token(&guarded.unknown_value);
    assert!(foreign.items("/v1/populations").await.is_empty());
    foreign.get(CLINIC).await.problem(404, "not-found");
    foreign.post(&format!("{CLINIC}/statements"), &said).await.problem(404, "not-found");
    let named = json!({"disjoint_from": ["births", table], "reason": "x"});
    let problem = foreign.put(CLINIC, &named).await.problem(422, "invalid-specification");
    assert_eq!(problem["errors"].as_array().unwrap().len(), 2, "{problem}");
    assert_eq!(
        foreign.put(CLINIC, &json!({"disjoint_from": "all", "reason": "x"})).await.ok(201)["statements"],
        json!([])
    );
    guarded.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_places_are_named_with_the_nearest_ones() {
    let server = Server::start().await;
    defined(&server, &["births", "staff", "students"]).await;
    let own = server.dataset(HOSPITAL).await;
    let never = Uuid::now_v7();
    let document = json!({"disjoint_from": ["birth", "clinic", format!("dataset:{never}"), "staff"],
        "reason": "x"});
    let answer = server.put(CLINIC, &document).await;
    assert_eq!(answer.json()["errors"].as_array().unwrap().len(), 3, "{}", answer.text());
    let unknown = answer.fault("/disjoint_from/0", "unknown-population");
    assert_eq!(unknown["nearest"][0], "births");
    assert!(text(&unknown["detail"]).contains("births"));
    assert!(text(&answer.fault("/disjoint_from/1", "parameter-range")["detail"]).contains("the population itself"));
    assert!(text(&answer.fault("/disjoint_from/2", "parameter-range")["detail"]).contains(&never.to_string()));
    // neither the population nor its statement with staff
    let problem = server.get(CLINIC).await.problem(404, "not-found");
    assert_eq!(problem["detail"], "there is no such population");
    let problem = server.get("/v1/populations/student").await.problem(404, "not-found");
    assert_eq!(problem["detail"], "there is no such population; the nearest are students");
    assert_eq!(server.stored("separations").await, 0);
    server.post("/v1/populations/nowhere/statements", &json!({"reason": "x"})).await.problem(404, "not-found");
    let others = json!({"reason": "x", "others": {"dataset": own, "than": never}});
    server.post("/v1/populations/staff/statements", &others).await.fault("/others/than", "parameter-range");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn contradicted_statements_leave_nothing() {
    let guarded = Guarded::start().await;
    let officer = guarded.preset(Preset::Officer);
    officer.put(CLINIC, &clinic()).await.ok(201);
    officer.put("/v1/populations/births", &clinic()).await.ok(201);
    defined(&officer, &["staff", "register"]).await;
    let planted = [
        Planted::live(Some("clinic"), 1, &[1, 2, 3], 1),
        Planted::live(Some("births"), 2, &[3, 4], 2),
        Planted::live(Some("staff"), 3, &[], 3),
        Planted::live(Some("register"), 4, &[], 1),
        Planted::live(None, 5, &[], 5),
        Planted { is_pending: true, ..Planted::live(Some("register"), 6, &[], 6) },
    ];
    let guarded = guarded.restarted(async |data| plant(data, &planted).await).await;
    let officer = guarded.preset(Preset::Officer);
    let statements = format!("{CLINIC}/statements");
    let said = json!({"disjoint_from": ["staff", "births"], "reason": "x", "new": ["ward"]});
    let problem = officer.post(&statements, &said).await.problem(409, "statement-contradicted");
    assert_eq!(problem["of"], json!([["population:births", "population:clinic"]]));
    assert!(text(&problem["detail"]).contains("population:births and population:clinic"), "{problem}");
    assert!(problem["remedies"].as_array().is_some_and(|remedies| !remedies.is_empty()));
    let shown = officer.get(CLINIC).await.ok(200);
    assert_eq!((&shown["statements"], &shown["ledger"]), (&json!([]), &Value::Null), "all or nothing");
    // the definition goes with its statements
    let mut again = clinic();
    (again["description"], again["disjoint_from"], again["reason"]) = ("new".into(), json!(["births"]), "x".into());
    officer.put(CLINIC, &again).await.problem(409, "statement-contradicted");
    assert_eq!(officer.get(CLINIC).await.ok(200)["description"], "patients");
    // a job of the register has not ended
    let request =
        officer.request(Method::POST, &statements).json(&json!({"disjoint_from": ["register"], "reason": "x"}));
    let answer = request.send().await.unwrap();
    assert_eq!(answer.status(), 503);
    assert!(answer.headers()["retry-after"].to_str().unwrap().parse::<u32>().is_ok());
    let answer: Value = answer.json().await.unwrap();
    assert_eq!(kind(&answer), "unavailable", "{answer}");

    let others = json!({"disjoint_from": ["staff"], "reason": "x", "new": ["ward"]});
    officer.post(&statements, &others).await.ok(201);
    let shown = officer.get(CLINIC).await.ok(200);
    assert_eq!(shown["ledger"]["attributes"][0]["name"], "ward");
    // all that there is, with the published table that has no population
    let made = officer.put("/v1/populations/new", &json!({})).await.ok(201);
    assert_eq!(made["statements"], json!([]));
    let guarded = guarded.restarted(async |data| end_pending(data).await).await;
    let officer = guarded.preset(Preset::Officer);
    let all = json!({"disjoint_from": "all", "reason": "x"});
    let said = officer.post("/v1/populations/new/statements", &all).await.ok(201);
    let undeclared = format!("dataset:{}", Uuid::from_u128(5));
    let mut expected: Vec<_> =
        ["births", "clinic", "register", "staff", &undeclared].map(|name| pair_of("new", name)).into();
    let mut found = places(&said);
    expected.sort();
    found.sort();
    assert_eq!(found, expected);
    guarded.server.stop().await;
}

/// A pair in the order of statements.
fn pair_of(one: &str, other: &str) -> [String; 2] {
    if other.contains(':') || one < other { pair(one, other) } else { pair(other, one) }
}

/// Voids what the vanished jobs announced.
async fn end_pending(data: &Path) {
    let store = SqliteStore::open(data).await.unwrap();
    assert_eq!(store.void_announcements("default", Uuid::from_u128(6), None).await.unwrap(), 1);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn equal_definitions_at_once_make_one() {
    let server = Server::start().await;
    defined(&server, &["births", "staff"]).await;
    let mut document = clinic();
    (document["disjoint_from"], document["reason"]) = ("all".into(), "x".into());
    let puts = futures_util::future::join_all((0..8).map(|_| server.put(CLINIC, &document))).await;
    let mut statuses: Vec<u16> = puts.iter().map(|answer| answer.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 200, 200, 200, 200, 200, 200, 201]);
    let shown = server.get(CLINIC).await.ok(200);
    assert_eq!(shown["statements"].as_array().unwrap().len(), 2);
    assert!(puts.iter().all(|answer| answer.json()["statements"] == shown["statements"]));
    assert_eq!(server.items("/v1/audit-log?action=population.put").await.len(), 3);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_about_attributes_are_those_of_the_series() {
    let server = Server::start().await;
    defined(&server, &["clinic"]).await;
    let dataset = text(&server.upload("population=clinic", HOSPITAL).await.ok(201)["id"]);
    let path = format!("{CLINIC}/statements");
    let table = json!({"name": "survey", "attributes": ["age", "ward"], "protection": "plain"});
    let said = json!({"reason": "by the ministry", "tables": [table], "aliases": {"years": "age"},
        "functions": {"decade": ["age"]}, "new": ["dx"]});
    let recorded = server.post(&path, &said).await.ok(201);
    assert_eq!(recorded["statements"], json!([]));
    assert_eq!(recorded["disclosures"][0]["table"], "survey");
    let shown = server.get(CLINIC).await.ok(200);
    let mut series = server.get("/v1/series/clinic").await.ok(200);
    assert_eq!(series.as_object_mut().unwrap().remove("next"), Some(Value::Null));
    assert_eq!(shown["ledger"], series);
    assert_eq!(shown["datasets"], json!([dataset]));
    let names: Vec<_> = shown["ledger"]["attributes"].as_array().unwrap().iter().map(|it| text(&it["name"])).collect();
    assert!(["age", "ward", "dx", "decade"].iter().all(|name| names.contains(&(*name).to_owned())), "{names:?}");
    // what contradicts them is refused, with all that it comes with
    defined(&server, &["births"]).await;
    let wrong =
        json!({"reason": "x", "disjoint_from": ["births"], "aliases": {"age": "dx"}, "functions": {"dx": ["age"]}});
    server.post(&path, &wrong).await.problem(409, "conflict");
    assert_eq!(server.get(CLINIC).await.ok(200)["statements"], json!([]));
    for (document, pointer, name) in [
        (json!({"reason": "x"}), "", "parameter-range"),
        (json!({"new": ["a"]}), "/reason", "parameter-range"),
        (json!({"reason": "x", "tables": 7}), "/tables", "parameter-range"),
        (json!({"reason": "x", "tables": vec![json!({}); 1001]}), "/tables", "parameter-range"),
        (json!({"reason": "x", "aliases": {"a": 7}}), "/aliases", "parameter-range"),
        (json!({"reason": "x", "functions": {"a": "b"}}), "/functions", "parameter-range"),
        (json!({"reason": "x", "new": ["a\0"]}), "/new/0", "parameter-range"),
        (json!({"reason": "x", "others": {"dataset": dataset, "than": dataset}}), "/others/than", "parameter-range"),
        (json!({"reason": "x", "others": {"dataset": "7"}}), "/others/dataset", "parameter-range"),
        (json!({"reason": "x", "surprise": 1}), "/surprise", "unknown-field"),
    ] {
        server.post(&path, &document).await.fault(pointer, name);
    }
    server.post(&path, &json!({"reason": "x", "tables": [{"name": "a"}]})).await.problem(400, "malformed-body");
    server.post(&path, &json!({"reason": "x", "aliases": {"a\0": "b"}})).await.problem(400, "malformed-body");
    let other = server.dataset(HOSPITAL).await;
    let others = json!({"reason": "x", "others": {"dataset": dataset, "than": other}});
    let recorded = server.post(&path, &others).await.ok(201);
    assert_eq!(recorded["statements"][0]["kind"], "others");
    assert_eq!(server.post(&path, &others).await.ok(201), recorded, "again");
    // a purged dataset can be named, its rows cannot
    server.delete(&format!("/v1/datasets/{other}")).await.ok(200);
    let purged = json!({"reason": "x", "disjoint_from": [format!("dataset:{other}")]});
    assert_eq!(server.post(&path, &purged).await.ok(201)["statements"].as_array().unwrap().len(), 1);
    let table = json!({"name": "t", "attributes": ["age"], "protection": "plain", "dataset": other});
    server.post(&path, &json!({"reason": "x", "tables": [table]})).await.problem(410, "gone");
    server.stop().await;
}

fn command(data: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = run(guardian().arg("populations").args(arguments).arg("--data").arg(data));
    let said = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), said(output.stdout), said(output.stderr))
}

#[tokio::test(flavor = "multi_thread")]
async fn all_that_is_published_is_related_by_command() {
    let guarded = Guarded::start().await;
    let officer = guarded.preset(Preset::Officer);
    officer.put(CLINIC, &clinic()).await.ok(201);
    officer.put("/v1/populations/births", &clinic()).await.ok(201);
    defined(&officer, &["staff", "unpublished"]).await;
    let data = guarded.data();
    let planted = [
        Planted::live(Some("clinic"), 1, &[1, 2, 3], 1),
        Planted::live(Some("births"), 2, &[3, 4], 2),
        Planted::live(Some("staff"), 3, &[], 3),
        Planted::live(None, 5, &[], 5),
    ];
    let guarded = guarded
        .restarted(async |_| {
            plant(&data, &planted).await;
            let relate = ["relate", "--tenant", "default", "--all-disjoint", "--reason", "other people"];
            let (status, said, problem) = command(&data, &relate);
            let lines =
                "in common\tpopulation:births\tpopulation:clinic\n5 pairs are declared to have no person in common\n";
            assert_eq!((status, said.as_str()), (Some(3), lines), "{problem}");
            assert_eq!(kind(&serde_json::from_str(&problem).unwrap()), "statement-contradicted");
            assert_eq!(command(&data, &relate).1, lines, "again");
            let nothing = (Some(0), "0 pairs are declared to have no person in common\n".to_owned(), String::new());
            let other = ["relate", "--tenant", "other", "--all-disjoint", "--reason", "x"];
            assert_eq!(command(&data, &other), nothing);
            for wrong in [&relate[..3], &relate[..4], &["relate", "--all-disjoint", "--reason", "x"]] {
                assert_eq!(command(&data, wrong).0, Some(2), "{wrong:?}");
            }
            let listed =
                "births\tpatient:patient\tpatients\nclinic\tpatient:patient\tpatients\nstaff\t-\t\nunpublished\t-\t\n";
            assert_eq!(command(&data, &["list"]), (Some(0), listed.to_owned(), String::new()));
        })
        .await;
    let officer = guarded.preset(Preset::Officer);
    assert_eq!(places(&officer.get(CLINIC).await.ok(200)).len(), 2);
    assert_eq!(places(&officer.get("/v1/populations/staff").await.ok(200)).len(), 3);
    assert_eq!(guarded.preset(Preset::Operator).items("/v1/audit-log?action=population.state").await.len(), 1);
    guarded.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_pairs_than_a_command_takes_are_refused() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let tables: Vec<Planted<'_>> = (1..=142).map(|number| Planted::live(None, number, &[], number)).collect();
    plant(&data, &tables).await;
    let (status, said, problem) = command(&data, &["relate", "--tenant", "default", "--all-disjoint", "--reason", "x"]);
    assert_eq!((status, said.as_str()), (Some(3), ""), "{problem}");
    let problem: Value = serde_json::from_str(&problem).unwrap();
    assert_eq!((kind(&problem), &problem["found"], &problem["limit"]), ("work-limit", &json!(10_011), &json!(10_000)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restricted_key_is_for_its_populations_alone() {
    let guarded = Guarded::start().await;
    defined(&guarded.preset(Preset::Officer), &["clinic", "births", "staff"]).await;
    let mut token = String::new();
    let guarded = guarded
        .restarted(async |data| {
            let keys = |arguments: &[&str]| run(guardian().arg("keys").args(arguments).arg("--data").arg(data));
            let create =
                ["create", "--name", "night", "--preset", "pipeline", "--population", "clinic", "--population"];
            let created = keys(&[&create[..], &["births"]].concat());
            token = String::from_utf8(created.stdout).unwrap().trim().to_owned();
            let listed = String::from_utf8(keys(&["list"]).stdout).unwrap();
            let night = listed.lines().find(|line| line.contains("\tnight\t")).unwrap();
            assert!(night.ends_with("\tbirths, clinic"), "{listed}");
            assert_eq!(listed.lines().filter(|line| line.ends_with("\t-")).count(), listed.lines().count() - 1);
            assert_eq!(keys(&[&create[..], &["dataset:x"]].concat()).status.code(), Some(2));
        })
        .await;
    let night = guarded.server.with_token(&token);
    for query in ["population=clinic", "population=births", "series=clinic"] {
        night.upload_with(query, HOSPITAL, &[]).await.ok(201);
    }
    for query in ["name=x", "population=staff", "population=nowhere", "series=staff", "series=new", "population=Clinic"]
    {
        let problem = night.upload_with(query, HOSPITAL, &[]).await.problem(403, "forbidden");
        assert_eq!(problem["populations"], json!(["births", "clinic"]), "{query}");
        assert!(text(&problem["detail"]).contains("births, clinic"), "{query}");
    }
    assert_eq!(night.items("/v1/datasets").await.len(), 3);
    // nor does it publish what others upload
    let admin = guarded.preset(Preset::Admin);
    for (query, status) in [("population=staff", 403), ("name=x", 403), ("population=clinic", 200)] {
        let dataset = text(&admin.upload(query, HOSPITAL).await.ok(201)["id"]);
        let document = json!({"dataset": dataset, "unlisted": "drop", "method": hospital_method()});
        let job = night.post("/v1/jobs?wait=60", &document).await;
        assert_eq!(job.status, status, "{query}: {}", job.text());
        if status == 403 {
            assert_eq!(job.problem(403, "forbidden")["populations"], json!(["births", "clinic"]));
        }
    }
    assert_eq!(admin.items("/v1/jobs").await.len(), 1);
    let log = guarded.preset(Preset::Operator).items("/v1/audit-log?action=key.create").await;
    assert!(log.iter().any(|entry| text(&entry["detail"]).ends_with("; uploads into births, clinic")), "{log:?}");
    guarded.server.stop().await;
}
