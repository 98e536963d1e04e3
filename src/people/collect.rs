//! Collects the evidence of a table, rows after rows, in bounded memory.

use std::io;
use std::path::Path;

use rayon::prelude::*;

use super::blocks::{MAX_CHOSEN_COLUMNS, ScanError, blocks};
use super::cells::{CellChunk, CellFile};
use super::evidence::{Evidence, SystemEvidence};
use super::fold::Fold;
use super::hash::{HashOfHashes, KeyedHash, KeyedHasher, SumHasher};
use super::keys::{KeyComponents, ROWS_AT_ONCE, RowKey, SystemColumns};
use super::signatures::signatures;
use super::sorter::ExternalSorter;
use crate::control::{Cancelled, Control};
use crate::microdata::{Chunk, ChunkColumn};

/// Sorts that each key system takes: of persons, their spellings and their records.
const SORTERS_PER_SYSTEM: usize = 3;

/// Person hashes that are handed over at once.
const PERSONS_AT_ONCE: usize = 1 << 15;

/// Which columns of a table identify persons and records.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyLayout {
    /// The columns of the table.
    pub names: Vec<String>,
    /// The key systems that the table has.
    pub systems: Vec<SystemColumns>,
    /// The columns that distinguish records of a person.
    pub record_key: Vec<usize>,
    /// How many rows a person may have.
    pub max_rows_per_person: u64,
}

/// Why there is no evidence of a table.
#[derive(Debug, thiserror::Error)]
pub enum EvidenceError {
    /// Rows without a key.
    #[error("{rows} rows have no value of {column}, which identifies persons; row {row} is the first")]
    MissingKey {
        /// The first such row, from 1.
        row: u64,
        /// The name of the column that it has no value of.
        column: String,
        /// How many rows lack a component of their key.
        rows: u64,
    },
    /// A person with too many rows.
    #[error("a person has {found} rows, and max_rows_per_person is {limit}; row {row} is the first too many")]
    TooManyRows {
        /// The first row too many, from 1.
        row: u64,
        /// The most rows that a person may have.
        limit: u64,
        /// The most rows that a person has.
        found: u64,
    },
    /// Memory on disk could not be written or read.
    #[error("temporary storage failed: {0}")]
    Spool(#[from] io::Error),
    /// The caller stopped.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
    /// Person hashes could not be kept.
    #[error("person hashes could not be kept: {0}")]
    Put(Box<dyn std::error::Error + Send + Sync>),
}

impl From<ScanError> for EvidenceError {
    fn from(error: ScanError) -> Self {
        match error {
            ScanError::Spool(error) => Self::Spool(error),
            ScanError::Cancelled(cancelled) => Self::Cancelled(cancelled),
        }
    }
}

/// The evidence of the rows so far.
pub struct EvidenceCollector<H> {
    hasher: H,
    layout: KeyLayout,
    /// Rows of the table, and those of them that count.
    seen: u64,
    rows: u64,
    content: RowSums,
    systems: Vec<SystemCollector>,
    /// The columns that are no keys, and the sum of the cells of each.
    free: Vec<usize>,
    sums: Vec<u128>,
    cells: CellFile,
}

impl<H: KeyedHasher> EvidenceCollector<H> {
    /// Of a table of this layout. What memory cannot hold goes to files without names in `spool`.
    pub fn new(hasher: H, layout: KeyLayout, spool: &Path) -> Self {
        let is_key = |column: &usize| {
            layout.record_key.contains(column) || layout.systems.iter().any(|system| system.columns.contains(column))
        };
        let free: Vec<usize> = (0..layout.names.len()).filter(|column| !is_key(column)).collect();
        let systems = layout.systems.iter().map(|_| SystemCollector::new(&layout, spool)).collect();
        let (sums, content) = (vec![0; free.len()], RowSums::new(layout.names.len()));
        let cells = CellFile::new(spool, free.len());
        Self { hasher, layout, seen: 0, rows: 0, content, systems, free, sums, cells }
    }

