//! Decompose: over HTTP and by the command line, held against definitions of this test's own; and every refusal.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;

use flate2::read::GzDecoder;
use guardian::ledger::Earlier;
use guardian::random::{ReleaseKey, Streams};
use serde_json::{Value, json};

use super::harness::text;
use super::library::{Memory, Original, cells, release, table};

/// The poster's table, in the order in which its first bucket is {1, 5, 7, 3}.
pub(super) const POSTER: &str = "sex,zip,birth,occ,salary\n\
    F,10078,1988/04/17,nurse,1\nF,10077,1984/03/21,nurse,4\nM,10076,1985/03/01,police,8\nF,10075,1983/02/14,cook,9\n\
    F,10085,1962/10/03,actor,2\nM,10085,1988/11/04,actor,7\nM,20086,1958/06/06,clerk,8\nF,20087,1960/07/11,clerk,2\n";

/// Decompose with all of the poster's other attributes as quasi-identifiers.
fn poster(method: Value) -> Value {
    let mut method = method;
    method["type"] = "decompose".into();
    if method["sensitive"].is_null() {
        method["sensitive"] = json!(["occ", "salary"]);
    }
    json!({"attributes": {"sex": {"publish": true}, "zip": {"publish": true}, "birth": {"publish": true}}, "method": method})
}

type Buckets = BTreeMap<u64, Vec<String>>;

/// The values of a part of one column, by bucket.
fn by_bucket(csv: &[u8]) -> Buckets {
    let mut buckets = Buckets::new();
    for row in cells(csv).1 {
        buckets.entry(row[0].parse().unwrap()).or_default().push(row[1].clone());
    }
    buckets
}

/// Holds the parts of a release against the table and the definitions: what each bucket holds and lists, and what is said of it.
fn judge(manifest: &Value, files: &Memory, original: &[Vec<String>], header: &[String]) {
    let said = &manifest["particulars"];
    let primary = text(&said["primary"]);
    let column = |name: &str| header.iter().position(|known| known == name).unwrap();
    let sensitive: Vec<String> = said["l"].as_object().unwrap().keys().cloned().collect();
    let groups = by_bucket(&files.0["t1.primary.csv"]);
    let qi = cells(&files.0["t1.qi.csv"]);
    assert_eq!(qi.1.len(), original.len());
    assert!(groups.keys().copied().eq(1..=groups.len() as u64), "labels are 1, 2, ...");
    let l = |name: &str| said["l"][name].as_u64().unwrap() as usize;
    for group in groups.values() {
        for value in group {
            assert!(group.iter().filter(|other| *other == value).count() * l(&primary) <= group.len());
        }
    }
    let mut published: Vec<&String> = groups.values().flatten().collect();
    let mut expected: Vec<&String> = original.iter().map(|row| &row[column(&primary)]).collect();
    published.sort();
    expected.sort();
    assert_eq!(published, expected);
    let parts = manifest["tables"][0]["parts"].as_array().unwrap();
    for part in parts.iter().filter(|part| part["row_meaning"] == "values") {
        let name = text(&part["attributes"][0]);
        let sets = by_bucket(&files.0[&text(&part["file"])]);
        assert_eq!(sets.len(), groups.len());
        for set in sets.values() {
            assert!(set.len() >= l(&name), "{name}: {set:?}");
            assert_eq!(set.iter().collect::<BTreeSet<_>>().len(), set.len(), "each value once");
        }
    }
    // the joint values are those of all rows
    let (names, mut joint) = cells(&files.0["t2.rows.csv"]);
    assert_eq!(names.iter().collect::<BTreeSet<_>>(), sensitive.iter().collect::<BTreeSet<_>>());
    let mut expected: Vec<Vec<String>> =
        original.iter().map(|row| names.iter().map(|name| row[column(name)].clone()).collect()).collect();
    joint.sort();
    expected.sort();
    assert_eq!(joint, expected);
    for table in manifest["tables"].as_array().unwrap() {
        assert_eq!((&table["standing"], &table["seals"]), (&json!("unsealed"), &json!([])));
    }
    let rules = manifest["rules"].as_array().unwrap();
    assert_eq!(rules.len(), sensitive.len());
    for rule in rules {
        assert_eq!(rule["held_by"], json!({"table": "t1"}));
        assert!(rule["bounded"] == true || rule["sensitive"] != json!([primary]), "{rule}");
    }
}

