//! Cuts of a sequential release: their form, and the labels that they give to values.
//!
//! # Citations
//! docs/spec/sequential.md#verification

use std::collections::BTreeMap;
use std::sync::Arc;

use super::observed::{ObservedColumn, ObservedRelease};
use crate::microdata::{AttributeType, CellInterval, CellShape, Domain, SUPPRESSED_CELL, Taxonomy};
use crate::publication::SequentialDetails;
use crate::verifier::contract::checks::{CheckLog, CheckName};

/// Checks that cuts have exactly one label on the path of every leaf, and cells no other labels.
pub(super) fn check(
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
                if !divides(tree, labels) {
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

/// Whether the labels are nodes of a taxonomy, of which exactly one lies above every leaf.
fn divides(tree: &Taxonomy, labels: &[Option<String>]) -> bool {
    let all = 0..tree.len() as u32;
    let is_of_cut = |node: &u32| labels.iter().any(|of| of.as_deref() == tree.label(*node));
    let nodes: Vec<u32> = all.clone().filter(is_of_cut).collect();
    let is_leaf = |node: &u32| all.clone().all(|other| tree.parent(other) != Some(*node));
    let on_path = |leaf: u32| path(tree, Some(leaf)).filter(|node| nodes.contains(node)).count();
    nodes.len() == labels.len() && all.clone().filter(is_leaf).all(|leaf| on_path(leaf) == 1)
}

/// The nodes from a leaf to the root.
pub(super) fn path(tree: &Taxonomy, leaf: Option<u32>) -> impl Iterator<Item = u32> {
    std::iter::successors(leaf, |node| tree.parent(*node))
}

/// Ends of an interval of a cut.
///
/// The missing value precedes all others.
struct IntervalEnds {
    from: Option<Vec<u8>>,
    to: Option<Vec<u8>>,
}

impl IntervalEnds {
    /// Reads a label; the missing label is the interval of the missing value.
    fn parse(label: Option<&str>) -> Option<Self> {
        let Some(text) = label else { return Some(Self { from: None, to: None }) };
        let span = CellInterval::parse(text.as_bytes())?;
        Some(Self { from: span.from.as_deref().map(<[u8]>::to_vec), to: Some(span.to.to_vec()) })
    }
}

/// The intervals of labels in rising order; `None` where they are not intervals, or overlap.
fn intervals(labels: &[Option<String>], kind: AttributeType) -> Option<Vec<IntervalEnds>> {
    let read = |label: &Option<String>| IntervalEnds::parse(label.as_deref());
    let mut ends: Vec<IntervalEnds> = labels.iter().map(read).collect::<Option<_>>()?;
    ends.sort_by(|a, b| kind.compare(a.to.as_deref(), b.to.as_deref()));
    let rises = |ends: &IntervalEnds| kind.compare(ends.from.as_deref(), ends.to.as_deref()).is_le();
    let apart = |pair: &[IntervalEnds]| kind.compare(pair[0].to.as_deref(), pair[1].from.as_deref()).is_lt();
    (ends.iter().all(rises) && ends.windows(2).all(apart)).then_some(ends)
}

/// The label of a cut that covers a value; `None` unless exactly one does.
pub(super) fn label_of_value(
    labels: &[Option<String>],
    column: &ObservedColumn,
    tree: Option<&Arc<Taxonomy>>,
    value: Option<&[u8]>,
) -> Option<Option<Vec<u8>>> {
    let covers = |label: &&Option<String>| match (column.shape, tree) {
        (CellShape::Node, Some(tree)) => {
            path(tree, leaf(tree, column.kind, value)).any(|node| tree.label(node) == label.as_deref())
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

/// The leaf of a taxonomy that stands for a value.
fn leaf(tree: &Taxonomy, kind: AttributeType, value: Option<&[u8]>) -> Option<u32> {
    let is_value = |leaf: &u32| match (tree.label(*leaf).map(str::as_bytes), value) {
        // a number can have several spellings
        (Some(leaf), Some(value)) if kind.has_spellings() && kind.admits(leaf) => {
            kind.compare_by_value(leaf, value).is_eq()
        }
        (leaf, value) => leaf == value,
    };
    (0..tree.len() as u32).find(is_value)
}

/// Whether the ends of the intervals are the first and the last value within them.
pub(super) fn is_tight(labels: &[Option<String>], domain: &Domain, kind: AttributeType) -> bool {
    let Some(ends) = intervals(labels, kind) else { return false };
    let mut values = domain.iter().peekable();
    for IntervalEnds { from, to } in ends {
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
