//! Sequential releases: the slides' tables one after the other, over HTTP and by the command line, judged from the served parts by this
//! test's own join.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;

use flate2::read::GzDecoder;
use serde_json::{Value, json};

use crate::support::harness::{Client, Server, guardian, kind, run, text};
use crate::support::library::cells;

/// The table behind the releases of the slides.
pub(crate) const PEOPLE: &str = "name,job,class,disease\n\
    Alice,Banker,c1,Cancer\nAlice,Banker,c1,Cancer\nBob,Clerk,c2,HIV\nBob,Driver,c3,Cancer\nCathy,Engineer,c4,HIV\n";

pub(super) fn jobs() -> Value {
    json!({"ANY_Job": {"Office": ["Banker", "Clerk"], "Field": ["Driver", "Engineer"]}})
}

/// A release of exact values, without rules.
pub(crate) fn plain(names: &[&str]) -> Value {
    let attributes: serde_json::Map<_, _> =
        names.iter().map(|name| ((*name).to_owned(), json!({"publish": true}))).collect();
    json!({"unlisted": "drop", "attributes": attributes, "no_rules_reason": "for a test",
        "method": {"type": "versatile", "rules": []}})
}

/// Number of different values on Y that every group on X has.
pub(crate) fn anonymity(x: &[String], y: &[String], k: u64) -> Value {
    json!({"x": x, "y": y, "measure": {"type": "xy_anonymity", "k": k}})
}

pub(super) fn linkability(x: &[String], y: &[String], h: &str, values: Value) -> Value {
    json!({"x": x, "y": y, "measure": {"type": "xy_linkability", "h": h, "sensitive_values": values}})
}

pub(crate) fn sequential(publish: &[&str], against: &[&Value], class: Option<&str>, requirements: Value) -> Value {
    let against: Vec<Value> = against.iter().map(|release| release["id"].clone()).collect();
    json!({"unlisted": "drop", "attributes": {"job": {"taxonomy": jobs()}},
        "method": {"type": "sequential", "publish": publish, "against": against, "class": class,
            "requirements": requirements}})
}

pub(crate) fn of(release: &Value, name: &str) -> String {
    format!("{}.{name}", text(&release["id"]))
}

