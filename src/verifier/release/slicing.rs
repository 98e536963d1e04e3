//! Checks of sliced tables [Li et al. 2012, sections 2.1 and 3.2].
//!
//! Take a row q of the original without its sensitive value, and the buckets B of the published table that match it.
//! The weight of a bucket is `g(q,B) = n_1 ... n_(c-1) / size^c`, where `n_i` is the number of rows of column i that
//! match q. The weight of a value s is `w(q,s)`, the sum of `g(q,B) n(u,s)`. No value may have more than 1/l of the
//! sum of all weights.
//!
//! # Citations
//! docs/spec/slicing.md#verification

use ahash::AHashMap;

use super::mixtures::MatchedColumns;
use crate::control::{Cancelled, Control};
use crate::microdata::{AttrSet, Codes, Column, write_span};
use crate::publication::{MethodDetails, SlicedDiversity, TableProtection};
use crate::verifier::contract::checks::{CheckLog, CheckName};
use crate::verifier::contract::claim::{SlicingClaim, is_boxed, parts};
use crate::verifier::contract::input::{VerifierError, VerifierInput};
use crate::verifier::read::columns_by_bucket::ColumnsByBucket;
use crate::verifier::read::joint_column::JointColumn;
use crate::verifier::read::part::{ParsedColumn, ParsedPart};

/// How many boxes of a part hold fewer rows than declared.
pub(in crate::verifier) fn rare_boxes(
    input: &VerifierInput<'_>,
    part: &ParsedPart,
    control: &Control,
) -> Result<usize, Cancelled> {
    let MethodDetails::Slicing { column_k: Some(k), .. } = &input.publication.method_details else { return Ok(0) };
    let boxed = part.columns.iter().filter(|column| column.cells.is_some()).map(|column| column.attribute).collect();
    let joint = JointColumn::new(part, boxed, control)?;
    Ok(joint.map_or(0, |joint| joint.counts().iter().filter(|rows| *rows < k).count()))
}

/// The code of the cell that each row of the original has in a part, by its box.
///
/// The cell is the interval from the smallest to the largest value of the box, open where a value is missing. `None`
/// where the part lacks such a cell.
pub(in crate::verifier) fn intervals(column: &ParsedColumn, original: &Column, box_of: &[u32]) -> Option<Codes> {
    let domain = &original.domain;
    let mut ends: AHashMap<u32, (bool, Option<(u32, u32)>)> = AHashMap::new();
    for (&of, code) in box_of.iter().zip(original.codes.iter()) {
        let (missing, ends) = ends.entry(of).or_default();
        if domain.has_missing() && code == 0 {
            *missing = true;
        } else {
            *ends = Some(ends.map_or((code, code), |(low, high)| (low.min(code), high.max(code))));
        }
    }
    let cells: AHashMap<Option<&[u8]>, u32> = column.cells.as_ref()?.iter().map(Option::as_deref).zip(0..).collect();
    let mut text = Vec::new();
    let mut code_of: AHashMap<u32, u32> = AHashMap::new();
    for (of, (missing, ends)) in ends {
        text.clear();
        let cell = match ends {
            None => None,
            Some((low, high)) => {
                write_span(if missing { None } else { domain.value(low) }, domain.value(high)?, &mut text);
                Some(text.as_slice())
            }
        };
        code_of.insert(of, *cells.get(&cell)?);
    }
    let codes: Vec<u32> = box_of.iter().map(|of| code_of[of]).collect();
    (codes.len() == original.codes.len()).then_some(Codes::U32(codes))
}

/// Checks the claims of a sliced publication about its columns.
pub(in crate::verifier) fn claims(input: &VerifierInput<'_>, log: &mut CheckLog) {
    let MethodDetails::Slicing { columns, diversity, column_k } = &input.publication.method_details else { return };
    let [table] = &input.publication.tables[..] else {
        return log.fail(CheckName::Columns, "a sliced publication has one table");
    };
    if !parts(table).eq(columns.iter().copied()) || !table.parts.iter().all(|part| part.bucketed) {
        log.fail(CheckName::Columns, format!("table {}: its parts are not the declared columns", table.name));
    }
    if column_k.is_some() && !is_boxed(table) {
        log.fail(CheckName::Columns, format!("table {}: its columns are not generalized", table.name));
    }
    let protected = input.publication.rules.iter().map(|rule| rule.protects.attributes());
    let protected = protected.fold(AttrSet::EMPTY, AttrSet::union);
    if columns.last().is_none_or(|last| !protected.is_subset(*last)) {
        log.fail(
            CheckName::Columns,
            format!("table {}: the sensitive attribute is not in the last column", table.name),
        );
    }
    let shares = columns.iter().map(|column| column.len()).sum::<usize>()
        > columns.iter().fold(AttrSet::EMPTY, |all, column| all.union(*column)).len();
    let contained = |(at, column): (usize, &AttrSet)| {
        columns.iter().enumerate().any(|(other, outer)| other != at && column.is_subset(*outer))
    };
    if columns.iter().enumerate().any(contained) || (shares && column_k.is_some()) {
        log.fail(CheckName::Columns, format!("table {}: its columns are not those of slicing", table.name));
    }
    let guarding = matches!(table.protection, TableProtection::Guarding(_));
    let guards = *diversity == SlicedDiversity::Bucket && !shares;
    if guarding != guards || (!guarding && SlicingClaim::from_input(input).is_none()) {
        let detail = format!("table {}: its protection is not that of the declared diversity", table.name);
        log.fail(CheckName::Guards, detail);
    }
}

/// Checks the claim of columns without shared attributes for the rows of the original.
///
/// `read` has all parts of the table.
pub(in crate::verifier) fn check(
    input: &VerifierInput<'_>,
    claim: &SlicingClaim,
    read: &[ParsedPart],
    control: &Control,
    log: &mut CheckLog,
) -> Result<(), VerifierError> {
    let Some(original) = input.original else { return Ok(()) };
    let is_complete = input.publication.tables.first().is_some_and(|table| table.parts.len() == read.len());
    let Some(columns) = ColumnsByBucket::of_codes(read, claim.sensitive).filter(|_| is_complete) else {
        log.fail(CheckName::Guarantee, "a sliced table could not be read completely");
        return Ok(());
    };
    // also expected rows: with buckets weighted by their size
    let is_weighted = claim.diversity == SlicedDiversity::MixtureWeighted;
    let trees = columns.trees().filter(|_| is_weighted);
    if is_weighted && trees.is_none() {
        log.fail(CheckName::Guarantee, "what the columns say together is not known");
        return Ok(());
    }
    let matched = MatchedColumns::new(&columns, trees.as_deref(), control)?;
    let values = |attr| original.column(attr).codes.iter().collect();
    matched.check(claim.l, original.rows(), values, control, log)?;
    Ok(())
}
