//! A release as the counts of its table decide it: the design, and why it cannot be made.

use super::counts::RemoteCounts;
use super::dependencies::RemoteDependencies;
use super::limits::{self, MOST_COLUMNS, MOST_VALUES};
use super::port::RemoteTable;
use crate::control::{Control, Phase};
use crate::engine::error::EngineError;
use crate::engine::prepare::{PrepareInput, PreparedRelease, feasible, ledger_union, prepare};
use crate::ledger::EarlierDisclosures;
use crate::microdata::{Attr, AttrSet};
use crate::problem::{Fault, Kind};
use crate::publish::{DesignedTable, PlanRefusal, TableDesign};
use crate::random::ReleaseKey;
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
        refuse(limits::remote_faults(specification))?;
        if let Some(problem) = limits::remote_conflict(specification, self.earlier) {
            return Err(EngineError::Refused(problem));
        }
        let (rows, columns) = (table.rows(), table.columns());
        if columns.len() > MOST_COLUMNS {
            let detail =
                format!("the table has {} columns, of {MOST_COLUMNS} at most: name a view with fewer", columns.len());
            refuse(vec![Fault::new("/attributes", Kind::TooManyAttributes, detail)])?;
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
        let input = PrepareInput {
            counts: &counts,
            rows: None,
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
        let infeasible = feasible(&prepared, specification).err().map(|PlanRefusal(faults)| faults);
        let mut faults = infeasible.unwrap_or_else(|| limits::faults_of_design(&prepared.design, &counts));
        if faults.is_empty() {
            faults = self.ties(&prepared, &dependencies);
        }
        Ok(CountedRelease { prepared, counts, protected, faults })
    }

    /// The faults of protected attributes that known dependencies tie to others: their buckets would need the rows.
    fn ties(&self, prepared: &PreparedRelease, dependencies: &RemoteDependencies) -> Vec<Fault> {
        let specification = self.specification;
        let name = |attr: Attr| match specification.names.get(attr.index()) {
            Some(name) => name.clone(),
            None => "a column that is not published".to_owned(),
        };
        let mut faults = Vec::new();
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
        let protected = prepared.design.tables.iter().map(of_table).fold(AttrSet::EMPTY, AttrSet::union);
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
