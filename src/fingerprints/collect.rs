//! Gathering the hashes while a table is taken in.

use std::io;
use std::path::Path;

use super::canonical_key::canonical_key;
use super::sample::{RowSample, sum};
use super::sorter::ExternalSorter;
use crate::microdata::formats::IngestError;
use crate::microdata::{Chunk, ChunkColumn};
use crate::ports::{
    FingerprintPiece, HASHES_PER_PIECE, KeyedHash, MIN_SAMPLED_ROWS, RecordIdentity, SubjectFingerprint, cut, hashed,
    packed,
};
use crate::problem::{Kind, Problem};
use crate::vault::ContentHasher;

/// What is known of the people of a table so far.
pub(crate) struct FingerprintCollector {
    template: ContentHasher,
    names: Vec<String>,
    /// The columns of the record key, by name.
    key: Option<Vec<usize>>,
    rows: u64,
    table: u128,
    /// Per column what stands in it of whom.
    columns: Vec<u128>,
    records: ExternalSorter,
    /// With a record key: the same records by one spelling of theirs.
    spelled: Option<ExternalSorter>,
    candidates: RowSample,
}

impl FingerprintCollector {
    /// Of a table with these columns. What memory cannot hold goes to a file in `spool`.
    pub(crate) fn new(template: ContentHasher, names: &[String], record_key: Option<&[String]>, spool: &Path) -> Self {
        let key = record_key.map(|key| {
            let mut key: Vec<usize> = (0..names.len()).filter(|&column| key.contains(&names[column])).collect();
            key.sort_unstable_by_key(|&column| &names[column]);
            key
        });
        Self {
            template,
            names: names.to_vec(),
            spelled: key.is_some().then(|| ExternalSorter::new(spool)),
            key,
            rows: 0,
            table: 0,
            columns: vec![0; names.len()],
            records: ExternalSorter::new(spool),
            candidates: RowSample::new(names.len()),
        }
    }

    /// Takes the next rows.
    ///
    /// # Errors
    /// `upload-malformed` when a record has no key, or no room for the hashes.
    pub(crate) fn add(&mut self, chunk: &Chunk) -> Result<(), Problem> {
        let hashes = cells(&self.template, chunk);
        let (mut bytes, mut spelling) = (Vec::new(), Vec::new());
        let mut row_cells = vec![0; hashes.len()];
        for row in 0..chunk.rows as usize {
            fill(&mut row_cells, &hashes, chunk, row);
            let own = hashed(&self.template, b"row\0", &sum(&row_cells).to_be_bytes());
            self.table = self.table.wrapping_add(own);
            if self.candidates.wants(own) {
                self.candidates.push(own, row_cells.clone().into());
            }
            let record = match &self.key {
                None => own,
                Some(key) => {
                    bytes.clear();
                    spelling.clear();
                    for &column in key {
                        let value = chunk.columns[column].value(row).ok_or_else(|| self.no_key(row as u64, column))?;
                        append(&mut bytes, value);
                        append(&mut spelling, &canonical_key(value));
                    }
                    hashed(&self.template, b"record\0", &bytes)
                }
            };
            if let Some(spelled) = &mut self.spelled {
                let same = if spelling == bytes { record } else { hashed(&self.template, b"record\0", &spelling) };
                spelled.push(same, self.rows + row as u64 + 1).map_err(unspooled)?;
            }
            for (column, cell) in self.columns.iter_mut().zip(&row_cells) {
                *column = column.wrapping_add(record.wrapping_mul(*cell));
            }
            self.records.push(record, self.rows + row as u64 + 1).map_err(unspooled)?;
        }
        self.rows += u64::from(chunk.rows);
        Ok(())
    }

    fn no_key(&self, row: u64, column: usize) -> Problem {
        let (row, name) = (self.rows + row + 1, &self.names[column]);
        let detail = format!("row {row} has no value of {name}, which belongs to the record key");
        Problem::new(Kind::UploadMalformed, detail).with("row", row).with("column", name.as_str())
    }

