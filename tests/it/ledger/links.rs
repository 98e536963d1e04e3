//! What dependencies tie composes across releases: attackers who go from one release to another over a link.

use serde_json::{Value, json};

use crate::support::harness::{Server, kind, versatile};

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
    let server = Server::start().await;
    for (at, attack) in attacks().into_iter().enumerate() {
        // other people in each case
        let header = people().lines().next().unwrap().to_owned() + "\n";
        let rows: String = people().lines().skip(1).map(|row| format!("{row}{at}\n")).collect();
        let dataset = server.dataset(header + &rows).await;
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
    }
    server.stop().await;
}
