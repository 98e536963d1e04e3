//! Slicing with a number of columns: what dependencies tie to the sensitive attribute stands in its column.

use std::collections::BTreeMap;

use guardian::problem::Kind;
use serde_json::{Value, json};

use crate::support::library::{Original, parts, publish, table};

/// 240 people; a diagnosis determines its chapter, and the last chapter is small.
fn csv() -> String {
    let row = |at: usize| {
        let diagnosis = if at < 236 { at % 8 } else { 8 + at % 2 };
        format!("{},{},c{},d{diagnosis}\n", 20 + at * 7 % 40, ["m", "w"][at * 5 / 3 % 2], diagnosis / 4)
    };
    "age,sex,chapter,diagnosis\n".to_owned() + &(0..240).map(row).collect::<String>()
}

fn document(columns: &Value, others: &Value) -> Value {
    let mut method = json!({"type": "slicing", "sensitive": "diagnosis", "columns": columns,
        "guarantee": {"type": "l_diversity", "l": 2}});
    method.as_object_mut().unwrap().extend(others.as_object().unwrap().clone());
    let published = |name: &str| (name.to_owned(), json!({"publish": true, "identifier": false}));
    let attributes: Value = ["age", "sex", "chapter", "diagnosis"].map(published).into_iter().collect();
    json!({"attributes": attributes, "method": method})
}

/// The largest share of a diagnosis among the rows of a bucket in one chapter.
fn attack(sensitive: &crate::support::library::ReadPart) -> (u64, u64) {
    let place = |name: &str| sensitive.attributes.iter().position(|other| other == name).unwrap();
    let (chapter, diagnosis) = (place("chapter"), place("diagnosis"));
    let mut classes: BTreeMap<(u32, &str), BTreeMap<&str, u64>> = BTreeMap::new();
    for (bucket, row) in sensitive.buckets.as_ref().unwrap().iter().zip(&sensitive.rows) {
        *classes.entry((*bucket, &row[chapter])).or_default().entry(&row[diagnosis]).or_default() += 1;
    }
    let share = |of: &BTreeMap<&str, u64>| (*of.values().max().unwrap(), of.values().sum::<u64>());
    classes.values().map(share).max_by(|a, b| (a.0 * b.1).cmp(&(b.0 * a.1))).unwrap()
}

/// No stratum of the chapter has as many rows as a bucket needs, which refuses columns that part the two.
#[test]
fn linked_attribute_stands_in_the_sensitive_column() {
    let original = Original::new(table(csv().as_bytes()));
    let apart = document(&json!({"explicit": [["age"], ["sex", "chapter"], ["diagnosis"]]}), &json!({"min_bucket": 8}));
    let faults = publish(&original, &apart).err().unwrap();
    assert_eq!(faults[0].kind, Kind::RuleImpossible, "{faults:#?}");

    let (manifest, files) = publish(&original, &document(&json!({"count": 3}), &json!({"min_bucket": 8}))).unwrap();
    let tables = parts(&manifest, &files);
    let column = tables[0].iter().find(|part| part.attributes.contains(&"diagnosis".to_owned())).unwrap();
    assert_eq!(column.attributes, ["chapter", "diagnosis"]);
    assert_eq!((tables[0].len(), column.rows.len()), (3, 240));
    let (most, of) = attack(column);
    assert!(most * 2 <= of, "{most} of {of}");
    let listed = serde_json::to_value(&manifest).unwrap();
    assert_eq!(listed["dependencies"]["discovered"][0]["used"], json!(["protected_part"]), "{listed:#}");
    assert_eq!(listed["tables"][0]["guards"][0]["constant"], json!(["chapter"]), "{listed:#}");
}

#[test]
fn columns_that_nothing_is_left_for_are_refused() {
    let original = Original::new(table(csv().as_bytes()));
    let faults = publish(&original, &document(&json!({"count": 4}), &json!({}))).err().unwrap();
    assert_eq!((faults[0].kind, faults[0].pointer.as_str()), (Kind::BadColumns, "/method/columns"), "{faults:#?}");
}