pub(crate) fn new(name: &str) -> String {
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
    assert_eq!(plan["tables"][0]["protection"], "exclusive");

    let release = server.publish(&dataset, document.clone()).await;
    let part = server.part(&release, "t1", "rows").await;
    assert_eq!(part, "name,job,class\nAlice,Office,c1\nAlice,Office,c1\nBob,Field,c3\nBob,Office,c2\nCathy,Field,c4\n");
    assert_eq!(release["method"], json!({"type": "sequential", "adversary": "without minimality"}));
    assert_eq!(release["tables"][0]["protection"], "exclusive");
    assert_eq!(release["tables"][0]["parts"][0]["cells"], json!({"job": "node"}));
    let said = &release["method_details"];
    assert_eq!(*said, plan["method_details"], "the plan foretells it");
    assert_eq!(said["cuts"], json!({"job": ["Field", "Office"]}));
    let id = &earlier["id"];
    assert_eq!(
        said["requirements"][0]["subsets"],
        json!([{"releases": ["new", id], "achieved": {"k": 2}}]),
        "{said:#}"
    );
    let checks = release["verification"]["checks"].as_array().unwrap();
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

/// A requirement protects what it bounds, though no rule names it.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_requirement_bounds_is_protected() {
    let server = Server::start().await;
    let dataset = server.dataset(PEOPLE).await;
    let asked = json!([linkability(&[new("job")], &[new("disease")], "0.6", Value::Null)]);
    let mut document = sequential(&["job", "class", "disease"], &[], None, asked);
    let release = server.publish(&dataset, document.clone()).await;
    assert_eq!(release["exposures"]["unprotected"], json!(["job", "class"]), "{:#}", release["exposures"]);
    document["dataset"] = dataset.into();
    let plan = server.post("/v1/plans", &document).await.ok(200);
    assert_eq!(plan["exposures"]["unprotected"], json!(["job", "class"]), "{plan:#}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn join_attack_reports_linkability() {
    let server = Server::start().await;
    let dataset = server.dataset(PEOPLE).await;
    let earlier = server.publish(&dataset, plain(&["job", "disease"])).await;
    // who also knows jobs finds them in the first release
    let requirements = json!([
        linkability(&[new("name")], &[of(&earlier, "disease")], "2/3", Value::Null),
        anonymity(&[new("job"), of(&earlier, "disease")], &[new("#key")], 2),
    ]);
    let mut document = sequential(&["name", "job", "class"], &[&earlier], Some("class"), requirements);
    document["attributes"]["name"] = json!({"taxonomy": {"ANY": ["Alice", "Bob", "Cathy"]}});
    let release = server.publish(&dataset, document).await;
    let part = server.part(&release, "t1", "rows").await;
    assert_eq!(part, "name,job,class\nAlice,Office,c1\nAlice,Office,c1\nBob,Field,c3\nBob,Office,c2\nCathy,Field,c4\n");
    let said = &release["method_details"]["requirements"][0];
    assert_eq!(said["subsets"][0]["achieved"], json!({"h": {"count": 2, "of": 3}}));

    let path = format!("/v1/releases/{}/attacks", text(&release["id"]));
    let attacked = server.post(&path, &json!({"attack": "join", "rule": null})).await.ok(200);
    let two_thirds = json!({"count": 2, "of": 3});
    assert_eq!(
        (&attacked["breach"], &attacked["uses"], &attacked["worst"]),
        (&json!(false), &json!("parts"), &two_thirds)
    );
    let joined = &attacked["joins"][0];
    assert_eq!(joined["releases"], json!(["new", earlier["id"]]));
    assert_eq!((&joined["achieved"], &joined["holds"]), (&json!({"h": two_thirds}), &json!(true)));
    assert_eq!(joined["group"], json!({"new.name": "Alice"}), "{joined:#}");
    assert_eq!(joined["told"], json!({of(&earlier, "disease"): "Cancer"}));
    let one = json!({"attack": "join", "rule": "/method/requirements/0"});
    assert_eq!(server.post(&path, &one).await.ok(200)["joins"].as_array().unwrap().len(), 1);
    let none = json!({"attack": "join", "rule": "/method/requirements/2"});
    server.post(&path, &none).await.fault("/rule", "parameter-range");
    let other = format!("/v1/releases/{}/attacks", text(&earlier["id"]));
    let attack = json!({"attack": "join", "rule": null});
    server.post(&other, &attack).await.fault("/attack", "guarantee-unsupported");

    // one value alone may be sensitive
    let disease = of(&earlier, "disease");
    let hiv = |h: &str| json!([linkability(&[new("name")], std::slice::from_ref(&disease), h, json!(["HIV"]))]);
    let mut of_hiv = sequential(&["name", "job"], &[&earlier], None, hiv("0.5"));
    of_hiv["attributes"]["name"] = json!({"taxonomy": {"ANY": {"Women": ["Alice", "Cathy"], "Men": ["Bob"]}}});
    of_hiv["dataset"] = dataset.clone().into();
    let plan = server.post("/v1/plans", &of_hiv).await.ok(200);
    // women 1/5, Bob 1/2
    assert_eq!(plan["method_details"]["cuts"], json!({"name": ["Bob", "Women"]}), "{plan:#}");
    of_hiv["method"]["requirements"] = hiv("0.4");
    let plan = server.post("/v1/plans", &of_hiv).await.ok(200);
    assert_eq!(plan["method_details"]["cuts"], json!({"name": ["ANY"]}), "{plan:#}");

    // counts are answered by the leaves below nodes
    let queries = json!({"queries": [{"where": [{"attribute": "job", "in": ["Banker"]}]},
        {"where": [{"attribute": "job", "in": ["Banker", "Clerk"]}, {"attribute": "name", "in": ["Bob"]}]}]});
    let answers = server.post(&format!("/v1/releases/{}/queries", text(&release["id"])), &queries).await.ok(200);
    assert_eq!(answers["answers"][0]["estimate"], 1.5);
    assert_eq!(answers["answers"][1], json!({"estimate": 1.0, "standard_error": 0.0, "error_model": "exact"}));
    let verified = json!({"release": release["id"], "rules": ["name -> class"],
        "default_guarantee": {"type": "l_diversity", "l": 2}});
    assert_eq!(server.post("/v1/verifications", &verified).await.ok(200)["verified"], false);
    let report = server.get(&format!("/v1/releases/{}/internal-report", text(&release["id"]))).await.ok(200);
    assert_eq!(report["generalization"], json!({"levels_per_row": 1.0, "values_per_row": 1.0}));
    assert_eq!(report["classification"]["class"], "class");
    server.stop().await;
}

/// People with a town, for a third release.
pub(super) const TOWNS: &str = "name,job,class,disease,town\n\
    Alice,Banker,c1,Cancer,A\nAlice,Banker,c1,Cancer,A\nBob,Clerk,c2,HIV,A\nBob,Clerk,c2,HIV,B\n\
    Bob,Driver,c3,Cancer,B\nBob,Driver,c3,HIV,A\nCathy,Engineer,c4,HIV,B\nCathy,Engineer,c4,Cancer,B\n";

#[tokio::test(flavor = "multi_thread")]
async fn third_release_satisfies_rules_of_the_second() {
    let server = Server::start().await;
    let dataset = server.dataset(TOWNS).await;
    let first = server.publish(&dataset, plain(&["job", "disease"])).await;
    let asked = json!([anonymity(&[new("job"), of(&first, "disease")], &[new("#key")], 2)]);
    let second = server.publish(&dataset, sequential(&["name", "job"], &[&first], None, asked)).await;

    // nothing else that shares an attribute stands beside it, and nothing that leaves one of them out
    for document in [plain(&["name", "town"]), plain(&["job", "town"])] {
        assert_eq!(kind(&server.refused(&dataset, document).await), "composition-violated");
    }
    let own = || json!([anonymity(&[new("job"), new("town")], &[new("#key")], 2)]);
    let with = |against: &[&Value]| {
        let mut document = sequential(&["job", "town"], against, None, own());
        document["attributes"]["town"] = json!({"taxonomy": {"*": ["A", "B"]}});
        document
    };
    for against in [&[][..], &[&first][..]] {
        assert_eq!(kind(&server.refused(&dataset, with(against)).await), "composition-violated");
    }
    // the second promised something of its join with the first
    let alone = server.refused(&dataset, with(&[&second])).await;
    assert_eq!(
        (&alone["errors"][0]["pointer"], kind(&alone["errors"][0])),
        (&json!("/method/against/0"), "parameter-range")
    );

    let third = server.publish(&dataset, with(&[&second, &first])).await;
    let said = third["method_details"]["requirements"].as_array().unwrap();
    assert_eq!(said.len(), 2);
    assert_eq!((&said[1]["promised_by"], &said[1]["pointer"]), (&second["id"], &json!("/method/requirements/0")));
    // its own on joins of one, of two and of all; what was promised with the new one too
    let sets = |requirement: &Value| requirement["subsets"].as_array().unwrap().len();
    assert_eq!((sets(&said[0]), sets(&said[1])), (4, 2));
    assert!(
        said.iter().flat_map(|of| of["subsets"].as_array().unwrap()).all(|on| on["achieved"]["k"].as_u64() >= Some(2))
    );
    let attack = json!({"attack": "join", "rule": null});
    let attacked = server.post(&format!("/v1/releases/{}/attacks", text(&third["id"])), &attack).await.ok(200);
    assert_eq!((attacked["breach"].clone(), attacked["joins"].as_array().unwrap().len()), (json!(false), 6));

    // by this test's own join of all three: rows of the second per group of what it promised
    let trees = BTreeMap::from([("job", jobs()), ("town", json!({"*": ["A", "B"]}))]);
    let (a, b, c) = (shown(&server, &second).await, shown(&server, &first).await, shown(&server, &third).await);
    let at = |shown: &Shown, name: &str| shown.columns.iter().position(|column| column == name).unwrap();
    let ca: BTreeSet<(usize, usize)> = join(&trees, &c, &a).into_iter().collect();
    let cb = join(&trees, &c, &b);
    let ab: BTreeSet<(usize, usize)> = join(&trees, &a, &b).into_iter().collect();
    let mut groups: BTreeMap<(String, String), BTreeSet<usize>> = BTreeMap::new();
    for (third_row, first_row) in cb {
        for row in (0..a.rows.len()).filter(|row| ca.contains(&(third_row, *row)) && ab.contains(&(*row, first_row))) {
            let x = (a.rows[row][at(&a, "job")].clone(), b.rows[first_row][at(&b, "disease")].clone());
            groups.entry(x).or_default().insert(row);
        }
    }
    let fewest = groups.values().map(BTreeSet::len).min().unwrap() as u64;
    assert_eq!(said[1]["subsets"][0]["achieved"]["k"].as_u64(), Some(fewest));

    // a release that shares no attribute is always admitted
    server.publish(&dataset, plain(&["class"])).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_are_published_as_intervals() {
    let server = Server::start().await;
    let rows: String = (0..60)
        .map(|row| {
            let (age, pay, ill) = (20 + row * 7 % 31, 100 * (row * 11 % 13), ["flu", "cold", "HIV"][row * 5 % 7 % 3]);
            if row % 20 == 3 {
                format!(",{pay}.5,{ill},c{}\n", row % 3)
            } else {
                format!("{age},{pay}.5,{ill},c{}\n", row % 3)
            }
        })
        .collect();
    let dataset = server.dataset(format!("age,pay,disease,class\n{rows}")).await;
    let earlier = server.publish(&dataset, plain(&["age", "disease"])).await;
    let x = [new("age"), new("pay"), of(&earlier, "disease")];
    let document =
        sequential(&["age", "pay", "class"], &[&earlier], Some("class"), json!([anonymity(&x, &[new("#key")], 3)]));
    let mut document = document;
    document["attributes"] = json!({});
    let release = server.publish(&dataset, document).await;
    assert_eq!(release["tables"][0]["parts"][0]["cells"], json!({"age": "interval", "pay": "interval"}));
    let cuts = release["method_details"]["cuts"]["age"].as_array().unwrap();
    assert!(cuts.len() > 1, "{cuts:?}");
    let (a, b) = (shown(&server, &release).await, shown(&server, &earlier).await);
    // a missing age stands below the first interval
    let below = |label: &str| label.starts_with("..");
    let mut groups: BTreeMap<(String, String, String), BTreeSet<usize>> = BTreeMap::new();
    for (row, left) in a.rows.iter().enumerate() {
        for right in &b.rows {
            let age = &right[0];
            let meets = if age.is_empty() {
                left[0].is_empty() || below(&left[0])
            } else {
                !left[0].is_empty() && meet(&BTreeMap::new(), "age", &left[0], age)
            };
            if meets {
                groups.entry((left[0].clone(), left[1].clone(), right[1].clone())).or_default().insert(row);
            }
        }
    }
    let fewest = groups.values().map(BTreeSet::len).min().unwrap() as u64;
    let achieved = release["method_details"]["requirements"][0]["subsets"][0]["achieved"]["k"].as_u64();
    assert_eq!(achieved, Some(fewest));
    assert!(fewest >= 3);
    let json = server
        .get(&format!("{}?format=json", crate::support::harness::part_path(&release, "t1", "rows")))
        .await
        .ok(200);
    assert!(json["rows"][0][1]["to"].is_number(), "{json}");
    server.stop().await;
}

#[test]
fn by_the_command_line_one_table_is_published_and_verified() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name);
    let document =
        sequential(&["name", "job", "class"], &[], Some("class"), json!([anonymity(&[new("job")], &[new("#key")], 2)]));
    fs::write(path("T.csv"), PEOPLE).unwrap();
    let publish = |document: &Value, out: &str| {
        fs::write(path("S.json"), document.to_string()).unwrap();
        let (input, spec) = (path("T.csv"), path("S.json"));
        run(guardian().args(["publish", "--input"]).arg(input).arg("--spec").arg(spec).arg("--out").arg(path(out)))
    };
    let mut parts = Vec::new();
    for out in ["out", "again"] {
        let done = publish(&document, out);
        assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
        parts.push(fs::read_to_string(path(out).join("t1.rows.csv")).unwrap());
    }
    // whatever the key, the bytes are those of the cut
    assert_eq!(parts[0], parts[1]);
    assert!(parts[0].contains("Alice,Office,c1"));
    for more in [vec![], vec!["--original".into(), path("T.csv")]] {
        let done = run(guardian().arg("verify").arg(path("out")).args(&more));
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        assert_eq!(done.status.code(), Some(0), "{said}");
        assert!(said.contains("requirements holds"), "{said}");
    }
    // less was required than the specification says
    let text = fs::read_to_string(path("out").join("specification.json")).unwrap();
    fs::write(path("out").join("specification.json"), text.replace("\"k\": 2", "\"k\": 3")).unwrap();
    let done = run(guardian().arg("verify").arg(path("out")).arg("--original").arg(path("T.csv")));
    assert_eq!(done.status.code(), Some(1));
    // no earlier release is known here
    let mut against = document.clone();
    against["method"]["against"] = json!(["018f0000-0000-7000-8000-000000000001"]);
    let done = publish(&against, "refused");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(3), "{said}");
    assert!(said.contains("unknown-release") && said.contains("/method/against/0"), "{said}");
}

