//! The earlier releases that a sequential one is made beside: found, and read from their parts.

use std::sync::Arc;

use tokio::runtime::Handle;
use uuid::Uuid;

use super::load::{LoadError, Sources, load};
use super::{DatasetRecord, PartShelf, ReleaseRecord, Store, StoreError, problem_of};
use crate::control::Control;
use crate::engine::{self, Stopped};
use crate::ledger::{Earlier, Identities};
use crate::microdata::ColumnProfile;
use crate::problem::{Fault, Kind, Problem};
use crate::publication::Beside;
use crate::report::Manifest;
use crate::spec::{MethodSpec, SequentialSpec, Specification};

/// The earlier releases that a specification names, without their rows, in its order.
///
/// # Errors
/// Every one that is not published of the same series and content, or the store's problem.
pub(super) async fn named(
    store: &dyn Store,
    dataset: &DatasetRecord,
    earlier: &Earlier,
    specification: &Specification,
) -> Result<Vec<ReleaseRecord>, Problem> {
    let MethodSpec::Sequential(spec) = &specification.method else { return Ok(Vec::new()) };
    let (mut found, mut faults) = (Vec::new(), Vec::new());
    for (at, id) in spec.against.iter().enumerate() {
        // what is of another content or series is not told from what is not there
        let same = earlier.disclosures.iter().any(|(release, _)| release == id);
        let release = store.release(&dataset.tenant, *id).await.map_err(|error| problem_of(&error))?;
        match release {
            Some(release) if same && release.status == "published" => found.push(release),
            // entered, or carried here with the ledger of another store
            None if same => {
                let detail = "what the ledger has under this id was not published here: nobody can read its rows, by which the join is \
                              checked. Publish them here, as plain tuples, and name that release";
                faults.push(Fault::new(format!("/method/against/{at}"), Kind::BadColumns, detail));
            }
            _ => {
                let detail = "no release of this id is published of the same series and content";
                faults.push(Fault::new(format!("/method/against/{at}"), Kind::UnknownRelease, detail));
            }
        }
    }
    if faults.is_empty() { Ok(found) } else { Err(Problem::of_faults(faults)) }
}

/// What a specification is made beside, read on a blocking thread.
///
/// # Errors
/// [`Stopped`]
pub(super) fn beside(
    (handle, store): (&Handle, &Arc<dyn Store>),
    sources: Sources<'_>,
    (dataset, profiles): (&DatasetRecord, &[ColumnProfile]),
    earlier: &Earlier,
    specification: &Specification,
    control: &Control,
) -> Result<Beside, Stopped> {
    let MethodSpec::Sequential(spec) = &specification.method else { return Ok(Beside::default()) };
    let named = handle.block_on(named(store.as_ref(), dataset, earlier, specification)).map_err(Stopped::Refused)?;
    let (mut beside, mut faults) = (Beside::default(), Vec::new());
    let mut names: Vec<Vec<String>> = Vec::new();
    for (at, release) in named.into_iter().enumerate() {
        control.check()?;
        let attributes = names_of(earlier, release.id).map_err(corrupt)?;
        let others = specification.names.iter().chain(names.iter().flatten());
        if let Some((name, other)) = renamed(&earlier.identities, &attributes, others) {
            let detail = format!(
                "releases are joined by the names of their attributes, and {name} of the release counts as {other}, which stands in another"
            );
            faults.push(Fault::new(format!("/method/against/{at}"), Kind::BadColumns, detail));
            continue;
        }
        names.push(attributes);
        match read((handle, store), &release, earlier) {
            Ok(release) => beside.releases.push(release),
            Err(Stopped::Refused(problem)) if problem.kind == Kind::BadColumns => {
                faults.push(Fault::new(format!("/method/against/{at}"), Kind::BadColumns, problem.detail));
            }
            Err(other) => return Err(other),
        }
    }
    if !faults.is_empty() {
        return Err(Stopped::Refused(Problem::of_faults(faults)));
    }
    let excluded = excluded(spec);
    let places = excluded.iter().map(|name| profiles.iter().position(|profile| profile.name == *name));
    if let Some(used) = places.collect::<Option<Vec<usize>>>().filter(|used| !used.is_empty()) {
        let table = load(handle, sources, dataset, (&excluded, &used), control).map_err(|error| match error {
            LoadError::Cancelled => Stopped::Cancelled,
            other => Stopped::Refused(super::desk::unloaded(other)),
        })?;
        beside.excluded = Some(Arc::new(table));
    }
    Ok(beside)
}

/// An attribute that counts as another one of the join, which has another name.
fn renamed<'a>(
    identities: &Identities,
    attributes: &'a [String],
    others: impl Iterator<Item = &'a String> + Clone,
) -> Option<(&'a String, &'a String)> {
    attributes.iter().find_map(|name| {
        let roots = identities.roots(name);
        let mut others = others.clone();
        let found = others.find(|other| *other != name && !identities.roots(other).is_disjoint(&roots));
        found.map(|other| (name, other))
    })
}

fn corrupt(error: StoreError) -> Stopped {
    Stopped::Refused(problem_of(&error))
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
    earlier: &Earlier,
) -> Result<crate::publication::EarlierRelease, Stopped> {
    let manifest: Manifest =
        serde_json::from_value(release.manifest.clone()).map_err(|error| corrupt(StoreError::corrupt(error)))?;
    let names = names_of(earlier, release.id).map_err(corrupt)?;
    let shelf = PartShelf::new(handle.clone(), Arc::clone(store), release.tenant.clone(), release.job, release.attempt);
    let part = engine::tuples_of(&manifest).map_err(Stopped::Refused)?;
    let file = engine::read_published(part, shelf.reader(&part.file)?, &mut |_| Ok(())).map_err(Stopped::Refused)?;
    engine::earlier_of(&manifest, &names, file)
}

/// The dataset's names of the attributes of a release's first table.
fn names_of(earlier: &Earlier, release: Uuid) -> Result<Vec<String>, StoreError> {
    let found = earlier.disclosures.iter().find(|(of, _)| *of == release);
    let (_, disclosure) = found.ok_or_else(|| StoreError::corrupt("a release has no disclosure"))?;
    Ok(disclosure.attributes.clone())
}
