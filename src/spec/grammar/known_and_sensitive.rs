use std::collections::BTreeSet;

use super::attributes::{AttributeOptions, DatasetColumns, published_columns};
use super::document::{ColumnName, Given, Names};
use super::reader::FaultList;
use crate::problem::{Fault, Kind};

/// The two sides of a method that protects one attribute: the quasi-identifiers and the sensitive attribute.
pub(in crate::spec) struct KnownAndSensitive<'d> {
    /// The quasi-identifiers as the document names them.
    pub(in crate::spec) known: &'d mut Given<Names>,
    /// Where the document names them.
    pub(in crate::spec) pointer: String,
    pub(in crate::spec) sensitive: &'d Given<ColumnName>,
}

impl KnownAndSensitive<'_> {
    /// Fills in the quasi-identifiers that the document does not name: all other attributes that are marked with `publish`. Returns
    /// the columns that may have been meant where a fault hides which.
    pub(in crate::spec) fn complete(
        self,
        columns: &DatasetColumns<'_>,
        attributes: &[AttributeOptions],
        faults: &mut FaultList,
    ) -> BTreeSet<usize> {
        let is_hidden = self.known.is_hidden() || self.sensitive.value.is_none();
        let sensitive = self.sensitive.column();
        let known: BTreeSet<usize> = match self.known.value.take() {
            Some(names) => names.columns,
            None => published_columns(attributes).filter(|column| sensitive != Some(*column)).collect(),
        };
        if known.is_empty() && !self.known.is_faulty {
            let detail = "there is no quasi-identifier: name some, or mark attributes with publish";
            faults.push(Fault::new(self.pointer.as_str(), Kind::BadColumns, detail));
        }
        if let Some(column) = sensitive.filter(|column| known.contains(column)) {
            let detail =
                format!("{} is the sensitive attribute and cannot be a quasi-identifier", columns.name(column));
            faults.push(Fault::new(self.pointer, Kind::BadColumns, detail));
        }
        self.known.value = Some(known.into());
        if is_hidden { columns.all() } else { BTreeSet::new() }
    }
}
