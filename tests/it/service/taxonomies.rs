//! Taxonomies: inline and stored, their faults, and distances along them.

use std::collections::BTreeMap;
use std::fs;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use guardian::ledger::EarlierDisclosures;
use guardian::random::{RandomStreams, ReleaseKey};
use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use serde_json::{Value, json};

use crate::support::folder::{CommandFixture, code, stderr};
use crate::support::harness::{Answer, Client, Server, kind, text};
use crate::support::library::{Original, cells, release, table};
use crate::verification::external_tables::verify;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn levels(name: &str) -> String {
    fs::read_to_string(data("tests/data/taxonomies").join(name)).unwrap()
}

fn adult() -> String {
    let mut text = String::new();
    GzDecoder::new(File::open(data("examples/data/adult.csv.gz")).unwrap()).read_to_string(&mut text).unwrap();
    text
}

/// The header and the first rows of Adult.
fn some_adults(rows: usize) -> String {
    adult().lines().take(rows + 1).map(|line| format!("{line}\n")).collect()
}

async fn put_csv(client: &Client, name: &str, csv: &str) -> Answer {
    let request = client.request(Method::PUT, &format!("/v1/taxonomies/{name}"));
    client.send(request.header(CONTENT_TYPE, "text/csv").body(csv.to_owned())).await
}

fn jobs() -> Value {
    json!({"Any": {"Field": ["Driver", "Engineer"], "Office": ["Banker", "Clerk"]}})
}

/// 240 workers of four jobs.
fn workers() -> String {
    let job = |i: u32| ["Banker", "Clerk", "Driver", "Engineer"][(i % 7 % 4) as usize];
    "age,job\n".to_owned() + &(0..240).map(|i| format!("{},{}\n", 20 + i % 41, job(i))).collect::<String>()
}

fn close(sensitive: &str, t: &str, taxonomy: &Value) -> Value {
    json!({"unlisted": "drop", "attributes": {sensitive: {"taxonomy": taxonomy}},
        "method": {"type": "anatomy", "quasi_identifiers": ["age"], "sensitive": sensitive,
            "guarantee": {"type": "t_closeness", "t": t, "distance": "hierarchical"}}})
}

/// Per bucket, and over all, how often each value occurs.
fn buckets(csv: &[u8]) -> (Vec<BTreeMap<String, f64>>, BTreeMap<String, f64>) {
    let (mut each, mut all) = (BTreeMap::<u32, BTreeMap<String, f64>>::new(), BTreeMap::new());
    for row in cells(csv).1 {
        *each.entry(row[0].parse().unwrap()).or_default().entry(row[1].clone()).or_default() += 1.0;
        *all.entry(row[1].clone()).or_default() += 1.0;
    }
    (each.into_values().collect(), all)
}

