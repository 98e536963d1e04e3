//! A release as the counts of its table decide it: the design, and why it cannot be made.

use super::counts::RemoteCounts;
use super::dependencies::RemoteDependencies;
use super::limits::{self, MOST_COLUMNS, MOST_VALUES};
use super::planned_rows::RowsToRank;
use super::planned_tables::UnplannedError;
use super::port::RemoteTable;
use crate::control::{Control, Phase};
use crate::engine::error::EngineError;
use crate::engine::prepare::{PrepareInput, PreparedRelease, feasible, ledger_union, prepare};
use crate::ledger::EarlierDisclosures;
use crate::microdata::{Attr, AttrSet};
use crate::problem::{Fault, Kind};
use crate::publish::{BucketSource, DesignedTable, PlanRefusal, PlanRows, TableDesign};
use crate::random::{RandomStreams, ReleaseKey};
use crate::spec::{MethodSpec, Specification};

/// A release to plan and make in another engine.
pub struct RemoteOrder<'a> {
    /// The specification, free of faults.
    pub specification: &'a Specification,
    /// The secret key of the release.
    pub key: &'a ReleaseKey,
    /// What the ledger knows of the rows. With a release among it, only one without proof is planned.
    pub earlier: &'a EarlierDisclosures,
}

/// The attributes of a release.
#[derive(Clone, Copy)]
struct CountedAttributes<'a> {
    counts: &'a RemoteCounts,
    /// Those that rules protect.
    protected: AttrSet,
}

/// A release as the counts of its table decide it.
pub(super) struct CountedRelease {
    pub(super) prepared: PreparedRelease,
    pub(super) counts: RemoteCounts,
    /// The attributes that rules protect.
    pub(super) protected: AttrSet,
    /// Why it cannot be made.
    pub(super) faults: Vec<Fault>,
}

