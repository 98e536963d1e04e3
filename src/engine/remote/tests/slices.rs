//! Sliced tables of the stand-in for another engine.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::port::{RemoteAudit, RemoteCheck, RemoteTablePlan};
use super::super::slices::RemoteSlices;
use super::{EngineFault, TableInMemory, patients, planned, refused, released};
use crate::engine::EngineError;
use crate::publication::Linkage;

/// What the rows of a bucket hold that agree in the other columns of the last part.
type AgreeingRows<'a> = BTreeMap<(u32, Vec<&'a str>), BTreeMap<u32, u64>>;

impl TableInMemory {
    /// What the buckets of a sliced table hold, and their sizes.
    pub(super) fn count_slices(&self, table: &RemoteTablePlan, slices: &RemoteSlices, audit: &mut RemoteAudit) {
        let places = |at: &[usize]| at.iter().map(|&at| table.known[at].column).collect::<Vec<usize>>();
        let labels: BTreeMap<Vec<&[u8]>, u32> = slices
            .members
            .iter()
            .map(|(label, values)| (values.into_iter().map(Option::unwrap).collect(), label))
            .collect();
        let sensitive = slices.sensitive.column.column;
        let others: Vec<usize> =
            places(slices.parts.last().unwrap()).into_iter().filter(|place| *place != sensitive).collect();
        let (mut contents, mut sizes) = (AgreeingRows::new(), BTreeMap::<u32, u64>::new());
        for row in &self.rows {
            let key: Vec<&[u8]> = places(&slices.members.places).into_iter().map(|at| row[at].as_bytes()).collect();
            let label = labels[&key];
            let code =
                slices.sensitive.values.iter().position(|value| value.as_ref() == Some(&row[sensitive])).unwrap();
            let agreeing = others.iter().map(|&at| row[at].as_str()).collect();
            *contents.entry((label, agreeing)).or_default().entry(code as u32).or_default() += 1;
            *sizes.entry(label).or_default() += 1;
        }
        if self.fault == EngineFault::Gathered {
            // in one bucket the rows that agree have one value
            let rows = contents.values_mut().next().unwrap();
            let all = rows.values().sum();
            *rows = BTreeMap::from([(0, all)]);
        }
        let mut counted = BTreeMap::new();
        contents.into_values().for_each(|of| *counted.entry(of.into_iter().collect()).or_default() += 1);
        audit.contents.push(counted);
        sizes.into_values().for_each(|rows| *audit.sizes.entry(rows).or_default() += 1);
        match self.fault {
            EngineFault::SmallClass => _ = audit.sizes.insert(1, 1),
            EngineFault::Uncovered => audit.sizes.clear(),
            _ => {}
        }
    }
}

fn slicing(changes: &Value) -> Value {
    let mut method = json!({"type": "slicing", "sensitive": "disease", "split": "strict",
                            "columns": {"explicit": [["age"], ["ward", "disease"]]},
                            "guarantee": {"type": "l_diversity", "l": 2}});
    method.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    json!({"method": method, "attributes": {"age": {"publish": true}, "ward": {"publish": true}}})
}

#[test]
fn a_release_says_what_its_sliced_buckets_hold() {
    for columns in [json!([["age"], ["ward", "disease"]]), json!([["age", "ward"], ["disease"]])] {
        let mut table = patients(600);
        let manifest = released(&slicing(&json!({"columns": {"explicit": columns}})), &mut table).unwrap();
        assert!(manifest.verification.verified && table.cleared);
        assert_eq!(manifest.verification.linkage, Linkage::Checked);
        let names: Vec<&str> = manifest.tables[0].parts.iter().map(|part| part.name.as_str()).collect();
        assert_eq!(names, ["c1", "c2"]);
        let worst = manifest.rules[0].achieved.unwrap().worst_posterior.unwrap();
        assert!(worst.count * 2 <= worst.of, "{worst:?}");
        let sizes = &manifest.utility.bucket_sizes;
        assert!(sizes.len() > 1, "{sizes:?}");
        assert_eq!(sizes.iter().map(|of| of.size * of.buckets).sum::<u64>(), 600);
    }
}

#[test]
fn every_fault_of_written_slices_keeps_the_release_back() {
    use EngineFault::{Gathered, Kept, LostRow, SmallClass, Uncounted, Uncovered};
    use RemoteCheck::{Buckets, Columns, Content, Linkage, Order, Place};
    let checks = [Content, Buckets, Linkage, Place, Columns, Order];
    let broken = checks.map(EngineFault::Broken).into_iter().chain(checks.map(EngineFault::Unanswered));
    for fault in broken.chain([Gathered, Kept, LostRow, SmallClass, Uncounted, Uncovered]) {
        let mut table = patients(600).with(fault);
        let result = released(&slicing(&json!({})), &mut table);
        assert!(matches!(result, Err(EngineError::Failed { .. })), "{fault:?}: {result:?}");
        assert!(table.cleared, "{fault:?}");
    }
}

#[test]
fn slices_that_need_rows_are_refused() {
    let cases = [
        (json!({"split": "relaxed"}), "use strict splits"),
        (json!({"diversity": "mixture"}), "use the diversity bucket"),
        (json!({"columns": {"count": 2}}), "list those of each column"),
        (json!({"columns": {"explicit": [["age", "ward"], ["ward", "disease"]]}}), "let them share none"),
        (json!({"column_k": 5}), "leave column_k out"),
    ];
    for (changes, said) in cases {
        let mut table = patients(600);
        let detail = refused(released(&slicing(&changes), &mut table));
        assert!(detail.contains(said), "{detail}");
        assert_eq!(table.written, 0);
    }
}

/// The attack: the ward says the chapter of the disease, and stands in a column next to it or in the same one.
#[test]
fn slices_that_show_the_chapter_of_a_disease_are_refused() {
    let mut rows = patients(600).rows;
    rows.iter_mut().for_each(|row| row[1] = format!("chapter of {}", &row[2][..1]));
    for columns in [json!([["age", "ward"], ["disease"]]), json!([["age"], ["ward", "disease"]])] {
        let mut table = TableInMemory::new(&["age", "ward", "disease"], rows.clone());
        let detail = refused(released(&slicing(&json!({"columns": {"explicit": columns}})), &mut table));
        assert!(detail.contains("known dependencies tie disease to ward"), "{detail}");
        assert_eq!(table.written, 0);
    }
}

/// The attack: a column shows the disease with a ward that nearly gives it away, which no bucket can hide.
#[test]
fn a_column_that_reveals_the_disease_is_refused_with_proof() {
    let mut rows = patients(600).rows;
    rows.iter_mut().filter(|row| row[1] == "w3").zip(0..).for_each(|(row, at)| {
        row[2] = if at % 4 == 0 { "gout" } else { "kuru" }.to_owned();
    });
    let mut table = TableInMemory::new(&["age", "ward", "disease"], rows);
    let plan = planned(&slicing(&json!({})), &mut table).unwrap();
    let [problem] = &plan.problems[..] else { panic!("{:?}", plan.problems) };
    assert!(!plan.feasible && problem.to_string().contains("alike in ward"), "{problem}");
    assert_eq!(plan.rules[0].largest_l, 1, "{:?}", plan.rules);
    let detail = refused(released(&slicing(&json!({})), &mut table));
    assert!(detail.contains("alike in ward"), "{detail}");
    assert_eq!(table.written, 0);
    // with the disease in a column of its own its values alone decide
    let alone = slicing(&json!({"columns": {"explicit": [["age", "ward"], ["disease"]]}}));
    assert!(released(&alone, &mut table).unwrap().verification.verified);
}
