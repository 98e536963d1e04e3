//! The classes of a generalized table, of its rows or of one row for all that are equal.

use super::cells::CutOrder;
use super::classes::{GeneralizationInput, GeneralizeError};
use super::counted_rows::{CountedRows, SharedColumn};
use super::shared::{SharedCells, shared_cells};
use crate::control::Control;
use crate::microdata::{Attr, Table};
use crate::publication::{Guarantee, TableGuard};
use crate::publish::assign::BucketAssignment;
use crate::publish::designed_table::Generalized;
use crate::publish::error::PublishError;
use crate::spec::CellKind;

impl Generalized {
    /// The quasi-identifiers as they are published, in the order of attributes. Rows with equal cells are a class.
    ///
    /// # Errors
    /// [`PublishError`] where the whole table breaks a requirement, and on cancellation.
    pub fn columns(
        &self,
        rows: CountedRows<'_>,
        names: &[String],
        control: &Control,
    ) -> Result<Vec<SharedColumn>, PublishError> {
        let classes = self.classes(rows, control)?;
        let mut columns = Vec::with_capacity(self.quasi_identifiers.len());
        for attribute in self.quasi_identifiers.iter() {
            control.check()?;
            let form = self.form(rows.table, attribute);
            let column = shared_cells(rows.table.column(attribute), form, &classes);
            columns.push(SharedColumn { attribute, cells: form.content(&names[attribute.index()]), column });
        }
        Ok(columns)
    }

    /// The form of the cells of a quasi-identifier.
    pub(super) fn form<'t>(&self, table: &'t Table, attribute: Attr) -> SharedCells<'t> {
        // an attribute without a taxonomy is numeric, and its cells are intervals
        let tree = table.annotations(attribute).taxonomy().filter(|_| self.cells == CellKind::Node);
        match (self.sets.contains(attribute), tree) {
            (true, _) => SharedCells::Sets,
            (false, Some(tree)) => SharedCells::Nodes(tree),
            (false, None) => SharedCells::Intervals,
        }
    }

    /// Class of each row; a table without rows has none.
    pub(super) fn classes(&self, rows: CountedRows<'_>, control: &Control) -> Result<BucketAssignment, PublishError> {
        let guarantees = |guard: &TableGuard| -> Vec<(Attr, Guarantee)> {
            let attr = guard.protects.attributes().iter().next();
            attr.map_or_else(Vec::new, |attr| guard.guarantees.iter().map(|&guarantee| (attr, guarantee)).collect())
        };
        let generalization = GeneralizationInput {
            quasi_identifiers: self.quasi_identifiers,
            k: self.k.unwrap_or(1),
            guarantees: self.keeps.iter().flat_map(guarantees).collect(),
            split: self.split,
            max_attempts: None,
            strata: self.strata.clone(),
            weights: rows.weights.clone(),
        };
        let order = CutOrder { rows, cells: self.cells, sets: self.sets };
        match generalization.classes(rows.table, &order, control) {
            Err(GeneralizeError::Empty) => Ok(BucketAssignment { bucket_of: Vec::new(), buckets: 0 }),
            classes => Ok(classes?),
        }
    }
}
