//! How much memory a release takes, estimated from what is known of a dataset without its rows.

use crate::microdata::AttrSet;
use crate::publish;
use crate::spec::MethodSpec;

/// What is known of a column that a job uses.
#[derive(Clone, Copy, Debug)]
pub struct ColumnSize {
    /// Codes of its domain, a missing value counted as one.
    pub codes: u64,
    /// Bytes of its distinct values together.
    pub bytes: u64,
}

/// What a release takes whatever its table.
const BASE: u64 = 8 << 20;
/// Bytes for a row: its place in the secret order, its bucket, what the audit keeps of it.
const ROW: u64 = 40;
/// For a cell, times the width of its code: the column, its secret order, what is published of it.
const CELL: u64 = 3;
/// For a distinct value, beside its bytes: its places in dictionaries, their hash tables and their order.
const VALUE: u64 = 44;
/// Times the bytes of the distinct values: a dictionary that grows, its sorted copy, that of the audit.
const VALUE_BYTES: u64 = 4;
/// Rows that are written at once, and how often their text is held: as it is written, with room to grow, and as it is packed.
const WRITTEN_ROWS: u64 = 1 << 16;
const WRITTEN: u64 = 3;

/// The bytes of memory that a release of a table takes at its peak. Calibrated on services: on nine tables, from 100,000 rows of 60
/// columns to 1.8 million rows of 13, with up to three nearly distinct columns, it says 1.1 to 1.7 times what they took
/// (`BENCHMARKS.md`).
#[must_use]
pub fn memory(rows: u64, columns: &[ColumnSize]) -> u64 {
    let width = |codes: u64| match codes {
        0..=0x100 => 1,
        0x101..=0x1_0000 => 2,
        _ => 4,
    };
    let cells: u64 = columns.iter().map(|column| CELL * width(column.codes)).sum();
    // a separator, and half a digit more than the mean for what is frequent and long
    let text: u64 = columns.iter().map(|column| (column.bytes / column.codes.max(1)).saturating_add(2)).sum();
    let written = WRITTEN.saturating_mul(rows.min(WRITTEN_ROWS)).saturating_mul(text);
    let values = columns
        .iter()
        .map(|column| VALUE.saturating_mul(column.codes).saturating_add(VALUE_BYTES.saturating_mul(column.bytes)));
    values.fold(BASE.saturating_add(rows.saturating_mul(ROW + cells)).saturating_add(written), u64::saturating_add)
}

/// For a row when tables are chosen by what the data makes of them: groups that several figures share, and what is held of the
/// buckets of each protected attribute.
const GROUPED: u64 = 8;
const DRAWN: u64 = 32;
/// For a row, times the figures that are computed at once: keys, a hash table of them, groups, the order by group.
const FIGURE: u64 = 70;

/// For a row of a sliced table: its place, its bucket, what it is known by and what its bucket counts.
const SLICED: u64 = 96;
/// For each of its attributes: the place on an axis, and what columns and identities are numbered by.
const SLICED_ATTRIBUTE: u64 = 12;

/// The bytes of memory that choosing tables takes, at its peak, beside what [`memory`] says of the release. Not calibrated: the
/// sum of what is held.
#[must_use]
pub fn memory_to_choose(rows: u64, method: &MethodSpec) -> u64 {
    let spec = match method {
        MethodSpec::Versatile(spec) => spec,
        MethodSpec::Anatomy(_) => return 0,
        MethodSpec::Slicing(spec) => {
            let attributes = spec.rule.known.len() as u64 + 1;
            return rows.saturating_mul(SLICED + SLICED_ATTRIBUTE * attributes);
        }
    };
    if !spec.looks_at_data() {
        return 0;
    }
    let protected = spec.rules.iter().fold(AttrSet::EMPTY, |all, rule| all.union(rule.protects.attributes()));
    let at_once = publish::versatile::threads() as u64;
    rows.saturating_mul(GROUPED + DRAWN * protected.len() as u64 + FIGURE * at_once)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_overflows() {
        let endless = ColumnSize { codes: u64::MAX, bytes: u64::MAX };
        assert_eq!(memory(u64::MAX, &[endless; 3]), u64::MAX);
    }

    #[test]
    fn more_of_anything_needs_more() {
        let column = |codes, bytes| ColumnSize { codes, bytes };
        let need = memory(1_000_000, &[column(100, 500); 2]);
        assert!((40 << 20..64 << 20).contains(&need), "{need}");
        assert!(memory(2_000_000, &[column(100, 500); 2]) > need + (30 << 20));
        assert!(memory(1_000_000, &[column(100, 500); 3]) > need);
        assert!(memory(1_000_000, &[column(300, 500); 2]) > need);
        assert!(memory(1_000_000, &[column(100, 500_000); 2]) > need);
    }
}
