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

#[cfg(test)]
mod tests {
    use std::io::Seek;
    use std::sync::Arc;

    use ::parquet::arrow::ArrowWriter;
    use arrow_array::{ArrayRef, BooleanArray, Date32Array, Int32Array, RecordBatch, StringArray};
    use arrow_schema::{DataType, Field, Schema};

    use super::*;

    fn file(labels: &[i32], names: &[Option<&str>]) -> File {
        let fields = vec![
            Field::new("bucket", DataType::Int32, true),
            Field::new("a, \"name\"", DataType::Utf8, true),
            Field::new("day", DataType::Date32, true),
            Field::new("flag", DataType::Boolean, true),
        ];
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int32Array::from(labels.to_vec())),
            Arc::new(StringArray::from(names.to_vec())),
            Arc::new(Date32Array::from(vec![Some(0); labels.len()])),
            Arc::new(BooleanArray::from(vec![None; labels.len()])),
        ];
        let schema = Arc::new(Schema::new(fields));
        let mut written = tempfile::tempfile().unwrap();
        let mut writer = ArrowWriter::try_new(written.try_clone().unwrap(), schema.clone(), None).unwrap();
        writer.write(&RecordBatch::try_new(schema, columns).unwrap()).unwrap();
        writer.close().unwrap();
        written.rewind().unwrap();
        written
    }

    #[test]
    fn files_read_as_one_csv() {
        let files = vec![file(&[1, 1], &[None, Some("")]), file(&[2], &[Some("a \"b\", c")])];
        let mut csv = String::new();
        PartFilesReader::new(files).read_to_string(&mut csv).unwrap();
        let header = "bucket,\"a, \"\"name\"\"\",day,flag\n";
        assert_eq!(csv, format!("{header}1,,1970-01-01,\n1,\"\",1970-01-01,\n2,\"a \"\"b\"\", c\",1970-01-01,\n"));
    }

    #[test]
    fn a_damaged_file_is_an_error() {
        let mut damaged = tempfile::tempfile().unwrap();
        io::Write::write_all(&mut damaged, b"PAR1 and nothing else").unwrap();
        damaged.rewind().unwrap();
        let error = PartFilesReader::new(vec![damaged]).read_to_string(&mut String::new()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
