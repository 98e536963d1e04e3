//! Overlapping slicing: releases, refusals and reports.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;

use flate2::read::GzDecoder;
use guardian::control::Control;
use guardian::engine;
use guardian::engine::{EngineError, VerificationMaterial};
use guardian::ledger::EarlierDisclosures;
use guardian::publication::{CheckName, ModelKind};
use guardian::random::{RandomStreams, ReleaseKey};
use guardian::spec::Attack;
use serde_json::{Value, json};

use super::slicing::{TABLE, explicit, sliced, with};
use crate::support::harness::{Server, kind, part_path, text, versatile};
use crate::support::library::{Memory, Original, Random, cells, release, seeds, some_rows, table, verified};

/// Every combination of b, c and s four times, and something beside them.
fn even() -> String {
    let mut csv = String::from("a,b,c,s\n");
    (0..64).for_each(|row| csv += &format!("{},b{},c{},s{}\n", row / 16, row % 2, row / 2 % 2, row / 4 % 4));
    csv
}

const COLUMNS: [&[&str]; 3] = [&["a", "b"], &["b", "s"], &["c", "s"]];

/// Per bucket, the rows of each column.
type Buckets = BTreeMap<String, Vec<Vec<Vec<String>>>>;

/// The names of each column, and the rows of the buckets.
fn read(parts: &[Vec<u8>]) -> (Vec<Vec<String>>, Buckets) {
    let (mut names, mut buckets) = (Vec::new(), Buckets::new());
    for (at, part) in parts.iter().enumerate() {
        let (mut header, rows) = cells(part);
        assert_eq!(header.remove(0), "bucket");
        names.push(header);
        for mut row in rows {
            let bucket = buckets.entry(row.remove(0)).or_default();
            bucket.resize(parts.len(), Vec::new());
            bucket[at].push(row);
        }
    }
    (names, buckets)
}

/// The largest share of a value of `s` among all that is known of two columns with it, `b` and `s`, and `c` and `s`: of their combinations,
/// and of the rows that are expected.
fn worst(buckets: &Buckets, (one, other): (usize, usize)) -> f64 {
    let mut worst: f64 = 0.0;
    for columns in buckets.values() {
        let count = |at: usize| {
            let mut counts: BTreeMap<(&str, &str), f64> = BTreeMap::new();
            columns[at].iter().for_each(|row| *counts.entry((&row[0], &row[1])).or_default() += 1.0);
            counts
        };
        let (left, right) = (count(one), count(other));
        let mut values: BTreeMap<&str, f64> = BTreeMap::new();
        left.iter().for_each(|((_, value), rows)| *values.entry(value).or_default() += rows);
        let knowns = |counts: &BTreeMap<(&str, &str), f64>| {
            counts.keys().map(|(known, _)| (*known).to_owned()).collect::<BTreeSet<String>>()
        };
        let mut shares = |weights: Vec<f64>| {
            let all: f64 = weights.iter().sum();
            if all > 0.0 {
                worst = weights.iter().fold(worst, |worst, weight| worst.max(weight / all));
            }
        };
        let of = |counts: &BTreeMap<(&str, &str), f64>, known: &str, value: &str| {
            counts.get(&(known, value)).copied().unwrap_or(0.0)
        };
        for b in knowns(&left) {
            shares(values.keys().map(|value| of(&left, &b, value)).collect());
            for c in knowns(&right) {
                let weight = |value: &&str| of(&left, &b, value) * of(&right, &c, value);
                shares(values.keys().map(weight).collect());
                shares(values.iter().map(|(value, rows)| weight(value) / rows).collect());
            }
        }
        for c in knowns(&right) {
            shares(values.keys().map(|value| of(&right, &c, value)).collect());
        }
    }
    worst
}

/// How many tuples of all attributes the buckets may hold, and of all but `s`.
fn members(buckets: &Buckets, names: &[Vec<String>]) -> (usize, usize) {
    let mut all: BTreeSet<BTreeMap<&str, &str>> = BTreeSet::new();
    for columns in buckets.values() {
        let mut held: BTreeSet<BTreeMap<&str, &str>> = BTreeSet::from([BTreeMap::new()]);
        for (names, rows) in names.iter().zip(columns) {
            let mut more = BTreeSet::new();
            for (known, row) in held.iter().flat_map(|known| rows.iter().map(move |row| (known, row))) {
                let mut known = known.clone();
                let mut agrees = names.iter().zip(row);
                if agrees.all(|(name, value)| *known.entry(name.as_str()).or_insert(value.as_str()) == value) {
                    more.insert(known);
                }
            }
            held = more;
        }
        all.extend(held);
    }
    let without = all.iter().map(|tuple| tuple.iter().filter(|(name, _)| **name != "s").collect::<Vec<_>>());
    (all.len(), without.collect::<BTreeSet<_>>().len())
}

