//! A part parsed from its bytes: labels and codes.

use std::borrow::Cow;
use std::sync::Arc;

use rayon::prelude::*;

use super::block::{BlockColumn, BlockParser, BlockRows, RowFault};
use super::csv::{PartRecords, ReadError};
use super::dictionary::PartDictionary;
use super::joint_column::{CodedPart, JointColumn};
use super::row_keys::{BucketOffsets, RowKeyLayout, RowKeys, RowsToPack};
use super::row_labels::RowLabels;
use crate::control::Control;
use crate::microdata::formats::csv::Record;
use crate::microdata::{Attr, AttributeType, Codes, Column, Table};
use crate::publication::{CellContent, Part, PublishedColumn, PublishedTable, ReadColumn, ReadPart, RowMeaning};
use crate::verifier::contract::checks::{CheckLog, CheckName};
use crate::verifier::contract::claim::{DecompositionClaim, SlicingClaim};
use crate::verifier::contract::input::{VerifierError, VerifierInput};
use crate::verifier::definition::taxonomy::DeclaredValues;
use crate::verifier::definition::thresholds::counterfeits;
use crate::with_codes;

/// Whether the original, if available, has the attribute.
pub(in crate::verifier) fn is_readable(input: &VerifierInput<'_>, attr: Attr) -> bool {
    input.original.is_none_or(|original| original.attributes().contains(attr))
}

/// Rows whose keys are looked at at once.
pub(in crate::verifier) const KEYED_ROWS: usize = 1 << 18;

/// Name of the column of labels.
pub(in crate::verifier) const BUCKET_COLUMN_NAME: &str = "bucket";

/// The rows of a part.
pub(in crate::verifier) struct ParsedPart {
    pub(in crate::verifier) rows: usize,
    /// The label of each row, in a bucketed part; parts with the same labels may share them.
    pub(in crate::verifier) labels: Option<Arc<Vec<u32>>>,
    /// The rows of each label; `None` also when a label exceeds the number of rows.
    pub(in crate::verifier) buckets: Option<BucketOffsets>,
    pub(in crate::verifier) columns: Vec<ParsedColumn>,
    /// Declared number of counterfeits in each bucket.
    pub(in crate::verifier) counterfeits: u64,
    /// Whether buckets may have different numbers of counterfeits.
    pub(in crate::verifier) is_varying: bool,
}

/// One attribute of a part.
pub(in crate::verifier) struct ParsedColumn {
    pub(in crate::verifier) attribute: Attr,
    /// A code for each row; values of the original have its codes.
    pub(in crate::verifier) codes: Codes,
    /// Number of codes.
    pub(in crate::verifier) size: usize,
    /// The canonical rank of each code, where codes are not ranks.
    pub(in crate::verifier) ranks: Option<Vec<u32>>,
    /// What the caller declares about the values.
    pub(in crate::verifier) declared: DeclaredValues,
    /// The text of each code, where checks compare texts or cells stand for several values.
    ///
    /// Cells that stand for several values have codes of their own.
    pub(in crate::verifier) cells: Option<Vec<Option<Vec<u8>>>>,
}

impl CodedPart for ParsedPart {
    fn coded(&self, attr: Attr) -> Option<JointColumn<'_>> {
        let column = self.columns.iter().find(|column| column.attribute == attr)?;
        Some(JointColumn { codes: Cow::Borrowed(&column.codes), size: column.size })
    }
}

impl ParsedPart {
    /// The rows as keys, in the canonical order of tuples.
    pub(in crate::verifier) fn keys(&self) -> RowKeys {
        self.keys_of(RowsToPack::Between(0, self.rows))
    }

    /// The same of some rows.
    pub(in crate::verifier) fn keys_of(&self, rows: RowsToPack<'_>) -> RowKeys {
        let columns = self.columns.iter().map(|column| (&column.codes, column.ranks.as_deref()));
        RowKeys::of_rows(&self.layout(), rows, columns)
    }

    /// The first row out of order.
    fn first_fall(&self) -> Option<usize> {
        let starts: Vec<usize> = (0..self.rows).step_by(KEYED_ROWS).collect();
        // each piece begins with the last row of the one before
        starts.into_par_iter().find_map_first(|start| {
            let (first, end) = (start.saturating_sub(1), self.rows.min(start + KEYED_ROWS));
            let labels = self.labels.as_ref().map(|labels| &labels[first..end]);
            let fall = self.keys_of(RowsToPack::Between(first, end)).first_fall(labels);
            fall.map(|row| first + row)
        })
    }

