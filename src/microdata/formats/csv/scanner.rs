//! A streaming scanner of RFC 4180 records that separates quoted fields from unquoted ones.
//!
//! What it accepts: records end with LF or CR LF, the last one also with the end of the input; a field that begins with a
//! quote ends with one, and a quote inside it is doubled; a UTF-8 byte order mark at the very beginning is skipped. What it
//! refuses, because readers disagree about it: a quote inside an unquoted field, text after a closing quote, a CR without an
//! LF outside quotes (at the very end of the input it counts as CR LF), and a quote that is never closed.
//!
//! The input is classified 64 bytes at a time into a bit mask of delimiters, quotes and line ends, so that the cost of a
//! field hardly depends on its length. A record that reaches past the buffer is begun again after a refill; refills at
//! least double what is buffered of it, so this stays linear.
//!
//! Rows of a class begin with the same long cells. A record that begins as the one before has the same first fields: they are neither
//! looked for nor undoubled again.

use std::io::{self, Empty, Read};

use super::blocks::{RecordBlock, RecordBlocks, UnreadBytes};
use super::error::{CsvFault, RecordError};
use super::marks::{BLOCK, QUOTE, StructuralIndex};
use super::repeated::{MIN_REPEATED_BYTES, RepeatedFields, equal_bytes};
use crate::microdata::{IngestLimits, ValueKey};

const BOM: &[u8] = b"\xEF\xBB\xBF";
const BUFFER: usize = 128 << 10;

/// The bytes of a field in the buffer: of this record, or of an earlier one with the same field.
#[derive(Clone, Copy, Debug)]
struct Field {
    start: u32,
    end: u32,
    quoted: bool,
}

/// Reads records one after the other, without an allocation per record.
pub struct Scanner<R> {
    reader: R,
    delimiter: u8,
    field_limit: usize,
    record_limit: usize,
    /// At least one block longer than `filled`.
    buffer: Vec<u8>,
    filled: usize,
    ended: bool,
    /// How many bytes of the input came before the buffer.
    before: u64,
    /// The beginning of the next record in the buffer, and the marks from there on of the block at `base`.
    position: usize,
    base: usize,
    mask: u64,
    fields: Vec<Field>,
    /// How the next record begins.
    repeated: RepeatedFields,
    /// Where what follows each repeated field begins, in bytes from the beginning of the record.
    ends: Vec<u32>,
    /// Fields with doubled quotes in the record under way.
    doubled: Vec<u32>,
    record: u64,
    started: bool,
}

/// The fields of one record.
#[derive(Clone, Copy)]
pub struct Record<'a> {
    buffer: &'a [u8],
    fields: &'a [Field],
    /// [`Scanner::ends`] of its repeated fields.
    ends: &'a [u32],
    number: u64,
    before: u64,
    start: usize,
}

impl<'a> Record<'a> {
    /// How many fields there are, at least one.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.fields.len()
    }

    /// Never: a blank line is a record of one empty field.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// The number of the record, the first one (a header) being 0.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// Where the record begins, in bytes from the beginning of the input.
    #[must_use]
    pub const fn byte(&self) -> u64 {
        self.before + self.start as u64
    }

    /// Where field `index` begins (inside its quotes), in bytes from the beginning of the input.
    #[must_use]
    pub fn field_byte(&self, index: usize) -> u64 {
        let field = self.fields[index];
        if index >= self.ends.len() {
            return self.before + u64::from(field.start);
        }
        let begin = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.byte() + u64::from(begin) + u64::from(field.quoted)
    }

    /// The bytes of the fields, with quotes removed, and whether each was quoted.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8], bool)> + use<'a> {
        let buffer = self.buffer;
        self.fields.iter().map(move |field| (&buffer[field.start as usize..field.end as usize], field.quoted))
    }

    /// The same, with the ends of the bytes.
    #[inline]
    pub fn iter_with_ends(&self) -> impl Iterator<Item = (&'a [u8], bool, ValueKey)> + use<'a> {
        let buffer = self.buffer;
        self.fields.iter().map(move |field| {
            let (start, end) = (field.start as usize, field.end as usize);
            (&buffer[start..end], field.quoted, ValueKey::within(buffer, start, end))
        })
    }
}

