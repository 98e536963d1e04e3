//! Recomputes every number of a manifest from the published parts; an unchecked number fails.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use flate2::read::GzDecoder;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::exposures::{ONE_IN, assert_recomputed};
use crate::support::harness::{HOSPITAL, Server, hospital_method, text, versatile};
use crate::support::library::some_rows;

pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Pointers into a manifest whose values were recomputed, or are words and premises.
struct Walk<'a> {
    manifest: &'a Value,
    seen: BTreeSet<String>,
}

impl Walk<'_> {
    #[track_caller]
    fn recomputed(&mut self, pointer: &str, value: &Value) {
        assert_eq!(self.manifest.pointer(pointer).unwrap(), value, "{pointer}");
        self.note(pointer, value);
    }

    fn note(&mut self, pointer: &str, value: &Value) {
        match value {
            Value::Object(members) => {
                members.iter().for_each(|(name, value)| self.note(&format!("{pointer}/{name}"), value));
            }
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(at, value)| self.note(&format!("{pointer}/{at}"), value));
            }
            _ => drop(self.seen.insert(pointer.to_owned())),
        }
    }

    /// Everything else must be a word: provenance, or a premise.
    fn finish(&self) {
        self.check("", self.manifest);
    }

    fn check(&self, pointer: &str, value: &Value) {
        match value {
            Value::Object(members) => {
                members.iter().for_each(|(name, value)| self.check(&format!("{pointer}/{name}"), value));
            }
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(at, value)| self.check(&format!("{pointer}/{at}"), value));
            }
            Value::Number(_) => {
                let premise = pointer == "/contract"
                    || pointer.ends_with("/guarantee/l")
                    || (pointer.contains("/guarantees/") && pointer.ends_with("/l"));
                assert!(premise || self.seen.contains(pointer), "{pointer} was not recomputed from the parts");
            }
            Value::String(words) => {
                let digest = words.len() >= 32 && words.bytes().all(|byte| byte.is_ascii_hexdigit());
                assert!(!digest || self.seen.contains(pointer), "{pointer} was not recomputed from the parts");
            }
            Value::Bool(_) | Value::Null => {}
        }
    }
}

/// A part as rows of fields; a quoted field keeps its quotes, so that missing and empty differ.
pub(crate) fn rows(csv: &str) -> (Vec<String>, Vec<Vec<String>>) {
    let mut all = csv.lines().map(|line| {
        let (mut fields, mut field, mut quoted) = (Vec::new(), String::new(), false);
        for byte in line.chars() {
            quoted ^= byte == '"';
            if byte == ',' && !quoted {
                fields.push(std::mem::take(&mut field));
            } else {
                field.push(byte);
            }
        }
        fields.push(field);
        fields
    });
    (all.next().unwrap(), all.collect())
}

/// What a column's values allow: integers in canonical form, decimals, else text.
fn type_of(values: &[&str]) -> &'static str {
    let present = || values.iter().filter(|value| !value.is_empty());
    let integer = |value: &str| value.parse::<i64>().is_ok_and(|number| number.to_string() == value);
    let decimal = |value: &str| {
        let digits = value.strip_prefix('-').unwrap_or(value);
        let (whole, part) = digits.split_once('.').unwrap_or((digits, "0"));
        let plain = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        plain(whole) && plain(part) && (whole == "0" || !whole.starts_with('0'))
    };
    match () {
        () if present().next().is_none() => "text",
        () if present().all(|value| integer(value)) => "integer",
        () if present().all(|value| decimal(value)) => "decimal",
        () => "text",
    }
}

/// What buckets achieve: the shares of their most frequent values.
fn achieved(sensitive: &[Vec<String>]) -> Value {
    let mut buckets: BTreeMap<&str, HashMap<&str, u64>> = BTreeMap::new();
    for row in sensitive {
        *buckets.entry(&row[0]).or_default().entry(&row[1]).or_default() += 1;
    }
    let mut shares: Vec<(u64, u64)> =
        buckets.values().map(|counts| (*counts.values().max().unwrap(), counts.values().sum())).collect();
    shares.sort_by(|a, b| (a.0 * b.1).cmp(&(b.0 * a.1)).then(a.1.cmp(&b.1)));
    let ratio = |(count, of): (u64, u64)| json!({"count": count, "of": of});
    let smallest = shares.iter().map(|share| share.1).min().unwrap();
    let mut overall: HashMap<&str, u64> = HashMap::new();
    sensitive.iter().for_each(|row| *overall.entry(&row[1]).or_default() += 1);
    let prior = ratio((*overall.values().max().unwrap(), sensitive.len() as u64));
    json!({"prior": prior, "worst_posterior": ratio(*shares.last().unwrap()), "median_posterior": ratio(shares[shares.len() / 2]),
        "smallest_bucket": smallest})
}

