//! Checks of generalized parts: cover and tightness of cells, and guarantees of classes.
//!
//! A class consists of the rows of a part with equal generalized cells. An adversary who knows some quasi-identifiers
//! sees the union of several classes, and the guarantee of each class implies that of the union.
//!
//! # Citations
//! docs/spec/generalize.md#proof

use std::collections::BTreeSet;
use std::sync::Arc;

use ahash::AHashMap;

use super::content::PartPlace;
use crate::control::{Cancelled, Control};
use crate::microdata::{CellShape, Column};
use crate::publication::{Guarantee, PublishedTable, TableWitness};
use crate::verifier::contract::checks::{CheckLog, CheckName};
use crate::verifier::contract::claim::shared;
use crate::verifier::contract::input::VerifierInput;
use crate::verifier::read::cells::{CellDomain, CellMeaning, ColumnMeaning, uncovered_rows, unknown_labels};
use crate::verifier::read::joint_column::JointColumn;
use crate::verifier::read::part::{ParsedColumn, ParsedPart};
use crate::verifier::read::row_keys::BucketOffsets;

/// Labels the rows of a part by their class.
pub(in crate::verifier) fn label(
    table: &PublishedTable,
    part: &mut ParsedPart,
    control: &Control,
) -> Result<(), Cancelled> {
    let Some(joint) = JointColumn::new(part, shared(table), control)? else { return Ok(()) };
    let labels: Vec<u32> = joint.codes.iter().map(|code| code + 1).collect();
    part.buckets = BucketOffsets::count(&labels);
    part.labels = Some(Arc::new(labels));
    Ok(())
}

/// Checks that every class has as many rows as the largest k of a submitted or listed k-anonymity rule.
pub(in crate::verifier) fn anonymity(
    input: &VerifierInput<'_>,
    table: &PublishedTable,
    buckets: &BucketOffsets,
    log: &mut CheckLog,
) {
    let ranges = buckets.ranges().filter(|range| !range.is_empty());
    anonymity_of(input, table, ranges.map(|range| range.len() as u64), log);
}

/// The same, of classes of these sizes.
pub(in crate::verifier) fn anonymity_of(
    input: &VerifierInput<'_>,
    table: &PublishedTable,
    sizes: impl Iterator<Item = u64>,
    log: &mut CheckLog,
) {
    let submitted = input.submitted.iter().map(|rule| rule.guarantee);
    let listed = input.publication.rules.iter().map(|rule| rule.guarantee);
    let asked = submitted.chain(listed).filter_map(|guarantee| match guarantee {
        Guarantee::KAnonymity { k } => Some(k),
        _ => None,
    });
    let Some(k) = asked.max() else { return };
    let small = sizes.filter(|size| *size < k).count();
    if small > 0 {
        log.fail(CheckName::Guarantee, format!("table {}: {small} classes have fewer than {k} rows", table.name));
    }
}

/// Compares a labelled part with the original.
///
/// Exact values must equal those of the witnessed rows. Other cells must cover them, and be the narrowest for their
/// class.
pub(in crate::verifier) fn content(
    input: &VerifierInput<'_>,
    place: &PartPlace<'_>,
    part: &ParsedPart,
    log: &mut CheckLog,
) {
    let claimed = place.claimed(input);
    let nodes = part.columns.iter().zip(&claimed.columns).filter(|(_, of)| of.cells.shape() == CellShape::Node);
    for (column, _) in nodes {
        let name = input.name(column.attribute);
        let declared = input.taxonomies.iter().find(|declared| declared.attribute == column.attribute);
        let (Some(declared), Some(cells)) = (declared, &column.cells) else { continue };
        let unknown = unknown_labels(&declared.tree, cells.iter().map(Option::as_deref));
        if unknown > 0 {
            let detail = format!("{}: {unknown} cells of {name} are no nodes of its taxonomy", place.name);
            log.fail(CheckName::Dictionary, detail);
        }
    }
    let Some(original) = input.original else { return };
    if part.rows != original.rows() {
        let detail = format!("{}: it does not have a row for each row of the original", place.name);
        return log.fail(CheckName::Content, detail);
    }
    let mut meanings: Vec<Option<(Vec<CellMeaning>, CellDomain<'_>)>> = Vec::new();
    for (column, claimed) in part.columns.iter().zip(&claimed.columns) {
        let domain = &original.column(column.attribute).domain;
        let of_column = column.cells.as_ref().map(|cells| {
            let declared = input.taxonomies.iter().find(|declared| declared.attribute == column.attribute);
            let cell_domain =
                CellDomain::new(claimed.cells.shape(), declared.map(|declared| declared.tree.as_ref()), domain)?;
            let cells = cells.iter().map(|cell| CellMeaning::read(&cell_domain, cell.as_deref()));
            Some((cells.collect::<Option<Vec<CellMeaning>>>()?, cell_domain))
        });
        if matches!(of_column, Some(None)) {
            let name = input.name(column.attribute);
            let detail = format!("{}: cells of {name} are not made of values of the original", place.name);
            log.fail(CheckName::Dictionary, detail);
            return log.fail(CheckName::Content, format!("{}: its cells cannot be read", place.name));
        }
        meanings.push(of_column.flatten());
    }
    let columns = part.columns.iter().zip(&meanings).map(|(column, meanings)| ComparedColumn {
        column,
        meaning: meanings.as_ref().map(|(meanings, cell_domain)| (meanings.as_slice(), cell_domain)),
        original: original.column(column.attribute),
    });
    let rows = PartComparison { input, place: place.name, part, columns: columns.collect() };
    match input.witness.map(|witness| witness.tables.get(place.table)) {
        Some(Some(TableWitness::Rows(places))) => rows.linked(places, log),
        Some(_) => log.fail(CheckName::Content, format!("{}: the assignment of rows is of another kind", place.name)),
        None => rows.unlinked(log),
    }
}

/// A row in one column: its class, the cell that it shows, and the code of its value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ClassCell {
    pub(super) class: u32,
    pub(super) cell: u32,
    pub(super) code: u32,
}

