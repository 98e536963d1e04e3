//! Whose rows earlier releases have, and what that leaves to be asked of the new one alone (sequential, section 10).

use ahash::{AHashMap, AHashSet};

use super::join::ReleaseJoin;
use super::observed::ObservedRelease;
use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, CellShape, Column, Table};
use crate::publication::{EarlierRelease, RecordMatches, RowCorrespondence, XyMeasure, XyRequirement, YElement};

/// A requirement as far as it speaks of the new release by itself, where rows of that may match nothing.
///
/// What is known and what is told is cut down to the new release. Distinct values on nothing are counted as rows, of which every group
/// must then have enough; shares of a value that only others publish are nobody's in a row that is joined with none of them.
pub(in crate::verifier) fn by_itself(requirement: &XyRequirement) -> Option<XyRequirement> {
    let is_new = |told: &YElement| {
        matches!(told, YElement::Key(0)) || matches!(told, YElement::Attribute(of) if of.release == 0)
    };
    let mut cut = requirement.clone();
    cut.x.retain(|of| of.release == 0);
    cut.y.retain(is_new);
    if cut.x.is_empty() && cut.y.is_empty() {
        return None;
    }
    match &mut cut.measure {
        XyMeasure::Anonymity { .. } => {
            if cut.y.is_empty() {
                cut.y = vec![YElement::Key(0)];
            }
        }
        XyMeasure::Linkability { sensitive, .. } => {
            if cut.y.is_empty() {
                return None;
            }
            let labelled: Vec<&YElement> =
                requirement.y.iter().filter(|told| matches!(told, YElement::Attribute(_))).collect();
            for value in sensitive.iter_mut().flatten() {
                let mut at = 0;
                value.retain(|_| {
                    at += 1;
                    labelled.get(at - 1).is_some_and(|told| is_new(told))
                });
            }
        }
    }
    Some(cut)
}

/// Whether a requirement names another release than the new one.
pub(in crate::verifier) fn names_others(requirement: &XyRequirement) -> bool {
    let of_told = |told: &YElement| match told {
        YElement::Attribute(of) => of.release,
        YElement::Key(release) => *release,
    };
    requirement.x.iter().map(|of| of.release).chain(requirement.y.iter().map(of_told)).any(|release| release > 0)
}

/// Whether the rows of an earlier release are those of the new one, of which there are so many; `Err` when it is said and is not so.
pub(in crate::verifier) fn are_same(
    release: &EarlierRelease,
    rows: usize,
    original: Option<&Table>,
) -> Result<bool, &'static str> {
    match &release.rows_of {
        RowCorrespondence::Unknown => Ok(false),
        RowCorrespondence::Content => {
            match release.rows == rows && original.is_none_or(|original| is_of(release, original)) {
                true => Ok(true),
                false => Err("an earlier release is not of the same rows"),
            }
        }
        RowCorrespondence::Records(records) => {
            let distinct: AHashSet<u32> = records.rows.iter().copied().collect();
            let in_range = records.rows.iter().all(|row| (*row as usize) < release.rows);
            let values = &records.values;
            if distinct.len() != records.rows.len()
                || !in_range
                || (!values.names().is_empty() && values.rows() != records.rows.len())
            {
                return Err("rows of an earlier release are not told by record keys");
            }
            let complete = records.rows.len() == release.rows && release.rows == rows;
            if let Some(original) = original.filter(|_| complete) {
                let pairs = values.names().iter().zip(0..).filter_map(|(name, at)| {
                    let other = original.names().iter().position(|of| of == name)?;
                    Some([values.column(Attr::from(at)), original.column(Attr::from(other))])
                });
                if !are_equal(pairs, [records.rows.len(), original.rows()]) {
                    return Err("what record keys tell of the original is not what it has");
                }
            }
            Ok(complete)
        }
    }
}

/// Whether every row of an earlier release that a record key tells has labels above what the original has of that record, in all
/// attributes that the new release has too: then the true tuple of it is in the join.
pub(in crate::verifier) fn are_tied(
    (join, number): (&ReleaseJoin<'_>, usize),
    release: &EarlierRelease,
    new: &ObservedRelease,
    control: &Control,
) -> Result<bool, Cancelled> {
    let RowCorrespondence::Records(RecordMatches { rows, values }) = &release.rows_of else { return Ok(true) };
    for column in release.columns.iter().filter(|column| new.column(&column.name).is_some()) {
        control.check()?;
        let Some(at) = values.names().iter().position(|name| *name == column.name) else { return Ok(false) };
        let of = values.column(Attr::from(at));
        let mut seen: AHashMap<(u32, u32), bool> = AHashMap::new();
        for (&row, value) in rows.iter().zip(of.codes.iter()) {
            let cell = column.cells.codes.get(row as usize);
            let above = || join.is_above(number, &column.name, column.cells.domain.value(cell), of.domain.value(value));
            if !*seen.entry((cell, value)).or_insert_with(above) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Whether exact values of an earlier release are, together, those of the original.
fn is_of(release: &EarlierRelease, original: &Table) -> bool {
    let exact = release.columns.iter().filter(|column| column.shape == CellShape::Exact && !column.nodes);
    let pairs = exact.filter_map(|column| {
        let at = original.names().iter().position(|name| *name == column.name)?;
        Some([&column.cells, original.column(Attr::from(at))])
    });
    are_equal(pairs, [release.rows, original.rows()])
}

/// Whether two tables, given by columns of the same attributes, have equal rows equally often.
fn are_equal<'a>(pairs: impl Iterator<Item = [&'a Column; 2]>, rows: [usize; 2]) -> bool {
    let mut numbers: [Vec<u32>; 2] = rows.map(|rows| vec![0; rows]);
    let mut next: AHashMap<(u32, Option<Vec<u8>>), u32> = AHashMap::new();
    for pair in pairs {
        next.clear();
        for (numbers, column) in numbers.iter_mut().zip(pair) {
            for (row, number) in numbers.iter_mut().enumerate() {
                let fresh = next.len() as u32;
                *number = *next.entry((*number, column.value(row).map(<[u8]>::to_vec))).or_insert(fresh);
            }
        }
    }
    numbers.iter_mut().for_each(|numbers| numbers.sort_unstable());
    numbers[0] == numbers[1]
}
