//! Checks of parts against the original, by the witness.
//!
//! Each part is the projection that the witness declares, and labels do not reveal the order of rows.

use std::borrow::Cow;
use std::collections::BTreeMap;

use rayon::prelude::*;

use super::slicing;
use crate::control::Control;
use crate::microdata::{Codes, Table};
use crate::publication::{Part, TableWitness};
use crate::verifier::contract::checks::{CheckLog, CheckName};
use crate::verifier::contract::claim;
use crate::verifier::contract::input::{VerifierError, VerifierInput};
use crate::verifier::read::part::{KEYED_ROWS, ParsedPart};
use crate::verifier::read::row_keys::{BucketOffsets, RowKeys, RowsToPack};

/// Ranges of buckets whose rows are found by one pass over the assignment each, at least; in a table that is not large fewer.
const FEWEST_RANGES: usize = 8;

/// Ranges in a huge table, about.
const MOST_RANGES: usize = 64;

/// Pieces of a range, about.
const RANGE_PIECES: usize = 4;

/// Minimal number of buckets for the check against the order of rows.
///
/// With fewer buckets, honest labels follow the order by chance (with 12 buckets: less than once in 10^7 tables).
const MIN_BUCKETS_FOR_ORDER: usize = 12;

/// Minimal number of buckets for the comparison of the labels of two tables.
const MIN_BUCKETS_FOR_INDEPENDENCE: usize = 9;

/// Place of a part in a publication.
pub(in crate::verifier) struct PartPlace<'a> {
    /// The index of the table.
    pub(in crate::verifier) table: usize,
    /// The index of the part in its table.
    pub(in crate::verifier) position: usize,
    /// The names of table and part, for details.
    pub(in crate::verifier) name: &'a str,
}

impl PartPlace<'_> {
    /// The part as the publication claims it.
    pub(in crate::verifier) fn claimed<'e>(&self, input: &VerifierInput<'e>) -> &'e Part {
        &input.publication.tables[self.table].parts[self.position]
    }
}

/// Compares a part with the original.
pub(in crate::verifier) fn check(
    input: &VerifierInput<'_>,
    place: &PartPlace<'_>,
    part: &ParsedPart,
    log: &mut CheckLog,
) {
    let Some(original) = input.original else { return };
    let mut fail = |detail: &str| log.fail(CheckName::Content, format!("{}: {detail}", place.name));
    let suppressed = usize::try_from(input.publication.suppressed).unwrap_or(usize::MAX);
    if part.counterfeits > 0 || part.is_varying {
        return with_counterfeits(input, place.table, part, place.name, log);
    }
    if part.rows.checked_add(suppressed) != Some(original.rows()) {
        return fail("it does not have a row for each row of the original that is published");
    }
    let codes = match expected_codes(input, original, place, part) {
        Ok(codes) => codes,
        Err(detail) => return fail(detail),
    };
    let expected = || {
        let columns = codes.iter().map(Cow::as_ref).zip(part.columns.iter().map(|column| column.ranks.as_deref()));
        let (mut keys, mut expected) = (part.keys(), RowKeys::pack(&part.layout(), original.rows(), columns));
        keys.sort();
        expected.sort();
        [keys, expected]
    };
    let Some(witness) = input.witness else {
        let [keys, expected] = expected();
        // without a witness, any row may be suppressed
        if keys != expected && (suppressed == 0 || !keys.are_within(&expected)) {
            fail("its rows are not the projection of the original");
        }
        return;
    };
    match (witness.tables.get(place.table), &part.labels) {
        (Some(TableWitness::Plain), None) => {
            let [keys, expected] = expected();
            if keys != expected {
                fail("its rows are not the projection of the original");
            }
        }
        (Some(TableWitness::Buckets(assigned) | TableWitness::Boxes { labels: assigned, .. }), Some(labels)) => {
            if let Err(detail) = (BucketedRows { part, assigned, labels, codes: &codes }).check(original.rows()) {
                fail(&detail);
            }
        }
        _ => fail("the assignment of rows is of another kind"),
    }
}

/// Rows of a part with buckets, and the rows of the original under the assignment.
struct BucketedRows<'a> {
    part: &'a ParsedPart,
    /// The label of each row of the original; 0 for a suppressed row.
    assigned: &'a [u32],
    /// The label of each published row.
    labels: &'a [u32],
    /// The codes of the original in each column of the part.
    codes: &'a [Cow<'a, Codes>],
}

