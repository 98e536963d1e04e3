//! What evidence depends on, and what it does not.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::tables::{PeopleTable, TableSpec};
use crate::control::Control;
use crate::microdata::{Chunk, ChunkColumn, Interner};
use crate::people::hash::tests::GoldenTenant;
use crate::people::{Evidence, EvidenceCollector, EvidenceError, Fold, KeyLayout, KeyedHash, SystemColumns};

fn table(spec: &Value) -> PeopleTable {
    serde_json::from_value::<TableSpec>(spec.clone()).unwrap().table()
}

impl PeopleTable {
    pub(super) fn chunk(&self) -> Chunk {
        let column = |column: usize| {
            let mut interner = Interner::default();
            let code = |row: &Vec<String>| interner.intern(row[column].as_bytes()) as u16 + 1;
            let codes: Vec<u16> = self.rows.iter().map(code).collect();
            ChunkColumn::new(interner.take(), &codes)
        };
        Chunk { rows: self.rows.len() as u32, columns: (0..self.names.len()).map(column).collect() }
    }
}

/// With `id` as the person key, if there is such a column.
fn layout(table: &PeopleTable) -> KeyLayout {
    let id = table.names.iter().position(|name| name == "id");
    let system = |column| SystemColumns { system: "k".to_owned(), fold: Fold::Standard, columns: vec![column] };
    KeyLayout { systems: id.map(system).into_iter().collect(), ..KeyLayout::undeclared(table.names.clone()) }
}

fn collect(layout: &KeyLayout, chunks: &[Chunk]) -> Result<(Evidence, Vec<KeyedHash>), EvidenceError> {
    let folder = tempfile::tempdir().unwrap();
    let mut collector = EvidenceCollector::new(GoldenTenant, layout.clone(), folder.path());
    chunks.iter().try_for_each(|chunk| collector.add(chunk, |_| true))?;
    let mut persons = Vec::new();
    let evidence = collector.finish(&Control::default(), |_, hashes| {
        persons.extend_from_slice(hashes);
        Ok(())
    })?;
    Ok((evidence, persons))
}

/// Evidence without the names and the order of columns.
fn essence(table: &PeopleTable) -> Value {
    let (evidence, persons) = collect(&layout(table), &[table.chunk()]).unwrap();
    let marks: BTreeSet<(KeyedHash, u32)> = evidence.blocks.iter().map(|block| (block.mark, block.surprise)).collect();
    let mut samples: Vec<String> = evidence.signatures.iter().map(|sample| format!("{sample:?}")).collect();
    samples.sort();
    let columns: BTreeSet<&KeyedHash> = evidence.systems.values().flat_map(|of| of.columns.values()).collect();
    json!([evidence.rows, evidence.table, persons, marks, samples, columns])
}

#[test]
fn evidence_knows_neither_order_nor_names() {
    let ordered = table(&json!({"people": [[0, 400]], "keys": {"id": "p{p}"}}));
    let other =
        table(&json!({"people": [[0, 400]], "keys": {"id": "P{p} "}, "columns": ["dx", "zip", "sex", "age", "ward"],
        "reverse": true, "rename": {"dx": "code", "age": "years"}}));
    assert_eq!(essence(&ordered), essence(&other));
    let changed = table(&json!({"people": [[0, 400]], "keys": {"id": "p{p}"}, "cells": [[7, "ward", "w9"]]}));
    assert_ne!(essence(&ordered), essence(&changed));
}

#[test]
fn evidence_of_wide_tables_chooses_columns_by_content() {
    let set: serde_json::Map<String, Value> = (0..14).map(|n| (format!("c{n}"), json!(format!("v{n}")))).collect();
    let wide = |columns: Value| table(&json!({"people": [[0, 300]], "columns": columns, "set": set}));
    let one = wide(json!(["age", "ward", "sex", "zip", "dx"]));
    let mut other = wide(json!(["dx", "zip", "sex", "age", "ward"]));
    other.names.iter_mut().for_each(|name| name.push('x'));
    assert_eq!(one.names.len(), 19);
    assert_eq!(essence(&one), essence(&other));
}

#[test]
fn evidence_is_the_same_in_one_chunk_and_in_many() {
    let whole = table(&json!({"people": [[0, 500]], "keys": {"id": "p{p}"}}));
    let piece = |rows: &[Vec<String>]| PeopleTable { rows: rows.to_vec(), ..whole.clone() }.chunk();
    let pieces: Vec<Chunk> = whole.rows.chunks(37).map(piece).collect();
    let (layout, one) = (layout(&whole), [whole.chunk()]);
    assert_eq!(collect(&layout, &one).unwrap(), collect(&layout, &pieces).unwrap());
}

#[test]
fn persons_with_repeated_rows_have_no_column_marks() {
    let twice = |most, record_key: &[usize], keys: Value| {
        let table = table(&json!({"people": [[0, 50]], "keys": keys, "visits": 2}));
        let layout = KeyLayout { max_rows_per_person: most, record_key: record_key.to_vec(), ..layout(&table) };
        collect(&layout, &[table.chunk()]).map(|(evidence, _)| evidence.systems["k"].clone())
    };
    let with_visit = json!({"id": "p{p}", "visit": "{p}.{v}"});
    let marked = twice(2, &[1], with_visit.clone()).unwrap();
    assert_eq!((marked.persons, marked.columns.len()), (50, 7));
    assert!(twice(2, &[], with_visit.clone()).unwrap().columns.is_empty(), "no record key");
    assert!(twice(2, &[1], json!({"id": "p{p}", "visit": "1"})).unwrap().columns.is_empty(), "one record twice");
    assert!(matches!(twice(1, &[], with_visit), Err(EvidenceError::TooManyRows { row: 51, limit: 1, found: 2 })));
    // two spellings of one person are two persons of the file, and one of the ledger
    let mut respelled = table(&json!({"people": [[0, 50]], "keys": {"id": "{p}"}}));
    respelled.rows[7][0] = "08".to_owned();
    let (evidence, persons) = collect(&layout(&respelled), &[respelled.chunk()]).unwrap();
    assert_eq!((evidence.systems["k"].persons, persons.len(), evidence.rows), (49, 49, 50));
    assert!(evidence.systems["k"].columns.is_empty());
}

#[test]
fn a_row_without_a_key_is_named() {
    let mut table = table(&json!({"people": [[0, 9]], "keys": {"id": "p{p}"}}));
    table.rows[4][0] = "\u{200b}".to_owned();
    table.rows[6][0] = String::new();
    let found = collect(&layout(&table), &[table.chunk()]);
    assert!(matches!(found, Err(EvidenceError::MissingKey { row: 5, column, rows: 2 }) if column == "id"));
}

#[test]
fn cancelled_evidence_stops() {
    let folder = tempfile::tempdir().unwrap();
    let table = table(&json!({"people": [[0, 90]], "keys": {"id": "p{p}"}}));
    let mut collector = EvidenceCollector::new(GoldenTenant, layout(&table), folder.path());
    collector.add(&table.chunk(), |_| true).unwrap();
    let control = Control::default();
    control.cancel();
    assert!(matches!(collector.finish(&control, |_, _| Ok(())), Err(EvidenceError::Cancelled(_))));
}
