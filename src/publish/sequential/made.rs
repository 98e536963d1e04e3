//! The part of a sequential release.

use super::designed::SequentialDesign;
use crate::control::Cancelled;
use crate::microdata::AttrSet;
use crate::publication::{CellContent, PublishedColumn, TableProtection};
use crate::publish::made_table::MadeTable;
use crate::publish::make::TableMaker;
use crate::publish::single::of_one_part;

impl TableMaker<'_> {
    /// A table of one part, its generalized columns under their labels.
    pub(in crate::publish) fn sequential(
        &self,
        attributes: AttrSet,
        design: &SequentialDesign,
    ) -> Result<MadeTable, Cancelled> {
        let mut columns = Vec::with_capacity(attributes.len());
        for attribute in attributes.iter() {
            self.control.check()?;
            let (column, name) = (self.rows.upload.column(attribute), self.published_names[attribute.index()].clone());
            let cut = design.cut(attribute);
            let cells = cut.map_or(CellContent::Exact, |cut| cut.content(&name));
            let column = cut.map_or_else(|| column.clone(), |cut| cut.cells(column));
            columns.push((PublishedColumn { attribute, name, cells }, column));
        }
        of_one_part(columns, self.rows.upload.rows(), TableProtection::Exclusive, self.control)
    }
}
