//! Buckets by thresholds: over HTTP and by the command line, held against definitions of this test's own; and every refusal.

use std::collections::BTreeMap;
use std::fs;
use std::fs::File;
use std::path::Path;

use flate2::read::GzDecoder;
use guardian::ledger::EarlierDisclosures;
use guardian::random::{RandomStreams, ReleaseKey};
use serde_json::{Value, json};

use crate::support::folder::CommandFixture;
use crate::support::harness::{Server, kind, text};
use crate::support::library::{Original, release, table};

/// A fraction, as a text says it.
fn fraction(text: &Value) -> (u128, u128) {
    let text = text.as_str().map_or_else(|| text.to_string(), str::to_owned);
    if let Some((a, b)) = text.split_once('/') {
        return (a.parse().unwrap(), b.parse().unwrap());
    }
    let (whole, decimals) = text.split_once('.').unwrap_or((&text, ""));
    (format!("{whole}{decimals}").parse().unwrap(), 10u128.pow(decimals.len() as u32))
}

/// Per bucket, how often each row of a part stands in it.
type Cells = BTreeMap<u64, BTreeMap<Vec<String>, u64>>;

fn cells(csv: &[u8]) -> Cells {
    let mut cells = Cells::new();
    for row in csv::Reader::from_reader(csv).records() {
        let row: Vec<String> = row.unwrap().iter().map(str::to_owned).collect();
        *cells.entry(row[0].parse().unwrap()).or_default().entry(row[1..].to_vec()).or_default() += 1;
    }
    cells
}

/// Holds the parts against thresholds, which are given by value and how often it occurs of how many rows; gives the setting.
fn judge(
    manifest: &Value,
    qi: &[u8],
    sa: &[u8],
    threshold: impl Fn(&str, u64, u64) -> (u128, u128),
) -> Vec<(u64, u64)> {
    let (qi, sa) = (cells(qi), cells(sa));
    let size = |bucket: &BTreeMap<Vec<String>, u64>| bucket.values().sum::<u64>();
    let counterfeits = manifest["tables"][0]["parts"][1]["counterfeits_per_bucket"].as_u64().unwrap_or(0);
    assert!(qi.keys().copied().eq(1..=qi.len() as u64), "labels are 1, 2, ...");
    let mut overall: BTreeMap<&str, u64> = BTreeMap::new();
    let rows: u64 = qi.values().map(size).sum();
    let mut setting: BTreeMap<u64, u64> = BTreeMap::new();
    for (label, bucket) in &sa {
        assert_eq!(size(&qi[label]) + counterfeits, size(bucket));
        bucket.iter().for_each(|(value, count)| *overall.entry(&value[0]).or_default() += count);
        *setting.entry(size(&qi[label])).or_default() += 1;
    }
    for (label, bucket) in &sa {
        for (value, count) in bucket {
            let (a, b) = threshold(&value[0], overall[value[0].as_str()], rows);
            let (count, size) = (u128::from(*count), u128::from(size(&qi[label])));
            assert!(count * b <= a * size, "{count} of {size} in bucket {label}, and {a}/{b} are allowed");
        }
    }
    let setting: Vec<(u64, u64)> = setting.into_iter().collect();
    let reported = &manifest["method_details"];
    let listed: Vec<Value> = setting.iter().map(|(size, buckets)| json!({"size": size, "buckets": buckets})).collect();
    assert_eq!(reported["setting"], json!(listed));
    let loss: u64 = setting.iter().map(|(size, buckets)| buckets * (size - 1) * (size - 1)).sum();
    assert_eq!(reported["loss"], loss);
    assert!((reported["mse"].as_f64().unwrap() - loss as f64 / (rows - 1) as f64).abs() < 1e-9);
    setting
}

fn adult() -> Original {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data/adult.csv.gz");
    Original::new(table(GzDecoder::new(File::open(path).unwrap())))
}

