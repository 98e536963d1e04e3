//! Attackers who know that one attribute determines another: through the library, on what the parts show.
//!
//! Each knows every published column of a person but the protected one, and the function behind each dependency. In the bucket
//! of that person they keep the values that fit, and count.

use std::collections::BTreeMap;

use guardian::problem::{Fault, Kind};
use guardian::publication::NoticeKind;
use guardian::report::{Manifest, ManifestRule, public_report};
use serde_json::{Value, json};

use super::repairs::publish_repaired;
use crate::support::library::{self, Memory, Original, Random, ReadPart, parts, table};

/// 480 people: 24 diagnoses in three chapters of eight, a copy of the diagnosis as a code, a ward that says nothing.
fn people(random: &mut Random) -> String {
    let row = |i: usize| {
        let dx = i % 24;
        let (age, sex, ward) = (20 + random.below(40), random.below(2), random.below(5));
        format!("{age},s{sex},w{ward},c{},d{dx:02}\n", dx / 8)
    };
    "age,sex,ward,chapter,dx\n".to_owned() + &(0..480).map(row).collect::<String>()
}

/// The chapter of a diagnosis, which anyone can look up.
fn chapter(dx: &str) -> String {
    format!("c{}", dx[1..].parse::<usize>().unwrap() / 8)
}

/// The largest share that a diagnosis has among those of its bucket that fit what is known of a person.
///
/// A chapter that stands beside the diagnosis is of no person, so it counts on the row side alone.
fn worst_posterior(parts: &[ReadPart]) -> (u64, u64) {
    let column = |part: &ReadPart, name: &str| part.attributes.iter().position(|attribute| attribute == name);
    let sensitive = parts.iter().find(|part| column(part, "dx").is_some()).unwrap();
    let (dx, mut values) = (column(sensitive, "dx").unwrap(), BTreeMap::<u32, Vec<&str>>::new());
    let Some(buckets) = &sensitive.buckets else {
        // nothing ties the diagnoses of the whole table to a person
        assert!(sensitive.attributes.iter().all(|name| name != "age" && name != "sex"));
        return (1, 24);
    };
    for (bucket, row) in buckets.iter().zip(&sensitive.rows) {
        values.entry(*bucket).or_default().push(&row[dx]);
    }
    let rows = parts.iter().find(|part| column(part, "age").is_some()).unwrap();
    let known = column(rows, "chapter");
    let mut worst = (0, 1);
    for (bucket, row) in rows.buckets.as_ref().unwrap().iter().zip(&rows.rows) {
        let fitting: Vec<&str> =
            values[bucket].iter().copied().filter(|dx| known.is_none_or(|at| chapter(dx) == row[at])).collect();
        for value in &fitting {
            let count = fitting.iter().filter(|other| other == &value).count() as u64;
            if count * worst.1 > worst.0 * fitting.len() as u64 {
                worst = (count, fitting.len() as u64);
            }
        }
    }
    worst
}

fn methods(known: &[&str], l: u64) -> Vec<Value> {
    let guarantee = json!({"type": "l_diversity", "l": l});
    let rule = format!("{} -> dx", known.join(", "));
    vec![
        json!({"type": "anatomy", "sensitive": "dx", "quasi_identifiers": known, "guarantee": guarantee}),
        json!({"type": "versatile", "rules": [rule], "default_guarantee": guarantee, "algorithm": "uad"}),
        json!({"type": "versatile", "rules": [rule], "default_guarantee": guarantee, "algorithm": "gd"}),
        json!({"type": "versatile", "rules": [rule], "default_guarantee": guarantee, "algorithm": "auto"}),
    ]
}

fn publish(original: &Original, method: &Value) -> Result<(Manifest, Memory), Vec<Fault>> {
    library::publish(original, &document(method))
}

/// Publishes some attributes and the diagnosis.
fn publish_known(original: &Original, known: &[&str], method: &Value) -> Result<(Manifest, Memory), Vec<Fault>> {
    let attributes: Value =
        known.iter().chain(&["dx"]).map(|name| ((*name).to_owned(), json!({"publish": true}))).collect();
    library::publish(original, &json!({"attributes": attributes, "unlisted": "drop", "method": method}))
}

