//! What was published before decides what may be published next.

use serde_json::{Value, json};

use crate::support::harness::{Client, HOSPITAL, Server, hospital_method, kind, text, versatile};

fn hospital() -> Value {
    json!({"method": hospital_method()})
}

fn rules(rules: &[&str]) -> Value {
    json!({"unlisted": "drop", "method": versatile(rules)})
}

/// The attributes together in one table, unprotected.
fn plain(attributes: &[&str]) -> Value {
    let publish: serde_json::Map<_, _> =
        attributes.iter().map(|name| ((*name).to_owned(), json!({"publish": true}))).collect();
    json!({"unlisted": "drop", "attributes": publish, "no_rules_reason": "asked for by the archive",
        "method": {"type": "versatile", "rules": []}})
}

async fn plan(server: &Client, dataset: &str, mut document: Value) -> Value {
    document["dataset"] = dataset.into();
    server.post("/v1/plans", &document).await.ok(200)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_identical_release_is_given_back() {
    let server = Server::start().await;
    let dataset = server.dataset(HOSPITAL).await;
    let first = server.publish(&dataset, hospital()).await;
    let object = |known: &[&str], sensitive: &str| json!({"quasi_identifiers": known, "sensitive": [sensitive], "guarantee": {"type": "l_diversity", "l": 2}});
    let same = [
        hospital(),
        // rules in another form and order, defaults written out, words that change nothing
        json!({"priority": 5, "reason": "again", "deadline": "PT1H", "hold": false, "unlisted": "drop",
            "composition": {"mode": "enforce"}, "attributes": {"age": {}},
            "method": {"type": "versatile", "algorithm": "uad", "correlated": "together", "uad": {"saturate": false},
                "rules": [object(&["icd9", "age"], "race"), " \"gender\" ,icd9->zipcode", "race, hospital -> zipcode"],
                "default_guarantee": {"l": 2.0, "type": "l_diversity"}}}),
    ];
    for document in same {
        let job = server.job(&dataset, document).await.ok(200);
        assert_eq!(
            (&job["status"], &job["reused"], &job["release"]),
            (&json!("succeeded"), &json!(true), &first["id"])
        );
    }
    assert_eq!(server.items("/v1/releases").await.len(), 1);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn equal_jobs_at_once_share_one_release() {
    let server = Server::start_with(|config| config.workers = 4).await;
    let dataset = server.dataset(HOSPITAL).await;
    let document = json!({"dataset": dataset, "method": hospital_method()});
    let submit = || server.post("/v1/jobs?wait=60", &document);
    let (a, b, c, d) = tokio::join!(submit(), submit(), submit(), submit());
    let jobs = [a.ok(200), b.ok(200), c.ok(200), d.ok(200)];
    assert!(jobs.iter().all(|job| job["status"] == "succeeded" && job["release"] == jobs[0]["release"]), "{jobs:#?}");
    assert_eq!(jobs.iter().filter(|job| job["reused"] == false).count(), 1);
    assert_eq!(server.items("/v1/releases").await.len(), 1);
    assert_eq!(server.stored("job_keys").await, 0);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_that_would_break_a_standing_rule_is_refused() {
    let server = Server::start().await;
    let dataset = server.dataset(HOSPITAL).await;
    let first = server.publish(&dataset, hospital()).await;
    assert_eq!(first["composition"], "same_dataset_only");
    let parts = server.stored("part_chunks").await;

    // raw race beside raw age: t2 leads from (age, icd9) to race, which rule 0 forbids
    let second = plain(&["age", "race"]);
    let planned = plan(&server, &dataset, second.clone()).await;
    assert_eq!((&planned["feasible"], &planned["composition"]["verdict"]), (&json!(false), &json!("violated")));
    assert_eq!(planned["composition"]["against"], json!([first["id"]]));
    let problem = server.refused(&dataset, second).await;
    assert_eq!((kind(&problem), &problem["status"]), ("composition-violated", &json!(409)));
    assert_eq!(problem["rule"], json!({"release": first["id"], "pointer": "/method/rules/0"}));
    assert_eq!(problem["release"], first["id"]);
    let path = problem["path"].as_array().unwrap();
    assert!(
        !path.is_empty() && path.iter().all(|step| step["table"].is_string() && step["via"].is_array()),
        "{path:?}"
    );
    assert_eq!(planned["problems"][0]["path"], problem["path"]);
    assert_eq!(planned["composition"]["violations"][0]["rule"], problem["rule"]);
    // nothing remains of it, and it blocks no release
    assert_eq!((server.stored("part_chunks").await, server.stored("job_keys").await), (parts, 0));
    assert_eq!(server.items("/v1/releases").await.len(), 1);

    let compatible = plain(&["gender", "hospital"]);
    let planned = plan(&server, &dataset, compatible.clone()).await;
    assert_eq!((&planned["feasible"], &planned["composition"]["verdict"]), (&json!(true), &json!("safe")));
    let third = server.publish(&dataset, compatible).await;
    assert_ne!(third["id"], first["id"]);
    assert_eq!(third["composition"], "same_dataset_only");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_bucketization_is_refused() {
    let server = Server::start().await;
    let dataset = server.dataset(HOSPITAL).await;
    let anatomy = |known: &str| {
        json!({"unlisted": "drop", "method": {"type": "anatomy", "quasi_identifiers": [known], "sensitive": "icd9",
            "guarantee": {"type": "l_diversity", "l": 2}}})
    };
    let first = server.publish(&dataset, anatomy("age")).await;
    let planned = plan(&server, &dataset, anatomy("gender")).await;
    assert_eq!(planned["composition"]["verdict"], "violated");
    let problem = server.refused(&dataset, anatomy("gender")).await;
    assert_eq!((kind(&problem), &problem["release"]), ("composition-violated", &first["id"]));
    assert_eq!(problem["rule"], json!({"release": null, "pointer": "/method"}));
    assert_eq!(problem["path"], json!([]));
    // under another guarantee it is no reuse, but a second drawing too
    let mut stronger = anatomy("age");
    stronger["method"]["guarantee"]["l"] = 3.into();
    assert_eq!(kind(&server.refused(&dataset, stronger).await), "composition-violated");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_rule_is_held_against_old_tables() {
    let server = Server::start().await;
    let dataset = server.dataset(HOSPITAL).await;
    let first = server.publish(&dataset, plain(&["age", "race"])).await;
    let problem = server.refused(&dataset, rules(&["age -> race"])).await;
    assert_eq!(kind(&problem), "composition-violated");
    assert_eq!(problem["rule"], json!({"release": null, "pointer": "/method/rules/0"}));
    assert_eq!(problem["release"], first["id"]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn renaming_does_not_make_an_attribute_another_one() {
    let server = Server::start().await;
    let dataset = server.dataset(HOSPITAL).await;
    server.publish(&dataset, hospital()).await;
    let mut second = plain(&["age", "race"]);
    second["attributes"]["race"]["rename"] = "r".into();
    second["attributes"]["age"]["rename"] = "a".into();
    assert_eq!(kind(&server.refused(&dataset, second).await), "composition-violated");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_equal_table_is_the_same_dataset() {
    let server = Server::start().await;
    let upload = async |csv: &str| server.dataset(csv).await;
    let first = upload(HOSPITAL).await;
    let release = server.publish(&first, hospital()).await;
    let mut lines: Vec<&str> = HOSPITAL.lines().collect();
    lines[1..].reverse();
    let reordered = lines.join("\r\n");
    for csv in [HOSPITAL, reordered.as_str()] {
        let again = upload(csv).await;
        let problem = server.refused(&again, plain(&["age", "race"])).await;
        assert_eq!((kind(&problem), &problem["release"]), ("composition-violated", &release["id"]));
        let job = server.job(&again, hospital()).await.ok(200);
        assert_eq!((&job["reused"], &job["release"]), (&json!(true), &release["id"]));
    }
    // nor are they other people when a column is read otherwise, or stands elsewhere
    let text = text(&server.upload("types=age:text,zipcode:decimal", HOSPITAL).await.ok(201)["id"]);
    let swapped: String = HOSPITAL
        .lines()
        .map(|line| {
            let (first, rest) = line.split_once(',').unwrap();
            format!("{rest};{first}\n").replace(',', ";")
        })
        .collect();
    for again in [text, upload(&swapped).await] {
        let problem = server.refused(&again, plain(&["age", "race"])).await;
        assert_eq!((kind(&problem), &problem["release"]), ("composition-violated", &release["id"]));
    }
    // purging the first upload takes nothing out of the ledger
    server.delete(&format!("/v1/datasets/{first}")).await.ok(200);
    let again = upload(HOSPITAL).await;
    assert_eq!(kind(&server.refused(&again, plain(&["age", "race"])).await), "composition-violated");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_incompatible_jobs_at_once_make_one_release() {
    let server = Server::start_with(|config| config.workers = 4).await;
    let dataset = server.dataset(HOSPITAL).await;
    let (a, b) = tokio::join!(server.job(&dataset, hospital()), server.job(&dataset, plain(&["age", "icd9", "race"])));
    let mut ends = [text(&a.ok(200)["status"]), text(&b.ok(200)["status"])];
    ends.sort_unstable();
    assert_eq!(ends, ["refused", "succeeded"]);
    assert_eq!(server.items("/v1/releases").await.len(), 1);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn series_lists_disclosures_and_blocked_pairs() {
    let server = Server::start().await;
    let missing = server.get("/v1/series/people").await;
    assert_eq!((missing.status, kind(&missing.json())), (404, "not-found"));
    let dataset = server.dataset_of("people", HOSPITAL).await;
    let empty = server.get("/v1/series/people").await.ok(200);
    assert_eq!((&empty["datasets"], &empty["disclosures"]), (&json!([dataset]), &json!([])));

    let released = server.publish(&dataset, json!({"method": hospital_method(), "hold": true})).await;
    let series = server.get("/v1/series/people").await.ok(200);
    let disclosures = series["disclosures"].as_array().unwrap();
    assert!(disclosures.iter().all(|of| of["status"] == "reserved" && of["release"] == released["id"]));
    let reason = json!({"reason": "as agreed"});
    server.post(&format!("/v1/releases/{}/approve", text(&released["id"])), &reason).await.ok(200);

    let series = server.get("/v1/series/people").await.ok(200);
    let manifest = server.get(&format!("/v1/releases/{}", text(&released["id"]))).await.ok(200);
    let disclosures = series["disclosures"].as_array().unwrap();
    for (disclosure, table) in disclosures.iter().zip(manifest["tables"].as_array().unwrap()) {
        assert_eq!((&disclosure["table"], &disclosure["protection"]), (&table["name"], &table["protection"]));
        assert_eq!((&disclosure["guards"], &disclosure["status"]), (&table["guards"], &json!("published")));
    }
    // rules that others imply stand with these
    let protection = series["active_rules"].as_array().unwrap();
    assert!(protection.iter().any(|rule| rule["pointer"] == "/method/rules/0" && rule["sensitive"] == json!(["race"])));
    let by = |name: &str| disclosures.iter().find(|of| of["table"] == name).unwrap();
    for edge in series["graph"].as_array().unwrap() {
        let [a, b] = ["a", "b"].map(|end| disclosures.iter().find(|of| of["id"] == edge[end]).unwrap());
        let shared = edge["shared"].as_array().unwrap();
        assert!(!shared.is_empty());
        for name in shared {
            assert!([a, b].iter().all(|of| of["attributes"].as_array().unwrap().contains(name)));
        }
    }
    assert_eq!(by("t1")["cuts"], json!({}));
    // what the list says is what a plan says
    let names: Vec<String> = series["attributes"].as_array().unwrap().iter().map(|of| text(&of["name"])).collect();
    let refused = series["refused_pairs"].as_array().unwrap();
    let mut judged = 0;
    for (at, first) in names.iter().enumerate() {
        for second in &names[at + 1..] {
            let planned = plan(&server, &dataset, plain(&[first, second])).await;
            let pair = [json!([first, second]), json!([second, first])];
            let is_refused = refused.iter().any(|refused| pair.contains(refused));
            assert_eq!(planned["composition"]["verdict"] == "violated", is_refused, "{first}, {second}");
            judged += usize::from(is_refused);
        }
    }
    assert!(judged > 0 && judged == refused.len());
    server.stop().await;
}