impl Scanner<Empty> {
    /// A scanner of a block of records.
    pub(super) fn of_block(block: RecordBlock, delimiter: u8, limits: &IngestLimits) -> Self {
        let RecordBlock { bytes: mut buffer, before, is_cut } = block;
        let filled = buffer.len();
        buffer.resize(filled + BLOCK, 0);
        let mut scanner = Self {
            before,
            started: true,
            ended: !is_cut,
            ..Self::with_buffer(io::empty(), buffer, Some(delimiter), limits)
        };
        scanner.filled = filled;
        scanner.begin_marks();
        scanner
    }

    /// The memory of the block, to be used again.
    pub(super) fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }
}

enum Step {
    Record,
    More,
    Fault { at: usize, fault: CsvFault },
}

impl<R: Read> Scanner<R> {
    /// A scanner of `reader`. Without a `delimiter` every record has one field. A delimiter is any ASCII byte but a quote
    /// and the line ends; the caller sees to that.
    pub fn new(reader: R, delimiter: Option<u8>, limits: &IngestLimits) -> Self {
        Self::with_buffer(reader, vec![0; BUFFER + BLOCK], delimiter, limits)
    }

    fn with_buffer(reader: R, buffer: Vec<u8>, delimiter: Option<u8>, limits: &IngestLimits) -> Self {
        let bounded = |limit: u64| limit.min(1 << 30) as usize;
        Self {
            reader,
            delimiter: delimiter.unwrap_or(b'\n'),
            field_limit: bounded(limits.max_field_bytes),
            record_limit: bounded(limits.max_record_bytes),
            buffer,
            filled: 0,
            ended: false,
            before: 0,
            position: 0,
            base: 0,
            mask: 0,
            fields: Vec::new(),
            repeated: RepeatedFields::default(),
            ends: Vec::new(),
            doubled: Vec::new(),
            record: 0,
            started: false,
        }
    }

    /// The next record; `None` at the end.
    ///
    /// # Errors
    /// [`RecordError`]; the scanner must not be used afterwards.
    #[inline]
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, RecordError> {
        let start = loop {
            let start = self.position;
            match self.step() {
                Step::Record => break start,
                Step::Fault { at, fault } => return Err(self.malformed(at, fault)),
                Step::More if self.ended => {
                    if self.filled == start {
                        return Ok(None);
                    }
                    return Err(self.malformed(self.filled, CsvFault::UnclosedQuote));
                }
                Step::More => self.refill()?,
            }
        };
        let length = self.position - start;
        if length > self.field_limit.min(self.record_limit) {
            self.check_sizes(start, length)?;
        }
        let repeated = self.ends.len();
        if length >= MIN_REPEATED_BYTES {
            self.repeated = self.repeated(start);
        }
        if !self.doubled.is_empty() {
            self.unescape();
        }
        let number = self.record;
        self.record += 1;
        let ends = &self.ends[..repeated];
        Ok(Some(Record { buffer: &self.buffer, fields: &self.fields, ends, number, before: self.before, start }))
    }

