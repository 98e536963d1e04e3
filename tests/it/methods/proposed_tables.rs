//! Proposed tables, judged by a plan: those of the paper, faults in them, and what they would do in vain.

use serde_json::{Value, json};

use crate::support::harness::{HOSPITAL, Server, hospital_method, kind, text, versatile};

fn table(attributes: &[&str], sensitive: Option<&str>) -> Value {
    json!({"attributes": attributes, "sensitive": sensitive})
}

async fn judged(server: &Server, dataset: &str, schema: Value) -> Value {
    let document = json!({"dataset": dataset, "method": hospital_method(), "schema": schema});
    server.post("/v1/plans", &document).await.ok(200)
}

fn warnings(plan: &Value) -> Vec<(&str, &str)> {
    let warnings = plan["warnings"].as_array().unwrap().iter();
    warnings
        .map(|warning| (warning["type"].as_str().unwrap(), warning["pointer"].as_str().unwrap_or_default()))
        .filter(|(kind, _)| *kind != "identity-content-only")
        .collect()
}

/// Tables 2, 3 and 4: every rule of the first is broken, none of the second, all but one of the third.
#[tokio::test(flavor = "multi_thread")]
async fn the_tables_of_the_paper_are_judged() {
    let server = Server::start().await;
    let dataset = server.dataset(HOSPITAL).await;

    let plan = judged(
        &server,
        &dataset,
        json!([table(&["hospital", "age", "gender", "icd9"], None), table(&["zipcode", "race"], Some("zipcode"))]),
    )
    .await;
    assert_eq!((&plan["feasible"], &plan["problems"]), (&json!(true), &json!([])), "{plan:#}");
    let held: Vec<&Value> = plan["rules"].as_array().unwrap().iter().map(|rule| &rule["enforced_by"]).collect();
    let unreachable = json!({"unreachable": true});
    assert_eq!(held, [&unreachable, &unreachable, &json!({"guardian": "t2", "known": ["race"]})]);
    assert_eq!(
        plan["tables"],
        json!([
            {"name": "t1", "kind": "marginal", "protection": "plain",
                "attributes": ["hospital", "age", "gender", "icd9"], "sensitive": null},
            {"name": "t2", "kind": "bucketized", "protection": "guarding",
                "attributes": ["zipcode", "race"], "sensitive": ["zipcode"]}])
    );
    assert_eq!(warnings(&plan), []);

    // three tables, each of which keeps its rule by itself
    let second = json!([
        table(&["age", "icd9", "race"], Some("race")),
        table(&["gender", "icd9", "zipcode"], Some("zipcode")),
        table(&["hospital", "race", "zipcode"], Some("zipcode"))
    ]);
    let plan = judged(&server, &dataset, second).await;
    assert_eq!(plan["feasible"], false);
    let broken = |rule: usize| (&plan["rules"][rule]["violated_by"], &plan["rules"][rule]["paths"]);
    assert_eq!(broken(0), (&json!(["age", "icd9"]), &json!([["t1", "t2", "t3"], ["t2", "t3"]])));
    assert_eq!(broken(1), (&json!(["gender", "icd9"]), &json!([["t2", "t1", "t3"], ["t1", "t3"]])));
    assert_eq!(broken(2), (&json!(["hospital", "race"]), &json!([["t3", "t1", "t2"], ["t1", "t2"]])));
    assert!(plan["rules"].as_array().unwrap().iter().all(|rule| rule["enforced_by"].is_null()));
    let problem = &plan["problems"][0];
    assert_eq!(kind(problem), "invalid-specification");
    let errors = problem["errors"].as_array().unwrap();
    let places: Vec<_> = errors.iter().map(|fault| (kind(fault), fault["pointer"].as_str().unwrap())).collect();
    assert_eq!(
        places,
        [("not-gnf", "/method/rules/0"), ("not-gnf", "/method/rules/1"), ("not-gnf", "/method/rules/2")]
    );
    assert_eq!((&errors[0]["violated_by"], &errors[0]["paths"]), broken(0));

    let fourth = json!([
        table(&["hospital", "gender", "icd9"], Some("hospital")),
        table(&["hospital", "age", "zipcode"], Some("zipcode")),
        table(&["hospital", "age", "gender", "race"], Some("race")),
        table(&["age", "zipcode"], None)
    ]);
    let plan = judged(&server, &dataset, fourth).await;
    assert_eq!(plan["feasible"], false);
    let held = &plan["rules"][0]["enforced_by"];
    assert_eq!(held, &json!({"guardian": "t3", "known": ["hospital", "age", "gender"]}));
    assert_eq!(plan["rules"][1]["violated_by"], json!(["gender", "icd9"]));
    // around the table that protects the zip code
    assert_eq!(plan["rules"][1]["paths"], json!([["t3", "t4"], ["t1", "t2", "t4"]]));
    assert_eq!(plan["rules"][2]["paths"], json!([["t2", "t4"], ["t3", "t4"]]));
    assert_eq!(plan["problems"][0]["errors"].as_array().unwrap().len(), 2);
    assert!(warnings(&plan).contains(&("idle-bucketization", "/schema/0/sensitive")), "{plan:#}");
    assert_eq!(plan["tables"][0]["protection"], "exclusive");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn useless_and_missing_tables_are_warnings() {
    let server = Server::start().await;
    let dataset = server.dataset(HOSPITAL).await;
    // as plans list tables
    let tables = json!([
        {"attributes": ["race", "zipcode"], "sensitive": ["zipcode"]},
        table(&["gender", "age"], Some("age")),
        table(&["hospital"], None)
    ]);
    let plan = judged(&server, &dataset, tables).await;
    assert_eq!(plan["feasible"], true, "{plan:#}");
    assert_eq!(warnings(&plan), [("idle-bucketization", "/schema/1/sensitive"), ("attribute-in-no-table", "/schema")]);
    assert!(plan["warnings"][1]["detail"].as_str().unwrap().contains("icd9"), "{plan:#}");

    // three tables in a ring, and buckets that part what another table shows
    let ring =
        json!([table(&["hospital", "age"], None), table(&["age", "icd9"], None), table(&["icd9", "hospital"], None)]);
    let mixed = json!([table(&["hospital", "race", "zipcode"], Some("zipcode")), table(&["zipcode", "race"], None)]);
    for schema in [ring, mixed] {
        let document =
            json!({"dataset": dataset, "unlisted": "drop", "method": versatile(&["-> gender"]), "schema": schema});
        let plan = server.post("/v1/plans", &document).await.ok(200);
        assert!(warnings(&plan).contains(&("not-decomposable", "/schema")), "{plan:#}");
    }

    // the strongest guarantee of all rules into an attribute, and an implied rule breaks with the one that implies it
    let mut method = versatile(&["gender -> zipcode", "gender, race -> zipcode"]);
    method["rules"][0] = json!({"quasi_identifiers": ["gender"], "sensitive": ["zipcode"],
        "guarantee": {"type": "l_diversity", "l": 3}});
    let mut document = json!({"dataset": dataset, "unlisted": "drop", "method": method,
        "schema": [table(&["gender", "race", "zipcode"], Some("zipcode"))]});
    let plan = server.post("/v1/plans", &document).await.ok(200);
    assert_eq!(plan["feasible"], true, "{plan:#}");
    document["schema"][0]["sensitive"] = Value::Null;
    let plan = server.post("/v1/plans", &document).await.ok(200);
    assert_eq!(plan["problems"][0]["errors"].as_array().unwrap().len(), 2, "{plan:#}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_fault_of_a_schema_has_its_place() {
    let server = Server::start().await;
    let dataset = server.dataset(HOSPITAL).await;
    let tables = json!([
        {"attributes": ["age", "nobody"]},
        {"attributes": ["age", "race", "age"]},
        {"attributes": ["age", "race"], "sensitive": "zipcode"},
        {"attributes": []},
        {"sensitive": "age"},
        {"attributes": ["age"], "sensitive": "nobody"},
        {"attributes": ["age", 3], "sensitive": 7, "parts": 2},
        "age"
    ]);
    let document = json!({"dataset": dataset, "method": hospital_method(), "schema": tables});
    let answer = server.post("/v1/plans", &document).await;
    for (pointer, kind) in [
        ("/schema/0/attributes/1", "unknown-attribute"),
        ("/schema/1/attributes/2", "bad-columns"),
        ("/schema/2/sensitive", "bad-columns"),
        ("/schema/3/attributes", "parameter-range"),
        ("/schema/4/attributes", "parameter-range"),
        ("/schema/5/sensitive", "unknown-attribute"),
        ("/schema/6/attributes/1", "parameter-range"),
        ("/schema/6/sensitive", "parameter-range"),
        ("/schema/6/parts", "unknown-field"),
        ("/schema/7", "parameter-range"),
    ] {
        answer.fault(pointer, kind);
    }
    for schema in [json!([]), json!({}), json!(vec![table(&["age"], None); 129])] {
        let document = json!({"dataset": dataset, "method": hospital_method(), "schema": schema});
        server.post("/v1/plans", &document).await.fault("/schema", "parameter-range");
    }
    // a job makes its own tables
    let document = json!({"method": hospital_method(), "schema": [table(&["age"], None)]});
    server.job(&dataset, document).await.fault("/schema", "guarantee-unsupported");
    // an attribute that only the schema names is published by it; one that is dropped is not
    let mut document = json!({"dataset": dataset, "attributes": {"age": {"drop": true}}, "unlisted": "drop",
        "method": versatile(&["gender -> race"]), "schema": [table(&["age", "icd9"], None)]});
    server.post("/v1/plans", &document).await.fault("/attributes/age/drop", "parameter-range");
    document["attributes"] = json!({});
    // one that nothing names is not made published by a fault
    let mut other = document.clone();
    other["schema"] = json!([{"attributes": ["age"], "sensitive": "zipcode"}]);
    server.post("/v1/plans", &other).await.fault("/schema/0/sensitive", "bad-columns");
    let plan = server.post("/v1/plans", &document).await.ok(200);
    assert_eq!((&plan["feasible"], &plan["tables"][0]["attributes"]), (&json!(true), &json!(["age", "icd9"])));
    server.stop().await;
}

/// Proposed tables are judged beside what was published.
#[tokio::test(flavor = "multi_thread")]
async fn schema_is_checked_with_earlier_releases() {
    let server = Server::start().await;
    let dataset = server.dataset(HOSPITAL).await;
    let release = server.publish(&dataset, json!({"method": hospital_method()})).await;
    let document = json!({"dataset": dataset, "unlisted": "drop", "no_rules_reason": "a marginal",
        "method": {"type": "versatile", "rules": []}, "schema": [table(&["age", "race"], None)]});
    let plan = server.post("/v1/plans", &document).await.ok(200);
    assert_eq!((&plan["feasible"], &plan["composition"]["verdict"]), (&json!(false), &json!("violated")), "{plan:#}");
    assert_eq!(plan["composition"]["against"], json!([release["id"]]));
    assert!(plan["problems"].as_array().unwrap().iter().any(|problem| kind(problem) == "composition-violated"));
    // the very tables of the release are not the release: buckets would be drawn a second time
    let same =
        json!([table(&["hospital", "gender", "zipcode", "race"], Some("zipcode")), table(&["age", "icd9"], None)]);
    let plan = judged(&server, &dataset, same).await;
    assert_eq!(plan["composition"]["verdict"], "violated", "{plan:#}");
    server.stop().await;
}

/// What predicts a protected attribute, and what singles out the rows beside it.
#[tokio::test(flavor = "multi_thread")]
async fn revealing_path_is_reported() {
    let server = Server::start().await;
    let row = |i: u32| {
        let ward = i % 6;
        let dx = if i.is_multiple_of(10) { i / 10 % 4 } else { ward / 2 };
        format!("{},w{ward},d{dx},{},{}\n", 20 + i % 7, i / 2, i / 7 % 2)
    };
    let csv = "age,ward,dx,weight,sex\n".to_owned() + &(0..400).map(row).collect::<String>();
    let dataset = server.dataset(csv).await;
    let all: serde_json::Map<_, _> = ["age", "ward", "dx", "weight", "sex"]
        .iter()
        .map(|name| ((*name).to_owned(), json!({"publish": true})))
        .collect();
    let document = |schema: Value| {
        let mut method = versatile(&["age -> dx"]);
        method["default_guarantee"]["l"] = 2.into();
        json!({"dataset": dataset, "attributes": all, "method": method, "schema": schema})
    };
    let plan = server
        .post("/v1/plans", &document(json!([table(&["ward", "dx", "sex"], None), table(&["age", "weight"], None)])))
        .await
        .ok(200);
    let proxies = plan["proxies"].as_array().unwrap();
    assert_eq!(proxies.len(), 1, "{plan:#}");
    assert_eq!((&proxies[0]["sensitive"], &proxies[0]["attribute"]), (&json!("dx"), &json!("ward")));
    let lambda = proxies[0]["lambda"].as_f64().unwrap();
    assert!((0.8..0.95).contains(&lambda), "{lambda}");
    assert_eq!(plan["exposed_to"], json!([]));
    // with the key of half of the rows, and with a combination that is one
    let second_schema = json!([table(&["ward", "dx", "weight"], None), table(&["age", "sex"], None)]);
    let plan = server.post("/v1/plans", &document(second_schema)).await.ok(200);
    assert_eq!(plan["exposed_to"], json!([{"sensitive": "dx", "attributes": ["ward", "weight"]}]), "{plan:#}");
    // in buckets nothing stands beside it
    let apart = json!([table(&["ward", "dx", "weight", "age"], Some("dx")), table(&["sex"], None)]);
    let plan = server.post("/v1/plans", &document(apart)).await.ok(200);
    assert_eq!(plan["exposed_to"], json!([]), "{plan:#}");
    server.stop().await;
}

/// On Adult, the sampling weight identifies people, education correlates with occupation, and education-num equals education.
#[tokio::test(flavor = "multi_thread")]
async fn the_weights_of_adult_expose_the_occupation() {
    let server = Server::start().await;
    let file = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/data/adult.csv.gz")).unwrap();
    let uploaded = server.upload_with("", file, &[("content-encoding", "gzip")]).await.ok(201);
    let columns = uploaded["columns"].as_array().unwrap();
    let all: serde_json::Map<_, _> =
        columns.iter().map(|column| (text(&column["name"]), json!({"publish": true, "identifier": false}))).collect();
    let method = versatile(&["age -> occupation", "age -> education"]);
    let schema = json!([table(&["occupation", "fnlwgt", "education"], None), table(&["age"], None)]);
    let document = json!({"dataset": uploaded["id"], "attributes": all, "method": method, "schema": schema});
    let plan = server.post("/v1/plans", &document).await.ok(200);
    let exposed = json!([
        {"sensitive": "education", "attributes": ["fnlwgt"]}, {"sensitive": "occupation", "attributes": ["fnlwgt"]}]);
    assert_eq!(plan["exposed_to"], exposed);
    let proxies: Vec<_> = plan["proxies"].as_array().unwrap().iter().collect();
    let of = |sensitive: &str| -> Vec<&str> {
        let of = proxies.iter().filter(|proxy| proxy["sensitive"] == sensitive);
        of.map(|proxy| proxy["attribute"].as_str().unwrap()).collect()
    };
    println!("{proxies:#?}");
    assert!(of("occupation").contains(&"education") && !of("education").contains(&"education-num"));
    server.stop().await;
}
