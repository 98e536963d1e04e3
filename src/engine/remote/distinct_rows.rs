//! The distinct rows of a table in another engine in some columns, with how many rows each stands for.

use super::coded::CodedColumn;
use crate::microdata::{Attr, AttrSet, AttributeType, Column, Table};
use crate::publish::partition::RowWeights;

/// The distinct rows of some columns.
#[derive(Default)]
pub struct DistinctRows {
    columns: Vec<CodedColumn>,
    rows: Vec<u64>,
}

impl DistinctRows {
    /// Adds a distinct row, its cells in the order of the columns, and the rows that equal it there.
    pub fn push<'a>(&mut self, rows: u64, cells: impl IntoIterator<Item = Option<&'a [u8]>>) {
        for (at, cell) in cells.into_iter().enumerate() {
            if at == self.columns.len() {
                self.columns.push(CodedColumn::default());
            }
            self.columns[at].push(cell);
        }
        self.rows.push(rows);
    }

    /// A table of all attributes with these names and types, which has these columns at `attributes` and nothing elsewhere.
    pub(super) fn into_table(
        self,
        attributes: AttrSet,
        names: &[String],
        kinds: &[AttributeType],
    ) -> (Table, RowWeights) {
        let (rows, mut columns) = (self.rows.len(), self.columns.into_iter());
        let nothing = || {
            let mut column = CodedColumn::default();
            (0..rows).for_each(|_| column.push(None));
            column
        };
        let columns = kinds.iter().enumerate().map(|(at, kind)| -> Column {
            let of_rows = attributes.contains(Attr::from(at)).then(|| columns.next()).flatten();
            of_rows.unwrap_or_else(nothing).into_column(*kind)
        });
        (Table::new(names.to_vec(), columns.collect()), RowWeights::new(self.rows))
    }
}