fn rows_of(csv: &str) -> (Vec<String>, Vec<Vec<String>>) {
    cells(csv.as_bytes())
}

#[test]
fn the_posters_table_is_decomposed_without_noise() {
    let input = Original::new(table(POSTER.as_bytes()));
    let job = input.job(&poster(json!({}))).unwrap();
    let (released, files) = release(&job, &Earlier::default(), &Streams::Identity).unwrap_or_else(|e| panic!("{e:?}"));
    let manifest = serde_json::to_value(&released.manifest).unwrap();
    let (header, original) = rows_of(POSTER);
    judge(&manifest, &files, &original, &header);
    let said = &manifest["particulars"];
    assert_eq!(said["l"], json!({"occ": 4, "salary": 4}));
    assert_eq!(said["repeat_free_groups"], json!({"salary": {"count": 2, "of": 2}}));
    assert_eq!((&said["noise"], &said["primary"]), (&json!([]), &json!("occ")));
    assert!(manifest["rules"].as_array().unwrap().iter().all(|rule| rule["bounded"] == true), "{manifest:#}");
    // police is one row of the joint table, and so its salary is told
    let police =
        by_bucket(&files.0["t1.primary.csv"]).into_iter().find(|(_, occ)| occ.contains(&"police".into())).unwrap().0;
    let chain = json!({"attack": "chain", "bucket": police, "attribute": "salary"});
    assert!(said["breaches"].as_array().unwrap().contains(&chain), "{said:#}");
    let kinds: Vec<&Value> = manifest["tables"].as_array().unwrap().iter().map(|table| &table["kind"]).collect();
    assert_eq!(kinds, ["decomposed", "sensitive"]);
    assert_eq!(manifest["method"], json!({"type": "decompose", "adversary": "without minimality"}));
}

#[test]
fn tables_of_every_key_are_what_they_say() {
    let (header, original) = rows_of(POSTER);
    let input = Original::new(table(POSTER.as_bytes()));
    for (key, method) in
        (0_u8..).zip([json!({}), json!({"primary": "salary"}), json!({"l": {"occ": 2}}), json!({"l": {"salary": 2}})])
    {
        for more in 0..8 {
            let job = input.job(&poster(method.clone())).unwrap();
            let streams = Streams::Keyed(ReleaseKey::from_bytes([16 * key + more; 32]));
            let (released, files) =
                release(&job, &Earlier::default(), &streams).unwrap_or_else(|e| panic!("{method}: {e:?}"));
            judge(&serde_json::to_value(&released.manifest).unwrap(), &files, &original, &header);
        }
    }
}

fn adult() -> Original {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data/adult.csv.gz");
    Original::new(table(GzDecoder::new(File::open(path).unwrap())))
}

#[test]
fn occupations_and_educations_of_adult_are_decomposed() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data/adult.csv.gz");
    let mut csv = Vec::new();
    std::io::Read::read_to_end(&mut GzDecoder::new(File::open(path).unwrap()), &mut csv).unwrap();
    let (header, original) = cells(&csv);
    let input = adult();
    let document = json!({"attributes": {"age": {"publish": true}, "sex": {"publish": true}, "race": {"publish": true}},
        "unlisted": "drop", "method": {"type": "decompose", "sensitive": ["occupation", "education"]}});
    let job = input.job(&document).unwrap();
    let streams = Streams::Keyed(ReleaseKey::from_bytes([5; 32]));
    let begun = std::time::Instant::now();
    let (released, files) = release(&job, &Earlier::default(), &streams).unwrap_or_else(|e| panic!("{e:?}"));
    println!("{:?}", begun.elapsed());
    let manifest = serde_json::to_value(&released.manifest).unwrap();
    println!(
        "{:#}",
        json!({"particulars": {"l": manifest["particulars"]["l"], "noise": manifest["particulars"]["noise"],
        "free": manifest["particulars"]["repeat_free_groups"], "total": manifest["particulars"]["breaches_total"]}, "rules": manifest["rules"]})
    );
    judge(&manifest, &files, &original, &header);
}
