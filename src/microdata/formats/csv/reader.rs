//! Reads a CSV file into chunks.
//!
//! The first record is the header. A field that is unquoted and empty, or unquoted and equal to the `null` text, is a
//! missing value. Every record has as many fields as the header, so a blank line is a missing value in a one-column file
//! and refused in every other, at the end too.

use std::collections::VecDeque;
use std::io::{Chain, Cursor, Empty, Read};

use super::super::collect::{CHUNK_CELLS, CHUNK_VALUES};
use super::super::error::IngestError;
use super::super::input::TableReader;
use super::blocks::RecordBlocks;
use super::detect::detect_delimiter;
use super::error::{RecordError, SAVE_AS_UTF_8, other_format};
use super::options::CsvOptions;
use super::scanner::{Record, Scanner};
use crate::microdata::interner::VALUE_OVERHEAD;
use crate::microdata::limits::IngestLimits;
use crate::microdata::names::ColumnNames;
use crate::microdata::{AttributeType, CHUNK_ROWS, Chunk, ChunkColumn, Interner, Table, TableBuilder};

/// Number of bytes in which the delimiter is detected.
const DETECTION_BYTES: u64 = 64 << 10;

/// Gives the records of a CSV file as [`Chunk`]s.
pub struct CsvReader<R> {
    blocks: RecordBlocks<Chain<Cursor<Vec<u8>>, R>, ChunkScanner>,
    names: Vec<String>,
    form: RecordForm,
    /// Chunks that are still to be given, then the reason why there are no more.
    chunks: VecDeque<Chunk>,
    failure: Option<IngestError>,
    max_rows: u64,
    /// Rows of chunks that were given, and of all that were read.
    rows: u64,
    read: u64,
    done: bool,
}

/// What records must be like.
struct RecordForm {
    kinds: Vec<Option<AttributeType>>,
    null: Vec<u8>,
    chunk_rows: usize,
}

/// The columns of the chunk that is made of a block.
struct ChunkScanner {
    columns: Vec<ChunkUnderConstruction>,
}

struct ChunkUnderConstruction {
    interner: Interner,
    codes: Vec<u16>,
}

/// The chunks of a block, up to its first fault.
struct ScannedBlock {
    chunks: Vec<Chunk>,
    fault: Option<RecordFault>,
}

/// A fault; records are counted from the beginning of the block.
enum RecordFault {
    Unreadable(RecordError),
    Ragged { record: u64, byte: u64, fields: usize },
    Inadmissible { record: u64, byte: u64, column: usize, is_text: bool },
}

