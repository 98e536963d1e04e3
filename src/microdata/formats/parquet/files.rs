//! A table in several Parquet files.

use std::collections::VecDeque;
use std::fs::File;

use super::super::error::IngestError;
use super::super::input::TableReader;
use super::open;
use crate::microdata::limits::IngestLimits;
use crate::microdata::{AttributeType, Chunk};

/// Reads Parquet files with the same columns one after the other.
pub struct ParquetFiles {
    files: VecDeque<File>,
    current: Box<dyn TableReader>,
    names: Vec<String>,
    limits: IngestLimits,
    /// The rows that were read.
    rows: u64,
}

impl ParquetFiles {
    /// Opens the first of some files.
    ///
    /// # Errors
    /// [`IngestError`], also where there is no file.
    pub fn new(files: Vec<File>, limits: &IngestLimits) -> Result<Self, IngestError> {
        let mut files = VecDeque::from(files);
        let first = files.pop_front().ok_or(IngestError::Empty)?;
        let current = Box::new(open(first, Vec::new(), limits)?);
        Ok(Self { files, names: current.names().to_vec(), current, limits: limits.clone(), rows: 0 })
    }
}

impl TableReader for ParquetFiles {
    fn names(&self) -> &[String] {
        &self.names
    }

    fn kinds(&self) -> Vec<Option<AttributeType>> {
        self.current.kinds()
    }

    fn next_chunk(&mut self) -> Result<Option<Chunk>, IngestError> {
        loop {
            if let Some(chunk) = self.current.next_chunk()? {
                self.rows += u64::from(chunk.rows);
                let (found, limit) = (self.rows, self.limits.max_rows);
                if found > limit {
                    return Err(IngestError::TooLarge { what: "rows", limit, found, row: None });
                }
                return Ok(Some(chunk));
            }
            let Some(file) = self.files.pop_front() else { return Ok(None) };
            let next = open(file, Vec::new(), &self.limits)?;
            if next.names() != self.names || next.kinds() != self.current.kinds() {
                let detail = "the files of the table have different columns".to_owned();
                return Err(IngestError::Malformed { row: None, column: None, byte: None, detail });
            }
            self.current = Box::new(next);
        }
    }
}
