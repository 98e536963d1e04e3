//! Records of a part, through the scanner of uploads, with stricter rules.
//!
//! A part has no byte order mark and ends with a line feed, so a carriage return that is its last byte is refused
//! too.

use std::io;
use std::io::{Empty, Read};

use crate::microdata::IngestLimits;
use crate::microdata::formats::csv::{Record, RecordBlocks, RecordError, Scanner};

/// Reason why a part cannot be read to its end.
#[derive(Debug)]
pub(in crate::verifier) enum ReadError {
    /// The bytes cannot be read.
    Io(io::Error),
    /// The bytes are not CSV in the form of parts.
    Malformed,
}

impl From<RecordError> for ReadError {
    fn from(error: RecordError) -> Self {
        match error {
            RecordError::Io(error) if error.get_ref().is_some_and(|inner| inner.is::<PartFormatError>()) => {
                Self::Malformed
            }
            RecordError::Io(error) => Self::Io(error),
            RecordError::Malformed { .. } | RecordError::TooLarge { .. } => Self::Malformed,
        }
    }
}

/// Reads a part record by record.
pub(in crate::verifier) struct PartRecords<'a>(Scanner<EndChecker<'a>>);

impl<'a> PartRecords<'a> {
    pub(in crate::verifier) fn new(source: Box<dyn Read + 'a>) -> Self {
        // a label makes a record longer than in the upload, where the limits applied
        let limits = IngestLimits::of_own_parts();
        Self(Scanner::new(EndChecker { source, read: 0, first: [0; 3], last: b'\n' }, Some(b','), &limits))
    }

    /// The following records, as blocks for scanners that have a `work` each.
    pub(in crate::verifier) fn into_blocks<W: Send>(self, mut work: impl FnMut() -> W) -> PartBlocks<'a, W> {
        PartBlocks(self.0.into_blocks(&IngestLimits::of_own_parts(), |_| work()))
    }

    /// The next record; `None` at the end.
    #[inline]
    pub(in crate::verifier) fn next(&mut self) -> Result<Option<Record<'_>>, ReadError> {
        Ok(self.0.next_record()?)
    }
}

/// Reads a part in blocks, all processors at once.
pub(in crate::verifier) struct PartBlocks<'a, W>(RecordBlocks<EndChecker<'a>, W>);

impl<W: Send> PartBlocks<'_, W> {
    /// Scans the next blocks; the results are in the order of the blocks, and none at the end.
    pub(in crate::verifier) fn next<T: Send>(
        &mut self,
        scan: impl Fn(&mut W, &mut Scanner<Empty>) -> T + Sync,
    ) -> Result<Vec<T>, ReadError> {
        self.0.next(scan).map_err(|error| RecordError::Io(error).into())
    }
}

/// A fault at either end of a part that the scanner accepts in uploads.
#[derive(Debug, thiserror::Error)]
#[error("a byte order mark, or no line feed at the end")]
struct PartFormatError;

/// Reader that checks both ends of a part.
struct EndChecker<'a> {
    source: Box<dyn Read + 'a>,
    read: usize,
    first: [u8; 3],
    last: u8,
}

impl Read for EndChecker<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(into)?;
        let found = &into[..read];
        if let Some(unseen) = self.first.get_mut(self.read..) {
            unseen.iter_mut().zip(found).for_each(|(seen, &byte)| *seen = byte);
        }
        self.read = self.read.saturating_add(read);
        self.last = found.last().copied().unwrap_or(self.last);
        let ended = read == 0 && !into.is_empty();
        if self.first == *b"\xEF\xBB\xBF" || ended && self.last != b'\n' {
            return Err(io::Error::other(PartFormatError));
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reader that returns one byte at a time, so that every record is split at every position.
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
            let mut reader = PartRecords::new(source);
            let mut records = Vec::new();
            while let Some(record) = reader.next().ok()? {
                records.push(record.iter().map(|(f, q)| (String::from_utf8_lossy(f).into_owned(), q)).collect());
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
    fn next_quoted_fields_keeps_quotes_apart_from_text() {
        assert_eq!(
            records("a,b\r\n,\"\"\n\"x\"\"y,\nz\",\"\"\"\"\n"),
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
        assert_eq!(records("a,\n"), Some(vec![record(&[("a", false), ("", false)])]));
        assert_eq!(records(""), Some(vec![]));
    }

    #[test]
    fn next_bytes_of_no_part_is_malformed() {
        for text in ["a\"b\n", "\"a\"b\n", "\"a", "a\rb\n", "\"a\"\r", "a\r", "a\r\r\n", "a,", "\u{feff}a\n"] {
            assert_eq!(records(text), None, "{text:?}");
        }
    }

    #[test]
    fn next_record_longer_than_an_uploaded_one_is_read() {
        let long = "x".repeat(IngestLimits::default().max_record_bytes as usize + 1);
        assert_eq!(records(&format!("{long}\n")), Some(vec![record(&[(&long, false)])]));
    }
}