impl<R: Read> CsvReader<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// [`IngestError`], also when column names are empty, duplicate or too many, when a type is given for a column that
    /// does not exist, or when the delimiter is not one.
    pub fn open(mut reader: R, options: CsvOptions, limits: &IngestLimits) -> Result<Self, IngestError> {
        if options.delimiter.is_some_and(|byte| !byte.is_ascii() || b"\"\r\n".contains(&byte)) {
            return Err(in_header(None, "the delimiter must be an ASCII character other than a quote or a line end"));
        }
        let mut sample = Vec::new();
        let mut delimiter = options.delimiter;
        if delimiter.is_none() {
            reader.by_ref().take(DETECTION_BYTES).read_to_end(&mut sample)?;
            delimiter = detect_delimiter(&sample, (sample.len() as u64) < DETECTION_BYTES, limits);
        }
        let mut scanner = Scanner::new(Cursor::new(sample).chain(reader), delimiter, limits);
        let Some(record) = scanner.next_record().map_err(|error| refused(error, 0, &[]))? else {
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
        let chunk_rows = (CHUNK_CELLS / names.len()).clamp(1, CHUNK_ROWS);
        let chunk = |places: usize| ChunkScanner {
            columns: names.iter().map(|_| ChunkUnderConstruction::among(places * names.len())).collect(),
        };
        Ok(Self {
            blocks: scanner.into_blocks(limits, chunk),
            form: RecordForm { kinds, null: options.null.map(String::into_bytes).unwrap_or_default(), chunk_rows },
            names,
            chunks: VecDeque::new(),
            failure: None,
            max_rows: limits.max_rows,
            rows: 0,
            read: 0,
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
        &self.form.kinds
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
        while self.chunks.is_empty() && self.failure.is_none() && !self.done {
            self.read_blocks()?;
        }
        if let Some(chunk) = self.chunks.pop_front() {
            self.rows += u64::from(chunk.rows);
            return Ok(Some(chunk));
        }
        self.done = true;
        self.failure.take().map_or(Ok(None), Err)
    }

    fn read_blocks(&mut self) -> Result<(), IngestError> {
        let form = &self.form;
        let blocks = self.blocks.next(|scanner, block| scanner.scan(block, form)).inspect_err(|_| self.done = true)?;
        self.done = blocks.is_empty();
        for ScannedBlock { chunks, fault } in blocks {
            // the header is record 0
            let before = self.read + 1;
            for chunk in chunks {
                self.read += u64::from(chunk.rows);
                if self.read > self.max_rows {
                    let (limit, found) = (self.max_rows, self.read);
                    self.failure = Some(IngestError::TooLarge { what: "rows", limit, found, row: None });
                    return Ok(());
                }
                self.chunks.push_back(chunk);
            }
            if let Some(fault) = fault {
                self.failure = Some(fault.described(before, self));
                return Ok(());
            }
        }
        Ok(())
    }
}

impl RecordFault {
    /// The fault in a file with as many records before the block.
    #[cold]
    fn described<R>(self, before: u64, reader: &CsvReader<R>) -> IngestError {
        let (names, kinds) = (&reader.names, &reader.form.kinds);
        match self {
            Self::Unreadable(error) => refused(error, before, names),
            Self::Ragged { record, byte, fields } => {
                let detail = match fields {
                    1 => format!("one field under a header of {}", names.len()),
                    _ => format!("{fields} fields under a header of {}", names.len()),
                };
                IngestError::Malformed { row: Some(before + record), column: None, byte: Some(byte), detail }
            }
            Self::Inadmissible { record, byte, column, is_text } => {
                let kind = kinds[column].unwrap_or(AttributeType::Text);
                let detail = match is_text {
                    true => format!("the value is not of type {}", kind.name()),
                    false => format!("the value is not UTF-8; {SAVE_AS_UTF_8}"),
                };
                let column = Some(names[column].clone());
                IngestError::Malformed { row: Some(before + record), column, byte: Some(byte), detail }
            }
        }
    }
}

impl ChunkScanner {
    fn scan(&mut self, block: &mut Scanner<Empty>, form: &RecordForm) -> ScannedBlock {
        let mut chunks = Vec::new();
        loop {
            match self.chunk(block, form) {
                Ok(None) => return ScannedBlock { chunks, fault: None },
                Ok(Some(chunk)) => chunks.push(chunk),
                Err(fault) => {
                    // what was begun of a chunk is lost
                    self.columns.iter_mut().for_each(|column| drop(column.finish()));
                    return ScannedBlock { chunks, fault: Some(fault) };
                }
            }
        }
    }

    /// The next chunk of a block; `None` at its end.
    fn chunk(&mut self, block: &mut Scanner<Empty>, form: &RecordForm) -> Result<Option<Chunk>, RecordFault> {
        let mut rows = 0;
        let mut values = 0;
        while let Some(record) = block.next_record().map_err(RecordFault::Unreadable)? {
            if record.len() != self.columns.len() {
                let (record, byte, fields) = (record.number(), record.byte(), record.len());
                return Err(RecordFault::Ragged { record, byte, fields });
            }
            for (index, ((field, quoted, ends), column)) in record.iter_with_ends().zip(&mut self.columns).enumerate() {
                let code = if !quoted && (field.is_empty() || field == form.null) {
                    0
                } else {
                    let known = column.interner.len() as u32;
                    let code = column.interner.intern_with(field, ends);
                    if code == known {
                        if !form.kinds[index].unwrap_or(AttributeType::Text).admits(field) {
                            return Err(inadmissible(&record, index, field));
                        }
                        values += field.len() + VALUE_OVERHEAD;
                    }
                    code as u16 + 1
                };
                column.codes.push(code);
            }
            rows += 1;
            if rows == form.chunk_rows || values > CHUNK_VALUES {
                break;
            }
        }
        if rows == 0 {
            return Ok(None);
        }
        let columns = self.columns.iter_mut().map(ChunkUnderConstruction::finish).collect();
        Ok(Some(Chunk { rows: rows as u32, columns }))
    }
}

impl ChunkUnderConstruction {
    fn among(columns: usize) -> Self {
        Self { interner: Interner::among(columns), codes: Vec::new() }
    }

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
    limits: &IngestLimits,
) -> Result<Table, IngestError> {
    let all: Vec<usize> = (0..reader.names().len()).collect();
    let positions = positions.unwrap_or(&all);
    let names = positions.iter().map(|&at| reader.names()[at].clone()).collect();
    let kinds = positions.iter().map(|&at| reader.kinds()[at]).collect();
    let mut builder = TableBuilder::new(names, kinds, limits);
    while let Some(chunk) = reader.next_chunk()? {
        builder.push(positions.iter().map(|&at| &chunk.columns[at]))?;
    }
    Ok(builder.finish())
}

fn header_names(record: Record<'_>, limits: &IngestLimits) -> Result<Vec<String>, IngestError> {
    if record.len() as u64 > limits.max_columns {
        return Err(IngestError::TooManyColumns { limit: limits.max_columns, found: record.len() as u64 });
    }
    let first = record.iter().next().map_or(&[][..], |(field, _)| field);
    if let Some(other) = other_format(first) {
        return Err(in_header(Some(0), other));
    }
    let (mut names, mut known) = (Vec::with_capacity(record.len()), ColumnNames::default());
    for (index, (field, _)) in record.iter().enumerate() {
        let position = index + 1;
        let byte = Some(record.field_byte(index));
        match std::str::from_utf8(field) {
            Ok(name) => {
                known.add(name).map_err(|detail| in_header(byte, &detail))?;
                names.push(name.to_owned());
            }
            Err(_) => {
                return Err(in_header(byte, &format!("the name of column {position} is not UTF-8; {SAVE_AS_UTF_8}")));
            }
        }
    }
    Ok(names)
}

fn in_header(byte: Option<u64>, detail: &str) -> IngestError {
    IngestError::Malformed { row: None, column: None, byte, detail: detail.to_owned() }
}

/// The refusal of a file with as many records before those of the error.
#[cold]
fn refused(error: RecordError, before: u64, names: &[String]) -> IngestError {
    match error {
        RecordError::Malformed { record, byte, field, fault } => IngestError::Malformed {
            row: (before + record > 0).then_some(before + record),
            column: names.get(field).cloned(),
            byte: Some(byte),
            detail: fault.to_string(),
        },
        RecordError::TooLarge { record, what, limit, found, .. } => {
            let what = if what == "field" { "bytes of a field" } else { "bytes of a record" };
            IngestError::TooLarge { what, limit, found, row: Some(before + record) }
        }
        RecordError::Io(error) => error.into(),
    }
}

#[cold]
fn inadmissible(record: &Record<'_>, column: usize, field: &[u8]) -> RecordFault {
    let (byte, is_text) = (record.field_byte(column), std::str::from_utf8(field).is_ok());
    RecordFault::Inadmissible { record: record.number(), byte, column, is_text }
}

impl<R: Read + Send> TableReader for CsvReader<R> {
    fn names(&self) -> &[String] {
        Self::names(self)
    }

    fn kinds(&self) -> Vec<Option<AttributeType>> {
        Self::kinds(self).to_vec()
    }

    fn next_chunk(&mut self) -> Result<Option<Chunk>, IngestError> {
        Self::next_chunk(self)
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::microdata::formats::{Encoding, compression};

    fn open(input: &str, options: CsvOptions) -> Result<CsvReader<&[u8]>, IngestError> {
        CsvReader::open(input.as_bytes(), options, &IngestLimits::default())
    }

    fn read_as(input: &str, options: CsvOptions) -> Result<Table, IngestError> {
        read_table(&mut open(input, options)?, None, &IngestLimits::default())
    }

    fn read(input: &str) -> Result<Table, IngestError> {
        read_as(input, CsvOptions::default())
    }

    /// Missing values as `-`.
    fn shown(table: &Table) -> Vec<String> {
        let cell = |row, attr| match table.column(attr).value(row) {
            Some(value) => String::from_utf8(value.to_vec()).unwrap(),
            None => "-".to_owned(),
        };
        let row = |row| table.attributes().iter().map(|attr| cell(row, attr)).collect::<Vec<_>>().join("|");
        (0..table.rows()).map(row).collect()
    }

    /// Row, column, byte and detail.
    fn malformed(result: Result<Table, IngestError>) -> (Option<u64>, Option<String>, Option<u64>, String) {
        match result {
            Err(IngestError::Malformed { row, column, byte, detail }) => (row, column, byte, detail),
            other => panic!("{other:?}"),
        }
    }

    fn typed(name: &str, kind: AttributeType) -> CsvOptions {
        CsvOptions { types: vec![(name.to_owned(), kind)], ..CsvOptions::default() }
    }

    #[test]
    fn quoted_empty_is_a_value_and_unquoted_empty_is_missing() {
        let table = read("a,b\n,\"\"\n\"\",\n").unwrap();
        assert_eq!(shown(&table), ["-|", "|-"]);
        assert!(table.column(0.into()).domain.has_missing());
    }

    #[test]
    fn the_null_text_is_missing_unless_quoted() {
        let options = CsvOptions { null: Some("NA".to_owned()), ..CsvOptions::default() };
        assert_eq!(shown(&read_as("a,b\nNA,\n\"NA\",NAN\n", options).unwrap()), ["-|-", "NA|NAN"]);
    }

    #[test]
    fn blank_lines_are_missing_values_of_one_column() {
        assert_eq!(shown(&read("a\nx\n\n\r\ny").unwrap()), ["x", "-", "-", "y"]);
        assert_eq!(shown(&read("a\n\n").unwrap()), ["-"]);
        assert_eq!(malformed(read("a,b\n1,2\n\n")).0, Some(2));
        assert_eq!(malformed(read("a,b\n1,2\n\n3,4\n")).0, Some(2));
    }

    #[test]
    fn one_column_files_have_no_delimiter() {
        assert_eq!(shown(&read("name\nSmith, John\n").unwrap()), ["Smith, John"]);
        let comma = CsvOptions { delimiter: Some(b','), ..CsvOptions::default() };
        assert_eq!(malformed(read_as("name\nSmith, John\n", comma)).0, Some(1));
    }

    #[test]
    fn line_ends_marks_and_delimiters() {
        assert_eq!(shown(&read("\u{feff}a;b\r\n1,5;x\r\n").unwrap()), ["1,5|x"]);
        assert_eq!(read("\u{feff}a;b\r\n").unwrap().names(), ["a", "b"]);
        let given =
            |delimiter| read_as("a-b\n1-2\n", CsvOptions { delimiter: Some(delimiter), ..CsvOptions::default() });
        assert_eq!(shown(&given(b'-').unwrap()), ["1|2"]);
        for delimiter in [b'"', b'\n', b'\r', 0x80] {
            assert!(malformed(given(delimiter)).3.contains("delimiter"));
        }
    }

    #[test]
    fn ragged_records_are_named_by_row_and_byte() {
        let found = malformed(read("a,b\n1,2\n3\n"));
        assert_eq!(found, (Some(2), None, Some(8), "one field under a header of 2".to_owned()));
        assert_eq!(malformed(read("a,b\n1,2,\n")).0, Some(1));
    }

    #[test]
    fn headers_have_distinct_names() {
        assert_eq!(malformed(read("a,b,a\n")).3, "columns 1 and 3 have the same name");
        assert_eq!(malformed(read("a,,b\n")).3, "column 2 has no name");
        assert!(malformed(read("\"\"\n")).3.starts_with("column 1 has no name; are these row numbers?"));
        let header = vec!["x"; 1025].join(",");
        assert!(matches!(read(&header), Err(IngestError::TooManyColumns { limit: 1024, found: 1025 })));
        assert!(matches!(read(""), Err(IngestError::Empty)));
        assert!(matches!(read("\u{feff}"), Err(IngestError::Empty)));
        assert_eq!(read("a,b\n").unwrap().rows(), 0);
        assert_eq!(
            malformed(
                CsvReader::open(&b"a,\xFF\n"[..], CsvOptions::default(), &IngestLimits::default())
                    .map(|_| unreachable!())
            )
            .2,
            Some(2)
        );
    }

    #[test]
    fn files_of_other_formats_are_named() {
        let refused = |bytes: &'static [u8]| {
            let opened = CsvReader::open(bytes, CsvOptions::default(), &IngestLimits::default());
            malformed(opened.map(|_| unreachable!())).3
        };
        let utf_16: &[u8] = b"\xFF\xFEa\0,\0b\0\n\0";
        for (bytes, what) in [(utf_16, "UTF-16"), (b"PAR1\x15\x04\n", "Parquet"), (b"PK\x03\x04\n", "workbook")] {
            assert!(refused(bytes).contains(what), "{what}");
        }
        assert!(refused(b"caf\xE9,b\n").contains("save the file as UTF-8"));
    }

    #[test]
    fn text_is_utf_8() {
        let read = |input: &[u8]| {
            let mut reader = CsvReader::open(input, CsvOptions::default(), &IngestLimits::default()).unwrap();
            read_table(&mut reader, None, &IngestLimits::default())
        };
        let found = malformed(read(b"a,b\n1,\xC3\xA9\n2,\xC3\n\xA9,3\n"));
        assert_eq!(
            found,
            (Some(2), Some("b".to_owned()), Some(11), format!("the value is not UTF-8; {SAVE_AS_UTF_8}"))
        );
    }

    #[test]
    fn malformed_records_are_named() {
        let (row, column, byte, detail) = malformed(read("a,b\n1,2\n1,\"2\n"));
        assert_eq!((row, column.as_deref(), byte), (Some(2), Some("b"), Some(13)));
        assert!(detail.contains("never closed"));
        let (row, column, byte, _) = malformed(read("a,b\n1,2\n1,2\"\n"));
        assert_eq!((row, column.as_deref(), byte), (Some(2), Some("b"), Some(11)));
    }

    #[test]
    fn types_may_be_given() {
        let table = read_as("zip\n02139\n10\n9\n", typed("zip", AttributeType::Text)).unwrap();
        assert_eq!(table.column(0.into()).domain.value(0), Some(&b"02139"[..]));
        let table = read_as("n\n10\n9\n", typed("n", AttributeType::Text)).unwrap();
        assert_eq!(table.column(0.into()).domain.value(0), Some(&b"10"[..]));
        let found = malformed(read_as("a,age\nx,37\nx,\nx,4\u{20}\n", typed("age", AttributeType::Integer)));
        assert_eq!(found, (Some(3), Some("age".to_owned()), Some(16), "the value is not of type integer".to_owned()));
        // out of 64 bits
        let found = read_as("n\n9223372036854775808\n", typed("n", AttributeType::Integer));
        assert_eq!(malformed(found).0, Some(1));
        let unknown = read_as("a\n1\n", typed("b", AttributeType::Text));
        assert!(matches!(unknown, Err(IngestError::UnknownTypeColumn(name)) if name == "b"));
    }

    #[test]
    fn chunks_are_bounded_in_rows_and_bytes() {
        let input = format!("a\n{}", "x\n".repeat(CHUNK_ROWS + 1));
        let mut reader = open(&input, CsvOptions::default()).unwrap();
        assert_eq!(reader.next_chunk().unwrap().unwrap().rows as usize, CHUNK_ROWS);
        assert_eq!(reader.next_chunk().unwrap().unwrap().rows, 1);
        assert_eq!((reader.next_chunk().unwrap(), reader.rows()), (None, CHUNK_ROWS as u64 + 1));

        let rows: Vec<String> = (0..1000).map(|row| format!("{row:060000}\n")).collect();
        let input = format!("a\n{}", rows.concat());
        let mut reader = open(&input, CsvOptions::default()).unwrap();
        let first = reader.next_chunk().unwrap().unwrap();
        assert!(first.rows < 150 && first.columns[0].values().size() < CHUNK_VALUES + 60_000);
        assert_eq!(read(&input).unwrap().rows(), 1000);
    }

    #[test]
    fn limits_hold() {
        let limited = |limits: IngestLimits| {
            let mut reader = CsvReader::open(&b"a,b\n1,2\n3,4\n"[..], CsvOptions::default(), &limits)?;
            read_table(&mut reader, None, &limits)
        };
        let what = |limits| match limited(limits) {
            Err(IngestError::TooLarge { what, limit, .. }) => (what, limit),
            other => panic!("{other:?}"),
        };
        assert_eq!(what(IngestLimits { max_rows: 1, ..IngestLimits::default() }), ("rows", 1));
        assert_eq!(
            what(IngestLimits { max_distinct: 1, ..IngestLimits::default() }),
            ("distinct values of a column", 1)
        );
        assert_eq!(what(IngestLimits { max_record_bytes: 2, ..IngestLimits::default() }), ("bytes of a record", 2));
        assert_eq!(what(IngestLimits { max_field_bytes: 0, ..IngestLimits::default() }), ("bytes of a field", 0));
    }

    #[test]
    fn some_columns_suffice() {
        let mut reader = open("a,b,c\n1,2,3\n4,,6\n", CsvOptions::default()).unwrap();
        let table = read_table(&mut reader, Some(&[1, 2]), &IngestLimits::default()).unwrap();
        assert_eq!(
            (table.names(), shown(&table)),
            (&["b".to_owned(), "c".to_owned()][..], vec!["2|3".to_owned(), "-|6".to_owned()])
        );
    }

    #[test]
    fn damaged_compression_differs_from_a_lost_input() {
        let mut rows = "a,b\n".to_owned();
        (0..40_000_u32).for_each(|row| rows += &format!("{},x\n", row.wrapping_mul(2_654_435_761)));
        let mut encoder = flate2::read::GzEncoder::new(rows.as_bytes(), flate2::Compression::fast());
        let mut bytes = Vec::new();
        encoder.read_to_end(&mut bytes).unwrap();
        let read = |input: Box<dyn Read + Send>| {
            let input = compression::decoder(input, Encoding::Gzip, &IngestLimits::default())?;
            let mut reader = CsvReader::open(input, CsvOptions::default(), &IngestLimits::default())?;
            read_table(&mut reader, None, &IngestLimits::default())
        };
        assert_eq!(read(Box::new(Cursor::new(bytes.clone()))).unwrap().rows(), 40_000);
        bytes.truncate(bytes.len() - 9);
        assert_eq!(malformed(read(Box::new(Cursor::new(bytes)))).3, "the gzip stream is damaged or truncated");
        let lost = read(Box::new(io::Cursor::new(vec![0x1F, 0x8B]).chain(Lost)));
        assert!(matches!(lost, Err(IngestError::Io(error)) if error.kind() == io::ErrorKind::TimedOut));
    }

    struct Lost;

    impl Read for Lost {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::ErrorKind::TimedOut.into())
        }
    }
}
