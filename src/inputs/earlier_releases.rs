//! The earlier releases that a sequential release is joined with: found, and read from their parts.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;
use uuid::Uuid;

use super::columns::load;
use super::context::JobContext;
use super::env::InputEnv;
use super::error::{ExternalRowsError, InputError};
use super::external_rows::ExternalRows;
use super::memory_estimate::{ASSUMED_VALUE_BYTES, sizes_of};
use super::part_storage::PartStorage;
use crate::control::Control;
use crate::engine;
use crate::engine::{ColumnSize, EngineError, ExternalTableRows, JoinContext};
use crate::ledger::{AttributeIdentities, Disclosure, EarlierDisclosures};
use crate::ports::{ReleaseRecord, StoreError};
use crate::problem::{Fault, Kind, Problem};
use crate::publication::{DeclaredTaxonomy, EarlierRelease, EarlierReleases, Exclusion, ReleaseStatus};
use crate::report::Manifest;
use crate::spec::MethodSpec;

/// The bytes of memory that joining a release with earlier ones and checking its exclusions takes.
#[must_use]
pub(crate) fn earlier_releases_memory(
    job: &JobContext,
    earlier: &EarlierDisclosures,
    named: &[EarlierReleaseRef],
) -> u64 {
    let MethodSpec::Sequential(spec) = &job.specification.method else { return 0 };
    let releases = named.iter().map(|named| match named {
        EarlierReleaseRef::Published(release) => {
            let joined =
                disclosure_of(earlier, release.id).map_or(0, |disclosure| join_memory(job, &disclosure.attributes));
            joined.saturating_add(join_memory(job, &kept_exclusions(&release.manifest)))
        }
        EarlierReleaseRef::External(table) => table.memory(job.dataset.rows),
    });
    let releases = releases.fold(0, u64::saturating_add);
    releases
        .saturating_add(join_memory(job, &job.specification.names))
        .saturating_add(join_memory(job, &excluded(&spec.exclusions)))
}

/// The attributes that the exclusions of an earlier release name, by its manifest.
fn kept_exclusions(manifest: &Value) -> Vec<String> {
    let exclusions = manifest.pointer("/method_details/exclusions").and_then(Value::as_array);
    let sides = exclusions.into_iter().flatten().flat_map(|exclusion| [&exclusion["left"], &exclusion["right"]]);
    let references = sides.filter_map(Value::as_object).flat_map(|side| side.keys());
    let names = references.filter_map(|reference| Some(reference.split_once('.')?.1.to_owned()));
    sorted(names.collect())
}

/// The bytes of memory that a table of these attributes takes in a join.
fn join_memory(job: &JobContext, names: &[String]) -> u64 {
    let rows = job.dataset.rows;
    let places: Vec<usize> =
        names.iter().filter_map(|name| job.columns.iter().position(|column| column == name)).collect();
    let mut sizes = sizes_of(&job.dataset, &job.profiles, &places);
    // a column that the dataset lacks may have any size
    sizes.resize(names.len(), ColumnSize { codes: rows, bytes: rows.saturating_mul(ASSUMED_VALUE_BYTES) });
    engine::join_memory(rows, &sizes)
}

/// An earlier release that a specification names, without its rows.
pub(crate) enum EarlierReleaseRef {
    /// Published here.
    Published(Box<ReleaseRecord>),
    /// An external table.
    External(Box<ExternalRows>),
}

/// The earlier releases that a specification names, without their rows, in its order.
///
/// # Errors
/// Every one that is not published of the same series and content, or whose rows are not here; or the store's problem.
pub(crate) async fn find_earlier_releases(
    env: &InputEnv,
    job: &JobContext,
    earlier: &EarlierDisclosures,
) -> Result<Vec<EarlierReleaseRef>, InputError> {
    let MethodSpec::Sequential(spec) = &job.specification.method else { return Ok(Vec::new()) };
    let tenant = &job.dataset.tenant;
    let (mut found, mut faults) = (Vec::new(), Vec::new());
    for (at, id) in spec.against.iter().enumerate() {
        // an id of another content or series gets the same answer as an unknown one
        let same = disclosure_of(earlier, *id).is_some();
        let release = env.store.release(tenant, *id).await?;
        match release {
            Some(release) if same && release.status == ReleaseStatus::Published => {
                found.push(EarlierReleaseRef::Published(Box::new(release)))
            }
            // an external table, or a release imported with the ledger of another store
            None if same => match ExternalRows::find(env, tenant, *id, earlier).await {
                Ok(table) => found.push(EarlierReleaseRef::External(Box::new(table))),
                Err(why) => faults.push(external_fault(why, at)?),
            },
            _ => {
                let detail = "no release of this id is published of the same series and content";
                faults.push(Fault::new(pointer(at), Kind::UnknownRelease, detail));
            }
        }
    }
    if faults.is_empty() { Ok(found) } else { Err(InputError::Refused(Problem::of_faults(faults))) }
}

