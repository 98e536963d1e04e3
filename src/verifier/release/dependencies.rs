//! Checks of dependencies that an adversary may know.
//!
//! They are listed, buckets are constant where guards claim it, and no path over tables and links leads around a guard.
//!
//! # Citations
//! docs/spec/dependencies.md

use ahash::AHashMap;

use super::sequential;
use super::sequential::details::sequential_details;
use super::unpublished;
use crate::control::Control;
use crate::microdata::{Attr, AttrSet, Table};
use crate::publication::{
    CellContent, Part, Protected, PublishedColumn, PublishedTable, RuleOrigin, SubmittedRule, TableGuard,
    TableProtection, TableWitness,
};
use crate::verifier::contract::checks::{CheckLog, CheckName};
use crate::verifier::contract::claim::{DecompositionClaim, SlicingClaim, parts, promised, protections, shared};
use crate::verifier::contract::input::{DeclaredSearch, VerifierError, VerifierInput};
use crate::verifier::definition::links::{
    Dependencies, LinkedGuard, LinkedTable, LinkedTables, link_across, links_of, protected_part,
};
use crate::verifier::definition::significance::{Acceptance, DependencyRows};
use crate::verifier::read::cells::is_single;
use crate::verifier::read::part::{ParsedColumn, ParsedPart};

/// Checks the listed dependencies, the constant attributes of the witness, and every rule beside the links.
///
/// `constant` are the attributes in which the buckets of each table are constant by its parts.
pub(in crate::verifier) fn check(
    input: &VerifierInput<'_>,
    constant: &[AttrSet],
    control: &Control,
    log: &mut CheckLog,
) -> Result<(), VerifierError> {
    let mut known: Dependencies = input.dependencies.to_vec();
    if let Some((original, search)) = input.original.zip(input.dependency_search.as_ref()) {
        let rows = DependencyRows::new(original, search.tolerance);
        found(input, search, &rows, log);
        let unlisted = unlisted(input, search, &rows, control)?;
        for (determinant, dependent) in unlisted.iter().filter(|_| search.lists_all) {
            let (from, to) = (input.list(*determinant), input.list(*dependent));
            log.fail(CheckName::Dependencies, format!("{from} determines {to}, which is not listed"));
        }
        // the adversary knows them, though the release makes no use of them
        known.extend(unlisted);
        known.extend(unpublished::unlisted(input, search, &rows, control, log)?);
    }
    if input.original.is_some() {
        for index in 0..input.publication.tables.len() {
            control.check()?;
            constant_by_witness(input, index, log);
        }
    }
    match sequential_details(input) {
        Some(sequence) => sequential::links::check(input, sequence, &known, control, log),
        None => {
            paths(input, constant, &known, log);
            Ok(())
        }
    }
}

/// Checks that dependencies that were found hold and are no accidents.
fn found(input: &VerifierInput<'_>, search: &DeclaredSearch<'_>, rows: &DependencyRows<'_>, log: &mut CheckLog) {
    let attributes = input.original.map_or(AttrSet::EMPTY, Table::attributes);
    for &(determinant, dependent) in search.found {
        let holds = |to: Attr| {
            let mut members = determinant.iter();
            let accepted = match (members.next(), members.next(), members.next()) {
                (Some(one), None, None) => match (input.column(one), input.column(to)) {
                    (Some(from), Some(_)) if attributes.contains(to) => {
                        rows.single(&rows.by_determinant(&from.codes), to)
                    }
                    (Some(from), Some(dropped)) => rows.on_dropped(&rows.by_determinant(&from.codes), dropped),
                    _ => Acceptance::Unknown,
                },
                (Some(_), Some(_), None) if determinant.with(to).is_subset(attributes) => rows.pair(determinant, to),
                _ => Acceptance::Unknown,
            };
            accepted != Acceptance::Unknown
        };
        if !dependent.iter().all(holds) {
            let (from, to) = (input.list(determinant), input.list(dependent));
            log.fail(CheckName::Dependencies, format!("{from} does not determine {to}, or only by accident"));
        }
    }
}