fn occupation(theta: u32, sizes: &Value) -> Value {
    json!({"attributes": {"age": {"publish": true}, "sex": {"publish": true}, "race": {"publish": true}},
        "unlisted": "drop", "method": {"type": "bucketize", "sensitive": "occupation",
        "thresholds": {"linear": {"theta": theta.to_string(), "c": "0.02"}}, "sizes": sizes}})
}

#[test]
fn frequent_occupations_may_take_more_of_a_bucket() {
    let input = adult();
    let mut losses = Vec::new();
    for (number, theta) in (1u8..).zip([2, 4, 8, 16, 32]) {
        let job = input.job(&occupation(theta, &json!("two"))).unwrap();
        let streams = RandomStreams::Keyed(ReleaseKey::from_bytes([number; 32]));
        let (released, files) =
            release(&job, &EarlierDisclosures::default(), &streams).unwrap_or_else(|e| panic!("{theta}: {e:?}"));
        let manifest = serde_json::to_value(&released.manifest).unwrap();
        let theta = u128::from(theta);
        let setting = judge(&manifest, &files.0["t1.qi.csv"], &files.0["t1.sa.csv"], |_, count, rows| {
            // theta * count / rows + 2/100, at most 1
            let of = 100 * u128::from(rows);
            ((100 * theta * u128::from(count) + 2 * u128::from(rows)).min(of), of)
        });
        assert!(setting.len() <= 2 && setting.iter().all(|(size, _)| *size <= 50), "{setting:?}");
        losses.push(manifest["method_details"]["loss"].as_u64().unwrap());
    }
    assert!(losses.is_sorted_by(|a, b| a >= b), "what is allowed for less is allowed for more: {losses:?}");
    assert!(losses[0] > 2 * losses[4], "{losses:?}");
}

#[test]
fn more_sizes_lose_less() {
    let input = adult();
    let loss = |sizes: Value| {
        let job = input.job(&occupation(8, &sizes)).unwrap();
        let streams = RandomStreams::Keyed(ReleaseKey::from_bytes([3; 32]));
        let (released, _) =
            release(&job, &EarlierDisclosures::default(), &streams).unwrap_or_else(|e| panic!("{sizes}: {e:?}"));
        let method_details = serde_json::to_value(released.manifest.method_details).unwrap();
        (method_details["loss"].as_u64().unwrap(), method_details["lower_bound"].as_u64())
    };
    let (two, multi, (optimal, bound)) = (loss(json!("two")).0, loss(json!("multi")).0, loss(json!("optimal")));
    assert!(optimal <= multi && multi <= two, "{optimal} {multi} {two}");
    assert!(bound.unwrap() <= optimal && bound.unwrap() > optimal / 2, "{bound:?} {optimal}");
}

/// 600 patients; one in a hundred has HIV, and one in a hundred hepatitis.
fn patients() -> String {
    let disease = |i: u32| match i % 100 {
        7 => "HIV",
        31 => "hepatitis",
        rest => ["flu", "asthma", "angina", "fracture", "migraine"][(rest % 5) as usize],
    };
    let row = |i: u32| format!("{},{},{}\n", 20 + i % 60, ["f", "m"][(i / 7 % 2) as usize], disease(i));
    "age,sex,disease\n".to_owned() + &(0..600).map(row).collect::<String>()
}

fn bucketize(method: Value) -> Value {
    let mut method = method;
    method["type"] = "bucketize".into();
    method["sensitive"] = "disease".into();
    json!({"attributes": {"age": {"publish": true}, "sex": {"publish": true}}, "method": method})
}

fn explicit() -> Value {
    json!({"explicit": {"HIV": "0.05", "hepatitis": "1/10"}, "otherwise": "0.6"})
}

