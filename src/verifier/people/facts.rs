//! The evidence of submitted rows: persons by their keys, and marks of tables and columns.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;
use sha2::block_api::compress256;
use sha2::{Digest, Sha256};
use unicode_normalization::UnicodeNormalization;

use super::counts::{HashCounts, SortedHashes};
use super::fault::PeopleClaimError;
use super::fold::{KeyFold, fold};
use super::marks::{AuditedMark, FreeColumns, derive_marks};
use crate::control::{Cancelled, Control};
use crate::microdata::{Chunk, ChunkColumn};

/// Rows or values that a processor hashes at once.
const ROWS_AT_ONCE: usize = 1 << 12;

/// The columns of a key system in a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuditedSystem {
    /// The name of the key system.
    pub name: String,
    /// How its components are folded.
    pub fold: KeyFold,
    /// A column for each component, in the order of the key system.
    pub columns: Vec<usize>,
}

/// Which columns of a table identify persons and records.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RowsLayout {
    /// The number of columns.
    pub columns: usize,
    /// The key systems.
    pub systems: Vec<AuditedSystem>,
    /// The columns that distinguish records of a person.
    pub record_key: Vec<usize>,
    /// How many rows a person may have.
    pub max_rows_per_person: u64,
}

/// The rows of a dataset, of which a release publishes some or all.
pub trait AuditedRows: Sync {
    /// Why rows cannot be had, or are not what they should be.
    type Error: From<io::Error> + From<Cancelled> + From<PeopleClaimError>;

    /// How many chunks there are.
    fn chunks(&self) -> u32;

    /// A chunk with all columns. Each is asked for twice.
    ///
    /// # Errors
    /// If it cannot be read.
    fn chunk(&mut self, number: u32) -> Result<Arc<Chunk>, Self::Error>;

    /// Whether the release publishes a row of a chunk.
    fn is_kept(&self, chunk: u32, row: usize) -> bool;

    /// The first 16 bytes of the tenant's keyed hash of these bytes.
    fn hash(&self, bytes: &[u8]) -> u128;

    /// Which of these persons, different and in order, stand in a live coverage.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    fn published(&mut self, system: &str, persons: &[u128]) -> Result<BTreeSet<u128>, Self::Error>;
}

/// What is derived of the published rows.
pub struct PeopleFacts {
    /// How many rows there are.
    pub rows: u64,
    /// The mark of the table.
    pub table: u128,
    /// Per column the mark of what stands in which row.
    pub contents: Vec<u128>,
    /// Per key system, in the order of the layout.
    pub systems: Vec<SystemFacts>,
    /// Blocks and signatures.
    pub marks: Vec<AuditedMark>,
    /// For each sample of signatures, whether the table has more of them.
    pub cuts: Vec<bool>,
}

/// What one key system says of the published rows.
pub struct SystemFacts {
    /// The name of the key system.
    pub name: String,
    /// The persons.
    pub persons: SortedHashes,
    /// Per column the mark of what whom has; none where rows of a person are not distinguished.
    pub columns: Option<Vec<u128>>,
}

/// The bytes behind a keyed hash: the label, a zero byte, and each text behind its length.
pub(super) fn message(label: &str, texts: &[&[u8]]) -> Vec<u8> {
    let mut bytes = [label.as_bytes(), &[0]].concat();
    for text in texts {
        bytes.extend(u32::try_from(text.len()).unwrap_or(u32::MAX).to_be_bytes());
        bytes.extend_from_slice(text);
    }
    bytes
}

/// An unkeyed hash of hashes.
pub(super) fn digest(label: &str, hashes: &[u128]) -> u128 {
    let mut digest = Sha256::new();
    digest.update(label.as_bytes());
    digest.update([0]);
    hashes.iter().for_each(|hash| digest.update(hash.to_be_bytes()));
    first_half(&digest.finalize())
}

/// The one block that is hashed for a row: the label, room for the sum, a bit, and the length of these 20 bytes.
const ROW_BLOCK: [u8; 64] = {
    let mut block = [0; 64];
    (block[0], block[1], block[2], block[20], block[63]) = (b'r', b'o', b'w', 0x80, 20 * 8);
    block
};

/// The digest of the sum of the cells of a row.
pub(super) fn row_digest(sum: u128) -> u128 {
    let (mut block, mut state) = (ROW_BLOCK, INITIAL);
    block[4..20].copy_from_slice(&sum.to_be_bytes());
    compress256(&mut state, &[block]);
    (u128::from(state[0]) << 96) | (u128::from(state[1]) << 64) | (u128::from(state[2]) << 32) | u128::from(state[3])
}

/// What SHA-256 begins with (FIPS 180-4, section 5.3.3): of the square roots of the first eight primes, 32 bits behind the point.
const INITIAL: [u32; 8] = {
    let primes = [2_u128, 3, 5, 7, 11, 13, 17, 19];
    let (mut state, mut at) = ([0; 8], 0);
    while at < 8 {
        // the lowest bits of the root, whole part included
        state[at] = (primes[at] << 64).isqrt() as u32;
        at += 1;
    }
    state
};

