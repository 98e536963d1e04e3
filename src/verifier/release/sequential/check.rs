//! Checks of a sequential release: cuts, rows, and requirements on the join.
//!
//! # Citations
//! docs/spec/sequential.md#verification

use std::collections::BTreeMap;
use std::sync::Arc;

use ahash::AHashMap;

use super::details::{earlier, joined_as, others};
use super::observed::ObservedColumn;
use super::premise;
use crate::control::Control;
use crate::microdata::{Attr, AttributeType, CellInterval, CellShape, SUPPRESSED_CELL, Table, Taxonomy};
use crate::publication::{EarlierRelease, PublishedTable, SequentialDetails, TableWitness};
use crate::verifier::contract::checks::{CheckLog, CheckName};
use crate::verifier::contract::evidence::{Evidence, VerifierError};

pub(crate) use super::groups::JoinError;
pub(crate) use super::join::ReleaseJoin;
pub(crate) use super::observed::ObservedRelease;

/// Checks cuts, rows, row correspondence and requirements.
pub(in crate::verifier) fn check(
    evidence: &Evidence<'_>,
    sequence: &SequentialDetails,
    control: &Control,
    log: &mut CheckLog,
) -> Result<(), VerifierError> {
    let [table] = &evidence.publication.tables[..] else { return Ok(()) };
    let [part] = &table.parts[..] else { return Ok(()) };
    let kind = |at: usize| evidence.kind(part.columns[at].attribute).unwrap_or(AttributeType::Text);
    let bytes = evidence.parts.open(&part.file(&table.name))?;
    let Some(mut observed) = ObservedRelease::read(part, &kind, bytes, control)? else {
        log.fail(CheckName::Requirements, "the rows of the part cannot be read");
        return Ok(());
    };
    for column in &mut observed.columns {
        column.name = joined_as(sequence, 0, &column.name).to_owned();
    }
    let mut trees: BTreeMap<String, Arc<Taxonomy>> = BTreeMap::new();
    for declared in evidence.taxonomies {
        if let Some(name) = evidence.names.get(declared.attribute.index()) {
            trees.insert(joined_as(sequence, 0, name).to_owned(), Arc::clone(&declared.tree));
        }
    }
    cuts(sequence, &observed, &trees, log);
    if let Some(original) = evidence.original {
        rows(evidence, table, original, &observed, (sequence, &trees), control, log)?;
    }
    let Some(earlier) = earlier(evidence.earlier_releases, sequence) else { return Ok(()) };
    let same_rows = match correspondence(evidence, sequence, &earlier, observed.rows, log) {
        Ok(same_rows) => same_rows,
        Err(detail) => {
            log.fail(CheckName::Requirements, detail);
            return Ok(());
        }
    };
    if let Some(excluded) = evidence.earlier_releases.and_then(|earlier| earlier.excluded.as_deref()) {
        exclusions(sequence, excluded, &trees, control, log)?;
    } else if evidence.original.is_some() && !sequence.exclusions.is_empty() {
        log.fail(CheckName::Requirements, "an exclusion cannot be checked against the original");
    }
    if !trees_agree(&trees, &earlier, &observed) {
        log.fail(CheckName::Requirements, "releases publish nodes of different taxonomies of one attribute");
        return Ok(());
    }
    let earlier: Vec<(&EarlierRelease, ObservedRelease)> =
        earlier.into_iter().map(|release| (release, ObservedRelease::from_earlier(release))).collect();
    let join = ReleaseJoin::new(&observed, &trees, &earlier, &sequence.exclusions);
    for (number, (release, _)) in (1..).zip(&earlier) {
        if !premise::are_linked(&join, number, release, &observed, control)? {
            let detail = "a row of an earlier release has labels that do not cover its record in the original";
            log.fail(CheckName::Requirements, detail);
            return Ok(());
        }
    }
    requirements(sequence, &join, &same_rows, control, log)
}

/// Checks the declared names and origins of earlier releases.
///
/// Returns for each whether it has the rows of the new release.
///
/// # Errors
/// The detail of a fault that leaves the rows unknown.
fn correspondence(
    evidence: &Evidence<'_>,
    sequence: &SequentialDetails,
    earlier: &[&EarlierRelease],
    rows: usize,
    log: &mut CheckLog,
) -> Result<Vec<bool>, &'static str> {
    for (number, release) in (1..).zip(earlier) {
        let names = release.columns.iter().map(|column| (column.name.clone(), column.published.clone()));
        if sequence.renamed.get(&number) != others(names).as_ref() {
            return Err("the declared names in an earlier release are not its names");
        }
    }
    let same_rows = earlier.iter().map(|release| premise::are_same(release, rows, evidence.original));
    let same_rows: Vec<bool> = same_rows.collect::<Result<_, _>>()?;
    if sequence.other_rows != same_rows.contains(&false) {
        log.fail(CheckName::Requirements, "the declared correspondence of rows is not that of the releases");
    }
    let is_declared = |(id, release): (&String, &&EarlierRelease)| sequence.entered.contains(id) == release.entered;
    if !sequence.against.iter().zip(earlier).all(is_declared) {
        log.fail(CheckName::Requirements, "the declared external releases are not those that were published elsewhere");
    }
    Ok(same_rows)
}

