//! External tables as they were read: the material of the evaluation and of the attacks.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::microdata::{Attr, AttrSet, AttributeType, CellShape, Column};
use crate::publication::RowMeaning;
use crate::verifier::read::joint_column::{CodedPart, JointColumn};

/// A table that was published elsewhere, or the readable form of a release.
#[derive(Debug)]
pub struct ExternalTable {
    /// The name of the table, unique in a submission.
    pub name: String,
    /// At least one part; several parts are linked by their labels.
    pub parts: Vec<ExternalPart>,
}

/// One file of a table, or an original.
///
/// It is read without a claim, into columns with dictionaries of their own; a part of a release is read against its claim, into codes of
/// the original.
#[derive(Debug)]
pub struct ExternalPart {
    /// The name of the part, unique in its table.
    pub name: String,
    /// The meaning of a row.
    ///
    /// Only the attack by negative association accepts counterfeits.
    pub meaning: RowMeaning,
    /// Number of rows of the part.
    pub rows: usize,
    /// The label of each row, in a part with buckets.
    pub bucket: Option<Column>,
    /// The attributes with their cells, each attribute once.
    pub columns: Vec<(Attr, Column)>,
    /// The shape of cells that are not exact; classes compare the text of such cells.
    pub cells: BTreeMap<Attr, CellShape>,
}

impl ExternalPart {
    /// The attributes of the columns.
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

    /// The value of a row in a column.
    pub(in crate::verifier) fn cell(column: &Column, row: usize) -> CellText {
        CellText { kind: column.domain.kind(), value: column.value(row).map(<[u8]>::to_vec) }
    }
}

impl CodedPart for ExternalPart {
    fn coded(&self, attr: Attr) -> Option<JointColumn<'_>> {
        let column = self.column(attr)?;
        Some(JointColumn { codes: Cow::Borrowed(&column.codes), size: column.domain.len() })
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

/// A value of a part, in the form of the submission.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CellText {
    /// The type of the value.
    pub kind: AttributeType,
    /// The text of the value; `None` when it is missing.
    pub value: Option<Vec<u8>>,
}
