//! The classes of a generalized table in another engine, and what that engine finds behind their cells.

use super::coded::CodedColumn;
use super::members::{RemoteMembers, RowTexts, texts};
use super::published::ProtectedRemoteColumn;
use crate::microdata::{Attr, AttributeType, Column};
use crate::verifier::CoveredColumn;

/// The classes of a generalized table: which values of its quasi-identifiers each has, and what it shows in their place.
pub struct RemoteClasses {
    /// The class of each row, from 0, by its quasi-identifiers.
    pub members: RemoteMembers,
    /// The protected columns; none where classes only have to be large.
    pub sensitive: Vec<ProtectedRemoteColumn>,
    /// For each quasi-identifier, the cell of each class.
    pub(super) cells: Vec<Column>,
}

impl RemoteClasses {
    /// The places of the quasi-identifiers among the columns of the part, in the order of attributes.
    #[must_use]
    pub fn generalized(&self) -> &[usize] {
        &self.members.places
    }

    /// The number of classes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.cells.first().map_or(0, |column| column.codes.len())
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What a class shows. No two classes show the same.
    #[must_use]
    pub fn cells(&self, class: u32) -> RowTexts<'_> {
        texts(&self.cells, class as usize)
    }
}

/// Which values of the source stand behind the cells of a part, as another engine found them: once each, by class.
#[derive(Default)]
pub struct CoveredCells {
    columns: Vec<CoveredCellColumn>,
}

#[derive(Default)]
struct CoveredCellColumn {
    classes: Vec<u32>,
    cells: CodedColumn,
    values: CodedColumn,
}

impl CoveredCells {
    /// Of this number of quasi-identifiers.
    #[must_use]
    pub fn new(columns: usize) -> Self {
        let mut covered = Self::default();
        covered.columns.resize_with(columns, CoveredCellColumn::default);
        covered
    }

    /// A value of the source in a quasi-identifier of a row of this class, and the cell that stands for it; `None` for a column that is
    /// not there.
    pub fn push(&mut self, column: usize, class: u32, value: Option<&[u8]>, cell: Option<&[u8]>) -> Option<()> {
        let column = self.columns.get_mut(column)?;
        column.classes.push(class);
        column.values.push(value);
        column.cells.push(cell);
        Some(())
    }

    /// What the verifier looks at, of quasi-identifiers with these types in this order.
    pub(super) fn of_columns(
        self,
        attributes: impl Iterator<Item = Attr>,
        kind: impl Fn(Attr) -> AttributeType,
    ) -> Vec<CoveredColumn> {
        let covered = |(attribute, column): (Attr, CoveredCellColumn)| CoveredColumn {
            attribute,
            classes: column.classes,
            cells: column.cells.into_column(AttributeType::Text),
            values: column.values.into_column(kind(attribute)),
        };
        attributes.zip(self.columns).map(covered).collect()
    }
}