/// The entropy of what a reader must expect, of tables that share nothing: the sum over tables, in each of which every row of the
/// one part of a bucket may belong to every row of the other.
async fn entropy(server: &Server, manifest: &Value) -> f64 {
    let mut nats = 0.0;
    let mut seen = BTreeSet::new();
    for table in manifest["tables"].as_array().unwrap() {
        let attributes = table["attributes"].as_array().unwrap();
        assert!(attributes.iter().all(|name| seen.insert(text(name))), "tables share {attributes:?}");
        let mut buckets: BTreeMap<String, Vec<Vec<Vec<String>>>> = BTreeMap::new();
        let parts = table["parts"].as_array().unwrap();
        for (at, part) in parts.iter().enumerate() {
            let (_, rows) = rows(&server.part(manifest, &text(&table["name"]), &text(&part["name"])).await);
            for mut row in rows {
                let bucket = if part["bucketed"] == true { row.remove(0) } else { String::new() };
                buckets.entry(bucket).or_insert_with(|| vec![Vec::new(); parts.len()])[at].push(row);
            }
        }
        let mut shares: HashMap<Vec<String>, f64> = HashMap::new();
        let all: usize = buckets.values().map(|parts| parts[0].len()).sum();
        for parts in buckets.values() {
            for known in &parts[0] {
                match parts.get(1) {
                    None => *shares.entry(known.clone()).or_default() += 1.0 / all as f64,
                    Some(sensitive) => sensitive.iter().for_each(|value| {
                        let tuple = [&known[..], value].concat();
                        *shares.entry(tuple).or_default() += 1.0 / (all * sensitive.len()) as f64;
                    }),
                }
            }
        }
        nats -= shares.values().map(|share| share * share.ln()).sum::<f64>();
    }
    nats
}

/// Recomputes every figure of a release that the server has.
async fn recompute(server: &Server, manifest: &Value) {
    let mut walk = Walk { manifest, seen: BTreeSet::new() };
    let mut sizes_in_all: Vec<Value> = Vec::new();
    let mut achieved_by: HashMap<String, Value> = HashMap::new();
    let mut files: HashMap<String, String> = HashMap::new();
    for (at, table) in manifest["tables"].as_array().unwrap().iter().enumerate() {
        let name = text(&table["name"]);
        let mut attributes = BTreeSet::new();
        let mut sizes_of_parts = Vec::new();
        for (part_at, part) in table["parts"].as_array().unwrap().iter().enumerate() {
            let pointer = format!("/tables/{at}/parts/{part_at}");
            let csv = server.part(manifest, &name, &text(&part["name"])).await;
            let (header, rows) = rows(&csv);
            files.insert(text(&part["file"]), csv.clone());
            walk.recomputed(&format!("{pointer}/sha256"), &json!(sha256(csv.as_bytes())));
            walk.recomputed(&format!("{pointer}/rows"), &json!(rows.len()));
            let bucketed = header[0] == "bucket";
            walk.recomputed(&format!("{pointer}/bucketed"), &json!(bucketed));
            let columns = &header[usize::from(bucketed)..];
            walk.recomputed(&format!("{pointer}/attributes"), &json!(columns));
            attributes.extend(columns.iter().cloned());
            for (column, name) in columns.iter().enumerate() {
                let column = column + usize::from(bucketed);
                let null = part["null"].as_str().unwrap_or_default();
                let cells: Vec<&str> =
                    rows.iter().map(|row| row[column].as_str()).filter(|cell| *cell != null).collect();
                walk.recomputed(&format!("{pointer}/types/{name}"), &json!(type_of(&cells)));
            }
            assert_eq!(part["types"].as_object().unwrap().len(), columns.len());
            if bucketed {
                let mut sizes: BTreeMap<u64, u64> = BTreeMap::new();
                for row in &rows {
                    *sizes.entry(row[0].parse().unwrap()).or_default() += 1;
                }
                // labels are 1 to B
                assert!(sizes.keys().copied().eq(1..=sizes.len() as u64));
                sizes_of_parts.push(sizes);
            }
            if part["name"] == "sa" {
                achieved_by.insert(name.clone(), achieved(&rows));
            }
        }
        let reported: BTreeSet<String> = table["attributes"].as_array().unwrap().iter().map(text).collect();
        assert_eq!(reported, attributes);
        assert!(sizes_of_parts.windows(2).all(|pair| pair[0] == pair[1]), "parts of one table have the same buckets");
        if let Some(sizes) = sizes_of_parts.first() {
            let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
            sizes.values().for_each(|size| *counts.entry(*size).or_default() += 1);
            let one = |(size, buckets): (&u64, &u64)| json!({"table": name, "size": size, "buckets": buckets});
            sizes_in_all.extend(counts.iter().map(one));
        }
    }
    walk.recomputed("/utility/bucket_sizes", &json!(sizes_in_all));
    if let Some(nats) = manifest["utility"].get("model_entropy_nats") {
        assert_eq!(manifest["utility"]["entropy_method"], "closed_form");
        let expected = entropy(server, manifest).await;
        assert!((nats.as_f64().unwrap() - expected).abs() < 1e-9, "{nats}, expected {expected}");
        walk.note("/utility/model_entropy_nats", nats);
    }
    for (at, rule) in manifest["rules"].as_array().unwrap().iter().enumerate() {
        let holder = rule["enforced_by"].get("guardian").or_else(|| rule["enforced_by"].get("table"));
        match holder {
            None => assert_eq!(rule.get("achieved"), None),
            Some(table) => {
                let achieved = &achieved_by[&text(table)];
                let l = rule["guarantee"]["l"].as_u64().unwrap();
                let worst = &achieved["worst_posterior"];
                assert!(worst["count"].as_u64().unwrap() * l <= worst["of"].as_u64().unwrap());
                walk.recomputed(&format!("/rules/{at}/achieved"), achieved);
            }
        }
    }
    assert_recomputed(&files, manifest);
    walk.note("/exposures", &manifest["exposures"]);
    walk.finish();
}

