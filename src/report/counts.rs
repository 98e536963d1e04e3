//! Distinct rows with how often they occur. Parts are sorted, so that equal rows stand together and one pass suffices.

use std::io;

use super::manifest_part::ManifestPart;
use crate::microdata::AttributeType;
use crate::microdata::formats::IngestLimits;
use crate::microdata::formats::csv::{RecordError, Scanner};

/// The name of the column of counts.
pub(super) const COUNT: &str = "count";

/// The part with a column of counts as its last one; `None` when it has a column of that name.
#[must_use]
pub fn counted(part: &ManifestPart) -> Option<ManifestPart> {
    if part.attributes.iter().any(|name| name == COUNT) {
        return None;
    }
    let mut counted = part.clone();
    counted.attributes.push(COUNT.to_owned());
    counted.types.insert(COUNT.to_owned(), AttributeType::Integer);
    Some(counted)
}

/// Turns the CSV of a part into the CSV of its distinct rows, as it comes.
pub(super) struct DistinctRowCounter {
    width: usize,
    last: Option<Vec<u8>>,
    count: u64,
    /// Rows written so far.
    written: u64,
}

impl DistinctRowCounter {
    /// Of the rows of a part (without a column of counts).
    #[must_use]
    pub(super) fn new(part: &ManifestPart) -> Self {
        Self { width: part.attributes.len() + usize::from(part.bucketed), last: None, count: 0, written: 0 }
    }

    /// How many distinct rows were written.
    #[must_use]
    pub(super) const fn written(&self) -> u64 {
        self.written
    }

    /// Whether `row` is the one that was counted last.
    fn is_last(&self, row: &[u8]) -> bool {
        self.last.as_deref() == Some(row)
    }

    /// Takes some lines of the part, which begin with its header when `header`, and appends the rows that are complete.
    ///
    /// # Errors
    /// When the lines are not CSV.
    pub(super) fn lines(&mut self, csv: &[u8], header: bool, out: &mut Vec<u8>) -> io::Result<()> {
        let width = self.width;
        let mut first = header;
        raw_rows(csv, width, |row| {
            if std::mem::take(&mut first) {
                out.extend_from_slice(row);
                out.extend_from_slice(b",count\n");
            } else if self.is_last(row) {
                self.count += 1;
            } else {
                self.finish(out);
                let last = self.last.get_or_insert_default();
                last.clear();
                last.extend_from_slice(row);
                self.count = 1;
            }
            true
        })
    }

    /// Appends the row under way.
    pub(super) fn finish(&mut self, out: &mut Vec<u8>) {
        if let Some(last) = self.last.take() {
            out.extend_from_slice(&last);
            out.push(b',');
            out.extend_from_slice(itoa::Buffer::new().format(self.count).as_bytes());
            out.push(b'\n');
            self.written += 1;
        }
    }
}

/// A page of distinct rows, filled from a row of the part on.
pub struct CountsPage {
    counting: DistinctRowCounter,
    limit: u64,
    /// The row that the next look begins with.
    row: u64,
    /// The first row of the page; the row before it shows whether a run of equal rows begins there.
    first: u64,
    out: Vec<u8>,
    /// Where the next page begins.
    next: Option<u64>,
}

/// The row that a page is asked from does not begin a run of equal rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowCursorError;

impl CountsPage {
    /// A page of at most `limit` rows, from row `first` of the part on.
    #[must_use]
    pub fn new(part: &ManifestPart, first: u64, limit: u64) -> Self {
        let row = first.saturating_sub(1);
        Self { counting: DistinctRowCounter::new(part), limit, row, first, out: Vec::new(), next: None }
    }

    /// The row to go on with; `None` when the page is full.
    #[must_use]
    pub const fn wanted(&self) -> Option<u64> {
        if self.next.is_some() { None } else { Some(self.row) }
    }

    /// Takes a chunk of the part that begins with row `first_row` (with the header before it, when that is 0) and holds the
    /// wanted one.
    ///
    /// # Errors
    /// When the chunk is not CSV.
    pub fn chunk(&mut self, csv: &[u8], first_row: u64) -> io::Result<Result<(), RowCursorError>> {
        let mut at = first_row;
        let mut header = first_row == 0;
        let mut fault = Ok(());
        let Self { counting, limit, row: wanted, first, out, next } = self;
        raw_rows(csv, counting.width, |raw| {
            if std::mem::take(&mut header) {
                return true;
            }
            let row = at;
            at += 1;
            if row < *wanted {
                return true;
            }
            *wanted = row + 1;
            if row < *first {
                // looked at alone, never counted
                counting.last = Some(raw.to_vec());
                counting.count = 0;
                return true;
            }
            if counting.is_last(raw) {
                if counting.count == 0 {
                    fault = Err(RowCursorError);
                    return false;
                }
                counting.count += 1;
                return true;
            }
            if counting.count == 0 {
                counting.last = None;
            }
            counting.finish(out);
            if counting.written == *limit {
                *next = Some(row);
                return false;
            }
            counting.last = Some(raw.to_vec());
            counting.count = 1;
            true
        })?;
        Ok(fault)
    }

