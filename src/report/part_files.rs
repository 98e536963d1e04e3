//! The rows of a part in several Parquet files, as the CSV that one file of it would be.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::io::Read;

use crate::microdata::formats::csv::{header, quote};
use crate::microdata::formats::{IngestError, IngestLimits, TableReader, open_parquet};

/// Reader of the files of a part, one after the other.
pub struct PartFilesReader {
    files: VecDeque<File>,
    current: Option<Box<dyn TableReader>>,
    /// What is rendered and not yet read.
    csv: Vec<u8>,
    read: usize,
    /// Whether the line of names is rendered.
    has_header: bool,
}

impl PartFilesReader {
    /// A reader of files in their order.
    #[must_use]
    pub fn new(files: Vec<File>) -> Self {
        Self { files: files.into(), current: None, csv: Vec::new(), read: 0, has_header: false }
    }

    /// Renders the next rows; false at the end.
    fn fill(&mut self) -> io::Result<bool> {
        let damaged = |error: IngestError| io::Error::new(io::ErrorKind::InvalidData, error.to_string());
        self.csv.clear();
        self.read = 0;
        loop {
            if self.current.is_none() {
                let Some(file) = self.files.pop_front() else { return Ok(false) };
                self.current = Some(open_parquet(file, &IngestLimits::default()).map_err(damaged)?);
            }
            let Some(reader) = &mut self.current else { continue };
            if !self.has_header {
                header(reader.names().iter().map(String::as_str), false, &mut self.csv);
                self.has_header = true;
            }
            match reader.next_chunk().map_err(damaged)? {
                None => self.current = None,
                Some(chunk) => {
                    for row in 0..chunk.rows as usize {
                        for (at, column) in chunk.columns.iter().enumerate() {
                            if at > 0 {
                                self.csv.push(b',');
                            }
                            if let Some(value) = column.value(row) {
                                quote(value, value.is_empty(), &mut self.csv);
                            }
                        }
                        self.csv.push(b'\n');
                    }
                    return Ok(true);
                }
            }
            if !self.csv.is_empty() {
                return Ok(true);
            }
        }
    }
}

impl Read for PartFilesReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.read == self.csv.len() {
            if !self.fill()? {
                return Ok(0);
            }
        }
        let bytes = (self.csv.len() - self.read).min(buffer.len());
        buffer[..bytes].copy_from_slice(&self.csv[self.read..self.read + bytes]);
        self.read += bytes;
        Ok(bytes)
    }
}
