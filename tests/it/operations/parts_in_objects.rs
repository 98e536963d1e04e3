//! Parts of releases in an object store: what is there, who reads it, and what a fault of the store does.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::support::harness::{HOSPITAL, Process, guardian, hospital_method, part_path, run, text};
use crate::support::object_server::{ACCESS_KEY, ObjectServer, SECRET_KEY};

const PARTS: &str = "s3://bucket/of/parts";
const OWNER: &str = "bucket/of/parts/guardian-store";

/// An object store, and a folder for the store of a service.
struct Stage {
    objects: ObjectServer,
    home: TempDir,
}

impl Stage {
    fn set() -> Self {
        Self { objects: ObjectServer::start(), home: tempfile::tempdir().unwrap() }
    }

    fn serve(&self, options: &[&str]) -> Process {
        let mut command = guardian();
        self.objects.known_to(&mut command);
        command.args(["serve", "--listen", "127.0.0.1:0"]).args(options).env("RUST_LOG", "debug");
        Process::serve_by(&self.home.path().join("data"), &mut command)
    }

    /// What a service says that must not start.
    #[track_caller]
    fn refusal(&self, options: &[&str]) -> String {
        let mut command = guardian();
        self.objects.known_to(&mut command);
        command.args(["serve", "--listen", "127.0.0.1:0"]).args(options).arg("--data");
        let output = run(command.arg(self.home.path().join("data")));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{said}");
        assert!(!said.contains(SECRET_KEY), "{said}");
        said
    }

    /// The keys of the objects of parts.
    fn keys(&self) -> Vec<String> {
        let is_part = |name: &String| name.starts_with("bucket/of/parts/") && *name != OWNER;
        self.objects.names().into_iter().filter(is_part).collect()
    }
}

async fn publish(service: &Process, csv: &str, method: &Value) -> Value {
    let dataset = service.newcomers(csv).await;
    service.publish(&dataset, json!({"unlisted": "drop", "method": method})).await
}

fn anatomy() -> Value {
    json!({"type": "anatomy", "quasi_identifiers": ["age"], "sensitive": "disease",
        "guarantee": {"type": "l_diversity", "l": 2}})
}