    /// Finds the fields of the record at `position` and moves behind it, or leaves everything as it was.
    #[inline]
    fn step(&mut self) -> Step {
        let Self { buffer, fields, filled, delimiter, .. } = self;
        let (filled, delimiter) = (*filled, *delimiter);
        let buffer = &buffer[..filled + BLOCK];
        let mut marks = StructuralIndex { buffer, filled, delimiter, base: self.base, mask: self.mask };
        let RepeatedFields { number, bytes } = std::mem::take(&mut self.repeated);
        fields.truncate(number);
        self.ends.truncate(number);
        self.doubled.clear();
        let mut start = self.position + bytes;
        if bytes > 0 {
            marks.skip_to(start);
        }
        loop {
            let Some(mut at) = marks.next() else { return Step::More };
            let mut field = Field { start: start as u32, end: at as u32, quoted: false };
            if buffer[at] == QUOTE {
                if at != start {
                    return Step::Fault { at, fault: CsvFault::BareQuote };
                }
                let Some((close, doubled)) = marks.closing_quote() else { return Step::More };
                if doubled {
                    self.doubled.push(fields.len() as u32);
                }
                field = Field { start: start as u32 + 1, end: close as u32, quoted: true };
                at = close + 1;
                if marks.next() != Some(at) || buffer[at] == QUOTE {
                    return Step::Fault { at, fault: CsvFault::TextAfterQuote };
                }
            }
            fields.push(field);
            if buffer[at] == b'\r' {
                at += 1;
                if at == filled {
                    return Step::More;
                }
                if buffer[at] != b'\n' {
                    return Step::Fault { at: at - 1, fault: CsvFault::BareCarriageReturn };
                }
                marks.next();
            }
            start = at + 1;
            if buffer[at] == b'\n' {
                break;
            }
        }
        self.position = start;
        self.base = marks.base;
        self.mask = marks.mask;
        Step::Record
    }

    /// The fields of the record at `start`, read to its end, that the next one begins with. The last field never counts.
    fn repeated(&mut self, start: usize) -> RepeatedFields {
        let (record, next) = (&self.buffer[start..self.position], &self.buffer[self.position..self.filled]);
        let equal = equal_bytes(record, next);
        if equal < MIN_REPEATED_BYTES {
            return RepeatedFields::default();
        }
        let known = self.ends.len();
        let new = self.fields[..self.fields.len() - 1].iter().skip(known);
        self.ends.extend(new.map(|field| field.end + u32::from(field.quoted) + 1 - start as u32));
        let number = self.ends.partition_point(|end| *end as usize <= equal);
        let bytes = number.checked_sub(1).map_or(0, |last| self.ends[last] as usize);
        if bytes < MIN_REPEATED_BYTES { RepeatedFields::default() } else { RepeatedFields { number, bytes } }
    }

    /// Moves the record under way to the front of the buffer and fills the rest.
    #[cold]
    fn refill(&mut self) -> Result<(), RecordError> {
        let kept = self.filled - self.position;
        if kept > self.record_limit {
            return Err(self.too_large("record", self.record_limit, kept));
        }
        self.buffer.copy_within(self.position..self.filled, 0);
        self.before += self.position as u64;
        self.position = 0;
        self.filled = kept;
        let room = self.buffer.len() - BLOCK;
        if kept > room / 2 {
            self.buffer.resize(2 * room + BLOCK, 0);
        }
        // one byte is left for the line end that the last record may lack
        let room = self.buffer.len() - BLOCK - 1;
        while self.filled < room && !self.ended {
            match self.reader.read(&mut self.buffer[self.filled..room]) {
                Ok(0) => self.ended = true,
                Ok(read) => self.filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        if !self.started {
            self.started = true;
            if self.buffer[..self.filled].starts_with(BOM) {
                self.position = BOM.len();
            }
        }
        if self.ended && self.filled > self.position && self.buffer[self.filled - 1] != b'\n' {
            self.buffer[self.filled] = b'\n';
            self.filled += 1;
        }
        self.begin_marks();
        Ok(())
    }

    /// Finds the marks of the first block.
    fn begin_marks(&mut self) {
        let mut marks =
            StructuralIndex { buffer: &self.buffer, filled: self.filled, delimiter: self.delimiter, base: 0, mask: 0 };
        marks.classify();
        self.mask = marks.mask & (u64::MAX << self.position);
        self.base = 0;
    }

    /// What comes after the records that were read, as blocks for scanners that have a `work` each.
    ///
    /// `work` takes the number of blocks that are scanned at once.
    pub fn into_blocks<W: Send>(mut self, limits: &IngestLimits, work: impl FnMut(usize) -> W) -> RecordBlocks<R, W> {
        self.buffer.truncate(self.filled);
        self.buffer.drain(..self.position);
        let before = self.before + self.position as u64;
        let unread = UnreadBytes { bytes: self.buffer, before, ended: self.ended, reader: self.reader };
        RecordBlocks::new(unread, self.delimiter, limits, work)
    }

    #[cold]
    fn check_sizes(&self, start: usize, length: usize) -> Result<(), RecordError> {
        if length > self.record_limit {
            return Err(self.too_large("record", self.record_limit, length));
        }
        let longest = self.fields.iter().map(|field| (field.end - field.start) as usize).max().unwrap_or(0);
        if cfg!(any(test, debug_assertions)) {
            assert!(longest <= length && start <= self.position);
        }
        if longest > self.field_limit { Err(self.too_large("field", self.field_limit, longest)) } else { Ok(()) }
    }

    /// Undoubles quotes in place: the record is not read again.
    #[cold]
    fn unescape(&mut self) {
        for &index in &self.doubled {
            let field = &mut self.fields[index as usize];
            let (mut from, mut to) = (field.start as usize, field.start as usize);
            while from < field.end as usize {
                self.buffer[to] = self.buffer[from];
                from += if self.buffer[from] == QUOTE { 2 } else { 1 };
                to += 1;
            }
            field.end = to as u32;
        }
    }

    #[cold]
    fn malformed(&self, at: usize, fault: CsvFault) -> RecordError {
        let byte = self.before + at as u64;
        RecordError::Malformed { record: self.record, byte, field: self.fields.len(), fault }
    }

    #[cold]
    fn too_large(&self, what: &'static str, limit: usize, found: usize) -> RecordError {
        let byte = self.before + self.position as u64;
        RecordError::TooLarge { record: self.record, byte, what, limit: limit as u64, found: found as u64 }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Rows = Vec<Vec<(Vec<u8>, bool)>>;

    /// Gives its bytes in pieces of at most `1` bytes.
    struct Trickle<'a>(&'a [u8], usize);

    impl Read for Trickle<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let most = into.len().min(self.1);
            self.0.read(&mut into[..most])
        }
    }