    /// Takes the next rows; of these only those for which `counts` says so.
    ///
    /// # Errors
    /// No room on disk.
    pub fn add(&mut self, chunk: &Chunk, counts: impl Fn(usize) -> bool) -> Result<(), EvidenceError> {
        let hashes: Vec<Vec<u128>> = chunk.columns.iter().map(|column| cell_hashes(&self.hasher, column)).collect();
        let kept: Vec<usize> = (0..chunk.rows as usize).filter(|row| counts(*row)).collect();
        let cell = |column: usize, row: usize| hashes[column][chunk.columns[column].codes().get(row) as usize];
        for (system, columns) in self.systems.iter_mut().zip(&self.layout.systems) {
            let components = KeyComponents::new(&self.hasher, columns, chunk);
            for (&row, key) in kept.iter().zip(components.keys(&kept)) {
                let key = match key {
                    Ok(key) => key,
                    Err(column) => {
                        system.keyless.get_or_insert(KeylessRow { row: self.seen + row as u64 + 1, column });
                        system.keyless_rows += 1;
                        continue;
                    }
                };
                let record = |column: &usize| cell(*column, row);
                system.add(key, self.seen + row as u64 + 1, self.layout.record_key.iter().map(record))?;
                for (column, sum) in system.columns.iter_mut().enumerate() {
                    *sum = sum.wrapping_add(system.record.wrapping_mul(cell(column, row)));
                }
            }
        }
        let hasher = SumHasher::new(b"row\0");
        let sums = kept.par_chunks(ROWS_AT_ONCE).map(|rows| {
            let mut sums = RowSums::new(hashes.len());
            rows.iter().for_each(|row| sums.add(&hasher, |column| cell(column, *row)));
            sums
        });
        sums.collect::<Vec<RowSums>>().into_iter().for_each(|sums| self.content.merge(sums));
        let mut columns = Vec::with_capacity(self.free.len());
        for (&column, sum) in self.free.iter().zip(&mut self.sums) {
            let values = kept.iter().map(|row| chunk.columns[column].codes().get(*row));
            columns.push(CellChunk::from_values(values, &hashes[column]));
            *sum = kept.iter().fold(*sum, |sum, row| sum.wrapping_add(cell(column, *row)));
        }
        self.cells.push(&columns)?;
        self.seen += u64::from(chunk.rows);
        self.rows += kept.len() as u64;
        Ok(())
    }

    /// Hands over the person hashes of each key system, sorted, and gives the rest.
    ///
    /// # Errors
    /// Rows without a key, a person with too many rows, no room on disk, or what `put` fails with.
    pub fn finish(
        self,
        control: &Control,
        mut put: impl FnMut(&str, &[KeyedHash]) -> Result<(), EvidenceError>,
    ) -> Result<Evidence, EvidenceError> {
        let mut evidence = Evidence { rows: self.rows, names: self.layout.names.clone(), ..Evidence::default() };
        for (system, columns) in self.systems.into_iter().zip(&self.layout.systems) {
            control.check()?;
            let found = system.finish(&self.layout, |hashes| put(&columns.system, hashes))?;
            evidence.systems.insert(columns.system.clone(), found);
        }
        let RowSums { table, contents } = self.content;
        evidence.table = Some(KeyedHash(SumHasher::new(b"table\0").hash(table)));
        let content = |sum: &u128| {
            let mut hash = HashOfHashes::new(b"content\0");
            [table, *sum].into_iter().for_each(|sum| hash.update(sum));
            KeyedHash(hash.finish())
        };
        evidence.contents = self.layout.names.iter().cloned().zip(contents.iter().map(content)).collect();
        let chosen = chosen(&self.cells, &self.sums)?;
        evidence.blocks = blocks(&self.cells, &chosen, control)?;
        evidence.signatures = signatures(&self.cells, &chosen, control)?;
        Ok(evidence)
    }
}

/// Sums over the rows of a table.
struct RowSums {
    /// Of the rows.
    table: u128,
    /// Per column of what stands in it of which row.
    contents: Vec<u128>,
}

impl RowSums {
    fn new(columns: usize) -> Self {
        Self { table: 0, contents: vec![0; columns] }
    }

