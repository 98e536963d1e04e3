//! Reads NDJSON, one flat JSON object a line, and JSON arrays of flat objects.
//!
//! The columns are the keys of the rows of the first chunk (at most 65,535 rows), in order of first appearance; a key that
//! appears later is refused, since the rows before are stored by then. A missing key is a missing value, as is null. Numbers
//! keep their text, except that exponents are written out; a column of booleans is of type boolean, one that holds a
//! string is text. Blank lines are passed over.

use std::borrow::Cow;
use std::fmt;
use std::io::{BufRead, BufReader, Read};

use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::collect::{Collector, malformed};
use super::error::IngestError;
use super::input::TableReader;
use super::json_array::ArrayObjects;
use crate::microdata::limits::IngestLimits;
use crate::microdata::{AttributeType, Chunk};

const LINE_BUFFER_BYTES: usize = 128 << 10;
/// A number with more digits, written out, is refused.
const MAX_DIGITS: usize = 400;

/// Gives the objects of an NDJSON file or a JSON array as [`Chunk`]s.
pub struct NdjsonReader<R> {
    objects: Objects<R>,
    collector: Collector,
    seen: Vec<SeenKinds>,
    /// The first chunk, which was read for the columns.
    first: Option<Chunk>,
    columns_known: bool,
    done: bool,
}

/// Which kinds of values a column holds.
#[derive(Clone, Copy, Default)]
struct SeenKinds {
    numbers: bool,
    strings: bool,
    booleans: bool,
}

impl<R: Read + Send> NdjsonReader<R> {
    /// Reads the first chunk of an NDJSON file, and so learns the columns.
    ///
    /// # Errors
    /// [`IngestError`]
    pub fn open(reader: R, types: Vec<(String, AttributeType)>, limits: &IngestLimits) -> Result<Self, IngestError> {
        let lines = Lines {
            reader: BufReader::with_capacity(LINE_BUFFER_BYTES, reader),
            line: Vec::new(),
            at: 0,
            next: 0,
            max: max_object_bytes(limits),
        };
        Self::begin(Objects::Lines(lines), types, limits)
    }

    /// Reads the first chunk of a JSON array, and so learns the columns.
    ///
    /// # Errors
    /// [`IngestError`]
    pub fn open_array(
        reader: R,
        types: Vec<(String, AttributeType)>,
        limits: &IngestLimits,
    ) -> Result<Self, IngestError> {
        let objects = ArrayObjects::new(reader, max_object_bytes(limits));
        Self::begin(Objects::Array(objects), types, limits)
    }

    fn begin(
        objects: Objects<R>,
        types: Vec<(String, AttributeType)>,
        limits: &IngestLimits,
    ) -> Result<Self, IngestError> {
        let collector = Collector::new(types, limits);
        let mut opened = Self { objects, collector, seen: Vec::new(), first: None, columns_known: false, done: false };
        opened.first = opened.read_chunk()?;
        if opened.first.is_none() {
            return Err(IngestError::Empty);
        }
        opened.columns_known = true;
        opened.collector.columns_are_complete()?;
        Ok(opened)
    }

    fn read_chunk(&mut self) -> Result<Option<Chunk>, IngestError> {
        if self.done {
            return Ok(None);
        }
        self.done = true;
        let mut rows = 0;
        while self.collector.room() > 0 {
            if !self.objects.advance(rows + self.collector.before() + 1)? {
                return self.collector.finish();
            }
            self.row(rows as usize)?;
            rows += 1;
        }
        self.done = false;
        self.collector.finish()
    }

    /// Takes the object under way as row `row` of the chunk.
    fn row(&mut self, row: usize) -> Result<(), IngestError> {
        let number = self.collector.before() + row as u64 + 1;
        let (object, at) = self.objects.current();
        let byte = Some(at);
        let bad =
            |detail: &str| IngestError::Malformed { row: Some(number), column: None, byte, detail: detail.into() };
        let text = std::str::from_utf8(object).map_err(|_| bad("the row is not UTF-8"))?;
        let mut fault = None;
        let taking = RowVisitor {
            row,
            number,
            collector: &mut self.collector,
            seen: &mut self.seen,
            columns_known: self.columns_known,
            fault: &mut fault,
        };
        let mut json = serde_json::Deserializer::from_str(text);
        let taken = json.deserialize_map(taking).and_then(|()| json.end());
        if let Some(fault) = fault {
            return Err(fault);
        }
        // the parser's own text may quote what it read
        taken.map_err(|_| bad("the row is not one JSON object"))?;
        if self.seen.is_empty() {
            return Err(bad("the first row has no columns"));
        }
        for column in 0..self.seen.len() {
            if self.collector.len(column) == row {
                self.collector.missing(column);
            }
        }
        Ok(())
    }
}

