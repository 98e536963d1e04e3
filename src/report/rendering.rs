//! A part in another format, made from its CSV a chunk at a time.

use std::io;

use super::counts::{DistinctRowCounter, counted};
use super::manifest_part::ManifestPart;
use super::rows::PartRows;
use crate::microdata::formats::arrow::ArrowStreamWriter;
use crate::microdata::formats::parquet::ParquetWriter;
use crate::microdata::formats::{DecimalScales, TypedColumn, TypedKind, TypedRows};
use crate::microdata::{AttributeType, CellShape};

/// The number of distinct rows in a piece of output, as for the rows of a part.
const PIECE_ROWS: u64 = 1 << 16;
const PIECE_BYTES: usize = 16 << 20;

/// What a part is streamed as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PartFormat {
    /// As it is stored.
    Csv,
    /// One JSON object a line.
    Ndjson,
    /// Parquet, a row group for each chunk.
    Parquet,
    /// An Arrow IPC stream, a record batch for each chunk.
    Arrow,
}

/// The rows of a part that are rendered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PartView {
    /// All, as they are.
    Rows,
    /// Distinct ones with their number.
    Counts,
    /// All, with an apostrophe before each cell that a spreadsheet would take for a formula. CSV only.
    Spreadsheet,
}

/// Makes a part in a format from the chunks of its CSV.
pub struct Rendering {
    part: ManifestPart,
    counting: Option<DistinctRowCounter>,
    /// Distinct rows that were not given on yet.
    held: Vec<u8>,
    given_on: u64,
    maker: FormatWriter,
    /// Whether the next chunk is the part's first, which begins with the header.
    first: bool,
    /// Whether the next piece for the maker is.
    maker_first: bool,
}

enum FormatWriter {
    Csv,
    Spreadsheet,
    Ndjson,
    Parquet(TypedRows, Box<ParquetWriter>),
    Arrow(TypedRows, Box<ArrowStreamWriter>),
}

/// The types of a part's columns, `bucket` first where there is one.
fn kinds(part: &ManifestPart) -> Vec<AttributeType> {
    let bucket = part.bucketed.then_some(AttributeType::Integer);
    let kind = |name| part.types.get(name).copied().unwrap_or(AttributeType::Text);
    bucket.into_iter().chain(part.attributes.iter().map(kind)).collect()
}

/// What the cells of a part's columns hold, `bucket` first where there is one.
fn shapes(part: &ManifestPart) -> Vec<CellShape> {
    let bucket = part.bucketed.then_some(CellShape::Exact);
    bucket.into_iter().chain(part.attributes.iter().map(|name| part.cell_shape(name))).collect()
}

/// What has to look at all chunks of a part before it can be rendered; `None` when nothing has.
#[must_use]
pub fn scales(part: &ManifestPart, format: PartFormat) -> Option<DecimalScales> {
    let typed = matches!(format, PartFormat::Parquet | PartFormat::Arrow);
    let columns: Vec<_> = kinds(part).into_iter().zip(shapes(part)).collect();
    let scales = DecimalScales::new(&columns, part.null.as_deref());
    (typed && scales.needed()).then_some(scales)
}