impl BucketedRows<'_> {
    /// Checks that each bucket holds the rows that were put into it.
    fn check(&self, rows: usize) -> Result<(), String> {
        let Self { part, assigned, labels, .. } = self;
        if assigned.len() != rows {
            return Err("the assignment is of other rows".to_owned());
        }
        let (Some(found), Some(buckets)) = (counted(&published(assigned), part.rows), &part.buckets) else {
            return Err("not every row has a bucket".to_owned());
        };
        if found != *buckets {
            return Err("buckets do not have as many rows as were put into them".to_owned());
        }
        // rows in canonical order are already grouped by bucket
        let in_order = labels.is_sorted();
        let least = (rows / FEWEST_RANGES).clamp(KEYED_ROWS, KEYED_ROWS * RANGE_PIECES).max(rows / MOST_RANGES);
        let ranges = buckets.pieces(least);
        let wrong = ranges.into_par_iter().with_max_len(1).map(|range| {
            let put = range.rows(assigned);
            let shown = (!in_order).then(|| range.rows(labels));
            let wrong = range.buckets.pieces(KEYED_ROWS).into_iter().map(|piece| {
                let (first, end) = (piece.first_row, piece.first_row + piece.buckets.total());
                let shown = match &shown {
                    None => RowsToPack::Between(range.first_row + first, range.first_row + end),
                    Some(rows) => RowsToPack::These(&rows[first..end]),
                };
                self.differing(shown, &put[first..end], &piece.buckets)
            });
            wrong.sum::<usize>()
        });
        match wrong.sum::<usize>() {
            0 => Ok(()),
            wrong => Err(format!("{wrong} buckets do not hold the rows that were put into them")),
        }
    }

    /// How many of some buckets hold other rows than were put into them, both bucket by bucket.
    fn differing(&self, shown: RowsToPack<'_>, put: &[u32], buckets: &BucketOffsets) -> usize {
        let ranks = self.part.columns.iter().map(|column| column.ranks.as_deref());
        let columns = self.codes.iter().map(Cow::as_ref).zip(ranks);
        let mut expected = RowKeys::of_rows(&self.part.layout(), RowsToPack::These(put), columns);
        let mut keys = self.part.keys_of(shown);
        keys.sort_within(buckets);
        expected.sort_within(buckets);
        buckets.ranges().filter(|range| keys.slice(range.clone()) != expected.slice(range.clone())).count()
    }
}

/// The codes of the original for each column of a part; for the cells of a box, the codes of its interval.
///
/// # Errors
/// The detail of a fault in boxes.
fn expected_codes<'o>(
    input: &VerifierInput<'_>,
    original: &'o Table,
    place: &PartPlace<'_>,
    part: &ParsedPart,
) -> Result<Vec<Cow<'o, Codes>>, &'static str> {
    let boxes = match input.witness.and_then(|witness| witness.tables.get(place.table)) {
        Some(TableWitness::Boxes { boxes, .. }) => boxes.get(place.position).map(Vec::as_slice),
        _ => None,
    };
    let is_boxed = input.publication.tables.get(place.table).is_none_or(claim::is_boxed);
    let mut codes = Vec::with_capacity(part.columns.len());
    for column in &part.columns {
        let of = original.column(column.attribute);
        codes.push(match (&column.cells, boxes) {
            (Some(_), None) if is_boxed => return Err("the assignment does not say which rows share a box"),
            (None, _) | (Some(_), None) => Cow::Borrowed(&of.codes),
            (Some(_), Some(boxes)) => match slicing::intervals(column, of, boxes) {
                Some(codes) => Cow::Owned(codes),
                None => return Err("its intervals are not those of the rows that share a box"),
            },
        });
    }
    Ok(codes)
}

/// A bucket and a value in it as a number, the bucket in the higher half.
fn value_in(bucket: u32, code: u32) -> u64 {
    u64::from(bucket) << 32 | u64::from(code)
}

/// Whether each number stands in `all` as often as in `some`, or more often. Both are sorted.
fn includes(all: &[u64], some: &[u64]) -> bool {
    let mut all = all.iter().peekable();
    some.iter().all(|value| {
        while all.next_if(|other| *other < value).is_some() {}
        all.next_if_eq(&value).is_some()
    })
}