impl RemoteOrder<'_> {
    /// Counts a table and designs the release.
    ///
    /// # Errors
    /// [`EngineError`]: cancelled, failed, or refused before there is a design.
    pub(super) fn counted(
        &self,
        table: &mut dyn RemoteTable,
        control: &Control,
    ) -> Result<CountedRelease, EngineError> {
        control.begin(Phase::Plan, 1)?;
        let specification = self.specification;
        refuse(limits::remote_faults(specification, table.rows()))?;
        if let Some(problem) = limits::remote_conflict(specification, self.earlier) {
            return Err(EngineError::Refused(problem));
        }
        let (rows, columns) = (table.rows(), table.columns());
        if columns.len() > MOST_COLUMNS {
            let detail =
                format!("the table has {} columns, of {MOST_COLUMNS} at most: name a view with fewer", columns.len());
            refuse(vec![Fault::new("/attributes", Kind::TooManyAttributes, detail)])?;
        }
        if let Some(problem) = limits::subject_problem(&specification.unit, columns) {
            return Err(EngineError::Refused(problem));
        }
        let columns = specification.used.iter().map(|&place| columns[place].clone()).collect();
        let protected =
            specification.method.rules().iter().fold(AttrSet::EMPTY, |all, rule| all.union(rule.protects.attributes()));
        let mut values = Vec::new();
        for (index, &place) in specification.used.iter().enumerate() {
            let is_protected = protected.contains(Attr::from(index));
            let found = is_protected.then(|| table.values(place, MOST_VALUES)).transpose();
            values.push(found?);
        }
        let dependencies = RemoteDependencies::search(specification, table, control)?;
        refuse(dependencies.job.misnamed(specification, &[]))?;
        let counts = RemoteCounts { rows, columns, values };
        let (prepared, mut faults) =
            self.designed(table, &dependencies, CountedAttributes { counts: &counts, protected }, control)?;
        if faults.is_empty() {
            faults = feasible(&prepared, specification).err().map(|PlanRefusal(faults)| faults).unwrap_or_default();
        }
        if faults.is_empty() {
            faults = limits::faults_of_design(&prepared.design, &counts);
        }
        if faults.is_empty() {
            faults = self.ties(protected_by(&prepared.design.tables), &prepared, &dependencies);
        }
        Ok(CountedRelease { prepared, counts, protected, faults })
    }

    /// Designs the release; where its tables are chosen by the rows, from these. With faults nothing was chosen.
    fn designed(
        &self,
        table: &mut dyn RemoteTable,
        dependencies: &RemoteDependencies,
        CountedAttributes { counts, protected }: CountedAttributes<'_>,
        control: &Control,
    ) -> Result<(PreparedRelease, Vec<Fault>), EngineError> {
        let by_rules = self.prepared(dependencies, counts, None, control)?;
        if !limits::chooses_by_rows(&self.specification.method) || feasible(&by_rules, self.specification).is_err() {
            return Ok((by_rules, Vec::new()));
        }
        let tied = self.ties(protected, &by_rules, dependencies);
        if !tied.is_empty() {
            return Ok((by_rules, tied));
        }
        match self.rows_to_rank(table, counts, protected) {
            Ok(rows) => Ok((self.prepared(dependencies, counts, Some(rows), control)?, Vec::new())),
            Err(UnplannedError::Refused(PlanRefusal(faults))) => Ok((by_rules, faults)),
            Err(UnplannedError::NotDiverse(_)) => Err(EngineError::bug("buckets were made before tables were chosen")),
            Err(UnplannedError::Stopped(error)) => Err(error),
        }
    }

    /// Designs the release, from its rows where they are given.
    fn prepared(
        &self,
        dependencies: &RemoteDependencies,
        counts: &RemoteCounts,
        rows: Option<RowsToRank>,
        control: &Control,
    ) -> Result<PreparedRelease, EngineError> {
        let specification = self.specification;
        let streams = RandomStreams::Keyed(self.key.clone());
        let ranked = rows.as_ref().map(|rows| rows.ranked(self.key));
        let rows = rows.as_ref().zip(ranked.as_ref()).map(|(RowsToRank { table, .. }, ranked)| PlanRows {
            buckets: BucketSource::Elsewhere(ranked),
            ..PlanRows::new(table, table, &streams)
        });
        let input = PrepareInput {
            counts,
            rows,
            union: ledger_union(specification, self.earlier)?,
            joined: &self.earlier.releases,
            dependencies: dependencies.job.clone(),
            extended: None,
            dropped: AttrSet::EMPTY,
        };
        let mut prepared = prepare(specification, input, control)?;
        if let MethodSpec::Bucketize(spec) = &specification.method {
            counts.size_buckets(spec, &mut prepared.design, control)?;
        }
        Ok(prepared)
    }

    /// The faults of protected attributes that known dependencies tie to others: their buckets would need the rows.
    fn ties(&self, protected: AttrSet, prepared: &PreparedRelease, dependencies: &RemoteDependencies) -> Vec<Fault> {
        let specification = self.specification;
        let name = |attr: Attr| match specification.names.get(attr.index()) {
            Some(name) => name.clone(),
            None => "a column that is not published".to_owned(),
        };
        let mut faults = Vec::new();
        for protected in protected.iter() {
            let tied = dependencies.tied(protected, &prepared.dependencies.all);
            if !tied.is_empty() {
                let mut names: Vec<String> = tied.iter().map(name).collect();
                names.dedup();
                let detail = format!(
                    "known dependencies tie {} to {}; buckets that respect them are made row by row: leave these attributes out, state \
                     that the adversary does not know the dependency, or publish the table from a file",
                    name(protected),
                    names.join(", ")
                );
                faults
                    .push(Fault::new("/method", Kind::GuaranteeUnsupported, detail).with("attribute", name(protected)));
            }
        }
        faults
    }
}

/// The attributes that tables protect.
fn protected_by(tables: &[DesignedTable]) -> AttrSet {
    let of_table = |of: &DesignedTable| match &of.design {
        TableDesign::Bucketized(bucketized) => {
            bucketized.single().map_or(AttrSet::EMPTY, |(attr, _)| AttrSet::one(attr))
        }
        TableDesign::Generalized(of) => {
            of.keeps.iter().fold(AttrSet::EMPTY, |all, guard| all.union(guard.protects.attributes()))
        }
        TableDesign::Sliced(sliced) => AttrSet::one(sliced.plan.sensitive),
        TableDesign::Plain | TableDesign::Sequential(_) | TableDesign::Decomposed(_) => AttrSet::EMPTY,
    };
    tables.iter().map(of_table).fold(AttrSet::EMPTY, AttrSet::union)
}

/// Runs work on a table and deletes its scratch, whatever came of it. What came of it counts only if nothing is left: while the
/// assignment can be read, there is no release.
pub(super) fn clearing<T>(
    table: &mut dyn RemoteTable,
    work: impl FnOnce(&mut dyn RemoteTable) -> Result<T, EngineError>,
) -> Result<T, EngineError> {
    let done = work(table);
    let cleared = table.clear();
    let done = done?;
    cleared?;
    Ok(done)
}

/// Refuses a release with faults.
pub(super) fn refuse(faults: Vec<Fault>) -> Result<(), PlanRefusal> {
    if faults.is_empty() { Ok(()) } else { Err(PlanRefusal(faults)) }
}
