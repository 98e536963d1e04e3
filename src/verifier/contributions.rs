//! Bounded contributions: what the original says of a release that keeps a bounded number of rows of each person.
//!
//! The draw is secret, so which rows were kept is not known. Some must have been kept, some may have been, and others were
//! not. Each combination of exact cells of a part therefore has a least and a largest count.

use std::collections::HashMap;

use super::contract::input::VerifierError;
use super::read::csv::{PartRecords, ReadError};
use crate::control::Control;
use crate::microdata::Table;
use crate::publication::{CellContent, Part, Publication, PublishedBytes, PublishedTable, RowMeaning};

/// A release and the table it was made from, with all rows of every person.
pub struct ContributionClaim<'a> {
    /// The tables and parts.
    pub publication: &'a Publication,
    /// The written bytes.
    pub parts: &'a dyn PublishedBytes,
    /// All rows; attribute `i` is column `i`.
    pub original: &'a Table,
    /// The person of each row, as a number.
    pub persons: &'a [u32],
    /// The place of each row in the order by which rows were chosen; equal where only the draw decided.
    pub ranks: &'a [u32],
    /// The most rows of a person.
    pub max_rows: u64,
    /// Whether the method may suppress rows.
    pub may_lack_rows: bool,
}

/// What the bound says of the rows of the original.
struct RowBounds {
    /// Rows that were kept.
    certain: Vec<u32>,
    /// For each person with more rows than are kept: the rows that were drawn from, and how many of them were kept.
    drawn: Vec<(Vec<u32>, u64)>,
    /// How many rows were kept.
    rows: u64,
}

impl RowBounds {
    fn new(claim: &ContributionClaim<'_>) -> Self {
        let mut of_persons: HashMap<u32, Vec<u32>> = HashMap::new();
        for (row, &person) in claim.persons.iter().enumerate() {
            of_persons.entry(person).or_default().push(row as u32);
        }
        let rank = |row: &u32| claim.ranks[*row as usize];
        let mut bounds = Self { certain: Vec::new(), drawn: Vec::new(), rows: 0 };
        for mut rows in of_persons.into_values() {
            let kept = claim.max_rows.min(rows.len() as u64);
            bounds.rows += kept;
            rows.sort_unstable_by_key(rank);
            let Some(last) = (kept as usize).checked_sub(1).map(|at| rank(&rows[at])) else { continue };
            let lower = rows.iter().filter(|row| rank(row) < last).count();
            let equal: Vec<u32> = rows.iter().copied().filter(|row| rank(row) == last).collect();
            bounds.certain.extend(&rows[..lower]);
            match kept - lower as u64 {
                open if open == equal.len() as u64 => bounds.certain.extend(equal),
                open => bounds.drawn.push((equal, open)),
            }
        }
        bounds
    }
}

/// How often a combination of cells may occur.
#[derive(Clone, Copy, Default)]
struct CountRange {
    least: u64,
    most: u64,
    found: u64,
}

/// Checks that the parts hold rows of the original, of each person at most as many as are kept; gives the first fault.
///
/// # Errors
/// A part cannot be read, or [`Control`] stopped the check.
pub fn check_contributions(claim: &ContributionClaim<'_>, control: &Control) -> Result<Option<String>, VerifierError> {
    let bounds = RowBounds::new(claim);
    let mut checked = 0;
    for table in &claim.publication.tables {
        for part in table.parts.iter().filter(|part| part.rows != RowMeaning::Values) {
            checked += 1;
            let fault = PartBounds { claim, bounds: &bounds, table, part }.check(control)?;
            if let Some(fault) = fault {
                return Ok(Some(format!("table {}, part {}: {fault}", table.name, part.name)));
            }
        }
    }
    Ok((checked == 0).then(|| "no part holds rows that could be compared with the original".to_owned()))
}

/// A part and the rows that it may hold.
struct PartBounds<'a> {
    claim: &'a ContributionClaim<'a>,
    bounds: &'a RowBounds,
    table: &'a PublishedTable,
    part: &'a Part,
}