impl<R: Read + Send> TableReader for NdjsonReader<R> {
    fn names(&self) -> &[String] {
        self.collector.names()
    }

    fn kinds(&self) -> Vec<Option<AttributeType>> {
        let kind = |(column, seen): (usize, &SeenKinds)| match self.collector.given(column) {
            Some(given) => Some(given),
            None if seen.booleans => Some(AttributeType::Boolean),
            None if seen.strings => Some(AttributeType::Text),
            // the values separate integers from decimals
            None => None,
        };
        self.seen.iter().enumerate().map(kind).collect()
    }

    fn next_chunk(&mut self) -> Result<Option<Chunk>, IngestError> {
        match self.first.take() {
            Some(first) => Ok(Some(first)),
            None => self.read_chunk(),
        }
    }
}

/// The most bytes of one object.
fn max_object_bytes(limits: &IngestLimits) -> u64 {
    limits.max_record_bytes.min(1 << 30)
}

/// Where the objects of a table stand.
enum Objects<R> {
    Lines(Lines<R>),
    Array(ArrayObjects<R>),
}

impl<R: Read> Objects<R> {
    /// Goes to the next object; false at the end. `row` is the row it would be.
    fn advance(&mut self, row: u64) -> Result<bool, IngestError> {
        match self {
            Self::Lines(lines) => lines.advance(row),
            Self::Array(objects) => objects.advance(row),
        }
    }

    /// The text of the object, and where it begins.
    fn current(&self) -> (&[u8], u64) {
        match self {
            Self::Lines(lines) => (&lines.line, lines.at),
            Self::Array(objects) => objects.current(),
        }
    }
}

/// Lines of bounded length.
struct Lines<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
    /// Where the line begins, and the next one, in bytes from the beginning of the input.
    at: u64,
    next: u64,
    max: u64,
}

impl<R: Read> Lines<R> {
    /// The next line that is not blank; false at the end. `row` is the row it would be.
    fn advance(&mut self, row: u64) -> Result<bool, IngestError> {
        loop {
            self.line.clear();
            self.at = self.next;
            let read = self.reader.by_ref().take(self.max + 2).read_until(b'\n', &mut self.line)?;
            self.next += read as u64;
            if read == 0 {
                return Ok(false);
            }
            if self.at == 0 && self.line.starts_with(b"\xEF\xBB\xBF") {
                self.line.drain(..3);
            }
            if self.line.last() == Some(&b'\n') {
                self.line.pop();
            }
            let found = self.line.len() as u64;
            if found > self.max {
                let (what, limit) = ("bytes of a record", self.max);
                return Err(IngestError::TooLarge { what, limit, found, row: Some(row) });
            }
            if !self.line.iter().all(u8::is_ascii_whitespace) {
                return Ok(true);
            }
        }
    }
}

/// Takes the members of one object as they come. What is wrong with the table, rather than with the JSON, is put into
/// `fault`.
struct RowVisitor<'a> {
    row: usize,
    number: u64,
    collector: &'a mut Collector,
    seen: &'a mut Vec<SeenKinds>,
    columns_known: bool,
    fault: &'a mut Option<IngestError>,
}

#[derive(serde::Deserialize)]
struct KeyVisitor<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de> Visitor<'de> for RowVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<(), A::Error> {
        let mut expected = 0;
        while let Some((KeyVisitor(key), value)) = members.next_entry::<KeyVisitor<'de>, &'de RawValue>()? {
            // rows mostly have their keys in one order
            let column = match self.collector.names().get(expected) {
                Some(name) if *name == key => Some(expected),
                _ => self.collector.position(&key),
            };
            let taken = match column {
                Some(column) => Ok(column),
                None => self.new_column(&key),
            };
            let taken = taken.and_then(|column| {
                expected = column + 1;
                self.cell(column, value.get())
            });
            if let Err(fault) = taken {
                *self.fault = Some(fault);
                return Err(serde::de::Error::custom("refused"));
            }
        }
        Ok(())
    }
}

