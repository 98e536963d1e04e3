//! Sequential releases: cuts, the rows by them, and what must hold on the join with earlier releases (sequential, section 9).

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

/// Checks cuts, rows and requirements.
pub(in crate::verifier) fn check(
    evidence: &Evidence<'_>,
    sequence: &SequentialDetails,
    control: &Control,
    findings: &mut CheckLog,
) -> Result<(), VerifierError> {
    let [table] = &evidence.publication.tables[..] else { return Ok(()) };
    let [part] = &table.parts[..] else { return Ok(()) };
    let kind = |at: usize| evidence.kind(part.columns[at].attribute).unwrap_or(AttributeType::Text);
    let bytes = evidence.parts.open(&part.file(&table.name))?;
    let Some(mut shown) = ObservedRelease::read(part, &kind, bytes, control)? else {
        findings.fail(CheckName::Requirements, "the rows of the part could not be told");
        return Ok(());
    };
    for column in &mut shown.columns {
        column.name = joined_as(sequence, 0, &column.name).to_owned();
    }
    let mut trees: BTreeMap<String, Arc<Taxonomy>> = BTreeMap::new();
    for stated in evidence.taxonomies {
        if let Some(name) = evidence.names.get(stated.attribute.index()) {
            trees.insert(joined_as(sequence, 0, name).to_owned(), Arc::clone(&stated.tree));
        }
    }
    cuts(sequence, &shown, &trees, findings);
    if let Some(original) = evidence.original {
        rows(evidence, table, original, &shown, (sequence, &trees), control, findings)?;
    }
    let Some(earlier) = earlier(evidence.beside, sequence) else { return Ok(()) };
    for (number, release) in (1..).zip(&earlier) {
        let names = release.columns.iter().map(|column| (column.name.clone(), column.published.clone()));
        if sequence.renamed.get(&number) != others(names).as_ref() {
            findings.fail(CheckName::Requirements, "the names in an earlier release are not those that it has");
            return Ok(());
        }
    }
    let same = earlier.iter().map(|release| premise::are_same(release, shown.rows, evidence.original));
    let same: Vec<bool> = match same.collect() {
        Ok(same) => same,
        Err(detail) => {
            findings.fail(CheckName::Requirements, detail);
            return Ok(());
        }
    };
    if sequence.other_rows != same.contains(&false) {
        findings
            .fail(CheckName::Requirements, "whether the releases have the same rows is another than what is stated");
    }
    let entered = |(id, release): (&String, &&EarlierRelease)| sequence.entered.contains(id) == release.entered;
    if !sequence.against.iter().zip(&earlier).all(entered) {
        findings.fail(CheckName::Requirements, "it is stated otherwise which releases were published elsewhere");
    }
    if let Some(excluded) = evidence.beside.and_then(|beside| beside.excluded.as_deref()) {
        contradicted(sequence, excluded, &trees, control, findings)?;
    } else if evidence.original.is_some() && !sequence.exclusions.is_empty() {
        findings.fail(CheckName::Requirements, "what nobody is cannot be held against the original");
    }
    if !trees_agree(&trees, &earlier, &shown) {
        findings.fail(CheckName::Requirements, "releases publish nodes of different taxonomies of one attribute");
        return Ok(());
    }
    let earlier: Vec<(&EarlierRelease, ObservedRelease)> =
        earlier.into_iter().map(|release| (release, ObservedRelease::from_earlier(release))).collect();
    let join = ReleaseJoin::new(&shown, &trees, &earlier, &sequence.exclusions);
    for (number, (release, _)) in (1..).zip(&earlier) {
        if !premise::are_tied((&join, number), release, &shown, control)? {
            findings
                .fail(CheckName::Requirements, "a row of an earlier release is not above its record of the original");
            return Ok(());
        }
    }
    let found = join.check(sequence, control).and_then(|found| {
        // of rows that are not known to be the same, none has to match
        let whole = found.is_some() || join.is_whole(&same, control)?;
        Ok(found.or_else(|| (!whole).then(|| "rows of the release match none of an earlier one".to_owned())))
    });
    match found {
        Ok(None) => {}
        Ok(Some(detail)) => findings.fail(CheckName::Requirements, detail),
        Err(JoinError::Cancelled(cancelled)) => return Err(cancelled.into()),
        Err(JoinError::TooMany) => return Err(VerifierError::TooDense),
        Err(JoinError::Unknown) => findings.fail(CheckName::Requirements, "a requirement names what is not there"),
        Err(JoinError::Empty) => findings.fail(CheckName::Requirements, "a join has no tuples"),
    }
    Ok(())
}