    /// Gives what is to be kept to `put`, reading the chunks once more.
    ///
    /// # Errors
    /// `upload-malformed` when two records have one key, or those of `put` and `chunk`.
    pub(crate) fn finish(
        self,
        chunks: u32,
        mut chunk: impl FnMut(u32) -> Result<Chunk, Problem>,
        mut put: impl FnMut(FingerprintPiece, &[u8]) -> Result<(), Problem>,
    ) -> Result<SubjectFingerprint, Problem> {
        let by = if self.key.is_some() { RecordIdentity::Keys } else { RecordIdentity::Rows };
        let mut set = self.template.clone();
        set.update(b"set\0");
        let (mut piece, mut pieces) = (Vec::with_capacity(HASHES_PER_PIECE), 0);
        let (mut before, mut twice) = (None, None);
        let mut keep = |piece: &mut Vec<u128>| -> Result<(), Problem> {
            let bytes = packed(piece);
            set.update(&bytes);
            piece.clear();
            put(FingerprintPiece::Set(pieces), &bytes)?;
            pieces += 1;
            Ok(())
        };
        let mut take = |record: u128| -> Result<(), CollectError> {
            piece.push(record);
            if piece.len() == HASHES_PER_PIECE { keep(&mut piece).map_err(CollectError::Put) } else { Ok(()) }
        };
        let sorted = self.records.finish(|record, row| -> Result<(), CollectError> {
            if by == RecordIdentity::Keys
                && let Some((_, first)) = before.filter(|(other, _)| *other == record)
                && twice.is_none_or(|(_, second)| row < second)
            {
                twice = Some((first, row));
            }
            before = Some((record, row));
            if by == RecordIdentity::Rows { take(record) } else { Ok(()) }
        });
        sorted.map_err(Problem::from)?;
        if let Some((first, second)) = twice {
            let detail = format!("rows {first} and {second} have one record key; every record needs one of its own");
            let problem = Problem::new(Kind::UploadMalformed, detail);
            return Err(problem.with("row", second).with("rows", vec![first, second]));
        }
        if let Some(spelled) = self.spelled {
            spelled.finish(|record, _| take(record)).map_err(Problem::from)?;
        }
        if !piece.is_empty() {
            keep(&mut piece)?;
        }

        // of so few rows nothing will be said, and nothing has to be looked at
        let mut neighbours = self.candidates.neighbours();
        let looked_at = if self.rows < MIN_SAMPLED_ROWS { 0 } else { chunks };
        for number in 0..looked_at {
            let chunk = chunk(number)?;
            let hashes = cells(&self.template, &chunk);
            let mut row_cells = vec![0; hashes.len()];
            for row in 0..chunk.rows as usize {
                fill(&mut row_cells, &hashes, &chunk, row);
                neighbours.meet(sum(&row_cells), row_cells.iter().copied());
            }
        }
        let (sample, below) = neighbours.sample();
        put(FingerprintPiece::Sample, &packed(&sample))?;
        let mark = |label: &[u8], sum: u128| KeyedHash(hashed(&self.template, label, &sum.to_be_bytes()));
        let name = |name: &String| KeyedHash::of_name(&self.template, name);
        Ok(SubjectFingerprint {
            by,
            folded: by == RecordIdentity::Keys,
            key: self.key.iter().flatten().map(|&column| name(&self.names[column])).collect(),
            rows: self.rows,
            pieces,
            set: KeyedHash(cut(set)),
            table: mark(b"table without names\0", self.table),
            columns: self
                .names
                .iter()
                .zip(&self.columns)
                .map(|(of, sum)| (name(of), mark(b"column\0", *sum)))
                .collect(),
            sampled: sample.len() as u64,
            below: below.map(KeyedHash),
        })
    }
}

enum CollectError {
    Spool(io::Error),
    Put(Problem),
}

impl From<io::Error> for CollectError {
    fn from(error: io::Error) -> Self {
        Self::Spool(error)
    }
}

impl From<CollectError> for Problem {
    fn from(failed: CollectError) -> Self {
        match failed {
            CollectError::Spool(error) => unspooled(error),
            CollectError::Put(problem) => problem,
        }
    }
}

/// One value of a record key behind those before it.
fn append(bytes: &mut Vec<u8>, value: &[u8]) {
    bytes.extend_from_slice(&(value.len() as u32).to_le_bytes());
    bytes.extend_from_slice(value);
}

fn unspooled(error: io::Error) -> Problem {
    IngestError::Spool(error).into()
}

/// Per column the hash of each code.
fn cells(template: &ContentHasher, chunk: &Chunk) -> Vec<Vec<u128>> {
    let missing = hashed(template, b"missing\0", &[]);
    let column = |column: &ChunkColumn| {
        let values = column.values().iter().map(|value| hashed(template, b"cell\0", value));
        std::iter::once(missing).chain(values).collect()
    };
    chunk.columns.iter().map(column).collect()
}

/// The hashes of a row's cells.
fn fill(row_cells: &mut [u128], hashes: &[Vec<u128>], chunk: &Chunk, row: usize) {
    for ((cell, hashes), column) in row_cells.iter_mut().zip(hashes).zip(&chunk.columns) {
        *cell = hashes[column.codes().get(row) as usize];
    }
}
