//! Row correspondence of earlier releases, and the requirements that remain for the new release alone.
//!
//! # Citations
//! docs/spec/sequential.md#row-correspondence

use ahash::{AHashMap, AHashSet};

use super::join::ReleaseJoin;
use super::observed::ObservedRelease;
use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, CellShape, Column, Table};
use crate::publication::{EarlierRelease, RecordMatches, RowCorrespondence, XyMeasure, XyRequirement, YElement};

/// The part of a requirement that concerns the new release alone.
///
/// It matters where rows of the new release may match no other row.
///
/// X and Y are restricted to the new release. Without Y, anonymity counts rows, so every group needs enough of them.
/// Shares of values that only others publish are 0 in a row that joins none of them.
pub(in crate::verifier) fn by_itself(requirement: &XyRequirement) -> Option<XyRequirement> {
    let is_new = |element: &YElement| {
        matches!(element, YElement::Key(0)) || matches!(element, YElement::Attribute(of) if of.release == 0)
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
                requirement.y.iter().filter(|element| matches!(element, YElement::Attribute(_))).collect();
            for value in sensitive.iter_mut().flatten() {
                let mut at = 0;
                value.retain(|_| {
                    at += 1;
                    labelled.get(at - 1).is_some_and(|element| is_new(element))
                });
            }
        }
    }
    Some(cut)
}

/// Whether a requirement names a release other than the new one.
pub(in crate::verifier) fn names_others(requirement: &XyRequirement) -> bool {
    let of_element = |element: &YElement| match element {
        YElement::Attribute(of) => of.release,
        YElement::Key(release) => *release,
    };
    requirement.x.iter().map(|of| of.release).chain(requirement.y.iter().map(of_element)).any(|release| release > 0)
}

/// Whether an earlier release has the same rows as the new one, which has `rows` rows.
///
/// # Errors
/// The detail, when the declared correspondence is false.
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
                return Err("the record keys of an earlier release identify other rows");
            }
            let complete = records.rows.len() == release.rows && release.rows == rows;
            if let Some(original) = original.filter(|_| complete) {
                let pairs = values.names().iter().zip(0..).filter_map(|(name, at)| {
                    let other = original.names().iter().position(|of| of == name)?;
                    Some([values.column(Attr::from(at)), original.column(Attr::from(other))])
                });
                if !are_equal(pairs, [records.rows.len(), original.rows()]) {
                    return Err("the values that record keys identify are not those of the original");
                }
            }
            Ok(complete)
        }
    }
}

/// Whether matched rows of an earlier release have labels above the values of their records.
///
/// This concerns all attributes of the new release.
///
/// Then the join contains the true tuple of the row.
pub(in crate::verifier) fn are_linked(
    join: &ReleaseJoin<'_>,
    number: usize,
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

/// Whether the exact values of an earlier release, together, are those of the original.
fn is_of(release: &EarlierRelease, original: &Table) -> bool {
    let exact = release.columns.iter().filter(|column| column.shape == CellShape::Exact && !column.nodes);
    let pairs = exact.filter_map(|column| {
        let at = original.names().iter().position(|name| *name == column.name)?;
        Some([&column.cells, original.column(Attr::from(at))])
    });
    are_equal(pairs, [release.rows, original.rows()])
}

/// Whether two tables, given by columns of the same attributes, are equal as multisets of rows.
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
