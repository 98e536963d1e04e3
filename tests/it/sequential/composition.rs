//! Sequential releases among others: what may not stand beside them, jobs that race, and a service that is killed.

use serde_json::{Value, json};

use super::releases::{PEOPLE, TOWNS, anonymity, new, of, plain, sequential};
use crate::support::harness::{Client, Process, Server, kind, stored, text};

#[tokio::test(flavor = "multi_thread")]
async fn joined_release_tolerates_no_other_join() {
    let server = Server::start().await;
    let dataset = server.dataset(TOWNS).await;
    let first = server.publish(&dataset, plain(&["job", "disease"])).await;
    let asked = json!([anonymity(&[new("job"), of(&first, "disease")], &[new("#key")], 2)]);
    let second = server.publish(&dataset, sequential(&["name", "job"], &[&first], None, asked)).await;
    // it shares nothing with the second, but a join of the two includes it
    let problem = server.refused(&dataset, plain(&["disease", "town"])).await;
    assert_eq!((kind(&problem), &problem["release"]), ("composition-violated", &first["id"]));
    let mut planned = plain(&["disease", "town"]);
    planned["dataset"] = dataset.clone().into();
    let plan = server.post("/v1/plans", &planned).await.ok(200);
    assert_eq!(plan["composition"]["verdict"], "violated");
    // made against both it may
    let own = json!([anonymity(&[new("town")], &[new("#key")], 2)]);
    let mut third = sequential(&["disease", "town"], &[&second, &first], None, own);
    third["attributes"] = json!({"town": {"taxonomy": {"*": ["A", "B"]}}});
    server.publish(&dataset, third).await;
    server.stop().await;
}

/// 600 people, of whose zip code the region is a function.
fn regions() -> String {
    let row = |row: u32| format!("{},z{:02},r{},d{}\n", row % 7, row % 12, row % 12 / 3, row * 31 % 11);
    format!("age,zip,region,disease\n{}", (0..600).map(row).collect::<String>())
}