    /// Adds the row with these cells.
    fn add(&mut self, hasher: &SumHasher, cell: impl Fn(usize) -> u128) {
        let whole = (0..self.contents.len()).fold(0_u128, |sum, column| sum.wrapping_add(cell(column)));
        let whole = hasher.hash(whole);
        self.table = self.table.wrapping_add(whole);
        for (column, content) in self.contents.iter_mut().enumerate() {
            *content = content.wrapping_add(whole.wrapping_mul(cell(column)));
        }
    }

    /// Adds other rows.
    fn merge(&mut self, others: Self) {
        self.table = self.table.wrapping_add(others.table);
        self.contents.iter_mut().zip(others.contents).for_each(|(sum, other)| *sum = sum.wrapping_add(other));
    }
}

/// Per code of a column the hash of its cells. A missing cell is as an empty one: formats differ in which of them they
/// have.
fn cell_hashes(hasher: &impl KeyedHasher, column: &ChunkColumn) -> Vec<u128> {
    let hash = |text: &str| hasher.keyed("cell", &[Fold::Standard.apply(text).as_bytes()]).0;
    let mut hashes = vec![hash("")];
    hashes.par_extend(column.values().par_iter(ROWS_AT_ONCE).map(|value| hash(&String::from_utf8_lossy(value))));
    hashes
}

/// Of many columns those that say most of rows: with at most n/2 values those that have most, then those with more.
fn chosen(cells: &CellFile, sums: &[u128]) -> io::Result<Vec<usize>> {
    let mut order: Vec<usize> = (0..cells.columns()).collect();
    if order.len() > MAX_CHOSEN_COLUMNS {
        let distinct: Vec<u64> = order.iter().map(|column| cells.distinct(*column)).collect::<io::Result<_>>()?;
        let half = cells.rows() / 2;
        let rank = |column: &usize| (distinct[*column] > half, u64::MAX - distinct[*column], sums[*column]);
        order.sort_by_key(rank);
        order.truncate(MAX_CHOSEN_COLUMNS);
    }
    Ok(order)
}

/// The first row without a key.
struct KeylessRow {
    /// From 1.
    row: u64,
    /// The column that it has no value of.
    column: usize,
}

/// What is collected of one key system.
struct SystemCollector {
    keyless: Option<KeylessRow>,
    keyless_rows: u64,
    /// Each person with its row, and whether its key is written as it is folded.
    persons: ExternalSorter,
    /// The keys that are written otherwise, with their rows. How many rows a person has is checked for each spelling by itself.
    spellings: ExternalSorter,
    /// The records, where a record key distinguishes the rows of a person.
    records: Option<ExternalSorter>,
    /// The record of the last row.
    record: u128,
    /// Per column what stands in it of whom. Empty where rows of a person are not distinguished.
    columns: Vec<u128>,
}

impl SystemCollector {
    fn new(layout: &KeyLayout, spool: &Path) -> Self {
        let has_records = !layout.record_key.is_empty();
        let has_marks = has_records || layout.max_rows_per_person == 1;
        let sorters = layout.systems.len() * SORTERS_PER_SYSTEM;
        let sorter = || ExternalSorter::one_of(spool, sorters);
        Self {
            keyless: None,
            keyless_rows: 0,
            persons: sorter(),
            spellings: sorter(),
            records: has_records.then(sorter),
            record: 0,
            columns: if has_marks { vec![0; layout.names.len()] } else { Vec::new() },
        }
    }

    fn add(&mut self, key: RowKey, row: u64, record: impl Iterator<Item = u128>) -> io::Result<()> {
        self.persons.push(key.person, row << 1 | u64::from(key.spelling.is_none()))?;
        key.spelling.map_or(Ok(()), |spelling| self.spellings.push(spelling, row))?;
        self.record = key.person;
        if let Some(records) = &mut self.records {
            let mut hash = HashOfHashes::new(b"record\0");
            std::iter::once(key.person).chain(record).for_each(|cell| hash.update(cell));
            self.record = hash.finish();
            records.push(self.record, row)?;
        }
        Ok(())
    }

