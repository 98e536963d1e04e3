//! The tables of a release in another engine, as they are planned.

use std::collections::BTreeMap;

use super::counted::{CountedRelease, RemoteOrder, refuse};
use super::counts::RemoteCounts;
use super::distinct_rows::DistinctRows;
use super::limits::{MOST_DISTINCT_ROWS, unsupported};
use super::port::{RemoteBuckets, RemoteError, RemoteForm, RemoteTable, RemoteTablePlan};
use super::published::{ProtectedRemoteColumn, PublishedRemoteColumn};
use crate::control::{Cancelled, Control};
use crate::engine::error::EngineError;
use crate::engine::prepare::annotations::annotate_trees;
use crate::engine::prepare::feasible;
use crate::microdata::{Attr, AttrSet, AttributeType, Table};
use crate::model::RowGroups;
use crate::publication::{PublishedColumn, TableName};
use crate::publish::partition::RowWeights;
use crate::publish::ranked;
use crate::publish::ranked::{BucketContent, UseKey, place_filled, plan_buckets};
use crate::publish::slicing::WholeTableViolation;
use crate::publish::{Decision, DesignedTable, PlanError, PlanRefusal, TableDesign};
use crate::verifier::{AttributeContents, OriginalValues, TableContents};

/// A table as it is planned.
pub(super) struct PlannedTable {
    pub(super) plan: RemoteTablePlan,
    /// What its buckets or classes hold.
    pub(super) contents: TableContents,
    /// The columns of its classes; none of other tables.
    pub(super) shared: Vec<PublishedColumn>,
}

/// Why the tables of a release are not planned.
pub(super) enum UnplannedError {
    /// The table has faults, or more than can be planned from.
    Refused(PlanRefusal),
    /// The whole table violates the guarantee of its buckets.
    NotDiverse(WholeTableViolation),
    /// Cancelled, or failed.
    Stopped(EngineError),
}

impl From<EngineError> for UnplannedError {
    fn from(error: EngineError) -> Self {
        Self::Stopped(error)
    }
}

impl From<Cancelled> for UnplannedError {
    fn from(cancelled: Cancelled) -> Self {
        Self::Stopped(cancelled.into())
    }
}

impl From<PlanRefusal> for UnplannedError {
    fn from(refusal: PlanRefusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<PlanError> for UnplannedError {
    fn from(error: PlanError) -> Self {
        match error {
            PlanError::Refused(refusal) => Self::Refused(refusal),
            PlanError::Cancelled(cancelled) => cancelled.into(),
        }
    }
}

impl From<RemoteError> for UnplannedError {
    fn from(error: RemoteError) -> Self {
        match error {
            RemoteError::Unsupported(detail) => Self::Refused(PlanRefusal(vec![unsupported("", detail)])),
            other => Self::Stopped(other.into()),
        }
    }
}

/// A table that is planned from its distinct rows.
pub(super) struct DesignOfRows<'a, D> {
    pub(super) name: TableName,
    /// All its attributes.
    pub(super) attributes: AttrSet,
    pub(super) design: &'a D,
    pub(super) counts: &'a RemoteCounts,
}

/// The distinct rows that a table is planned from.
#[derive(Clone, Copy)]
pub(super) struct DistinctColumns<'a> {
    /// The attributes by which rows are parted.
    pub(super) known: AttrSet,
    pub(super) sensitive: AttrSet,
    pub(super) counts: &'a RemoteCounts,
}

