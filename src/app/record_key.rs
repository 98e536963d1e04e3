//! The record key of an upload: every row has one, and no two rows have the same.

use std::io;
use std::path::Path;

use crate::microdata::Chunk;
use crate::microdata::formats::IngestError;
use crate::people::{ExternalSorter, KeyedHasher};
use crate::problem::{Kind, Problem};
use crate::vault::ContentHasher;

/// Checks the record key while a table is uploaded. What memory cannot hold goes to a file.
pub(super) struct RecordKeyCheck {
    hasher: ContentHasher,
    /// The columns of the key, with their names.
    columns: Vec<(usize, String)>,
    records: ExternalSorter,
    rows: u64,
}

impl RecordKeyCheck {
    /// Of a table with these columns, all of the key among them.
    pub(super) fn new(hasher: ContentHasher, names: &[String], key: &[String], spool: &Path) -> Self {
        let columns = names.iter().cloned().enumerate().filter(|(_, name)| key.contains(name)).collect();
        Self { hasher, columns, records: ExternalSorter::new(spool), rows: 0 }
    }

    /// Takes the next rows.
    ///
    /// # Errors
    /// `upload-malformed` when a row has no key, or no room for the hashes.
    pub(super) fn add(&mut self, chunk: &Chunk) -> Result<(), Problem> {
        let mut values = Vec::with_capacity(self.columns.len());
        for row in 0..chunk.rows as usize {
            values.clear();
            let number = self.rows + row as u64 + 1;
            for (column, name) in &self.columns {
                let missing = || {
                    let detail = format!("row {number} has no value of {name}, which belongs to the record key");
                    Problem::new(Kind::UploadMalformed, detail).with("row", number).with("column", name.as_str())
                };
                values.push(chunk.columns[*column].value(row).ok_or_else(missing)?);
            }
            self.records.push(self.hasher.keyed("record of an upload", &values).0, number).map_err(unspooled)?;
        }
        self.rows += u64::from(chunk.rows);
        Ok(())
    }

    /// Checks that no two rows have one key; the problem names the first row that repeats one.
    ///
    /// # Errors
    /// `upload-malformed`, or no room for the hashes.
    pub(super) fn finish(self) -> Result<(), Problem> {
        let (mut before, mut repeated) = (None, None);
        let sorted = self.records.finish(|record, row| -> io::Result<()> {
            if let Some((_, first)) = before.filter(|(other, _)| *other == record)
                && repeated.is_none_or(|(_, second)| row < second)
            {
                repeated = Some((first, row));
            }
            before = Some((record, row));
            Ok(())
        });
        sorted.map_err(unspooled)?;
        let Some((first, second)) = repeated else { return Ok(()) };
        let detail = format!("rows {first} and {second} have one record key; every record needs one of its own");
        let problem = Problem::new(Kind::UploadMalformed, detail);
        Err(problem.with("row", second).with("rows", vec![first, second]))
    }
}

fn unspooled(error: io::Error) -> Problem {
    IngestError::Spool(error).into()
}
