//! The plan of a generalized table in another engine: its classes are made here, from its distinct rows.

use std::collections::BTreeMap;

use super::classes::{RemoteClassValues, RemoteClasses};
use super::counted::{RemoteOrder, refuse};
use super::counts::RemoteCounts;
use super::distinct_rows::DistinctRows;
use super::limits::MOST_DISTINCT_ROWS;
use super::port::RemoteTable;
use super::published::PublishedRemoteColumn;
use crate::control::Control;
use crate::engine::error::EngineError;
use crate::engine::prepare::annotations::annotate_trees;
use crate::microdata::{Attr, AttrSet, AttributeType, Column, Table};
use crate::model::RowGroups;
use crate::publication::{CellContent, PublishedColumn};
use crate::publish::Generalized;
use crate::publish::generalize::{CountedRows, SharedColumn};
use crate::publish::partition::RowWeights;
use crate::publish::ranked::BucketContent;

/// A generalized table as it is planned.
pub(super) struct PlannedClasses {
    pub(super) classes: RemoteClasses,
    /// How many classes hold what of the protected column; the number of their rows where there is none.
    pub(super) contents: BTreeMap<BucketContent, u64>,
    /// The columns of the part.
    pub(super) columns: Vec<PublishedColumn>,
}

/// The table whose classes are made.
#[derive(Clone, Copy)]
pub(super) struct ClassDesign<'a> {
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
    /// A column as it is published.
    pub(super) fn published(&self, attr: Attr) -> PublishedRemoteColumn {
        PublishedRemoteColumn {
            column: self.specification.used[attr.index()],
            name: self.specification.published_names[attr.index()].clone(),
        }
    }

    /// Makes the classes of a generalized table from its distinct rows.
    ///
    /// # Errors
    /// [`EngineError`]: refused where the table has too many distinct rows, its whole breaks a requirement, or a taxonomy lacks values.
    pub(super) fn classes(
        &self,
        table: &mut dyn RemoteTable,
        design: ClassDesign<'_>,
        control: &Control,
    ) -> Result<PlannedClasses, EngineError> {
        let (rows, weights) = self.distinct_rows(table, design)?;
        let ClassDesign { attributes, generalized, counts } = design;
        let (known, names) = (generalized.quasi_identifiers, &self.specification.published_names);
        let shown = generalized.columns(CountedRows { table: &rows, weights: &weights }, names, control)?;
        // classes that show the same are one
        let all = RowGroups::whole(rows.rows());
        let shared: Vec<&Column> = shown.iter().map(|of| &of.column).collect();
        let by_class = all.refined(&shared, control)?;
        let distinct: Vec<&Column> = known.iter().map(|attr| rows.column(attr)).collect();
        let (first_of_class, first_of_member) = (firsts(&by_class), firsts(&all.refined(&distinct, control)?));
        let sensitive = design.sensitive().and_then(|attr| counts.protected(attr));
        let codes = sensitive.as_ref().map(|of| &rows.column(of.attribute).codes);
        let contents = contents(&by_class, &weights, |row| codes.map_or(0, |codes| codes.get(row)));
        let column = |attribute: Attr| {
            let shared = shown.iter().find(|of: &&SharedColumn| of.attribute == attribute);
            let cells = shared.map_or(CellContent::Exact, |of| of.cells.clone());
            PublishedColumn { attribute, name: names[attribute.index()].clone(), cells }
        };
        let classes = RemoteClasses {
            generalized: attributes.iter().enumerate().filter(|of| known.contains(of.1)).map(|of| of.0).collect(),
            sensitive: sensitive
                .map(|of| RemoteClassValues { column: self.published(of.attribute), values: of.values }),
            members: distinct.iter().map(|column| column.reordered(&first_of_member)).collect(),
            class_of: first_of_member.iter().map(|row| by_class.of_row()[*row as usize]).collect(),
            cells: shared.iter().map(|column| column.reordered(&first_of_class)).collect(),
        };
        Ok(PlannedClasses { classes, contents, columns: attributes.iter().map(column).collect() })
    }

    /// The distinct rows of a table, with the taxonomies of its quasi-identifiers.
    fn distinct_rows(
        &self,
        table: &mut dyn RemoteTable,
        design: ClassDesign<'_>,
    ) -> Result<(Table, RowWeights), EngineError> {
        let ClassDesign { generalized, counts, .. } = design;
        let known = generalized.quasi_identifiers;
        let wanted = known.union(design.sensitive().map_or(AttrSet::EMPTY, AttrSet::one));
        let places: Vec<usize> = wanted.iter().map(|attr| self.specification.used[attr.index()]).collect();
        let kinds: Vec<AttributeType> = counts.columns.iter().map(|column| column.kind).collect();
        let found: DistinctRows = table.distinct_rows(&places, MOST_DISTINCT_ROWS)?;
        let (rows, weights) = found.into_table(wanted, &self.specification.names, &kinds);
        // contents hold the positions of values as they were counted by themselves
        let is_as_counted = |attr: Attr| {
            let counted = counts.protected(attr).map(|of| of.values).unwrap_or_default();
            rows.column(attr).domain.iter().eq(counted.iter().map(|value| value.as_deref().map(str::as_bytes)))
        };
        if !design.sensitive().is_none_or(is_as_counted) {
            return Err(EngineError::bug("the engine has other protected values in distinct rows than by themselves"));
        }
        let (rows, faults) = annotate_trees(self.specification, rows, known);
        refuse(faults)?;
        Ok((rows, weights))
    }
}

/// The first row of each group.
fn firsts(groups: &RowGroups) -> Vec<u32> {
    let mut firsts = Vec::with_capacity(groups.sizes().len());
    // groups are numbered in the order of their first rows
    for (&group, row) in groups.of_row().iter().zip(0..) {
        if group as usize == firsts.len() {
            firsts.push(row);
        }
    }
    firsts
}

/// How many classes have each content.
fn contents(classes: &RowGroups, weights: &RowWeights, value: impl Fn(usize) -> u32) -> BTreeMap<BucketContent, u64> {
    let mut rows: Vec<u32> = (0..classes.of_row().len() as u32).collect();
    let key = |row: &u32| (classes.of_row()[*row as usize], value(*row as usize));
    rows.sort_unstable_by_key(key);
    let mut contents = BTreeMap::new();
    for class in rows.chunk_by(|a, b| key(a).0 == key(b).0) {
        let values = class.chunk_by(|a, b| key(a).1 == key(b).1).map(|rows| (key(&rows[0]).1, weights.of(rows)));
        *contents.entry(values.collect()).or_default() += 1;
    }
    contents
}
