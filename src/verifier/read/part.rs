//! A part as its bytes say it is: labels and codes, read once.

use super::csv::{PartRecords, ReadError};
use super::dictionary::PartDictionary;
use super::row_keys::{BucketOffsets, KeyLayout, RowKeys};
use crate::control::Control;
use crate::microdata::formats::csv::Record;
use crate::microdata::{Attr, AttributeType, Codes, ValueKey};
use crate::publication::{CellContent, Part, PublishedTable};
use crate::verifier::contract::checks::{CheckLog, CheckName};
use crate::verifier::contract::evidence::{Evidence, VerifierError};
use crate::verifier::definition::taxonomy::DeclaredValues;
use crate::with_codes;

/// Whether the original, where it is there, has the attribute.
pub(in crate::verifier) fn readable(evidence: &Evidence<'_>, attr: Attr) -> bool {
    evidence.original.is_none_or(|original| original.attributes().contains(attr))
}

/// The name of the column of labels.
pub(in crate::verifier) const BUCKET_COLUMN_NAME: &str = "bucket";

/// The rows of a part.
pub(in crate::verifier) struct ParsedPart {
    pub(in crate::verifier) rows: usize,
    /// The label of each row, in a bucketed part.
    pub(in crate::verifier) labels: Option<Vec<u32>>,
    /// The rows of each label; none either when a label exceeds the number of rows.
    pub(in crate::verifier) buckets: Option<BucketOffsets>,
    pub(in crate::verifier) columns: Vec<ParsedColumn>,
    /// How many rows of each bucket are said to be of nobody.
    pub(in crate::verifier) counterfeits: u64,
}

/// One attribute of a part.
pub(in crate::verifier) struct ParsedColumn {
    pub(in crate::verifier) attribute: Attr,
    /// A code per row. Values of the original have the codes of the original.
    pub(in crate::verifier) codes: Codes,
    /// How many codes there are.
    pub(in crate::verifier) size: usize,
    /// The canonical place of each code, where it is not the code.
    pub(in crate::verifier) ranks: Option<Vec<u32>>,
    /// What is stated of its values.
    pub(in crate::verifier) stated: DeclaredValues,
    /// The text of each code, where cells stand for several values, of which codes are then those of the cells alone, in a
    /// decomposition, whose tables are read together, and in columns that share attributes.
    pub(in crate::verifier) cells: Option<Vec<Option<Vec<u8>>>>,
}

impl ParsedPart {
    /// The rows as keys, in canonical order of tuples.
    pub(in crate::verifier) fn keys(&self) -> RowKeys {
        let columns = self.columns.iter().map(|column| (&column.codes, column.ranks.as_deref()));
        RowKeys::pack(&self.layout(), self.rows, columns)
    }

    /// The layout of the part's keys.
    pub(in crate::verifier) fn layout(&self) -> KeyLayout {
        KeyLayout::new(self.columns.iter().map(|column| column.size))
    }
}

/// A part that is not what a part can be; its rows are then unknown to every check.
struct UnreadablePart(CheckName, String);

/// Reads a part and checks its header, its length, the order of its rows and its values. `None` when the rows could not
/// be told.
pub(in crate::verifier) fn read(
    evidence: &Evidence<'_>,
    control: &Control,
    table: &PublishedTable,
    part: &Part,
    findings: &mut CheckLog,
) -> Result<Option<(ParsedPart, RowKeys)>, VerifierError> {
    let place = format!("table {}, part {}", table.name, part.name);
    let known = part.columns.iter().all(|column| readable(evidence, column.attribute));
    let result = if known {
        rows(evidence, control, table, part, &place, findings)?
    } else {
        Err(UnreadablePart(CheckName::Columns, "there are attributes that the original does not have".to_owned()))
    };
    match result {
        Ok(read) => {
            let keys = read.keys();
            order(&read, &keys, &place, findings);
            Ok(Some((read, keys)))
        }
        Err(UnreadablePart(check, detail)) => {
            findings.fail(check, format!("{place}: {detail}"));
            let dependent = [CheckName::Columns, CheckName::Order, CheckName::Dictionary, CheckName::Content];
            let bucketed = [CheckName::Buckets, CheckName::Guarantee];
            for check in dependent.into_iter().chain(bucketed.into_iter().filter(|_| part.bucketed)) {
                findings.fail(check, format!("{place}: its rows could not be told"));
            }
            Ok(None)
        }
    }
}

/// Codes are gathered in batches of so many rows, which stay in the nearest cache.
const BATCH_ROWS_IN_CACHE: usize = 1 << 10;

/// A column while it is read.
struct ColumnParser<'a> {
    dictionary: PartDictionary<'a>,
    codes: Codes,
    batch: Vec<u32>,
}