/// Checks the requirements on the join.
fn requirements(
    sequence: &SequentialDetails,
    join: &ReleaseJoin<'_>,
    same_rows: &[bool],
    control: &Control,
    log: &mut CheckLog,
) -> Result<(), VerifierError> {
    let fault = join.check(sequence, control).and_then(|fault| {
        // without known correspondence, a row need not match
        let is_complete = fault.is_some() || join.all_rows_match(same_rows, control)?;
        Ok(fault.or_else(|| (!is_complete).then(|| "rows of the release match none of an earlier one".to_owned())))
    });
    match fault {
        Ok(None) => {}
        Ok(Some(detail)) => log.fail(CheckName::Requirements, detail),
        Err(JoinError::Cancelled(cancelled)) => return Err(cancelled.into()),
        Err(JoinError::TooMany) => return Err(VerifierError::TooDense),
        Err(JoinError::Unknown) => log.fail(CheckName::Requirements, "a requirement names an unknown attribute"),
        Err(JoinError::Empty) => log.fail(CheckName::Requirements, "a join has no tuples"),
    }
    Ok(())
}

/// Whether all releases that publish nodes of an attribute use one taxonomy.
fn trees_agree(
    trees: &BTreeMap<String, Arc<Taxonomy>>,
    earlier: &[&EarlierRelease],
    observed: &ObservedRelease,
) -> bool {
    let mut of_name: BTreeMap<&str, &Arc<Taxonomy>> = BTreeMap::new();
    let own = observed
        .columns
        .iter()
        .filter(|column| column.shape == CellShape::Node)
        .map(|column| (&column.name, trees.get(&column.name)));
    let others = earlier.iter().flat_map(|release| {
        let nodes = release.columns.iter().filter(|column| column.nodes);
        nodes.map(|column| (&column.name, release.taxonomies.get(&column.name)))
    });
    for (name, tree) in own.chain(others) {
        let Some(tree) = tree else { return false };
        if of_name.insert(name, tree).is_some_and(|other| other.digest() != tree.digest()) {
            return false;
        }
    }
    // the taxonomy of the new release places exact values
    of_name.iter().all(|(name, tree)| trees.get(*name).is_none_or(|own| own.digest() == tree.digest()))
}

/// Checks that cuts have exactly one label on the path of every leaf, and cells no other labels.
fn cuts(
    sequence: &SequentialDetails,
    observed: &ObservedRelease,
    trees: &BTreeMap<String, Arc<Taxonomy>>,
    log: &mut CheckLog,
) {
    for (name, labels) in &sequence.cuts {
        let Some(column) = observed.column(name).map(|at| &observed.columns[at]) else { continue };
        let mut fail = |detail: &str| log.fail(CheckName::Requirements, format!("the cut of \"{name}\" {detail}"));
        let is_of_cut =
            |label: &Option<Vec<u8>>| labels.iter().any(|of| of.as_ref().map(String::as_bytes) == label.as_deref());
        if !column.labels.iter().all(is_of_cut) {
            fail("does not have the labels of the cells");
        }
        match (column.shape, trees.get(name)) {
            (CellShape::Node, Some(tree)) => {
                let nodes: Vec<u32> = (0..tree.len() as u32)
                    .filter(|node| labels.iter().any(|of| of.as_deref() == tree.label(*node)))
                    .collect();
                let on_path = |leaf: &u32| {
                    let path = std::iter::successors(Some(*leaf), |node| tree.parent(*node));
                    path.filter(|node| nodes.contains(node)).count()
                };
                let is_leaf = |node: &u32| (0..tree.len() as u32).all(|other| tree.parent(other) != Some(*node));
                if nodes.len() != labels.len()
                    || !(0..tree.len() as u32).filter(is_leaf).all(|leaf| on_path(&leaf) == 1)
                {
                    fail("does not have exactly one node above every leaf");
                }
            }
            (CellShape::Suppressed, _) => {
                if labels != &[Some(SUPPRESSED_CELL.to_owned())] {
                    fail("is not the suppressed cell");
                }
            }
            (CellShape::Interval, _) => {
                if intervals(labels, column.kind).is_none() {
                    fail("does not consist of disjoint intervals");
                }
            }
            _ => fail("belongs to exact cells"),
        }
    }
}

