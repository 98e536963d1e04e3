//! Sorted Parquet files as one sorted table.

use std::cmp::Ordering;
use std::fs::File;

use super::super::error::IngestError;
use super::super::input::TableReader;
use super::open;
use crate::microdata::limits::IngestLimits;
use crate::microdata::{AttributeType, Chunk, ChunkColumn, Interner};

/// The rows of a chunk: as many as of other readers.
const ROWS: usize = 1 << 13;

/// Merges Parquet files with the same columns, in each of which rows are in canonical order: by their cells from left to right, missing
/// ones first.
pub struct MergedParquet {
    sides: Vec<SortedSide>,
    names: Vec<String>,
    kinds: Vec<AttributeType>,
}

/// A file with the chunk that is merged.
struct SortedSide {
    reader: Box<dyn TableReader>,
    chunk: Chunk,
    row: usize,
}

impl MergedParquet {
    /// Opens all files; `kinds` are the types of the columns.
    ///
    /// # Errors
    /// [`IngestError`]; also where there is no file.
    pub fn new(files: Vec<File>, kinds: Vec<AttributeType>, limits: &IngestLimits) -> Result<Self, IngestError> {
        let (mut sides, mut names) = (Vec::new(), None::<Vec<String>>);
        for file in files {
            let mut reader: Box<dyn TableReader> = Box::new(open(file, Vec::new(), limits)?);
            let expected = names.get_or_insert_with(|| reader.names().to_vec());
            if reader.names() != expected || expected.len() != kinds.len() {
                let detail = "the files of the table have different columns".to_owned();
                return Err(IngestError::Malformed { row: None, column: None, byte: None, detail });
            }
            if let Some(chunk) = reader.next_chunk()? {
                sides.push(SortedSide { reader, chunk, row: 0 });
            }
        }
        Ok(Self { sides, names: names.ok_or(IngestError::Empty)?, kinds })
    }

    /// The side whose next row is the first in order.
    fn first(&self) -> Option<usize> {
        (0..self.sides.len()).min_by(|&one, &other| self.compare(&self.sides[one], &self.sides[other]))
    }

    fn compare(&self, one: &SortedSide, other: &SortedSide) -> Ordering {
        let cells = self.kinds.iter().zip(one.chunk.columns.iter().zip(&other.chunk.columns));
        let mut orders = cells.map(|(kind, (a, b))| kind.compare(a.value(one.row), b.value(other.row)));
        orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }
}

impl SortedSide {
    /// Goes on to the next row; false at the end of the file.
    fn advance(&mut self) -> Result<bool, IngestError> {
        self.row += 1;
        if self.row < self.chunk.rows as usize {
            return Ok(true);
        }
        let next = self.reader.next_chunk()?;
        let is_there = next.is_some();
        if let Some(chunk) = next {
            (self.chunk, self.row) = (chunk, 0);
        }
        Ok(is_there)
    }
}

impl TableReader for MergedParquet {
    fn names(&self) -> &[String] {
        &self.names
    }

    fn kinds(&self) -> Vec<Option<AttributeType>> {
        self.kinds.iter().copied().map(Some).collect()
    }

    fn next_chunk(&mut self) -> Result<Option<Chunk>, IngestError> {
        let mut columns: Vec<MergedColumn> = self.names.iter().map(|_| MergedColumn::default()).collect();
        let mut rows = 0;
        while rows < ROWS {
            let Some(first) = self.first() else { break };
            let side = &mut self.sides[first];
            for (column, of) in columns.iter_mut().zip(&side.chunk.columns) {
                let code = of.value(side.row).map_or(0, |value| column.values.intern(value) as u16 + 1);
                column.codes.push(code);
            }
            rows += 1;
            if !side.advance()? {
                self.sides.swap_remove(first);
            }
        }
        let finish = |column: MergedColumn| {
            let MergedColumn { mut values, codes } = column;
            ChunkColumn::new(values.take(), &codes)
        };
        let chunk = Chunk { rows: rows as u32, columns: columns.into_iter().map(finish).collect() };
        Ok((rows > 0).then_some(chunk))
    }
}

/// A column of the chunk that is made.
#[derive(Default)]
struct MergedColumn {
    values: Interner,
    codes: Vec<u16>,
}

#[cfg(test)]
mod tests {
    use std::io::Seek;
    use std::sync::Arc;

    use ::parquet::arrow::ArrowWriter;
    use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
    use arrow_schema::{DataType, Field, Schema};

    use super::*;

    fn file(numbers: &[Option<i64>], names: &[&str]) -> File {
        let schema = vec![Field::new("n", DataType::Int64, true), Field::new("name", DataType::Utf8, true)];
        let columns: Vec<ArrayRef> =
            vec![Arc::new(Int64Array::from(numbers.to_vec())), Arc::new(StringArray::from(names.to_vec()))];
        let schema = Arc::new(Schema::new(schema));
        let mut written = tempfile::tempfile().unwrap();
        let mut writer = ArrowWriter::try_new(written.try_clone().unwrap(), schema.clone(), None).unwrap();
        writer.write(&RecordBatch::try_new(schema, columns).unwrap()).unwrap();
        writer.close().unwrap();
        written.rewind().unwrap();
        written
    }

    fn rows(files: Vec<File>) -> Vec<String> {
        let kinds = vec![AttributeType::Integer, AttributeType::Text];
        let mut merged = MergedParquet::new(files, kinds, &IngestLimits::default()).unwrap();
        let mut rows = Vec::new();
        while let Some(chunk) = merged.next_chunk().unwrap() {
            for row in 0..chunk.rows as usize {
                let cell =
                    |column: &ChunkColumn| column.value(row).map_or("-".into(), String::from_utf8_lossy).into_owned();
                rows.push(chunk.columns.iter().map(cell).collect::<Vec<_>>().join(" "));
            }
        }
        rows
    }

    #[test]
    fn sorted_files_become_one_sorted_table() {
        let one = file(&[None, Some(2), Some(10)], &["b", "a", "a"]);
        let other = file(&[Some(-1), Some(2), Some(2), Some(11)], &["z", "", "b", "a"]);
        let empty = file(&[], &[]);
        assert_eq!(rows(vec![one, other, empty]), ["- b", "-1 z", "2 ", "2 a", "2 b", "10 a", "11 a"]);
    }

    #[test]
    fn many_rows_are_merged_in_several_chunks() {
        let even: Vec<Option<i64>> = (0..10_000).map(|n| Some(2 * n)).collect();
        let odd: Vec<Option<i64>> = (0..10_000).map(|n| Some(2 * n + 1)).collect();
        let names = vec!["x"; 10_000];
        let expected: Vec<String> = (0..20_000).map(|n| format!("{n} x")).collect();
        assert_eq!(rows(vec![file(&odd, &names), file(&even, &names)]), expected);
    }
}