impl ColumnParser<'_> {
    /// Moves the batch to the codes, which widen as the dictionary grows.
    fn flush(&mut self) {
        let size = self.dictionary.len();
        if (size > 1 << 16 && !matches!(self.codes, Codes::U32(_)))
            || (size > 1 << 8 && matches!(self.codes, Codes::U8(_)))
        {
            let narrow = std::mem::replace(&mut self.codes, Codes::U8(Vec::new()));
            let wide: Vec<u32> = narrow.iter().collect();
            self.codes = Codes::collect(size, wide.into_iter());
        }
        let batch = self.batch.drain(..);
        match &mut self.codes {
            Codes::U8(codes) => codes.extend(batch.map(|code| code as u8)),
            Codes::U16(codes) => codes.extend(batch.map(|code| code as u16)),
            Codes::U32(codes) => codes.extend(batch),
        }
    }
}

fn rows(
    evidence: &Evidence<'_>,
    control: &Control,
    table: &PublishedTable,
    part: &Part,
    place: &str,
    findings: &mut CheckLog,
) -> Result<Result<ParsedPart, UnreadablePart>, VerifierError> {
    let mut reader = PartRecords::new(evidence.parts.open(&part.file(&table.name))?);
    let malformed = |row: usize| UnreadablePart(CheckName::Columns, format!("row {row} is malformed"));
    let width = usize::from(part.bucketed) + part.columns.len();
    match next(&mut reader)? {
        Some(Some(record)) if record.len() == width => header(record, part, place, findings),
        Some(Some(_)) => return Ok(Err(UnreadablePart(CheckName::Columns, "the header has other columns".to_owned()))),
        _ => return Ok(Err(UnreadablePart(CheckName::Columns, "there is no header".to_owned()))),
    }
    // of a part that claims more rows than it has, no more than a first guess is reserved
    let expected = (part.len.min(1 << 24)) as usize;
    let mut labels = part.bucketed.then(|| Vec::with_capacity(expected));
    let mut columns: Vec<ColumnParser<'_>> = part
        .columns
        .iter()
        .map(|column| {
            if column.cells != CellContent::Exact {
                let dictionary = PartDictionary::new(None, Some(AttributeType::Text));
                return ColumnParser {
                    dictionary,
                    codes: Codes::with_capacity(0, expected),
                    batch: Vec::with_capacity(BATCH_ROWS_IN_CACHE),
                };
            }
            let domain = evidence.original.map(|original| original.column(column.attribute).domain.as_ref());
            let kind = evidence.kinds.get(column.attribute.index()).copied().flatten();
            let codes = Codes::with_capacity(domain.map_or(0, |domain| domain.len()), expected);
            ColumnParser {
                dictionary: PartDictionary::new(domain, kind),
                codes,
                batch: Vec::with_capacity(BATCH_ROWS_IN_CACHE),
            }
        })
        .collect();
    let (lone, null) = (width == 1, part.null.as_deref().map(str::as_bytes));
    let (mut before, mut last) = ((ValueKey::from_bytes(b""), 0, false), None);
    let mut rows = 0_usize;
    loop {
        let record = match next(&mut reader)? {
            Some(Some(record)) if record.len() == width => record,
            Some(None) => break,
            _ => return Ok(Err(malformed(rows + 1))),
        };
        rows += 1;
        if rows as u64 > part.len {
            return Ok(Err(UnreadablePart(CheckName::Columns, "there are more rows than claimed".to_owned())));
        }
        let mut fields = record.iter_with_ends();
        if let Some(labels) = &mut labels {
            let Some(label) = fields.next().and_then(|(text, quoted, ends)| {
                // most rows have the label of the row before; the ends tell a short text whole
                let seen = (ends, text.len(), quoted);
                if seen != before || text.len() > 16 {
                    (before, last) = (seen, label(text, quoted));
                }
                last
            }) else {
                let detail = format!("row {rows} has a label that is no number from 1");
                return Ok(Err(UnreadablePart(CheckName::Order, detail)));
            };
            labels.push(label);
        }
        for (column, (bytes, quoted, ends)) in columns.iter_mut().zip(fields) {
            // an empty line tells nothing in a part of one column
            if lone && !quoted && bytes.is_empty() {
                return Ok(Err(malformed(rows)));
            }
            let missing = !quoted && if lone { null == Some(bytes) } else { bytes.is_empty() };
            let code = if missing { column.dictionary.missing() } else { column.dictionary.code(bytes, ends) };
            column.batch.push(code);
        }
        if rows.is_multiple_of(BATCH_ROWS_IN_CACHE) {
            columns.iter_mut().for_each(ColumnParser::flush);
        }
        if rows.is_multiple_of(Control::STRIDE) {
            control.advance(Control::STRIDE as u64)?;
        }
    }
    columns.iter_mut().for_each(ColumnParser::flush);
    control.advance((rows % Control::STRIDE) as u64)?;
    if rows as u64 != part.len {
        findings.fail(CheckName::Columns, format!("{place}: there are fewer rows than claimed"));
    }
    dictionary(evidence, part, &columns, place, findings);
    let together = crate::verifier::contract::claim::DecompositionClaim::from_evidence(evidence).is_some()
        || crate::verifier::contract::claim::SlicingClaim::repeats(evidence);
    let columns = columns.into_iter().zip(&part.columns).map(|(column, claimed)| ParsedColumn {
        attribute: claimed.attribute,
        size: column.dictionary.len(),
        ranks: column.dictionary.ranks(),
        stated: evidence
            .stated(claimed.attribute, (0..column.dictionary.len() as u32).map(|code| column.dictionary.value(code))),
        cells: (claimed.cells != CellContent::Exact || together).then(|| {
            let codes = 0..column.dictionary.len() as u32;
            codes.map(|code| column.dictionary.value(code).map(<[u8]>::to_vec)).collect()
        }),
        codes: column.codes,
    });
    let buckets = labels.as_deref().and_then(BucketOffsets::count);
    let counterfeits = crate::verifier::definition::thresholds::counterfeits(part.rows);
    Ok(Ok(ParsedPart { rows, labels, buckets, columns: columns.collect(), counterfeits }))
}