#[tokio::test(flavor = "multi_thread")]
async fn releases_that_a_dependency_joins_are_refused() {
    let server = Server::start().await;
    let zips = json!({"any": (0..12).map(|zip| format!("z{zip:02}")).collect::<Vec<_>>()});
    let document = |publish: &[&str], earlier: &Value, x: &str| {
        let asked = json!([anonymity(&[new(x)], &[new("#key")], 10)]);
        let mut document = sequential(publish, &[earlier], None, asked);
        document["attributes"] = json!({});
        if x == "zip" {
            document["attributes"] = json!({"zip": {"taxonomy": zips}});
        }
        document
    };
    let dataset = server.dataset(regions()).await;
    let earlier = server.publish(&dataset, plain(&["region", "disease"])).await;
    // an adversary who knows the region of a zip code joins tables without a shared attribute
    for (publish, x) in [(&["zip", "age"][..], "zip"), (&["zip", "age"], "age")] {
        let fault = server.refused(&dataset, document(publish, &earlier, x)).await["errors"][0].clone();
        assert_eq!((kind(&fault), &fault["pointer"]), ("bad-columns", &json!("/method/against/0")), "{fault}");
        assert_eq!(fault["attribute"], "region");
    }
    // with the region beside a zip code that is no coarser, they share all that joins them
    server.publish(&dataset, document(&["zip", "region", "age"], &earlier, "age")).await;

    // against none: what is linked shares an attribute, whatever its name
    server.stop().await;
    let server = Server::start().await;
    let other = server.dataset(regions()).await;
    server.publish(&other, plain(&["region", "disease"])).await;
    let mut alone = document(&["zip", "age"], &earlier, "age");
    alone["method"]["against"] = json!([]);
    let problem = server.refused(&other, alone).await;
    assert_eq!(kind(&problem), "composition-violated");
    assert!(text(&problem["detail"]).contains("dependencies"), "{problem}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn releases_that_a_link_ties_are_not_joined() {
    let server = Server::start().await;
    // the first release declares what the data do not show; the new one has no attribute of the dependency
    for tied in ["region", "disease"] {
        let server = Server::start().await;
        let dataset = server.dataset(regions()).await;
        let mut first = plain(&["zip", "age"]);
        first["method"]["functional_dependencies"] = json!([{"determinant": ["zip"], "dependent": [tied]}]);
        let first = server.publish(&dataset, first).await;
        let second = server.publish(&dataset, plain(&[tied])).await;
        let asked = json!([anonymity(&[new("age")], &[new("#key")], 10)]);
        let mut document = sequential(&["age"], &[&first, &second], None, asked);
        document["attributes"] = json!({});
        let fault = server.refused(&dataset, document).await["errors"][0].clone();
        assert_eq!((kind(&fault), &fault["pointer"]), ("bad-columns", &json!("/method/against/1")), "{fault:#}");
        assert_eq!(fault["dependency"], json!({"determinant": ["zip"], "dependent": [tied]}), "{fault:#}");
        assert_eq!(fault["release"], first["id"], "{fault:#}");
        assert!(text(&fault["detail"]).contains(&format!("zip determines {tied}")), "{fault:#}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn chain_from_counted_to_generalized_is_refused() {
    let server = Server::start().await;
    let dataset = server.dataset(regions()).await;
    let mut first = plain(&["zip"]);
    first["method"]["functional_dependencies"] = json!([{"determinant": ["disease"], "dependent": ["region"]}, {"determinant": ["age"], "dependent": ["region"]}]);
    let first = server.publish(&dataset, first).await;
    let asked = |x: &[&str], y: &str| {
        let x: Vec<String> = x.iter().map(|name| new(name)).collect();
        json!([anonymity(&x, &[new(y)], 2)])
    };
    let document = |asked: Value| {
        let mut document = sequential(&["age", "disease"], &[], None, asked);
        document["attributes"] = json!({});
        document
    };
    let fault = server.refused(&dataset, document(asked(&["age"], "disease"))).await["errors"][0].clone();
    assert_eq!(
        (kind(&fault), &fault["pointer"]),
        ("guarantee-unsupported", &json!("/method/requirements/0")),
        "{fault:#}"
    );
    assert_eq!(fault["dependency"]["dependent"], json!(["region"]), "{fault:#}");
    assert_eq!(fault["release"], first["id"], "{fault:#}");
    // rows are counted, which no dependency ties; who knows an age knows which diseases go with it
    let fault = server.refused(&dataset, document(asked(&["age"], "#key"))).await["errors"][0].clone();
    assert_eq!((kind(&fault), &fault["attributes"]), ("guarantee-unsupported", &json!(["new.disease"])), "{fault:#}");
    server.publish(&dataset, document(asked(&["age", "disease"], "#key"))).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_dependency_of_a_series_ties_no_join() {
    let server = Server::start().await;
    let dataset = server.dataset(regions()).await;
    // a region that no release publishes, and no other dependency names, ties nothing
    let mut first = plain(&["zip"]);
    first["method"]["functional_dependencies"] = json!([{"determinant": ["zip", "disease"], "dependent": ["region"]}]);
    let first = server.publish(&dataset, first).await;
    let second = server.publish(&dataset, plain(&["disease"])).await;
    let asked = json!([anonymity(&[new("age")], &[new("#key")], 10)]);
    let mut document = sequential(&["age"], &[&first, &second], None, asked);
    document["attributes"] = json!({});
    server.publish(&dataset, document).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn exclusions_of_an_earlier_release_are_kept() {
    let server = Server::start().await;
    let dataset = server.dataset(TOWNS).await;
    let earlier = server.publish(&dataset, plain(&["job", "disease"])).await;
    let asked = json!([anonymity(&[new("job"), of(&earlier, "disease")], &[new("#key")], 2)]);
    let mut second = sequential(&["name", "job"], &[&earlier], None, asked);
    let disease = of(&earlier, "disease");
    second["method"]["exclusions"] = json!([{"left": {"new.name": "Alice"}, "right": {disease.as_str(): "HIV"}}]);
    let second = server.publish(&dataset, second).await;
    let own = json!([anonymity(&[new("town")], &[new("#key")], 2)]);
    let mut third = sequential(&["class", "town"], &[&earlier, &second], None, own);
    third["attributes"] = json!({"town": {"taxonomy": {"*": ["A", "B"]}}});
    let third = server.publish(&dataset, third).await;
    let kept = &third["method_details"]["exclusions"];
    assert_eq!(kept.as_array().map(Vec::len), Some(1), "{third:#}");
    // a fourth takes the same exclusion from both
    let own = json!([anonymity(&[new("town")], &[new("#key")], 2)]);
    let mut fourth = sequential(&["town"], &[&earlier, &second, &third], None, own);
    fourth["attributes"] = json!({"town": {"taxonomy": {"*": ["A", "B"]}}});
    server.publish(&dataset, fourth).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn table_without_rows_is_not_joined() {
    let server = Server::start().await;
    let dataset = server.dataset_of("s", PEOPLE).await;
    let table = json!({"name": "survey", "attributes": ["job", "disease"], "protection": "plain"});
    let external =
        server.post("/v1/series/s/disclosures", &json!({"reason": "printed", "tables": [table]})).await.ok(201);
    let external = &external["disclosures"][0];
    let asked = json!([anonymity(&[new("job")], &[new("#key")], 2)]);
    let fault = server.job(&dataset, sequential(&["name", "job"], &[external], None, asked)).await;
    let fault = fault.fault("/method/against/0", "bad-columns");
    assert!(text(&fault["detail"]).contains("without a dataset"), "{fault}");
    // other names of an attribute are the attribute
    let statement = json!({"reason": "renamed", "tables": [{"name": "old", "attributes": ["work"], "protection": "plain"}],
        "aliases": {"work": "job"}});
    server.post("/v1/series/s/disclosures", &statement).await.ok(201);
    let series = server.get("/v1/series/s").await.ok(200);
    assert_eq!(series["graph"][0]["shared"], json!(["job"]), "{series:#}");
    server.stop().await;
}

/// A release that has come to its end, whichever it is.
async fn ended(client: &Client, dataset: &str, mut document: Value) -> Value {
    document["dataset"] = dataset.into();
    client.post("/v1/jobs?wait=60", &document).await.json()
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_job_is_checked_with_the_first() {
    let server = Server::start().await;
    let mut first_came = [0, 0];
    for round in 0..8 {
        let server = Server::start().await;
        let dataset = server.dataset(TOWNS).await;
        let earlier = server.publish(&dataset, plain(&["job", "disease"])).await;
        let asked = json!([anonymity(&[new("job"), of(&earlier, "disease")], &[new("#key")], 2)]);
        let sequel = sequential(&["name", "job"], &[&earlier], None, asked);
        // one that shares an attribute with the sequel, and one with what it is made against alone
        let other = plain(if round % 2 == 0 { &["job", "town"] } else { &["disease", "town"] });
        let jobs = if round % 4 < 2 {
            tokio::join!(ended(&server, &dataset, sequel), ended(&server, &dataset, other))
        } else {
            let (other, sequel) = tokio::join!(ended(&server, &dataset, other), ended(&server, &dataset, sequel));
            (sequel, other)
        };
        let [sequel, other] = [jobs.0, jobs.1];
        let (won, lost) = match (sequel["status"].as_str(), other["status"].as_str()) {
            (Some("succeeded"), Some("refused")) => (0, other),
            (Some("refused"), Some("succeeded")) => (1, sequel),
            _ => panic!("{sequel:#} {other:#}"),
        };
        first_came[won] += 1;
        assert_eq!(kind(&lost["problem"]), "composition-violated", "{lost:#}");
    }
    println!("{first_came:?}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_service_finishes_its_sequel_once() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let mut process = Process::serve(&data, "info");
    let row = |row: u32| {
        let mixed = row.wrapping_mul(2_654_435_761) >> 8;
        format!("{},{},{},d{}\n", mixed % 90, mixed / 90 % 500, mixed / 7 % 900, mixed / 11 % 40)
    };
    let csv: String = (0..60_000).map(row).collect();
    let dataset = process.dataset(format!("age,pay,zip,disease\n{csv}")).await;
    let earlier = process.publish(&dataset, plain(&["age", "disease"])).await;
    let asked = json!([anonymity(&[new("age"), new("zip"), of(&earlier, "disease")], &[new("#key")], 20)]);
    let mut document = sequential(&["age", "pay", "zip"], &[&earlier], None, asked);
    document["attributes"] = json!({});
    document["dataset"] = dataset.into();
    let answer = process.post("/v1/jobs", &document).await;
    answer.ok(202);
    let path = answer.header("location").to_owned();
    loop {
        let job = process.get(&path).await.ok(200);
        match text(&job["status"]).as_str() {
            "queued" => tokio::task::yield_now().await,
            "running" => break,
            _ => panic!("too fast to be caught: {job:#}"),
        }
    }
    process.kill();
    process = Process::serve(&data, "info");
    let job = process.get(&format!("{path}?wait=60")).await.ok(200);
    assert_eq!((&job["status"], &job["attempt"]), (&json!("succeeded"), &json!(2)), "{job:#}");
    let release = process.get(&format!("/v1/releases/{}", text(&job["release"]))).await.ok(200);
    assert_eq!(release["verification"]["verified"], true);
    assert_eq!(release["method_details"]["against"], json!([earlier["id"]]));
    assert_eq!(process.items("/v1/releases").await.len(), 2);
    assert_eq!(stored(&data, "disclosures").await, 2);
    let csv = process.part(&release, "t1", "rows").await;
    assert_eq!(csv.lines().count(), 60_001);
    process.kill();
}