/// The divergence of the rows of [`even`] from what a reader makes of columns a, b and b, s and c, s: of all rows that are expected of a bucket
/// when rows that agree are put side by side at random.
fn divergence(buckets: &Buckets) -> f64 {
    let mut nats = 0.0;
    for row in 0..64 {
        let (a, b, c, s) = (row / 16, row % 2, row / 2 % 2, row / 4 % 4);
        let (a, b, c, s) = (a.to_string(), format!("b{b}"), format!("c{c}"), format!("s{s}"));
        let mut expected = 0.0;
        for columns in buckets.values() {
            let count = |at: usize, admits: &dyn Fn(&[String]) -> bool| {
                columns[at].iter().filter(|row| admits(row)).count() as f64
            };
            let over = count(1, &|row| row[0] == b) * count(2, &|row| row[1] == s);
            let times = count(0, &|row| row[0] == a && row[1] == b)
                * count(1, &|row| row[0] == b && row[1] == s)
                * count(2, &|row| row[0] == c && row[1] == s);
            expected += if times > 0.0 { times / over } else { 0.0 };
        }
        // all rows are different
        nats += ((1.0 / 64.0) / (expected / 64.0)).ln() / 64.0;
    }
    nats
}

/// A figure of each class of a histogram.
fn classes(member: &Value, name: &str) -> Vec<u64> {
    member["histogram"].as_array().unwrap().iter().map(|class| class[name].as_u64().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_that_share_attributes_are_published_and_stand_alone() {
    let server = Server::start().await;
    let dataset = server.dataset(even().replace('\n', ",x\n").replacen(",x", ",f", 1)).await;
    let mut document = sliced("s", explicit(&COLUMNS), json!(2));
    document["unlisted"] = "drop".into();
    document["dataset"] = dataset.as_str().into();
    document["internal"] =
        json!({"utility": ["kl", {"count_queries": {"number": 20, "dimensions": 2, "value_fraction": "0.5"}}]});
    let plan = server.post("/v1/plans", &document).await.ok(200);
    assert_eq!(
        (&plan["feasible"], &plan["tables"][0]["kind"], &plan["tables"][0]["protection"]),
        (&json!(true), &json!("sliced"), &json!("exclusive")),
        "{plan:#}"
    );
    let manifest = server.publish(&dataset, document.clone()).await;
    let reported = &manifest["tables"][0];
    assert_eq!(
        (&reported["kind"], &reported["protection"], &reported["guards"]),
        (&json!("sliced"), &json!("exclusive"), &json!([]))
    );
    assert_eq!(reported["attributes"], json!(["a", "b", "c", "s"]));
    assert_eq!(manifest["method_details"], json!({"columns": COLUMNS, "diversity": "bucket"}));
    assert_eq!(manifest["rules"][0]["enforced_by"], json!({"table": "t1"}));
    assert!(manifest["warnings"].to_string().contains("columns-share-attributes"), "{manifest:#}");
    let mut parts = Vec::new();
    for name in ["c1", "c2", "c3"] {
        parts.push(server.part(&manifest, "t1", name).await.into_bytes());
    }
    let (names, buckets) = read(&parts);
    assert_eq!(json!(names), json!(COLUMNS));
    assert!(buckets.len() > 1, "it was split");
    let found = worst(&buckets, (1, 2));
    assert!(found <= 0.5, "{found}");
    let achieved = &manifest["rules"][0]["achieved"]["worst_posterior"];
    assert!((achieved["count"].as_f64().unwrap() / achieved["of"].as_f64().unwrap() - found).abs() < 1e-9);

    // the linked view: every part is a projection of it, bucket by bucket
    let linked = server.get(&format!("{}?view=linked", part_path(&manifest, "t1", "c2"))).await;
    assert_eq!((linked.status, linked.header("guardian-linkage")), (200, "synthetic"), "{}", linked.text());
    let (header, rows) = cells(&linked.body);
    assert_eq!(json!(header), reported["attributes"]);
    let mut at = 0;
    // labels are numbers
    let mut labels: Vec<u32> = buckets.keys().map(|label| label.parse().unwrap()).collect();
    labels.sort_unstable();
    for columns in labels.iter().map(|label| &buckets[&label.to_string()]) {
        let size = columns[0].len();
        for (names, column) in names.iter().zip(columns) {
            let place = |name: &String| header.iter().position(|known| known == name).unwrap();
            let mut shown: Vec<Vec<String>> = rows[at..at + size]
                .iter()
                .map(|row| names.iter().map(|name| row[place(name)].clone()).collect())
                .collect();
            shown.sort();
            assert_eq!(&shown, column);
        }
        at += size;
    }
    assert_eq!(at, rows.len());

    // counts: of each bucket as many as are expected when rows that agree are put side by side at random
    let mut expected = 0.0;
    for columns in buckets.values() {
        let count =
            |at: usize, admits: &dyn Fn(&[String]) -> bool| columns[at].iter().filter(|row| admits(row)).count() as f64;
        for b in ["b0", "b1"] {
            for s in ["s0", "s1"] {
                let over = count(1, &|row| row[0] == b) * count(2, &|row| row[1] == s);
                let first = count(0, &|row| row[0] == "1" && row[1] == b);
                let weight = first * count(1, &|row| row == [b, s]) * count(2, &|row| row == ["c1", s]);
                expected += if weight > 0.0 { weight / over } else { 0.0 };
            }
        }
    }
    let queries = json!({"queries": [
        {"where": [{"attribute": "a", "in": [1]}, {"attribute": "c", "in": ["c1"]}, {"attribute": "s", "in": ["s0", "s1"]}]},
        {"where": [{"attribute": "b", "in": ["b1"]}, {"attribute": "s", "in": ["s2"]}]},
    ]});
    let path = format!("/v1/releases/{}", text(&manifest["id"]));
    let answers = server.post(&format!("{path}/queries"), &queries).await.ok(200)["answers"].clone();
    assert!((answers[0]["estimate"].as_f64().unwrap() - expected).abs() < 1e-9, "{answers:#}, expected {expected}");
    assert_eq!(answers[0]["error_model"], "multinomial");
    assert_eq!(answers[1], json!({"estimate": 8.0, "standard_error": 0.0, "error_model": "exact"}));
    let bucket = json!({"queries": [{"where": [{"attribute": "bucket", "from": 1}]}]});
    server.post(&format!("{path}/queries"), &bucket).await.fault("/queries/0/where/0/attribute", "unknown-attribute");
    let internal = server.get(&format!("{path}/internal-report")).await.ok(200);
    assert!(internal["count_queries"].is_object(), "{internal:#}");
    assert_eq!(internal["kl"]["kl_method"], "closed_form");
    let nats = internal["kl"]["nats"].as_f64().unwrap();
    assert!((nats - divergence(&buckets)).abs() < 1e-9, "{nats} {}", divergence(&buckets));

    // from the parts alone: true, and what it comes to; with more asked for, false
    for l in [2, 3, 4] {
        let request = json!({"release": manifest["id"], "rules": ["a, b, c -> s", "a -> s"],
            "default_guarantee": {"type": "l_diversity", "l": l}});
        let verified = server.post("/v1/verifications", &request).await.ok(200);
        let (rule, less) = (&verified["rules"][0], &verified["rules"][1]);
        let holds = found * f64::from(l) <= 1.0 + 1e-9;
        assert_eq!((&rule["holds"], &rule["achieved"]["worst_posterior"]), (&json!(holds), achieved), "{verified:#}");
        assert_eq!(rule["breaks"]["total"] == 0, holds);
        // who knows less learns no more
        assert!(!holds || less["holds"] == true, "{verified:#}");
        assert_eq!(verified["verified"], json!(holds && less["holds"] == true));
    }
    // a row of the original matches at most all buckets; what no row is, is counted
    let found = server.post(&format!("{path}/attacks"), &json!({"attack": "membership"})).await.ok(200);
    let (full, known) = members(&buckets, &names);
    let member = &found["membership"][0];
    let originals: u64 = classes(member, "originals").iter().sum();
    assert_eq!(classes(member, "rows").iter().sum::<u64>(), 64);
    assert_eq!(
        member["fake_full"],
        json!({"value": (full as u64 - originals) as f64, "standard_error": 0.0, "exact": true})
    );
    assert_eq!(member["fake_qi"]["value"], (known - 16) as f64, "{found:#}");
    // an adversary who knows all other attributes infers no more
    let found = server.post(&format!("{path}/attacks"), &json!({"attack": "proxy"})).await.ok(200);
    assert_eq!((&found["breach"], &found["findings"]["total"]), (&json!(false), &json!(0)));

    // nothing that shares an attribute may stand beside it
    let plain = |names: &[&str]| {
        let mut document =
            json!({"method": versatile(&[]), "unlisted": "drop", "no_rules_reason": "known to everybody"});
        document["attributes"] = names.iter().map(|name| ((*name).to_owned(), json!({"publish": true}))).collect();
        document
    };
    let plain_refusal = server.refused(&dataset, plain(&["a", "f"])).await;
    assert_eq!((kind(&plain_refusal), &plain_refusal["release"]), ("composition-violated", &manifest["id"]));
    server.publish(&dataset, plain(&["f"])).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn revealing_columns_are_refused() {
    let server = Server::start().await;
    let dataset = server.dataset(TABLE).await;
    // the first row has dyspepsia: 22, M and 47906 go together in no other way
    let revealing = explicit(&[&["age", "sex", "disease"], &["zip", "disease"]]);
    for diversity in ["bucket", "mixture", "mixture_weighted"] {
        let document = with(sliced("disease", revealing.clone(), json!("1.000001")), "diversity", json!(diversity));
        let problem = server.refused(&dataset, document).await;
        let fault = &problem["errors"][0];
        assert_eq!((kind(fault), &fault["proof"]["largest_l"]), ("infeasible-root", &json!(1)), "{fault:#}");
        assert_eq!(fault["proof"]["posterior"], json!({"count": 1, "of": 1}));
        assert!(text(&fault["detail"]).contains("joins the columns"), "{fault:#}");
    }
    let refused = |document: Value, pointer: &'static str, name: &'static str| {
        let (server, dataset) = (&server, &dataset);
        async move {
            server.job(dataset, document).await.fault(pointer, name);
        }
    };
    let ask = |columns: &[&[&str]]| sliced("disease", explicit(columns), json!("4/3"));
    let list = "/method/columns/explicit";
    refused(
        ask(&[&["age", "sex", "zip"], &["zip", "age"], &["zip", "disease"]]),
        "/method/columns/explicit/1",
        "bad-columns",
    )
    .await;
    refused(ask(&[&["age", "zip"], &["age", "disease"], &["zip", "disease"], &["sex"]]), list, "bad-columns").await;
    let shared = [&["age", "sex"][..], &["sex", "disease"], &["zip"]];
    refused(with(ask(&shared), "column_k", json!(2)), "/method/column_k", "guarantee-unsupported").await;
    let distinct = with(ask(&shared), "guarantee", json!({"type": "distinct_l_diversity", "l": 2}));
    refused(distinct, "/method/guarantee/type", "guarantee-unsupported").await;
    let circle = [&["age", "zip"][..], &["age", "disease"], &["zip", "disease"], &["sex"]];
    let mut kl = with(ask(&circle), "diversity", json!("mixture"));
    kl["internal"] = json!({"utility": ["kl"]});
    refused(kl, "/internal/utility", "guarantee-unsupported").await;
    // other columns reveal nothing about a column with the sensitive attribute
    let manifest = server.publish(&dataset, with(ask(&shared), "min_bucket", json!(4))).await;
    assert_eq!(manifest["tables"][0]["protection"], "exclusive");
    server.stop().await;
}

/// Publishes in memory, and verifies with the original and without.
fn released(csv: &[u8], document: &Value, key: [u8; 32]) -> Result<(guardian::report::Manifest, Memory), EngineError> {
    let input = Original::new(table(csv));
    let job = input.job(document).unwrap_or_else(|faults| panic!("{document}: {faults:?}"));
    let (released, files) =
        release(&job, &EarlierDisclosures::default(), &RandomStreams::Keyed(ReleaseKey::from_bytes(key)))?;
    for with_rows in [false, true] {
        let summary = verified(&job, &released.manifest, &files, with_rows);
        let guarantee = summary.checks.iter().any(|check| check.check == CheckName::Guarantee);
        assert_eq!(guarantee, with_rows || document["method"]["diversity"] == "bucket");
    }
    Ok((released.manifest, files))
}

/// A count of all worlds of a release whose buckets hold alone finds no value likelier than was asked for; of what is asked for over all
/// buckets together, or of combinations alone, that is not so.
#[test]
fn possible_worlds_respect_the_bucket_bound() {
    let covers: [&[&[&str]]; 5] = [
        &[&["a", "s"], &["b", "s"]],
        &[&["a", "b"], &["b", "s"]],
        &[&["a", "b", "s"], &["b", "c", "s"]],
        &[&["a", "s"], &["b", "s"], &["c", "s"]],
        &[&["a", "c"], &["a", "s"], &["b", "s"]],
    ];
    let (mut counted, mut refused, mut breaches) = (0, 0, 0);
    for seed in 0..600 * seeds() {
        let mut random = Random(seed);
        let rows = 4 + random.below(4);
        let columns = covers[random.below(covers.len())];
        let names: BTreeSet<&str> = columns.concat().into_iter().collect();
        let mut csv = names.iter().copied().collect::<Vec<_>>().join(",") + "\n";
        for _ in 0..rows {
            let row: Vec<String> =
                names.iter().map(|name| random.below(if *name == "s" { 4 } else { 2 }).to_string()).collect();
            csv += &(row.join(",") + "\n");
        }
        let l = [json!("10/9"), json!("5/4"), json!("3/2"), json!(2)][random.below(4)].clone();
        let diversity = ["bucket", "bucket", "mixture"][random.below(3)];
        let mut document = with(sliced("s", explicit(columns), l), "diversity", json!(diversity));
        document["method"]["min_bucket"] = json!(1 + random.below(3));
        let (manifest, files) = match released(csv.as_bytes(), &document, random.key()) {
            Ok(made) => made,
            Err(EngineError::Refused(_)) => {
                refused += 1;
                continue;
            }
            Err(other) => panic!("seed {seed}: {other:?}"),
        };
        let reported = engine::submitted_tables(&manifest).unwrap();
        let read = manifest.tables[0]
            .parts
            .iter()
            .map(|part| engine::read_published(part, &files.0[&part.csv()][..], &mut |_| Ok(())).unwrap());
        let material = VerificationMaterial::new(&reported, read.collect(), false).unwrap();
        let rules = engine::rules_of(&manifest, None, material.names()).unwrap();
        let control = Control::default();
        let target = engine::AttackTarget { manifest: &manifest, material: &material, rules: &rules };
        let attacked = engine::attack_tables(target, Attack::ExactPosteriors, &|_| 0, &control);
        let Ok(attacked) = attacked else { continue };
        if diversity == "bucket" {
            assert!(!attacked.breach, "seed {seed}: {document}\n{csv}{attacked:#?}");
            counted += 1;
        } else {
            breaches += u32::from(attacked.breach);
        }
    }
    println!("{counted} counted, {refused} refused, {breaches} mixtures that worlds tell more of");
    assert!(counted > 50 && refused > 50, "{counted} {refused}");
}

/// The entropy of what a reader makes of two columns is that of the shares of all pairs of their rows, bucket by bucket.
#[test]
fn entropy_of_two_columns_is_reported() {
    let mut document = with(
        sliced("disease", explicit(&[&["age", "sex"], &["zip", "disease"]]), json!(2)),
        "diversity",
        json!("bucket"),
    );
    document["utility"] = json!(["entropy"]);
    let (manifest, files) = released(TABLE.as_bytes(), &document, [5; 32]).unwrap();
    let parts: Vec<Vec<u8>> = manifest.tables[0].parts.iter().map(|part| files.0[&part.csv()].clone()).collect();
    let (_, buckets) = read(&parts);
    let mut shares: BTreeMap<(&Vec<String>, &Vec<String>), f64> = BTreeMap::new();
    for columns in buckets.values() {
        for left in &columns[0] {
            for right in &columns[1] {
                *shares.entry((left, right)).or_default() += 1.0 / (8.0 * columns[0].len() as f64);
            }
        }
    }
    let expected: f64 = shares.values().map(|share| -share * share.ln()).sum();
    let reported = manifest.utility.model_entropy_nats.unwrap();
    assert!((reported - expected).abs() < 1e-9 && expected > 0.0, "{reported} {expected}");
    assert_eq!(manifest.utility.entropy_method, Some(ModelKind::ClosedForm));
}

/// Adult: the occupation beside the race, and beside the sex.
#[tokio::test(flavor = "multi_thread")]
async fn adult_is_covered() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data/adult.csv.gz");
    let server = Server::start().await;
    let csv = some_rows(GzDecoder::new(File::open(data).unwrap()), 4);
    let rows = cells(&csv).1.len() as u64;
    let dataset = server.dataset(csv).await;
    let columns = explicit(&[&["age", "education", "race"], &["race", "occupation"], &["sex", "occupation"]]);
    let drop = |mut document: Value| {
        document["unlisted"] = "drop".into();
        document
    };
    let refused = server.refused(&dataset, drop(sliced("occupation", columns.clone(), json!(4)))).await;
    assert_eq!(kind(&refused["errors"][0]), "infeasible-root");
    let manifest = server.publish(&dataset, drop(sliced("occupation", columns, json!(2)))).await;
    let mut parts = Vec::new();
    for name in ["c1", "c2", "c3"] {
        parts.push(server.part(&manifest, "t1", name).await.into_bytes());
    }
    let (names, buckets) = read(&parts);
    // in the order of the dataset's columns
    assert_eq!(names, [&["age", "education", "race"][..], &["occupation", "race"], &["occupation", "sex"]]);
    let turned: Buckets = buckets
        .into_iter()
        .map(|(label, mut columns)| {
            columns[1..].iter_mut().flatten().for_each(|row| row.reverse());
            (label, columns)
        })
        .collect();
    let found = worst(&turned, (1, 2));
    println!("{} buckets, at worst {found}", turned.len());
    assert!(found <= 0.5 + 1e-12 && turned.len() > 20, "{found} in {} buckets", turned.len());

    // as tables of anybody: what holds of the release, and what does not when its parts are changed
    let part =
        |number: usize| json!({"name": format!("c{number}"), "file": format!("c{number}.csv"), "bucketed": true});
    let request = json!({"tables": [{"name": "t", "parts": [part(1), part(2), part(3)]}],
        "rules": ["age, education, race, sex -> occupation", "race, sex -> occupation", "age -> occupation"],
        "default_guarantee": {"type": "l_diversity", "l": 2}});
    let sent = |parts: &[Vec<u8>]| {
        let files: Vec<(String, Vec<u8>)> =
            parts.iter().enumerate().map(|(at, part)| (format!("c{}.csv", at + 1), part.clone())).collect();
        let (server, request) = (&server, request.clone());
        async move {
            let files: Vec<(&str, Vec<u8>)> = files.iter().map(|(name, part)| (name.as_str(), part.clone())).collect();
            crate::verification::external_tables::verify(server, &request, &files).await.ok(200)
        }
    };
    let verified = sent(&parts).await;
    assert_eq!(verified["verified"], true, "{verified:#}");
    let achieved = &verified["rules"][0]["achieved"]["worst_posterior"];
    assert_eq!(achieved, &manifest["rules"][0]["achieved"]["worst_posterior"]);
    assert!((achieved["count"].as_f64().unwrap() / achieved["of"].as_f64().unwrap() - found).abs() < 1e-9);
    // a row of a column under the label of another bucket
    let text = String::from_utf8(parts[2].clone()).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    let (first, second) =
        (lines[1], lines.iter().copied().find(|line| !line.starts_with("1,") && *line != lines[0]).unwrap());
    let moved = format!("{}{}", &second[..second.find(',').unwrap()], &first[first.find(',').unwrap()..]);
    lines[1] = &moved;
    let faulty = sent(&[parts[0].clone(), parts[1].clone(), (lines.join("\n") + "\n").into_bytes()]).await;
    assert_eq!(faulty["verified"], false);
    assert!(faulty["rules"][0]["detail"].to_string().contains("do not agree"), "{faulty:#}");

    let path = format!("/v1/releases/{}", crate::support::harness::text(&manifest["id"]));
    let found = server.post(&format!("{path}/attacks"), &json!({"attack": "membership"})).await.ok(200);
    assert_eq!(classes(&found["membership"][0], "rows").iter().sum::<u64>(), rows);
    assert!(found["membership"][0]["fake_full"]["value"].as_f64().unwrap() > 0.0, "{found:#}");
    server.stop().await;
}
