//! Slicing: on Adult the correlations that the paper names, the columns they make, and as many buckets as an implementation of the
//! definitions in another language counts; and releases, judged here from what they publish and from the definition.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;
use guardian::control::Control;
use guardian::engine::EngineError;
use guardian::ledger::EarlierDisclosures;
use guardian::microdata::{Attr, AttrSet, Column, Table};
use guardian::publication::{CheckName, Ratio};
use guardian::publish::partition::{MedianSplit, NoAnnotations, PartitionTuning};
use guardian::publish::slicing::{ColumnChoice, CorrelationBins, SlicingDiversity, SlicingPlan};
use guardian::random::{RandomStreams, ReleaseKey};
use serde_json::{Value, json};

use crate::support::harness::{Server, kind, text, versatile};
use crate::support::library::{Memory, Original, Random, cells, release, seeds, table, verified};

fn adult() -> Table {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data/adult.csv.gz");
    table(GzDecoder::new(File::open(path).unwrap()))
}

fn attr(table: &Table, name: &str) -> Attr {
    Attr::from(table.names().iter().position(|other| other == name).unwrap())
}

/// The names of the attributes in every column.
fn divided(table: &Table, columns: &ColumnChoice) -> Vec<Vec<String>> {
    let control = Control::default();
    let occupation = attr(table, "occupation");
    let columns = columns.divide(table, table.attributes(), occupation, &CorrelationBins::default(), &control).unwrap();
    let names = |column: &AttrSet| column.iter().map(|attr| table.name(attr).to_owned()).collect();
    columns.iter().map(names).collect()
}

#[test]
fn attributes_that_go_together_stand_together() {
    let table = adult();
    // the paper: sex and salary go most with occupation
    let wide = divided(&table, &ColumnChoice::SensitiveWidth { count: 2, width: 3 });
    assert_eq!(wide[1], ["occupation", "sex", "income"]);
    assert_eq!(
        divided(&table, &ColumnChoice::Count(5)),
        [
            vec!["fnlwgt"],
            vec!["education", "education-num"],
            vec!["race", "native-country"],
            vec!["age", "workclass", "capital-gain", "capital-loss", "hours-per-week", "income"],
            vec!["marital-status", "occupation", "relationship", "sex"],
        ]
    );
}

#[test]
fn adult_comes_in_as_many_buckets_as_by_the_definitions() {
    let names = ["age", "workclass", "education", "marital-status", "race", "sex", "occupation"];
    let all = adult();
    let columns: Vec<Column> = names.iter().map(|name| all.column(attr(&all, name)).clone()).collect();
    let table = Table::new(names.map(str::to_owned).into(), columns);
    let sensitive = attr(&table, "occupation");
    let buckets = |columns: ColumnChoice, l: u64, least: usize| {
        let slicing = SlicingPlan {
            attributes: table.attributes(),
            sensitive,
            columns,
            diversity: SlicingDiversity::Mixture(Ratio::new(l, 1).unwrap()),
            split: MedianSplit::Relaxed,
            dimensions: None,
            max_attempts: None,
            min_bucket: Some(least),
            column_k: None,
            bins: CorrelationBins::default(),
            tuning: PartitionTuning::default(),
            strata: None,
        };
        let sliced = slicing.slice(&table, &NoAnnotations, &Control::default());
        sliced.unwrap_or_else(|error| panic!("{error}")).buckets.buckets
    };
    assert_eq!(buckets(ColumnChoice::SensitiveWidth { count: 2, width: 1 }, 5, 1), 179);
    let with_sex = AttrSet::one(attr(&table, "sex")).with(sensitive);
    assert_eq!(buckets(ColumnChoice::Explicit(vec![table.attributes().minus(with_sex), with_sex]), 3, 3), 5352);
    assert_eq!(buckets(ColumnChoice::Count(7), 5, 1), 296);
}

/// Table 1 of the paper.
pub(crate) const TABLE: &str = "age,sex,zip,disease\n22,M,47906,dyspepsia\n22,F,47906,flu\n33,F,47905,flu\n52,F,47905,bronchitis\n\
    54,M,47302,flu\n60,M,47302,dyspepsia\n60,M,47304,dyspepsia\n64,F,47304,gastritis\n";

pub(crate) fn sliced(sensitive: &str, columns: Value, l: Value) -> Value {
    json!({"method": {"type": "slicing", "sensitive": sensitive, "columns": columns,
        "guarantee": {"type": "l_diversity", "l": l}}})
}

