//! Which delimiter a file uses.

use super::error::{CsvFault, RecordError};
use super::scanner::Scanner;
use crate::microdata::IngestLimits;

/// The delimiters that are recognized, the first ones preferred.
const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];
/// Number of records that are examined.
const SAMPLED_RECORDS: usize = 1000;

/// The delimiter of the file that begins with `sample`; `None` when it has one column. `complete` says that the sample is
/// the whole file, so that its last record counts.
///
/// Candidates are the comma, the semicolon, the tab and the vertical bar, as far as they divide the first record. Those
/// that divide all records of the sample (at most 1000) into equally many fields go first, then those that make more
/// fields of the first record, then the order given here. So a file with one ragged record is still divided, and refused
/// for that record.
#[must_use]
pub fn detect_delimiter(sample: &[u8], complete: bool, limits: &IngestLimits) -> Option<u8> {
    let mut best: Option<((bool, usize), u8)> = None;
    for delimiter in DELIMITERS {
        if let Some(rank) = rank(sample, complete, delimiter, limits)
            && best.is_none_or(|(highest, _)| rank > highest)
        {
            best = Some((rank, delimiter));
        }
    }
    best.map(|(_, delimiter)| delimiter)
}

/// Whether all records have equally many fields, and how many the first one has, when it has several.
fn rank(sample: &[u8], complete: bool, delimiter: u8, limits: &IngestLimits) -> Option<(bool, usize)> {
    let mut scanner = Scanner::new(sample, Some(delimiter), limits);
    let mut widths = Vec::new();
    let mut consistent = true;
    while widths.len() < SAMPLED_RECORDS {
        match scanner.next_record() {
            Ok(Some(record)) => widths.push(record.len()),
            Ok(None) => {
                // the last record of an incomplete sample may be cut anywhere
                if !complete && widths.len() > 1 {
                    widths.pop();
                }
                break;
            }
            Err(RecordError::Malformed { fault: CsvFault::UnclosedQuote, .. }) if !complete => break,
            Err(_) => {
                consistent = false;
                break;
            }
        }
    }
    let first = *widths.first()?;
    consistent &= widths.iter().all(|&width| width == first);
    (first > 1).then_some((consistent, first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_delimiter() {
        let detect = |sample: &str| detect_delimiter(sample.as_bytes(), true, &IngestLimits::default()).map(char::from);
        assert_eq!(detect("a,b\n1,2\n"), Some(','));
        assert_eq!(detect("a;b\n1,5;2,5\n"), Some(';'));
        assert_eq!(detect("a\tb\n1\t2\n"), Some('\t'));
        assert_eq!(detect("a|b\n1|2\n"), Some('|'));
        assert_eq!(detect("name\nSmith, John\n"), None);
        assert_eq!(detect("\"a,b\"\n\"1;2\"\n"), None);
        assert_eq!(detect(""), None);
        // consistent beats wide, and a ragged file is still divided
        assert_eq!(detect("a;b, c, d\n1;2\n"), Some(';'));
        assert_eq!(detect("a,b\n1,2\n3\n"), Some(','));
        assert_eq!(detect("a,b\n1,2\n3,x\"y\n"), Some(','));
        assert_eq!(detect("a,\"b\n1;2\n"), None);
    }

    #[test]
    fn the_cut_record_of_a_sample_does_not_count() {
        let detect = |sample: &str| detect_delimiter(sample.as_bytes(), false, &IngestLimits::default());
        assert_eq!(detect("a;b,c\n1,2;3\n4"), Some(b','));
        assert_eq!(detect("a,b;c\n1,2\n4,\"5;"), Some(b','));
    }
}
