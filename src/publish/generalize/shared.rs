//! Texts of the cells that rows share with their class.

use super::cells::{intervals, nodes, sets};
use crate::microdata::{Axis, BoundTaxonomy, Column, Interner, write_set, write_span};
use crate::publication::CellContent;
use crate::publish::assign::BucketAssignment;
use crate::publish::single::column_of_texts;

/// Form of the cells of a column.
#[derive(Clone, Copy)]
pub(super) enum SharedCells<'a> {
    /// The first and the last value of a class.
    Intervals,
    /// All values of a class.
    Sets,
    /// The lowest node above all values of a class.
    Nodes(&'a BoundTaxonomy),
}

impl SharedCells<'_> {
    /// The form as a release says it, of a column with this published name.
    pub(super) fn content(self, name: &str) -> CellContent {
        match self {
            Self::Sets => CellContent::Set,
            Self::Nodes(_) => CellContent::Node { taxonomy: name.to_owned(), cut: None },
            Self::Intervals => CellContent::Interval,
        }
    }
}

/// Column of the interval of each row's class.
pub(in crate::publish) fn interval_cells(column: &Column, classes: &BucketAssignment) -> Column {
    shared_cells(column, SharedCells::Intervals, classes)
}

/// Column of the cell that each row shares with its class.
///
/// The interval of a class without values is the missing value. So is a node that is the leaf of the missing value.
pub(super) fn shared_cells(column: &Column, cells: SharedCells<'_>, classes: &BucketAssignment) -> Column {
    let domain = &column.domain;
    let mut texts = Interner::default();
    let mut text = Vec::new();
    let mut number = |write: &mut dyn FnMut(&mut Vec<u8>)| {
        text.clear();
        write(&mut text);
        texts.intern(&text)
    };
    let numbers: Vec<Option<u32>> = match cells {
        SharedCells::Nodes(tree) => nodes(column, classes, tree)
            .iter()
            .map(|&node| {
                let label = tree.tree().label(node)?;
                Some(number(&mut |text| text.extend_from_slice(label.as_bytes())))
            })
            .collect(),
        SharedCells::Sets => sets(column, classes)
            .iter()
            .map(|codes| {
                let values = || codes.iter().map(|&code| domain.value(code));
                Some(number(&mut |text| write_set(domain.kind(), values(), text)))
            })
            .collect(),
        SharedCells::Intervals => intervals(column, &Axis::from_domain(domain), classes)
            .iter()
            .map(|interval| {
                let (first, last) = interval.ends?;
                let from = if interval.missing { None } else { domain.value(first) };
                let to = domain.value(last)?;
                Some(number(&mut |text| write_span(from, to, text)))
            })
            .collect(),
    };
    column_of_texts(texts, &numbers, classes.bucket_of.iter().copied())
}