/// The dependencies with one determinant that the adversary is assumed to know, and that are neither listed nor withdrawn.
fn unlisted(
    input: &VerifierInput<'_>,
    search: &DeclaredSearch<'_>,
    rows: &DependencyRows<'_>,
    control: &Control,
) -> Result<Dependencies, VerifierError> {
    let attributes = input.original.map_or(AttrSet::EMPTY, Table::attributes);
    let usable: AttrSet = attributes.iter().filter(|&attr| rows.is_usable(attr)).collect();
    let mut missing = Dependencies::new();
    for from in usable.iter() {
        let determinant = AttrSet::one(from);
        let Some(column) = input.column(from) else { continue };
        let sorted = rows.by_determinant(&column.codes);
        for to in usable.without(from).iter() {
            control.check()?;
            let is_it = |(of, dependent): &&(AttrSet, AttrSet)| *of == determinant && dependent.contains(to);
            let is_listed = input.dependencies.iter().chain(search.withdrawn).any(|of| is_it(&of));
            if !is_listed && rows.single(&sorted, to) == Acceptance::Known {
                missing.push((determinant, AttrSet::one(to)));
            }
        }
    }
    Ok(missing)
}

fn guards(table: &PublishedTable) -> &[TableGuard] {
    match &table.protection {
        TableProtection::Guarding(guards) => guards,
        TableProtection::Plain | TableProtection::Exclusive => &[],
    }
}

/// The guards of a table that claim constant attributes, with those in which whole buckets have to be constant.
///
/// Of attributes that a guard knows and that stand in the part of what it protects, its guarantees hold in each class of equal values.
fn constant_guards(table: &PublishedTable) -> impl Iterator<Item = (&TableGuard, AttrSet)> {
    let claiming = guards(table).iter().filter(|guard| !guard.constant.is_empty());
    claiming.map(|guard| {
        // cells of classes stand for several values
        let bucketed = table.parts.iter().filter(|part| part.bucketed);
        let of_part = |part: &Part| part.columns.iter().map(|column| column.attribute).collect::<AttrSet>();
        let protecting = bucketed.filter(|part| of_part(part).meets(guard.protects.attributes()));
        let exact = protecting.flat_map(|part| &part.columns).filter(|column| column.cells == CellContent::Exact);
        let divides: AttrSet =
            exact.map(|column| column.attribute).filter(|attr| guard.known.contains(*attr)).collect();
        (guard, guard.constant.minus(divides))
    })
}

/// Checks on the rows of the original that buckets are constant in the claimed attributes.
fn constant_by_witness(input: &VerifierInput<'_>, index: usize, log: &mut CheckLog) {
    let table = &input.publication.tables[index];
    let constant = constant_guards(table).fold(AttrSet::EMPTY, |all, (_, constant)| all.union(constant));
    let missing: AttrSet = constant.iter().filter(|attr| input.column(*attr).is_none()).collect();
    if !missing.is_empty() {
        let missing = input.list(missing);
        let detail = format!("table {}: its buckets are claimed constant in {missing}, which has no rows", table.name);
        return log.fail(CheckName::Dependencies, detail);
    }
    let assigned = input.witness.and_then(|witness| witness.tables.get(index));
    let Some(TableWitness::Buckets(labels) | TableWitness::Boxes { labels, .. }) = assigned else { return };
    for attr in constant.iter() {
        let Some(column) = input.column(attr) else { continue };
        let rows = labels.iter().copied().zip(column.codes.iter()).filter(|(label, _)| *label > 0);
        if !is_constant(rows) {
            let name = input.name(attr);
            let detail = format!("table {}: a bucket is not constant in {name}", table.name);
            log.fail(CheckName::Dependencies, detail);
        }
    }
}