/// Compares a part of one column that has counterfeits with the original.
///
/// Each counterfeit is a value that its bucket lacks otherwise.
fn with_counterfeits(input: &VerifierInput<'_>, index: usize, part: &ParsedPart, place: &str, log: &mut CheckLog) {
    let (Some(original), [column], Some(labels)) = (input.original, &part.columns[..], &part.labels) else {
        return log.fail(CheckName::Content, format!("{place}: counterfeits stand in a part of one column"));
    };
    let real = &original.column(column.attribute).codes;
    let assigned = match input.witness.map(|witness| witness.tables.get(index)) {
        Some(Some(TableWitness::Buckets(assigned))) if assigned.len() == real.len() => Some(assigned),
        Some(_) => {
            return log.fail(CheckName::Content, format!("{place}: the assignment is of other rows"));
        }
        None => None,
    };
    // without the assignment, the part as a whole is compared
    let bucket_of = |label: u32| if assigned.is_some() { label } else { 0 };
    let shown = labels.iter().zip(column.codes.iter()).map(|(&label, code)| value_in(bucket_of(label), code));
    let mut shown: Vec<u64> = shown.collect();
    // a part has its rows in this order: a stable sort finds nothing to do
    shown.sort();
    let assigned_to = |row: usize| assigned.map_or(0, |assigned| assigned[row]);
    let is_published = |row: usize| !part.is_varying || assigned.is_none() || assigned_to(row) != 0;
    let rows = real.iter().enumerate().filter(|(row, _)| is_published(*row));
    let mut expected: Vec<u64> = Vec::with_capacity(real.len());
    expected.extend(rows.map(|(row, code)| value_in(assigned_to(row), code)));
    expected.sort_unstable();
    // without the assignment, any row may be suppressed: the placement of rows is checked
    if assigned.is_none() && part.is_varying && input.publication.suppressed > 0 {
        return;
    }
    if !includes(&shown, &expected) {
        return log
            .fail(CheckName::Content, format!("{place}: buckets lack values of the rows that were put into them"));
    }
    if assigned.is_none() || part.is_varying {
        return;
    }
    let mut fakes: BTreeMap<u32, u64> = BTreeMap::new();
    let mut expected = expected.chunk_by(PartialEq::eq).peekable();
    for shown in shown.chunk_by(PartialEq::eq) {
        let real = expected.next_if(|real| real[0] == shown[0]).map_or(0, <[u64]>::len);
        match real {
            0 if shown.len() == 1 => *fakes.entry((shown[0] >> 32) as u32).or_default() += 1,
            _ if real == shown.len() => {}
            _ => {
                let detail = format!("{place}: a counterfeit has a value that its bucket has otherwise");
                return log.fail(CheckName::Content, detail);
            }
        }
    }
    let buckets = part.buckets.as_ref().map_or(0, BucketOffsets::len);
    if fakes.len() != buckets || fakes.values().any(|number| *number != part.counterfeits) {
        log.fail(CheckName::Content, format!("{place}: buckets do not have the declared number of counterfeits"));
    }
}

/// The labels of the published rows.
fn published(assigned: &[u32]) -> Cow<'_, [u32]> {
    match assigned.contains(&0) {
        true => Cow::Owned(assigned.iter().copied().filter(|&label| label > 0).collect()),
        false => Cow::Borrowed(assigned),
    }
}

/// The buckets of an assignment; `None` unless each of `rows` rows has one.
fn counted(assigned: &[u32], rows: usize) -> Option<BucketOffsets> {
    (assigned.len() == rows && assigned.iter().all(|&label| label > 0))
        .then(|| BucketOffsets::count(assigned))
        .flatten()
}

/// Checks that labels are independent between tables, and independent of the order of rows.
pub(in crate::verifier) fn check_labels(
    input: &VerifierInput<'_>,
    control: &Control,
    log: &mut CheckLog,
) -> Result<(), VerifierError> {
    let (Some(original), Some(witness)) = (input.original, input.witness) else { return Ok(()) };
    let tables = &input.publication.tables;
    if witness.tables.len() != tables.len() {
        log.fail(CheckName::Content, "the assignment of rows is of other tables");
    }
    let rows = original.rows().saturating_sub(usize::try_from(input.publication.suppressed).unwrap_or(usize::MAX));
    let bucketed: Vec<(&str, Cow<'_, [u32]>, BucketOffsets)> = tables
        .iter()
        .zip(&witness.tables)
        .filter_map(|(table, assigned)| {
            let (TableWitness::Buckets(labels) | TableWitness::Boxes { labels, .. }) = assigned else { return None };
            let labels = published(labels);
            let buckets = counted(&labels, rows)?;
            Some((table.name.0.as_str(), labels, buckets))
        })
        .filter(|(_, _, buckets)| buckets.len() >= MIN_BUCKETS_FOR_INDEPENDENCE)
        .collect();
    for (position, (name, labels, buckets)) in bucketed.iter().enumerate() {
        control.check()?;
        if buckets.len() >= MIN_BUCKETS_FOR_ORDER && follows_rows(labels, buckets.len()) {
            log.fail(CheckName::Buckets, format!("the labels of table {name} follow the order of the rows"));
        }
        for (other, others, _) in &bucketed[..position] {
            let equal = labels.iter().zip(others.iter()).filter(|(a, b)| a == b).count();
            // independent labels agree in about one bucket
            if equal * 8 >= labels.len() * 7 {
                log.fail(CheckName::Buckets, format!("tables {other} and {name} share their labels"));
            }
        }
    }
    Ok(())
}

/// Whether labels rise or fall with the first, or with the last, row of each bucket.
fn follows_rows(labels: &[u32], buckets: usize) -> bool {
    let (mut first, mut last) = (vec![usize::MAX; buckets], vec![0; buckets]);
    for (row, &label) in labels.iter().enumerate() {
        let bucket = label as usize - 1;
        first[bucket] = first[bucket].min(row);
        last[bucket] = row;
    }
    [first, last].iter().any(|rows| rows.is_sorted() || rows.iter().rev().is_sorted())
}