pub(super) fn first_half(digest: &[u8]) -> u128 {
    digest.iter().take(16).fold(0, |hash, byte| (hash << 8) | u128::from(*byte))
}

/// Per code of a column the hash of its folded cell; code 0 is a missing cell.
pub(super) fn hashed_cells<R: AuditedRows>(rows: &R, column: &ChunkColumn) -> Vec<u128> {
    let cell = |text: &str| rows.hash(&message("cell", &[fold(text, KeyFold::Standard).as_bytes()]));
    let mut cells = vec![cell("")];
    cells.par_extend(column.values().par_iter(ROWS_AT_ONCE).map(|value| cell(&String::from_utf8_lossy(value))));
    cells
}

pub(super) fn code(column: &ChunkColumn, row: usize) -> usize {
    column.codes().get(row) as usize
}

/// The key of a row in one key system.
struct Key {
    person: u128,
    /// Of the key as it is written, where it is written otherwise than it is folded.
    written: Option<u128>,
}

/// Per component and code the folded text and the text as written.
struct Components(Vec<Vec<Option<(String, String)>>>);

impl Components {
    fn new(system: &AuditedSystem, chunk: &Chunk) -> Self {
        let text = |value: &[u8]| {
            let text = String::from_utf8_lossy(value);
            let folded = fold(&text, system.fold);
            let written = match system.fold {
                KeyFold::Exact => folded.clone(),
                // ASCII is composed
                _ if text.is_ascii() => text.into_owned(),
                _ => text.nfc().collect(),
            };
            (!folded.is_empty()).then_some((folded, written))
        };
        let texts = |column: &usize| {
            let mut texts = vec![None];
            texts.par_extend(chunk.columns[*column].values().par_iter(ROWS_AT_ONCE).map(text));
            texts
        };
        Self(system.columns.iter().map(texts).collect())
    }

    fn key<R: AuditedRows>(&self, rows: &R, system: &AuditedSystem, chunk: &Chunk, row: usize) -> Option<Key> {
        let (mut folded, mut written) = (vec![system.name.as_bytes()], Vec::new());
        for (column, texts) in system.columns.iter().zip(&self.0) {
            let (fold, as_written) = texts[code(&chunk.columns[*column], row)].as_ref()?;
            folded.push(fold.as_bytes());
            written.push(as_written.as_bytes());
        }
        let person = rows.hash(&message("person", &folded));
        let is_as_written = folded[1..] == written[..];
        let written = (!is_as_written).then(|| rows.hash(&message("written", &written)));
        Some(Key { person, written })
    }
}

/// What a row whose key is written as it is folded adds to the number of a person, which has the rows in its lower half.
const WRITTEN_AS_FOLDED: u64 = 1 << 32;

/// What is summed and counted of one key system.
struct SystemSums {
    /// The rows of each person, and those of them whose keys are written as they are folded.
    persons: HashCounts,
    /// The rows of each other way to write a key.
    written: HashCounts,
    records: HashCounts,
    columns: Vec<u128>,
}

struct TableSums {
    rows: u64,
    table: u128,
    contents: Vec<u128>,
    systems: Vec<SystemSums>,
}

/// Derives the evidence of the published rows.
///
/// # Errors
/// A fault of the rows, or what reading them fails with.
pub fn derive_facts<R: AuditedRows>(
    rows: &mut R,
    layout: &RowsLayout,
    folder: &Path,
    control: &Control,
) -> Result<PeopleFacts, R::Error> {
    let sums = |_: &AuditedSystem| SystemSums {
        persons: HashCounts::new(folder),
        written: HashCounts::new(folder),
        records: HashCounts::new(folder),
        columns: vec![0; layout.columns],
    };
    let systems = layout.systems.iter().map(sums).collect();
    let mut sums = TableSums { rows: 0, table: 0, contents: vec![0; layout.columns], systems };
    let mut free = FreeColumns::new(layout, folder);
    for number in 0..rows.chunks() {
        control.check()?;
        let chunk = rows.chunk(number)?;
        let (kept, left_out): (Vec<usize>, Vec<usize>) =
            (0..chunk.rows as usize).partition(|row| rows.is_kept(number, *row));
        check_left_out(rows, layout, &chunk, &left_out)?;
        let cells: Vec<Vec<u128>> = chunk.columns.iter().map(|column| hashed_cells(rows, column)).collect();
        sums.add(rows, layout, &ChunkCells { chunk: &chunk, cells: &cells, kept: &kept })?;
        free.add(&ChunkCells { chunk: &chunk, cells: &cells, kept: &kept })?;
    }
    let marks = derive_marks(rows, free, folder, control)?;
    let systems = layout.systems.iter().zip(sums.systems);
    let systems = systems.map(|(system, of)| of.finish(layout, system, sums.rows, folder));
    let (rows, table) = (sums.rows, sums.table);
    Ok(PeopleFacts {
        rows,
        table: digest("table", &[table]),
        contents: sums.contents.iter().map(|sum| digest("content", &[table, *sum])).collect(),
        systems: systems.collect::<Result<_, R::Error>>()?,
        marks: marks.marks,
        cuts: marks.cuts,
    })
}