    /// The rows as CSV without a header, how many they are, and where the next page begins.
    #[must_use]
    pub fn finish(mut self) -> (Vec<u8>, u64, Option<u64>) {
        if self.counting.count > 0 {
            self.counting.finish(&mut self.out);
        }
        (self.out, self.counting.written, self.next)
    }
}

/// The lines of records as they stand, without their line feeds, until `take` says no.
fn raw_rows(csv: &[u8], width: usize, mut take: impl FnMut(&[u8]) -> bool) -> io::Result<()> {
    let mut scanner = Scanner::new(csv, (width > 1).then_some(b','), &IngestLimits::of_own_parts());
    let mut begun: Option<usize> = None;
    loop {
        let next = scanner.next_record().map_err(corrupt)?.map(|record| record.byte() as usize);
        if let Some(start) = begun {
            let end = next.unwrap_or(csv.len());
            let row = &csv[start..end];
            if !take(row.strip_suffix(b"\n").unwrap_or(row)) {
                return Ok(());
            }
        }
        if next.is_none() {
            return Ok(());
        }
        begun = next;
    }
}

fn corrupt(error: RecordError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(attributes: &[&str]) -> ManifestPart {
        ManifestPart {
            name: "rows".into(),
            attributes: attributes.iter().map(|&name| name.into()).collect(),
            types: Default::default(),
            bucketed: false,
            row_meaning: crate::publication::RowKind::Tuples,
            counterfeits_per_bucket: None,
            cells: Default::default(),
            rows: 6,
            file: Some("t1.rows.csv".to_owned()),
            sha256: Some(String::new()),
            files: Vec::new(),
            null: None,
        }
    }

    #[test]
    fn equal_rows_become_one_also_across_chunks() {
        let part = part(&["a", "b"]);
        let mut counting = DistinctRowCounter::new(&part);
        let mut out = Vec::new();
        counting.lines(b"a,b\n1,\"x\ny\"\n1,\"x\ny\"\n2,\n", true, &mut out).unwrap();
        counting.lines(b"2,\n2,\"\"\n", false, &mut out).unwrap();
        counting.lines(b"", false, &mut out).unwrap();
        counting.lines(b"2,\"\"\n", false, &mut out).unwrap();
        counting.finish(&mut out);
        assert_eq!(String::from_utf8(out).unwrap(), "a,b,count\n1,\"x\ny\",2\n2,,2\n2,\"\",2\n");
        assert_eq!(counting.written(), 3);
        assert!(counted(&part).unwrap().attributes.ends_with(&["count".to_owned()]));
        assert!(counted(&super::tests::part(&["count"])).is_none());
    }

    #[test]
    fn pages_begin_where_runs_do() {
        let part = part(&["a"]);
        let chunks: [(&[u8], u64, u64); 3] = [(b"a\n1\n1\n2\n", 0, 3), (b"2\n3\n", 3, 2), (b"3\n4\n", 5, 2)];
        let page = |first: u64, limit: u64| {
            let mut page = CountsPage::new(&part, first, limit);
            while let Some(&(csv, start, _)) = page
                .wanted()
                .and_then(|row| chunks.iter().find(|(_, first, rows)| (*first..first + rows).contains(&row)))
            {
                page.chunk(csv, start).unwrap().ok()?;
            }
            let (rows, written, next) = page.finish();
            Some((String::from_utf8(rows).unwrap(), written, next))
        };
        assert_eq!(page(0, 100), Some(("1,2\n2,2\n3,2\n4,1\n".into(), 4, None)));
        assert_eq!(page(0, 1), Some(("1,2\n".into(), 1, Some(2))));
        assert_eq!(page(2, 2), Some(("2,2\n3,2\n".into(), 2, Some(6))));
        assert_eq!(page(6, 2), Some(("4,1\n".into(), 1, None)));
        assert_eq!(page(3, 2), None, "the middle of a run");
    }
}
