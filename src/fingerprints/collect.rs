//! The hashes of a fingerprint, collected while a table is uploaded.

use std::io;
use std::path::Path;

use super::canonical_key::canonical_key;
use super::sample::{RowSample, sum};
use crate::microdata::formats::IngestError;
use crate::microdata::{Chunk, ChunkColumn};
use crate::people::ExternalSorter;
use crate::ports::{
    FingerprintPiece, HASHES_PER_PIECE, KeyedHash, MIN_SAMPLED_ROWS, RecordIdentity, SubjectFingerprint, cut, hashed,
    packed,
};
use crate::problem::{Kind, Problem};
use crate::vault::ContentHasher;

/// The hashes of the rows of a table so far.
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

    /// Gives the pieces to store to `put`, and reads the chunks once more.
    ///
    /// # Errors
    /// `upload-malformed` when two records have one key, or those of `put` and `chunk`.
    pub(crate) fn finish(
        self,
        chunks: u32,
        chunk: impl FnMut(u32) -> Result<Chunk, Problem>,
        mut put: impl FnMut(FingerprintPiece, &[u8]) -> Result<(), Problem>,
    ) -> Result<SubjectFingerprint, Problem> {
        let Self { template, names, key, rows, table, columns, records, spelled, candidates } = self;
        let mut writer = SetWriter::new(&template, &mut put);
        let by = match spelled {
            None => {
                records.finish(|record, _| writer.push(record)).map_err(Problem::from)?;
                RecordIdentity::Rows
            }
            Some(spelled) => {
                check_unique(records)?;
                spelled.finish(|record, _| writer.push(record)).map_err(Problem::from)?;
                RecordIdentity::Keys
            }
        };
        let (set, pieces) = writer.finish()?;
        // of so few rows nothing will be said, and nothing has to be looked at
        let looked_at = if rows < MIN_SAMPLED_ROWS { 0 } else { chunks };
        let (sample, below) = sample(candidates, &template, (0..looked_at).map(chunk))?;
        put(FingerprintPiece::Sample, &packed(&sample))?;
        let mark = |label: &[u8], sum: u128| KeyedHash(hashed(&template, label, &sum.to_be_bytes()));
        let name = |name: &String| KeyedHash::of_name(&template, name);
        Ok(SubjectFingerprint {
            by,
            folded: by == RecordIdentity::Keys,
            key: key.iter().flatten().map(|&column| name(&names[column])).collect(),
            rows,
            pieces,
            set,
            table: mark(b"table without names\0", table),
            columns: names.iter().zip(&columns).map(|(of, sum)| (name(of), mark(b"column\0", *sum))).collect(),
            sampled: sample.len() as u64,
            below: below.map(KeyedHash),
        })
    }
}

/// Cuts a sorted set of hashes into pieces, and hashes the whole.
struct SetWriter<P> {
    hash: ContentHasher,
    piece: Vec<u128>,
    pieces: u32,
    put: P,
}

impl<P: FnMut(FingerprintPiece, &[u8]) -> Result<(), Problem>> SetWriter<P> {
    fn new(template: &ContentHasher, put: P) -> Self {
        let mut hash = template.clone();
        hash.update(b"set\0");
        Self { hash, piece: Vec::with_capacity(HASHES_PER_PIECE), pieces: 0, put }
    }

    fn push(&mut self, record: u128) -> Result<(), CollectError> {
        self.piece.push(record);
        if self.piece.len() == HASHES_PER_PIECE { self.put_piece().map_err(CollectError::Put) } else { Ok(()) }
    }

    fn put_piece(&mut self) -> Result<(), Problem> {
        let bytes = packed(&self.piece);
        self.hash.update(&bytes);
        self.piece.clear();
        (self.put)(FingerprintPiece::Set(self.pieces), &bytes)?;
        self.pieces += 1;
        Ok(())
    }

    /// The hash of the set and the number of its pieces.
    fn finish(mut self) -> Result<(KeyedHash, u32), Problem> {
        if !self.piece.is_empty() {
            self.put_piece()?;
        }
        Ok((KeyedHash(cut(self.hash)), self.pieces))
    }
}

/// Checks that no two records have one key; the problem names the first row that repeats one.
fn check_unique(records: ExternalSorter) -> Result<(), Problem> {
    let (mut before, mut twice) = (None, None);
    let sorted = records.finish(|record, row| -> io::Result<()> {
        if let Some((_, first)) = before.filter(|(other, _)| *other == record)
            && twice.is_none_or(|(_, second)| row < second)
        {
            twice = Some((first, row));
        }
        before = Some((record, row));
        Ok(())
    });
    sorted.map_err(unspooled)?;
    let Some((first, second)) = twice else { return Ok(()) };
    let detail = format!("rows {first} and {second} have one record key; every record needs one of its own");
    let problem = Problem::new(Kind::UploadMalformed, detail);
    Err(problem.with("row", second).with("rows", vec![first, second]))
}

/// The sample of the rows of these chunks, and the hash up to which it goes where rows were left out.
fn sample(
    candidates: RowSample,
    template: &ContentHasher,
    chunks: impl Iterator<Item = Result<Chunk, Problem>>,
) -> Result<(Vec<u128>, Option<u128>), Problem> {
    let mut neighbours = candidates.neighbours();
    for chunk in chunks {
        let chunk = chunk?;
        let hashes = cells(template, &chunk);
        let mut row_cells = vec![0; hashes.len()];
        for row in 0..chunk.rows as usize {
            fill(&mut row_cells, &hashes, &chunk, row);
            neighbours.meet(sum(&row_cells), row_cells.iter().copied());
        }
    }
    Ok(neighbours.sample())
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