/// The largest earth mover's distance of a bucket, by this test's own reading of rows of levels: what the values below a node have
/// too much and too little is evened out there, at its height.
fn farthest(csv: &[u8], levels: &str) -> f64 {
    let node_paths: Vec<Vec<String>> = levels
        .lines()
        .skip(1)
        .map(|line| {
            let mut way: Vec<String> = line.split(',').map(str::to_owned).collect();
            way.dedup();
            way
        })
        .collect();
    let mut heights: BTreeMap<&str, usize> = BTreeMap::new();
    for (height, node) in node_paths.iter().flat_map(|way| way.iter().enumerate()) {
        let known = heights.entry(node).or_default();
        *known = height.max(*known);
    }
    let root = node_paths[0].last().unwrap().as_str();
    let above: BTreeMap<&str, &str> =
        node_paths.iter().flat_map(|way| way.windows(2).map(|step| (step[0].as_str(), step[1].as_str()))).collect();
    let mut rising: Vec<&str> = heights.keys().copied().collect();
    rising.sort_by_key(|node| heights[node]);
    let (each, all) = buckets(csv);
    let rows: f64 = all.values().sum();
    let distance = |bucket: &BTreeMap<String, f64>| {
        let size: f64 = bucket.values().sum();
        let gap = |value: &str| bucket.get(value).unwrap_or(&0.0) / size - all.get(value).unwrap_or(&0.0) / rows;
        let mut below: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        let mut work = 0.0;
        for node in &rising {
            let parts = below.remove(node).unwrap_or_default();
            let extra = if heights[node] == 0 { gap(node) } else { parts.iter().sum() };
            let gained: f64 = parts.iter().filter(|part| **part > 0.0).sum();
            let lost: f64 = parts.iter().filter(|part| **part < 0.0).map(|part| -part).sum();
            work += heights[node] as f64 * gained.min(lost);
            if *node != root {
                below.entry(above[node]).or_default().push(extra);
            }
        }
        work / heights[root] as f64
    };
    each.iter().map(distance).fold(0.0, f64::max)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_version_stays_as_it_was_written() {
    let server = Server::start().await;
    let path = "/v1/taxonomies/job";
    let answer = server.put(path, &json!({"taxonomy": jobs()})).await;
    let first = answer.ok(201);
    assert_eq!((&first["name"], &first["version"], &first["reference"]), (&json!("job"), &json!(1), &json!("job-v1")));
    assert_eq!(first["taxonomy"], jobs());
    assert_eq!(server.get(answer.header("location")).await.ok(200), first);
    // the same tree in other words, and as rows
    let words = json!({"Any": [{"Field": ["Driver", "Engineer"]}, {"Office": ["Banker", "Clerk"]}]});
    assert_eq!(server.put(path, &json!({"taxonomy": words})).await.ok(200), first);
    let rows = "job,branch\nDriver,Field,Any\nEngineer,Field,Any\nBanker,Office,Any\nClerk,Office,Any\n";
    assert_eq!(put_csv(&server, "job", rows).await.ok(200), first);
    let second = put_csv(&server, "job", "job,branch\nDriver,Field\nClerk,Office\n").await.ok(201);
    assert_eq!(
        (&second["version"], &second["taxonomy"]),
        (&json!(2), &json!({"*": {"Field": ["Driver"], "Office": ["Clerk"]}}))
    );
    assert_eq!(server.get(path).await.ok(200), second);
    assert_eq!(server.get("/v1/taxonomies/job?version=1").await.ok(200), first);
    server.put("/v1/taxonomies/other", &json!({"taxonomy": jobs()})).await.ok(201);
    let references: Vec<String> =
        server.items("/v1/taxonomies").await.iter().map(|item| text(&item["reference"])).collect();
    assert_eq!(references, ["other-v1", "job-v2"]);
    for missing in ["none", "job?version=3", "job-v1", "x%00", "%ff"] {
        server.get(&format!("/v1/taxonomies/{missing}")).await.problem(404, "not-found");
    }
    assert_eq!(server.delete(path).await.ok(200)["reference"], "job-v2");
    server.delete(path).await.problem(404, "not-found");
    server.get("/v1/taxonomies/job?version=1").await.problem(404, "not-found");
    let third = server.put(path, &json!({"taxonomy": jobs()})).await.ok(201);
    assert_eq!(third["version"], 3, "no version is called as an earlier one");
    let log = server.items("/v1/audit-log").await;
    let logged = |entry: &Value| format!("{} {}", text(&entry["action"]), text(&entry["object"]));
    let logged: Vec<String> = log.iter().map(logged).collect();
    assert_eq!(logged[..2], ["taxonomy.put job-v3", "taxonomy.delete job"]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_taxonomy_is_refused() {
    let server = Server::start().await;
    let put = async |tree: Value| server.put("/v1/taxonomies/t", &json!({"taxonomy": tree})).await;
    let answer = put(json!({"Any": {"a": ["x", "y"], "b": ["x", "y", []], "c": {}}})).await;
    assert_eq!(answer.fault("/taxonomy", "taxonomy-conflict")["count"], 2);
    answer.fault("/taxonomy/Any/b/2", "parameter-range");
    answer.fault("/taxonomy/Any/c", "parameter-range");
    server.put("/v1/taxonomies/t", &json!({"tree": jobs()})).await.fault("/tree", "unknown-field");
    server.put("/v1/taxonomies/t-v1", &json!({"taxonomy": jobs()})).await.problem(400, "malformed-request");
    let twice = put_csv(&server, "t", "v,a,b\nx,p,r\ny,p,r\nx,q,r\n").await;
    let fault = twice.fault("", "taxonomy-conflict");
    assert_eq!((&fault["count"], &fault["row"]), (&json!(1), &json!(3)));
    put_csv(&server, "t", "x,p,r\ny,p,r\n").await.fault("", "parameter-range");
    assert_eq!(put_csv(&server, "t", "v,a\n\"x,p\n").await.problem(422, "upload-malformed")["row"], 1);
    put_csv(&server, "t", "v,a\n").await.problem(422, "empty-table");
    let request = server.request(Method::PUT, "/v1/taxonomies/t").header(CONTENT_TYPE, "text/plain").body("x");
    server.send(request).await.problem(415, "unsupported-media-type");
    assert!(server.items("/v1/taxonomies").await.is_empty());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stored_taxonomy_is_written_out_in_the_job() {
    let server = Server::start().await;
    server.put("/v1/taxonomies/job", &json!({"taxonomy": jobs()})).await.ok(201);
    let dataset = server.dataset(workers()).await;
    let job = server.job(&dataset, close("job", "0.2", &json!("job"))).await.ok(200);
    assert_eq!(job["status"], "succeeded", "{job:#}");
    assert_eq!(job["specification"]["attributes"]["job"]["taxonomy"], jobs());
    let manifest = server.get(&format!("/v1/releases/{}", text(&job["release"]))).await.ok(200);
    assert_eq!(manifest["taxonomies"], json!({"job": jobs()}));
    assert_eq!(manifest["rules"][0]["guarantee"]["distance"], "hierarchical");
    let achieved = manifest["rules"][0]["achieved"]["distance"].as_f64().unwrap();
    let rows = "v,a,b\nDriver,Field,Any\nEngineer,Field,Any\nBanker,Office,Any\nClerk,Office,Any\n";
    let part = server.part(&manifest, "t1", "sa").await;
    assert!((farthest(part.as_bytes(), rows) - achieved).abs() < 1e-9 && achieved <= 0.2, "{achieved}");
    let many = buckets(part.as_bytes()).0.len();
    assert!(many > 20, "{many} buckets");
    // the same tree, however it is declared, is the same job; another version is another
    for same in [jobs(), json!("job-v1"), json!("job")] {
        let again = server.job(&dataset, close("job", "0.2", &same)).await.ok(200);
        assert_eq!((&again["release"], &again["reused"]), (&job["release"], &json!(true)));
    }
    let other = json!({"Any": ["Banker", "Clerk", "Driver", "Engineer"]});
    server.put("/v1/taxonomies/job", &json!({"taxonomy": other})).await.ok(201);
    let latest = close("job", "0.2", &json!("job"));
    let problem = server.job(&dataset, latest.clone()).await.ok(200)["problem"].clone();
    assert_eq!(kind(&problem), "composition-violated", "another release would part the same jobs");
    server.delete("/v1/taxonomies/job").await.ok(200);
    let answer = server.job(&dataset, latest).await;
    assert_eq!(answer.fault("/attributes/job/taxonomy", "unknown-taxonomy")["taxonomy"], "job");
    let again = server.job(&dataset, close("job", "0.2", &jobs())).await.ok(200);
    assert_eq!(again["reused"], true);
    // a policy names it, and it is looked up when the job comes
    let mut policy = close("job", "0.3", &json!("late-v1"));
    policy["method"]["quasi_identifiers"] = json!(["age"]);
    let server = server.anew().await;
    server.put("/v1/policies/p", &json!({"specification": policy})).await.ok(201);
    let on_policy = json!({"policy": "p-v1"});
    let other = server.dataset(workers().replace("Driver", "Pilot")).await;
    server.job(&other, on_policy.clone()).await.fault("/attributes/job/taxonomy", "unknown-taxonomy");
    put_csv(&server, "late", &rows.replace("Driver", "Pilot")).await.ok(201);
    assert_eq!(server.job(&other, on_policy).await.ok(200)["status"], "succeeded");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn uncovered_values_are_counted_with_a_link() {
    let server = Server::start().await;
    let dataset = server.dataset(workers()).await;
    let missing = async |answer: &Answer, number: u64| {
        let fault = answer.fault("/attributes/job/taxonomy", "taxonomy-value-missing");
        assert_eq!((&fault["attribute"], &fault["missing"]), (&json!("job"), &json!(number)));
        let values = server.get(&text(&fault["values_url"])).await.ok(200);
        assert_eq!(values["items"].as_array().unwrap().len(), 4);
        assert!(!answer.text().contains("Banker"), "{}", answer.text());
    };
    // fewer leaves than values: before anything is queued
    let few = json!({"Any": ["Driver", "Engineer"]});
    missing(&server.job(&dataset, close("job", "0.2", &few)).await, 2).await;
    // other leaves: by the job, and by a plan
    let unknown = json!({"Any": {"Office": ["Clerk", "Boss"], "Field": ["Driver", "Pilot", "Diver"]}});
    let problem = server.refused(&dataset, close("job", "0.2", &unknown)).await;
    let fault = &problem["errors"][0];
    assert_eq!(problem["errors"].as_array().unwrap().len(), 1);
    assert_eq!(
        (kind(fault), &fault["missing"], &fault["attribute"]),
        ("taxonomy-value-missing", &json!(2), &json!("job"))
    );
    server.get(&text(&fault["values_url"])).await.ok(200);
    for (tree, number) in [(unknown, 2), (few, 2)] {
        let mut document = close("job", "0.2", &tree);
        document["dataset"] = dataset.as_str().into();
        let plan = server.post("/v1/plans", &document).await.ok(200);
        assert_eq!(plan["feasible"], false);
        let errors = plan["problems"][0]["errors"].as_array().unwrap();
        assert_eq!(errors.len(), 1, "{plan:#}");
        assert_eq!((kind(&errors[0]), &errors[0]["missing"]), ("taxonomy-value-missing", &json!(number)));
    }
    // leaves that do not occur do no harm, and a taxonomy that nothing goes by is checked all the same
    let wide = json!({"Any": {"Office": ["Clerk", "Boss", "Banker", null], "Field": ["Driver", "Engineer"]}});
    let mut unused = close("job", "0.2", &json!({"Any": ["Clerk"]}));
    unused["method"]["guarantee"] = json!({"type": "l_diversity", "l": 2});
    server.job(&dataset, unused.clone()).await.fault("/attributes/job/taxonomy", "taxonomy-value-missing");
    server.publish(&dataset, close("job", "0.2", &wide)).await;
    let server = server.anew().await;
    let other = server.dataset(workers() + "99,Clerk\n").await;
    unused["attributes"]["job"]["taxonomy"] = wide;
    server.publish(&other, unused).await;
    // a declared value that does not occur is reported at the same place
    let mut unknown = close("job", "0.2", &jobs());
    unknown["attributes"]["job"]["excludable"] = json!(["nobody"]);
    unknown["method"]["guarantee"] = json!({"type": "l_diversity", "l": 2});
    let problem = server.refused(&other, unknown).await;
    let fault = &problem["errors"][0];
    assert_eq!((kind(fault), &fault["pointer"]), ("parameter-range", &json!("/attributes/job/excludable/0")));
    server.get(&text(&fault["values_url"])).await.ok(200);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_distance_needs_a_taxonomy_and_decimals_have_one_leaf() {
    let server = Server::start().await;
    let dataset = server.dataset(workers()).await;
    let mut without = close("job", "0.2", &jobs());
    without["attributes"] = json!({});
    let answer = server.job(&dataset, without).await;
    assert_eq!(answer.fault("/method", "guarantee-unsupported")["attribute"], "job");
    let mut vacuous = close("job", "1", &jobs());
    server.job(&dataset, vacuous.clone()).await.fault("/method/guarantee/t", "vacuous-guarantee");
    vacuous["attributes"]["job"]["taxonomy"] = json!({"Any": ["x", "x"]});
    let answer = server.job(&dataset, vacuous).await;
    let conflict = answer.fault("/attributes/job/taxonomy", "taxonomy-conflict");
    assert_eq!((&conflict["attribute"], &conflict["count"]), (&json!("job"), &json!(1)));
    let doses: String = (0..60).map(|i| format!("{},{}\n", i % 9, ["0.5", "0.50", "1.5", "2"][i % 4])).collect();
    let doses = server.dataset(format!("age,dose\n{doses}")).await;
    let twice = json!({"Any": {"low": [0.5, "0.50"], "high": [1.5, 2]}});
    let problem = server.refused(&doses, close("dose", "0.3", &twice)).await;
    assert_eq!(kind(&problem["errors"][0]), "taxonomy-conflict");
    server.publish(&doses, close("dose", "0.3", &json!({"Any": {"low": [0.5], "high": [1.5, 2]}}))).await;
    server.stop().await;
}

#[test]
fn adult_is_close_along_real_taxonomies() {
    let csv = adult();
    let original = Original::new(table(csv.as_bytes()));
    for (sensitive, file, t, bound, fewest) in [
        ("education", "education.csv", "0.2", 0.2, 700),
        ("education", "education-arx.csv", "0.15", 0.15, 400),
        ("marital-status", "marital-status.csv", "0.1", 0.1, 400),
    ] {
        let tree = guardian::spec::read_levels(levels(file).as_bytes()).unwrap();
        let job = original.job(&close(sensitive, t, &tree.written())).unwrap_or_else(|faults| panic!("{faults:?}"));
        let streams = RandomStreams::Keyed(ReleaseKey::from_bytes([5; 32]));
        let (released, files) = release(&job, &EarlierDisclosures::default(), &streams).unwrap();
        let achieved = released.manifest.rules[0].achieved.as_ref().unwrap().distance.unwrap();
        let found = farthest(&files.0["t1.sa.csv"], &levels(file));
        assert!((found - achieved).abs() < 1e-9, "{file}: {found} and {achieved}");
        assert!(found <= bound + 1e-9, "{file}: {found}");
        let many = buckets(&files.0["t1.sa.csv"]).0.len();
        assert!(many >= fewest, "{file}: {many} buckets");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_of_anybody_are_held_against_a_taxonomy() {
    let server = Server::start().await;
    let csv = b"a,job\n1,Banker\n1,Driver\n2,Clerk\n2,Engineer\n".to_vec();
    let mut request = json!({"tables": [{"name": "t", "parts": [{"file": "t.csv"}]}], "rules": ["a -> job"],
        "default_guarantee": {"type": "t_closeness", "t": "0.25", "distance": "hierarchical"},
        "taxonomies": {"job": jobs()}});
    let files = [("t.csv", csv)];
    let found = verify(&server, &request, &files).await.ok(200);
    assert_eq!((&found["verified"], &found["rules"][0]["achieved"]["t_hierarchical"]), (&json!(true), &json!(0.25)));
    assert_eq!(found["tables"][0]["measures"][0]["t_hierarchical"], 0.25);
    request["taxonomies"] = json!({"job": {"Any": {"x": ["Banker", "Driver"], "y": ["Clerk", "Engineer"]}}});
    let found = verify(&server, &request, &files).await.ok(200);
    assert_eq!((&found["verified"], &found["rules"][0]["breaks"]["total"]), (&json!(false), &json!(2)));
    request["taxonomies"] = json!({"job": {"Any": ["Banker", "Driver", "Clerk"]}});
    let found = verify(&server, &request, &files).await.ok(200);
    assert_eq!(found["verified"], false, "a value that is no leaf is close to nothing");
    assert!(found["rules"][0]["achieved"].get("t_hierarchical").is_none());
    request["taxonomies"] = json!({"a": jobs(), "nobody": jobs(), "job": {"Any": []}});
    let answer = verify(&server, &request, &files).await;
    answer.fault("/taxonomies/job/Any", "parameter-range");
    request["taxonomies"] = json!({"a": jobs(), "nobody": jobs()});
    let answer = verify(&server, &request, &files).await;
    answer.fault("/rules/0", "guarantee-unsupported");
    server.stop().await;
}

#[test]
fn a_release_on_disk_is_verified_along_its_own_taxonomy() {
    let tree = guardian::spec::read_levels(levels("education.csv").as_bytes()).unwrap().written();
    let folder = CommandFixture::new(some_adults(3_000), &close("education", "0.3", &tree));
    let manifest = folder.published("out", &[]);
    assert_eq!(folder.is_verified("out"), [true, true]);
    // another tree than that of the specification: with it the buckets are farther, or the figures are others
    assert_eq!(manifest["taxonomies"]["education"], tree);
    let flat = guardian::spec::read_levels(levels("education-arx.csv").as_bytes()).unwrap().written();
    for changed in [json!({"education": flat}), json!({}), json!({"education": {"Any": []}}), json!({"nobody": tree})] {
        let mut forged = manifest.clone();
        forged["taxonomies"] = changed;
        folder.forge("out", &forged);
        assert_eq!(folder.is_verified("out"), [false, false], "{}", forged["taxonomies"]);
    }
    // stored ones are those of a service; holes are refused before anything is written
    folder.specify(&close("education", "0.3", &json!("education-v1")));
    let output = folder.publish("named", &[]);
    assert_eq!(code(&output), 3);
    assert!(stderr(&output).contains("guarantee-unsupported"));
    let hole = json!({"Any": {"a": ["HS-grad", "x1", "x2", "x3", "x4", "x5", "x6", "x7"], "b": ["y1", "y2", "y3", "y4", "y5", "y6", "y7", "y8", "y9"]}});
    folder.specify(&close("education", "0.3", &hole));
    let output = folder.publish("hole", &[]);
    let problem: Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!((code(&output), problem["errors"].as_array().unwrap().len()), (3, 1), "{problem:#}");
    assert_eq!((kind(&problem["errors"][0]), &problem["errors"][0]["missing"]), ("taxonomy-value-missing", &json!(15)));
    assert!(!folder.path("hole").exists() && problem["errors"][0].get("values_url").is_none());
}
