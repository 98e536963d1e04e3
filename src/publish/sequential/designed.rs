//! The table of a sequential release in a design.

use super::labels::is_ordered;
use super::solution::{ColumnCut, CutLabel};
use crate::microdata::{Attr, CellShape, Column, Interner, SUPPRESSED_CELL, Table, write_span};
use crate::publication::{CellContent, SequentialDetails};
use crate::publish::single::column_of_texts;

/// A table of a sequential release, with its details.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SequentialDesign {
    /// Columns of which some cell is not exact.
    pub(super) cuts: Vec<GeneralizedColumn>,
    /// Details of the publication.
    pub details: SequentialDetails,
    /// Steps of generalization, summed over all cells.
    pub distortion: u64,
    /// Number of cells that are not exact.
    pub changed: u64,
}

/// A column of which some cell is not exact.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct GeneralizedColumn {
    pub(super) attribute: Attr,
    /// Labels that cells may hold; `None` is the missing value.
    pub(super) labels: Vec<Option<Vec<u8>>>,
    /// Index of the label of each code.
    of_code: Vec<u32>,
    shape: CellShape,
}

impl SequentialDesign {
    /// Whether some attribute is not exact.
    #[must_use]
    pub fn is_generalized(&self) -> bool {
        !self.cuts.is_empty()
    }

    /// Index of the label of each code of an attribute; `None` for an exact attribute.
    #[must_use]
    pub fn labels_of(&self, attribute: Attr) -> Option<&[u32]> {
        self.cut(attribute).map(|cut| &cut.of_code[..])
    }

    pub(super) fn cut(&self, attribute: Attr) -> Option<&GeneralizedColumn> {
        self.cuts.iter().find(|cut| cut.attribute == attribute)
    }
}

impl GeneralizedColumn {
    /// The labels of a cut as published cells; `None` if the values are published exactly.
    ///
    /// The label of an interval names its first and its last value.
    pub(super) fn from_cut(cut: &ColumnCut, table: &Table) -> Option<Self> {
        let attribute = Attr::from(cut.column);
        let domain = &table.column(attribute).domain;
        let tree = table.annotations(attribute).taxonomy();
        if tree.is_none() && !is_ordered(domain.kind()) {
            let labels = vec![Some(SUPPRESSED_CELL.as_bytes().to_vec())];
            let is_suppressed = cut.labels.iter().any(|label| !label.span.is_point());
            let of_code = cut.of_code.clone();
            return is_suppressed.then_some(Self { attribute, labels, of_code, shape: CellShape::Suppressed });
        }
        let label = |(number, label): (u32, &CutLabel)| match (label.node, tree) {
            (Some(node), Some(tree)) => tree.tree().label(node).map(|label| label.as_bytes().to_vec()),
            _ => {
                let mut within = (0..).zip(&cut.of_code).filter(|(_, of)| **of == number).map(|(code, _)| code);
                let first = within.next()?;
                let last = within.last().unwrap_or(first);
                let mut text = Vec::new();
                write_span(domain.value(first), domain.value(last)?, &mut text);
                Some(text)
            }
        };
        Some(Self {
            attribute,
            labels: (0..).zip(&cut.labels).map(label).collect(),
            of_code: cut.of_code.clone(),
            shape: if tree.is_some() { CellShape::Node } else { CellShape::Interval },
        })
    }

    /// Content of the cells, for an attribute of this published name.
    pub(super) fn content(&self, name: &str) -> CellContent {
        match self.shape {
            CellShape::Node => CellContent::Node { taxonomy: name.to_owned(), cut: None },
            CellShape::Suppressed => CellContent::Suppressed,
            CellShape::Exact | CellShape::Interval | CellShape::Set => CellContent::Interval,
        }
    }

    /// The column with labels in place of its values.
    pub(super) fn cells(&self, column: &Column) -> Column {
        let mut texts = Interner::default();
        let numbers: Vec<Option<u32>> = self
            .of_code
            .iter()
            .map(|&label| self.labels[label as usize].as_ref().map(|text| texts.intern(text)))
            .collect();
        // labels without rows are not among the texts
        column_of_texts(texts, &numbers, (0..column.codes.len()).map(|row| column.codes.get(row)))
    }
}
