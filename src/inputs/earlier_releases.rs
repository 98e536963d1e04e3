//! The earlier releases that a sequential release is joined with: found, and read from their parts.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::runtime::Handle;
use uuid::Uuid;

use super::columns::load;
use super::context::InputEnv;
use super::error::{ExternalRowsError, InputError};
use super::external_rows::ExternalRows;
use super::memory_estimate::{ASSUMED_VALUE_BYTES, sizes_of};
use super::part_storage::PartStorage;
use crate::control::Control;
use crate::engine;
use crate::engine::{ColumnSize, EngineError, ExternalTableRows, JoinContext};
use crate::ledger::{AttributeIdentities, EarlierDisclosures};
use crate::microdata::ColumnProfile;
use crate::ports::{DatasetRecord, ReleaseRecord, Store, StoreError};
use crate::problem::{Fault, Kind, Problem};
use crate::publication::{DeclaredTaxonomy, EarlierRelease, EarlierReleases, ReleaseStatus};
use crate::report::Manifest;
use crate::spec::{MethodSpec, SequentialSpec, Specification};

/// The bytes of memory that joining a release with what it is made against takes, and what its exclusions are held against.
#[must_use]
pub(crate) fn earlier_releases_memory(
    dataset: &DatasetRecord,
    profiles: &[ColumnProfile],
    specification: &Specification,
    (earlier, named): (&EarlierDisclosures, &[EarlierReleaseRef]),
) -> u64 {
    let MethodSpec::Sequential(spec) = &specification.method else { return 0 };
    // a column that the dataset has not may be anything
    let unknown = ColumnSize { codes: dataset.rows, bytes: dataset.rows.saturating_mul(ASSUMED_VALUE_BYTES) };
    let of = |names: &[String]| {
        let places: Vec<usize> =
            names.iter().filter_map(|name| profiles.iter().position(|profile| profile.name == *name)).collect();
        let mut sizes = sizes_of(dataset, profiles, &places);
        sizes.resize(names.len(), unknown);
        engine::join_memory(dataset.rows, &sizes)
    };
    let attributes = |id: &Uuid| earlier.disclosures.iter().find(|(release, _)| release == id);
    let releases = named.iter().map(|named| match named {
        EarlierReleaseRef::Published(release) => {
            attributes(&release.id).map_or(0, |(_, disclosure)| of(&disclosure.attributes))
        }
        EarlierReleaseRef::External(table) => table.memory(dataset.rows),
    });
    let releases = releases.fold(0, u64::saturating_add);
    releases.saturating_add(of(&specification.names)).saturating_add(of(&excluded(spec)))
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
    env: InputEnv<'_>,
    dataset: &DatasetRecord,
    earlier: &EarlierDisclosures,
    specification: &Specification,
) -> Result<Vec<EarlierReleaseRef>, InputError> {
    let MethodSpec::Sequential(spec) = &specification.method else { return Ok(Vec::new()) };
    let (mut found, mut faults) = (Vec::new(), Vec::new());
    for (at, id) in spec.against.iter().enumerate() {
        // an id of another content or series gets the same answer as an unknown one
        let same = earlier.disclosures.iter().any(|(release, _)| release == id);
        let release = env.store.release(&dataset.tenant, *id).await?;
        match release {
            Some(release) if same && release.status == ReleaseStatus::Published => {
                found.push(EarlierReleaseRef::Published(Box::new(release)))
            }
            // an external table, or a release imported with the ledger of another store
            None if same => match ExternalRows::find((env.store, env.vault), &dataset.tenant, *id, earlier).await {
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
    (handle, store): (&Handle, &Arc<dyn Store>),
    env: InputEnv<'_>,
    (dataset, profiles): (&DatasetRecord, &[ColumnProfile]),
    earlier: &EarlierDisclosures,
    specification: &Specification,
    control: &Control,
) -> Result<EarlierReleases, EngineError> {
    let MethodSpec::Sequential(spec) = &specification.method else { return Ok(EarlierReleases::default()) };
    let named = handle.block_on(find_earlier_releases(env, dataset, earlier, specification))?;
    let (mut releases_read, mut faults) = (EarlierReleases::default(), Vec::new());
    let mut names: Vec<Vec<String>> = Vec::new();
    let mut tables: Vec<(usize, Box<ExternalRows>)> = Vec::new();
    for (at, (of, id)) in named.into_iter().zip(&spec.against).enumerate() {
        control.check()?;
        let dataset_names = profiles.iter().map(|profile| &profile.name);
        let known: Vec<&String> = dataset_names.chain(names.iter().flatten()).collect();
        let name = |name: &str| name_here(&earlier.identities, name, &known).to_owned();
        let (attributes, unproven) = kept_of(earlier, *id).map_err(corrupt)?;
        // the rows of an external table are found by its own names
        let attributes: Vec<String> = match of {
            EarlierReleaseRef::Published(_) => attributes.iter().map(|attribute| name(attribute)).collect(),
            EarlierReleaseRef::External(_) => attributes.to_vec(),
        };
        let others = specification.names.iter().chain(names.iter().flatten());
        if let Some((name, other)) = renamed(&earlier.identities, &attributes, others) {
            let detail = format!(
                "releases are joined by attributes that are the same, and {name} of the release counts as {other}, which is an attribute of it or of \
                 another"
            );
            faults.push(Fault::new(pointer(at), Kind::BadColumns, detail));
            continue;
        }
        match of {
            EarlierReleaseRef::External(table) => tables.push((at, table)),
            EarlierReleaseRef::Published(release) => match read((handle, store), &release, &attributes) {
                Ok(mut release) => {
                    release.sequence = release.sequence.map(|of| of.named_by(&name)).filter(|_| !unproven);
                    releases_read.releases.push(release);
                }
                Err(EngineError::Refused(problem)) if problem.kind == Kind::BadColumns => {
                    faults.push(Fault::new(pointer(at), Kind::BadColumns, problem.detail));
                }
                Err(other) => return Err(other),
            },
        }
        names.push(attributes);
    }
    let excluded = excluded(spec);
    // labels are placed by the taxonomies of all that was published here
    let join = join_context(specification, profiles, &names).with(&releases_read.releases);
    let joined = [specification.names.as_slice(), &excluded].concat();
    for (at, table) in tables {
        let external = table.read(handle, env, control).and_then(|rows| {
            let known = (joined.as_slice(), &earlier.identities);
            let rows_of = table.rows_of(handle, env, (dataset, profiles), known, control)?;
            Ok(ExternalTableRows { rows_of, ..rows })
        });
        match external {
            Ok(external) => match engine::external_release(external, &join, &pointer(at)) {
                Ok(release) if specification.unit.rows() > 1 && !release.has_rows_of(dataset.rows as usize) => {
                    let detail = "requirements speak of persons with several rows, and it is not known how many a person has in the \
                                  external table: its rows must be those of the dataset, by record keys";
                    faults.push(Fault::new(pointer(at), Kind::GuaranteeUnsupported, detail));
                }
                Ok(release) => releases_read.releases.push(release),
                Err(more) => faults.extend(more),
            },
            Err(why) => faults.push(external_fault(why, at)?),
        }
    }
    if !faults.is_empty() {
        return Err(EngineError::Refused(Problem::of_faults(faults)));
    }
    let places = excluded.iter().map(|name| profiles.iter().position(|profile| profile.name == *name));
    if let Some(used) = places.collect::<Option<Vec<usize>>>().filter(|used| !used.is_empty()) {
        let table = load(handle, env, dataset, (&excluded, &used), control)?;
        releases_read.excluded = Some(Arc::new(table));
    }
    Ok(releases_read)
}

/// What the new release says of its attributes, and which of them, or of those of earlier ones, several have.
fn join_context(specification: &Specification, profiles: &[ColumnProfile], earlier: &[Vec<String>]) -> JoinContext {
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

/// The columns that exclusions name.
pub(super) fn excluded(spec: &SequentialSpec) -> Vec<String> {
    let sides = spec.exclusions.iter().flat_map(|exclusion| [&exclusion.left, &exclusion.right]);
    let mut names: Vec<String> = sides.flat_map(|side| side.within.iter().map(|(name, _)| name.clone())).collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn read(
    (handle, store): (&Handle, &Arc<dyn Store>),
    release: &ReleaseRecord,
    names: &[String],
) -> Result<EarlierRelease, EngineError> {
    let manifest: Manifest =
        serde_json::from_value(release.manifest.clone()).map_err(|error| corrupt(StoreError::corrupt(error)))?;
    let storage =
        PartStorage::new(handle.clone(), Arc::clone(store), release.tenant.clone(), release.job, release.attempt);
    let part = engine::tuples_of(&manifest).map_err(EngineError::Refused)?;
    let file =
        engine::read_published(part, storage.reader(&part.file)?, &mut |_| Ok(())).map_err(EngineError::Refused)?;
    engine::earlier_of(&manifest, names, file)
}

/// The names that the attributes of a release's first table had in its dataset, and whether it was published without proof.
fn kept_of(earlier: &EarlierDisclosures, release: Uuid) -> Result<(&[String], bool), StoreError> {
    let found = earlier.disclosures.iter().find(|(of, _)| *of == release);
    let (_, disclosure) = found.ok_or_else(|| StoreError::corrupt("a release has no disclosure"))?;
    Ok((&disclosure.attributes, disclosure.unproven.is_some()))
}
