//! Estimates of memory, in bytes, from the profile of a dataset without its rows.

use crate::microdata::AttrSet;
use crate::publish;
use crate::spec::{InternalUtility, MethodSpec, SlicedColumns, Specification};

/// The size of a column that a job uses.
#[derive(Clone, Copy, Debug)]
pub struct ColumnSize {
    /// Codes of its domain, a missing value counted as one.
    pub codes: u64,
    /// Bytes of its distinct values together.
    pub bytes: u64,
}

/// Bytes of a release apart from its table.
const BASE_BYTES: u64 = 8 << 20;

/// Bytes of a row: its position in the secret order, its bucket, its state in the verifier.
const ROW_BYTES: u64 = 40;

/// Copies of a cell, times the width of its code: the column, the permuted column, the published column.
const CELL_BYTES_PER_CODE_BYTE: u64 = 3;

/// Bytes of a distinct value in addition to its text: entries of dictionaries, hash tables and orders.
const DISTINCT_VALUE_BYTES: u64 = 44;

/// Copies of the text of distinct values: a growing dictionary, its sorted copy, that of the verifier.
const DICTIONARY_COPIES: u64 = 4;

/// Rows that are written at once, and how often their text is held: as it is written, with room to grow, and as it is packed.
const ROWS_PER_WRITE: u64 = 1 << 16;

const WRITE_COPIES: u64 = 3;

/// Bytes of a code of a column.
const fn width(codes: u64) -> u64 {
    match codes {
        0..=0x100 => 1,
        0x101..=0x1_0000 => 2,
        _ => 4,
    }
}

/// The bytes of memory that a release of a table takes at its peak. Calibrated on services: on nine tables, from 100,000 rows of 60
/// columns to 1.8 million rows of 13, with up to three nearly distinct columns, it says 1.1 to 1.7 times what they took
/// (`BENCHMARKS.md`).
#[must_use]
pub fn release_memory(rows: u64, columns: &[ColumnSize]) -> u64 {
    let cells: u64 = columns.iter().map(|column| CELL_BYTES_PER_CODE_BYTE * width(column.codes)).sum();
    // a separator, and half a digit more than the mean for what is frequent and long
    let text: u64 = columns.iter().map(|column| (column.bytes / column.codes.max(1)).saturating_add(2)).sum();
    let written = WRITE_COPIES.saturating_mul(rows.min(ROWS_PER_WRITE)).saturating_mul(text);
    let values = columns.iter().map(|column| {
        DISTINCT_VALUE_BYTES.saturating_mul(column.codes).saturating_add(DICTIONARY_COPIES.saturating_mul(column.bytes))
    });
    values.fold(
        BASE_BYTES.saturating_add(rows.saturating_mul(ROW_BYTES + cells)).saturating_add(written),
        u64::saturating_add,
    )
}

/// For a row when tables are chosen by what the data makes of them: groups that several figures share, and what is held of the
/// buckets of each protected attribute.
const GROUP_ROW_BYTES: u64 = 8;

const DRAWN_ROW_BYTES: u64 = 32;

/// For a row, times the figures that are computed at once: keys, a hash table of them, groups, the order by group.
const SCORE_ROW_BYTES: u64 = 70;

/// For a row in a class: its places in halves and in the order of the part, its class, what the verifier holds of it.
const CLASS_ROW_BYTES: u64 = 72;

/// For a row and a generalized attribute: its ordinal, its cell before and after it is put in order.
const GENERALIZED_CELL_BYTES: u64 = 12;

/// Bytes of a cell of a sequential release in addition to its code: its label in the verifier.
const SEQUENTIAL_CELL_BYTES: u64 = 4;

/// For rows that are alike in all columns of such a release: their signature.
const SIGNATURE_ROW_BYTES: u64 = 16;

/// For a row of a sliced table: its place, its bucket, what it is known by and what its bucket counts.
const SLICED_ROW_BYTES: u64 = 96;

/// For each of its attributes: the place on an axis, and what columns and identities are numbered by.
const SLICED_CELL_BYTES: u64 = 12;