    fn scan_with(
        input: &[u8],
        delimiter: Option<u8>,
        piece: usize,
        limits: &IngestLimits,
    ) -> Result<Rows, RecordError> {
        let mut scanner = Scanner::new(Trickle(input, piece), delimiter, limits);
        let mut rows = Vec::new();
        while let Some(record) = scanner.next_record()? {
            assert_eq!(record.number(), rows.len() as u64);
            rows.push(record.iter().map(|(field, quoted)| (field.to_vec(), quoted)).collect());
        }
        Ok(rows)
    }

    fn scan(input: &str) -> Result<Rows, RecordError> {
        scan_with(input.as_bytes(), Some(b','), usize::MAX, &IngestLimits::default())
    }

    /// Unquoted fields as they are, quoted ones in angle brackets, fields apart by `|` and records by `/`.
    fn shown(input: &str) -> String {
        let field = |(field, quoted): &(Vec<u8>, bool)| {
            let text = String::from_utf8_lossy(field).into_owned();
            if *quoted { format!("<{text}>") } else { text }
        };
        let row = |row: &Vec<_>| row.iter().map(field).collect::<Vec<_>>().join("|");
        scan(input).unwrap().iter().map(row).collect::<Vec<_>>().join("/")
    }

    fn fault(input: &str) -> (u64, u64, CsvFault) {
        match scan(input) {
            Err(RecordError::Malformed { record, byte, fault, .. }) => (record, byte, fault),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn accepts_what_rfc_4180_describes() {
        assert_eq!(shown(""), "");
        assert_eq!(shown("a,b\n1,2\n"), "a|b/1|2");
        assert_eq!(shown("a,b\r\n1,2"), "a|b/1|2");
        assert_eq!(shown("a,b\r\n1,2\r"), "a|b/1|2");
        assert_eq!(shown("a,\"\"\n,\"x\"\n"), "a|<>/|<x>");
        assert_eq!(shown("\"a,\r\n\"\"b\"\"\",\"\"\"\""), "<a,\r\n\"b\">|<\">");
        assert_eq!(shown("\u{feff}a,b\n"), "a|b");
        assert_eq!(shown("\u{feff}\"a\"\n"), "<a>");
        assert_eq!(shown("\u{feff}"), "");
        assert_eq!(shown("a\n\n\nb\n"), "a///b");
        assert_eq!(shown("\n"), "");
        assert_eq!(shown("a b, c "), "a b| c ");
        assert_eq!(scan("\n").unwrap().len(), 1);
    }

    #[test]
    fn refuses_what_readers_disagree_about() {
        assert_eq!(fault("a,b\n\"1\"x,2\n"), (1, 7, CsvFault::TextAfterQuote));
        assert_eq!(fault("\"1\" ,2\n"), (0, 3, CsvFault::TextAfterQuote));
        assert_eq!(fault("a\n1\"2\n"), (1, 3, CsvFault::BareQuote));
        assert_eq!(fault("a\r1\r"), (0, 1, CsvFault::BareCarriageReturn));
        assert_eq!(fault("\"a\"\rb\n"), (0, 3, CsvFault::BareCarriageReturn));
        assert_eq!(fault("a\n\"b\nc\n"), (1, 7, CsvFault::UnclosedQuote));
        assert_eq!(fault("a\n\"b\"\"").2, CsvFault::UnclosedQuote);
    }

    #[test]
    fn sizes_are_limited() {
        let limits = IngestLimits { max_field_bytes: 10, max_record_bytes: 30, ..IngestLimits::default() };
        let what = |input: &[u8]| match scan_with(input, Some(b','), 1, &limits) {
            Err(RecordError::TooLarge { what, record, limit, .. }) => (what, record, limit),
            other => panic!("{other:?}"),
        };
        assert_eq!(what(b"a\n01234567890\n"), ("field", 1, 10));
        assert_eq!(what("1,".repeat(16).as_bytes()), ("record", 0, 30));
        // a quote that is never closed does not make the buffer grow without end
        assert_eq!(what(&[b"\"".to_vec(), vec![b'x'; 10 << 20]].concat()), ("record", 0, 30));
        assert!(scan_with(b"0123456789,0123456789\n", Some(b','), 1, &limits).is_ok());
    }

    #[test]
    fn records_may_span_refills() {
        let long = "x\"\"".repeat(20_000);
        let mut input = String::new();
        for row in 0..40 {
            input += &format!("{row},\"{long}\"\r\n{row},{}\n", "y".repeat(row * 997));
        }
        let limits = IngestLimits { max_field_bytes: 1 << 20, ..IngestLimits::default() };
        let whole = scan_with(input.as_bytes(), Some(b','), usize::MAX, &limits).unwrap();
        assert_eq!(whole.len(), 80);
        assert!(whole.iter().step_by(2).all(|row| row[1].0 == "x\"".repeat(20_000).as_bytes()));
        for piece in [1, 1000] {
            assert_eq!(scan_with(input.as_bytes(), Some(b','), piece, &limits).unwrap(), whole);
        }
    }

    #[test]
    fn without_a_delimiter_a_record_has_one_field() {
        let rows = scan_with(b"a;b\n\"x,\"\n,\n", None, 1, &IngestLimits::default()).unwrap();
        assert_eq!(
            rows.iter().map(|row| (row.len(), &row[0].0[..])).collect::<Vec<_>>(),
            [(1, &b"a;b"[..]), (1, b"x,"), (1, b",")]
        );
    }

    /// The text of rows of cells, each with whether it is quoted, and where their texts begin.
    fn written(rows: &[Vec<(String, bool)>], crlf: bool) -> (String, Vec<Vec<u64>>) {
        let (mut text, mut begins) = (String::new(), Vec::new());
        for row in rows {
            let mut of_row = Vec::new();
            for (at, (cell, quoted)) in row.iter().enumerate() {
                text += if at > 0 { "," } else { "" };
                of_row.push(text.len() as u64 + u64::from(*quoted));
                text += &if *quoted { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell.clone() };
            }
            begins.push(of_row);
            text += if crlf { "\r\n" } else { "\n" };
        }
        (text, begins)
    }

    /// Rows of long cells, of which neighbours begin with the same ones: the number of equal cells, and one that follows.
    fn repetitive() -> impl Strategy<Value = Vec<Vec<(String, bool)>>> {
        let cell = ("[a-b\",\n]{0,12}", 0_usize..40).prop_map(|(cell, times)| (cell.repeat(times), true));
        let cell = prop_oneof![cell, ("[a-b]{0,90}", any::<bool>())];
        (2_usize..6).prop_flat_map(move |width| {
            let row = (0..=width, prop::collection::vec(cell.clone(), width));
            prop::collection::vec(row, 1..12).prop_map(|rows| {
                let mut whole: Vec<Vec<(String, bool)>> = Vec::new();
                for (equal, mut row) in rows {
                    if let Some(before) = whole.last() {
                        row[..equal].clone_from_slice(&before[..equal]);
                    }
                    whole.push(row);
                }
                whole
            })
        })
    }

    fn table() -> impl Strategy<Value = Vec<Vec<String>>> {
        (2..5_usize).prop_flat_map(|columns| {
            prop::collection::vec(prop::collection::vec("[a-c,;\"\r\n \u{e9}]{0,40}", columns), 1..30)
        })
    }

    proptest! {
        #[test]
        fn agrees_with_the_csv_crate(table in table(), crlf: bool, always: bool, delimiter in prop::sample::select(vec![b',', b';', b'\t'])) {
            let mut writer = csv::WriterBuilder::new();
            writer.delimiter(delimiter).terminator(if crlf { csv::Terminator::CRLF } else { csv::Terminator::Any(b'\n') });
            writer.quote_style(if always { csv::QuoteStyle::Always } else { csv::QuoteStyle::Necessary });
            let mut writer = writer.from_writer(Vec::new());
            table.iter().for_each(|row| writer.write_record(row).unwrap());
            let bytes = writer.into_inner().unwrap();
            let mut reader = csv::ReaderBuilder::new().has_headers(false).delimiter(delimiter).from_reader(&bytes[..]);
            let theirs: Vec<Vec<Vec<u8>>> =
                reader.byte_records().map(|row| row.unwrap().iter().map(<[u8]>::to_vec).collect()).collect();
            let ours = scan_with(&bytes, Some(delimiter), 7, &IngestLimits::default()).unwrap();
            let ours: Vec<Vec<Vec<u8>>> = ours.into_iter().map(|row| row.into_iter().map(|field| field.0).collect()).collect();
            prop_assert_eq!(ours, theirs);
        }

        #[test]
        fn repeated_fields_are_read_like_others(rows in repetitive(), crlf: bool, ended: bool, times in prop::sample::select(vec![1, 40])) {
            let rows: Vec<_> = std::iter::repeat_n(rows, times).flatten().collect();
            let (mut text, begins) = written(&rows, crlf);
            if !ended {
                text.truncate(text.trim_end_matches(['\r', '\n']).len());
            }
            let mut scanner = Scanner::new(text.as_bytes(), Some(b','), &IngestLimits::default());
            for (row, begins) in rows.iter().zip(begins) {
                let record = scanner.next_record().unwrap().unwrap();
                let read: Vec<(String, bool)> =
                    record.iter().map(|(cell, quoted)| (String::from_utf8(cell.to_vec()).unwrap(), quoted)).collect();
                prop_assert_eq!(&read, row);
                prop_assert_eq!(record.byte(), begins[0] - u64::from(row[0].1));
                prop_assert_eq!((0..row.len()).map(|at| record.field_byte(at)).collect::<Vec<_>>(), begins);
            }
            prop_assert!(scanner.next_record().unwrap().is_none());
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(prop::sample::select(b"a,\"\r\n\xff".to_vec()), 0..200)) {
            let limits = IngestLimits { max_field_bytes: 20, ..IngestLimits::default() };
            let (whole, pieces) = (scan_with(&bytes, Some(b','), 500, &limits), scan_with(&bytes, Some(b','), 1, &limits));
            prop_assert_eq!(format!("{whole:?}"), format!("{pieces:?}"));
        }
    }
}
