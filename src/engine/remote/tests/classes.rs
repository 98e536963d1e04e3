//! Generalized tables of the stand-in for another engine.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::classes::{CoveredCells, RemoteClasses};
use super::super::port::{RemoteAudit, RemoteCheck, RemoteTablePlan};
use super::{EngineFault, TableInMemory, patients, planned, refused, released};
use crate::engine::EngineError;
use crate::publication::Linkage;

impl TableInMemory {
    /// What the rows of a generalized table look like, as the plan says it, and what stands behind.
    pub(super) fn count_classes(&self, table: &RemoteTablePlan, classes: &RemoteClasses, audit: &mut RemoteAudit) {
        let members: BTreeMap<Vec<&[u8]>, u32> = classes
            .members
            .iter()
            .map(|(class, values)| (values.into_iter().map(Option::unwrap).collect(), class))
            .collect();
        let mut contents: Vec<BTreeMap<u32, BTreeMap<u32, u64>>> =
            vec![BTreeMap::new(); classes.sensitive.len().max(1)];
        let mut covered = CoveredCells::new(classes.generalized().len());
        for row in &self.rows {
            let values: Vec<&[u8]> =
                classes.generalized().iter().map(|&at| row[table.known[at].column].as_bytes()).collect();
            let class = members[&values];
            for (at, contents) in contents.iter_mut().enumerate() {
                let code = classes.sensitive.get(at).map_or(0, |of| {
                    of.values.iter().position(|value| value.as_ref() == Some(&row[of.column.column])).unwrap() as u32
                });
                *contents.entry(class).or_default().entry(code).or_default() += 1;
            }
            for (at, (value, cell)) in values.iter().zip(classes.cells(class)).enumerate() {
                let shown = match self.fault {
                    EngineFault::WrongCell if at == 0 => classes.cells((class + 1) % classes.len() as u32)[0],
                    EngineFault::WideCell if at == 0 => Some(&b"00..59"[..]),
                    _ => cell,
                };
                covered.push(at, class, Some(*value), shown).unwrap();
            }
        }
        if self.fault == EngineFault::Gathered {
            // in one class all rows have one value of the last protected column
            let rows = contents.last_mut().unwrap().values_mut().next().unwrap();
            let all = rows.values().sum();
            *rows = BTreeMap::from([(0, all)]);
        }
        for contents in contents {
            let mut counted = BTreeMap::new();
            contents.into_values().for_each(|of| *counted.entry(of.into_iter().collect()).or_default() += 1);
            audit.contents.push(counted);
        }
        if self.fault == EngineFault::SmallClass {
            audit.contents[0].insert(vec![(0, 1)], 1);
        }
        if self.fault != EngineFault::Uncovered {
            audit.covered = covered;
        }
    }
}

fn generalize(changes: &Value) -> Value {
    let mut method = json!({"type": "generalize", "quasi_identifiers": ["age", "ward"], "sensitive": ["disease"],
                            "cells": "interval", "split": "strict",
                            "guarantees": [{"type": "k_anonymity", "k": 5}, {"type": "l_diversity", "l": 2}]});
    method.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    json!({"method": method})
}

#[test]
fn a_release_says_what_its_classes_hold() {
    let mut table = patients(600);
    let manifest = released(&generalize(&json!({})), &mut table).unwrap();
    assert!(manifest.verification.verified && table.cleared);
    assert_eq!(manifest.verification.linkage, Linkage::Checked);
    let [part] = &manifest.tables[0].parts[..] else { panic!("{:?}", manifest.tables) };
    assert_eq!((part.name.as_str(), part.rows), ("rows", 600));
    let of_disease = manifest.rules.iter().find(|rule| !rule.sensitive.is_empty()).unwrap();
    let worst = of_disease.achieved.unwrap().worst_posterior.unwrap();
    assert!(worst.count * 2 <= worst.of, "{worst:?}");
    let sizes = &manifest.utility.bucket_sizes;
    assert!(sizes.len() > 1 && sizes.iter().all(|of| of.size >= 5), "{sizes:?}");
    assert_eq!(sizes.iter().map(|of| of.size * of.buckets).sum::<u64>(), 600);
}