/// Ends of an interval of a cut.
///
/// The missing value precedes all others.
type IntervalEnds = (Option<Vec<u8>>, Option<Vec<u8>>);

fn intervals(labels: &[Option<String>], kind: AttributeType) -> Option<Vec<IntervalEnds>> {
    let read = |label: &Option<String>| match label {
        None => Some((None, None)),
        Some(text) => {
            let span = CellInterval::parse(text.as_bytes())?;
            Some((span.from.as_deref().map(<[u8]>::to_vec), Some(span.to.to_vec())))
        }
    };
    let mut ends: Vec<IntervalEnds> = labels.iter().map(read).collect::<Option<_>>()?;
    ends.sort_by(|a, b| kind.compare(a.1.as_deref(), b.1.as_deref()));
    let rises = |ends: &IntervalEnds| kind.compare(ends.0.as_deref(), ends.1.as_deref()).is_le();
    let apart = |pair: &[IntervalEnds]| kind.compare(pair[0].1.as_deref(), pair[1].0.as_deref()).is_lt();
    (ends.iter().all(rises) && ends.windows(2).all(apart)).then_some(ends)
}

/// Checks that the published rows are the cuts applied to the rows of the original.
pub(in crate::verifier) fn rows(
    evidence: &Evidence<'_>,
    table: &PublishedTable,
    original: &Table,
    observed: &ObservedRelease,
    (sequence, trees): (&SequentialDetails, &BTreeMap<String, Arc<Taxonomy>>),
    control: &Control,
    log: &mut CheckLog,
) -> Result<(), VerifierError> {
    let fail = |log: &mut CheckLog, detail: &str| {
        log.fail(CheckName::Content, format!("table {}: {detail}", table.name));
    };
    if observed.rows != original.rows() {
        fail(log, "it does not have a row for each row of the original");
        return Ok(());
    }
    // by column, the label of each code of the original
    let mut expected: Vec<(usize, Vec<Option<u32>>)> = Vec::new();
    for (column, described) in observed.columns.iter().zip(&table.parts[0].columns) {
        control.check()?;
        let attr = described.attribute;
        if !original.attributes().contains(attr) {
            fail(log, "it has an attribute that the original lacks");
            return Ok(());
        }
        let domain = &original.column(attr).domain;
        let cut = sequence.cuts.iter().find(|(name, _)| *name == column.name).map(|(_, labels)| labels);
        let number: AHashMap<Option<&[u8]>, u32> = column.labels.iter().map(Option::as_deref).zip(0..).collect();
        let label = |value: Option<&[u8]>| match cut {
            None => Some(value.map(<[u8]>::to_vec)),
            Some(labels) => applied(labels, column, trees.get(&column.name), value),
        };
        let codes = domain.iter().map(|value| number.get(&label(value)?.as_deref()).copied());
        let codes: Vec<Option<u32>> = codes.collect();
        if column.shape == CellShape::Interval && !is_tight(cut.map_or(&[], Vec::as_slice), domain, column.kind) {
            log.fail(
                CheckName::Dictionary,
                format!("intervals of {} are not the narrowest for the values of their rows", evidence.name(attr)),
            );
        }
        if codes.contains(&None) {
            let name = evidence.name(attr);
            fail(log, &format!("values of {name} have no published label"));
            return Ok(());
        }
        expected.push((attr.index(), codes));
    }
    let wanted = |row: usize| -> Vec<Option<u32>> {
        expected.iter().map(|(at, of_code)| of_code[original.column(Attr::from(*at)).codes.get(row) as usize]).collect()
    };
    let found =
        |row: usize| -> Vec<Option<u32>> { observed.columns.iter().map(|column| Some(column.codes[row])).collect() };
    match evidence.witness.map(|witness| witness.tables.first()) {
        Some(Some(TableWitness::Rows(places))) => {
            let mut taken = vec![false; observed.rows];
            let fresh = |&at: &u32| taken.get_mut(at as usize).is_some_and(|taken| !std::mem::replace(taken, true));
            if places.len() != observed.rows || !places.iter().all(fresh) {
                fail(log, "rows do not have distinct positions");
                return Ok(());
            }
            let wrong = places.iter().enumerate().filter(|(row, at)| wanted(*row) != found(**at as usize)).count();
            if wrong > 0 {
                fail(log, &format!("{wrong} rows are not those of the cuts"));
            }
        }
        Some(_) => fail(log, "the assignment of rows is of another kind"),
        None => {
            let sorted = |row: &dyn Fn(usize) -> Vec<Option<u32>>| {
                let mut all: Vec<Vec<Option<u32>>> = (0..observed.rows).map(row).collect();
                all.sort_unstable();
                all
            };
            if sorted(&wanted) != sorted(&found) {
                fail(log, "its rows are not the original under the cuts");
            }
        }
    }
    Ok(())
}