impl Rendering {
    /// A view of a part in a format; `scales` is what [`scales`] gave, after it saw all chunks.
    /// `None` when rows cannot be counted because the part has a column named `count`, or for a view that the format does not have.
    ///
    /// # Errors
    /// When the format cannot hold such columns.
    pub fn new(
        part: &ManifestPart,
        format: PartFormat,
        view: PartView,
        scales: Option<&DecimalScales>,
    ) -> io::Result<Option<Self>> {
        let counts = view == PartView::Counts;
        let counting = counts.then(|| DistinctRowCounter::new(part));
        let shown = if counts { counted(part) } else { Some(part.clone()) };
        let Some(shown) = shown else { return Ok(None) };
        let typed = || {
            let found = scales.map(DecimalScales::found).unwrap_or_default();
            let names =
                shown.bucketed.then_some("bucket").into_iter().chain(shown.attributes.iter().map(String::as_str));
            let shapes = shapes(&shown);
            let column = |(index, (name, kind)): (usize, (&str, AttributeType))| TypedColumn {
                name: name.to_owned(),
                shape: shapes.get(index).copied().unwrap_or_default(),
                kind: match index {
                    0 if shown.bucketed => TypedKind::Bucket,
                    _ if counts && index + 1 == shown.attributes.len() + usize::from(shown.bucketed) => {
                        TypedKind::Count
                    }
                    _ => TypedKind::new(kind, found.get(index).copied().flatten()),
                },
            };
            let columns = names.zip(kinds(&shown)).enumerate().map(column).collect();
            TypedRows::new(columns, shown.null.as_deref())
        };
        let maker = match format {
            PartFormat::Csv if view == PartView::Spreadsheet => FormatWriter::Spreadsheet,
            _ if view == PartView::Spreadsheet => return Ok(None),
            PartFormat::Csv => FormatWriter::Csv,
            PartFormat::Ndjson => FormatWriter::Ndjson,
            PartFormat::Parquet => {
                let rows = typed();
                let writer = ParquetWriter::new(rows.schema().clone())?;
                FormatWriter::Parquet(rows, Box::new(writer))
            }
            PartFormat::Arrow => {
                let rows = typed();
                let writer = ArrowStreamWriter::new(rows.schema())?;
                FormatWriter::Arrow(rows, Box::new(writer))
            }
        };
        let held = Vec::new();
        Ok(Some(Self { part: shown, counting, held, given_on: 0, maker, first: true, maker_first: true }))
    }

    /// Takes the next chunk of the CSV and gives the next bytes, which may be none.
    ///
    /// # Errors
    /// When the chunk is not what the part says it is.
    pub fn chunk(&mut self, csv: Vec<u8>) -> io::Result<Vec<u8>> {
        let first = std::mem::take(&mut self.first);
        let Some(counting) = &mut self.counting else { return self.piece(csv) };
        counting.lines(&csv, first, &mut self.held)?;
        if counting.written() - self.given_on < PIECE_ROWS && self.held.len() < PIECE_BYTES {
            return Ok(Vec::new());
        }
        self.given_on = counting.written();
        let piece = std::mem::take(&mut self.held);
        self.piece(piece)
    }

    /// The last bytes.
    ///
    /// # Errors
    /// Never in practice.
    pub fn finish(&mut self) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        if let Some(counting) = &mut self.counting {
            counting.finish(&mut self.held);
            let piece = std::mem::take(&mut self.held);
            out = self.piece(piece)?;
        }
        match &mut self.maker {
            FormatWriter::Csv | FormatWriter::Spreadsheet | FormatWriter::Ndjson => {}
            FormatWriter::Parquet(_, writer) => {
                writer.finish()?;
                out.append(&mut writer.take());
            }
            FormatWriter::Arrow(_, writer) => {
                writer.finish()?;
                out.append(&mut writer.take());
            }
        }
        Ok(out)
    }

    fn piece(&mut self, csv: Vec<u8>) -> io::Result<Vec<u8>> {
        let header = std::mem::take(&mut self.maker_first);
        match &mut self.maker {
            FormatWriter::Csv => Ok(csv),
            FormatWriter::Spreadsheet => PartRows::new(&self.part)
                .spreadsheet(&csv)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error)),
            FormatWriter::Ndjson => {
                let rendered = PartRows::new(&self.part).ndjson(&csv, header);
                rendered.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
            }
            FormatWriter::Parquet(rows, writer) => {
                let batch = rows.batch(&csv, header)?;
                if batch.num_rows() > 0 {
                    writer.write(&batch)?;
                }
                Ok(writer.take())
            }
            FormatWriter::Arrow(rows, writer) => {
                let batch = rows.batch(&csv, header)?;
                if batch.num_rows() > 0 {
                    writer.write(&batch)?;
                }
                Ok(writer.take())
            }
        }
    }
}
