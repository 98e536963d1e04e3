//! Sequential releases: the slides' tables one after the other, over HTTP and by the command line, judged from the served parts by this
//! test's own join.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::harness::{Client, Server, kind, text};
use super::library::cells;

/// The table behind the releases of the slides.
const PEOPLE: &str = "name,job,class,disease\n\
    Alice,Banker,c1,Cancer\nAlice,Banker,c1,Cancer\nBob,Clerk,c2,HIV\nBob,Driver,c3,Cancer\nCathy,Engineer,c4,HIV\n";

fn jobs() -> Value {
    json!({"ANY_Job": {"Office": ["Banker", "Clerk"], "Field": ["Driver", "Engineer"]}})
}

/// A release of exact values, without rules.
fn plain(names: &[&str]) -> Value {
    let attributes: serde_json::Map<_, _> =
        names.iter().map(|name| ((*name).to_owned(), json!({"publish": true}))).collect();
    json!({"unlisted": "drop", "attributes": attributes, "no_rules": "for a test",
        "method": {"type": "versatile", "rules": []}})
}

/// What every group on X has so many different values of on Y.
fn anonymity(x: &[String], y: &[String], k: u64) -> Value {
    json!({"x": x, "y": y, "measure": {"type": "xy_anonymity", "k": k}})
}

fn linkability(x: &[String], y: &[String], h: &str, values: Value) -> Value {
    json!({"x": x, "y": y, "measure": {"type": "xy_linkability", "h": h, "sensitive_values": values}})
}

fn sequential(publish: &[&str], against: &[&Value], class: Option<&str>, requirements: Value) -> Value {
    let against: Vec<Value> = against.iter().map(|release| release["id"].clone()).collect();
    json!({"unlisted": "drop", "attributes": {"job": {"taxonomy": jobs()}},
        "method": {"type": "sequential", "publish": publish, "against": against, "class": class,
            "requirements": requirements}})
}

fn of(release: &Value, name: &str) -> String {
    format!("{}.{name}", text(&release["id"]))
}

fn new(name: &str) -> String {
    format!("new.{name}")
}

/// A published table, its cells and their columns.
struct Shown {
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

async fn shown(client: &Client, release: &Value) -> Shown {
    let (columns, rows) = cells(client.part(release, "t1", "rows").await.as_bytes());
    Shown { columns, rows }
}

/// The labels above a value, itself first.
fn way(tree: &Value, label: &str) -> Vec<String> {
    fn find(node: &Value, label: &str) -> Option<Vec<String>> {
        match node {
            Value::Object(nodes) => nodes.iter().find_map(|(name, below)| {
                if name == label {
                    return Some(vec![name.clone()]);
                }
                let mut way = find(below, label)?;
                way.push(name.clone());
                Some(way)
            }),
            Value::Array(items) => items.iter().find_map(|item| match item {
                Value::String(text) => (text == label).then(|| vec![text.clone()]),
                other => find(other, label),
            }),
            _ => None,
        }
    }
    find(tree, label).unwrap_or_else(|| vec![label.to_owned()])
}

/// Whether one value may be behind both labels: of a tree, of numbers, or texts.
fn meet(trees: &BTreeMap<&str, Value>, name: &str, a: &str, b: &str) -> bool {
    if let Some(tree) = trees.get(name) {
        return way(tree, a).iter().any(|label| label == b) || way(tree, b).iter().any(|label| label == a);
    }
    let ends = |label: &str| match label.split_once("..") {
        Some((from, to)) => (from.parse::<f64>().unwrap_or(f64::NEG_INFINITY), to.parse::<f64>().unwrap()),
        None => label.parse().map_or((f64::NAN, f64::NAN), |value| (value, value)),
    };
    let ((from_a, to_a), (from_b, to_b)) = (ends(a), ends(b));
    a == b || from_a <= to_b && from_b <= to_a
}

/// All pairs of rows of two releases that match in what they share.
fn join<'a>(trees: &BTreeMap<&str, Value>, a: &'a Shown, b: &'a Shown) -> Vec<(usize, usize)> {
    let shared: Vec<(usize, usize)> = a
        .columns
        .iter()
        .enumerate()
        .filter_map(|(at, name)| Some((at, b.columns.iter().position(|other| other == name)?)))
        .collect();
    let mut pairs = Vec::new();
    for (first, left) in a.rows.iter().enumerate() {
        for (second, right) in b.rows.iter().enumerate() {
            if shared.iter().all(|&(l, r)| meet(trees, &a.columns[l], &left[l], &right[r])) {
                pairs.push((first, second));
            }
        }
    }
    pairs
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tables_of_the_slides_one_after_the_other() {
    let server = Server::start().await;
    let dataset = server.dataset(PEOPLE).await;
    let earlier = server.publish(&dataset, plain(&["job", "disease"])).await;
    let asked = json!([anonymity(&[new("job"), of(&earlier, "disease")], &[new("#key")], 2)]);
    let document = sequential(&["name", "job", "class"], &[&earlier], Some("class"), asked);

    let mut plan = document.clone();
    plan["dataset"] = dataset.clone().into();
    let plan = server.post("/v1/plans", &plan).await.ok(200);
    assert_eq!(plan["feasible"], true, "{plan:#}");
    assert_eq!(plan["tables"][0]["standing"], "unsealed");

    let release = server.publish(&dataset, document.clone()).await;
    let part = server.part(&release, "t1", "rows").await;
    assert_eq!(part, "name,job,class\nAlice,Office,c1\nAlice,Office,c1\nBob,Field,c3\nBob,Office,c2\nCathy,Field,c4\n");
    assert_eq!(release["method"], json!({"type": "sequential", "adversary": "without minimality"}));
    assert_eq!(release["tables"][0]["standing"], "unsealed");
    assert_eq!(release["tables"][0]["parts"][0]["cells"], json!({"job": "node"}));
    let said = &release["particulars"];
    assert_eq!(*said, plan["particulars"], "the plan foretells it");
    assert_eq!(said["cuts"], json!({"job": ["Field", "Office"]}));
    let id = &earlier["id"];
    assert_eq!(
        said["requirements"][0]["subsets"],
        json!([{"releases": ["new", id], "achieved": {"k": 2}}]),
        "{said:#}"
    );
    let checks = release["audit"]["checks"].as_array().unwrap();
    assert!(checks.iter().any(|check| check["check"] == "requirements" && check["passed"] == true), "{checks:?}");

    // by this test's own join
    let trees = BTreeMap::from([("job", jobs())]);
    let (a, b) = (shown(&server, &release).await, shown(&server, &earlier).await);
    let pairs = join(&trees, &a, &b);
    assert_eq!(pairs.len(), 13);
    let mut groups: BTreeMap<(&str, &str), BTreeSet<usize>> = BTreeMap::new();
    for (row, other) in pairs {
        let disease = b.columns.iter().position(|name| name == "disease").unwrap();
        groups.entry((&a.rows[row][1], &b.rows[other][disease])).or_default().insert(row);
    }
    let sizes: Vec<usize> = groups.values().map(BTreeSet::len).collect();
    assert_eq!(sizes, [2, 2, 3, 3]);

    // the same job gives the same release
    let again = server.job(&dataset, document).await.ok(200);
    assert_eq!((&again["reused"], &again["release"]), (&json!(true), &release["id"]));
    server.stop().await;
}
