//! Checks of a sequential release: cuts, rows, and requirements on the join.
//!
//! # Citations
//! docs/spec/sequential.md#verification

use std::collections::BTreeMap;
use std::sync::Arc;

use super::details::{earlier, joined_as, others};
use super::rows::CutRows;
use super::{cuts, knowledge, premise};
use crate::control::Control;
use crate::microdata::{Attr, AttributeType, CellShape, Table, Taxonomy};
use crate::publication::{EarlierRelease, SequentialDetails};
use crate::verifier::contract::checks::{CheckLog, CheckName};
use crate::verifier::contract::input::{VerifierError, VerifierInput};

pub(crate) use super::groups::JoinError;
pub(crate) use super::join::ReleaseJoin;
pub(crate) use super::observed::ObservedRelease;

/// Checks cuts, rows, row correspondence and requirements.
pub(in crate::verifier) fn check(
    input: &VerifierInput<'_>,
    sequence: &SequentialDetails,
    control: &Control,
    log: &mut CheckLog,
) -> Result<(), VerifierError> {
    let [table] = &input.publication.tables[..] else { return Ok(()) };
    let [part] = &table.parts[..] else { return Ok(()) };
    let kind = |at: usize| input.kind(part.columns[at].attribute).unwrap_or(AttributeType::Text);
    let bytes = input.parts.open(&part.file(&table.name))?;
    let Some(mut observed) = ObservedRelease::read(part, &kind, bytes, control)? else {
        log.fail(CheckName::Requirements, "the rows of the part cannot be read");
        return Ok(());
    };
    for column in &mut observed.columns {
        column.name = joined_as(sequence, 0, &column.name).to_owned();
    }
    let trees = taxonomies(input, sequence);
    cuts::check(sequence, &observed, &trees, log);
    if let Some(original) = input.original {
        let rows = CutRows { input, table, original, observed: &observed, cuts: &sequence.cuts, trees: &trees };
        rows.check(control, log)?;
    }
    let Some(earlier) = earlier(input.earlier_releases, sequence) else { return Ok(()) };
    let same_rows = match correspondence(input, sequence, &earlier, observed.rows, log) {
        Ok(same_rows) => same_rows,
        Err(detail) => {
            log.fail(CheckName::Requirements, detail);
            return Ok(());
        }
    };
    if let Some(excluded) = input.earlier_releases.and_then(|earlier| earlier.excluded.as_deref()) {
        exclusions(sequence, excluded, &trees, control, log)?;
    } else if input.original.is_some() && !sequence.exclusions.is_empty() {
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

/// The taxonomies of the new release, by the names under which attributes are joined.
pub(super) fn taxonomies(input: &VerifierInput<'_>, sequence: &SequentialDetails) -> BTreeMap<String, Arc<Taxonomy>> {
    let named = input.taxonomies.iter().filter_map(|declared| {
        let name = input.names.get(declared.attribute.index())?;
        Some((joined_as(sequence, 0, name).to_owned(), Arc::clone(&declared.tree)))
    });
    named.collect()
}

/// Checks the declared names and origins of earlier releases.
///
/// Returns for each whether it has the rows of the new release.
///
/// # Errors
/// The detail of a fault that leaves the rows unknown.
fn correspondence(
    input: &VerifierInput<'_>,
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
    let same_rows = earlier.iter().map(|release| premise::are_same(release, rows, input.original));
    let same_rows: Vec<bool> = same_rows.collect::<Result<_, _>>()?;
    if sequence.other_rows != same_rows.contains(&false) {
        log.fail(CheckName::Requirements, "the declared correspondence of rows is not that of the releases");
    }
    let is_declared = |(id, release): (&String, &&EarlierRelease)| sequence.external.contains(id) == release.external;
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
    let fault = join.check(sequence, control).and_then(|fault| match fault {
        None => knowledge::broken(sequence, join, control),
        fault => Ok(fault),
    });
    let fault = fault.and_then(|fault| {
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
                cuts::path(tree, leaf).any(|node| tree.label(node) == declared.as_deref())
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
