//! The rows of a table as the CSV of a part, and those of a part in several Parquet files as one file of it.

use std::fs::File;
use std::io;
use std::io::Read;

use crate::microdata::formats::csv::{header, quote};
use crate::microdata::formats::parquet::ParquetFiles;
use crate::microdata::formats::{IngestError, IngestLimits, TableReader};

/// Renders the rows of a table as the CSV of a part.
pub struct PartRendering {
    table: Box<dyn TableReader>,
    /// Whether the line of names is rendered.
    has_header: bool,
}

impl PartRendering {
    /// Of a table whose first column is `bucket`, if the part has buckets.
    #[must_use]
    pub const fn new(table: Box<dyn TableReader>) -> Self {
        Self { table, has_header: false }
    }

    /// Appends the next rows, after the line of names where they are the first, and counts them; `None` at the end.
    ///
    /// # Errors
    /// [`IngestError`]
    pub fn render(&mut self, csv: &mut Vec<u8>) -> Result<Option<u32>, IngestError> {
        if !self.has_header {
            header(self.table.names().iter().map(String::as_str), false, csv);
            self.has_header = true;
        }
        let Some(chunk) = self.table.next_chunk()? else { return Ok(None) };
        for row in 0..chunk.rows as usize {
            for (at, column) in chunk.columns.iter().enumerate() {
                if at > 0 {
                    csv.push(b',');
                }
                if let Some(value) = column.value(row) {
                    quote(value, value.is_empty(), csv);
                }
            }
            csv.push(b'\n');
        }
        Ok(Some(chunk.rows))
    }
}

/// Reader of the files of a part, one after the other.
pub struct PartFilesReader {
    /// Before the first is opened.
    files: Vec<File>,
    rendering: Option<PartRendering>,
    /// What is rendered and not yet read.
    csv: Vec<u8>,
    read: usize,
}

impl PartFilesReader {
    /// A reader of files in their order, of which there is at least one.
    #[must_use]
    pub const fn new(files: Vec<File>) -> Self {
        Self { files, rendering: None, csv: Vec::new(), read: 0 }
    }

    /// Renders the next rows; false at the end.
    fn fill(&mut self) -> Result<bool, IngestError> {
        self.csv.clear();
        self.read = 0;
        let rendering = match &mut self.rendering {
            Some(rendering) => rendering,
            unopened => {
                let files = std::mem::take(&mut self.files);
                unopened.insert(PartRendering::new(Box::new(ParquetFiles::new(files, &IngestLimits::default())?)))
            }
        };
        Ok(rendering.render(&mut self.csv)?.is_some() || !self.csv.is_empty())
    }
}

impl Read for PartFilesReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let damaged = |error: IngestError| io::Error::new(io::ErrorKind::InvalidData, error.to_string());
        while self.read == self.csv.len() {
            if !self.fill().map_err(damaged)? {
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
