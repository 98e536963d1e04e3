//! What classes are made of, and what is published of them.

use crate::microdata::{Attr, Column, Table};
use crate::publication::CellContent;
use crate::publish::partition::RowWeights;

/// Rows, each of which stands for some equal rows of a table.
#[derive(Clone, Copy)]
pub struct CountedRows<'a> {
    /// The rows, in a secret order if they stand for themselves.
    pub table: &'a Table,
    /// How many each stands for.
    pub weights: &'a RowWeights,
}

/// A quasi-identifier as it is published.
pub struct SharedColumn {
    /// The attribute.
    pub attribute: Attr,
    /// The form of its cells.
    pub cells: CellContent,
    /// The cell of each row.
    pub column: Column,
}