/// For a row and a column where columns share attributes: its value, what its bucket counts, and the tuple that the verifier holds.
const OVERLAPPING_CELL_BYTES: u64 = 240;

/// For a row and a sensitive attribute of a decomposed table: its code, its place in a set, what is possible there.
const DECOMPOSED_CELL_BYTES: u64 = 160;

/// The bytes of memory that choosing tables, or classes, takes, at its peak, in addition to [`release_memory`]. Not calibrated: the
/// sum of what is held.
#[must_use]
pub fn choice_memory(rows: u64, method: &MethodSpec) -> u64 {
    let spec = match method {
        MethodSpec::Versatile(spec) => spec,
        MethodSpec::Generalize(spec) => {
            return rows.saturating_mul(CLASS_ROW_BYTES + GENERALIZED_CELL_BYTES * spec.quasi_identifiers.len() as u64);
        }
        MethodSpec::Decompose(spec) => {
            return rows.saturating_mul(DECOMPOSED_CELL_BYTES * (1 + spec.rules.len() as u64));
        }
        MethodSpec::Slicing(spec) => {
            let attributes = spec.rule.known.len() as u64 + 1;
            let covered = match &spec.columns {
                SlicedColumns::Explicit(columns) if spec.overlaps() => OVERLAPPING_CELL_BYTES * columns.len() as u64,
                _ => 0,
            };
            return rows.saturating_mul(SLICED_ROW_BYTES + SLICED_CELL_BYTES * attributes + covered);
        }
        // what it takes is said of each release that it joins
        MethodSpec::Anatomy(_) | MethodSpec::Bucketize(_) | MethodSpec::Sequential(_) => return 0,
    };
    if !spec.looks_at_data() {
        return 0;
    }
    let protected = spec.rules.iter().fold(AttrSet::EMPTY, |all, rule| all.union(rule.protects.attributes()));
    let at_once = publish::versatile::threads() as u64;
    rows.saturating_mul(GROUP_ROW_BYTES + DRAWN_ROW_BYTES * protected.len() as u64 + SCORE_ROW_BYTES * at_once)
}

/// For a person of a state: both states of the publisher and their bytes, both of the verifier, and what it joins them to.
const STATE_PERSON_BYTES: u64 = 290;

/// Bytes of a person in a state.
const STATE_BYTES_PER_PERSON: u64 = 26;

/// The bytes of memory that a night takes in addition to [`release_memory`], for the rows of a table and the bytes of a state. Not
/// calibrated: the sum of what is held.
#[must_use]
pub const fn night_memory(rows: u64, state_bytes: u64) -> u64 {
    (state_bytes / STATE_BYTES_PER_PERSON).saturating_add(rows).saturating_mul(STATE_PERSON_BYTES)
}

/// For a row of columns that dependencies are looked for in: what it is numbered by.
const DEPENDENCY_ROW_BYTES: u64 = 8;

/// The bytes of memory that looking at columns takes that are not published, those of the release among them, in addition to
/// [`release_memory`].
#[must_use]
pub fn profile_memory(rows: u64, columns: &[ColumnSize]) -> u64 {
    let cells: u64 = columns.iter().map(|column| width(column.codes)).sum();
    let values =
        columns.iter().map(|column| DISTINCT_VALUE_BYTES.saturating_mul(column.codes).saturating_add(column.bytes));
    values.fold(rows.saturating_mul(DEPENDENCY_ROW_BYTES + cells), u64::saturating_add)
}

/// The bytes of memory that joining a release of these columns with others takes, the new one as well as each earlier one, in addition to
/// [`release_memory`]. Calibrated as that is.
#[must_use]
pub fn join_memory(rows: u64, columns: &[ColumnSize]) -> u64 {
    let cells: u64 = columns.iter().map(|column| SEQUENTIAL_CELL_BYTES + width(column.codes)).sum();
    let alike = columns.iter().fold(1, |alike: u64, column| alike.saturating_mul(column.codes)).min(rows);
    let values = columns.iter().map(|column| {
        DISTINCT_VALUE_BYTES.saturating_mul(column.codes).saturating_add(DICTIONARY_COPIES.saturating_mul(column.bytes))
    });
    let rows = rows.saturating_mul(cells).saturating_add(alike.saturating_mul(SIGNATURE_ROW_BYTES));
    values.fold(rows, u64::saturating_add)
}

