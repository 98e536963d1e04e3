//! The plan of a generalized table in another engine: its classes are made here, from its distinct rows.

use super::classes::RemoteClasses;
use super::counted::RemoteOrder;
use super::counts::RemoteCounts;
use super::members::RemoteMembers;
use super::planned_tables::{DistinctColumns, PlannedTable, UnplannedError, contents, firsts};
use super::port::{RemoteForm, RemoteTable, RemoteTablePlan};
use super::published::ProtectedRemoteColumn;
use crate::control::Control;
use crate::engine::error::EngineError;
use crate::microdata::{Attr, AttrSet, Column};
use crate::model::RowGroups;
use crate::publication::{CellContent, PublishedColumn, TableName};
use crate::publish::Generalized;
use crate::publish::generalize::{CountedRows, SharedColumn};
use crate::verifier::TableContents;

/// The table whose classes are made.
pub(super) struct ClassDesign<'a> {
    pub(super) name: TableName,
    /// All its attributes.
    pub(super) attributes: AttrSet,
    pub(super) generalized: &'a Generalized,
    pub(super) counts: &'a RemoteCounts,
}

impl ClassDesign<'_> {
    fn sensitive(&self) -> Option<Attr> {
        self.generalized.keeps.first().and_then(|guard| guard.protects.attributes().iter().next())
    }
}

impl RemoteOrder<'_> {
    /// Makes the classes of a generalized table from its distinct rows.
    ///
    /// # Errors
    /// [`UnplannedError`]: refused where the table has too many distinct rows, or a taxonomy lacks values.
    pub(super) fn classes(
        &self,
        table: &mut dyn RemoteTable,
        design: ClassDesign<'_>,
        control: &Control,
    ) -> Result<PlannedTable, UnplannedError> {
        let (known, names) = (design.generalized.quasi_identifiers, &self.specification.published_names);
        let (sensitive, counts) = (design.sensitive(), design.counts);
        let (rows, weights) = self.distinct_rows(table, DistinctColumns { known, sensitive, counts })?;
        let ClassDesign { name: TableName(name), attributes, generalized, counts } = design;
        let shown = generalized.columns(CountedRows { table: &rows, weights: &weights }, names, control);
        let shown = shown.map_err(EngineError::from)?;
        // classes that show the same are one
        let all = RowGroups::whole(rows.rows());
        let shared: Vec<&Column> = shown.iter().map(|of| &of.column).collect();
        let by_class = all.refined(&shared, control)?;
        let distinct: Vec<&Column> = known.iter().map(|attr| rows.column(attr)).collect();
        let (first_of_class, first_of_member) = (firsts(&by_class), firsts(&all.refined(&distinct, control)?));
        let sensitive = sensitive.and_then(|attr| counts.protected(attr));
        let codes = sensitive.as_ref().map(|of| &rows.column(of.attribute).codes);
        let class_of = |row: usize| by_class.of_row()[row];
        let found = contents(&weights, rows.rows(), class_of, |row| codes.map_or(0, |codes| codes.get(row)));
        let column = |attribute: Attr| {
            let shared = shown.iter().find(|of: &&SharedColumn| of.attribute == attribute);
            let cells = shared.map_or(CellContent::Exact, |of| of.cells.clone());
            PublishedColumn { attribute, name: names[attribute.index()].clone(), cells }
        };
        let contents = TableContents::of_buckets(found, sensitive.as_ref().map_or(1, |of| of.values.len()));
        let classes = RemoteClasses {
            members: RemoteMembers {
                places: attributes.iter().enumerate().filter(|of| known.contains(of.1)).map(|of| of.0).collect(),
                distinct: distinct.iter().map(|column| column.reordered(&first_of_member)).collect(),
                set_of: first_of_member.iter().map(|row| class_of(*row as usize)).collect(),
            },
            sensitive: sensitive
                .map(|of| ProtectedRemoteColumn { column: self.published(of.attribute), values: of.values }),
            cells: shared.iter().map(|column| column.reordered(&first_of_class)).collect(),
        };
        let (known, form) = (self.all_published(attributes), RemoteForm::Generalized(classes));
        let shared = attributes.iter().map(column).collect();
        Ok(PlannedTable { plan: RemoteTablePlan { name, known, form }, contents, shared })
    }
}
