//! Tables that several benches measure on.
#![expect(clippy::unwrap_used, reason = "a program that measures")]

use std::fs::File;

use flate2::read::GzDecoder;
use guardian::microdata::formats::IngestLimits;
use guardian::microdata::formats::csv::{CsvOptions, CsvReader, read_table};
use guardian::microdata::{Attr, Column, Table};

/// Adult, all columns.
pub(crate) fn adult() -> Table {
    let file = File::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/data/adult.csv.gz")).unwrap();
    let limits = IngestLimits::default();
    let mut reader = CsvReader::open(GzDecoder::new(file), CsvOptions::default(), &limits).unwrap();
    read_table(&mut reader, None, &limits).unwrap()
}

/// Perturbed replicas: every row is one of the table, drawn by chance, of which each value is that of another row one
/// time in sixteen. Tables of all sizes are alike, and hardly two rows are the same.
pub(crate) fn replicas(table: &Table, rows: usize) -> Table {
    let mut state = 1u64;
    let mut draw = move || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let word = (state ^ state >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        (word ^ word >> 27).wrapping_mul(0x94D0_49BB_1331_11EB) >> 20
    };
    let once = table.rows() as u64;
    let drawn: Vec<u32> = (0..rows).map(|_| (draw() % once) as u32).collect();
    let mut column = |attr: Attr| {
        let perturbed = |&row: &u32| if draw() % 16 == 0 { (draw() % once) as u32 } else { row };
        let order: Vec<u32> = drawn.iter().map(perturbed).collect();
        let column = table.column(attr);
        Column { domain: column.domain.clone(), codes: column.codes.gather(&order) }
    };
    Table::new(table.names().to_vec(), table.attributes().iter().map(&mut column).collect())
}