    fn finish(
        self,
        layout: &KeyLayout,
        put: impl FnMut(&[KeyedHash]) -> Result<(), EvidenceError>,
    ) -> Result<SystemEvidence, EvidenceError> {
        if let Some(KeylessRow { row, column }) = self.keyless {
            let column = layout.names[column].clone();
            return Err(EvidenceError::MissingKey { row, column, rows: self.keyless_rows });
        }
        let mut of_one_key = RowsOfKeys::new(layout.max_rows_per_person);
        let persons = put_persons(self.persons, &mut of_one_key, put)?;
        self.spellings.finish(|spelling, row| -> io::Result<()> {
            of_one_key.count(spelling, row);
            Ok(())
        })?;
        of_one_key.check()?;
        // of rows that one hash stands for it is not known which cell belongs to which
        let is_distinguished = match self.records {
            Some(records) => !has_repeated(records)?,
            None => persons.rows == persons.persons,
        };
        let hasher = SumHasher::new(b"column\0");
        let mark = |sum: &u128| KeyedHash(hasher.hash(*sum));
        let marks = layout.names.iter().cloned().zip(self.columns.iter().map(mark)).filter(|_| is_distinguished);
        Ok(SystemEvidence { persons: persons.persons, columns: marks.collect() })
    }
}

struct WrittenPersons {
    persons: u64,
    rows: u64,
}

/// Hands over the persons, each once.
fn put_persons(
    sorted: ExternalSorter,
    of_one_key: &mut RowsOfKeys,
    mut put: impl FnMut(&[KeyedHash]) -> Result<(), EvidenceError>,
) -> Result<WrittenPersons, EvidenceError> {
    let mut counts = WrittenPersons { persons: 0, rows: 0 };
    let mut piece: Vec<KeyedHash> = Vec::with_capacity(PERSONS_AT_ONCE);
    let mut last = None;
    sorted.finish(|hash, row| -> Result<(), EvidenceError> {
        counts.rows += 1;
        if row & 1 == 1 {
            of_one_key.count(hash, row >> 1);
        }
        if last != Some(hash) {
            last = Some(hash);
            counts.persons += 1;
            piece.push(KeyedHash(hash));
        }
        if piece.len() == PERSONS_AT_ONCE {
            put(&piece)?;
            piece.clear();
        }
        Ok(())
    })?;
    if !piece.is_empty() {
        put(&piece)?;
    }
    Ok(counts)
}

/// How many rows have one key.
struct RowsOfKeys {
    limit: u64,
    last: Option<u128>,
    rows: u64,
    /// The most rows of a key.
    most: u64,
    /// The first row too many.
    first_wrong: Option<u64>,
}

impl RowsOfKeys {
    const fn new(limit: u64) -> Self {
        Self { limit, last: None, rows: 0, most: 0, first_wrong: None }
    }

    /// Counts a row; those of a key come one after the other, in their order.
    fn count(&mut self, key: u128, row: u64) {
        self.rows = if self.last.replace(key) == Some(key) { self.rows + 1 } else { 1 };
        self.most = self.most.max(self.rows);
        if self.rows == self.limit + 1 {
            self.first_wrong = Some(self.first_wrong.map_or(row, |earlier| earlier.min(row)));
        }
    }

    fn check(self) -> Result<(), EvidenceError> {
        let Self { limit, most: found, .. } = self;
        self.first_wrong.map_or(Ok(()), |row| Err(EvidenceError::TooManyRows { row, limit, found }))
    }
}

fn has_repeated(sorted: ExternalSorter) -> io::Result<bool> {
    let (mut last, mut repeated) = (None, false);
    sorted.finish(|hash, _| -> io::Result<()> {
        repeated |= last.replace(hash) == Some(hash);
        Ok(())
    })?;
    Ok(repeated)
}