/// Each of several sensitive attributes keeps its guarantee, the second one too.
#[test]
fn classes_keep_the_guarantees_of_several_attributes() {
    let document = generalize(&json!({"quasi_identifiers": ["age"], "sensitive": ["ward", "disease"],
        "guarantees": [{"type": "k_anonymity", "k": 5}, {"type": "l_diversity", "l": 3}]}));
    let manifest = released(&document, &mut patients(600)).unwrap();
    let of_each = manifest.rules.iter().filter(|rule| !rule.sensitive.is_empty());
    let worst: Vec<_> = of_each.map(|rule| rule.achieved.unwrap().worst_posterior.unwrap()).collect();
    assert!(worst.len() == 2 && worst.iter().all(|of| of.count * 3 <= of.of), "{worst:?}");
    assert!(manifest.utility.bucket_sizes.len() > 1, "{:?}", manifest.utility.bucket_sizes);
}

#[test]
fn classes_without_a_sensitive_attribute_are_large() {
    let document = generalize(&json!({"sensitive": [], "quasi_identifiers": ["age", "ward", "disease"],
                                      "guarantees": [{"type": "k_anonymity", "k": 5}]}));
    let manifest = released(&document, &mut patients(600)).unwrap();
    let achieved = manifest.rules[0].achieved.unwrap();
    assert!(achieved.k.unwrap() >= 5, "{achieved:?}");
    assert!(manifest.utility.bucket_sizes.len() > 1, "{:?}", manifest.utility.bucket_sizes);
}

#[test]
fn every_fault_of_written_classes_keeps_the_release_back() {
    use EngineFault::{Gathered, Kept, LostRow, SmallClass, Uncounted, Uncovered, WideCell, WrongCell};
    use RemoteCheck::{Buckets, Columns, Content, Linkage, Order, Place};
    let checks = [Content, Buckets, Linkage, Place, Columns, Order];
    let broken = checks.map(EngineFault::Broken).into_iter().chain(checks.map(EngineFault::Unanswered));
    let others = [Gathered, Kept, LostRow, SmallClass, Uncounted, Uncovered, WideCell, WrongCell];
    let both = json!({"quasi_identifiers": ["age"], "sensitive": ["ward", "disease"]});
    for (fault, changes) in broken.chain(others).flat_map(|fault| [(fault, json!({})), (fault, both.clone())]) {
        let mut table = patients(600).with(fault);
        let result = released(&generalize(&changes), &mut table);
        assert!(matches!(result, Err(EngineError::Failed { .. })), "{fault:?}: {result:?}");
        assert!(table.cleared, "{fault:?}");
    }
}

#[test]
fn classes_that_need_rows_are_refused() {
    let mut table = patients(600);
    let detail = refused(released(&generalize(&json!({"split": "relaxed"})), &mut table));
    assert!(detail.contains("use strict splits"), "{detail}");
    assert_eq!(table.written, 0);
}

/// The attack: of a disease its chapter is known, and classes show it.
#[test]
fn classes_that_show_the_chapter_of_a_disease_are_refused() {
    let mut table = patients(600);
    table.rows.iter_mut().for_each(|row| row[1] = format!("chapter of {}", &row[2][..1]));
    let both = json!({"quasi_identifiers": ["age"], "sensitive": ["ward", "disease"]});
    for changes in [json!({}), both] {
        let mut table = TableInMemory::new(&["age", "ward", "disease"], table.rows.clone());
        let detail = refused(released(&generalize(&changes), &mut table));
        assert!(detail.contains("disease") && detail.contains("ward"), "{detail}");
        assert_eq!(table.written, 0);
    }
}

#[test]
fn a_plan_of_classes_writes_nothing() {
    let mut table = patients(600);
    let plan = planned(&generalize(&json!({})), &mut table).unwrap();
    assert!(plan.feasible && plan.problems.is_empty(), "{:?}", plan.problems);
    assert_eq!((table.written, table.cleared), (0, true));
}
