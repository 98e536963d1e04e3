//! What is said of known dependencies: in requests of every method, plans, manifests, reports and problems.

use guardian::identity::Preset;
use serde_json::{Value, json};

use crate::security::identity::Guarded;
use crate::support::folder::{CommandFixture, code, stderr};
use crate::support::harness::{Server, kind, text, versatile};

/// 240 people: zip determines county, code is a copy of zip, and nothing else determines anything.
fn people() -> String {
    let row = |i: u32| {
        let zip = i % 12;
        let race = ["asian", "black", "white"][(i / 5 % 3) as usize];
        format!("{},z{zip:02},k{zip},c{},{race},{}\n", 20 + i / 12, zip / 3, i * 7 % 11)
    };
    "age,zip,code,county,race,dx\n".to_owned() + &(0..240).map(row).collect::<String>()
}

const COLUMNS: [&str; 6] = ["age", "zip", "code", "county", "race", "dx"];

fn document(mut method: Value, members: &Value) -> Value {
    for (name, value) in members.as_object().into_iter().flatten() {
        method[name] = value.clone();
    }
    let attributes: Value = COLUMNS.map(|name| (name, json!({"publish": true}))).into_iter().collect();
    json!({"attributes": attributes, "method": method})
}

fn of_race(members: &Value) -> Value {
    document(versatile(&["age -> race"]), members)
}

fn unknown(determinant: &str, dependent: &str) -> Value {
    json!({"determinant": [determinant], "dependent": [dependent], "reason": "only the post office knows"})
}

