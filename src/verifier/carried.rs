//! Parts that another engine wrote and audited, and that were carried into the store: whether these are the same rows.

use std::cmp::Ordering;
use std::io;
use std::io::Read;
use std::ops::Range;

use sha2::{Digest, Sha256};

use super::contract::input::VerifierError;
use super::read::csv::{PartRecords, ReadError};
use crate::control::Control;
use crate::microdata::AttributeType;
use crate::microdata::formats::{IngestError, TableReader};

/// A part that was carried.
#[derive(Clone, Copy, Debug)]
pub struct CarriedPart<'a> {
    /// Whether its first column is `bucket`.
    pub bucketed: bool,
    /// The published names of its attributes.
    pub names: &'a [String],
    /// Their types.
    pub kinds: &'a [AttributeType],
    /// The number of rows.
    pub rows: u64,
}

/// What is wrong with a carried part.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CarriedPartError {
    /// The file is no part.
    #[error("the stored file is no part")]
    Malformed,
    /// Its columns, or those of the source, are not those of the part.
    #[error("the columns are other ones")]
    Columns,
    /// There are more or fewer rows.
    #[error("the number of rows is another")]
    Rows,
    /// Rows are other ones.
    #[error("the rows are other ones")]
    Content,
    /// Rows are not in canonical order.
    #[error("the rows are not in canonical order")]
    Order,
}

impl CarriedPart<'_> {
    /// Compares the rows as they will be served with those that the other engine wrote, and looks whether they are in canonical
    /// order. The two are read by different code, and memory holds one row of each.
    ///
    /// # Errors
    /// [`VerifierError`] when the caller cancels or a side cannot be read.
    pub fn check(
        &self,
        source: &mut dyn TableReader,
        stored: Box<dyn Read + '_>,
        control: &Control,
    ) -> Result<Option<CarriedPartError>, VerifierError> {
        let label = self.bucketed.then_some("bucket").into_iter();
        let expected: Vec<&str> = label.chain(self.names.iter().map(String::as_str)).collect();
        if expected.iter().ne(source.names()) || self.kinds.len() != self.names.len() {
            return Ok(Some(CarriedPartError::Columns));
        }
        let stored = match self.stored(&expected, stored, control)? {
            Ok(stored) => stored,
            Err(fault) => return Ok(Some(fault)),
        };
        let mut written = RowSum::default();
        while let Some(chunk) = source.next_chunk().map_err(unreadable)? {
            control.check()?;
            for row in 0..chunk.rows as usize {
                written.add(chunk.columns.iter().map(|column| column.value(row)));
            }
        }
        Ok(match (stored.rows == self.rows, stored == written) {
            (false, _) => Some(CarriedPartError::Rows),
            (true, false) => Some(CarriedPartError::Content),
            (true, true) => None,
        })
    }

    /// The sum of the stored rows, which must be in order.
    fn stored(
        &self,
        expected: &[&str],
        stored: Box<dyn Read + '_>,
        control: &Control,
    ) -> Result<Result<RowSum, CarriedPartError>, VerifierError> {
        let mut records = PartRecords::new(stored);
        let mut sum = RowSum::default();
        let mut previous = KeptRow::default();
        loop {
            let record = match records.next() {
                Ok(Some(record)) => record,
                Ok(None) => return Ok(Ok(sum)),
                Err(ReadError::Malformed) => return Ok(Err(CarriedPartError::Malformed)),
                Err(ReadError::Io(error)) => return Err(error.into()),
            };
            if record.number() == 0 {
                if record.iter().map(|(name, _)| name).ne(expected.iter().map(|name| name.as_bytes())) {
                    return Ok(Err(CarriedPartError::Columns));
                }
                continue;
            }
            if record.len() != expected.len() {
                return Ok(Err(CarriedPartError::Malformed));
            }
            if record.number().is_multiple_of(Control::STRIDE as u64) {
                control.check()?;
            }
            // an empty field without quotes is missing
            let cells =
                || record.iter().map(|(cell, is_quoted)| Some(cell).filter(|cell| is_quoted || !cell.is_empty()));
            if record.number() > 1 && self.compare(&previous, cells()) == Ordering::Greater {
                return Ok(Err(CarriedPartError::Order));
            }
            sum.add(cells());
            previous.keep(cells());
        }
    }

    /// The canonical order of a row and the next one: the bucket, then the attributes from left to right, missing values first.
    fn compare<'a>(&self, previous: &KeptRow, next: impl Iterator<Item = Option<&'a [u8]>>) -> Ordering {
        let label = self.bucketed.then_some(AttributeType::Integer);
        let kinds = label.into_iter().chain(self.kinds.iter().copied());
        let mut orders = kinds.zip(previous.cells().zip(next)).map(|(kind, (one, other))| kind.compare(one, other));
        orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }
}

/// The cells of a row that is not there any more.
#[derive(Default)]
struct KeptRow {
    bytes: Vec<u8>,
    cells: Vec<Option<Range<usize>>>,
}

impl KeptRow {
    fn keep<'a>(&mut self, cells: impl Iterator<Item = Option<&'a [u8]>>) {
        self.bytes.clear();
        self.cells.clear();
        for cell in cells {
            let start = self.bytes.len();
            self.bytes.extend_from_slice(cell.unwrap_or_default());
            self.cells.push(cell.map(|_| start..self.bytes.len()));
        }
    }

    fn cells(&self) -> impl Iterator<Item = Option<&[u8]>> {
        self.cells.iter().map(|cell| cell.clone().map(|range| &self.bytes[range]))
    }
}