/// The next record, if there is one; `None` when the bytes are malformed.
fn next<'r>(reader: &'r mut PartRecords<'_>) -> Result<Option<Option<Record<'r>>>, VerifierError> {
    match reader.next() {
        Ok(record) => Ok(Some(record)),
        Err(ReadError::Malformed) => Ok(None),
        Err(ReadError::Io(error)) => Err(error.into()),
    }
}

/// The header says exactly the claimed names, behind `bucket` in a bucketed part.
fn header(record: Record<'_>, part: &Part, place: &str, findings: &mut CheckLog) {
    let bucket = part.bucketed.then_some(BUCKET_COLUMN_NAME);
    let claimed = bucket.into_iter().chain(part.columns.iter().map(|column| column.name.as_str()));
    if !record.iter().map(|(name, _)| name).eq(claimed.map(str::as_bytes)) {
        findings.fail(CheckName::Columns, format!("{place}: the header has other names"));
    }
}

/// A label: a canonical decimal from 1.
fn label(text: &[u8], quoted: bool) -> Option<u32> {
    if quoted || !matches!(text, [b'1'..=b'9', ..]) {
        return None;
    }
    text.iter().try_fold(0_u32, |label, &byte| {
        let digit = byte.is_ascii_digit().then(|| u32::from(byte - b'0'))?;
        label.checked_mul(10)?.checked_add(digit)
    })
}

/// Each column holds exactly the values of the original's column, and its null marker is none of them.
fn dictionary(
    evidence: &Evidence<'_>,
    part: &Part,
    columns: &[ColumnParser<'_>],
    place: &str,
    findings: &mut CheckLog,
) {
    for (column, claimed) in columns.iter().zip(&part.columns) {
        let name = evidence.name(claimed.attribute);
        let values = &column.dictionary;
        if let Some(null) = &part.null
            && (0..values.len() as u32).any(|code| values.value(code) == Some(null.as_bytes()))
        {
            findings.fail(CheckName::Dictionary, format!("{place}: the null marker is a value of {name}"));
        }
        // what cells are made of is asked of their classes
        let Some(original) = evidence.original.filter(|_| claimed.cells == CellContent::Exact) else { continue };
        let mut wanted = occurring(&original.column(claimed.attribute).codes, values.known());
        wanted.resize(values.len(), false);
        let seen = occurring(&column.codes, values.len());
        let surplus = seen.iter().zip(&wanted).filter(|&(&seen, &wanted)| seen && !wanted).count();
        let absent = seen.iter().zip(&wanted).filter(|&(&seen, &wanted)| wanted && !seen).count();
        if surplus > 0 {
            let detail = format!("{place}: {surplus} values of {name} do not occur in the original");
            findings.fail(CheckName::Dictionary, detail);
        }
        // of values that no published row has, which rows there are decides, and that is asked of the content
        let lacking = crate::verifier::contract::claim::DecompositionClaim::from_evidence(evidence)
            .is_some_and(|claim| claim.is_joint(part) && claim.leaves_out());
        if absent > 0 && evidence.publication.suppressed == 0 && !lacking {
            findings.fail(CheckName::Dictionary, format!("{place}: {absent} values of {name} are missing"));
        }
    }
}

/// Which of `size` codes occur.
fn occurring(codes: &Codes, size: usize) -> Vec<bool> {
    let mut occurring = vec![false; size];
    with_codes!(codes, codes => for &code in codes {
        occurring[code as usize] = true;
    });
    occurring
}

/// Rows rise by label, then by value; labels run from 1 without gaps.
fn order(part: &ParsedPart, keys: &RowKeys, place: &str, findings: &mut CheckLog) {
    let gaps = part.buckets.as_ref().is_none_or(|buckets| buckets.ranges().any(|range| range.is_empty()));
    if part.labels.is_some() && gaps {
        findings.fail(CheckName::Order, format!("{place}: labels have gaps"));
    }
    if let Some(row) = keys.first_fall(part.labels.as_deref()) {
        findings.fail(CheckName::Order, format!("{place}: row {} is out of order", row + 1));
    }
}
