//! The part of a generalized table.

use super::cells::CutOrder;
use super::classes::{GeneralizationInput, GeneralizeError};
use super::shared::{SharedCells, shared_cells};
use crate::microdata::{Attr, AttrSet};
use crate::publication::{CellContent, Guarantee, PublishedColumn, TableGuard, TableProtection};
use crate::publish::assign::BucketAssignment;
use crate::publish::designed_table::Generalized;
use crate::publish::error::PublishError;
use crate::publish::made_table::MadeTable;
use crate::publish::make::TableMaker;
use crate::publish::single::{DescribedColumn, of_one_part};
use crate::spec::CellKind;

impl TableMaker<'_> {
    /// A table of one part, its quasi-identifiers in cells that the rows of a class share.
    pub(in crate::publish) fn generalized(
        &self,
        attributes: AttrSet,
        generalized: &Generalized,
    ) -> Result<MadeTable, PublishError> {
        let classes = self.in_upload(self.classes(generalized)?);
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
        // an attribute without a taxonomy is numeric, and its cells are intervals
        let tree = self.rows.permuted.annotations(attribute).taxonomy().filter(|_| generalized.cells == CellKind::Node);
        let form = match (generalized.sets.contains(attribute), tree) {
            (true, _) => SharedCells::Sets,
            (false, Some(tree)) => SharedCells::Nodes(tree),
            (false, None) => SharedCells::Intervals,
        };
        let cells = match form {
            SharedCells::Sets => CellContent::Set,
            SharedCells::Nodes(_) => CellContent::Node { taxonomy: name.clone(), cut: None },
            SharedCells::Intervals => CellContent::Interval,
        };
        let shared = shared_cells(column, form, classes);
        (PublishedColumn { attribute, name, cells }, shared)
    }

    /// Class of each row; a table without rows has none.
    fn classes(&self, generalized: &Generalized) -> Result<BucketAssignment, PublishError> {
        let guarantees = |guard: &TableGuard| -> Vec<(Attr, Guarantee)> {
            let attr = guard.protects.attributes().iter().next();
            attr.map_or_else(Vec::new, |attr| guard.guarantees.iter().map(|&guarantee| (attr, guarantee)).collect())
        };
        let generalization = GeneralizationInput {
            quasi_identifiers: generalized.quasi_identifiers,
            k: generalized.k.unwrap_or(1),
            guarantees: generalized.keeps.iter().flat_map(guarantees).collect(),
            split: generalized.split,
            max_attempts: None,
            strata: generalized.strata.clone(),
        };
        let order = CutOrder { table: self.rows.permuted, cells: generalized.cells, sets: generalized.sets };
        match generalization.classes(self.rows.permuted, &order, self.control) {
            Err(GeneralizeError::Empty) => Ok(BucketAssignment { bucket_of: Vec::new(), buckets: 0 }),
            classes => Ok(classes?),
        }
    }
}
