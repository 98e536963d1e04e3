//! Columns whose cells come one by one, as codes.

use crate::microdata::{AttributeType, Codes, Column, Domain, Interner};

/// A column, by codes of its cells.
#[derive(Default)]
pub(super) struct CodedColumn {
    values: Interner,
    /// The code of each row; that of a missing value is 0.
    codes: Vec<u32>,
}

impl CodedColumn {
    /// Adds a cell.
    pub(super) fn push(&mut self, cell: Option<&[u8]>) {
        let code = cell.map_or(0, |cell| self.values.intern(cell) + 1);
        self.codes.push(code);
    }

    /// The codes of the rows; equal ones are of equal cells.
    pub(super) fn codes(&self) -> &[u32] {
        &self.codes
    }

    /// The column, its values in canonical order.
    pub(super) fn into_column(mut self, kind: AttributeType) -> Column {
        let missing = self.codes.contains(&0);
        let (domain, ranks) = Domain::sort(kind, missing, &self.values.take());
        let code = |code: u32| code.checked_sub(1).map_or(0, |value| ranks[value as usize]);
        Column { codes: Codes::collect(domain.len(), self.codes.into_iter().map(code)), domain }
    }
}
