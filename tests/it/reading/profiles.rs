//! What an officer sees of a dataset: profiles and values, judged by the test's own counting.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use flate2::read::GzDecoder;
use guardian::control::Control;
use guardian::engine::AttributeAssociation;
use guardian::microdata::Attr;
use guardian::publish::slicing::{ColumnChoice, CorrelationBins};
use serde_json::{Value, json};

use crate::support::harness::{HOSPITAL, Server, text};
use crate::support::library::table;

#[tokio::test(flavor = "multi_thread")]
async fn values_come_most_frequent_first_in_pages() {
    let server = Server::start().await;
    let row = |i: usize| format!("{},{}\n", if i.is_multiple_of(7) { "" } else { ["b", "a", "c d"][i % 3] }, i % 40);
    let csv = format!("kind/of,number\n{}", (0..200).map(row).collect::<String>());
    let mut counted: BTreeMap<Option<&str>, u64> = BTreeMap::new();
    for line in csv.lines().skip(1) {
        let value = line.split(',').next().filter(|value| !value.is_empty());
        *counted.entry(value).or_default() += 1;
    }
    let mut expected: Vec<(Option<&str>, u64)> = counted.into_iter().collect();
    expected.sort_by_key(|&(value, count)| (std::cmp::Reverse(count), value));
    let dataset = server.dataset(csv.clone()).await;
    let path = format!("/v1/datasets/{dataset}/attributes/kind%2Fof/values");
    let all = server.get(&path).await.ok(200);
    let items: Vec<Value> = expected.iter().map(|(value, count)| json!({"value": value, "count": count})).collect();
    assert_eq!((&all["items"], &all["next"]), (&json!(items), &Value::Null));

    let mut paged: Vec<Value> = Vec::new();
    let mut next = format!("/v1/datasets/{dataset}/attributes/number/values?limit=7");
    loop {
        let page = server.get(&next).await.ok(200);
        paged.extend(page["items"].as_array().unwrap().iter().cloned());
        let Some(cursor) = page["next"].as_str() else { break };
        next = format!("/v1/datasets/{dataset}/attributes/number/values?limit=7&cursor={cursor}");
    }
    let numbers: Vec<Value> = (0..40).map(|n: u64| json!({"value": n.to_string(), "count": 5})).collect();
    assert_eq!(paged, numbers, "of equal counts by value, numbers by what they are worth");

    let values = |rest: &str| format!("/v1/datasets/{dataset}/attributes/number/values?{rest}");
    for wrong in ["cursor=x", "cursor=-1", "limit=0", "limit=1001", "order=value"] {
        server.get(&values(wrong)).await.problem(400, "malformed-request");
    }
    assert!(server.get(&values("cursor=4000000000")).await.ok(200)["items"].as_array().unwrap().is_empty());
    let missing = server.get(&format!("/v1/datasets/{dataset}/attributes/nothing/values")).await;
    missing.problem(404, "not-found");
    server.delete(&format!("/v1/datasets/{dataset}")).await.ok(200);
    server.get(&path).await.problem(410, "gone");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn profile_reports_associations() {
    let server = Server::start().await;
    // every id once; age and ward single rows out together; zip determines county; drug mostly follows illness
    let row = |i: usize| {
        let (illness, zip) = (i * 7 % 5, i / 3 % 8);
        let drug = if i.is_multiple_of(10) { (illness + 1) % 5 } else { illness };
        format!("p{i},{},w{},z{zip},c{},i{illness},d{drug},x\n", i % 61, i % 13, zip / 2)
    };
    let csv = format!("id,age,ward,zip,county,illness,drug,same\n{}", (0..400).map(row).collect::<String>());
    let dataset = server.dataset(csv).await;
    let profile = server.get(&format!("/v1/datasets/{dataset}/profile")).await.ok(200);
    assert_eq!(profile["columns"][1]["distinct_share"], json!({"count": 61, "of": 400}));
    let dependency =
        json!({"determinant": ["zip"], "dependent": ["county"], "rows_per_value": {"count": 400, "of": 8}});
    assert!(profile["dependencies"].as_array().unwrap().contains(&dependency), "{profile:#}");
    let strength = |a: &str, b: &str| {
        let pairs = profile["associations"].as_array().unwrap();
        pairs
            .iter()
            .find(|pair| pair["a"] == a && pair["b"] == b)
            .map_or(0.0, |pair| pair["phi_squared"].as_f64().unwrap())
    };
    assert!((strength("zip", "county") - 1.0).abs() < 1e-12, "what is determined goes together fully");
    assert!(strength("illness", "drug") > 0.5 && strength("illness", "drug") < 1.0);
    assert_eq!(profile["sampled_rows"], Value::Null);

    let two = server.get(&format!("/v1/datasets/{dataset}/profile?columns=drug,illness")).await.ok(200);
    let names: Vec<&Value> = two["columns"].as_array().unwrap().iter().map(|column| &column["name"]).collect();
    assert_eq!(names, ["illness", "drug"], "in the order of the table");
    server.get(&format!("/v1/datasets/{dataset}/profile?columns=drug,nothing")).await.problem(404, "not-found");

    let wide: Vec<String> = (0..65).map(|at| format!("c{at}")).collect();
    let wide = server.dataset(format!("{}\n{}\n", wide.join(","), vec!["1"; 65].join(","))).await;
    let problem = server.get(&format!("/v1/datasets/{wide}/profile")).await.problem(413, "too-many-columns");
    assert_eq!((&problem["limit"], &problem["found"]), (&json!(64), &json!(65)));
    let log = server.get("/v1/audit-log?action=dataset.read_profile").await.ok(200);
    assert_eq!(log["items"].as_array().unwrap().len(), 2, "what was answered");
    server.stop().await;
}

/// What a profile shows is what columns are made by: the attributes beside the sensitive one are those that go with it most.
#[test]
fn columns_are_made_by_the_associations_of_the_profile() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data/adult.csv.gz");
    let table = table(GzDecoder::new(File::open(path).unwrap()));
    let control = Control::default();
    let profile = guardian::engine::profile(&table, &control).unwrap();
    assert_eq!(profile.associations.len(), 105, "each pair of 15 attributes");
    for (at, sensitive) in table.names().iter().enumerate() {
        for width in [1, 2, 4] {
            let of_pair = |pair: &AttributeAssociation| match (&pair.a == sensitive, &pair.b == sensitive) {
                (true, _) => Some(pair.b.clone()),
                (_, true) => Some(pair.a.clone()),
                _ => None,
            };
            let mut strongest: Vec<String> = profile.associations.iter().filter_map(of_pair).take(width - 1).collect();
            strongest.push(sensitive.clone());
            strongest.sort_by_key(|name| table.names().iter().position(|known| known == name));
            let wanted = ColumnChoice::SensitiveWidth { count: 2, width };
            let columns = wanted
                .divide(&table, table.attributes(), Attr::from(at), &CorrelationBins::default(), &control)
                .unwrap();
            let last: Vec<&str> = columns[1].iter().map(|attr| table.name(attr)).collect();
            assert_eq!(last, strongest, "{sensitive} {width}");
        }
    }
}