impl RowVisitor<'_> {
    fn new_column(&mut self, key: &str) -> Result<usize, IngestError> {
        if self.columns_known {
            let detail = "the row has a key that no row of the first chunk has";
            return Err(malformed(Some(self.number), Some(key.to_owned()), detail));
        }
        self.seen.push(SeenKinds::default());
        self.collector.add_column(key, self.row)
    }

    fn cell(&mut self, column: usize, raw: &str) -> Result<(), IngestError> {
        let (row, seen) = (self.row, &mut self.seen[column]);
        if self.collector.len(column) > row {
            let name = self.collector.names()[column].clone();
            return Err(malformed(Some(self.number), Some(name), "the row has the key twice"));
        }
        let value: Cow<'_, str> = match raw.as_bytes().first() {
            Some(b'n') => {
                self.collector.missing(column);
                return Ok(());
            }
            Some(b'"') => {
                seen.strings = true;
                let text = serde_json::from_str::<KeyVisitor<'_>>(raw);
                text.map_err(|_| self.collector.refuse(column, "the string is malformed"))?.0
            }
            Some(b't' | b'f') => {
                seen.booleans = true;
                raw.into()
            }
            Some(b'{' | b'[') => return Err(self.collector.refuse(column, "the value is nested")),
            _ => {
                seen.numbers = true;
                let plain = plain(raw);
                plain.ok_or_else(|| self.collector.refuse(column, "the number has too many digits"))?
            }
        };
        if seen.booleans && (seen.numbers || seen.strings) {
            return Err(self.collector.refuse(column, "the column holds booleans and other values"));
        }
        self.collector.value(column, value.as_bytes())
    }
}