pub(crate) fn explicit(columns: &[&[&str]]) -> Value {
    json!({"explicit": columns})
}

pub(crate) fn with(mut document: Value, member: &str, value: Value) -> Value {
    document["method"][member] = value;
    document
}

fn publish(mut document: Value, names: &[&str]) -> Value {
    document["unlisted"] = "drop".into();
    document["attributes"] = names.iter().map(|name| ((*name).to_owned(), json!({"publish": true}))).collect();
    document
}

/// A fraction `(numerator, denominator)`.
type Share = (u64, u64);

/// What somebody who has the parts and the table finds, by definitions of this test's own.
struct Outside {
    /// The attributes of each column.
    columns: Vec<Vec<String>>,
    /// Per bucket, per column, its rows.
    buckets: BTreeMap<u32, Vec<Vec<Vec<String>>>>,
    sensitive: String,
}

impl Outside {
    /// Reads the parts, and holds them against the table: bucket by bucket the same sizes, column by column the same rows.
    fn of(original: &[u8], manifest: &Value, file: impl Fn(&Value) -> Vec<u8>) -> Self {
        let (names, rows) = cells(original);
        let [table] = &manifest["tables"].as_array().unwrap()[..] else { panic!("{manifest:#}") };
        let sensitive = text(&manifest["rules"][0]["sensitive"][0]);
        let parts = table["parts"].as_array().unwrap();
        let mut columns: Vec<Vec<String>> = Vec::new();
        let mut buckets: BTreeMap<u32, Vec<Vec<Vec<String>>>> = BTreeMap::new();
        for (at, part) in parts.iter().enumerate() {
            let (mut header, read) = cells(&file(part));
            assert_eq!((header.remove(0).as_str(), text(&part["name"])), ("bucket", format!("c{}", at + 1)));
            assert!(read.is_sorted_by_key(|row| row[0].parse::<u32>().unwrap()));
            let places: Vec<usize> =
                header.iter().map(|name| names.iter().position(|known| known == name).unwrap()).collect();
            let mut expected: Vec<Vec<String>> =
                rows.iter().map(|row| places.iter().map(|&place| row[place].clone()).collect()).collect();
            let mut found: Vec<Vec<String>> = read.iter().map(|row| row[1..].to_vec()).collect();
            expected.sort();
            found.sort();
            assert!(expected == found, "{header:?} is no projection");
            for mut row in read {
                let bucket = buckets.entry(row.remove(0).parse().unwrap()).or_default();
                bucket.resize(parts.len(), Vec::new());
                bucket[at].push(row);
            }
            columns.push(header);
        }
        assert!(buckets.keys().copied().eq(1..=buckets.len() as u32));
        assert!(buckets.values().all(|columns| columns.iter().all(|rows| rows.len() == columns[0].len())));
        assert!(columns.last().unwrap().contains(&sensitive), "the sensitive column stands last");
        let reported: Vec<Vec<String>> = serde_json::from_value(manifest["method_details"]["columns"].clone()).unwrap();
        assert_eq!(columns, reported);
        Self { columns, buckets, sensitive }
    }

