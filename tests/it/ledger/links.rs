//! What dependencies tie composes across releases: attackers who go from one release to another over a link.

use serde_json::{Value, json};

use crate::support::harness::{Server, kind, text, versatile};

/// 600 people: a unit and its name, an age and its band; diagnosis and sex say nothing of the others.
fn people() -> String {
    let mut state = 7_u64;
    let mut below = move |most: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % most
    };
    let row = |_| {
        let (age, sex, unit, dx) = (20 + below(40), below(2), below(8), below(10));
        format!("{age},b{},s{sex},u{unit},ward of {unit},d{dx}\n", age / 10)
    };
    "age,age_band,sex,unit,unit_name,dx\n".to_owned() + &(0..600).map(row).collect::<String>()
}

/// The attributes together in one table, unprotected.
fn plain(attributes: &[&str]) -> Value {
    let mut document = published(attributes, &[]);
    document["no_rules_reason"] = "asked for by the archive".into();
    document
}

fn published(attributes: &[&str], rules: &[&str]) -> Value {
    let publish: serde_json::Map<_, _> =
        attributes.iter().map(|name| ((*name).to_owned(), json!({"publish": true}))).collect();
    json!({"unlisted": "drop", "attributes": publish, "method": versatile(rules)})
}

/// A release, then one that a link forbids, then some that it does not.
struct Attack {
    first: Value,
    refused: Value,
    link: [&'static str; 2],
    allowed: Vec<Value>,
}

fn attacks() -> Vec<Attack> {
    vec![
        // the name of a protected unit beside what the rule knows
        Attack {
            first: published(&["age", "unit"], &["age -> unit"]),
            refused: plain(&["unit_name", "age"]),
            link: ["unit", "unit_name"],
            allowed: vec![plain(&["unit_name"]), plain(&["sex", "dx"])],
        },
        // diagnoses by unit, then people by the name of their unit
        Attack {
            first: plain(&["unit", "dx"]),
            refused: published(&["age", "unit_name", "dx"], &["age, unit_name -> dx"]),
            link: ["unit", "unit_name"],
            allowed: vec![plain(&["unit_name", "sex"]), published(&["age", "dx"], &["age -> dx"])],
        },
        // diagnoses by age band, then a rule for those who know the age
        Attack {
            first: plain(&["age_band", "dx"]),
            refused: published(&["age", "dx"], &["age -> dx"]),
            link: ["age", "age_band"],
            allowed: vec![published(&["sex", "dx"], &["sex -> dx"])],
        },
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn links_lead_from_one_release_to_another() {
    for attack in attacks() {
        let server = Server::start().await;
        let dataset = server.dataset(people()).await;
        let first = server.publish(&dataset, attack.first).await;
        let problem = server.refused(&dataset, attack.refused).await;
        assert_eq!((kind(&problem), &problem["release"]), ("composition-violated", &first["id"]), "{problem:#}");
        let path = problem["path"].as_array().unwrap();
        let link = path.iter().find(|step| step["link"].is_array()).unwrap_or_else(|| panic!("{problem:#}"));
        assert_eq!(link["link"], json!(attack.link), "{problem:#}");
        assert!(attack.link.iter().any(|name| link["via"] == json!([name])), "{problem:#}");
        assert!(problem["detail"].as_str().unwrap().contains("determines"), "{problem:#}");
        for allowed in attack.allowed {
            server.publish(&dataset, allowed).await;
        }
        server.stop().await;
    }
}

const RECODING: [(&str, &str); 2] = [("unit", "unit_name"), ("unit_name", "unit")];

/// The document, assuming that readers do not know how unit and name go together.
fn withdrawn(mut document: Value) -> Value {
    let assumed = RECODING.map(|(determinant, dependent)| {
        json!({"determinant": [determinant], "dependent": [dependent], "reason": "the names are not public"})
    });
    document["method"]["assume_unknown"] = json!(assumed);
    document
}

/// The document, without a search for dependencies.
fn unsearched(mut document: Value) -> Value {
    document["method"]["dependencies"] = json!({"discover": "none"});
    document["method"]["assume_unknown"] = json!([{"determinant": [], "dependent": [], "reason": "a test"}]);
    document
}

/// A rule that a link breaks in the tables of its own release.
fn open_rule() -> Value {
    published(&["age", "unit", "unit_name"], &["age -> unit"])
}

async fn series_of(server: &Server, dataset: &str) -> Value {
    let name = server.get(&format!("/v1/datasets/{dataset}")).await.ok(200)["series"].as_str().unwrap().to_owned();
    server.get(&format!("/v1/series/{name}")).await.ok(200)
}

async fn is_refused(server: &Server, dataset: &str, document: Value) -> bool {
    kind(&server.refused(dataset, document).await) == "composition-violated"
}

#[tokio::test(flavor = "multi_thread")]
async fn dependency_known_later_weakens_a_rule() {
    let server = Server::start().await;
    let dataset = server.dataset(people()).await;
    let first = server.publish(&dataset, unsearched(open_rule())).await;
    let series = series_of(&server, &dataset).await;
    assert_eq!((&series["weakened"], &series["dependencies"]), (&json!([]), &json!([])), "{series:#}");
    // no table of the next release meets those of the first; what it knows breaks their rule
    let mut planned = plain(&["sex"]);
    planned["dataset"] = dataset.as_str().into();
    let plan = server.post("/v1/plans", &planned).await.ok(200);
    let warnings = plan["warnings"].as_array().unwrap();
    let notice = warnings.iter().find(|notice| notice["type"] == "rule-weakened").unwrap_or_else(|| panic!("{plan:#}"));
    assert!(notice["detail"].as_str().unwrap().contains(first["id"].as_str().unwrap()), "{notice:#}");
    let second = server.publish(&dataset, plain(&["sex"])).await;
    let internal = format!("/v1/releases/{}/internal-report", second["id"].as_str().unwrap());
    let internal = server.get(&internal).await.ok(200);
    assert_eq!(internal["warnings"][0]["type"], "rule-weakened", "{internal:#}");
    assert!(!second.to_string().contains("rule-weakened"), "{second:#}");
    let series = series_of(&server, &dataset).await;
    let weakened = &series["weakened"][0];
    assert_eq!(weakened["rule"], json!({"release": first["id"], "pointer": "/method/rules/0"}), "{series:#}");
    let recoding = RECODING.map(|(of, is)| json!({"determinant": [of], "dependent": [is]}));
    assert!(recoding.contains(&weakened["dependency"]), "{series:#}");
    assert_eq!(weakened["attributes"], json!(["age", "unit", "unit_name"]), "{series:#}");
    let known = series["dependencies"].as_array().unwrap();
    assert!(recoding.iter().all(|recoding| known.contains(recoding)), "{series:#}");
    // the tables, and the link, take part in nothing more
    for attributes in [["age", "sex"], ["unit_name", "dx"], ["unit", "sex"]] {
        assert!(is_refused(&server, &dataset, plain(&attributes)).await, "{attributes:?}");
    }
    server.publish(&dataset, plain(&["sex", "dx"])).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn later_statement_weakens_a_rule() {
    let server = Server::start().await;
    let dataset = server.dataset_of("clinic", people()).await;
    let first = server.publish(&dataset, withdrawn(open_rule())).await;
    assert_eq!(series_of(&server, &dataset).await["weakened"], json!([]));
    let statement = json!({"reason": "the names are printed", "functions": {"unit_name": ["unit"]}});
    server.post("/v1/series/clinic/disclosures", &statement).await.ok(201);
    let series = series_of(&server, &dataset).await;
    let weakened = &series["weakened"][0];
    assert_eq!(weakened["rule"], json!({"release": first["id"], "pointer": "/method/rules/0"}), "{series:#}");
    let dependency = json!({"determinant": ["unit"], "dependent": ["unit_name"]});
    assert_eq!(weakened["dependency"], dependency, "{series:#}");
    assert_eq!(series["weakened"].as_array().map(Vec::len), Some(1), "{series:#}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dependency_withdrawn_by_all_releases_counts_for_none() {
    let server = Server::start().await;
    let dataset = server.dataset(people()).await;
    server.publish(&dataset, withdrawn(open_rule())).await;
    // has no attribute of the dependency, and says nothing of it
    server.publish(&dataset, plain(&["sex"])).await;
    assert_eq!(series_of(&server, &dataset).await["weakened"], json!([]));
    assert!(is_refused(&server, &dataset, plain(&["unit_name", "dx"])).await);
    server.publish(&dataset, withdrawn(plain(&["unit_name", "dx"]))).await;
    let series = series_of(&server, &dataset).await;
    assert_eq!((&series["weakened"], &series["dependencies"]), (&json!([]), &json!([])), "{series:#}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_dependency_steers_a_later_release() {
    let server = Server::start().await;
    let dataset = server.dataset(people()).await;
    // a release declares what the data do not show
    let mut first = plain(&["unit_name"]);
    first["method"]["functional_dependencies"] = json!([{"determinant": ["dx"], "dependent": ["sex"]}]);
    server.publish(&dataset, first).await;
    let rule = || published(&["age", "sex", "dx"], &["age, sex -> dx"]);
    let second = server.publish(&dataset, rule()).await;
    let recorded = &second["dependencies"]["recorded"][0];
    let expected = json!({"determinant": ["dx"], "dependent": ["sex"], "used": ["strata"]});
    assert_eq!(recorded, &expected, "{second:#}");
    assert_eq!(second["rules"][0]["strata"], json!(["sex"]), "{second:#}");
    let mut misled = rule();
    misled["method"]["assume_unknown"] =
        json!([{"determinant": ["dx"], "dependent": ["sex"], "reason": "not known outside"}]);
    let problem = server.refused(&dataset, misled).await;
    assert_eq!(problem["errors"][0]["pointer"], "/method/assume_unknown/0", "{problem:#}");
    server.stop().await;
}

/// A release that declares two dependencies on an attribute which later jobs lack: together they tie two others.
fn naming_a_chain(known: &str) -> Value {
    let mut first = plain(&["sex"]);
    first["method"]["functional_dependencies"] =
        json!([{"determinant": ["dx"], "dependent": ["unit"]}, {"determinant": [known], "dependent": ["unit"]}]);
    first
}

/// Every method, protecting the diagnosis from who knows the age band.
fn protecting_methods() -> Vec<Value> {
    let known = json!(["age_band", "unit_name"]);
    let guarantee = json!({"type": "l_diversity", "l": 2});
    let columns = json!({"explicit": [["age_band"], ["unit_name"], ["dx"]]});
    vec![
        versatile(&["age_band, unit_name -> dx"]),
        json!({"type": "anatomy", "quasi_identifiers": known, "sensitive": "dx", "guarantee": guarantee}),
        json!({"type": "bucketize", "quasi_identifiers": known, "sensitive": "dx", "thresholds": {"uniform": {"l": 2}}}),
        json!({"type": "generalize", "quasi_identifiers": known, "sensitive": ["dx"], "guarantees": [guarantee]}),
        json!({"type": "decompose", "quasi_identifiers": known, "sensitive": ["dx"], "l": {"dx": 2}}),
        json!({"type": "slicing", "sensitive": "dx", "columns": columns, "guarantee": guarantee}),
    ]
}

fn of_method(method: &Value) -> Value {
    let publish = json!({"age_band": {"publish": true}, "unit_name": {"publish": true}, "dx": {"publish": true}});
    json!({"unlisted": "drop", "attributes": publish, "method": method})
}

#[tokio::test(flavor = "multi_thread")]
async fn chain_over_a_missing_attribute_makes_strata() {
    for method in protecting_methods() {
        let server = Server::start().await;
        let dataset = server.dataset(people()).await;
        server.publish(&dataset, naming_a_chain("age_band")).await;
        let release = server.publish(&dataset, of_method(&method)).await;
        let recorded = release["dependencies"]["recorded"].as_array().unwrap();
        let has = |from: &str| {
            recorded.iter().any(|of| of["determinant"] == json!([from]) && of["dependent"] == json!(["unit"]))
        };
        assert!(has("age_band"), "{method}: {release:#}");
        // two tables that are judged together have no guard that names its strata
        if method["type"] != "decompose" {
            assert_eq!(release["rules"][0]["strata"], json!(["age_band"]), "{method}: {release:#}");
            assert!(has("dx"), "{method}: {release:#}");
        }
        server.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn chain_over_a_missing_attribute_is_refused_by_name() {
    let guarantee = json!({"type": "l_diversity", "l": 8});
    // fifteen people of an age have no eight diagnoses of equal share; mixtures are not proved beside dependencies
    let refused = [
        json!({"type": "generalize", "quasi_identifiers": ["age"], "sensitive": ["dx"], "guarantees": [guarantee]}),
        json!({"type": "anatomy", "quasi_identifiers": ["age"], "sensitive": "dx", "guarantee": guarantee}),
        json!({"type": "decompose", "quasi_identifiers": ["age"], "sensitive": ["dx"], "l": {"dx": 8}}),
        json!({"type": "slicing", "sensitive": "dx", "columns": {"explicit": [["age"], ["dx"]]}, "diversity": "mixture",
            "guarantee": {"type": "l_diversity", "l": 2}}),
    ];
    for method in refused {
        let server = Server::start().await;
        let dataset = server.dataset(people()).await;
        let first = server.publish(&dataset, naming_a_chain("age")).await;
        let attributes = json!({"age": {"publish": true}, "dx": {"publish": true}});
        let document = json!({"unlisted": "drop", "attributes": attributes, "method": method});
        let problem = server.refused(&dataset, document).await;
        let fault = &problem["errors"][0];
        assert!(matches!(kind(fault), "rule-impossible" | "guarantee-unsupported"), "{method}: {problem:#}");
        assert_eq!(fault["dependency"]["dependent"], json!(["unit"]), "{method}: {problem:#}");
        assert_eq!(fault["release"], first["id"], "{method}: {problem:#}");
        assert!(text(&fault["detail"]).contains(&text(&first["id"])), "{method}: {problem:#}");
        server.stop().await;
    }
}
