//! Reads a CSV file into chunks.
//!
//! The first record is the header. A field that is unquoted and empty, or unquoted and equal to the `null` text, is a
//! missing value. Every record has as many fields as the header, so a blank line is a missing value in a one-column file
//! and refused in every other, at the end too.

use std::collections::HashSet;
use std::io::{Chain, Cursor, Read};

use super::super::{IngestError, Limits};
use super::detect::detect_delimiter;
use super::scanner::{Record, ScanError, Scanner};
use crate::microdata::{AttributeType, CHUNK_ROWS, Chunk, ChunkColumn, Interner, Table, TableBuilder};

/// The delimiter is detected in so many bytes.
const SAMPLE: u64 = 64 << 10;
/// A chunk ends early when its dictionaries take so many bytes, so that memory is bounded whatever the values.
const CHUNK_VALUES: usize = 32 << 20;
/// Memory for a distinct value beside its bytes.
const VALUE_OVERHEAD: usize = 24;
/// The most codes of a chunk, over all its columns.
const CHUNK_CELLS: usize = 16 << 20;

/// How a CSV file is to be understood.
#[derive(Clone, Debug, Default)]
pub struct CsvOptions {
    /// Any ASCII byte but a quote and the line ends; detected by [`detect_delimiter`] when not given.
    pub delimiter: Option<u8>,
    /// A further text that, unquoted, stands for a missing value.
    pub null: Option<String>,
    /// Types of columns by name; all others are inferred from their values.
    pub types: Vec<(String, AttributeType)>,
}

/// Gives the records of a CSV file as [`Chunk`]s.
pub struct CsvReader<R> {
    scanner: Scanner<Chain<Cursor<Vec<u8>>, R>>,
    names: Vec<String>,
    kinds: Vec<Option<AttributeType>>,
    null: Option<Vec<u8>>,
    columns: Vec<Building>,
    chunk_rows: usize,
    max_rows: u64,
    rows: u64,
    done: bool,
}

#[derive(Default)]
struct Building {
    interner: Interner,
    codes: Vec<u16>,
}

impl<R: Read> CsvReader<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// [`IngestError`], also when column names are empty, duplicate or too many, when a type is given for a column that
    /// does not exist, or when the delimiter is not one.
    pub fn open(mut reader: R, options: CsvOptions, limits: &Limits) -> Result<Self, IngestError> {
        if options.delimiter.is_some_and(|byte| !byte.is_ascii() || b"\"\r\n".contains(&byte)) {
            return Err(in_header(None, "the delimiter must be an ASCII character other than a quote or a line end"));
        }
        let mut sample = Vec::new();
        let mut delimiter = options.delimiter;
        if delimiter.is_none() {
            reader.by_ref().take(SAMPLE).read_to_end(&mut sample)?;
            delimiter = detect_delimiter(&sample, (sample.len() as u64) < SAMPLE, limits);
        }
        let mut scanner = Scanner::new(Cursor::new(sample).chain(reader), delimiter, limits);
        let Some(record) = scanner.next_record().map_err(|error| refused(error, &[]))? else {
            return Err(IngestError::Empty);
        };
        let names = header_names(record, limits)?;
        let mut kinds = vec![None; names.len()];
        for (name, kind) in options.types {
            let Some(index) = names.iter().position(|known| *known == name) else {
                return Err(IngestError::UnknownTypeColumn(name));
            };
            kinds[index] = Some(kind);
        }
        Ok(Self {
            scanner,
            columns: names.iter().map(|_| Building::default()).collect(),
            chunk_rows: (CHUNK_CELLS / names.len()).clamp(1, CHUNK_ROWS),
            names,
            kinds,
            null: options.null.map(String::into_bytes),
            max_rows: limits.max_rows,
            rows: 0,
            done: false,
        })
    }

    /// The names of the columns, distinct and not empty.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The types that were given, per column.
    #[must_use]
    pub fn kinds(&self) -> &[Option<AttributeType>] {
        &self.kinds
    }

    /// How many rows were read so far.
    #[must_use]
    pub const fn rows(&self) -> u64 {
        self.rows
    }

    /// The next rows, at least one; `None` at the end, and after an error.
    ///
    /// # Errors
    /// [`IngestError`]; rows read since the chunk before are lost.
    pub fn next_chunk(&mut self) -> Result<Option<Chunk>, IngestError> {
        if self.done {
            return Ok(None);
        }
        self.done = true;
        let mut rows = 0;
        let mut values = 0;
        let mut ended = true;
        while let Some(record) = self.scanner.next_record().map_err(|error| refused(error, &self.names))? {
            if record.len() != self.columns.len() {
                return Err(ragged(&record, self.columns.len()));
            }
            let null = self.null.as_deref().unwrap_or_default();
            for (index, ((field, quoted), column)) in record.iter().zip(&mut self.columns).enumerate() {
                let code = if !quoted && (field.is_empty() || field == null) {
                    0
                } else {
                    let known = column.interner.len() as u32;
                    let code = column.interner.intern(field);
                    if code == known {
                        let kind = self.kinds[index].unwrap_or(AttributeType::Text);
                        if !kind.admits(field) {
                            return Err(inadmissible(&record, index, field, kind, &self.names));
                        }
                        values += field.len() + VALUE_OVERHEAD;
                    }
                    code as u16 + 1
                };
                column.codes.push(code);
            }
            rows += 1;
            if rows == self.chunk_rows || values > CHUNK_VALUES {
                ended = false;
                break;
            }
        }
        self.rows += rows as u64;
        if self.rows > self.max_rows {
            return Err(IngestError::TooLarge { what: "rows", limit: self.max_rows, found: self.rows });
        }
        self.done = ended;
        if rows == 0 {
            return Ok(None);
        }
        let columns = self.columns.iter_mut().map(Building::finish).collect();
        Ok(Some(Chunk { rows: rows as u32, columns }))
    }
}