/// The classes with a cell that is not the narrowest for the values of their rows.
pub(super) fn loose_classes(meaning: ColumnMeaning<'_>, mut rows: Vec<ClassCell>) -> usize {
    let (meanings, cell_domain) = meaning;
    rows.sort_unstable();
    rows.dedup();
    let mut codes = Vec::new();
    let loose = rows.chunk_by(|a, b| (a.class, a.cell) == (b.class, b.cell)).filter(|class| {
        codes.clear();
        codes.extend(class.iter().map(|row| row.code));
        !meanings[class[0].cell as usize].is_tight(&codes, cell_domain)
    });
    loose.count()
}

/// A published column with the original one, and the meaning of cells that stand for several values.
struct ComparedColumn<'a> {
    column: &'a ParsedColumn,
    meaning: Option<ColumnMeaning<'a>>,
    original: &'a Column,
}

/// The rows of a part, as many as those of the original.
struct PartComparison<'a> {
    input: &'a VerifierInput<'a>,
    /// The names of table and part, for details.
    place: &'a str,
    part: &'a ParsedPart,
    columns: Vec<ComparedColumn<'a>>,
}

impl PartComparison<'_> {
    /// Compares the rows with those that the witness assigns to them.
    fn linked(&self, places: &[u32], log: &mut CheckLog) {
        let Self { input, place, part, columns } = self;
        let mut taken = vec![false; part.rows];
        let fresh = |&at: &u32| taken.get_mut(at as usize).is_some_and(|taken| !std::mem::replace(taken, true));
        if places.len() != part.rows || !places.iter().all(fresh) {
            return log.fail(CheckName::Content, format!("{place}: rows do not stand each in a place of its own"));
        }
        let labels = part.labels.as_deref().map(Vec::as_slice).unwrap_or_default();
        for ComparedColumn { column, meaning, original } in columns {
            let name = input.name(column.attribute);
            let cells = || places.iter().map(|&at| column.codes.get(at as usize)).zip(original.codes.iter());
            let Some((meanings, cell_domain)) = meaning else {
                let wrong = cells().filter(|(cell, code)| cell != code).count();
                if wrong > 0 {
                    log.fail(CheckName::Content, format!("{place}: {wrong} rows have another value of {name}"));
                }
                continue;
            };
            let wrong = cells().filter(|(cell, code)| !meanings[*cell as usize].covers(*code, cell_domain)).count();
            if wrong > 0 {
                let detail = format!("{place}: {wrong} rows have a value of {name} that their cell does not cover");
                log.fail(CheckName::Content, detail);
            }
            // class, cell and code of every row
            let class = |at: u32| labels.get(at as usize).copied().unwrap_or(0);
            let rows = places.iter().zip(cells()).map(|(&at, (cell, code))| ClassCell { class: class(at), cell, code });
            let loose = loose_classes((meanings, cell_domain), rows.collect());
            if loose > 0 {
                let detail = format!(
                    "{place}: in {loose} classes cells of {name} are not the narrowest for the values of their rows"
                );
                log.fail(CheckName::Dictionary, detail);
            }
        }
    }

    /// Compares the rows without a witness.
    ///
    /// Exact values together must be the projection of the original. Some assignment of rows to the cells of each
    /// generalized attribute must cover all values.
    fn unlinked(&self, log: &mut CheckLog) {
        let Self { input, place, part, columns } = self;
        let rows = part.rows;
        let mut numbers: [Vec<u32>; 2] = [vec![0; rows], vec![0; rows]];
        let mut exact: BTreeSet<u32> = BTreeSet::new();
        for ComparedColumn { column, meaning, original } in columns {
            let Some((meanings, cell_domain)) = meaning else {
                let mut pairs: AHashMap<(u32, u32), u32> = AHashMap::new();
                for (numbers, codes) in numbers.iter_mut().zip([&column.codes, &original.codes]) {
                    for (number, code) in numbers.iter_mut().zip(codes.iter()) {
                        let next = pairs.len() as u32;
                        *number = *pairs.entry((*number, code)).or_insert(next);
                    }
                }
                exact.insert(u32::from(column.attribute.0));
                continue;
            };
            let mut counts = vec![0_u64; meanings.len()];
            column.codes.iter().for_each(|cell| counts[cell as usize] += 1);
            let short = uncovered_rows(meanings, cell_domain, &counts, &original.counts());
            if short > 0 {
                let name = input.name(column.attribute);
                let detail = format!("{place}: for the values of {name} in {short} rows there are not enough cells");
                log.fail(CheckName::Content, detail);
            }
        }
        numbers.iter_mut().for_each(|numbers| numbers.sort_unstable());
        if !exact.is_empty() && numbers[0] != numbers[1] {
            log.fail(CheckName::Content, format!("{place}: its exact values are not those of the original"));
        }
    }
}