/// The worked table of slicing, section 4.1, has its published associations.
#[tokio::test(flavor = "multi_thread")]
async fn associations_are_those_of_the_paper() {
    let server = Server::start().await;
    let csv = "age,sex,zip,disease\n22,M,47906,dyspepsia\n22,F,47906,flu\n33,F,47905,flu\n52,F,47905,bronchitis\n54,M,47302,flu\n\
               60,M,47302,dyspepsia\n60,M,47304,dyspepsia\n64,F,47304,gastritis\n";
    let dataset = server.dataset(csv).await;
    let profile = server.get(&format!("/v1/datasets/{dataset}/profile?columns=sex,zip,disease")).await.ok(200);
    let pairs = profile["associations"].as_array().unwrap();
    let found: Vec<(String, String, i64)> = pairs
        .iter()
        .map(|pair| (text(&pair["a"]), text(&pair["b"]), (pair["phi_squared"].as_f64().unwrap() * 1e4).round() as i64))
        .collect();
    let pair = |a: &str, b: &str, phi| (a.to_owned(), b.to_owned(), phi);
    assert_eq!(found, [pair("sex", "disease", 6667), pair("sex", "zip", 5000), pair("zip", "disease", 3333)]);
    let hospital = server.dataset(HOSPITAL).await;
    server.get(&format!("/v1/datasets/{hospital}/profile")).await.ok(200);
    server.stop().await;
}