impl Building {
    fn finish(&mut self) -> ChunkColumn {
        let column = ChunkColumn::new(self.interner.take(), &self.codes);
        self.codes.clear();
        column
    }
}

/// Reads all rows of the columns at `positions` (all columns when `None`) into a table.
///
/// # Errors
/// [`IngestError`], also when a column has more distinct values than `limits` allow.
///
/// # Panics
/// When a position is not below the number of columns.
pub fn read_table<R: Read>(
    reader: &mut CsvReader<R>,
    positions: Option<&[usize]>,
    limits: &Limits,
) -> Result<Table, IngestError> {
    let all: Vec<usize> = (0..reader.names().len()).collect();
    let positions = positions.unwrap_or(&all);
    let names = positions.iter().map(|&at| reader.names()[at].clone()).collect();
    let kinds = positions.iter().map(|&at| reader.kinds()[at]).collect();
    let mut builder = TableBuilder::new(names, kinds, limits.max_distinct);
    while let Some(chunk) = reader.next_chunk()? {
        builder.push(positions.iter().map(|&at| &chunk.columns[at]))?;
    }
    Ok(builder.finish())
}

fn header_names(record: Record<'_>, limits: &Limits) -> Result<Vec<String>, IngestError> {
    if record.len() as u64 > limits.max_columns {
        return Err(IngestError::TooManyColumns { limit: limits.max_columns, found: record.len() as u64 });
    }
    let mut names = Vec::with_capacity(record.len());
    for (index, (field, _)) in record.iter().enumerate() {
        let position = index + 1;
        let byte = Some(record.field_byte(index));
        match std::str::from_utf8(field) {
            Ok("") => return Err(in_header(byte, &format!("column {position} has no name"))),
            Ok(name) => names.push(name.to_owned()),
            Err(_) => return Err(in_header(byte, &format!("the name of column {position} is not UTF-8"))),
        }
    }
    let mut seen = HashSet::new();
    if let Some(twice) = names.iter().find(|name| !seen.insert(name.as_str())) {
        return Err(in_header(None, &format!("two columns are named {twice:?}")));
    }
    Ok(names)
}

fn in_header(byte: Option<u64>, detail: &str) -> IngestError {
    IngestError::Malformed { row: None, column: None, byte, detail: detail.to_owned() }
}

#[cold]
fn refused(error: ScanError, names: &[String]) -> IngestError {
    match error {
        ScanError::Malformed { record, byte, field, fault } => IngestError::Malformed {
            row: (record > 0).then_some(record),
            column: names.get(field).cloned(),
            byte: Some(byte),
            detail: fault.to_string(),
        },
        ScanError::TooLarge { what, limit, found, .. } => {
            let what = if what == "field" { "bytes of a field" } else { "bytes of a record" };
            IngestError::TooLarge { what, limit, found }
        }
        ScanError::Io(error) => error.into(),
    }
}

#[cold]
fn ragged(record: &Record<'_>, columns: usize) -> IngestError {
    let detail = format!("{} fields under a header of {columns}", record.len());
    IngestError::Malformed { row: Some(record.number()), column: None, byte: Some(record.byte()), detail }
}

#[cold]
fn inadmissible(record: &Record<'_>, index: usize, field: &[u8], kind: AttributeType, names: &[String]) -> IngestError {
    let detail = match std::str::from_utf8(field) {
        Ok(_) => format!("the value is not of type {}", kind.name()),
        Err(_) => "the value is not UTF-8".to_owned(),
    };
    let byte = Some(record.field_byte(index));
    IngestError::Malformed { row: Some(record.number()), column: Some(names[index].clone()), byte, detail }
}
