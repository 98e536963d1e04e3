//! The bytes of a part, record by record. The one place of the audit that knows CSV.

use std::io::{self, Read};

/// Why reading a part ended early.
#[derive(Debug)]
pub(super) enum ReadError {
    /// The bytes could not be read.
    Io(io::Error),
    /// The bytes are not CSV as parts are written.
    Malformed,
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// A field of a record: its text and whether it stood in quotes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Field<'r> {
    pub(super) bytes: &'r [u8],
    pub(super) quoted: bool,
}

#[derive(Clone, Copy)]
struct Span {
    start: usize,
    end: usize,
    quoted: bool,
    /// The text stands in `unescaped` instead of the buffer.
    unescaped: bool,
}

enum Scan {
    /// The record ends before this position.
    Record(usize),
    /// The buffer ends inside the record.
    More,
    End,
    Malformed,
}

/// Streams the records of a part. Strict: quotes only around whole fields, line ends `\n` or `\r\n`.
pub(super) struct PartReader<'a> {
    source: Box<dyn Read + 'a>,
    buffer: Vec<u8>,
    at: usize,
    filled: usize,
    ended: bool,
    fields: Vec<Span>,
    unescaped: Vec<u8>,
}

impl<'a> PartReader<'a> {
    const BUFFER: usize = 1 << 17;

    pub(super) fn new(source: Box<dyn Read + 'a>) -> Self {
        let buffer = vec![0; Self::BUFFER];
        Self { source, buffer, at: 0, filled: 0, ended: false, fields: Vec::new(), unescaped: Vec::new() }
    }

    /// Moves to the next record; false at the end.
    pub(super) fn advance(&mut self) -> Result<bool, ReadError> {
        loop {
            match self.scan() {
                Scan::Record(next) => {
                    self.at = next;
                    return Ok(true);
                }
                Scan::End => return Ok(false),
                Scan::Malformed => return Err(ReadError::Malformed),
                Scan::More => self.fill()?,
            }
        }
    }

    /// How many fields the record has.
    pub(super) const fn len(&self) -> usize {
        self.fields.len()
    }

    /// The field at `index` of the record.
    pub(super) fn field(&self, index: usize) -> Field<'_> {
        let Span { start, end, quoted, unescaped } = self.fields[index];
        let text = if unescaped { &self.unescaped } else { &self.buffer };
        Field { bytes: &text[start..end], quoted }
    }

    /// Keeps the record that is under way and reads more behind it.
    fn fill(&mut self) -> io::Result<()> {
        self.buffer.copy_within(self.at..self.filled, 0);
        self.filled -= self.at;
        self.at = 0;
        if self.filled == self.buffer.len() {
            self.buffer.resize(2 * self.filled, 0);
        }
        loop {
            match self.source.read(&mut self.buffer[self.filled..]) {
                Ok(0) => self.ended = true,
                Ok(read) => self.filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            return Ok(());
        }
    }

    fn scan(&mut self) -> Scan {
        self.fields.clear();
        self.unescaped.clear();
        let bytes = &self.buffer[..self.filled];
        let mut start = self.at;
        if start == bytes.len() {
            return if self.ended { Scan::End } else { Scan::More };
        }
        loop {
            let (span, end) = if bytes.get(start) == Some(&b'"') {
                match quoted(bytes, start + 1, self.ended, &mut self.unescaped) {
                    Ok(found) => found,
                    Err(scan) => return scan,
                }
            } else {
                let length = bytes[start..].iter().position(|&byte| SPECIAL[byte as usize]);
                let end = length.map_or(bytes.len(), |length| start + length);
                (Span { start, end, quoted: false, unescaped: false }, end)
            };
            self.fields.push(span);
            match bytes.get(end) {
                Some(b',') => start = end + 1,
                Some(b'\n') => return Scan::Record(end + 1),
                Some(b'\r') => match bytes.get(end + 1) {
                    Some(b'\n') => return Scan::Record(end + 2),
                    None if !self.ended => return Scan::More,
                    _ => return Scan::Malformed,
                },
                Some(_) => return Scan::Malformed,
                None if self.ended => return Scan::Record(end),
                None => return Scan::More,
            }
        }
    }
}

/// Bytes that end an unquoted field, or must not stand in one.
const SPECIAL: [bool; 256] = {
    let mut special = [false; 256];
    special[b',' as usize] = true;
    special[b'\n' as usize] = true;
    special[b'\r' as usize] = true;
    special[b'"' as usize] = true;
    special
};

/// The quoted field whose text begins at `start`, and the position behind its closing quote.
fn quoted(bytes: &[u8], start: usize, ended: bool, unescaped: &mut Vec<u8>) -> Result<(Span, usize), Scan> {
    let text = unescaped.len();
    let mut from = start;
    loop {
        let Some(length) = bytes.get(from..).and_then(|rest| memchr::memchr(b'"', rest)) else {
            return Err(if ended { Scan::Malformed } else { Scan::More });
        };
        let quote = from + length;
        match bytes.get(quote + 1) {
            Some(b'"') => {
                unescaped.extend_from_slice(&bytes[from..=quote]);
                from = quote + 2;
            }
            None if !ended => return Err(Scan::More),
            _ if from == start => {
                return Ok((Span { start, end: quote, quoted: true, unescaped: false }, quote + 1));
            }
            _ => {
                unescaped.extend_from_slice(&bytes[from..quote]);
                return Ok((Span { start: text, end: unescaped.len(), quoted: true, unescaped: true }, quote + 1));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one byte at a time, so that every record is cut everywhere.
    struct Trickle<'a>(&'a [u8]);

    impl Read for Trickle<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let Some((first, rest)) = self.0.split_first() else { return Ok(0) };
            into[0] = *first;
            self.0 = rest;
            Ok(1)
        }
    }

    fn records(text: &str) -> Option<Vec<Vec<(String, bool)>>> {
        let read = |source| {
            let mut reader = PartReader::new(source);
            let mut records = Vec::new();
            while reader.advance().ok()? {
                let fields = (0..reader.len()).map(|i| reader.field(i));
                records.push(
                    fields.map(|f| (String::from_utf8_lossy(f.bytes).into_owned(), f.quoted)).collect::<Vec<_>>(),
                );
            }
            Some(records)
        };
        let whole = read(Box::new(text.as_bytes()));
        assert_eq!(whole, read(Box::new(Trickle(text.as_bytes()))));
        whole
    }

    fn record(fields: &[(&str, bool)]) -> Vec<(String, bool)> {
        fields.iter().map(|&(text, quoted)| (text.to_owned(), quoted)).collect()
    }

    #[test]
    fn fields_keep_their_quotes_apart_from_their_text() {
        assert_eq!(
            records("a,b\r\n,\"\"\n\"x\"\"y,\nz\",\"\"\"\""),
            Some(vec![
                record(&[("a", false), ("b", false)]),
                record(&[("", false), ("", true)]),
                record(&[("x\"y,\nz", true), ("\"", true)]),
            ])
        );
        assert_eq!(
            records("a\n\nb\n"),
            Some(vec![record(&[("a", false)]), record(&[("", false)]), record(&[("b", false)])])
        );
        assert_eq!(records("a,"), Some(vec![record(&[("a", false), ("", false)])]));
        assert_eq!(records(""), Some(vec![]));
    }

    #[test]
    fn what_no_part_contains_is_malformed() {
        for text in ["a\"b\n", "\"a\"b\n", "\"a", "a\rb\n", "\"a\"\r", "a\r"] {
            assert_eq!(records(text), None, "{text:?}");
        }
    }
}