/// The attributes of a part in which the rows of each label agree.
///
/// Cells that stand for several values do not say so.
pub(in crate::verifier) fn constant_columns(input: &VerifierInput<'_>, claimed: &Part, part: &ParsedPart) -> AttrSet {
    let Some(labels) = &part.labels else { return AttrSet::EMPTY };
    let is_constant = |(column, claimed): &(&ParsedColumn, &PublishedColumn)| {
        let declared = input.taxonomies.iter().find(|declared| declared.attribute == column.attribute);
        let tree = declared.map(|declared| declared.tree.as_ref());
        let is_single = |cell: &Option<Vec<u8>>| is_single(claimed.cells.shape(), tree, cell.as_deref());
        let are_single = claimed.cells == CellContent::Exact
            || column.cells.as_ref().is_some_and(|cells| cells.iter().all(is_single));
        are_single && is_constant(labels.iter().copied().zip(column.codes.iter()))
    };
    let constant = part.columns.iter().zip(&claimed.columns).filter(is_constant);
    constant.map(|(column, _)| column.attribute).collect()
}

/// The claimed attributes in which the rows of a part show that a bucket is not constant.
///
/// Those of the row side are in the part, and `constant` has those in which it is constant. With the original, others
/// are compared where the protected values of a row determine them.
pub(in crate::verifier) fn varying_in_part(
    input: &VerifierInput<'_>,
    table: &PublishedTable,
    part: &ParsedPart,
    constant: AttrSet,
) -> AttrSet {
    let Some(labels) = &part.labels else { return AttrSet::EMPTY };
    let parts: Vec<AttrSet> = parts(table).collect();
    let mut varying = AttrSet::EMPTY;
    for (guard, claimed) in constant_guards(table) {
        let protected = protected_part(&parts, guards(table), guard);
        let is_constant = |attr: &Attr| match part.columns.iter().any(|column| column.attribute == *attr) {
            true => constant.contains(*attr),
            false => {
                let columns: Vec<&ParsedColumn> =
                    part.columns.iter().filter(|column| protected.contains(column.attribute)).collect();
                determined(input, &columns, *attr).is_none_or(|values| is_constant(labels.iter().copied().zip(values)))
            }
        };
        varying = varying.union(claimed.iter().filter(|attr| !is_constant(attr)).collect());
    }
    varying
}

/// For each row of a part, the value of an attribute that its protected values determine in the original.
///
/// A value that the original lacks is unlike all others. `None` where nothing is determined.
fn determined(input: &VerifierInput<'_>, columns: &[&ParsedColumn], attr: Attr) -> Option<Vec<u32>> {
    let values = &input.column(attr)?.codes;
    let from: Vec<_> =
        columns.iter().map(|column| Some(&input.column(column.attribute)?.codes)).collect::<Option<_>>()?;
    if from.is_empty() {
        return None;
    }
    let mut function: AHashMap<Vec<u32>, u32> = AHashMap::new();
    for (row, value) in values.iter().enumerate() {
        if *function.entry(from.iter().map(|codes| codes.get(row)).collect()).or_insert(value) != value {
            return None;
        }
    }
    let rows = columns.first()?.codes.len();
    let tuple = |row: usize| columns.iter().map(|column| column.codes.get(row)).collect::<Vec<u32>>();
    Some((0..rows).map(|row| function.get(&tuple(row)).copied().unwrap_or(u32::MAX)).collect())
}

/// Whether all rows with a label have the same value.
fn is_constant(rows: impl Iterator<Item = (u32, u32)>) -> bool {
    let mut first: AHashMap<u32, u32> = AHashMap::new();
    rows.into_iter().all(|(label, value)| *first.entry(label).or_insert(value) == value)
}

/// The tables and links in which paths are searched; `None` where no link constrains guards.
///
/// `constant` are the attributes in which the buckets of each table are constant by its parts.
pub(in crate::verifier) fn linked_tables(
    input: &VerifierInput<'_>,
    constant: &[AttrSet],
    known: &[(AttrSet, AttrSet)],
) -> Option<LinkedTables> {
    let links = links(input, known);
    // other definitions than guards: columns that overlap or are mixed, and joins
    if links.is_empty() || is_without_buckets(input) {
        return None;
    }
    let tables = input.publication.tables.iter().zip(constant);
    let tables = tables.map(|(table, constant)| linked_table(input, table, *constant)).collect();
    // without rows, all that is listed counts as exact
    let holds = |(determinant, dependent): &&(AttrSet, AttrSet)| {
        input.original.is_none() || dependent.iter().all(|to| input.is_exact(*determinant, to))
    };
    Some(LinkedTables { tables, links, exact: known.iter().filter(holds).copied().collect() })
}

