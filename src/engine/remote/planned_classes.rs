//! The plan of a generalized table in another engine: its classes are made here, from its distinct rows.

use super::classes::RemoteClasses;
use super::counted::RemoteOrder;
use super::members::RemoteMembers;
use super::planned_tables::{
    DesignOfRows, DistinctColumns, PlannedTable, UnplannedError, contents, firsts, unknown_values,
};
use super::port::{RemoteForm, RemoteTable, RemoteTablePlan};
use super::published::ProtectedRemoteColumn;
use crate::control::Control;
use crate::engine::error::EngineError;
use crate::microdata::{Attr, AttrSet, Column};
use crate::model::RowGroups;
use crate::publication::{CellContent, PublishedColumn};
use crate::publish::Generalized;
use crate::publish::generalize::{CountedRows, SharedColumn};
use crate::verifier::{AttributeContents, TableContents};

impl RemoteOrder<'_> {
    /// Makes the classes of a generalized table from its distinct rows.
    ///
    /// # Errors
    /// [`UnplannedError`]: refused where the table has too many distinct rows, or a taxonomy lacks values.
    pub(super) fn classes(
        &self,
        table: &mut dyn RemoteTable,
        DesignOfRows { name, attributes, design: generalized, counts }: DesignOfRows<'_, Generalized>,
        control: &Control,
    ) -> Result<PlannedTable, UnplannedError> {
        let (known, names) = (generalized.quasi_identifiers, &self.specification.published_names);
        let protected = generalized.keeps.iter().map(|guard| guard.protects.attributes());
        let sensitive = protected.fold(AttrSet::EMPTY, AttrSet::union);
        let (rows, weights) = self.distinct_rows(table, DistinctColumns { known, sensitive, counts })?;
        let shown = generalized.columns(CountedRows { table: &rows, weights: &weights }, names, control);
        let shown = shown.map_err(EngineError::from)?;
        // classes that show the same are one
        let all = RowGroups::whole(rows.rows());
        let shared: Vec<&Column> = shown.iter().map(|of| &of.column).collect();
        let by_class = all.refined(&shared, control)?;
        let distinct: Vec<&Column> = known.iter().map(|attr| rows.column(attr)).collect();
        let (first_of_class, first_of_member) = (firsts(&by_class), firsts(&all.refined(&distinct, control)?));
        let values = |attr| counts.protected(attr).map(|of| (attr, of.values)).ok_or_else(unknown_values);
        let sensitive: Vec<(Attr, Vec<Option<String>>)> = sensitive.iter().map(values).collect::<Result<_, _>>()?;
        let class_of = |row: usize| by_class.of_row()[row];
        let found = |(attr, values): &(Attr, Vec<Option<String>>)| AttributeContents {
            attribute: Some(*attr),
            buckets: contents(&weights, rows.rows(), class_of, |row| rows.column(*attr).codes.get(row)),
            values: values.len(),
        };
        let mut found: Vec<AttributeContents> = sensitive.iter().map(found).collect();
        if found.is_empty() {
            let buckets = contents(&weights, rows.rows(), class_of, |_| 0);
            found.push(AttributeContents { attribute: None, buckets, values: 1 });
        }
        let contents = TableContents { attributes: found, sizes: None };
        let column = |attribute: Attr| {
            let shared = shown.iter().find(|of: &&SharedColumn| of.attribute == attribute);
            let cells = shared.map_or(CellContent::Exact, |of| of.cells.clone());
            PublishedColumn { attribute, name: names[attribute.index()].clone(), cells }
        };
        let classes = RemoteClasses {
            members: RemoteMembers {
                places: attributes.iter().enumerate().filter(|of| known.contains(of.1)).map(|of| of.0).collect(),
                distinct: distinct.iter().map(|column| column.reordered(&first_of_member)).collect(),
                set_of: first_of_member.iter().map(|row| class_of(*row as usize)).collect(),
            },
            sensitive: sensitive
                .into_iter()
                .map(|(attr, values)| ProtectedRemoteColumn { column: self.published(attr), values })
                .collect(),
            cells: shared.iter().map(|column| column.reordered(&first_of_class)).collect(),
        };
        let (known, form) = (self.all_published(attributes), RemoteForm::Generalized(classes));
        let shared = attributes.iter().map(column).collect();
        Ok(PlannedTable { plan: RemoteTablePlan { name: name.0, known, form }, contents, shared })
    }
}
