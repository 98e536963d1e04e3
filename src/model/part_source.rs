//! Reading of published parts, a chunk of rows at a time.

use super::cells::{ModelError, damaged};
use crate::control::Control;
use crate::microdata::formats::csv::{CsvOptions, CsvReader};
use crate::microdata::formats::{IngestError, IngestLimits};
use crate::microdata::{AttrSet, ChunkColumn};
use crate::publication::{Part, PublishedBytes, TableName};
use crate::with_codes;

/// Largest number of rows for which memory is reserved: a part may claim more rows than it has.
const MAX_RESERVED_ROWS: u64 = 1 << 20;

/// A part to read.
#[derive(Clone, Copy)]
pub(super) struct PartSource<'a> {
    pub(super) table: &'a TableName,
    pub(super) part: &'a Part,
    /// Attributes that are read.
    pub(super) wanted: AttrSet,
    pub(super) parts: &'a dyn PublishedBytes,
}

impl PartSource<'_> {
    /// Error of a part that contradicts its description.
    pub(super) fn broken(&self) -> ModelError {
        damaged(&format!("{} is not the part that the manifest describes", self.part.file(self.table)))
    }

    /// Indexes of the wanted columns.
    pub(super) fn columns(&self) -> Vec<usize> {
        let columns = &self.part.columns;
        (0..columns.len()).filter(|&at| self.wanted.contains(columns[at].attribute)).collect()
    }

    /// Number of rows for which memory is reserved.
    pub(super) fn reserved_rows(&self) -> usize {
        self.part.len.min(MAX_RESERVED_ROWS) as usize
    }

    /// Reads all rows; returns the bucket of each, from 0, if the part has buckets.
    ///
    /// `cells` gets the number of a wanted column, and the next of its cells.
    ///
    /// # Errors
    /// [`ModelError`]
    pub(super) fn read(
        &self,
        control: &Control,
        mut cells: impl FnMut(usize, &ChunkColumn),
    ) -> Result<Vec<u32>, ModelError> {
        let part = self.part;
        let columns = self.columns();
        let bucket = usize::from(part.bucketed);
        let body = self.parts.open(&part.file(self.table))?;
        // a part of one column has no delimiter outside of quotes
        let options = CsvOptions { delimiter: Some(b','), null: part.null.clone(), types: Vec::new() };
        let broken = |error: IngestError| match error {
            IngestError::Io(error) => ModelError::Io(error),
            _ => self.broken(),
        };
        let mut reader = CsvReader::open(body, options, &IngestLimits::of_own_parts()).map_err(broken)?;
        if reader.names().len() != bucket + part.columns.len() {
            return Err(self.broken());
        }
        let mut labels = Vec::with_capacity(if part.bucketed { self.reserved_rows() } else { 0 });
        while let Some(chunk) = reader.next_chunk().map_err(broken)? {
            control.check()?;
            if reader.rows() > part.len {
                return Err(self.broken());
            }
            if part.bucketed {
                self.add_labels(&chunk.columns[0], &mut labels)?;
            }
            columns.iter().enumerate().for_each(|(number, place)| cells(number, &chunk.columns[bucket + place]));
        }
        if reader.rows() == part.len { Ok(labels) } else { Err(self.broken()) }
    }

    /// Adds the buckets of the next rows.
    fn add_labels(&self, column: &ChunkColumn, labels: &mut Vec<u32>) -> Result<(), ModelError> {
        let label = |text: &[u8]| std::str::from_utf8(text).ok()?.parse::<u32>().ok();
        let bucket = |text: &[u8]| label(text).filter(|&label| label > 0 && u64::from(label) <= self.part.len);
        let buckets = column.values().iter().map(|text| Some(bucket(text)? - 1));
        let buckets = buckets.collect::<Option<Vec<u32>>>().filter(|_| column.missing() == 0);
        let buckets = buckets.ok_or_else(|| self.broken())?;
        with_codes!(column.codes(), codes => labels.extend(codes.iter().map(|&code| buckets[code as usize - 1])));
        Ok(())
    }
}
