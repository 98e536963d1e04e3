//! Requirements where the adversary knows attributes exactly, since dependencies tie them to what is counted.
//!
//! # Citations
//! docs/spec/sequential.md#dependencies

use std::collections::BTreeMap;
use std::sync::Arc;

use ahash::AHashMap;

use super::cuts::label_of_value;
use super::details::{earlier, joined_as};
use super::groups::JoinError;
use super::join::ReleaseJoin;
use super::knowledge;
use super::observed::{ObservedColumn, ObservedRelease};
use crate::control::Control;
use crate::microdata::{CellShape, Column, Taxonomy};
use crate::publication::{EarlierRelease, JoinResult, PublishedColumn, SequentialDetails, XyRequirement};
use crate::verifier::contract::input::{VerifierError, VerifierInput};

/// Whether a requirement holds on its joins where the attributes in `known_exactly` of the new release have their values in place
/// of labels; true without the original, which alone has them.
pub(super) fn holds(
    input: &VerifierInput<'_>,
    sequence: &SequentialDetails,
    requirement: &XyRequirement,
    on: &[JoinResult],
    control: &Control,
) -> Result<bool, VerifierError> {
    let trees = super::check::taxonomies(input, sequence);
    let releases = earlier(input.earlier_releases, sequence);
    let Some((earlier, view)) = releases.zip(view(input, sequence, requirement, &trees)) else { return Ok(true) };
    let Some(view) = view else { return Ok(false) };
    let earlier: Vec<(&EarlierRelease, ObservedRelease)> =
        earlier.into_iter().map(|release| (release, ObservedRelease::from_earlier(release))).collect();
    let join = ReleaseJoin::new(&view, &trees, &earlier, &sequence.exclusions);
    for claimed in on {
        let requirement = &knowledge::with_all_labels(&join, requirement, &claimed.releases);
        match join.measure(requirement, &claimed.releases, control) {
            Ok(found) if found.is_allowed(&requirement.measure) => {}
            Ok(_) | Err(JoinError::Unknown | JoinError::Empty) => return Ok(false),
            Err(JoinError::Cancelled(cancelled)) => return Err(cancelled.into()),
            Err(JoinError::TooMany) => return Err(VerifierError::TooDense),
        }
    }
    Ok(true)
}

/// The rows of the original under the cuts, but for what is known exactly.
///
/// `None` without the original, and `Some(None)` where a cut gives a value no label.
fn view(
    input: &VerifierInput<'_>,
    sequence: &SequentialDetails,
    requirement: &XyRequirement,
    trees: &BTreeMap<String, Arc<Taxonomy>>,
) -> Option<Option<ObservedRelease>> {
    let original = input.original?;
    let parts = input.publication.tables.iter().flat_map(|table| &table.parts);
    let columns = parts.flat_map(|part| &part.columns).map(|published| {
        let name = joined_as(sequence, 0, &published.name);
        let cut = sequence.cuts.iter().find(|(of, _)| of == name).map(|(_, labels)| labels);
        let cut = cut.filter(|_| !requirement.known_exactly.iter().any(|known| known == name));
        original.attributes().contains(published.attribute).then_some(())?;
        column(original.column(published.attribute), published, name, cut.zip(Some(trees.get(name))))
    });
    let columns: Option<Vec<ObservedColumn>> = columns.collect();
    Some(columns.map(|columns| ObservedRelease { rows: original.rows(), columns }))
}

/// The labels of a cut, with the taxonomy that they are nodes of.
type LabelledCut<'a> = (&'a Vec<Option<String>>, Option<&'a Arc<Taxonomy>>);

/// A column under a cut, if it has one; `None` where a value has no label.
fn column(
    of: &Column,
    published: &PublishedColumn,
    name: &str,
    cut: Option<LabelledCut<'_>>,
) -> Option<ObservedColumn> {
    let mut column = ObservedColumn {
        name: name.to_owned(),
        shape: if cut.is_some() { published.cells.shape() } else { CellShape::Exact },
        kind: of.domain.kind(),
        codes: of.codes.iter().collect(),
        labels: of.domain.iter().map(|value| value.map(<[u8]>::to_vec)).collect(),
    };
    let Some((labels, tree)) = cut else { return Some(column) };
    let given: Vec<Option<Vec<u8>>> = column
        .labels
        .iter()
        .map(|value| label_of_value(labels, &column, tree, value.as_deref()))
        .collect::<Option<_>>()?;
    let mut numbers: AHashMap<Option<Vec<u8>>, u32> = AHashMap::new();
    column.labels.clear();
    let mut number = |label: Option<Vec<u8>>| {
        *numbers.entry(label).or_insert_with_key(|label| {
            column.labels.push(label.clone());
            column.labels.len() as u32 - 1
        })
    };
    let of_code: Vec<u32> = given.into_iter().map(&mut number).collect();
    column.codes.iter_mut().for_each(|code| *code = of_code[*code as usize]);
    Some(column)
}