fn unreadable(error: IngestError) -> VerifierError {
    VerifierError::Io(io::Error::other(error.to_string()))
}

/// A multiset of rows: their number, and the sum of their hashes modulo two to the 256th. Equal multisets have equal sums; for two
/// others no one knows equal ones.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct RowSum {
    rows: u64,
    sum: [u128; 2],
    row: Vec<u8>,
}

impl RowSum {
    fn add<'a>(&mut self, cells: impl Iterator<Item = Option<&'a [u8]>>) {
        self.row.clear();
        for cell in cells {
            match cell {
                None => self.row.push(0),
                Some(value) => {
                    self.row.push(1);
                    self.row.extend_from_slice(&(value.len() as u64).to_le_bytes());
                    self.row.extend_from_slice(value);
                }
            }
        }
        let hash = Sha256::digest(&self.row);
        let (high, low) = hash.split_at(16);
        let word = |bytes: &[u8]| bytes.iter().fold(0u128, |word, byte| word << 8 | u128::from(*byte));
        let (low, carries) = self.sum[0].overflowing_add(word(low));
        self.sum = [low, self.sum[1].wrapping_add(word(high)).wrapping_add(u128::from(carries))];
        self.rows += 1;
        // equal sums are of equal rows, whichever came last
        self.row.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::microdata::formats::csv::{CsvOptions, CsvReader};
    use crate::microdata::{Chunk, IngestLimits};

    const PART: &str = "bucket,age,\"a \"\"city\"\"\"\n2,,\"\"\n2,7,\n2,7,\"x, y\"\n10,-3,b\n10,-3,b\n";

    /// The rows of a text as another engine would give them.
    fn written(csv: &'static str) -> impl TableReader {
        CsvReader::open(csv.as_bytes(), CsvOptions::default(), &IngestLimits::default()).unwrap()
    }

    fn checked(stored: &'static str, source: &'static str) -> Option<CarriedPartError> {
        let names = ["age".to_owned(), "a \"city\"".to_owned()];
        let kinds = [AttributeType::Integer, AttributeType::Text];
        let part = CarriedPart { bucketed: true, names: &names, kinds: &kinds, rows: 5 };
        part.check(&mut written(source), Box::new(stored.as_bytes()), &Control::default()).unwrap()
    }

    #[test]
    fn a_carried_part_has_the_rows_of_its_source() {
        assert_eq!(checked(PART, PART), None);
        let reordered = "bucket,age,\"a \"\"city\"\"\"\n10,-3,b\n2,7,\"x, y\"\n10,-3,b\n2,7,\n2,,\"\"\n";
        assert_eq!(checked(PART, reordered), None, "the files of the source may be in another order");
    }

    #[test]
    fn planted_faults_of_carried_parts_are_found() {
        use CarriedPartError::{Columns, Content, Malformed, Order, Rows};
        let with = |from: &str, to: &str| -> &'static str { PART.replacen(from, to, 1).leak() };
        for (stored, fault) in [
            (with("2,7,\n", ""), Rows),
            (with("10,-3,b\n", "10,-3,b\n10,-3,b\n"), Rows),
            (with("2,7,\n", "2,7,\"\"\n"), Content),
            (with("2,,\"\"\n", "2,,\n"), Content),
            (with("2,7,\"x, y\"\n", "3,7,\"x, y\"\n"), Content),
            (with("10,-3,b\n10,-3,b\n", "10,-3,b\n10,-3,c\n"), Content),
            (with("2,7,\n2,7,\"x, y\"\n", "2,7,\"x, y\"\n2,7,\n"), Order),
            ("bucket,age,\"a \"\"city\"\"\"\n10,-3,b\n10,-3,b\n2,,\"\"\n2,7,\n2,7,\"x, y\"\n", Order),
            (with("age", "years"), Columns),
            (with("2,7,\n", "2,7\n"), Malformed),
            (with("2,7,\n", "2,7,\"\n"), Malformed),
        ] {
            assert_eq!(checked(stored, PART), Some(fault), "{stored}");
        }
        assert_eq!(checked(PART, with("age", "years")), Some(Columns));
    }

    /// A row that is twice there and one that is missing have other sums than a pair of equal ones.
    #[test]
    fn sums_tell_numbers_of_equal_rows() {
        let sum = |rows: &[&[u8]]| {
            let mut sum = RowSum::default();
            rows.iter().for_each(|row| sum.add(std::iter::once(Some(*row))));
            sum
        };
        assert_eq!(sum(&[b"a", b"b", b"a"]), sum(&[b"b", b"a", b"a"]));
        assert_ne!(sum(&[b"a", b"b", b"a"]), sum(&[b"a", b"b", b"b"]));
        assert_ne!(sum(&[b"a", b"a"]), sum(&[b"b", b"b"]));
        assert_ne!(sum(&[b""]), sum(&[]));
    }

    /// The reader of a part that has columns of its own is not asked for rows.
    struct Unread;

    impl TableReader for Unread {
        fn names(&self) -> &[String] {
            &[]
        }

        fn kinds(&self) -> Vec<Option<AttributeType>> {
            Vec::new()
        }

        fn next_chunk(&mut self) -> Result<Option<Chunk>, IngestError> {
            Err(IngestError::Empty)
        }
    }

    #[test]
    fn a_source_with_other_columns_is_not_read() {
        let part =
            CarriedPart { bucketed: false, names: &["age".to_owned()], kinds: &[AttributeType::Integer], rows: 1 };
        let found = part.check(&mut Unread, Box::new(&b"age\n1\n"[..]), &Control::default()).unwrap();
        assert_eq!(found, Some(CarriedPartError::Columns));
    }
}
