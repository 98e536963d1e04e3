//! Writing parts: canonical CSV in chunks of whole rows, hashed while they are written.

use std::io;
use std::ops::Range;

use rayon::prelude::*;
use sha2::{Digest, Sha256};

use crate::control::Control;
use crate::engine::error::EngineError;
use crate::engine::read_back::hex::hex;
use crate::microdata::formats::csv::{RowWriter, header};
use crate::microdata::{AttributeType, Column, LabelledRows, Table};
use crate::publication::{
    BucketColumn, CellContent, Part, PartContents, PublishedBytes, PublishedColumn, RowMeaning, TableName,
};
use crate::report::WrittenPart;

/// Storage of the parts of one attempt, which are read back as they will be served.
pub trait PartStore: PublishedBytes {
    /// Stores the next chunk of a file. Chunks come in order, numbered from 0; each holds whole rows, and the first also holds the
    /// header.
    ///
    /// # Errors
    /// When the chunk cannot be stored.
    fn put(&mut self, file: &str, number: u32, first_row: u64, rows: u32, csv: &[u8]) -> io::Result<()>;
}

/// The largest number of rows in a chunk.
const CHUNK_ROWS: usize = 1 << 16;
/// Number of rows that a processor renders at once.
const PIECE_ROWS: usize = 1 << 13;

/// Some rows of a chunk as CSV.
#[derive(Default)]
struct RenderedPiece {
    bytes: Vec<u8>,
    /// Bytes of the rows; what follows is of a former piece.
    len: usize,
}

impl RenderedPiece {
    fn render(&mut self, writer: &RowWriter<'_>, labels: Option<&BucketColumn>, rows: Range<usize>) {
        self.len = match labels {
            Some(labels) => writer.write(labels.of_rows(rows), &mut self.bytes, 0),
            None => writer.write(std::iter::once(LabelledRows { label: None, rows }), &mut self.bytes, 0),
        };
    }
}

/// The CSV of a chunk in pieces, each made by a processor. Their memory is used again, as the kernel clears fresh pages.
#[derive(Default)]
struct RenderedChunk(Vec<RenderedPiece>);

impl RenderedChunk {
    /// Renders rows in the memory of a former chunk.
    fn render(mut self, writer: &RowWriter<'_>, labels: Option<&BucketColumn>, rows: Range<usize>) -> Self {
        let pieces: Vec<Range<usize>> =
            rows.clone().step_by(PIECE_ROWS).map(|first| first..(first + PIECE_ROWS).min(rows.end)).collect();
        self.0.resize_with(pieces.len(), RenderedPiece::default);
        pieces.into_par_iter().zip(&mut self.0).for_each(|(rows, piece)| piece.render(writer, labels, rows));
        self
    }

    fn csv(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(|piece| &piece.bytes[..piece.len])
    }
}

/// Writes the parts of a release one by one.
pub(in crate::engine) struct PartWriter<'a> {
    original: &'a Table,
    store: &'a mut dyn PartStore,
    control: &'a Control,
    /// The chunk that is made.
    csv: Vec<u8>,
}

impl<'a> PartWriter<'a> {
    pub(in crate::engine) fn new(original: &'a Table, store: &'a mut dyn PartStore, control: &'a Control) -> Self {
        Self { original, store, control, csv: Vec::new() }
    }

    /// Writes one part; returns its hash and the original types of its attributes.
    pub(in crate::engine) fn write(
        &mut self,
        table: &TableName,
        part: &Part,
        contents: &PartContents,
    ) -> Result<WrittenPart, EngineError> {
        let file = part.file(table);
        let rows = part.len as usize;
        let columns: Vec<_> = contents.columns.iter().collect();
        let writer = RowWriter::new(&columns, part.bucketed);
        if writer.null() != part.null.as_deref() {
            return Err(EngineError::bug("a part is written with another null marker than it is described with"));
        }
        let labels = contents.buckets.as_ref();

        let render =
            |first: usize, chunk: RenderedChunk| chunk.render(&writer, labels, first..(first + CHUNK_ROWS).min(rows));
        let mut hash = Sha256::new();
        self.csv.clear();
        header(part.columns.iter().map(|column| column.name.as_str()), part.bucketed, &mut self.csv);
        let mut chunk = render(0, RenderedChunk::default());
        for (number, first) in (0..rows.max(1)).step_by(CHUNK_ROWS).enumerate() {
            let (control, store) = (self.control, &mut *self.store);
            let len = rows.min(first + CHUNK_ROWS) - first;
            chunk.csv().for_each(|piece| self.csv.extend_from_slice(piece));
            let (csv, hash, chunk) = (&self.csv, &mut hash, &mut chunk);
            rayon::in_place_scope(|scope| {
                if first + CHUNK_ROWS < rows {
                    scope.spawn(|_| *chunk = render(first + CHUNK_ROWS, std::mem::take(chunk)));
                }
                scope.spawn(|_| hash.update(csv));
                store.put(&file, number as u32, first as u64, len as u32, csv)
            })?;
            control.advance(len as u64)?;
            self.csv.clear();
        }
        let kind = |(column, cells): (&PublishedColumn, &&Column)| match column.cells {
            // a suppressed cell shows no value
            CellContent::Suppressed => AttributeType::Text,
            // values of persons who left may need a wider type
            _ if part.rows == RowMeaning::TuplesAndVaryingCounterfeits => cells.domain.kind(),
            _ => self.original.column(column.attribute).domain.kind(),
        };
        let types = part.columns.iter().zip(&columns).map(kind).collect();
        Ok(WrittenPart { sha256: Some(hex(&hash.finalize())), files: Vec::new(), types })
    }
}