fn document(method: &Value) -> Value {
    let attributes: Value =
        ["age", "sex", "ward", "chapter", "dx"].map(|name| (name, json!({"publish": true}))).into_iter().collect();
    json!({ "attributes": attributes, "method": method })
}

fn original() -> Original {
    Original::new(table(people(&mut Random(1)).as_bytes()))
}

/// The parts of the table with the diagnosis.
fn diagnosed(manifest: &Manifest, files: &Memory) -> Vec<ReadPart> {
    let shows = |part: &ReadPart| part.attributes.iter().any(|attribute| attribute == "dx");
    parts(manifest, files).into_iter().find(|table| table.iter().any(shows)).unwrap()
}

#[test]
fn known_chapter_leaves_every_bucket_its_bound() {
    let original = original();
    for method in methods(&["age", "sex", "chapter"], 5) {
        let (manifest, files) = publish(&original, &method).unwrap();
        let (count, of) = worst_posterior(&diagnosed(&manifest, &files));
        assert!(count * 5 <= of, "{method}: {count}/{of}");
        let used = serde_json::to_value(&manifest.dependencies).unwrap();
        let expected = json!([{"determinant": ["dx"], "dependent": ["chapter"], "used": ["strata"]}]);
        assert_eq!(used["discovered"], expected, "{method}");
        let strata = |rule: &ManifestRule| (rule.strata.clone(), rule.determined.clone());
        assert!(manifest.rules.iter().any(|rule| strata(rule) == (vec!["chapter".to_owned()], Vec::new())), "{method}");
        let report = public_report(&manifest).premises.join("\n");
        assert!(report.contains("and that dx determines chapter"), "{report}");
        assert!(report.contains("this assumes nothing about how chapter and dx go together"), "{report}");
        assert!(report.contains("no other knowledge of which row has which dx"), "{report}");
    }
}

