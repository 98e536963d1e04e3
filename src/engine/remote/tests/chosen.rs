//! Tables of the stand-in for another engine that are chosen by its rows.

use serde_json::{Value, json};

use super::{EngineFault, TableInMemory, planned, refused, released};
use crate::engine::EngineError;
use crate::publication::Linkage;

/// People with two protected attributes, and four others that say nothing of these.
fn visits(rows: usize) -> TableInMemory {
    let row = |at: usize| {
        let cell = |letter: &str, times: u32, values: u32| {
            let mixed = (at as u32).wrapping_mul(times) >> 9;
            format!("{letter}{}", mixed % values)
        };
        vec![
            cell("a", 2_654_435_761, 12),
            cell("w", 2_246_822_519, 5),
            cell("d", 3_266_489_917, 7),
            cell("r", 668_265_263, 4),
            cell("m", 374_761_393, 6),
        ]
    };
    TableInMemory::new(&["age", "ward", "disease", "region", "drug"], (0..rows).map(row).collect())
}

fn versatile(settings: Value) -> Value {
    let mut method = json!({"type": "versatile", "rules": ["age, ward -> disease", "age, region -> drug"],
        "default_guarantee": {"type": "l_diversity", "l": 3}});
    method.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
    json!({"method": method})
}

/// The algorithms that look at rows.
fn choosing() -> [Value; 4] {
    [
        json!({"algorithm": "gd"}),
        json!({"algorithm": "gd", "gd": {"fill": true, "try_all": true}}),
        json!({"algorithm": "uad", "uad": {"addback": true}}),
        json!({"algorithm": "auto"}),
    ]
}

#[test]
fn tables_are_chosen_by_rows_and_keep_every_rule() {
    for settings in choosing() {
        let document = versatile(settings);
        let mut table = visits(700);
        let manifest = released(&document, &mut table).unwrap();
        assert!(manifest.verification.verified && manifest.verification.linkage == Linkage::Checked);
        // all attributes of the release rank the rows of what was chosen by them
        assert!(!table.rankings.is_empty());
        assert!(table.rankings.iter().all(|ranking| *ranking == [0, 1, 2, 3, 4]), "{:?}", table.rankings);
        let plan = planned(&document, &mut table).unwrap();
        let of_manifest: Vec<_> = manifest.tables.iter().map(|of| of.name.clone()).collect();
        assert_eq!(plan.tables.iter().map(|of| of.name.clone()).collect::<Vec<_>>(), of_manifest);
    }
}

/// Rows have no order in an engine: a repeated job chooses the same tables.
#[test]
fn the_order_of_rows_chooses_no_other_tables() {
    for settings in choosing() {
        let document = versatile(settings);
        let (mut table, mut turned) = (visits(700), visits(700));
        turned.rows.reverse();
        turned.rows.rotate_left(123);
        let [one, other] = [&mut table, &mut turned].map(|table| released(&document, table).unwrap());
        assert_eq!(serde_json::to_value(one).unwrap(), serde_json::to_value(other).unwrap());
    }
}

/// Rules alone rank the rows of a table by the columns that it publishes.
#[test]
fn tables_of_rules_are_ranked_by_their_own_columns() {
    let mut table = visits(700);
    released(&versatile(json!({"algorithm": "uad"})), &mut table).unwrap();
    assert!(table.rankings.iter().any(|ranking| ranking.len() < 5), "{:?}", table.rankings);
}

/// The attack: a column that no rule names gives the disease away.
#[test]
fn a_tie_is_refused_before_rows_are_read() {
    for settings in choosing() {
        let mut table = visits(700);
        table.rows.iter_mut().for_each(|row| row[3] = format!("chapter of {}", &row[2]));
        let mut table = TableInMemory::new(&["age", "ward", "disease", "region", "drug"], table.rows);
        assert!(matches!(released(&versatile(settings), &mut table), Err(EngineError::Refused(_))));
        assert_eq!((table.written, table.distinct), (0, 0));
    }
}

#[test]
fn buckets_that_broke_their_promise_keep_chosen_tables_back() {
    for fault in [EngineFault::OneBucket, EngineFault::Uncounted, EngineFault::LostRow, EngineFault::Grown] {
        let mut table = visits(700).with(fault);
        let failed = released(&versatile(json!({"algorithm": "gd"})), &mut table);
        assert!(matches!(failed, Err(EngineError::Failed { .. })), "{fault:?}: {failed:?}");
        // rows that were never counted are not held here
        assert_eq!(table.written > 0, fault != EngineFault::Grown);
    }
}

#[test]
fn attributes_that_share_buckets_are_refused() {
    let mut table = visits(700);
    table
        .rows
        .iter_mut()
        .enumerate()
        .filter(|(at, _)| at % 20 > 0)
        .for_each(|(_, row)| row[4] = row[2].replace('d', "m"));
    let mut table = TableInMemory::new(&["age", "ward", "disease", "region", "drug"], table.rows);
    let detail = refused(released(&versatile(json!({"algorithm": "gd"})), &mut table));
    assert!(detail.contains("predict each other"), "{detail}");
    assert_eq!(table.written, 0);
}
