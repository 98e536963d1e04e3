//! Correlated sensitive attributes share the buckets of one table.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::harness::{Server, kind, text};

/// Whether row `i` is one of a share that follows from no other column.
fn is_exception(i: usize, one_of: u64) -> bool {
    ((i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40).is_multiple_of(one_of)
}

/// 400 visits, distinct for each `turn`; the illness mostly determines the drug.
fn visits(turn: usize) -> String {
    let row = |i: usize| {
        let illness = (i * 7 + i / 11) % 5;
        let drug = if is_exception(i, 10) { (illness + 1) % 5 } else { illness };
        format!("w{},{},i{illness},d{drug}\n", i % 4, 20 + i % 10)
    };
    format!("ward,age,illness,drug\n{}", (turn..turn + 400).map(row).collect::<String>())
}

fn document(algorithm: &str, correlated: &str) -> Value {
    json!({"utility": ["entropy"], "method": {"type": "versatile", "algorithm": algorithm, "correlated": correlated,
        "rules": ["ward, age -> illness", "ward, age -> drug"], "default_guarantee": {"type": "l_diversity", "l": 2}}})
}

/// Per bucket of a part, how often each row occurs.
async fn buckets(server: &Server, release: &Value, part: &str) -> BTreeMap<u32, BTreeMap<Vec<String>, u64>> {
    let mut buckets: BTreeMap<u32, BTreeMap<Vec<String>, u64>> = BTreeMap::new();
    for row in csv::Reader::from_reader(server.part(release, "t1", part).await.as_bytes()).records() {
        let row: Vec<String> = row.unwrap().iter().map(str::to_owned).collect();
        *buckets.entry(row[0].parse().unwrap()).or_default().entry(row[1..].to_vec()).or_default() += 1;
    }
    buckets
}

#[tokio::test(flavor = "multi_thread")]
async fn correlated_attributes_share_buckets() {
    let server = Server::start().await;
    let dataset = server.dataset(visits(0)).await;
    let mut asked = document("gd", "together");
    asked["dataset"] = dataset.as_str().into();
    let plan = server.post("/v1/plans", &asked).await.ok(200);
    assert_eq!((&plan["feasible"], plan["tables"].as_array().unwrap().len()), (&json!(true), 1), "{plan:#}");
    assert_eq!(
        (&plan["tables"][0]["kind"], &plan["tables"][0]["sensitive"]),
        (&json!("bucketized"), &json!(["illness", "drug"]))
    );

    let manifest = server.publish(&dataset, document("gd", "together")).await;
    assert_eq!(
        (&manifest["verification"]["verified"], &manifest["verification"]["linkage"]),
        (&json!(true), &json!("checked"))
    );
    assert_eq!(manifest["method"]["adversary"], "without minimality");
    let [table] = &manifest["tables"].as_array().unwrap()[..] else { panic!("{manifest:#}") };
    let parts: Vec<(&Value, &Value)> =
        table["parts"].as_array().unwrap().iter().map(|part| (&part["name"], &part["attributes"])).collect();
    let (qi, sa1, sa2) = (json!(["ward", "age"]), json!(["illness"]), json!(["drug"]));
    assert_eq!(parts, [(&json!("qi"), &qi), (&json!("sa1"), &sa1), (&json!("sa2"), &sa2)]);
    let guards = table["guards"].as_array().unwrap();
    assert_eq!(guards.len(), 2);
    for (guard, sensitive) in guards.iter().zip([&sa1, &sa2]) {
        assert_eq!(
            (&guard["quasi_identifiers"], &guard["sensitive"], &guard["joint"]),
            (&qi, sensitive, &json!(false))
        );
    }

    let (known, illness, drug) = (
        buckets(&server, &manifest, "qi").await,
        buckets(&server, &manifest, "sa1").await,
        buckets(&server, &manifest, "sa2").await,
    );
    assert!(illness.len() > 150, "{} buckets of 400 rows", illness.len());
    for (part, rule) in [(&illness, 0), (&drug, 1)] {
        let worst = part.values().map(|bucket| {
            let size: u64 = bucket.values().sum();
            let most = *bucket.values().max().unwrap();
            assert!(most * 2 <= size, "{bucket:?}");
            most as f64 / size as f64
        });
        let reported = &manifest["rules"][rule]["achieved"]["worst_posterior"];
        let reported = reported["count"].as_f64().unwrap() / reported["of"].as_f64().unwrap();
        assert!((worst.fold(0.0, f64::max) - reported).abs() < 1e-12);
        assert_eq!(manifest["rules"][rule]["enforced_by"], json!({"guardian": "t1", "known": ["ward", "age"]}));
    }

    // what the reader must expect: every row of a part with every row of the others in its bucket
    let mut expected: BTreeMap<Vec<String>, f64> = BTreeMap::new();
    let mut both = 0.0;
    for (bucket, rows) in &known {
        let size: u64 = rows.values().sum();
        let share = |part: &BTreeMap<u32, BTreeMap<Vec<String>, u64>>, value: &str| {
            part[bucket].get(&vec![value.to_owned()]).copied().unwrap_or(0) as f64 / size as f64
        };
        both += size as f64 * share(&illness, "i0") * share(&drug, "d0");
        for (row, count) in rows {
            for (i, n) in &illness[bucket] {
                for (d, m) in &drug[bucket] {
                    let tuple = [&row[..], i, d].concat();
                    *expected.entry(tuple).or_default() += (count * n * m) as f64 / (400 * size * size) as f64;
                }
            }
        }
    }
    let nats: f64 = expected.values().map(|share| -share * share.ln()).sum();
    let reported = manifest["utility"]["model_entropy_nats"].as_f64().unwrap();
    assert!((nats - reported).abs() < 1e-9, "{nats}, not {reported}");
    let path = format!("/v1/releases/{}/queries", text(&manifest["id"]));
    let ask = |conditions: &[(&str, &str)]| {
        let condition = |(name, value): &(&str, &str)| json!({"attribute": name, "in": [value]});
        let queries = json!({"queries": [{"where": conditions.iter().map(condition).collect::<Vec<_>>()}]});
        let (server, path) = (&server, &path);
        async move { server.post(path, &queries).await.ok(200)["answers"][0].clone() }
    };
    let answer = ask(&[("illness", "i0"), ("drug", "d0")]).await;
    assert!((answer["estimate"].as_f64().unwrap() - both).abs() < 1e-9, "{answer} and not {both}");
    assert_eq!(answer["error_model"], "matching");
    assert_eq!(ask(&[("illness", "i0")]).await["error_model"], "exact");

    // the ledger has both attributes: no release separates them or publishes their determinants
    for rules in [["ward -> illness"], ["age -> drug"]] {
        let again = json!({"unlisted": "drop", "method": {"type": "versatile", "rules": rules,
            "default_guarantee": {"type": "l_diversity", "l": 2}}});
        assert_eq!(kind(&server.refused(&dataset, again).await), "composition-violated");
    }
    let shown = json!({"unlisted": "drop", "attributes": {"age": {"publish": true}, "drug": {"publish": true}},
        "no_rules_reason": "asked for", "method": {"type": "versatile", "rules": []}});
    assert_eq!(kind(&server.refused(&dataset, shown).await), "composition-violated");
    let reused = server.job(&dataset, document("gd", "together")).await.ok(200);
    assert_eq!((&reused["reused"], &reused["release"]), (&json!(true), &manifest["id"]));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn separate_tables_need_a_declaration() {
    let server = Server::start().await;
    let guarding = |manifest: &Value| -> Vec<Vec<Value>> {
        let tables = manifest["tables"].as_array().unwrap().iter().filter(|table| table["protection"] == "guarding");
        tables.map(|table| table["attributes"].as_array().unwrap().clone()).collect()
    };
    let shared = |manifest: &Value| {
        let hiding = guarding(manifest);
        hiding.iter().enumerate().any(|(i, a)| hiding[i + 1..].iter().any(|b| a.iter().any(|name| b.contains(name))))
    };
    let auto = server.dataset(visits(1)).await;
    assert!(!shared(&server.publish(&auto, document("auto", "together")).await));
    let server = server.anew().await;
    let separate = server.dataset(visits(2)).await;
    assert!(shared(&server.publish(&separate, document("gd", "separate")).await));

    let server = server.anew().await;
    let dataset = server.dataset(visits(3)).await;
    let impossible = |problem: &Value| -> Vec<(String, Value)> {
        let faults = problem["errors"].as_array().unwrap().iter();
        faults.map(|fault| (kind(fault).to_owned(), fault["pointer"].clone())).collect()
    };
    // an attribute of the same buckets is unknown to the adversary of the other
    let mut knowing = document("gd", "together");
    knowing["method"]["rules"] = json!(["ward, age -> illness", "age, illness -> drug"]);
    let refused_problem = server.refused(&dataset, knowing.clone()).await;
    assert_eq!(
        impossible(&refused_problem),
        [("rule-impossible".to_owned(), json!("/method/rules/1"))],
        "{refused_problem:#}"
    );
    // a dependency links them whatever is said
    let mut linked = document("gd", "separate");
    linked["method"]["functional_dependencies"] = json!([{"determinant": ["ward", "illness"], "dependent": ["drug"]}]);
    let refused_problem = server.refused(&dataset, linked).await;
    let both = ["/method/rules/0", "/method/rules/1"].map(|at| ("rule-impossible".to_owned(), json!(at)));
    assert_eq!(impossible(&refused_problem), both, "{refused_problem:#}");
    knowing["method"]["correlated"] = "separate".into();
    let manifest = server.publish(&dataset, knowing).await;
    assert_eq!(manifest["verification"]["verified"], true);
    server.stop().await;
}

/// A chain of three correlated attributes shares buckets under any guarantees.
#[tokio::test(flavor = "multi_thread")]
async fn a_chain_of_attributes_shares_its_buckets() {
    let server = Server::start().await;
    let row = |i: usize| {
        let a = (i * 7 + i / 13) % 6;
        let b = if is_exception(i, 9) { (a + 1) % 6 } else { a };
        let c = if is_exception(i + 1_000, 7) { (b + 1) % 6 } else { b };
        format!("{},{},a{a},b{b},c{c}\n", i % 9, i / 9 % 5)
    };
    let dataset = server.dataset("x,y,a,b,c\n".to_owned() + &(0..600).map(row).collect::<String>()).await;
    let document = json!({"method": {"type": "versatile", "algorithm": "gd", "rules": [
        {"quasi_identifiers": ["x", "y"], "sensitive": ["a"], "guarantee": {"type": "l_diversity", "l": 3}},
        {"quasi_identifiers": ["x", "y"], "sensitive": ["b"], "guarantee": {"type": "t_closeness", "t": "0.4"}},
        {"quasi_identifiers": ["x", "y"], "sensitive": ["c"], "guarantee": {"type": "entropy_l_diversity", "l": 2}}]}});
    let manifest = server.publish(&dataset, document).await;
    let [table] = &manifest["tables"].as_array().unwrap()[..] else { panic!("{manifest:#}") };
    assert_eq!((table["parts"].as_array().unwrap().len(), table["guards"].as_array().unwrap().len()), (4, 3));
    assert_eq!(manifest["verification"]["verified"], true);
    let (a, b, c) = (
        buckets(&server, &manifest, "sa1").await,
        buckets(&server, &manifest, "sa2").await,
        buckets(&server, &manifest, "sa3").await,
    );
    assert!(a.len() > 40, "{} buckets", a.len());
    for bucket in a.keys() {
        let size: u64 = a[bucket].values().sum();
        assert!(a[bucket].values().all(|count| count * 3 <= size), "{:?}", a[bucket]);
        let shares = |part: &BTreeMap<u32, BTreeMap<Vec<String>, u64>>| -> Vec<f64> {
            part[bucket].values().map(|&count| count as f64 / size as f64).collect()
        };
        let entropy: f64 = shares(&c).iter().map(|share| -share * share.ln()).sum();
        assert!(entropy >= 2_f64.ln() - 1e-9, "{:?}", c[bucket]);
        let whole = |value: &Vec<String>| b.values().filter_map(|bucket| bucket.get(value)).sum::<u64>() as f64 / 600.0;
        let all: std::collections::BTreeSet<&Vec<String>> = b.values().flat_map(BTreeMap::keys).collect();
        let here = |value: &Vec<String>| b[bucket].get(value).copied().unwrap_or(0) as f64 / size as f64;
        let moved: f64 = all.into_iter().map(|value| (here(value) - whole(value)).abs() / 2.0).sum();
        assert!(moved <= 0.4 + 1e-9, "{moved}");
    }
    server.stop().await;
}
