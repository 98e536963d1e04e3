//! How much memory a release takes, estimated from what is known of a dataset without its rows.

/// What is known of a column that a job uses.
#[derive(Clone, Copy, Debug)]
pub struct ColumnSize {
    /// Codes of its domain, a missing value counted as one.
    pub codes: u64,
    /// Bytes of its distinct values together.
    pub bytes: u64,
}

/// What a release takes whatever its table.
const BASE: u64 = 16 << 20;
/// Bytes for a row beside its cells.
const ROW: u64 = 48;
/// For a cell, times the width of its code.
const CELL: u64 = 4;
/// For a distinct value, beside its bytes.
const VALUE: u64 = 120;
/// Times the bytes of the distinct values.
const VALUE_BYTES: u64 = 4;

/// The bytes of memory that a release of a table takes at its peak.
#[must_use]
pub fn memory(rows: u64, columns: &[ColumnSize]) -> u64 {
    let width = |codes: u64| match codes {
        0..=0x100 => 1,
        0x101..=0x1_0000 => 2,
        _ => 4,
    };
    let cells: u64 = columns.iter().map(|column| CELL * width(column.codes)).sum();
    let values = columns
        .iter()
        .map(|column| VALUE.saturating_mul(column.codes).saturating_add(VALUE_BYTES.saturating_mul(column.bytes)));
    values.fold(BASE.saturating_add(rows.saturating_mul(ROW + cells)), u64::saturating_add)
}