/// A document of each method without a rule on zip or county.
fn methods() -> Vec<Value> {
    let l = json!({"type": "l_diversity", "l": 2});
    let count = json!({"x": ["new.age"], "y": ["new.race"], "measure": {"type": "xy_linkability", "h": "0.9"}});
    vec![
        versatile(&["age -> race"]),
        json!({"type": "anatomy", "sensitive": "race", "quasi_identifiers": ["age"], "guarantee": l}),
        json!({"type": "bucketize", "sensitive": "race", "quasi_identifiers": ["age"], "thresholds": {"uniform": {"l": 2}}}),
        json!({"type": "decompose", "sensitive": ["race"], "quasi_identifiers": ["age"], "l": {"race": 2}}),
        json!({"type": "generalize", "quasi_identifiers": ["age", "zip", "code", "county", "dx"], "sensitive": ["race"],
            "guarantees": [{"type": "k_anonymity", "k": 2}]}),
        json!({"type": "slicing", "sensitive": "race", "columns": {"count": 2}, "guarantee": l}),
        json!({"type": "sequential", "publish": ["age", "race"], "requirements": [count]}),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn every_method_says_what_is_assumed_known() {
    let server = Server::start().await;
    let dataset = server.dataset(people()).await;
    let withdrawn = json!([unknown("zip", "county")]);
    let members = json!({"assume_unknown": withdrawn, "dependencies": {"discover": "singles", "tolerance": "0.02"}});
    for method in methods() {
        let mut asked = document(method.clone(), &members);
        asked["dataset"] = dataset.as_str().into();
        let plan = server.post("/v1/plans", &asked).await.ok(200);
        let known = &plan["dependencies"];
        assert_eq!(
            (&known["tolerance"], &known["searched"]),
            (&json!("0.02"), &json!("singles")),
            "{method}: {plan:#}"
        );
        assert_eq!(known["assumed_unknown"], withdrawn, "{method}");
        let faults = plan["problems"].to_string();
        assert!(!faults.contains("unknown-dependency"), "{method}: {faults}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn withdrawal_of_nothing_is_a_fault() {
    let server = Server::start().await;
    let dataset = server.dataset(people()).await;
    let misspelt = of_race(&json!({"assume_unknown": [unknown("county", "zip")]}));
    let mut asked = misspelt.clone();
    asked["dataset"] = dataset.as_str().into();
    let plan = server.post("/v1/plans", &asked).await.ok(200);
    let refused = server.refused(&dataset, misspelt).await;
    for fault in [&plan["problems"][0]["errors"][0], &refused["errors"][0]] {
        assert_eq!((kind(fault), text(&fault["pointer"]).as_str()), ("unknown-dependency", "/method/assume_unknown/0"));
        assert_eq!(fault["attribute"], "zip", "{fault}");
    }
    // what is declared is known
    let both = json!({"functional_dependencies": [{"determinant": ["zip"], "dependent": ["county"]}],
        "assume_unknown": [unknown("zip", "county")]});
    server.job(&dataset, of_race(&both)).await.fault("/method/assume_unknown/0", "bad-columns");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn withdrawn_copy_is_still_linked() {
    let server = Server::start().await;
    let dataset = server.dataset(people()).await;
    let one = of_race(&json!({"assume_unknown": [unknown("zip", "code")]}));
    let release = server.publish(&dataset, one).await;
    let linked: Vec<&Value> =
        release["warnings"].as_array().unwrap().iter().filter(|w| w["type"] == "still-linked").collect();
    assert_eq!(linked.len(), 1, "{release:#}");
    assert_eq!(linked[0]["pointer"], "/method/assume_unknown/0");
    assert!(text(&linked[0]["detail"]).contains("code determines zip"), "{release:#}");
    let both = of_race(&json!({"assume_unknown": [unknown("zip", "code"), unknown("code", "zip")]}));
    server.stop().await;
    let server = Server::start().await;
    let other = server.dataset(people()).await;
    let release = server.publish(&other, both).await;
    assert!(!release["warnings"].to_string().contains("still-linked"), "{release:#}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unsearched_data_needs_a_reason() {
    let server = Server::start().await;
    let dataset = server.dataset(people()).await;
    let none = json!({"dependencies": {"discover": "none"}});
    server.job(&dataset, of_race(&none)).await.fault("/method/assume_unknown", "parameter-range");
    let all = json!({"determinant": [], "dependent": [], "reason": "the columns are drawn at random"});
    server
        .job(&dataset, of_race(&json!({"assume_unknown": [all]})))
        .await
        .fault("/method/assume_unknown/0", "parameter-range");
    let wide = json!({"dependencies": {"tolerance": "0.06"}});
    server.job(&dataset, of_race(&wide)).await.fault("/method/dependencies/tolerance", "parameter-range");
    let release = server
        .publish(&dataset, of_race(&json!({"dependencies": {"discover": "none"}, "assume_unknown": [all]})))
        .await;
    assert_eq!(release["dependencies"]["searched"], "none");
    assert_eq!(release["dependencies"]["assumed_unknown"], json!([all]));
    assert!(release["warnings"].to_string().contains("dependencies-not-searched"), "{release:#}");
    let report = server.get(&format!("/v1/releases/{}/report", text(&release["id"]))).await.ok(200);
    assert!(report["not_promised"].to_string().contains("the columns are drawn at random"), "{report:#}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn plan_has_counts_that_the_manifest_lacks() {
    let server = Server::start().await;
    let dataset = server.dataset(people()).await;
    let false_one = json!([{"determinant": ["race"], "dependent": ["dx"]}]);
    let mut asked = of_race(&json!({"functional_dependencies": false_one}));
    let release = server.publish(&dataset, asked.clone()).await;
    asked["dataset"] = dataset.as_str().into();
    let plan = server.post("/v1/plans", &asked).await.ok(200);
    let known = plan["dependencies"]["known"].as_array().unwrap();
    let of = |determinant: &str, dependent: &str| {
        let sides =
            |known: &&Value| known["determinant"] == json!([determinant]) && known["dependent"] == json!([dependent]);
        known.iter().find(sides).unwrap_or_else(|| panic!("{known:#?}"))
    };
    let county = of("zip", "county");
    assert_eq!((&county["groups"], &county["errors"], &county["declared"]), (&json!(12), &json!(0), &json!(false)));
    assert!(county["saved_bits"].as_i64().unwrap() > 100, "{county}");
    let declared = of("race", "dx");
    assert_eq!((&declared["groups"], &declared["declared"]), (&json!(3), &json!(true)));
    assert!(declared["errors"].as_u64().unwrap() > 100, "{declared}");
    assert!(plan["warnings"].to_string().contains("dependency-does-not-hold"), "{plan:#}");
    // the exceptions are counts of the data
    assert!(!release["warnings"].to_string().contains("dependency-does-not-hold"), "{release:#}");
    let said = release["dependencies"].to_string();
    assert!(!said.contains("errors") && !said.contains("groups") && !said.contains("saved"), "{said}");
    for rule in release["rules"].as_array().unwrap() {
        assert_eq!(rule["knowledge"], "associations in links", "{rule}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pipeline_neither_withdraws_nor_sees_counts_of_others() {
    let guarded = Guarded::start().await;
    let (pipeline, officer) = (guarded.preset(Preset::Pipeline), guarded.preset(Preset::Officer));
    let dataset = text(&guarded.preset(Preset::Admin).upload("", people()).await.ok(201)["id"]);
    let own = text(&pipeline.upload("", people()).await.ok(201)["id"]);
    let withdrawn = of_race(&json!({"assume_unknown": [unknown("zip", "county")]}));
    assert_eq!(pipeline.job(&dataset, withdrawn.clone()).await.problem(403, "forbidden")["scope"], "ledger:override");
    let closing = of_race(&json!({"ineligible_strata": {"closed": {"reason": "counties are public"}}}));
    let refused = pipeline.job(&dataset, closing).await.problem(403, "forbidden");
    assert_eq!(refused["scope"], "ledger:override");
    // a county has three zip codes of equal size
    let known = json!({"type": "anatomy", "sensitive": "zip", "quasi_identifiers": ["age", "county"],
        "guarantee": {"type": "l_diversity", "l": 4}});
    let mut impossible = document(known, &json!({}));
    impossible["attributes"]["code"] = json!({"drop": true});
    let mut asked = impossible.clone();
    asked["dataset"] = dataset.as_str().into();
    let seen = officer.post("/v1/plans", &asked).await.ok(200);
    let hidden = pipeline.refused(&dataset, impossible.clone()).await;
    let of_officer = &seen["problems"][0]["errors"][0];
    assert_eq!((kind(of_officer), &of_officer["largest_l"]), ("rule-impossible", &json!(3)), "{seen:#}");
    assert!(of_officer["repairs"].to_string().contains("lower_l"), "{seen:#}");
    // each of the four counties has too few zip codes
    assert_eq!(of_officer["strata"], json!({"attributes": ["county"], "ineligible": 4, "of": 4}), "{seen:#}");
    let of_pipeline = &hidden["errors"][0];
    assert_eq!(kind(of_pipeline), "rule-impossible", "{hidden:#}");
    assert!(!hidden.to_string().contains("largest_l") && !hidden.to_string().contains("lower_l"), "{hidden:#}");
    assert!(of_pipeline["repairs"].to_string().contains("leave_out_of_known"), "{hidden:#}");
    assert_eq!(of_pipeline["strata"], json!({"attributes": ["county"]}), "{hidden:#}");
    // of its own table a key sees what a plan shows it
    let shown = pipeline.refused(&own, impossible).await;
    assert_eq!(
        (&shown["errors"][0]["largest_l"], &shown["errors"][0]["repairs"]),
        (&json!(3), &of_officer["repairs"]),
        "{shown:#}"
    );
    officer.publish(&dataset, withdrawn).await;
    guarded.server.stop().await;
}

#[test]
fn command_line_says_the_same() {
    let folder = CommandFixture::new(people(), &of_race(&json!({"assume_unknown": [unknown("zip", "code")]})));
    let manifest = folder.published("out", &[]);
    assert_eq!(manifest["dependencies"]["searched"], "singles_and_pairs");
    assert!(manifest["warnings"].to_string().contains("still-linked"), "{manifest:#}");

    folder.specify(&of_race(&json!({"assume_unknown": [unknown("county", "zip")]})));
    let refused = folder.publish("refused", &[]);
    assert_ne!(code(&refused), 0);
    assert!(stderr(&refused).contains("unknown-dependency"), "{refused:?}");
}
