//! Tables that somebody published, as they were read: the material of [`super::judge`] and [`super::worlds`].

use std::collections::BTreeMap;

use crate::microdata::{Attr, AttrSet, AttributeType, CellShape, Column};
use crate::publication::RowMeaning;

/// A table that somebody published.
#[derive(Debug)]
pub struct ExternalTable {
    /// Unique among them.
    pub name: String,
    /// At least one; several are tied by their labels.
    pub parts: Vec<ExternalPart>,
}

/// One file of a table, or an original.
#[derive(Debug)]
pub struct ExternalPart {
    /// Unique in the table.
    pub name: String,
    /// What a row stands for; counterfeits are refused before, but for the attack that looks for them.
    pub meaning: RowMeaning,
    /// How many rows there are.
    pub rows: usize,
    /// The label of each row, where rows are tied by labels.
    pub bucket: Option<Column>,
    /// The attributes with their cells, each attribute once.
    pub columns: Vec<(Attr, Column)>,
    /// What the cells of attributes hold that are not exact: classes are told by their text, as it is written.
    pub cells: BTreeMap<Attr, CellShape>,
}

impl ExternalPart {
    /// The attributes.
    #[must_use]
    pub fn attributes(&self) -> AttrSet {
        self.columns.iter().map(|(attr, _)| *attr).collect()
    }

    /// The attributes whose cells stand for several values.
    #[must_use]
    pub fn opaque(&self) -> AttrSet {
        self.cells.keys().copied().collect()
    }

    /// The cells of an attribute.
    #[must_use]
    pub fn column(&self, attr: Attr) -> Option<&Column> {
        self.columns.iter().find(|(of, _)| *of == attr).map(|(_, column)| column)
    }

    /// What stands in a row.
    pub(in crate::verifier) fn cell(column: &Column, row: usize) -> CellText {
        CellText { kind: column.domain.kind(), value: column.value(row).map(<[u8]>::to_vec) }
    }
}

impl ExternalTable {
    /// The attributes of all parts.
    #[must_use]
    pub fn attributes(&self) -> AttrSet {
        self.parts.iter().fold(AttrSet::EMPTY, |all, part| all.union(part.attributes()))
    }

    /// The part that holds an attribute.
    #[must_use]
    pub fn holder(&self, attr: Attr) -> Option<&ExternalPart> {
        self.parts.iter().find(|part| part.attributes().contains(attr))
    }
}

/// A value of a part, for whoever submitted it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CellText {
    /// How it is to be read.
    pub kind: AttributeType,
    /// `None` when it is missing.
    pub value: Option<Vec<u8>>,
}