/// The label of a cut that covers a value; `None` unless exactly one does.
fn applied(
    labels: &[Option<String>],
    column: &ObservedColumn,
    tree: Option<&Arc<Taxonomy>>,
    value: Option<&[u8]>,
) -> Option<Option<Vec<u8>>> {
    let covers = |label: &&Option<String>| match (column.shape, tree) {
        (CellShape::Node, Some(tree)) => {
            let nodes = || 0..tree.len() as u32;
            let text = |node: u32| tree.label(node).map(str::as_bytes);
            let same = |leaf: &u32| match (text(*leaf), value) {
                (Some(leaf), Some(value)) if column.kind == AttributeType::Decimal && column.kind.admits(leaf) => {
                    column.kind.compare_by_value(leaf, value).is_eq()
                }
                (leaf, value) => leaf == value,
            };
            let leaf = nodes().find(same);
            let mut path = std::iter::successors(leaf, |node| tree.parent(*node));
            path.any(|node| tree.label(node) == label.as_deref())
        }
        (CellShape::Interval, _) => match (label, value) {
            (None, value) => value.is_none(),
            (Some(label), value) => CellInterval::parse(label.as_bytes()).is_some_and(|span| {
                let kind = column.kind;
                kind.compare(span.from.as_deref(), value).is_le() && kind.compare(value, Some(&span.to)).is_le()
            }),
        },
        (CellShape::Suppressed, _) => label.as_deref() == Some(SUPPRESSED_CELL),
        _ => false,
    };
    let mut covering = labels.iter().filter(covers);
    let found = covering.next()?;
    covering.next().is_none().then(|| found.as_ref().map(|label| label.as_bytes().to_vec()))
}

/// Whether the ends of the intervals are the first and the last value within them.
fn is_tight(labels: &[Option<String>], domain: &crate::microdata::Domain, kind: AttributeType) -> bool {
    let Some(ends) = intervals(labels, kind) else { return false };
    let mut values = domain.iter().peekable();
    for (from, to) in ends {
        let first = values.peek().copied();
        let mut last = None;
        while let Some(value) = values.next_if(|value| kind.compare(*value, to.as_deref()).is_le()) {
            last = Some(value);
        }
        if first != Some(from.as_deref()) || last != Some(to.as_deref()) {
            return false;
        }
    }
    values.next().is_none()
}

/// Checks that no row of the original contradicts an exclusion.
fn exclusions(
    sequence: &SequentialDetails,
    excluded: &Table,
    trees: &BTreeMap<String, Arc<Taxonomy>>,
    control: &Control,
    log: &mut CheckLog,
) -> Result<(), VerifierError> {
    for exclusion in &sequence.exclusions {
        control.check()?;
        let conditions: Vec<&(String, Option<String>)> =
            exclusion.left.within.iter().chain(&exclusion.right.within).collect();
        let mut columns = Vec::new();
        for (name, declared) in conditions {
            let Some(at) = excluded.names().iter().position(|of| of == name) else {
                log.fail(CheckName::Requirements, "an exclusion cannot be checked against the original");
                return Ok(());
            };
            let column = excluded.column(Attr::from(at));
            let is_within = |value: Option<&[u8]>| {
                let Some(tree) = trees.get(name) else { return value == declared.as_ref().map(String::as_bytes) };
                let leaf = (0..tree.len() as u32).find(|node| tree.label(*node).map(str::as_bytes) == value);
                let mut path = std::iter::successors(leaf, |node| tree.parent(*node));
                path.any(|node| tree.label(node) == declared.as_deref())
            };
            let covered: Vec<bool> = column.domain.iter().map(is_within).collect();
            columns.push((column, covered));
        }
        let is_true = |row: usize| columns.iter().all(|(column, covered)| covered[column.codes.get(row) as usize]);
        if (0..excluded.rows()).any(is_true) {
            log.fail(CheckName::Requirements, "a row of the original contradicts an exclusion");
        }
    }
    Ok(())
}