/// The fault of an external table whose rows cannot be read, or the error of the store.
fn external_fault(why: ExternalRowsError, at: usize) -> Result<Fault, InputError> {
    let detail = match why {
        ExternalRowsError::Absent(detail) => detail,
        ExternalRowsError::Purged => {
            "the dataset that held the rows of the table was purged: the rows by which the join is checked cannot be read"
                .to_owned()
        }
        ExternalRowsError::Failed(error) => return Err(error),
    };
    Ok(Fault::new(pointer(at), Kind::BadColumns, detail))
}

fn pointer(at: usize) -> String {
    format!("/method/against/{at}")
}

/// Reads the earlier releases of a sequential specification, on a blocking thread.
///
/// # Errors
/// [`EngineError`]
pub(crate) fn read_earlier_releases(
    env: &InputEnv,
    job: &JobContext,
    earlier: &EarlierDisclosures,
    control: &Control,
) -> Result<EarlierReleases, EngineError> {
    let MethodSpec::Sequential(spec) = &job.specification.method else { return Ok(EarlierReleases::default()) };
    let named = env.handle.block_on(find_earlier_releases(env, job, earlier))?;
    let found = EarlierReleases::default();
    let mut reader = EarlierReader { env, job, earlier, control, found, names: Vec::new(), faults: Vec::new() };
    let mut tables = Vec::new();
    for (at, (of, id)) in named.into_iter().zip(&spec.against).enumerate() {
        control.check()?;
        tables.extend(reader.add_release(at, of, *id)?.map(|table| (at, table)));
    }
    // what earlier releases exclude counts in the join, too
    let kept = reader.found.releases.iter().filter_map(|release| release.sequence.as_ref());
    let exclusions: Vec<Exclusion> =
        spec.exclusions.iter().chain(kept.flat_map(|of| &of.exclusions)).cloned().collect();
    let excluded = excluded(&exclusions);
    reader.add_external(&tables, &excluded)?;
    let EarlierReader { mut found, faults, .. } = reader;
    if !faults.is_empty() {
        return Err(EngineError::Refused(Problem::of_faults(faults)));
    }
    // a column that the dataset lacks leaves its exclusion without a check, which the plan refuses
    let place = |name: String| Some((job.columns.iter().position(|column| *column == name)?, name));
    let (used, names): (Vec<usize>, Vec<String>) = excluded.into_iter().filter_map(place).unzip();
    if !used.is_empty() {
        found.excluded = Some(Arc::new(load(env, job.rows(), &names, &used, control)?));
    }
    Ok(found)
}

/// Reads earlier releases one by one and collects their faults.
struct EarlierReader<'a> {
    env: &'a InputEnv,
    job: &'a JobContext,
    earlier: &'a EarlierDisclosures,
    control: &'a Control,
    found: EarlierReleases,
    /// The attributes of each release, by their names in the join.
    names: Vec<Vec<String>>,
    faults: Vec<Fault>,
}

impl EarlierReader<'_> {
    /// Reads a release published here; gives back an external table, which is read after all of these.
    fn add_release(
        &mut self,
        at: usize,
        of: EarlierReleaseRef,
        id: Uuid,
    ) -> Result<Option<Box<ExternalRows>>, EngineError> {
        let identities = &self.earlier.identities;
        let known: Vec<&String> = self.job.columns.iter().chain(self.names.iter().flatten()).collect();
        let name = |name: &str| name_here(identities, name, &known).to_owned();
        let disclosure = disclosure_of(self.earlier, id);
        let disclosure = disclosure.ok_or_else(|| corrupt(StoreError::corrupt("a release has no disclosure")))?;
        // the rows of an external table are found by its own names
        let attributes: Vec<String> = match of {
            EarlierReleaseRef::Published(_) => disclosure.attributes.iter().map(|attribute| name(attribute)).collect(),
            EarlierReleaseRef::External(_) => disclosure.attributes.clone(),
        };
        let others = self.job.specification.names.iter().chain(self.names.iter().flatten());
        if let Some((name, other)) = renamed(identities, &attributes, others) {
            let detail = format!(
                "releases are joined by attributes that are the same, and {name} of the release counts as {other}, which is an attribute of it or of \
                 another"
            );
            self.faults.push(Fault::new(pointer(at), Kind::BadColumns, detail));
            return Ok(None);
        }
        let external = match of {
            EarlierReleaseRef::External(table) => Some(table),
            EarlierReleaseRef::Published(release) => {
                match read(self.env, &release, &attributes) {
                    Ok(mut release) => {
                        let sequence = release.sequence.map(|of| of.named_by(&name));
                        release.sequence = sequence.filter(|_| disclosure.unproven.is_none());
                        self.found.releases.push(release);
                    }
                    Err(EngineError::Refused(problem)) if problem.kind == Kind::BadColumns => {
                        self.faults.push(Fault::new(pointer(at), Kind::BadColumns, problem.detail));
                    }
                    Err(other) => return Err(other),
                }
                None
            }
        };
        self.names.push(attributes);
        Ok(external)
    }

    /// Reads the external tables, once all releases published here are read: their taxonomies place the labels.
    fn add_external(&mut self, tables: &[(usize, Box<ExternalRows>)], excluded: &[String]) -> Result<(), InputError> {
        let JobContext { dataset, specification, .. } = self.job;
        let join = join_context(self.job, &self.names).with(&self.found.releases);
        let joined = [specification.names.as_slice(), excluded].concat();
        for (at, table) in tables {
            let external = table.read(self.env, self.control).and_then(|rows| {
                let rows_of = table.rows_of(self.env, self.job, &joined, &self.earlier.identities, self.control)?;
                Ok(ExternalTableRows { rows_of, ..rows })
            });
            let external = match external {
                Ok(external) => external,
                Err(why) => {
                    self.faults.push(external_fault(why, *at)?);
                    continue;
                }
            };
            match engine::external_release(external, &join, &pointer(*at)) {
                Ok(release) if specification.unit.rows() > 1 && !release.has_rows_of(dataset.rows as usize) => {
                    let detail = "requirements speak of persons with several rows, and it is not known how many a person has in the \
                                  external table: its rows must be those of the dataset, by record keys";
                    self.faults.push(Fault::new(pointer(*at), Kind::GuaranteeUnsupported, detail));
                }
                Ok(release) => self.found.releases.push(release),
                Err(more) => self.faults.extend(more),
            }
        }
        Ok(())
    }
}