/// The cells of the published rows of a chunk.
pub(super) struct ChunkCells<'a> {
    pub(super) chunk: &'a Chunk,
    /// Per column and code.
    pub(super) cells: &'a [Vec<u128>],
    pub(super) kept: &'a [usize],
}

impl ChunkCells<'_> {
    pub(super) fn cell(&self, column: usize, row: usize) -> u128 {
        self.cells[column][code(&self.chunk.columns[column], row)]
    }
}

impl TableSums {
    fn add<R: AuditedRows>(&mut self, rows: &R, layout: &RowsLayout, of: &ChunkCells<'_>) -> Result<(), R::Error> {
        self.rows += of.kept.len() as u64;
        for (system, sums) in layout.systems.iter().zip(&mut self.systems) {
            let components = Components::new(system, of.chunk);
            let keys = of.kept.par_iter().with_min_len(ROWS_AT_ONCE);
            let keys: Vec<Option<Key>> = keys.map(|row| components.key(rows, system, of.chunk, *row)).collect();
            for (&row, key) in of.kept.iter().zip(keys) {
                let key = key.ok_or_else(|| PeopleClaimError::NoKey(system.name.clone()))?;
                match key.written {
                    None => sums.persons.add(key.person, 1 + WRITTEN_AS_FOLDED)?,
                    Some(written) => {
                        sums.persons.add(key.person, 1)?;
                        sums.written.add(written, 1)?;
                    }
                }
                let mut record = key.person;
                if !layout.record_key.is_empty() {
                    let cells = layout.record_key.iter().map(|column| of.cell(*column, row));
                    record = digest("record", &[key.person].into_iter().chain(cells).collect::<Vec<u128>>());
                    sums.records.add(record, 1)?;
                }
                for (column, sum) in sums.columns.iter_mut().enumerate() {
                    *sum = sum.wrapping_add(record.wrapping_mul(of.cell(column, row)));
                }
            }
        }
        let of_rows = |rows: &[usize]| {
            let (mut table, mut contents) = (0_u128, vec![0_u128; layout.columns]);
            for &row in rows {
                let cells = (0..layout.columns).map(|column| of.cell(column, row));
                let whole = row_digest(cells.fold(0, u128::wrapping_add));
                table = table.wrapping_add(whole);
                for (column, sum) in contents.iter_mut().enumerate() {
                    *sum = sum.wrapping_add(whole.wrapping_mul(of.cell(column, row)));
                }
            }
            (table, contents)
        };
        let sums: Vec<(u128, Vec<u128>)> = of.kept.par_chunks(ROWS_AT_ONCE).map(of_rows).collect();
        for (table, contents) in sums {
            self.table = self.table.wrapping_add(table);
            self.contents.iter_mut().zip(contents).for_each(|(sum, of)| *sum = sum.wrapping_add(of));
        }
        Ok(())
    }
}

impl SystemSums {
    fn finish<E: From<io::Error> + From<PeopleClaimError>>(
        self,
        layout: &RowsLayout,
        system: &AuditedSystem,
        rows: u64,
        folder: &Path,
    ) -> Result<SystemFacts, E> {
        let mut most = 0;
        let mut persons = SortedHashes::new(folder);
        self.persons.finish(|person, times| {
            most = most.max(times / WRITTEN_AS_FOLDED);
            persons.push(person)
        })?;
        self.written.finish(|_, times| -> io::Result<()> {
            most = most.max(times);
            Ok(())
        })?;
        if most > layout.max_rows_per_person {
            return Err(PeopleClaimError::TooManyRows(system.name.clone()).into());
        }
        let mut is_repeated = false;
        self.records.finish(|_, times| -> io::Result<()> {
            is_repeated |= times > 1;
            Ok(())
        })?;
        let is_distinguished = if layout.record_key.is_empty() {
            layout.max_rows_per_person == 1 && persons.len() == rows
        } else {
            !is_repeated
        };
        let marks = self.columns.iter().map(|sum| digest("column", &[*sum]));
        Ok(SystemFacts { name: system.name.clone(), columns: is_distinguished.then(|| marks.collect()), persons })
    }
}

/// Checks that of each row that is left out a person is published.
fn check_left_out<R: AuditedRows>(
    rows: &mut R,
    layout: &RowsLayout,
    chunk: &Chunk,
    left_out: &[usize],
) -> Result<(), R::Error> {
    let mut unexplained: BTreeSet<usize> = left_out.iter().copied().collect();
    for system in &layout.systems {
        let components = Components::new(system, chunk);
        let key = |row: &usize| components.key(rows, system, chunk, *row).map(|key| (*row, key.person));
        let persons: Vec<(usize, u128)> = unexplained.iter().filter_map(key).collect();
        let asked: BTreeSet<u128> = persons.iter().map(|(_, person)| *person).collect();
        let published = rows.published(&system.name, &asked.into_iter().collect::<Vec<_>>())?;
        for (row, _) in persons.iter().filter(|(_, person)| published.contains(person)) {
            unexplained.remove(row);
        }
    }
    if unexplained.is_empty() { Ok(()) } else { Err(PeopleClaimError::LeftOut.into()) }
}