    /// Of a row of the last column: what is known, and the sensitive value.
    fn split<'r>(&self, row: &'r [String]) -> (Vec<&'r str>, &'r str) {
        let columns = self.columns.last().unwrap();
        let at = columns.iter().position(|name| *name == self.sensitive).unwrap();
        let known = row.iter().enumerate().filter(|(place, _)| *place != at).map(|(_, cell)| cell.as_str());
        (known.collect(), row[at].as_str())
    }

    /// The largest share of a value among the rows of a bucket that are alike beside it.
    fn worst(&self) -> Share {
        let mut worst = (0, 1);
        for columns in self.buckets.values() {
            let mut alike: BTreeMap<Vec<&str>, BTreeMap<&str, u64>> = BTreeMap::new();
            for row in columns.last().unwrap() {
                let (known, value) = self.split(row);
                *alike.entry(known).or_default().entry(value).or_default() += 1;
            }
            for counts in alike.values() {
                let here = (*counts.values().max().unwrap(), counts.values().sum::<u64>());
                if here.0 * worst.1 > worst.0 * here.1 {
                    worst = here;
                }
            }
        }
        worst
    }

    /// The largest posterior of the paper's definition over all rows of the table, buckets weighed by their size to a power.
    fn worst_mixture(&self, original: &[u8], power: i32) -> f64 {
        let (names, rows) = cells(original);
        let mut seen: BTreeSet<Vec<Vec<String>>> = BTreeSet::new();
        let mut worst: f64 = 0.0;
        for row in &rows {
            let of = |column: &Vec<String>| -> Vec<String> {
                let known = column.iter().filter(|name| **name != self.sensitive);
                known.map(|name| row[names.iter().position(|other| other == name).unwrap()].clone()).collect()
            };
            let identity: Vec<Vec<String>> = self.columns.iter().map(of).collect();
            if !seen.insert(identity.clone()) {
                continue;
            }
            let mut weights: BTreeMap<&str, f64> = BTreeMap::new();
            for columns in self.buckets.values() {
                let size = columns[0].len() as f64;
                let (last, others) = columns.split_last().unwrap();
                let matching = |(rows, known): (&Vec<Vec<String>>, &Vec<String>)| {
                    rows.iter().filter(|row| *row == known).count() as f64 / size
                };
                let share: f64 = others.iter().zip(&identity).map(matching).product::<f64>() * size.powi(power);
                for row in last {
                    let (known, value) = self.split(row);
                    if known.iter().eq(identity.last().unwrap().iter()) {
                        *weights.entry(value).or_default() += share / size;
                    }
                }
            }
            let all: f64 = weights.values().sum();
            worst = weights.values().fold(worst, |worst, weight| worst.max(weight / all));
        }
        worst
    }
}

/// Publishes in memory and verifies with the original and without.
fn released(csv: &[u8], document: &Value, key: [u8; 32]) -> Result<(Value, Memory), EngineError> {
    let input = Original::new(table(csv));
    let job = input.job(document).unwrap_or_else(|faults| panic!("{document}: {faults:?}"));
    let (released, files) =
        release(&job, &EarlierDisclosures::default(), &RandomStreams::Keyed(ReleaseKey::from_bytes(key)))?;
    for with_rows in [false, true] {
        let summary = verified(&job, &released.manifest, &files, with_rows);
        let guarantee = summary.checks.iter().any(|check| check.check == CheckName::Guarantee);
        let by_mixture = document["method"]["diversity"].as_str().is_some_and(|word| word != "bucket");
        assert_eq!(guarantee, with_rows || !by_mixture, "a mixture is not checked without the original");
    }
    Ok((serde_json::to_value(&released.manifest).unwrap(), files))
}

fn outside(csv: &[u8], manifest: &Value, files: &Memory) -> Outside {
    Outside::of(csv, manifest, |part| files.0[&text(&part["file"])].clone())
}

