//! The part of a generalized table.

use super::counted_rows::CountedRows;
use super::shared::shared_cells;
use crate::microdata::{Attr, AttrSet};
use crate::publication::{CellContent, PublishedColumn, TableProtection};
use crate::publish::assign::BucketAssignment;
use crate::publish::designed_table::Generalized;
use crate::publish::error::PublishError;
use crate::publish::made_table::MadeTable;
use crate::publish::make::TableMaker;
use crate::publish::partition::RowWeights;
use crate::publish::single::{DescribedColumn, of_one_part};

impl TableMaker<'_> {
    /// A table of one part, its quasi-identifiers in cells that the rows of a class share.
    pub(in crate::publish) fn generalized(
        &self,
        attributes: AttrSet,
        generalized: &Generalized,
    ) -> Result<MadeTable, PublishError> {
        let rows = CountedRows { table: self.rows.permuted, weights: &RowWeights::default() };
        let classes = self.in_upload(generalized.classes(rows, self.control)?);
        let mut columns = Vec::with_capacity(attributes.len());
        for attribute in attributes.iter() {
            self.control.check()?;
            columns.push(self.generalized_column(attribute, generalized, &classes));
        }
        let protection = match generalized.guarding {
            true => TableProtection::Guarding(generalized.keeps.clone()),
            false => TableProtection::Exclusive,
        };
        Ok(of_one_part(columns, self.rows.upload.rows(), protection, self.control)?)
    }

    fn generalized_column(
        &self,
        attribute: Attr,
        generalized: &Generalized,
        classes: &BucketAssignment,
    ) -> DescribedColumn {
        let column = self.rows.upload.column(attribute);
        let name = self.published_names[attribute.index()].clone();
        if !generalized.quasi_identifiers.contains(attribute) {
            return (PublishedColumn { attribute, name, cells: CellContent::Exact }, column.clone());
        }
        let form = generalized.form(self.rows.permuted, attribute);
        let shared = shared_cells(column, form, classes);
        (PublishedColumn { attribute, cells: form.content(&name), name }, shared)
    }
}