    /// The rows for other readers; `None` unless every cell is a value of the original.
    pub(in crate::verifier) fn into_read(self, original: &Table, part: &Part) -> Option<ReadPart> {
        let labels = if part.bucketed { Arc::unwrap_or_clone(self.labels?) } else { Vec::new() };
        let labels = labels.into_iter().map(|label| label.checked_sub(1)).collect::<Option<_>>()?;
        let column = |(read, claimed): (ParsedColumn, &PublishedColumn)| {
            let domain = &original.column(read.attribute).domain;
            let is_known = claimed.cells == CellContent::Exact && read.size == domain.len();
            let column = Column { domain: Arc::clone(domain), codes: read.codes };
            is_known.then_some(ReadColumn { attribute: read.attribute, column })
        };
        let columns = self.columns.into_iter().zip(&part.columns).map(column).collect::<Option<_>>()?;
        Some(ReadPart { labels, columns })
    }

    /// The layout of the keys.
    pub(in crate::verifier) fn layout(&self) -> RowKeyLayout {
        RowKeyLayout::new(self.columns.iter().map(|column| column.size))
    }
}

/// A fault that makes all rows of a part unreadable, with the check that fails.
struct UnreadablePart(CheckName, String);

/// A part of a table that is to be read.
#[derive(Clone, Copy)]
pub(in crate::verifier) struct PartInTable<'a> {
    pub(in crate::verifier) table: &'a PublishedTable,
    pub(in crate::verifier) part: &'a Part,
    /// The part before it, if it was kept.
    pub(in crate::verifier) before: Option<&'a ParsedPart>,
}

/// Reads a part and checks its header, its length, the order of its rows and its values.
///
/// `None` when the rows cannot be read.
pub(in crate::verifier) fn read(
    input: &VerifierInput<'_>,
    control: &Control,
    of: PartInTable<'_>,
    log: &mut CheckLog,
) -> Result<Option<ParsedPart>, VerifierError> {
    let PartInTable { table, part, .. } = of;
    let place = place_of(table, part);
    let known = part.columns.iter().all(|column| is_readable(input, column.attribute));
    let result = if known {
        rows(input, control, of, log)?
    } else {
        Err(UnreadablePart(CheckName::Columns, "there are attributes that the original does not have".to_owned()))
    };
    match result {
        Ok(read) => {
            order(&read, &place, log);
            Ok(Some(read))
        }
        Err(UnreadablePart(check, detail)) => {
            log.fail(check, format!("{place}: {detail}"));
            let dependent = [CheckName::Columns, CheckName::Order, CheckName::Dictionary, CheckName::Content];
            let bucketed = [CheckName::Buckets, CheckName::Guarantee];
            for check in dependent.into_iter().chain(bucketed.into_iter().filter(|_| part.bucketed)) {
                log.fail(check, format!("{place}: its rows cannot be read"));
            }
            Ok(None)
        }
    }
}

/// A column during parsing.
struct ColumnParser<'a> {
    dictionary: PartDictionary<'a>,
    codes: Codes,
}

impl<'a> ColumnParser<'a> {
    fn new(input: &VerifierInput<'a>, column: &PublishedColumn, expected: usize) -> Self {
        if column.cells != CellContent::Exact {
            let dictionary = PartDictionary::new(None, Some(AttributeType::Text));
            return Self { dictionary, codes: Codes::with_capacity(0, expected) };
        }
        let domain = input.original.map(|original| original.column(column.attribute).domain.as_ref());
        let kind = input.kinds.get(column.attribute.index()).copied().flatten();
        let codes = Codes::with_capacity(domain.map_or(0, |domain| domain.len()), expected);
        Self { dictionary: PartDictionary::new(domain, kind), codes }
    }

    /// Appends the cells of a block.
    fn add(&mut self, cells: &BlockColumn, known: usize) {
        let others = cells.others.added(&mut self.dictionary);
        let of_part = |code: usize| code.checked_sub(known).map_or(code as u32, |other| others[other]);
        self.codes.extend_mapped(self.dictionary.len(), &cells.codes, of_part);
    }
}

/// Parser of the rows of a part.
struct RowParser<'a> {
    part: &'a Part,
    labels: Option<RowLabels>,
    columns: Vec<ColumnParser<'a>>,
    rows: usize,
}