/// A tree of two levels over the values of a column.
pub(super) fn grouped(names: &[String], rows: &[Vec<String>], name: &str) -> Value {
    let at = names.iter().position(|column| column == name).unwrap();
    let values: BTreeSet<&String> = rows.iter().map(|row| &row[at]).collect();
    let text = |value: &&String| if value.is_empty() { Value::Null } else { json!(value) };
    let values: Vec<Value> = values.iter().map(text).collect();
    let half = values.len().div_ceil(2);
    if half < 2 {
        return json!({"Any": values});
    }
    json!({"Any": {"first half": values[..half], "second half": values[half..]}})
}

#[tokio::test(flavor = "multi_thread")]
async fn the_releases_of_the_census_in_groups_of_forty() {
    let server = Server::start().await;
    let mut csv = String::new();
    GzDecoder::new(&include_bytes!("../../../examples/data/adult.csv.gz")[..]).read_to_string(&mut csv).unwrap();
    let (names, rows) = cells(csv.as_bytes());
    let dataset = server.dataset(csv).await;
    for (name, levels) in [
        ("education", include_str!("../../data/taxonomies/education.csv")),
        ("marital-status", include_str!("../../data/taxonomies/marital-status.csv")),
    ] {
        let request = server.request(reqwest::Method::PUT, &format!("/v1/taxonomies/{name}"));
        server.send(request.header("content-type", "text/csv").body(levels)).await.ok(201);
    }
    let second = ["marital-status", "relationship", "sex", "native-country", "race"];
    let earlier = server.publish(&dataset, plain(&second)).await;
    let first = ["education", "occupation", "workclass", "marital-status", "relationship", "sex", "income"];
    let own = ["education", "marital-status", "relationship", "sex"];
    let x: Vec<String> = own.iter().map(|name| new(name)).chain(second.iter().map(|name| of(&earlier, name))).collect();
    let mut document = sequential(&first, &[&earlier], Some("income"), json!([anonymity(&x, &[new("#key")], 40)]));
    document["attributes"] = json!({"education": {"taxonomy": "education"}, "marital-status": {"taxonomy": "marital-status"},
        "relationship": {"taxonomy": grouped(&names, &rows, "relationship")}, "sex": {"taxonomy": grouped(&names, &rows, "sex")}});
    let release = server.publish(&dataset, document.clone()).await;
    let of_new = shown(&server, &release).await;
    let places: Vec<usize> =
        own.iter().map(|name| of_new.columns.iter().position(|column| column == name).unwrap()).collect();
    let mut groups: BTreeMap<Vec<&str>, u64> = BTreeMap::new();
    for row in &of_new.rows {
        *groups.entry(places.iter().map(|at| row[*at].as_str()).collect()).or_default() += 1;
    }
    // by what every row of the new release matches at least itself
    let fewest = *groups.values().min().unwrap();
    let achieved = release["method_details"]["requirements"][0]["subsets"][0]["achieved"]["k"].as_u64();
    assert!(fewest >= 40 && groups.len() > 4, "{fewest} in {} groups", groups.len());
    assert_eq!(achieved, Some(fewest));
    let report = server.get(&format!("/v1/releases/{}/internal-report", text(&release["id"]))).await.ok(200);
    let error = |name: &str| report["classification"][name].as_f64().unwrap();
    println!("{}", report["classification"]);
    let rows = ["trained_rows", "tested_rows"].map(|name| report["classification"][name].as_u64());
    assert_eq!(rows, [Some(30_148), Some(15_074)]);
    assert!(error("error_of_original") < 0.2 && error("error") < error("error_of_most_frequent"));
    assert!((0.23..0.27).contains(&error("error_of_most_frequent")));

    // with the person's other attributes as what is inferred, and a share as the bound
    let linked: Vec<String> = [new("relationship"), new("sex")].into_iter().chain([of(&earlier, "race")]).collect();
    document["method"]["requirements"] = json!([linkability(&linked, &[new("income")], "0.95", json!([">50K"]))]);
    document["method"]["publish"] = json!(["relationship", "sex", "income"]);
    document["dataset"] = dataset.clone().into();
    let plan = server.post("/v1/plans", &document).await.ok(200);
    assert_eq!(plan["composition"]["verdict"], "violated", "the first sequel is not among those it is made against");
    server.stop().await;
}
