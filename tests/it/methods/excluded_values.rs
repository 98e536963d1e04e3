//! Excluded values: guarantees hold against insiders.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::harness::{Server, kind, without_remedies};

/// 240 visits; a third has no second diagnosis, a tenth does not say, and the others have one of twelve.
fn visits() -> String {
    let second = |i: u32| match (i % 3, i % 10) {
        (0, _) => "none".to_owned(),
        (_, 7) => String::new(),
        _ => format!("d{:02}", i * 7 / 3 % 12),
    };
    let row = |i: u32| format!("{},{},{}\n", 20 + i % 60, ["f", "m"][(i / 7 % 2) as usize], second(i));
    "age,sex,dx02\n".to_owned() + &(0..240).map(row).collect::<String>()
}

fn anatomy(guarantee: &Value, excludable: Value) -> Value {
    json!({"attributes": {"age": {"publish": true}, "sex": {"publish": true}, "dx02": {"excludable": excludable}},
        "method": {"type": "anatomy", "sensitive": "dx02", "guarantee": guarantee}})
}

/// Per bucket, how often each value occurs; a missing one is empty.
async fn buckets(server: &Server, release: &Value) -> Vec<BTreeMap<String, u64>> {
    let csv = server.part(release, "t1", "sa").await;
    let mut buckets: BTreeMap<u32, BTreeMap<String, u64>> = BTreeMap::new();
    for row in csv::Reader::from_reader(csv.as_bytes()).records() {
        let row = row.unwrap();
        *buckets.entry(row[0].parse().unwrap()).or_default().entry(row[1].to_owned()).or_default() += 1;
    }
    buckets.into_values().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_bucket_protects_against_insiders() {
    let mut server = Server::start().await;
    for guarantee in [
        json!({"type": "l_diversity", "l": 2}),
        json!({"type": "distinct_l_diversity", "l": 2}),
        json!({"type": "entropy_l_diversity", "l": 2}),
        json!({"type": "recursive_l_diversity", "c": 2, "l": 2}),
        json!({"type": "alpha_k", "alpha": "0.5", "k": 2}),
    ] {
        // only one release may part the same diagnoses
        server = server.anew().await;
        let dataset = server.dataset(visits()).await;
        let declared = json!(["none", null]);
        let release = server.publish(&dataset, anatomy(&guarantee, declared.clone())).await;
        assert_eq!(release["excludable"], json!({"dx02": declared}), "{guarantee}");
        let buckets = buckets(&server, &release).await;
        assert!(buckets.len() > 50, "{guarantee}: {}", buckets.len());
        let mut worst = 0.0_f64;
        for bucket in &buckets {
            let size: u64 = bucket.values().sum();
            let is_excluded = |value: &str| value.is_empty() || value == "none";
            let left: Vec<u64> =
                bucket.iter().filter(|(value, _)| !is_excluded(value)).map(|(_, count)| *count).collect();
            let rest: u64 = left.iter().sum();
            assert!(left.iter().all(|count| 2 * count <= rest) && rest > 0, "{guarantee}: {bucket:?}");
            assert!(
                bucket.iter().all(|(value, count)| !is_excluded(value) || 2 * count <= size),
                "{guarantee}: {bucket:?}"
            );
            let shares =
                bucket.iter().map(|(value, &count)| count as f64 / if is_excluded(value) { size } else { rest } as f64);
            worst = shares.fold(worst, f64::max);
        }
        // what is said to be achieved is what the guarantee bounds
        let declared = &release["rules"][0]["achieved"]["worst_posterior"];
        let declared = declared["count"].as_f64().unwrap() / declared["of"].as_f64().unwrap();
        assert!((worst - declared).abs() < 1e-12 && declared <= 0.5, "{guarantee}: {worst}, not {declared}");
    }
    // without excluded values some bucket reveals a value to an insider
    let server = server.anew().await;
    let dataset = server.dataset(visits()).await;
    let release = server.publish(&dataset, anatomy(&json!({"type": "l_diversity", "l": 2}), json!([]))).await;
    assert!(release.get("excludable").is_none(), "{release:#}");
    let buckets = buckets(&server, &release).await;
    assert!(buckets.iter().any(|bucket| bucket.len() == 2 && bucket.contains_key("none")));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn excluded_values_lower_the_largest_l() {
    let server = Server::start().await;
    // of 100 rows 30 say nothing; of the others 24 have one value
    let row = |i: u32| match i {
        0..30 => "none".to_owned(),
        30..54 => "a".to_owned(),
        _ => format!("b{}", i % 12),
    };
    let csv = "age,dx\n".to_owned() + &(0..100).map(|i| format!("{},{}\n", i % 37, row(i))).collect::<String>();
    let dataset = server.dataset(csv).await;
    let document = |l: u64, excludable: Value| {
        json!({"dataset": dataset, "attributes": {"age": {"publish": true}, "dx": {"excludable": excludable}},
            "method": {"type": "anatomy", "sensitive": "dx", "guarantee": {"type": "l_diversity", "l": l}}})
    };
    let plan = |document: Value| {
        let server = &server;
        async move { server.post("/v1/plans", &document).await.ok(200) }
    };
    let planned_rule = plan(document(2, json!(["none"]))).await;
    assert_eq!(
        (&planned_rule["feasible"], &planned_rule["rules"][0]["largest_l"]),
        (&json!(true), &json!(2)),
        "{planned_rule:#}"
    );
    // 24 of 100 are less than a third, but not of the 70 that are left
    let planned_rule = plan(document(3, json!(["none"]))).await;
    assert_eq!(
        (&planned_rule["feasible"], kind(&planned_rule["problems"][0]["errors"][0])),
        (&json!(false), "rule-ineligible")
    );
    assert_eq!(planned_rule["problems"][0]["errors"][0]["largest_l"], 2);
    let problem = server.refused(&dataset, document(3, json!(["none"]))).await;
    assert_eq!(kind(&problem["errors"][0]), "rule-ineligible", "{problem:#}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_in_excluded_values_have_pointers() {
    let server = Server::start().await;
    let dataset = server.dataset(visits()).await;
    let diverse = json!({"type": "l_diversity", "l": 2});
    let pointer = "/attributes/dx02/excludable";
    for (values, place) in [
        (json!("none"), String::new()),
        (json!(["none", "none"]), "/1".to_owned()),
        (json!([{"value": "none"}]), "/0".to_owned()),
        (json!([1.5]), "/0".to_owned()),
        (json!((0..1001).collect::<Vec<_>>()), String::new()),
    ] {
        let answer = server.job(&dataset, anatomy(&diverse, values)).await;
        answer.fault(&format!("{pointer}{place}"), "parameter-range");
    }
    // a distance says nothing of what is left
    for guarantee in [
        json!({"type": "t_closeness", "t": "0.3"}),
        json!({"type": "rho", "rho1": "0.1", "rho2": "0.4"}),
        json!({"type": "delta", "distance": "max", "b": "0.2"}),
    ] {
        let answer = server.job(&dataset, anatomy(&guarantee, json!(["none"]))).await;
        answer.fault(pointer, "guarantee-unsupported");
    }
    let mut joint = anatomy(&diverse, json!(["none"]));
    joint["method"] = json!({"type": "versatile", "rules": ["age -> (dx02 & sex)"], "default_guarantee": diverse});
    server.job(&dataset, joint).await.fault(pointer, "guarantee-unsupported");

    // a value that no row has is only known once rows are read, and named by its place
    let document = anatomy(&diverse, json!(["none", null, "unheard of"]));
    let problem = server.refused(&dataset, document.clone()).await;
    let fault = &problem["errors"][0];
    assert_eq!((kind(fault), &fault["pointer"]), ("parameter-range", &json!(format!("{pointer}/2"))), "{problem:#}");
    assert!(!problem.to_string().contains("unheard"), "{problem:#}");
    let mut planned = document;
    planned["dataset"] = dataset.as_str().into();
    let planned_rule = server.post("/v1/plans", &planned).await.ok(200);
    assert_eq!(planned_rule["feasible"], false);
    assert_eq!(without_remedies(&planned_rule["problems"][0]["errors"][0]), without_remedies(fault));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn undeclared_missing_values_are_a_warning() {
    let server = Server::start().await;
    let dataset = server.dataset(visits()).await;
    let mut document = anatomy(&json!({"type": "l_diversity", "l": 2}), json!(["none"]));
    document["dataset"] = dataset.as_str().into();
    let plan = server.post("/v1/plans", &document).await.ok(200);
    let warned = |plan: &Value| {
        let warnings = plan["warnings"].as_array().unwrap();
        warnings.iter().any(|w| w["type"] == "undeclared-missing" && w["pointer"] == "/attributes/dx02")
    };
    assert!(warned(&plan), "{plan:#}");
    document["attributes"]["dx02"]["excludable"] = json!([null, "none"]);
    let plan = server.post("/v1/plans", &document).await.ok(200);
    assert!(!warned(&plan) && plan["feasible"] == true, "{plan:#}");
    server.stop().await;
}

/// Who rules out that there is a second diagnosis rules out the groups of diagnoses that have none, where a group determines the diagnosis.
#[tokio::test(flavor = "multi_thread")]
async fn determinants_of_excluded_values_are_excluded() {
    let server = Server::start().await;
    // 20 diagnoses of 12 rows each, two of them of the group that says nothing
    let row = |i: u32| {
        let code = i % 20;
        let group = if code < 2 { "none".to_owned() } else { format!("g{}", code % 6) };
        format!("{},{},k{code:02},{group}\n", 20 + i / 20, i * 7 % 13 % 2)
    };
    let dataset = server.dataset("age,sex,code,group\n".to_owned() + &(0..480).map(row).collect::<String>()).await;
    let document = |code: Value| {
        json!({"attributes": {"age": {"publish": true}, "sex": {"publish": true}, "group": {"excludable": ["none"]},
                "code": {"publish": true, "excludable": code}},
            "method": {"type": "versatile", "rules": ["age -> group"], "default_guarantee": {"type": "l_diversity", "l": 2}}})
    };
    let refused = server.refused(&dataset, document(json!(["k00"]))).await;
    let fault = &refused["errors"][0];
    assert_eq!((kind(fault), &fault["pointer"]), ("guarantee-unsupported", &json!("/method/rules/0")), "{refused:#}");
    assert_eq!(fault["dependency"], json!({"determinant": ["code"], "dependent": ["group"]}));
    assert!(!refused.to_string().contains("k01"), "{refused:#}");
    let release = server.publish(&dataset, document(json!(["k00", "k01"]))).await;
    assert_eq!(
        (&release["excludable"]["code"], &release["verification"]["verified"]),
        (&json!(["k00", "k01"]), &json!(true))
    );
    server.stop().await;
}

/// The ledger knows the excluded values: a release whose buckets do not reckon with it cannot stand in for one that does, and the
/// same values in another order are the same job.
#[tokio::test(flavor = "multi_thread")]
async fn excluded_values_are_part_of_the_job() {
    let server = Server::start().await;
    let dataset = server.dataset(visits()).await;
    let diverse = json!({"type": "l_diversity", "l": 2});
    let first = server.job(&dataset, anatomy(&diverse, json!(["none", null]))).await.ok(200);
    let again = server.job(&dataset, anatomy(&diverse, json!([null, "none"]))).await.ok(200);
    assert_eq!((&again["release"], &again["reused"]), (&first["release"], &json!(true)));
    let other = server.refused(&dataset, anatomy(&diverse, json!(["none"]))).await;
    assert_eq!(kind(&other), "composition-violated");
    // a rule under which as much is ruled out leans on the earlier buckets; one under which other values are does not
    let rule = |excludable: Value| {
        json!({"dataset": dataset, "attributes": {"age": {"publish": true}, "dx02": {"excludable": excludable}}, "unlisted": "drop",
            "schema": [{"attributes": ["age"]}],
            "method": {"type": "versatile", "rules": ["age -> dx02"], "default_guarantee": diverse}})
    };
    for (excludable, verdict) in [
        (json!(["none", null]), "safe"),
        (json!([]), "safe"),
        (json!([null]), "violated"),
        (json!(["none", null, "d00"]), "violated"),
    ] {
        let plan = server.post("/v1/plans", &rule(excludable.clone())).await.ok(200);
        assert_eq!(plan["composition"]["verdict"], verdict, "{excludable}: {plan:#}");
    }
    server.stop().await;
}
