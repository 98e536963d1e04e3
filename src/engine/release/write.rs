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

/// The CSV of a chunk in pieces, each made by a processor.
#[derive(Default)]
struct RenderedChunk(Vec<Vec<u8>>);

impl RenderedChunk {
    /// Renders rows after `head`.
    fn render(writer: &RowWriter<'_>, labels: Option<&BucketColumn>, rows: Range<usize>, head: Vec<u8>) -> Self {
        let pieces: Vec<Range<usize>> =
            rows.clone().step_by(PIECE_ROWS).map(|first| first..(first + PIECE_ROWS).min(rows.end)).collect();
        let rendered = pieces.into_par_iter().map(|rows| {
            let mut csv = Vec::new();
            match labels {
                Some(labels) => writer.write(labels.of_rows(rows), &mut csv),
                None => writer.write(std::iter::once(LabelledRows { label: None, rows }), &mut csv),
            }
            csv
        });
        Self(std::iter::once(head).chain(rendered.collect::<Vec<_>>()).collect())
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

        let mut head = Vec::new();
        header(part.columns.iter().map(|column| column.name.as_str()), part.bucketed, &mut head);
        let render = |first: usize, head: Vec<u8>| {
            RenderedChunk::render(&writer, labels, first..(first + CHUNK_ROWS).min(rows), head)
        };
        let mut hash = Sha256::new();
        let mut chunk = render(0, head);
        for (number, first) in (0..rows.max(1)).step_by(CHUNK_ROWS).enumerate() {
            let mut next = None;
            let (control, store) = (self.control, &mut *self.store);
            let len = rows.min(first + CHUNK_ROWS) - first;
            self.csv.clear();
            chunk.0.iter().for_each(|piece| self.csv.extend_from_slice(piece));
            let (csv, hash) = (&self.csv, &mut hash);
            rayon::in_place_scope(|scope| {
                if first + CHUNK_ROWS < rows {
                    scope.spawn(|_| next = Some(render(first + CHUNK_ROWS, Vec::new())));
                }
                scope.spawn(|_| hash.update(csv));
                store.put(&file, number as u32, first as u64, len as u32, csv)
            })?;
            control.advance(len as u64)?;
            chunk = next.unwrap_or_default();
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