/// All releases that publish nodes of an attribute go by one tree.
fn trees_agree(trees: &BTreeMap<String, Arc<Taxonomy>>, earlier: &[&EarlierRelease], shown: &ObservedRelease) -> bool {
    let mut of_name: BTreeMap<&str, &Arc<Taxonomy>> = BTreeMap::new();
    let own = shown
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
    // a column of exact values is placed by the tree of the new release, where it has one
    of_name.iter().all(|(name, tree)| trees.get(*name).is_none_or(|own| own.digest() == tree.digest()))
}

/// Every cut has exactly one label on the way of every leaf, and cells have no other labels.
fn cuts(
    sequence: &SequentialDetails,
    shown: &ObservedRelease,
    trees: &BTreeMap<String, Arc<Taxonomy>>,
    findings: &mut CheckLog,
) {
    for (name, labels) in &sequence.cuts {
        let Some(column) = shown.column(name).map(|at| &shown.columns[at]) else { continue };
        let mut fail = |detail: &str| findings.fail(CheckName::Requirements, format!("the cut of \"{name}\" {detail}"));
        let is_of_cut =
            |label: &Option<Vec<u8>>| labels.iter().any(|of| of.as_ref().map(String::as_bytes) == label.as_deref());
        if !column.labels.iter().all(is_of_cut) {
            fail("has not the labels that cells have");
        }
        match (column.shape, trees.get(name)) {
            (CellShape::Node, Some(tree)) => {
                let nodes: Vec<u32> = (0..tree.len() as u32)
                    .filter(|node| labels.iter().any(|of| of.as_deref() == tree.label(*node)))
                    .collect();
                let on_way = |leaf: &u32| {
                    let way = std::iter::successors(Some(*leaf), |node| tree.parent(*node));
                    way.filter(|node| nodes.contains(node)).count()
                };
                let is_leaf = |node: &u32| (0..tree.len() as u32).all(|other| tree.parent(other) != Some(*node));
                if nodes.len() != labels.len() || !(0..tree.len() as u32).filter(is_leaf).all(|leaf| on_way(&leaf) == 1)
                {
                    fail("has not one node above every leaf");
                }
            }
            (CellShape::Suppressed, _) => {
                if labels != &[Some(SUPPRESSED_CELL.to_owned())] {
                    fail("is not the one of what is suppressed");
                }
            }
            (CellShape::Interval, _) => {
                if intervals(labels, column.kind).is_none() {
                    fail("is not made of intervals apart from each other");
                }
            }
            _ => fail("is of cells that are not generalized"),
        }
    }
}

/// The intervals of a cut, in their order; `None` when they are none, or not apart. The missing value comes before all others.
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