/// The first fault of a refusal.
fn fault(stopped: EngineError) -> Value {
    let EngineError::Refused(problem) = stopped else { panic!("{stopped:?}") };
    problem.to_json("urn:uuid:x")["errors"][0].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_table_of_the_paper_is_sliced() {
    let server = Server::start().await;
    let dataset = server.dataset(TABLE).await;
    let mut document = sliced("disease", explicit(&[&["zip", "disease"], &["age", "sex"]]), json!(2));
    document["dataset"] = dataset.as_str().into();
    let plan = server.post("/v1/plans", &document).await.ok(200);
    assert_eq!(
        (
            &plan["feasible"],
            &plan["tables"][0]["kind"],
            &plan["tables"][0]["protection"],
            &plan["tables"][0]["sensitive"]
        ),
        (&json!(true), &json!("sliced"), &json!("guarding"), &json!(["disease"])),
        "{plan:#}"
    );
    assert_eq!(plan["rules"][0]["enforced_by"], json!({"guardian": "t1", "known": ["age", "sex", "zip"]}));
    let manifest = server.publish(&dataset, document).await;
    assert_eq!(manifest["method"], json!({"type": "slicing", "adversary": "without minimality"}));
    assert_eq!(
        manifest["method_details"],
        json!({"columns": [["age", "sex"], ["zip", "disease"]], "diversity": "bucket"})
    );
    let rule = &manifest["rules"][0];
    assert_eq!(
        (&rule["pointer"], &rule["enforced_by"], &rule["quasi_identifiers"]),
        (&json!("/method"), &json!({"table": "t1"}), &json!(["age", "sex", "zip"]))
    );
    let table = &manifest["tables"][0];
    assert_eq!((&table["kind"], &table["protection"]), (&json!("sliced"), &json!("guarding")));
    assert_eq!(
        table["guards"],
        json!([{"quasi_identifiers": ["age", "sex", "zip"], "sensitive": ["disease"], "joint": false,
            "guarantees": [{"type": "l_diversity", "l": 2}]}])
    );
    let mut parts = BTreeMap::new();
    for part in table["parts"].as_array().unwrap() {
        parts.insert(text(&part["name"]), server.part(&manifest, "t1", &text(&part["name"])).await.into_bytes());
    }
    let outside = Outside::of(TABLE.as_bytes(), &manifest, |part| parts[&text(&part["name"])].clone());
    assert_eq!(outside.worst(), (1, 2));
    assert_eq!(rule["achieved"]["worst_posterior"], json!({"count": 1, "of": 2}));
    let smallest = outside.buckets.values().map(|columns| columns[0].len()).min().unwrap();
    assert_eq!(rule["achieved"]["smallest_bucket"], smallest);
    assert!(smallest >= 2);

    // every world that the columns allow
    let audits = format!("/v1/releases/{}/attacks", text(&manifest["id"]));
    let attacked = server.post(&audits, &json!({"attack": "exact_posteriors"})).await.ok(200);
    assert_eq!(attacked["breach"], false, "{attacked:#}");
    let judged = server
        .post("/v1/verifications", &json!({"release": manifest["id"], "rules": [
            {"quasi_identifiers": ["age", "sex", "zip"], "sensitive": ["disease"], "guarantee": {"type": "l_diversity", "l": 2}}]}))
        .await
        .ok(200);
    assert_eq!(judged["verified"], true, "{judged:#}");
    let report = server.get(&format!("/v1/releases/{}/report", text(&manifest["id"]))).await.ok(200);
    assert!(text(&report["tables"][0]).contains("in 2 parts, linked only by"), "{report:#}");
    server.stop().await;
}

/// A guarding table stands beside others that its rule allows; one that holds over all buckets together stands alone.
#[tokio::test(flavor = "multi_thread")]
async fn sliced_table_composes_with_other_tables() {
    let server = Server::start().await;
    let plain = |names: &[&str]| {
        let mut document = publish(json!({"method": versatile(&[])}), names);
        document["no_rules_reason"] = "known to everybody".into();
        document
    };
    let csv = TABLE
        .replace("disease\n", "disease,floor\n")
        .replace("u\n", "u,1\n")
        .replace("a\n", "a,2\n")
        .replace("s\n", "s,1\n");
    let columns = || explicit(&[&["age", "sex"], &["zip", "disease"]]);
    let only = |mut document: Value| {
        document["unlisted"] = "drop".into();
        document
    };
    let dataset = server.dataset(csv.clone()).await;
    let guarding = server.publish(&dataset, only(sliced("disease", columns(), json!(2)))).await;
    server.publish(&dataset, plain(&["age", "zip", "floor"])).await;
    let again = server.refused(&dataset, plain(&["zip", "disease"])).await;
    assert_eq!((kind(&again), &again["release"]), ("composition-violated", &guarding["id"]));
    let twice = server
        .refused(&dataset, publish(sliced("disease", json!({"count": 4}), json!(2)), &["age", "sex", "zip"]))
        .await;
    assert_eq!(kind(&twice), "composition-violated");

    let server = server.anew().await;
    let other = server.dataset(csv.replace("64,F", "65,F")).await;
    let mixed = with(only(sliced("disease", columns(), json!(2))), "diversity", json!("mixture"));
    let exclusive = server.publish(&other, mixed.clone()).await;
    let table = &exclusive["tables"][0];
    assert_eq!(
        (&table["kind"], &table["protection"], &table["guards"]),
        (&json!("sliced"), &json!("exclusive"), &json!([]))
    );
    assert_eq!(exclusive["rules"][0]["enforced_by"], json!({"table": "t1"}));
    assert_eq!(exclusive["method_details"]["diversity"], "mixture");
    assert!(exclusive["warnings"].to_string().contains("diversity-by-mixture"));
    let earlier = server.refused(&other, plain(&["age", "floor"])).await;
    assert_eq!((kind(&earlier), &earlier["release"]), ("composition-violated", &exclusive["id"]));
    assert!(text(&earlier["detail"]).contains("exclusive"), "{earlier:#}");
    // what shares nothing with it may come, before and after
    server.publish(&other, plain(&["floor"])).await;

    let server = server.anew().await;
    let third = server.dataset(csv.replace("64,F", "66,F")).await;
    let floors = server.publish(&third, plain(&["age", "floor"])).await;
    let mut planned = mixed.clone();
    planned["dataset"] = third.as_str().into();
    let plan = server.post("/v1/plans", &planned).await.ok(200);
    assert_eq!((&plan["feasible"], &plan["composition"]["verdict"]), (&json!(false), &json!("violated")), "{plan:#}");
    let late = server.refused(&third, mixed.clone()).await;
    assert_eq!((kind(&late), &late["release"]), ("composition-violated", &floors["id"]));
    assert!(text(&late["detail"]).contains("would be exclusive"), "{late:#}");
    let server = server.anew().await;
    let fourth = server.dataset(csv.replace("64,F", "67,F")).await;
    server.publish(&fourth, plain(&["floor"])).await;
    server.publish(&fourth, mixed).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn infeasible_slicing_is_refused() {
    let server = Server::start().await;
    let dataset = server.dataset(TABLE).await;
    let columns = || explicit(&[&["age", "sex"], &["zip", "disease"]]);
    // by the column alone: three of eight have it
    let answer = server.job(&dataset, sliced("disease", columns(), json!(3))).await;
    let fault = answer.fault("/method/guarantee", "infeasible-root");
    assert_eq!(fault["proof"]["posterior"], json!({"count": 3, "of": 8}), "{fault:#}");
    assert_eq!(fault["proof"]["largest_l"], 2);
    // by what stands beside it: of the men three of four have dyspepsia
    let earlier = explicit(&[&["age", "zip"], &["sex", "disease"]]);
    for diversity in ["bucket", "mixture", "mixture_weighted"] {
        let mut document = with(sliced("disease", earlier.clone(), json!(2)), "diversity", json!(diversity));
        let problem = server.refused(&dataset, document.clone()).await;
        let fault = &problem["errors"][0];
        assert_eq!(kind(fault), "infeasible-root");
        assert_eq!(
            fault["proof"],
            json!({"quasi_identifiers": ["sex"], "sensitive": ["disease"], "posterior": {"count": 3, "of": 4}, "largest_l": 1})
        );
        document["dataset"] = dataset.as_str().into();
        let plan = server.post("/v1/plans", &document).await.ok(200);
        assert_eq!((&plan["feasible"], &plan["rules"][0]["status"]), (&json!(false), &json!("refused")), "{plan:#}");
        assert_eq!(kind(&plan["problems"][0]["errors"][0]), "infeasible-root");
    }
    // what a fraction allows
    let document = with(sliced("disease", earlier, json!("4/3")), "min_bucket", json!(4));
    let manifest = server.publish(&dataset, document).await;
    assert_eq!(manifest["rules"][0]["guarantee"], json!({"type": "alpha_k", "alpha": "0.75", "k": 1}));
    let refused = |document: Value, pointer: &'static str, name: &'static str| {
        let (server, dataset) = (&server, &dataset);
        async move {
            server.job(dataset, document).await.fault(pointer, name);
        }
    };
    let ask = |columns: Value| sliced("disease", columns, json!(2));
    refused(ask(explicit(&[&["age"], &["zip", "disease"]])), "/attributes", "unclassified-attributes").await;
    let mut published = ask(explicit(&[&["age"], &["zip", "disease"]]));
    published["attributes"] = json!({"sex": {"publish": true}});
    refused(published, "/method/columns/explicit", "bad-columns").await;
    refused(
        ask(explicit(&[&["age", "sex"], &["zip", "disease", "zip"]])),
        "/method/columns/explicit/1/2",
        "bad-columns",
    )
    .await;
    refused(ask(explicit(&[&["age", "sex", "zip"], &["disease"], &[]])), "/method/columns/explicit/2", "bad-columns")
        .await;
    refused(
        ask(explicit(&[&["age", "sex"], &["zip", "diseases"]])),
        "/method/columns/explicit/1/1",
        "unknown-attribute",
    )
    .await;
    let counted = |columns: Value| publish(ask(columns), &["age", "sex", "zip"]);
    refused(counted(json!({"count": 5})), "/method/columns/count", "bad-columns").await;
    refused(counted(json!({"count": 3, "sensitive_width": 3})), "/method/columns/count", "bad-columns").await;
    refused(counted(json!({"count": 2, "sensitive_width": 5})), "/method/columns/sensitive_width", "bad-columns").await;
    let boxes = |k: Value| with(counted(json!({"count": 2})), "column_k", k);
    refused(with(boxes(json!(3)), "diversity", json!("mixture")), "/method/column_k", "guarantee-unsupported").await;
    refused(boxes(json!(1)), "/method/column_k", "parameter-range").await;
    refused(boxes(json!(9)), "/method/column_k", "parameter-range").await;
    let mut kl = boxes(json!(3));
    kl["internal"] = json!({"utility": ["kl"]});
    refused(kl, "/internal/utility", "guarantee-unsupported").await;
    refused(with(ask(columns()), "min_bucket", json!(9)), "/method/min_bucket", "parameter-range").await;
    let mut entropy = ask(explicit(&[&["age"], &["sex"], &["zip", "disease"]]));
    entropy["utility"] = json!(["entropy"]);
    refused(entropy, "/utility/0", "guarantee-unsupported").await;
    let other = with(ask(columns()), "guarantee", json!({"type": "distinct_l_diversity", "l": 2}));
    refused(with(other.clone(), "diversity", json!("mixture")), "/method/guarantee/type", "guarantee-unsupported")
        .await;
    let server = server.anew().await;
    let manifest = server.publish(&server.dataset(TABLE).await, other).await;
    assert_eq!(manifest["rules"][0]["achieved"]["distinct_values"], 2);
    server.stop().await;
}

/// Columns that the data chooses are not known before its rows are looked at, and are the same whenever they are.
#[test]
fn counted_columns_are_those_of_the_data() {
    let mut csv = String::from("a,b,c,s\n");
    (0..60).for_each(|row| csv += &format!("a{},b{},c{},s{}\n", row % 5, row % 5, row / 2 % 3, row / 10 % 6));
    let document = publish(sliced("s", json!({"count": 3}), json!(2)), &["a", "b", "c"]);
    let (manifest, files) = released(csv.as_bytes(), &document, [7; 32]).unwrap();
    assert_eq!(manifest["method_details"]["columns"], json!([["a", "b"], ["c"], ["s"]]));
    assert!(outside(csv.as_bytes(), &manifest, &files).worst().0 > 0);
    // of equal ones the first goes with the sensitive attribute; in one bin an attribute goes with nothing
    let mut numbers = String::from("a,b,c,s\n");
    (0..60).for_each(|row| numbers += &format!("{},{},c{},s{}\n", row % 30, row % 30 * 2, row / 2 % 3, row / 10 % 6));
    let wide = publish(sliced("s", json!({"count": 2, "sensitive_width": 2}), json!(2)), &["a", "b", "c"]);
    let of = |document: &Value| {
        released(numbers.as_bytes(), document, [7; 32]).unwrap().0["method_details"]["columns"].clone()
    };
    assert_eq!(of(&wide), json!([["b", "c"], ["a", "s"]]));
    let mut coarse = wide.clone();
    coarse["attributes"]["a"]["discretize"] = json!({"equal_width": 1});
    assert_eq!(of(&coarse), json!([["a", "c"], ["b", "s"]]), "in one bin a goes with nothing");
}

/// Random tables, columns and guarantees: whatever is published holds by the definition, and what is refused cannot.
#[test]
fn random_tables_satisfy_their_claims() {
    let (mut published, mut refused, mut unlike) = (0, 0, 0);
    for seed in 0..120 * seeds() {
        let mut random = Random(seed);
        let rows = 4 + random.below(40);
        let names = ["a", "b", "c", "d", "s"];
        let mut csv = names.join(",") + "\n";
        for _ in 0..rows {
            let row: Vec<String> = [3, 4, 2, 3, 5].iter().map(|&bound| random.below(bound).to_string()).collect();
            csv += &(row.join(",") + "\n");
        }
        let mut columns: Vec<Vec<&str>> = vec![Vec::new(); 1 + random.below(4)];
        let last = columns.len() - 1;
        names.iter().for_each(|name| columns[random.below(last + 1)].push(name));
        columns.retain(|column| !column.is_empty());
        let diversity = ["bucket", "mixture", "mixture_weighted"][random.below(3)];
        let l = [json!(2), json!("3/2"), json!("5/4"), json!(3)][random.below(4)].clone();
        let mut document = sliced("s", json!({"explicit": columns}), l.clone());
        document["method"]["diversity"] = json!(diversity);
        document["method"]["split"] = json!(["relaxed", "strict"][random.below(2)]);
        if random.below(2) == 0 {
            document["method"]["min_bucket"] = json!(1);
        }
        let l = l.as_f64().unwrap_or_else(|| {
            let (over, under) = l.as_str().unwrap().split_once('/').unwrap();
            over.parse::<f64>().unwrap() / under.parse::<f64>().unwrap()
        });
        let input = Original::new(table(csv.as_bytes()));
        match input.job(&document) {
            Ok(_) => {}
            Err(faults) => panic!("seed {seed}: {document}: {faults:?}"),
        }
        match released(csv.as_bytes(), &document, random.key()) {
            Err(stopped) => {
                let fault = fault(stopped);
                assert!(["infeasible-root", "rule-impossible"].contains(&kind(&fault)), "seed {seed}: {fault:#}");
                if kind(&fault) == "infeasible-root" {
                    let share = &fault["proof"]["posterior"];
                    let share = share["count"].as_f64().unwrap() / share["of"].as_f64().unwrap();
                    assert!(share * l > 1.0 - 1e-12, "seed {seed}: {fault:#}");
                }
                refused += 1;
            }
            Ok((manifest, files)) => {
                let outside = outside(csv.as_bytes(), &manifest, &files);
                let (most, of) = outside.worst();
                let share = most as f64 / of as f64;
                let reported = &manifest["rules"][0]["achieved"]["worst_posterior"];
                assert_eq!(
                    reported["count"].as_u64().unwrap() * of,
                    reported["of"].as_u64().unwrap() * most,
                    "seed {seed}"
                );
                if diversity == "bucket" {
                    assert!(share * l <= 1.0 + 1e-9, "seed {seed}: {share}");
                } else {
                    let power = i32::from(diversity == "mixture_weighted");
                    for power in 0..=power {
                        let worst = outside.worst_mixture(csv.as_bytes(), power);
                        assert!(worst * l <= 1.0 + 1e-9, "seed {seed}: {worst}");
                    }
                    unlike += u32::from(share * l > 1.0 + 1e-9);
                }
                published += 1;
            }
        }
    }
    assert!(published > 20 && refused > 10, "{published} {refused}");
    assert!(unlike > 0, "no mixture was worse in a bucket than over all");
}

/// Seven attributes of Adult with the occupation as the paper slices them: sex beside it, so that no more than 3 can be had, and
/// with no attribute beside it.
#[tokio::test(flavor = "multi_thread")]
async fn adult_is_sliced() {
    const NAMES: [&str; 7] = ["age", "workclass", "education", "marital-status", "race", "sex", "occupation"];
    let mut csv = Vec::new();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data/adult.csv.gz");
    GzDecoder::new(File::open(data).unwrap()).read_to_end(&mut csv).unwrap();
    let server = Server::start().await;
    let dataset = server.dataset(csv.clone()).await;
    let others = &NAMES[..5];
    let columns = || explicit(&[others, &["sex", "occupation"]]);
    let drop = |mut document: Value| {
        document["unlisted"] = "drop".into();
        document
    };
    let refused = server.refused(&dataset, drop(sliced("occupation", columns(), json!(4)))).await;
    let proof = &refused["errors"][0]["proof"];
    // the clerks among the women
    assert_eq!((&proof["posterior"], &proof["largest_l"]), (&json!({"count": 3730, "of": 14695}), &json!(3)));
    let alone = server
        .job(&dataset, publish(sliced("occupation", json!({"count": 2, "sensitive_width": 1}), json!(8)), &NAMES[..6]))
        .await;
    alone.fault("/method/guarantee", "infeasible-root");
    server.stop().await;

    let (manifest, files) = released(&csv, &drop(sliced("occupation", columns(), json!(3))), [3; 32]).unwrap();
    assert_eq!(manifest["tables"][0]["kind"], "sliced");
    let outside = outside(&csv, &manifest, &files);
    let (most, of) = outside.worst();
    assert!(most * 3 <= of, "{most} of {of}");
    assert!(outside.buckets.len() > 500, "{} buckets", outside.buckets.len());
}