/// The links that constrain what the release shows and its rules know.
pub(in crate::verifier) fn links(input: &VerifierInput<'_>, known: &[(AttrSet, AttrSet)]) -> Vec<AttrSet> {
    let tables = &input.publication.tables;
    let shown = tables.iter().flat_map(parts).fold(AttrSet::EMPTY, AttrSet::union);
    links_of(known, input.submitted.iter().fold(shown, |all, rule| all.union(rule.known)))
}

/// Whether the claims of the release are about mixtures over buckets, columns that share attributes, or joins.
fn is_without_buckets(input: &VerifierInput<'_>) -> bool {
    SlicingClaim::from_input(input).is_some() || sequential_details(input).is_some()
}

/// A table with its protections; those that the publication does not state follow from its shape.
fn linked_table(input: &VerifierInput<'_>, table: &PublishedTable, constant: AttrSet) -> LinkedTable {
    let parts: Vec<AttrSet> = parts(table).collect();
    let plain = LinkedTable::new(&parts, guards(table));
    let attributes = plain.attributes;
    let keeps = |guards: Vec<TableGuard>| {
        let keeps = guards.into_iter().flat_map(|guard| {
            guard.guarantees.into_iter().map(move |guarantee| (guard.protects, guarantee)).collect::<Vec<_>>()
        });
        keeps.collect::<Vec<_>>()
    };
    let (row_side, keeps) = match DecompositionClaim::from_input(input) {
        _ if table.protection != TableProtection::Exclusive => return plain,
        // values behind the buckets, listed or joint, are tied to each other
        Some(claim) if claim.buckets.name == table.name => (claim.known, claim.kept()),
        Some(_) => return plain,
        // exact cells of a row stand beside each other
        None => (shared(table), keeps(promised(input, table))),
    };
    let protected = attributes.minus(row_side);
    LinkedTable {
        attributes,
        guards: vec![LinkedGuard { row_side, protected, constant: constant.minus(protected), keeps }],
    }
}

/// Checks every rule beside the links.
///
/// What follows from a dependency is kept by the rule that it follows from.
fn paths(input: &VerifierInput<'_>, constant: &[AttrSet], known: &[(AttrSet, AttrSet)], log: &mut CheckLog) {
    if SlicingClaim::from_input(input).is_some() {
        let columns: Vec<AttrSet> = input.publication.tables.iter().flat_map(parts).collect();
        if let Some(tied) = link_across(&columns, &links(input, known)) {
            let detail = format!("dependencies tie {} across columns, where nothing is proved", input.list(tied));
            log.fail(CheckName::Dependencies, detail);
        }
        return;
    }
    let Some(linked) = linked_tables(input, constant, known) else { return };
    let listed = input.publication.rules.iter().filter(|rule| rule.origin != RuleOrigin::FromDependency);
    let listed = listed.map(|rule| SubmittedRule {
        pointer: rule.pointer.clone().unwrap_or_default(),
        known: rule.known,
        protects: rule.protects,
        guarantee: rule.guarantee,
    });
    let rules = input.submitted.iter().cloned().chain(listed);
    for rule in rules.filter(|rule| rule.protects != Protected::Rows) {
        let mut parts = protections(input, rule.protects);
        if !parts.any(|part| linked.hold(rule.known, part, rule.guarantee)) {
            let (from, to) = (input.list(rule.known), input.list(rule.protects.attributes()));
            let detail = format!("rule {}: dependencies lead from {from} to {to} around the guards", rule.pointer);
            log.fail(CheckName::Dependencies, detail);
        }
    }
}