impl<'a> RowParser<'a> {
    fn new(input: &VerifierInput<'a>, PartInTable { part, before, .. }: PartInTable<'a>) -> Self {
        // bounds the reservation for a part that claims more rows than it has
        let expected = part.len.min(1 << 24) as usize;
        Self {
            part,
            labels: part.bucketed.then(|| RowLabels::new(before.and_then(|part| part.labels.as_ref()), expected)),
            columns: part.columns.iter().map(|column| ColumnParser::new(input, column, expected)).collect(),
            rows: 0,
        }
    }

    /// Parses all rows that `records` has left.
    fn parse(
        &mut self,
        records: PartRecords<'_>,
        control: &Control,
    ) -> Result<Result<(), UnreadablePart>, VerifierError> {
        let mut blocks = records.into_blocks(|| BlockParser::new(self.columns.iter().map(|column| &column.dictionary)));
        loop {
            let (part, columns) = (self.part, &self.columns);
            let known: Vec<usize> = columns.iter().map(|column| column.dictionary.len()).collect();
            let parsed =
                blocks.next(|parser, block| parser.parse(part, columns.iter().map(|column| &column.dictionary), block));
            let parsed = match parsed {
                Ok(parsed) => parsed,
                Err(ReadError::Malformed) => return Ok(Err(malformed(self.rows + 1))),
                Err(ReadError::Io(error)) => return Err(error.into()),
            };
            if parsed.is_empty() {
                return Ok(Ok(()));
            }
            for block in parsed {
                control.advance(block.rows as u64)?;
                if let Err(fault) = self.add(block, &known) {
                    return Ok(Err(fault));
                }
            }
        }
    }

    /// Appends the rows of a block, or the fault at its end.
    fn add(&mut self, block: BlockRows, known: &[usize]) -> Result<(), UnreadablePart> {
        let seen = self.rows + block.rows + usize::from(block.fault.is_some());
        if seen as u64 > self.part.len {
            return Err(UnreadablePart(CheckName::Columns, "there are more rows than claimed".to_owned()));
        }
        match block.fault {
            None => {}
            Some(RowFault::Malformed) => return Err(malformed(seen)),
            Some(RowFault::Label) => {
                let detail = format!("row {seen} has a label that is no number from 1");
                return Err(UnreadablePart(CheckName::Order, detail));
            }
        }
        self.rows = seen;
        if let Some(labels) = &mut self.labels {
            labels.extend(&block.labels);
        }
        let columns = self.columns.iter_mut().zip(&block.columns).zip(known);
        columns.for_each(|((column, cells), known)| column.add(cells, *known));
        Ok(())
    }

    fn finish(self, input: &VerifierInput<'_>) -> ParsedPart {
        let part = self.part;
        let keeps_text = DecompositionClaim::from_input(input).is_some() || SlicingClaim::repeats(input);
        let parsed = |(column, claimed): (ColumnParser<'_>, &PublishedColumn)| {
            let codes = || 0..column.dictionary.len() as u32;
            ParsedColumn {
                attribute: claimed.attribute,
                size: column.dictionary.len(),
                ranks: column.dictionary.ranks(),
                declared: input.declared(claimed.attribute, codes().map(|code| column.dictionary.value(code))),
                cells: (claimed.cells != CellContent::Exact || keeps_text)
                    .then(|| codes().map(|code| column.dictionary.value(code).map(<[u8]>::to_vec)).collect()),
                codes: column.codes,
            }
        };
        let columns = self.columns.into_iter().zip(&part.columns).map(parsed).collect();
        let labels = self.labels.map(RowLabels::finish);
        let buckets = labels.as_deref().and_then(|labels| BucketOffsets::count(labels));
        ParsedPart {
            rows: self.rows,
            labels,
            buckets,
            columns,
            counterfeits: counterfeits(part.rows),
            is_varying: part.rows == RowMeaning::TuplesAndVaryingCounterfeits,
        }
    }
}

fn malformed(row: usize) -> UnreadablePart {
    UnreadablePart(CheckName::Columns, format!("row {row} is malformed"))
}

/// The names of a table and its part, for details.
pub(in crate::verifier) fn place_of(table: &PublishedTable, part: &Part) -> String {
    format!("table {}, part {}", table.name, part.name)
}

