//! The plan of a sliced table in another engine: its buckets are made here, from its distinct rows.

use std::collections::BTreeMap;

use super::counted::RemoteOrder;
use super::members::RemoteMembers;
use super::planned_tables::{
    DesignOfRows, DistinctColumns, PlannedTable, UnplannedError, contents, firsts, unknown_values,
};
use super::port::{RemoteForm, RemoteTable, RemoteTablePlan};
use super::published::ProtectedRemoteColumn;
use super::slices::RemoteSlices;
use crate::control::Control;
use crate::microdata::{AttrSet, Column};
use crate::model::RowGroups;
use crate::publish::assign::Labels;
use crate::publish::generalize::CountedRows;
use crate::publish::slicing::SlicedDesign;
use crate::random::RandomStreams;
use crate::verifier::{AttributeContents, TableContents};

impl RemoteOrder<'_> {
    /// Makes the buckets of a sliced table from its distinct rows.
    ///
    /// # Errors
    /// [`UnplannedError`]: refused where the table has too many distinct rows, or as a whole breaks the guarantee.
    pub(super) fn slices(
        &self,
        table: &mut dyn RemoteTable,
        DesignOfRows { name, attributes, design: sliced, counts }: DesignOfRows<'_, SlicedDesign>,
        control: &Control,
    ) -> Result<PlannedTable, UnplannedError> {
        let protected = counts.protected(sliced.plan.sensitive).ok_or_else(unknown_values)?;
        let (sensitive, known) = (protected.attribute, attributes.without(protected.attribute));
        let columns = DistinctColumns { known, sensitive: AttrSet::one(sensitive), counts };
        let (rows, weights) = self.distinct_rows(table, columns)?;
        let counted = CountedRows { table: &rows, weights: &weights };
        let made = sliced.counted_buckets(counted, control)?.map_err(UnplannedError::NotDiverse)?;
        let buckets = made.buckets;
        let labels = Labels::of_table(&name, buckets, &RandomStreams::Keyed(self.key.clone())).of_rows(made);
        let all = RowGroups::whole(rows.rows());
        let columns_of =
            |attributes: AttrSet| attributes.iter().map(|attr| rows.column(attr)).collect::<Vec<&Column>>();
        let first_of_member = firsts(&all.refined(&columns_of(known), control)?);
        // what an adversary knows of the protected column: every value there keeps the guarantee by itself
        let companions = sliced.columns.last().copied().unwrap_or_default().without(sensitive);
        let by_companions = all.refined(&columns_of(companions), control)?;
        let codes = &rows.column(sensitive).codes;
        let group = |row: usize| (labels[row], by_companions.of_row()[row]);
        let found = contents(&weights, rows.rows(), group, |row| codes.get(row));
        let mut rows_of_bucket = vec![0u64; buckets as usize];
        for (row, label) in (0u32..).zip(&labels) {
            rows_of_bucket[*label as usize - 1] += weights.of(&[row]);
        }
        let mut sizes = BTreeMap::new();
        rows_of_bucket.iter().for_each(|rows| *sizes.entry(*rows).or_default() += 1);
        let of_sensitive =
            AttributeContents { attribute: Some(sensitive), buckets: found, values: protected.values.len() };
        let contents = TableContents { attributes: vec![of_sensitive], sizes: Some(sizes) };
        let places =
            |of: AttrSet| attributes.iter().enumerate().filter(|at| of.contains(at.1)).map(|at| at.0).collect();
        let slices = RemoteSlices {
            parts: sliced.columns.iter().map(|column| places(*column)).collect(),
            members: RemoteMembers {
                places: places(known),
                distinct: columns_of(known).iter().map(|column| column.reordered(&first_of_member)).collect(),
                set_of: first_of_member.iter().map(|row| labels[*row as usize]).collect(),
            },
            buckets,
            sensitive: ProtectedRemoteColumn { column: self.published(sensitive), values: protected.values },
        };
        let plan =
            RemoteTablePlan { name: name.0, known: self.all_published(attributes), form: RemoteForm::Sliced(slices) };
        Ok(PlannedTable { plan, contents, shared: Vec::new() })
    }
}