/// Status and body of an answer that may be a failure of the store.
async fn failure(service: &Process, path: &str) -> (u16, String) {
    let answer = service.request(Method::GET, path).send().await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

/// More rows than a chunk has.
fn many_rows() -> String {
    let rows = (0..70_000).map(|row| format!("{},{}\n", row % 89, ["flu", "angina", "gout", "asthma"][row % 4]));
    std::iter::once("age,disease\n".to_owned()).chain(rows).collect()
}

#[tokio::test]
async fn parts_in_objects_are_served_like_others() {
    let stage = Stage::set();
    let service = stage.serve(&["--parts", PARTS, "--part-link-seconds", "600"]);
    assert_eq!(stage.keys(), [""; 0], "the probe is gone");
    let release = publish(&service, &many_rows(), &anatomy()).await;
    let manifest = &release["tables"][0]["parts"];
    let named = |part: &Value| text(&part["name"]);
    for part in manifest.as_array().unwrap() {
        let path = part_path(&release, "t1", &named(part));
        let whole = service.part(&release, "t1", &named(part)).await;
        assert_eq!(hex::encode(Sha256::digest(&whole)), text(&part["sha256"]));
        let page = service.get(&format!("{path}?format=json&limit=3&cursor=65535")).await;
        if part["rows"].as_u64() > Some(65_536) {
            assert_eq!(page.ok(200)["rows"].as_array().unwrap().len(), 3, "across two objects");
        }
        let range = service.request(Method::GET, &path).header("range", "bytes=10-29");
        let range = service.send(range).await;
        assert_eq!((range.status, range.text().as_str()), (206, &whole[10..30]));

        // the objects one after the other are the part
        let listed = service.get(&format!("{path}/links")).await.ok(200);
        let items = listed["items"].as_array().unwrap();
        assert_eq!(
            items.iter().map(|item| item["rows"].as_u64().unwrap()).sum::<u64>(),
            part["rows"].as_u64().unwrap()
        );
        let mut compressed = Vec::new();
        for item in items {
            let url = text(&item["url"]);
            assert!(url.contains("X-Amz-Signature=") && !url.contains(SECRET_KEY), "{url}");
            let bytes = reqwest::get(&url).await.unwrap().error_for_status().unwrap().bytes().await.unwrap();
            assert_eq!(hex::encode(Sha256::digest(&bytes)), text(&item["sha256"]));
            assert_eq!(bytes.len() as u64, item["bytes"].as_u64().unwrap());
            compressed.extend_from_slice(&bytes);
        }
        assert_eq!(String::from_utf8(zstd::decode_all(&compressed[..]).unwrap()).unwrap(), whole);
    }
    let keys = stage.keys();
    assert!(keys.len() >= 3, "{keys:?}");
    assert!(
        keys.iter().all(|key| key.starts_with("bucket/of/parts/default/") && key.ends_with(".csv.zst")),
        "{keys:?}"
    );
    assert!(!service.log().contains(SECRET_KEY));
    assert!(!service.log().contains("X-Amz-Signature"), "no link is in the log");
}

#[tokio::test]
async fn links_come_in_pages_and_end_with_the_release() {
    let stage = Stage::set();
    let service = stage.serve(&["--parts", PARTS, "--part-link-seconds", "600"]);
    let release = publish(&service, &many_rows(), &anatomy()).await;
    let path = format!("{}/links", part_path(&release, "t1", "qi"));
    let first = service.get(&format!("{path}?limit=1")).await.ok(200);
    assert_eq!((first["items"].as_array().unwrap().len(), &first["next"]), (1, &json!("1")));
    let second = service.get(&format!("{path}?limit=1&cursor=1")).await.ok(200);
    assert_eq!((second["items"].as_array().unwrap().len(), &second["next"]), (1, &Value::Null));
    assert_ne!(first["items"], second["items"]);
    for query in ["cursor=2", "cursor=-1", "cursor=x", "limit=0", "limit=1001"] {
        service.get(&format!("{path}?{query}")).await.problem(400, "malformed-request");
    }
    service.get(&path.replace("/qi/", "/qi.csv/")).await.problem(404, "not-found");

    let withdraw = format!("/v1/releases/{}/withdraw", text(&release["id"]));
    service.post(&withdraw, &json!({"reason": "an error"})).await.ok(200);
    assert_eq!(stage.keys(), [""; 0], "the objects go with the release");
    let url = text(&first["items"][0]["url"]);
    assert_eq!(reqwest::get(&url).await.unwrap().status(), 404);
    service.get(&path).await.problem(410, "gone");
}

#[tokio::test]
async fn links_need_the_operators_leave() {
    let stage = Stage::set();
    // the parts of this release stay in the store
    let service = stage.serve(&[]);
    let before = publish(&service, HOSPITAL, &hospital_method()).await;
    let before = part_path(&before, "t1", "qi");
    let rows = service.get(&before).await.text();
    service.kill();
    let service = stage.serve(&["--parts", PARTS]);
    let after = publish(&service, HOSPITAL, &hospital_method()).await;
    let after = part_path(&after, "t1", "qi");
    for path in [&before, &after] {
        service.get(&format!("{path}/links")).await.problem(404, "not-found");
    }
    service.kill();
    let service = stage.serve(&["--parts", PARTS, "--part-link-seconds", "1"]);
    assert_eq!(service.get(&before).await.text(), rows);
    service.get(&format!("{before}/links")).await.problem(404, "not-found");
    service.get(&format!("{after}/links")).await.ok(200);
}

#[tokio::test]
async fn a_job_waits_for_an_object_store_that_fails() {
    let stage = Stage::set();
    let service = stage.serve(&["--parts", PARTS]);
    stage.objects.deny("PUT bucket/of/parts/*");
    let dataset = service.newcomers(HOSPITAL).await;
    let document = json!({"dataset": dataset, "unlisted": "drop", "method": hospital_method()});
    let job = text(&service.post("/v1/jobs", &document).await.ok(202)["id"]);
    while !stage.objects.asked().iter().any(|asked| asked.starts_with("PUT bucket/of/parts/default/")) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    stage.objects.permit();
    let path = format!("/v1/jobs/{job}");
    let done = loop {
        let job = service.get(&path).await.ok(200);
        if !matches!(job["status"].as_str(), Some("queued" | "running")) {
            break job;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(done["status"], "succeeded", "{done:#}");
    // what the failed attempt began is gone, and a release is served again only where its objects can be read
    let release = service.get(&format!("/v1/releases/{}", text(&done["release"]))).await.ok(200);
    let objects: usize =
        release["tables"].as_array().unwrap().iter().map(|table| table["parts"].as_array().unwrap().len()).sum();
    assert_eq!(stage.keys().len(), objects);
    stage.objects.deny("GET bucket/of/parts/*");
    let path = format!("{}?format=json", part_path(&release, "t1", "qi"));
    let (status, said) = failure(&service, &path).await;
    assert_eq!((status, said.contains("problems/unavailable")), (503, true), "{said}");
    stage.objects.permit();
    service.get(&path).await.ok(200);
}

#[tokio::test]
async fn a_changed_object_is_not_served() {
    let stage = Stage::set();
    let service = stage.serve(&["--parts", PARTS]);
    let release = publish(&service, HOSPITAL, &hospital_method()).await;
    let key = stage.keys().into_iter().find(|key| key.contains("/t1.qi/")).unwrap();
    let other = zstd::encode_all(&b"bucket,zip\n1,forged\n"[..], 1).unwrap();
    stage.objects.put(&key, other);
    let path = format!("{}?format=json", part_path(&release, "t1", "qi"));
    let (status, said) = failure(&service, &path).await;
    assert_eq!((status, said.contains("problems/internal"), said.contains("forged")), (500, true, false), "{said}");
}

#[tokio::test]
async fn a_service_starts_where_its_parts_are() {
    let stage = Stage::set();
    let service = stage.serve(&["--parts", PARTS]);
    let release = publish(&service, HOSPITAL, &hospital_method()).await;
    let path = part_path(&release, "t1", "qi");
    let rows = service.get(&path).await.text();
    service.kill();
    let said = stage.refusal(&[]);
    assert!(said.contains("--parts: parts of this store are in an object store"), "{said}");
    let said = stage.refusal(&["--parts", "s3://bucket/elsewhere"]);
    assert!(said.contains("are not below this address"), "{said}");
    // a copy will do
    for key in stage.keys() {
        let copied = key.replace("bucket/of/parts/", "bucket/elsewhere/");
        stage.objects.put(&copied, stage.objects.get(&key).unwrap());
    }
    let service = stage.serve(&["--parts", "s3://bucket/elsewhere/"]);
    assert_eq!(service.get(&path).await.text(), rows);
}

#[tokio::test]
async fn a_place_of_another_store_is_refused() {
    let (stage, other) = (Stage::set(), tempfile::tempdir().unwrap());
    stage.serve(&["--parts", PARTS]).kill();
    let owner = String::from_utf8(stage.objects.get(OWNER).unwrap()).unwrap();
    let stage = Stage { home: other, ..stage };
    let said = stage.refusal(&["--parts", PARTS]);
    assert!(said.contains("belong to another store") && !said.contains(&owner), "{said}");
    stage.serve(&["--parts", "s3://bucket/of/others"]).kill();
    // its store is gone
    stage.objects.remove(OWNER);
    stage.serve(&["--parts", PARTS]).kill();
    assert_ne!(stage.objects.get(OWNER), Some(owner.into_bytes()));
}

#[tokio::test]
async fn a_place_that_takes_no_parts_stops_the_start() {
    let stage = Stage::set();
    for address in ["bucket/parts", "file:///parts", "https://example.org/parts", "s3://key:hidden@bucket/parts"] {
        let said = stage.refusal(&["--parts", address]);
        assert!(said.contains("--parts: ") && !said.contains("hidden"), "{said}");
    }
    let said = stage.refusal(&["--part-link-seconds", "60"]);
    assert!(said.contains("needs --parts"), "{said}");
    for denied in ["PUT bucket/of/parts/*", "GET bucket/of/parts/*", "DELETE bucket/of/parts/*"] {
        stage.objects.deny(denied);
        let said = stage.refusal(&["--parts", PARTS]);
        assert!(said.contains("denies access") && !said.contains(ACCESS_KEY), "{denied}: {said}");
        stage.objects.permit();
    }
}