impl RemoteOrder<'_> {
    /// A column as it is published.
    pub(super) fn published(&self, attr: Attr) -> PublishedRemoteColumn {
        PublishedRemoteColumn {
            column: self.specification.used[attr.index()],
            name: self.specification.published_names[attr.index()].clone(),
        }
    }

    /// Plans the tables of a release without faults. Classes and sliced tables are made of the distinct rows of the table, which may
    /// show that the design cannot be made: it then says so.
    ///
    /// # Errors
    /// [`EngineError`]; the faults of what is refused.
    pub(super) fn tables(
        &self,
        counted: &mut CountedRelease,
        table: &mut dyn RemoteTable,
        control: &Control,
    ) -> Result<Result<Vec<PlannedTable>, PlanRefusal>, EngineError> {
        match self.all_tables(counted, table, control) {
            Ok(tables) => Ok(Ok(tables)),
            Err(UnplannedError::Refused(refusal)) => Ok(Err(refusal)),
            Err(UnplannedError::NotDiverse(violation)) => {
                counted.prepared.design.refute(violation);
                match feasible(&counted.prepared, self.specification) {
                    Err(refusal) => Ok(Err(refusal)),
                    Ok(()) => Err(EngineError::bug("a refuted design has no fault")),
                }
            }
            Err(UnplannedError::Stopped(error)) => Err(error),
        }
    }

    fn all_tables(
        &self,
        CountedRelease { prepared, counts, .. }: &CountedRelease,
        table: &mut dyn RemoteTable,
        control: &Control,
    ) -> Result<Vec<PlannedTable>, UnplannedError> {
        let mut tables = Vec::new();
        for (index, designed) in prepared.design.tables.iter().enumerate() {
            let (name, attributes) = (TableName::at(index), designed.attributes);
            tables.push(match &designed.design {
                TableDesign::Generalized(design) => {
                    self.classes(table, DesignOfRows { name, attributes, design, counts }, control)?
                }
                TableDesign::Sliced(design) => {
                    self.slices(table, DesignOfRows { name, attributes, design, counts }, control)?
                }
                _ => self.planned(name.0, designed, counts, &prepared.design.decision)?,
            });
        }
        Ok(tables)
    }

    /// The plan of a plain or a bucketized table.
    fn planned(
        &self,
        name: String,
        designed: &DesignedTable,
        counts: &RemoteCounts,
        decision: &Decision,
    ) -> Result<PlannedTable, EngineError> {
        let single = designed.bucketized().and_then(|bucketized| bucketized.single());
        let (mut form, mut contents) = (RemoteForm::Plain, TableContents::default());
        if let Some((attr, guarantees)) = single {
            let OriginalValues { values, rows, .. } = counts.protected(attr).ok_or_else(unknown_values)?;
            let plan = match designed.bucketized().and_then(|bucketized| bucketized.planned()) {
                Some(planned) => place_filled(&planned.filled, self.key, &name),
                None => plan_buckets(&rows, guarantees, self.key, &name)
                    .map_err(|error| EngineError::bug(error.to_string()))?,
            };
            let buckets = ranked::contents(&plan.segments);
            contents.attributes.push(AttributeContents { attribute: Some(attr), buckets, values: values.len() });
            let (key, ranking) = match decision {
                // the choice was made by these ranks
                Decision::ByData(_) => {
                    let attribute = &self.specification.names[attr.index()];
                    (UseKey::of_attribute(self.key, attribute), self.ranking_places())
                }
                _ => (UseKey::of_ranks(self.key, &name), self.places(designed.attributes)),
            };
            let sensitive = ProtectedRemoteColumn { column: self.published(attr), values };
            form = RemoteForm::Bucketized(RemoteBuckets { sensitive, plan, key, ranking });
        }
        let sensitive = single.map_or(AttrSet::EMPTY, |(attr, _)| AttrSet::one(attr));
        let known = self.all_published(designed.attributes.minus(sensitive));
        Ok(PlannedTable { plan: RemoteTablePlan { name, known, form }, contents, shared: Vec::new() })
    }

    /// The positions of the columns of attributes, rising.
    pub(super) fn places(&self, attributes: AttrSet) -> Vec<usize> {
        let mut places: Vec<usize> = attributes.iter().map(|attr| self.specification.used[attr.index()]).collect();
        places.sort_unstable();
        places
    }

    /// The columns of attributes, as they are published.
    pub(super) fn all_published(&self, attributes: AttrSet) -> Vec<PublishedRemoteColumn> {
        attributes.iter().map(|attr| self.published(attr)).collect()
    }

    /// The distinct rows of a table, with the taxonomies of the attributes by which rows are parted.
    ///
    /// # Errors
    /// [`UnplannedError`]: refused where there are too many, or a taxonomy lacks values.
    pub(super) fn distinct_rows(
        &self,
        table: &mut dyn RemoteTable,
        DistinctColumns { known, sensitive, counts }: DistinctColumns<'_>,
    ) -> Result<(Table, RowWeights), UnplannedError> {
        let wanted = known.union(sensitive);
        let places: Vec<usize> = wanted.iter().map(|attr| self.specification.used[attr.index()]).collect();
        let kinds: Vec<AttributeType> = counts.columns.iter().map(|column| column.kind).collect();
        let found: DistinctRows = table.distinct_rows(&places, MOST_DISTINCT_ROWS)?;
        let (rows, weights) = found.into_table(wanted, &self.specification.names, &kinds);
        // contents hold the positions of values as they were counted by themselves
        let is_as_counted = |attr: Attr| {
            let counted = counts.protected(attr).map(|of| of.values).unwrap_or_default();
            rows.column(attr).domain.iter().eq(counted.iter().map(|value| value.as_deref().map(str::as_bytes)))
        };
        if !sensitive.iter().all(is_as_counted) {
            let detail = "the engine has other protected values in distinct rows than by themselves";
            return Err(EngineError::bug(detail).into());
        }
        let (rows, faults) = annotate_trees(self.specification, rows, known);
        refuse(faults)?;
        Ok((rows, weights))
    }
}

/// The values of a protected attribute were not counted.
pub(super) fn unknown_values() -> EngineError {
    EngineError::bug("the values of a protected attribute are not known")
}

/// The first row of each group.
pub(super) fn firsts(groups: &RowGroups) -> Vec<u32> {
    let mut firsts = Vec::with_capacity(groups.sizes().len());
    // groups are numbered in the order of their first rows
    for (&group, row) in groups.of_row().iter().zip(0..) {
        if group as usize == firsts.len() {
            firsts.push(row);
        }
    }
    firsts
}

/// How many groups of rows have each content.
pub(super) fn contents<G: Ord>(
    weights: &RowWeights,
    rows: usize,
    group: impl Fn(usize) -> G,
    value: impl Fn(usize) -> u32,
) -> BTreeMap<BucketContent, u64> {
    let mut rows: Vec<u32> = (0..rows as u32).collect();
    let key = |row: &u32| (group(*row as usize), value(*row as usize));
    rows.sort_unstable_by_key(key);
    let mut contents = BTreeMap::new();
    for of_group in rows.chunk_by(|a, b| key(a).0 == key(b).0) {
        let values = of_group.chunk_by(|a, b| key(a).1 == key(b).1).map(|rows| (key(&rows[0]).1, weights.of(rows)));
        *contents.entry(values.collect()).or_default() += 1;
    }
    contents
}