fn rows(
    input: &VerifierInput<'_>,
    control: &Control,
    of: PartInTable<'_>,
    log: &mut CheckLog,
) -> Result<Result<ParsedPart, UnreadablePart>, VerifierError> {
    let PartInTable { table, part, .. } = of;
    let place = &place_of(table, part);
    let mut reader = PartRecords::new(input.parts.open(&part.file(&table.name))?);
    let width = usize::from(part.bucketed) + part.columns.len();
    match next(&mut reader)? {
        Some(Some(record)) if record.len() == width => header(record, part, place, log),
        Some(Some(_)) => return Ok(Err(UnreadablePart(CheckName::Columns, "the header has other columns".to_owned()))),
        _ => return Ok(Err(UnreadablePart(CheckName::Columns, "there is no header".to_owned()))),
    }
    let mut parser = RowParser::new(input, of);
    if let Err(fault) = parser.parse(reader, control)? {
        return Ok(Err(fault));
    }
    if parser.rows as u64 != part.len {
        log.fail(CheckName::Columns, format!("{place}: there are fewer rows than claimed"));
    }
    dictionary(input, part, &parser.columns, place, log);
    Ok(Ok(parser.finish(input)))
}

/// The next record, `Some(None)` at the end; `None` when the bytes are malformed.
fn next<'r>(reader: &'r mut PartRecords<'_>) -> Result<Option<Option<Record<'r>>>, VerifierError> {
    match reader.next() {
        Ok(record) => Ok(Some(record)),
        Err(ReadError::Malformed) => Ok(None),
        Err(ReadError::Io(error)) => Err(error.into()),
    }
}

/// Checks that the header has exactly the claimed names, after `bucket` in a bucketed part.
fn header(record: Record<'_>, part: &Part, place: &str, log: &mut CheckLog) {
    let bucket = part.bucketed.then_some(BUCKET_COLUMN_NAME);
    let claimed = bucket.into_iter().chain(part.columns.iter().map(|column| column.name.as_str()));
    if !record.iter().map(|(name, _)| name).eq(claimed.map(str::as_bytes)) {
        log.fail(CheckName::Columns, format!("{place}: the header has other names"));
    }
}

/// Checks that columns hold exactly the values of the original, without the null marker.
fn dictionary(input: &VerifierInput<'_>, part: &Part, columns: &[ColumnParser<'_>], place: &str, log: &mut CheckLog) {
    for (column, claimed) in columns.iter().zip(&part.columns) {
        let name = input.name(claimed.attribute);
        let values = &column.dictionary;
        if let Some(null) = &part.null
            && (0..values.len() as u32).any(|code| values.value(code) == Some(null.as_bytes()))
        {
            log.fail(CheckName::Dictionary, format!("{place}: the null marker is a value of {name}"));
        }
        // generalized cells are checked with their classes
        let Some(original) = input.original.filter(|_| claimed.cells == CellContent::Exact) else { continue };
        let mut wanted = occurring(&original.column(claimed.attribute).codes, values.known());
        wanted.resize(values.len(), false);
        let seen = occurring(&column.codes, values.len());
        let surplus = seen.iter().zip(&wanted).filter(|&(&seen, &wanted)| seen && !wanted).count();
        let absent = seen.iter().zip(&wanted).filter(|&(&seen, &wanted)| wanted && !seen).count();
        // the values of members who left stay, and the audit of the night compares them with the states
        if surplus > 0 && part.rows != RowMeaning::TuplesAndVaryingCounterfeits {
            let detail = format!("{place}: {surplus} values of {name} do not occur in the original");
            log.fail(CheckName::Dictionary, detail);
        }
        // the rows that the joint table lacks decide which values are absent; the content check covers them
        let lacking =
            DecompositionClaim::from_input(input).is_some_and(|claim| claim.is_joint(part) && claim.leaves_out());
        if absent > 0 && input.publication.suppressed == 0 && !lacking {
            log.fail(CheckName::Dictionary, format!("{place}: {absent} values of {name} are missing"));
        }
    }
}

/// For each of `size` codes, whether it occurs.
fn occurring(codes: &Codes, size: usize) -> Vec<bool> {
    let mut occurring = vec![false; size];
    with_codes!(codes, codes => for &code in codes {
        occurring[code as usize] = true;
    });
    occurring
}

/// Checks that rows rise by label, then by value, and that labels have no gaps.
fn order(part: &ParsedPart, place: &str, log: &mut CheckLog) {
    let gaps = part.buckets.as_ref().is_none_or(|buckets| buckets.ranges().any(|range| range.is_empty()));
    if part.labels.is_some() && gaps {
        log.fail(CheckName::Order, format!("{place}: labels have gaps"));
    }
    if let Some(row) = part.first_fall() {
        log.fail(CheckName::Order, format!("{place}: row {} is out of order", row + 1));
    }
}