/// The published rows are the cuts applied to the rows of the original.
pub(in crate::verifier) fn rows(
    evidence: &Evidence<'_>,
    table: &PublishedTable,
    original: &Table,
    shown: &ObservedRelease,
    (sequence, trees): (&SequentialDetails, &BTreeMap<String, Arc<Taxonomy>>),
    control: &Control,
    findings: &mut CheckLog,
) -> Result<(), VerifierError> {
    let fail = |findings: &mut CheckLog, detail: &str| {
        findings.fail(CheckName::Content, format!("table {}: {detail}", table.name));
    };
    if shown.rows != original.rows() {
        fail(findings, "it does not have a row for each row of the original");
        return Ok(());
    }
    // per column, the label that each code of the original is to have
    let mut expected: Vec<(usize, Vec<Option<u32>>)> = Vec::new();
    for (column, described) in shown.columns.iter().zip(&table.parts[0].columns) {
        control.check()?;
        let attr = described.attribute;
        if !original.attributes().contains(attr) {
            fail(findings, "it has an attribute that the original has not");
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
            findings.fail(
                CheckName::Dictionary,
                format!("intervals of {} say other than the values of their rows", evidence.name(attr)),
            );
        }
        if codes.contains(&None) {
            let name = evidence.name(attr);
            fail(findings, &format!("values of {name} have no label that is published"));
            return Ok(());
        }
        expected.push((attr.index(), codes));
    }
    let wanted = |row: usize| -> Vec<Option<u32>> {
        expected.iter().map(|(at, of_code)| of_code[original.column(Attr::from(*at)).codes.get(row) as usize]).collect()
    };
    let found =
        |row: usize| -> Vec<Option<u32>> { shown.columns.iter().map(|column| Some(column.codes[row])).collect() };
    match evidence.witness.map(|witness| witness.tables.first()) {
        Some(Some(TableWitness::Rows(places))) => {
            let mut taken = vec![false; shown.rows];
            let fresh = |&at: &u32| taken.get_mut(at as usize).is_some_and(|taken| !std::mem::replace(taken, true));
            if places.len() != shown.rows || !places.iter().all(fresh) {
                fail(findings, "rows do not stand each in a place of its own");
                return Ok(());
            }
            let wrong = places.iter().enumerate().filter(|(row, at)| wanted(*row) != found(**at as usize)).count();
            if wrong > 0 {
                fail(findings, &format!("{wrong} rows are not what the cuts make of them"));
            }
        }
        Some(_) => fail(findings, "the assignment of rows is of another kind"),
        None => {
            let sorted = |row: &dyn Fn(usize) -> Vec<Option<u32>>| {
                let mut all: Vec<Vec<Option<u32>>> = (0..shown.rows).map(row).collect();
                all.sort_unstable();
                all
            };
            if sorted(&wanted) != sorted(&found) {
                fail(findings, "its rows are not what the cuts make of the original");
            }
        }
    }
    Ok(())
}

/// The one label of a cut that covers a value; `None` when it is not one.
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
            let mut way = std::iter::successors(leaf, |node| tree.parent(*node));
            way.any(|node| tree.label(node) == label.as_deref())
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

/// Whether the ends of intervals are the first and the last value within them.
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

/// No row of the original is what is said that nobody is.
fn contradicted(
    sequence: &SequentialDetails,
    excluded: &Table,
    trees: &BTreeMap<String, Arc<Taxonomy>>,
    control: &Control,
    findings: &mut CheckLog,
) -> Result<(), VerifierError> {
    for exclusion in &sequence.exclusions {
        control.check()?;
        let conditions: Vec<&(String, Option<String>)> =
            exclusion.left.within.iter().chain(&exclusion.right.within).collect();
        let mut columns = Vec::new();
        for (name, stated) in conditions {
            let Some(at) = excluded.names().iter().position(|of| of == name) else {
                findings.fail(CheckName::Requirements, "what nobody is cannot be held against the original");
                return Ok(());
            };
            let column = excluded.column(Attr::from(at));
            let is_within = |value: Option<&[u8]>| {
                let Some(tree) = trees.get(name) else { return value == stated.as_ref().map(String::as_bytes) };
                let leaf = (0..tree.len() as u32).find(|node| tree.label(*node).map(str::as_bytes) == value);
                let mut way = std::iter::successors(leaf, |node| tree.parent(*node));
                way.any(|node| tree.label(node) == stated.as_deref())
            };
            let held: Vec<bool> = column.domain.iter().map(is_within).collect();
            columns.push((column, held));
        }
        let is_true = |row: usize| columns.iter().all(|(column, held)| held[column.codes.get(row) as usize]);
        if (0..excluded.rows()).any(is_true) {
            findings.fail(CheckName::Requirements, "a row of the original is what nobody is said to be");
        }
    }
    Ok(())
}