/// Types and taxonomies of the attributes of the new release, and the attributes that several releases have.
fn join_context(job: &JobContext, earlier: &[Vec<String>]) -> JoinContext {
    let JobContext { profiles, specification, .. } = job;
    let name = |declared: &DeclaredTaxonomy| specification.names[declared.attribute.index()].clone();
    let trees = specification.taxonomies.iter().map(|declared| (name(declared), Arc::clone(&declared.tree)));
    let kinds = specification.names.iter().cloned().zip(specification.used.iter().map(|used| profiles[*used].kind));
    let (mut once, mut shared) = (BTreeSet::new(), BTreeSet::new());
    for name in specification.names.iter().chain(earlier.iter().flatten()) {
        if !once.insert(name) {
            shared.insert(name.clone());
        }
    }
    JoinContext { kinds: kinds.collect(), trees: trees.collect(), shared }
}

/// The name of an attribute among those that are joined: that of the dataset, or of an earlier release, which stands for the same.
fn name_here<'a>(identities: &'a AttributeIdentities, name: &'a str, known: &[&'a String]) -> &'a str {
    let same = |other: &&&String| identities.canonical(other) == identities.canonical(name);
    let exact = known.iter().find(|known| **known == name);
    exact.or_else(|| known.iter().find(same)).map_or(name, |known| known.as_str())
}

/// An attribute that counts as another one of the join, which has another name, or twice.
fn renamed<'a>(
    identities: &AttributeIdentities,
    attributes: &'a [String],
    others: impl Iterator<Item = &'a String> + Clone,
) -> Option<(&'a String, &'a String)> {
    attributes.iter().enumerate().find_map(|(at, name)| {
        if attributes[..at].contains(name) {
            return Some((name, name));
        }
        let roots = identities.roots(name);
        let mut others = others.clone();
        let found = others.find(|other| *other != name && !identities.roots(other).is_disjoint(&roots));
        found.map(|other| (name, other))
    })
}

fn corrupt(error: StoreError) -> EngineError {
    EngineError::Refused(error.into())
}

/// The attributes that exclusions name.
fn excluded(exclusions: &[Exclusion]) -> Vec<String> {
    let sides = exclusions.iter().flat_map(|exclusion| [&exclusion.left, &exclusion.right]);
    sorted(sides.flat_map(|side| side.within.iter().map(|(name, _)| name.clone())).collect())
}

/// Different names, in order.
fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort_unstable();
    names.dedup();
    names
}

fn read(env: &InputEnv, release: &ReleaseRecord, names: &[String]) -> Result<EarlierRelease, EngineError> {
    let manifest: Manifest =
        serde_json::from_value(release.manifest.clone()).map_err(|error| corrupt(StoreError::corrupt(error)))?;
    let (handle, store) = (env.handle.clone(), Arc::clone(&env.store));
    let storage = PartStorage::new(handle, store, release.tenant.clone(), release.job, release.attempt);
    let part = engine::tuples_of(&manifest).map_err(EngineError::Refused)?;
    let file =
        engine::read_published(part, storage.reader(&part.csv())?, &mut |_| Ok(())).map_err(EngineError::Refused)?;
    engine::earlier_of(&manifest, names, file)
}

/// The disclosure of a release's first table.
fn disclosure_of(earlier: &EarlierDisclosures, release: Uuid) -> Option<&Disclosure> {
    earlier.disclosures.iter().find(|(of, _)| *of == release).map(|(_, disclosure)| disclosure)
}