impl PartBounds<'_> {
    fn check(&self, control: &Control) -> Result<Option<String>, VerifierError> {
        let exact: Vec<usize> =
            (0..self.part.columns.len()).filter(|&at| self.part.columns[at].cells == CellContent::Exact).collect();
        let mut ranges = self.ranges(&exact);
        let Some(rows) = self.count(&exact, &mut ranges, control)? else {
            return Ok(Some("its rows cannot be read".to_owned()));
        };
        let has_counterfeits = matches!(self.part.rows, RowMeaning::TuplesAndCounterfeits { .. });
        let expected = self.bounds.rows;
        if rows > expected && !has_counterfeits || rows < expected && !self.claim.may_lack_rows {
            let most = self.claim.max_rows;
            return Ok(Some(format!("{rows} rows, and the original has {expected} with at most {most} of a person")));
        }
        let surplus = ranges.values().filter(|range| range.found > range.most).count();
        let absent = ranges.values().filter(|range| range.found < range.least).count();
        Ok(match () {
            () if surplus > 0 && !has_counterfeits => Some(format!(
                "{surplus} combinations of cells occur in more rows than those that may be kept of the original"
            )),
            () if absent > 0 && !self.claim.may_lack_rows => {
                Some(format!("{absent} combinations of cells occur in fewer rows than must be kept of the original"))
            }
            () => None,
        })
    }

    /// How often each combination of exact cells of the original may occur.
    fn ranges(&self, exact: &[usize]) -> HashMap<Vec<u8>, CountRange> {
        let columns: Vec<_> =
            exact.iter().map(|&at| self.claim.original.column(self.part.columns[at].attribute)).collect();
        let key = |row: u32| {
            let mut key = Vec::new();
            columns.iter().for_each(|column| append(&mut key, column.value(row as usize)));
            key
        };
        let mut ranges: HashMap<Vec<u8>, CountRange> = HashMap::new();
        for &row in &self.bounds.certain {
            let range = ranges.entry(key(row)).or_default();
            (range.least, range.most) = (range.least + 1, range.most + 1);
        }
        for (rows, open) in &self.bounds.drawn {
            let mut alike: HashMap<Vec<u8>, u64> = HashMap::new();
            rows.iter().for_each(|&row| *alike.entry(key(row)).or_default() += 1);
            for (key, count) in alike {
                let range = ranges.entry(key).or_default();
                range.most += count.min(*open);
                // more are kept than the others are
                range.least += (count + open).saturating_sub(rows.len() as u64);
            }
        }
        ranges
    }

    /// Counts the rows of the part, and each combination of exact cells; `None` when it is malformed.
    fn count(
        &self,
        exact: &[usize],
        ranges: &mut HashMap<Vec<u8>, CountRange>,
        control: &Control,
    ) -> Result<Option<u64>, VerifierError> {
        let mut reader = PartRecords::new(self.claim.parts.open(&self.part.file(&self.table.name))?);
        let first = usize::from(self.part.bucketed);
        let is_single = first + self.part.columns.len() == 1;
        let null = self.part.null.as_deref().map(str::as_bytes);
        let (mut rows, mut is_header) = (0_u64, true);
        loop {
            let record = match reader.next() {
                Ok(Some(record)) if record.len() == first + self.part.columns.len() => record,
                Ok(None) => return Ok(Some(rows)),
                Ok(Some(_)) | Err(ReadError::Malformed) => return Ok(None),
                Err(ReadError::Io(error)) => return Err(error.into()),
            };
            if std::mem::take(&mut is_header) {
                continue;
            }
            rows += 1;
            let fields: Vec<(&[u8], bool)> = record.iter().skip(first).collect();
            let mut key = Vec::new();
            for &at in exact {
                let (text, quoted) = fields[at];
                let is_missing = !quoted && if is_single { null == Some(text) } else { text.is_empty() };
                append(&mut key, (!is_missing).then_some(text));
            }
            ranges.entry(key).or_default().found += 1;
            if rows.is_multiple_of(Control::STRIDE as u64) {
                control.check()?;
            }
        }
    }
}

/// Appends a cell so that no two lists of cells give the same bytes.
fn append(key: &mut Vec<u8>, cell: Option<&[u8]>) {
    key.extend_from_slice(&cell.map_or(u32::MAX, |cell| cell.len() as u32).to_be_bytes());
    key.extend_from_slice(cell.unwrap_or_default());
}