/// A JSON number without exponent: its own text, or the shortest one of the same value.
fn plain(number: &str) -> Option<Cow<'_, str>> {
    let Some((mantissa, exponent)) = number.split_once(['e', 'E']) else {
        return (number.len() <= MAX_DIGITS).then_some(Cow::Borrowed(if number == "-0" { "0" } else { number }));
    };
    let exponent: i64 = exponent.parse().ok()?;
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let trimmed = digits.trim_start_matches('0');
    // where the point stands, counted from the first digit that is not 0
    let point = (whole.len() as i64 - (digits.len() - trimmed.len()) as i64).checked_add(exponent)?;
    let digits = trimmed.trim_end_matches('0');
    if digits.is_empty() {
        return Some("0".into());
    }
    if point.unsigned_abs() as usize > MAX_DIGITS || digits.len() > MAX_DIGITS {
        return None;
    }
    Some(Cow::Owned(match usize::try_from(point) {
        Ok(0) | Err(_) => format!("{sign}0.{}{digits}", "0".repeat(point.unsigned_abs() as usize)),
        Ok(point) if point >= digits.len() => format!("{sign}{digits}{}", "0".repeat(point - digits.len())),
        Ok(point) => format!("{sign}{}.{}", &digits[..point], &digits[point..]),
    }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Names, rows with `-` for missing cells, types.
    type Table = (Vec<String>, Vec<String>, Vec<Option<AttributeType>>);

    fn read(input: &str) -> Result<Table, IngestError> {
        let mut reader = NdjsonReader::open(input.as_bytes(), Vec::new(), &IngestLimits::default())?;
        let mut rows = Vec::new();
        while let Some(chunk) = reader.next_chunk()? {
            for row in 0..chunk.rows as usize {
                let cell =
                    |value: Option<&[u8]>| value.map_or("-".to_owned(), |value| String::from_utf8_lossy(value).into());
                let cells: Vec<String> = chunk.columns.iter().map(|column| cell(column.value(row))).collect();
                rows.push(cells.join("|"));
            }
        }
        Ok((reader.names().to_vec(), rows, reader.kinds()))
    }

    /// Bytes that come one at a time, as a slow client sends them.
    struct Dripping<'a>(&'a [u8]);

    impl Read for Dripping<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let length = buffer.len().min(1);
            self.0.read(&mut buffer[..length])
        }
    }

    /// The rows of an array, with `-` for missing cells, or the row and the reason of its fault.
    fn rows_of(bytes: impl Read + Send) -> Result<Vec<String>, (Option<u64>, String)> {
        let limits = IngestLimits { max_record_bytes: 60, ..IngestLimits::default() };
        let read = || {
            let (mut reader, mut rows) = (NdjsonReader::open_array(bytes, Vec::new(), &limits)?, Vec::new());
            while let Some(chunk) = reader.next_chunk()? {
                for row in 0..chunk.rows as usize {
                    let cell =
                        |value: Option<&[u8]>| value.map_or("-".into(), |value| String::from_utf8_lossy(value).into());
                    let cells: Vec<String> = chunk.columns.iter().map(|column| cell(column.value(row))).collect();
                    rows.push(cells.join("|"));
                }
            }
            Ok(rows)
        };
        read().map_err(|error| match error {
            IngestError::Malformed { row, detail, .. } => (row, detail),
            IngestError::TooLarge { row, what, .. } => (row, what.to_owned()),
            other => (None, other.to_string()),
        })
    }

    fn of_array(input: &str) -> Result<Vec<String>, (Option<u64>, String)> {
        let rows = rows_of(input.as_bytes());
        assert_eq!(rows, rows_of(Dripping(input.as_bytes())), "{input}");
        rows
    }

    #[test]
    fn objects_of_an_array_become_rows() {
        let spread = "\u{feff} [\n  {\"a\": 1,\r\n \"b\": \"]},{\\\"\"}\n,{\"b\":null}  , {\"a\":2}\n]\n ";
        assert_eq!(of_array(spread).unwrap(), ["1|]},{\"", "-|-", "2|-"]);
        assert_eq!(of_array("[{\"a\":1}]").unwrap(), ["1"]);
        for empty in ["", "  ", "[]", "[ ]\n"] {
            assert_eq!(of_array(empty).unwrap_err(), (None, "the input is empty".to_owned()), "{empty:?}");
        }
    }

    #[test]
    fn arrays_that_are_no_tables_are_refused() {
        for (input, row, detail) in [
            ("{\"a\":1}", 1, "a table in JSON is an array of objects; objects one a line are application/x-ndjson"),
            ("[{\"a\":1}", 2, "the array is not closed"),
            ("[{\"a\":1}, {\"a\"", 2, "the array is not closed"),
            ("[{\"a\":1},]", 2, "each element of the array must be an object"),
            ("[,{\"a\":1}]", 1, "each element of the array must be an object"),
            ("[{\"a\":1},,{\"a\":1}]", 2, "each element of the array must be an object"),
            ("[{\"a\":1}{\"a\":1}]", 2, "expected a comma or the end of the array"),
            ("[{\"a\":1}, 7]", 2, "each element of the array must be an object"),
            ("[[{\"a\":1}]]", 1, "each element of the array must be an object"),
            ("[{\"a\":1}] []", 2, "something follows the array"),
            ("[{\"a\":1}, {\"a\":[1]}]", 2, "the value is nested"),
            ("[{\"a\":1}, {\"a\":]}]", 2, "the row is not one JSON object"),
            ("[{\"a\":\"0123456789012345678901234567890123456789012345678901234567890\"}]", 1, "bytes of a record"),
        ] {
            assert_eq!(of_array(input).unwrap_err(), (Some(row), detail.to_owned()), "{input}");
        }
    }

    fn refused(input: &str) -> (Option<u64>, Option<String>, String) {
        match read(input) {
            Err(IngestError::Malformed { row, column, detail, .. }) => (row, column, detail),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn rows_become_columns_in_order_of_appearance() {
        let (names, rows, kinds) =
            read("\u{feff}{\"a\":1,\"b\":\"x\"}\r\n\n{\"c\":true,\"b\":null}\n{\"b\":\"\",\"a\":-2.50,\"c\":false}")
                .unwrap();
        assert_eq!(names, ["a", "b", "c"]);
        assert_eq!(rows, ["1|x|-", "-|-|true", "-2.50||false"]);
        assert_eq!(kinds, [None, Some(AttributeType::Text), Some(AttributeType::Boolean)]);
        assert_eq!(read("{\"a\":\"\\u00e9\\n\"}").unwrap().1, ["\u{e9}\n"]);
        assert_eq!(read("{\"a\":1}\n{\"a\":\"1\"}\n").unwrap().2, [Some(AttributeType::Text)]);
    }

    #[test]
    fn faults_name_row_and_column() {
        let named = |row, column: &str, detail: &str| (Some(row), Some(column.to_owned()), detail.to_owned());
        assert_eq!(refused("{\"a\":1}\n{\"a\":[1]}"), named(2, "a", "the value is nested"));
        assert_eq!(refused("{\"a\":1}\n{\"a\":{}}"), named(2, "a", "the value is nested"));
        assert_eq!(refused("{\"a\":1,\"a\":2}"), named(1, "a", "the row has the key twice"));
        assert_eq!(refused("{\"a\":1}\n{\"a\":true}"), named(2, "a", "the column holds booleans and other values"));
        assert_eq!(refused("{\"a\":1e9999}"), named(1, "a", "the number has too many digits"));
        for broken in [
            "{\"a\":1}\n{\"a\":secret}",
            "{\"a\":1}\n[1]",
            "{\"a\":1}\n7",
            "{\"a\":1}\n{\"a\":1}{\"a\":2}",
            "{\"a\":1}\n{\"a\":0",
        ] {
            assert_eq!(refused(broken), (Some(2), None, "the row is not one JSON object".to_owned()));
        }
        assert!(matches!(read(""), Err(IngestError::Empty)));
        assert_eq!(refused("{}").0, Some(1));
        assert!(refused("{\"\":1}").2.starts_with("column 1 has no name; are these row numbers?"));
        let late = "{\"a\":1}\n".repeat(65_535) + "{\"a\":1,\"b\":2}\n";
        assert_eq!(refused(&late), named(65_536, "b", "the row has a key that no row of the first chunk has"));
        let limits = IngestLimits { max_record_bytes: 9, ..IngestLimits::default() };
        let long = NdjsonReader::open(&b"{\"a\":123}\n{\"a\":1234}\n"[..], Vec::new(), &limits);
        assert!(matches!(long.err(), Some(IngestError::TooLarge { row: Some(2), found: 10, .. })));
    }

    #[test]
    fn numbers_are_written_out() {
        let cases = [
            ("1", "1"),
            ("-0", "0"),
            ("1.50", "1.50"),
            ("1e3", "1000"),
            ("1.5E-3", "0.0015"),
            ("-12.5e1", "-125"),
            ("-12.55e1", "-125.5"),
            ("0e99999", "0"),
            ("0.001e3", "1"),
            ("1e-1", "0.1"),
            ("120e-1", "12"),
        ];
        for (number, expected) in cases {
            assert_eq!(plain(number).as_deref(), Some(expected), "{number}");
            assert!(AttributeType::Decimal.admits(expected.as_bytes()));
        }
        assert_eq!((plain("1e401"), plain("1e-402"), plain("1e99999999999999999999")), (None, None, None));
    }

    #[test]
    fn given_types_are_held() {
        let types = vec![("a".to_owned(), AttributeType::Text)];
        let reader = NdjsonReader::open(&b"{\"a\":1}"[..], types.clone(), &IngestLimits::default()).unwrap();
        assert_eq!(reader.kinds(), [Some(AttributeType::Text)]);
        let unknown = NdjsonReader::open(&b"{\"b\":1}"[..], types, &IngestLimits::default());
        assert!(matches!(unknown.err(), Some(IngestError::UnknownTypeColumn(_))));
        let types = vec![("a".to_owned(), AttributeType::Integer)];
        let wrong = NdjsonReader::open(&b"{\"a\":\"x\"}"[..], types, &IngestLimits::default());
        assert!(matches!(wrong.err(), Some(IngestError::Malformed { row: Some(1), .. })));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(prop::sample::select(b"{}[]\":,a1e-.tn\\\n\xff".to_vec()), 0..80)) {
            for open in [NdjsonReader::open, NdjsonReader::open_array] {
                if let Ok(mut reader) = open(&bytes[..], Vec::new(), &IngestLimits::default()) {
                    while let Ok(Some(_)) = reader.next_chunk() {}
                }
            }
        }
    }
}
