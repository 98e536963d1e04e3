//! A practitioner on real tables who knows every published column of a person but the protected one: what the manifest and the
//! report state of a rule equals a recount from the parts.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use flate2::read::GzDecoder;
use guardian::report::ManifestRatio;
use serde_json::{Value, json};

use crate::support::library::{Original, ReadPart, parts, publish, table};

/// A rule on the first rows of a real table.
struct Practice {
    file: &'static str,
    known: &'static [&'static str],
    sensitive: &'static str,
    l: u64,
}

const PRACTICES: [Practice; 3] = [
    Practice {
        file: "adult-7.csv.gz",
        known: &["country", "education", "marital_status", "occupation", "income", "sex"],
        sensitive: "age",
        l: 2,
    },
    Practice {
        file: "nhds2010.csv.gz",
        known: &["age", "sex", "race", "care_days", "region", "dc_month"],
        sensitive: "dx01",
        l: 10,
    },
    Practice { file: "nhds2010.csv.gz", known: &["age", "sex", "region"], sensitive: "DRG", l: 5 },
];

impl Practice {
    fn csv(&self) -> String {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(self.file);
        let lines = BufReader::new(GzDecoder::new(File::open(path).unwrap())).lines();
        lines.take(5_001).map(|line| line.unwrap() + "\n").collect()
    }

    fn methods(&self) -> [Value; 2] {
        let guarantee = json!({"type": "l_diversity", "l": self.l});
        let rule = format!("{} -> {}", self.known.join(", "), self.sensitive);
        [
            json!({"type": "anatomy", "sensitive": self.sensitive, "quasi_identifiers": self.known, "guarantee": guarantee}),
            json!({"type": "versatile", "rules": [rule], "default_guarantee": guarantee}),
        ]
    }
}

/// What follows of the sensitive values from the parts.
struct Recount {
    /// The largest share of a value in a bucket.
    worst: (u64, u64),
    smallest_bucket: u64,
    /// People with one possible value, and those of whom one value is likelier than not.
    fixed: u64,
    likely: u64,
    /// The largest posterior of a value.
    largest: f64,
}

fn recount(rows: &ReadPart, values: &ReadPart) -> Recount {
    let mut buckets: BTreeMap<u32, BTreeMap<&str, u64>> = BTreeMap::new();
    for (bucket, row) in values.buckets.as_ref().unwrap().iter().zip(&values.rows) {
        *buckets.entry(*bucket).or_default().entry(&row[0]).or_default() += 1;
    }
    let size = |bucket: &BTreeMap<&str, u64>| bucket.values().sum::<u64>();
    let shares = buckets.values().map(|bucket| (*bucket.values().max().unwrap(), size(bucket)));
    let worst = shares.max_by(|a, b| (a.0 * b.1).cmp(&(b.0 * a.1))).unwrap();
    // each row with the cells of a person is equally likely theirs
    let mut people: BTreeMap<&Vec<String>, Vec<u32>> = BTreeMap::new();
    for (bucket, row) in rows.buckets.as_ref().unwrap().iter().zip(&rows.rows) {
        people.entry(row).or_default().push(*bucket);
    }
    let smallest_bucket = buckets.values().map(size).min().unwrap();
    let mut found = Recount { worst, smallest_bucket, fixed: 0, likely: 0, largest: 0.0 };
    for alike in people.values() {
        let mut posterior: BTreeMap<&str, f64> = BTreeMap::new();
        for bucket in alike.iter().map(|label| &buckets[label]) {
            for (value, count) in bucket {
                *posterior.entry(value).or_default() += *count as f64 / size(bucket) as f64 / alike.len() as f64;
            }
        }
        let largest = posterior.values().copied().fold(0.0, f64::max);
        found.fixed += if posterior.len() == 1 { alike.len() as u64 } else { 0 };
        found.likely += if largest > 0.5 + 1e-9 { alike.len() as u64 } else { 0 };
        found.largest = found.largest.max(largest);
    }
    found
}

#[test]
fn practitioner_of_real_tables_meets_the_listed_bounds() {
    for practice in &PRACTICES {
        let original = Original::new(table(practice.csv().as_bytes()));
        let names = practice.known.iter().chain([&practice.sensitive]);
        let attributes: Value =
            names.map(|name| ((*name).to_owned(), json!({"publish": true, "identifier": false}))).collect();
        for method in practice.methods() {
            let document = json!({"attributes": attributes, "unlisted": "drop", "method": method});
            let (manifest, files) = publish(&original, &document).unwrap();
            let of_sensitive = |part: &ReadPart| part.attributes == [practice.sensitive];
            let tables = parts(&manifest, &files);
            let table = tables.iter().find(|table| table.iter().any(of_sensitive)).unwrap();
            let (values, rows) =
                (table.iter().find(|part| of_sensitive(part)), table.iter().find(|part| !of_sensitive(part)));
            let (values, rows) = (values.unwrap(), rows.unwrap());
            assert_eq!((rows.rows.len(), rows.attributes.len()), (5_000, practice.known.len()), "{method}");
            let found = recount(rows, values);
            let listed = serde_json::to_value(&manifest).unwrap();
            let achieved = &listed["rules"][0]["achieved"];
            let share = &achieved["worst_posterior"];
            let (count, of) = (share["count"].as_u64().unwrap(), share["of"].as_u64().unwrap());
            assert_eq!(count * found.worst.1, found.worst.0 * of, "{method}: {achieved}");
            assert_eq!(achieved["smallest_bucket"], found.smallest_bucket, "{method}");
            // no value is likelier than the bound, whatever group of people one is alike with
            assert!(found.worst.0 * practice.l <= found.worst.1, "{method}: {:?}", found.worst);
            assert!(found.largest <= 1.0 / practice.l as f64 + 1e-9, "{method}: {}", found.largest);
            let exposed = listed["exposures"]["values"].as_array().unwrap();
            let exposed = exposed.iter().find(|value| {
                value["attribute"] == practice.sensitive
                    && value["known"].as_array().unwrap().len() == practice.known.len()
            });
            let exposed = exposed.unwrap_or_else(|| panic!("{method}: {:#}", listed["exposures"]));
            let figure = |count: u64| serde_json::to_value(ManifestRatio { count, of: 5_000 }).unwrap();
            assert_eq!(
                (&exposed["fixed"], &exposed["likely"]),
                (&figure(found.fixed), &figure(found.likely)),
                "{method}"
            );
        }
    }
}