/// For a cell of the parts that are read again: its code as it comes and as it is ranked.
const READ_CELL_BYTES: u64 = 8;

/// For a row of the parts when their entropy is measured: its label in each part and what the table's others leave possible of it.
const ENTROPY_ROW_BYTES: u64 = 28;

/// For a row when the model is held against the original: its tuples and buckets, sorted, in either part of a table, and its place
/// among all that occur; and when queries are estimated, its weights and keys.
const KL_ROW_BYTES: u64 = 72;

const QUERY_ROW_BYTES: u64 = 40;

/// For a row when exposures are counted: its groups in halves of the columns, and its places in buckets.
const EXPOSURE_ROW_BYTES: u64 = 96;

/// In all tables together an attribute stands so often.
const TABLES_PER_ATTRIBUTE: u64 = 2;

/// The bytes of memory that measuring the written parts takes, at its peak, in addition to [`release_memory`]: the entropy
/// and the exposures in the manifest read one table at a time, the internal report all of them. Not calibrated: the sum of what is held. A model that
/// is fitted because its tables form no tree has at most 2^22 cells, and is not counted: no method designs such tables.
#[must_use]
pub fn measurement_memory(rows: u64, columns: &[ColumnSize], specification: &Specification) -> u64 {
    let attributes = columns.len() as u64;
    let values =
        columns.iter().map(|column| DISTINCT_VALUE_BYTES.saturating_mul(column.codes).saturating_add(column.bytes));
    let values = values.fold(0, u64::saturating_add);
    let read = |times: u64, row: u64| {
        let rows =
            rows.saturating_mul(READ_CELL_BYTES.saturating_mul(attributes).saturating_mul(times).saturating_add(row));
        rows.saturating_add(values)
    };
    let InternalUtility { kl, count_queries } = &specification.internal;
    let entropy = if specification.entropy { read(1, ENTROPY_ROW_BYTES + SCORE_ROW_BYTES) } else { 0 };
    let held = if *kl { KL_ROW_BYTES + SCORE_ROW_BYTES } else { 0 };
    let internal = match count_queries {
        None if !kl => 0,
        None => read(TABLES_PER_ATTRIBUTE, held),
        Some(_) => read(TABLES_PER_ATTRIBUTE, held.max(QUERY_ROW_BYTES)),
    };
    let exposures = read(1, EXPOSURE_ROW_BYTES);
    // one after the other
    entropy.max(internal).max(exposures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_overflows() {
        let endless = ColumnSize { codes: u64::MAX, bytes: u64::MAX };
        assert_eq!(release_memory(u64::MAX, &[endless; 3]), u64::MAX);
    }

    #[test]
    fn more_of_anything_needs_more() {
        let column = |codes, bytes| ColumnSize { codes, bytes };
        let need = release_memory(1_000_000, &[column(100, 500); 2]);
        assert!((40 << 20..64 << 20).contains(&need), "{need}");
        assert!(release_memory(2_000_000, &[column(100, 500); 2]) > need + (30 << 20));
        assert!(release_memory(1_000_000, &[column(100, 500); 3]) > need);
        assert!(release_memory(1_000_000, &[column(300, 500); 2]) > need);
        assert!(release_memory(1_000_000, &[column(100, 500_000); 2]) > need);
        let joined = join_memory(1_000_000, &[column(1_000, 5_000); 3]);
        assert!((18 << 20..40 << 20).contains(&joined), "{joined}");
        assert!(join_memory(1_000_000, &[column(10, 50); 3]) + (14 << 20) < joined, "fewer rows that differ");
    }
}