/// Numbers with a fraction, missing cells, skewed sensitive values and a residue.
fn awkward() -> String {
    let mut csv = String::from("age,weight,note,disease,ward\n");
    for row in 0..301_u32 {
        let mixed = row.wrapping_mul(2_654_435_761) >> 11;
        let disease = if mixed % 5 < 2 { 0 } else { mixed % 9 };
        let weight = if row % 3 == 0 { String::new() } else { format!("{}.5", mixed % 60) };
        let note = ["", "\"\"", "x", "\"a,b\""][(mixed % 4) as usize];
        let (age, ward) = (mixed % 7, if row % 10 == 0 { String::new() } else { format!("w{}", mixed % 13) });
        csv.push_str(&format!("{age},{weight},{note},d{disease},{ward}\n"));
    }
    csv
}

#[tokio::test(flavor = "multi_thread")]
async fn every_figure_follows_from_the_parts() {
    let server = Server::start().await;
    let hospital = server.dataset_of("hospital", HOSPITAL).await;
    server.population("census", &[]).await;
    let adult = some_rows(GzDecoder::new(&include_bytes!("../../../examples/data/adult.csv.gz")[..]), ONE_IN);
    let adult = text(&server.upload_with("population=census", adult, &[]).await.ok(201)["id"]);
    let awkward = server.dataset_of("awkward", awkward()).await;
    let anatomy = json!({"unlisted": "drop", "attributes": {"note": {"publish": true, "rename": "remark"}},
        "method": {"type": "anatomy", "quasi_identifiers": ["age", "weight"], "sensitive": "ward",
            "guarantee": {"type": "l_diversity", "l": 2}}});
    for (dataset, document) in [
        (&hospital, json!({"utility": ["entropy"], "method": hospital_method()})),
        (&adult, serde_json::from_str(include_str!("../../../examples/adult.json")).unwrap()),
        (&awkward, anatomy),
        (
            &awkward,
            json!({"unlisted": "drop", "attributes": {"note": {"publish": true}}, "utility": ["entropy"],
            "method": versatile(&["age, weight -> disease"])}),
        ),
    ] {
        let manifest = server.publish(dataset, document).await;
        recompute(&server, &manifest).await;
        // the report says no number that the manifest does not say
        let report = server.get(&format!("/v1/releases/{}/report", text(&manifest["id"]))).await.ok(200);
        let known = manifest.to_string();
        for number in report.to_string().split(|c: char| !c.is_ascii_digit()).filter(|digits| digits.len() > 2) {
            let buckets = manifest["utility"]["bucket_sizes"].as_array().unwrap();
            let of_table = |table: &Value| -> u64 {
                let sizes = buckets.iter().filter(|sizes| sizes["table"] == *table);
                sizes.map(|sizes| sizes["buckets"].as_u64().unwrap()).sum()
            };
            let is_sum = buckets.iter().any(|sizes| number.parse() == Ok(of_table(&sizes["table"])));
            assert!(known.contains(number) || is_sum, "{number} in {report:#}");
        }
    }
    server.stop().await;
}

#[test]
fn unchecked_figure_of_manifest_is_found() {
    let manifest = json!({"contract": 2, "utility": {"kl": 1.772_129}});
    let walk = Walk { manifest: &manifest, seen: BTreeSet::new() };
    assert!(std::panic::catch_unwind(|| walk.finish()).is_err());
}