#[tokio::test(flavor = "multi_thread")]
async fn thresholds_of_single_values_are_kept_planned_and_verified() {
    let server = Server::start().await;
    let dataset = server.dataset(patients()).await;
    let mut plan = bucketize(json!({"thresholds": explicit()}));
    plan["dataset"] = dataset.as_str().into();
    let planned = server.post("/v1/plans", &plan).await.ok(200);
    assert_eq!(planned["feasible"], true, "{planned:#}");
    let release = server.publish(&dataset, bucketize(json!({"thresholds": explicit()}))).await;
    assert_eq!(planned["method_details"], release["method_details"]);
    let parts = [server.part(&release, "t1", "qi").await, server.part(&release, "t1", "sa").await];
    let setting = judge(&release, parts[0].as_bytes(), parts[1].as_bytes(), |value, _, _| match value {
        "HIV" => (1, 20),
        "hepatitis" => (1, 10),
        _ => (3, 5),
    });
    // HIV stands in buckets of at least twenty rows, most others in small ones
    assert!(setting.len() == 2 && setting[0].0 < 10 && setting[1].0 >= 20, "{setting:?}");
    let rule = &release["rules"][0];
    assert_eq!((&rule["pointer"], &rule["enforced_by"]), (&json!("/method"), &json!({"table": "t1"})));
    assert_eq!(rule["guarantee"]["type"], "thresholds");
    assert_eq!((&rule["guarantee"]["least"], &rule["guarantee"]["most"]), (&json!("0.05"), &json!("0.6")));
    // shares stand in their normal form
    let mut normal = explicit();
    normal["explicit"]["hepatitis"] = "0.1".into();
    assert_eq!(release["method_details"]["thresholds"], normal);
    assert_eq!(release["tables"][0]["protection"], "guarding");
    assert!(rule["achieved"]["worst_posterior"]["count"].is_u64());

    // the same once more is the same release, and other buckets of the same people are refused
    let again = server.job(&dataset, bucketize(json!({"thresholds": explicit()}))).await.ok(200);
    assert_eq!((&again["reused"], &again["release"]), (&json!(true), &release["id"]));
    let other = bucketize(json!({"thresholds": {"uniform": {"l": 2}}}));
    assert_eq!(kind(&server.refused(&dataset, other).await), "composition-violated");

    // a count of the sensitive part is exact; over both parts it is spread
    let ask = |conditions: Value| {
        let path = format!("/v1/releases/{}/queries", text(&release["id"]));
        let server = &server;
        async move { server.post(&path, &json!({"queries": [{"where": conditions}]})).await.ok(200)["answers"][0].clone() }
    };
    let hiv = ask(json!([{"attribute": "disease", "in": ["HIV"]}])).await;
    assert_eq!((hiv["estimate"].as_f64(), &hiv["error_model"]), (Some(6.0), &json!("exact")));
    let young = ask(json!([{"attribute": "disease", "in": ["HIV"]}, {"attribute": "age", "to": 49}])).await;
    assert!(young["estimate"].as_f64().unwrap() > 0.5 && young["estimate"].as_f64().unwrap() < 5.5, "{young}");

    // what is misspelled would protect nothing
    plan["method"]["thresholds"]["explicit"]["HVI"] = "0.01".into();
    let planned = server.post("/v1/plans", &plan).await.ok(200);
    let fault = &planned["problems"][0]["errors"][0];
    assert_eq!((kind(fault), &fault["pointer"]), ("threshold-unused", &json!("/method/thresholds")), "{planned:#}");
    assert_eq!((&planned["feasible"], &fault["unused"]), (&json!(false), &json!(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_threshold_counts_to_the_last_row() {
    let server = Server::start().await;
    // three values, twenty rows each: a third of three is one, and less than a third is none
    let rows: String = (0..60).map(|i| format!("{},v{}\n", i % 11, i % 3)).collect();
    let csv = format!("age,disease\n{rows}");
    let method = |share: &str, most: u64| {
        let thresholds = json!({"explicit": {}, "otherwise": share});
        json!({"attributes": {"age": {"publish": true}},
            "method": {"type": "bucketize", "sensitive": "disease", "thresholds": thresholds, "max_size": most}})
    };
    let release = server.publish(&server.dataset(csv.clone()).await, method("1/3", 3)).await;
    assert_eq!(release["method_details"]["setting"], json!([{"size": 3, "buckets": 20}]));
    assert_eq!(release["method_details"]["loss"], 80);
    let server = Server::start().await;
    let dataset = server.dataset(csv.clone()).await;
    let refused = server.refused(&dataset, method("0.333333333", 60)).await;
    assert_eq!(kind(&refused["errors"][0]), "rule-ineligible");
    assert_eq!(refused["errors"][0]["too_frequent"], 3);
    // a third of the table, and no buckets but of all rows
    let listed = |sizes: Value| {
        let mut document = method("1/3", 3);
        document["method"].as_object_mut().unwrap().remove("max_size");
        document["method"]["sizes"] = sizes;
        document
    };
    let refused = server.refused(&dataset, listed(json!([{"size": 4, "buckets": 15}]))).await;
    assert_eq!(
        (kind(&refused["errors"][0]), &refused["errors"][0]["pointer"]),
        ("infeasible-sizes", &json!("/method/sizes"))
    );
    let refused = server.refused(&dataset, listed(json!([{"size": 3, "buckets": 19}]))).await;
    assert!(refused["errors"][0]["detail"].as_str().unwrap().contains("57 rows"), "{refused:#}");
    let release =
        server.publish(&dataset, listed(json!([{"size": 6, "buckets": 6}, {"size": 12, "buckets": 2}]))).await;
    assert_eq!(release["method_details"]["loss"], 6 * 25 + 2 * 121);
}

#[tokio::test(flavor = "multi_thread")]
async fn counterfeits_lower_the_posterior_under_corruption() {
    let plain: String = (0..60).map(|i| format!("{},{},d{}\n", i % 7, i / 6 % 2, i % 6)).collect();
    for (counterfeits, worst) in [(json!(null), 1), (json!({"per_bucket": 2}), 3)] {
        let server = Server::start().await;
        let dataset = server.dataset(format!("age,sex,disease\n{plain}")).await;
        let method = json!({"thresholds": {"uniform": {"l": 3}}, "counterfeits": counterfeits, "sizes": "one"});
        let release = server.publish(&dataset, bucketize(method)).await;
        let path = format!("/v1/releases/{}/attacks", text(&release["id"]));
        let play = |known: u64| json!({"attack": "corruption", "options": {"corrupted": known}});
        // two of three are known
        let found = server.post(&path, &play(2)).await.ok(200);
        assert_eq!(found["worst"], json!({"count": 1, "of": worst}), "{found:#}");
        assert_eq!(found["breach"], json!(worst < 3), "{found:#}");
        let all = server.post(&path, &play(3)).await.ok(200);
        assert_eq!((&all["worst"], &all["breach"]), (&json!(null), &json!(false)));
        server.post(&path, &play(0)).await.fault("/options/corrupted", "parameter-range");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn infeasible_specification_is_refused_with_reason() {
    let server = Server::start().await;
    let dataset = server.dataset(patients()).await;
    let thresholds = |thresholds: Value| bucketize(json!({"thresholds": thresholds}));
    let uniform = |l: u64| json!({"uniform": {"l": l}});
    // found by looking at the rows
    let cases = [
        (thresholds(json!({"explicit": {"HIV": "0.05"}})), "/method/thresholds", "threshold-missing"),
        (
            thresholds(json!({"explicit": {"HIV": "0.005"}, "otherwise": "0.6"})),
            "/method/thresholds",
            "rule-ineligible",
        ),
        (bucketize(json!({"thresholds": explicit(), "max_size": 15})), "/method/max_size", "infeasible-sizes"),
        (
            bucketize(json!({"thresholds": explicit(), "min_size": 3, "max_size": 3})),
            "/method/max_size",
            "infeasible-sizes",
        ),
        (
            bucketize(json!({"thresholds": uniform(2), "counterfeits": {"per_bucket": 6}})),
            "/method/counterfeits",
            "domain-too-small",
        ),
        (thresholds(json!({"linear": {"theta": "1000", "c": "0.5"}})), "/method/thresholds", "vacuous-guarantee"),
    ];
    let url = format!("/v1/datasets/{dataset}/attributes/disease/values");
    for (document, pointer, name) in cases {
        let problem = server.refused(&dataset, document.clone()).await;
        let fault = &problem["errors"][0];
        assert_eq!((kind(fault), fault["pointer"].as_str()), (name, Some(pointer)), "{problem:#}");
        if ["threshold-missing", "rule-ineligible"].contains(&name) {
            assert_eq!((&fault["attribute"], &fault["values_url"]), (&json!("disease"), &json!(url)), "{problem:#}");
            assert!(server.get(fault["values_url"].as_str().unwrap()).await.status == 200);
        }
        if name == "threshold-missing" {
            assert_eq!(fault["missing"], 6);
        }
        let mut plan = document;
        plan["dataset"] = dataset.as_str().into();
        let plan = server.post("/v1/plans", &plan).await.ok(200);
        assert_eq!((&plan["feasible"], kind(&plan["problems"][0]["errors"][0])), (&json!(false), name), "{plan:#}");
    }
    // found in the document
    let with = |name: &str, value: Value| {
        let mut document = thresholds(explicit());
        document["method"][name] = value;
        document
    };
    let faulty = [
        (thresholds(uniform(1)), "/method/thresholds", "vacuous-guarantee"),
        (thresholds(uniform(6)), "/method", "rule-ineligible"),
        (thresholds(json!({"explicit": {"HIV": 1}, "otherwise": "1"})), "/method/thresholds", "vacuous-guarantee"),
        (thresholds(json!({})), "/method/thresholds", "parameter-range"),
        (thresholds(json!({"uniform": {"l": 2}, "explicit": {}})), "/method/thresholds", "parameter-range"),
        (
            thresholds(json!({"uniform": {"l": 2}, "otherwise": "0.5"})),
            "/method/thresholds/otherwise",
            "parameter-range",
        ),
        (
            thresholds(json!({"explicit": {"HIV": 0.051_234_567_8}, "otherwise": "0.6"})),
            "/method/thresholds/explicit",
            "parameter-range",
        ),
        (
            thresholds(json!({"explicit": {"HIV": "0"}, "otherwise": "0.6"})),
            "/method/thresholds/explicit",
            "parameter-range",
        ),
        (
            thresholds(json!({"explicit": {"HIV": "1.1"}, "otherwise": "0.6"})),
            "/method/thresholds/explicit",
            "parameter-range",
        ),
        (thresholds(json!({"explicit": {}, "otherwise": "two"})), "/method/thresholds/otherwise", "parameter-range"),
        (thresholds(json!({"linear": {"theta": "8"}})), "/method/thresholds/linear/c", "parameter-range"),
        (
            thresholds(json!({"linear": {"theta": -1, "c": "0.1"}})),
            "/method/thresholds/linear/theta",
            "parameter-range",
        ),
        (thresholds(json!({"quadratic": {}})), "/method/thresholds/quadratic", "unknown-field"),
        (bucketize(json!({})), "/method/thresholds", "parameter-range"),
        (with("sizes", json!("three")), "/method/sizes", "parameter-range"),
        (with("sizes", json!([])), "/method/sizes", "parameter-range"),
        (with("sizes", json!([{"size": 0, "buckets": 3}])), "/method/sizes/0/size", "parameter-range"),
        (with("sizes", json!([{"size": 3}])), "/method/sizes/0/buckets", "parameter-range"),
        (
            with("sizes", json!([{"size": 3, "buckets": 3}, {"size": 3, "buckets": 1}])),
            "/method/sizes/1/size",
            "parameter-range",
        ),
        (with("max_size", json!(0)), "/method/max_size", "parameter-range"),
        (with("min_size", json!(60)), "/method/min_size", "parameter-range"),
        (with("counterfeits", json!({"per_bucket": 1})), "/method/counterfeits", "guarantee-unsupported"),
        (with("counterfeits", json!({"per_bucket": 0})), "/method/counterfeits/per_bucket", "parameter-range"),
        (with("sensitive", json!("illness")), "/method/sensitive", "unknown-attribute"),
        (with("quasi_identifiers", json!(["age", "disease"])), "/method/quasi_identifiers", "bad-columns"),
        (with("thesholds", json!(1)), "/method/thesholds", "unknown-field"),
    ];
    for (document, pointer, name) in faulty {
        server.job(&dataset, document).await.fault(pointer, name);
    }
    let mut listed = with("sizes", json!([{"size": 600, "buckets": 1}]));
    listed["method"]["max_size"] = 5.into();
    server.job(&dataset, listed).await.fault("/method/max_size", "parameter-range");
    let mut excluded = thresholds(explicit());
    excluded["attributes"]["disease"] = json!({"excludable": ["flu"]});
    server.job(&dataset, excluded).await.fault("/attributes/disease/excludable", "guarantee-unsupported");
}

#[tokio::test(flavor = "multi_thread")]
async fn counterfeits_stand_in_every_bucket_and_are_reckoned_with() {
    let server = Server::start().await;
    let dataset = server.dataset(patients()).await;
    let method = json!({"thresholds": {"uniform": {"l": 4}}, "counterfeits": {"per_bucket": 1}});
    let release = server.publish(&dataset, bucketize(method.clone())).await;
    let part = &release["tables"][0]["parts"][1];
    assert_eq!(
        (&part["row_meaning"], &part["counterfeits_per_bucket"]),
        (&json!("tuples_and_counterfeits"), &json!(1))
    );
    assert_eq!(release["rules"][0]["guarantee"], json!({"type": "l_diversity", "l": 4}));
    let parts = [server.part(&release, "t1", "qi").await, server.part(&release, "t1", "sa").await];
    judge(&release, parts[0].as_bytes(), parts[1].as_bytes(), |_, _, _| (1, 4));
    let shown = cells(parts[1].as_bytes());
    // of every bucket some value could be taken away, and the rest are those of the rows
    assert_eq!(part["rows"].as_u64().unwrap(), 600 + shown.len() as u64);
    let mut overall: BTreeMap<&str, u64> = BTreeMap::new();
    shown.values().flatten().for_each(|(value, count)| *overall.entry(&value[0]).or_default() += count);
    let original: BTreeMap<String, u64> = patients().lines().skip(1).fold(BTreeMap::new(), |mut counts, row| {
        *counts.entry(row.rsplit(',').next().unwrap().to_owned()).or_default() += 1;
        counts
    });
    assert!(original.iter().all(|(value, count)| overall[value.as_str()] >= *count));
    // HIV is in few buckets, and a counterfeit in many
    assert!(overall["HIV"] + overall["hepatitis"] > 12, "{overall:?}");

    let report = server.get(&format!("/v1/releases/{}/report", text(&release["id"]))).await.ok(200);
    let certainty = report["certainty"].as_array().unwrap();
    let last = certainty.iter().find(|line| line["size"].as_u64() == line["known"].as_u64().map(|q| q + 1)).unwrap();
    assert_eq!(last["real"], json!({"count": 1, "of": 2}));

    let path = format!("/v1/releases/{}/queries", text(&release["id"]));
    let ask = json!({"queries": [{"where": []}, {"where": [{"attribute": "disease", "in": ["flu", "asthma", "angina", "fracture", "migraine", "HIV", "hepatitis"]}]},
        {"where": [{"attribute": "disease", "in": ["flu"]}, {"attribute": "sex", "in": ["f"]}]}]});
    let answers = server.post(&path, &ask).await.ok(200);
    let estimate = |at: usize| answers["answers"][at]["estimate"].as_f64().unwrap();
    assert!((estimate(0) - 600.0).abs() < 1e-6 && (estimate(1) - 600.0).abs() < 1e-6, "{answers}");
    assert!(estimate(2) > 0.2 * original["flu"] as f64 && estimate(2) < 0.8 * original["flu"] as f64, "{answers}");

    // repeated downloads are equal: two drawings would reveal the counterfeits
    assert_eq!(server.part(&release, "t1", "sa").await, parts[1]);
    let again = server.job(&dataset, bucketize(method)).await.ok(200);
    assert_eq!((&again["reused"], &again["release"]), (&json!(true), &release["id"]));
}

#[test]
fn the_command_line_publishes_and_verifies() {
    let methods = [
        json!({"thresholds": explicit(), "sizes": "multi"}),
        json!({"thresholds": {"uniform": {"l": 4}}, "counterfeits": {"per_bucket": 2}}),
    ];
    for (number, method) in methods.into_iter().enumerate() {
        let mut document = bucketize(method);
        document["utility"] = json!(["entropy"]);
        document["internal"] = json!({"utility": ["kl"]});
        let folder = CommandFixture::new(patients(), &document);
        let manifest = folder.published("out", &[]);
        assert_eq!(folder.is_verified("out"), [true, true]);
        assert!(manifest["utility"]["model_entropy_nats"].as_f64().unwrap() > 0.0);
        let [qi, sa] = ["out/t1.qi.csv", "out/t1.sa.csv"].map(|part| fs::read(folder.path(part)).unwrap());
        judge(&manifest, &qi, &sa, |value, _, _| {
            if number == 1 {
                return (1, 4);
            }
            let of = &explicit()["explicit"][value];
            if of.is_null() { fraction(&json!("0.6")) } else { fraction(of) }
        });
        // a figure, a threshold, and what it names: none can be changed
        let changes: [fn(&mut Value); 3] = [
            |manifest| manifest["method_details"]["loss"] = 1.into(),
            |manifest| manifest["method_details"]["mse"] = 0.5.into(),
            |manifest| manifest["method_details"]["thresholds"] = json!({"explicit": {}, "otherwise": "0.9"}),
        ];
        folder.assert_refuted("out", &manifest, &changes);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ratio_of_noisy_counts_is_inferred() {
    let server = Server::start().await;
    let path = "/v1/analyses/differential-inference";
    let asked = json!({"x": "1000", "y": "800", "scale": "10", "threshold": "0.6", "within": "0.1"});
    let inferred = server.post(path, &asked).await.ok(200);
    let number = |name: &str| inferred[name].as_f64().unwrap();
    assert_eq!((number("ratio"), &inferred["breach"]), (0.8, &json!(true)));
    assert!((number("factor") - 1.0002).abs() < 1e-12 && (number("taylor_mean") - 0.80016).abs() < 1e-12);
    assert!((number("taylor_variance") - 3.28e-4).abs() < 1e-12 && number("p_nonpositive") < 1e-40);
    assert!((number("prob_within") - 0.999).abs() < 5e-4, "{inferred}");
    assert_eq!(inferred["caveats"], json!(["moments-do-not-exist", "budget-is-shared"]));
    // a hundred rows give no certainty, and a share at the threshold is not above it
    let near = server.post(path, &json!({"x": 100, "y": "80", "scale": "10", "threshold": "0.6"})).await.ok(200);
    assert!((near["prob_within"].as_f64().unwrap() - 0.406).abs() < 5e-4 && near["breach"] == false, "{near}");
    let mut at = asked.clone();
    at["threshold"] = "4/5".into();
    assert_eq!(server.post(path, &at).await.ok(200)["breach"], false);

    for (name, value) in [
        ("x", json!("0")),
        ("x", json!(1.512_345_678_9)),
        ("x", json!("1e3")),
        ("x", Value::Null),
        ("y", json!("-1")),
        ("y", json!("1001")),
        ("scale", json!("0")),
        ("scale", json!([])),
        ("threshold", json!("1.5")),
        ("threshold", json!(0)),
        ("within", json!("2")),
    ] {
        let mut wrong = asked.clone();
        wrong[name] = value;
        server.post(path, &wrong).await.fault(&format!("/{name}"), "parameter-range");
    }
    let mut more = asked.clone();
    more["epsilon"] = "1".into();
    server.post(path, &more).await.fault("/epsilon", "unknown-field");
    let none = server.post(path, &json!([])).await.status;
    assert!(none == 400 || none == 422, "{none}");
}