#[test]
fn chapter_that_no_rule_knows_costs_no_rule() {
    let original = original();
    // a chapter has eight diagnoses: inside chapters no bucket could keep l = 9
    for method in methods(&["age", "sex"], 9) {
        let (manifest, files) = publish(&original, &method).unwrap();
        let (count, of) = worst_posterior(&diagnosed(&manifest, &files));
        assert!(count * 9 <= of, "{method}: {count}/{of}");
        let moved = manifest.warnings.iter().filter(|warning| warning.r#type == NoticeKind::AttributeMoved);
        let moved: Vec<&str> = moved.map(|warning| warning.detail.as_str()).collect();
        let in_part =
            manifest.tables.iter().flat_map(|table| &table.parts).any(|part| part.attributes == ["chapter", "dx"]);
        assert_eq!(
            !moved.is_empty(),
            in_part && manifest.tables.iter().any(|table| !table.guards.is_empty()),
            "{method}"
        );
        for detail in moved {
            assert!(detail.starts_with("chapter stands beside dx"), "{detail}");
            assert!(public_report(&manifest).tables.iter().any(|sentence| sentence == detail));
        }
        let shown = manifest.tables.iter().flat_map(|table| &table.attributes);
        assert!(shown.into_iter().any(|name| name == "chapter"), "{method}");
    }
}

#[test]
fn chapter_with_too_few_diagnoses_is_refused_with_repairs() {
    let original = original();
    for method in methods(&["age", "sex", "chapter"], 9) {
        let faults = publish(&original, &method).map(|_| ()).unwrap_err();
        let [fault] = &faults[..] else { panic!("{faults:#?}") };
        assert_eq!(fault.kind, Kind::RuleImpossible, "{fault:#?}");
        assert_eq!(fault.members["strata"], json!({"attributes": ["chapter"], "ineligible": 3, "of": 3}));
        assert_eq!(fault.members["largest_l"], json!(8));
        let repairs = fault.members["repairs"].as_array().unwrap();
        let names: Vec<&str> = repairs
            .iter()
            .filter_map(|repair| {
                repair.as_object()?.keys().map(String::as_str).find(|name| !["patch", "reason_at"].contains(name))
            })
            .collect();
        assert_eq!(names, ["leave_out_of_known", "lower_l", "ineligible_strata", "assume_unknown"], "{repairs:#?}");
        assert_eq!((&repairs[0]["leave_out_of_known"], &repairs[1]["lower_l"]), (&json!(["chapter"]), &json!(8)));
        // each repair, applied, is accepted
        for repair in repairs {
            publish_repaired(&original, &document(&method), repair)
                .unwrap_or_else(|faults| panic!("{repair}: {faults:#?}"));
        }
    }
}

/// The other methods, each of which protects the diagnosis from who knows the `known` attributes.
fn other_methods(known: &[&str], l: u64) -> Vec<Value> {
    let guarantee = json!({"type": "l_diversity", "l": l});
    let share = json!({"explicit": {}, "otherwise": format!("1/{l}")});
    let columns: Vec<Vec<&str>> = known.iter().map(|name| vec![*name]).chain([vec!["dx"]]).collect();
    let bucketize = |sizes: &str| json!({"type": "bucketize", "sensitive": "dx", "quasi_identifiers": known, "thresholds": share, "sizes": sizes});
    vec![
        bucketize("one"),
        bucketize("two"),
        bucketize("multi"),
        json!({"type": "slicing", "sensitive": "dx", "columns": {"explicit": columns}, "guarantee": guarantee}),
        json!({"type": "generalize", "quasi_identifiers": known, "sensitive": ["dx"], "guarantees": [guarantee]}),
        json!({"type": "decompose", "quasi_identifiers": known, "sensitive": ["dx"], "l": {"dx": l}, "breaches": "report"}),
    ]
}

/// The largest share of a diagnosis in a bucket or class among those of the same chapter.
///
/// An adversary who knows the chapter of a person and the chapters of diagnoses is left with these.
fn worst_in_chapter(parts: &[ReadPart]) -> (u64, u64) {
    let sensitive = parts.iter().find(|part| part.attributes.iter().any(|name| name == "dx")).unwrap();
    let dx = sensitive.attributes.iter().position(|name| name == "dx").unwrap();
    let mut classes: BTreeMap<(Vec<&str>, String), BTreeMap<&str, u64>> = BTreeMap::new();
    for (at, row) in sensitive.rows.iter().enumerate() {
        let bucket = sensitive.buckets.as_ref().map(|buckets| buckets[at].to_string());
        let cells = row.iter().enumerate().filter(|(column, _)| bucket.is_none() && *column != dx);
        let mut class: Vec<&str> = cells.map(|(_, cell)| cell.as_str()).collect();
        let bucket = bucket.unwrap_or_default();
        class.sort_unstable();
        let key = (class, format!("{bucket}/{}", chapter(&row[dx])));
        *classes.entry(key).or_default().entry(&row[dx]).or_default() += 1;
    }
    let share = |counts: &BTreeMap<&str, u64>| (*counts.values().max().unwrap(), counts.values().sum::<u64>());
    classes.values().map(share).max_by(|a, b| (a.0 * b.1).cmp(&(b.0 * a.1))).unwrap()
}

#[test]
fn known_chapter_leaves_other_methods_their_bound() {
    let original = original();
    let known = ["age", "sex", "chapter"];
    for method in other_methods(&known, 5) {
        let (manifest, files) =
            publish_known(&original, &known, &method).unwrap_or_else(|e| panic!("{method}: {e:#?}"));
        let (count, of) = worst_in_chapter(&diagnosed(&manifest, &files));
        assert!(count * 5 <= of, "{method}: {count}/{of}");
        let used = serde_json::to_value(&manifest.dependencies).unwrap();
        let found = &used["discovered"][0];
        assert_eq!((&found["determinant"], &found["dependent"]), (&json!(["dx"]), &json!(["chapter"])), "{method}");
    }
}

#[test]
fn other_methods_refuse_chapters_with_too_few_values() {
    let original = original();
    let known = ["age", "sex", "chapter"];
    for method in other_methods(&known, 9) {
        let faults = publish_known(&original, &known, &method).map(|_| ()).unwrap_err();
        let [fault] = &faults[..] else { panic!("{method}: {faults:#?}") };
        assert_eq!(fault.kind, Kind::RuleImpossible, "{method}: {fault:#?}");
        assert_eq!(fault.members["strata"]["attributes"], json!(["chapter"]), "{method}");
        assert!(fault.members["repairs"].is_array(), "{method}: {fault:#?}");
    }
    // both repairs, applied, are accepted
    for method in other_methods(&known, 8) {
        publish_known(&original, &known, &method).unwrap_or_else(|e| panic!("{method}: {e:#?}"));
    }
    let others = ["age", "sex"];
    for method in other_methods(&others, 9) {
        publish_known(&original, &others, &method).unwrap_or_else(|e| panic!("{method}: {e:#?}"));
    }
}

#[test]
fn bucketize_moves_a_chapter_that_no_rule_knows() {
    let original = original();
    let share = json!({"explicit": {}, "otherwise": "1/9"});
    let known = ["age", "sex"];
    let method = json!({"type": "bucketize", "sensitive": "dx", "quasi_identifiers": known, "thresholds": share});
    let published = ["age", "sex", "chapter"];
    let (manifest, files) = publish_known(&original, &published, &method).unwrap();
    let (count, of) = worst_posterior(&diagnosed(&manifest, &files));
    assert!(count * 9 <= of, "{count}/{of}");
    // fake diagnoses would stand without a chapter
    let mut method = method;
    method["thresholds"] = json!({"uniform": {"l": 9}});
    method["counterfeits"] = json!({"per_bucket": 1});
    let faults = publish_known(&original, &published, &method).map(|_| ()).unwrap_err();
    assert!(faults.iter().any(|fault| fault.kind == Kind::GuaranteeUnsupported), "{faults:#?}");
}

#[test]
fn mixtures_and_listed_sizes_refuse_links() {
    let original = original();
    let known = ["age", "sex", "chapter"];
    let guarantee = json!({"type": "l_diversity", "l": 5});
    let columns = json!({"explicit": [["age", "sex"], ["chapter"], ["dx"]]});
    let share = json!({"explicit": {}, "otherwise": "1/5"});
    for method in [
        json!({"type": "slicing", "sensitive": "dx", "columns": columns, "guarantee": guarantee, "diversity": "mixture"}),
        json!({"type": "bucketize", "sensitive": "dx", "thresholds": share, "sizes": [{"size": 5, "buckets": 96}]}),
    ] {
        let faults = publish_known(&original, &known, &method).map(|_| ()).unwrap_err();
        let [fault] = &faults[..] else { panic!("{method}: {faults:#?}") };
        assert_eq!(fault.kind, Kind::GuaranteeUnsupported, "{method}: {fault:#?}");
        assert_eq!(fault.members["dependency"], json!({"determinant": ["dx"], "dependent": ["chapter"]}), "{method}");
    }
}

#[test]
fn rule_that_follows_by_an_unpublished_attribute_names_it() {
    let rows = ["a5,b5,c0,d5", "a3,b3,c3,d3", "a3,b3,c0,d3", "a6,b6,c0,d6", "a5,b5,c0,d5", "a3,b3,c0,d3"];
    let original = Original::new(table(("a,b,c,d\n".to_owned() + &rows.join("\n") + "\n").as_bytes()));
    let links = ["a b", "b d"].map(|link| link.split_once(' ').unwrap());
    let links = links.map(|(from, to)| json!({"determinant": [from], "dependent": [to]}));
    let method = json!({"type": "versatile", "rules": ["c -> d"], "functional_dependencies": links,
        "default_guarantee": {"type": "l_diversity", "l": 2}});
    let attributes = json!({"a": {"publish": true}, "c": {"publish": true}, "d": {"publish": true}});
    let document = json!({"attributes": attributes, "unlisted": "drop", "method": method});
    let (manifest, _) = library::publish(&original, &document).unwrap();
    let rules = serde_json::to_value(&manifest.rules).unwrap();
    let because = rules.as_array().unwrap().iter().map(|rule| &rule["because"]);
    assert!(because.into_iter().any(|because| because["dependent"] == json!(["b"])), "{rules:#}");
}
