//! Columns of the upload that the release does not publish, and that tie what it publishes.
//!
//! # Citations
//! docs/spec/dependencies.md#dropped-columns

use ahash::AHashSet;

use crate::control::Control;
use crate::microdata::{Attr, AttrSet, Column, MAX_ATTRIBUTES};
use crate::verifier::contract::checks::{CheckLog, CheckName};
use crate::verifier::contract::input::{DeclaredSearch, VerifierError, VerifierInput};
use crate::verifier::definition::links::Dependencies;
use crate::verifier::definition::significance::{Acceptance, DependencyRows};

/// The dependencies on columns that the release does not publish that the adversary is assumed to know, and that are neither
/// listed nor withdrawn.
///
/// A column without a name in the release gets an attribute behind all others.
pub(in crate::verifier) fn unlisted(
    input: &VerifierInput<'_>,
    search: &DeclaredSearch<'_>,
    rows: &DependencyRows<'_>,
    control: &Control,
    log: &mut CheckLog,
) -> Result<Dependencies, VerifierError> {
    let ends: Vec<(Attr, &Column)> =
        ends(input, search).iter().filter_map(|attr| Some((attr, input.column(attr)?))).collect();
    let sorted: Vec<_> = ends.iter().map(|(_, column)| rows.by_determinant(&column.codes)).collect();
    let mut missing = Dependencies::new();
    let mut attributes = input.names.len();
    for dropped in input.dropped.iter().filter(|dropped| values(dropped.column) > 1) {
        let named = input.names.iter().position(|name| name == dropped.name);
        let mut by = AttrSet::EMPTY;
        for ((end, _), sorted) in ends.iter().zip(&sorted).filter(|((end, _), _)| Some(end.index()) != named) {
            control.check()?;
            if rows.on_dropped(sorted, dropped.column) == Acceptance::Known {
                by = by.with(*end);
            }
        }
        if by.len() < 2 || is_spelling(input, dropped.column) {
            continue;
        }
        let to = named.unwrap_or(attributes);
        let is_listed = |end: Attr| {
            let known = input.dependencies.iter().chain(search.withdrawn);
            let mut of_end = known.filter(|(from, _)| *from == AttrSet::one(end));
            of_end.any(|(_, dependent)| named.is_some() && dependent.contains(Attr::from(to)))
        };
        let unlisted: Vec<Attr> = by.iter().filter(|end| !is_listed(*end)).collect();
        let detail = |from: Attr| {
            let (from, to) = (input.name(from), dropped.name);
            format!("{from} determines \"{to}\", which the upload has and the release neither publishes nor lists")
        };
        if to >= MAX_ATTRIBUTES {
            // nothing can be said of its links
            unlisted.iter().for_each(|from| log.fail(CheckName::Dependencies, detail(*from)));
            continue;
        }
        attributes = attributes.max(to + 1);
        unlisted.iter().filter(|_| search.lists_all).for_each(|from| log.fail(CheckName::Dependencies, detail(*from)));
        missing.extend(unlisted.into_iter().map(|from| (AttrSet::one(from), AttrSet::one(Attr::from(to)))));
    }
    Ok(missing)
}

/// The attributes that may determine a dropped column: the published ones, and those of dependencies that the search did not find.
fn ends(input: &VerifierInput<'_>, search: &DeclaredSearch<'_>) -> AttrSet {
    let others = input.dependencies.iter().filter(|of| !search.found.contains(of));
    let published = input.original.map_or(AttrSet::EMPTY, |original| original.attributes());
    others.fold(published, |all, (from, to)| all.union(*from).union(*to))
}

/// Whether a published column has its values in another spelling: each determines the other in all rows.
fn is_spelling(input: &VerifierInput<'_>, dropped: &Column) -> bool {
    let of_dropped = values(dropped);
    input.original.is_some_and(|original| {
        original.attributes().iter().map(|attr| original.column(attr)).any(|column| {
            let pairs: AHashSet<(u32, u32)> = column.codes.iter().zip(dropped.codes.iter()).collect();
            values(column) == of_dropped && pairs.len() == of_dropped
        })
    })
}

/// The number of values that occur.
fn values(column: &Column) -> usize {
    column.counts().iter().filter(|rows| **rows > 0).count()
}
