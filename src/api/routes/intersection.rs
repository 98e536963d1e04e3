//! The attack `intersection`: what all nights of a population up to one leave possible of each person.

use std::io;
use std::sync::Arc;

use tokio::runtime::Handle;
use uuid::Uuid;

use super::attacks_on_original::check_internal_scope;
use super::served;
use super::stored_parts::{FileMemory, engine_problem};
use crate::api::http::app::App;
use crate::app::run_engine;
use crate::control::Control;
use crate::engine;
use crate::engine::{AttackReport, EngineError, Intersection, NightOriginal, ReleasedNight};
use crate::identity::Caller;
use crate::inputs::{NightTable, PartStorage};
use crate::ports::{ReleaseRecord, StoreError};
use crate::problem::{Kind, Problem};
use crate::publication::PersonLink;
use crate::report::Manifest;
use crate::spec::AttackRequest;

/// A night that is served, not read yet.
struct ServedNight {
    manifest: Manifest,
    parts: PartStorage,
    /// The table, if persons are linked by keys.
    table: Option<NightTable>,
}

/// Nights, the first first, and the memory that they take.
struct ServedNights {
    nights: Vec<ServedNight>,
    memory: FileMemory,
    /// Bytes of all manifests.
    manifests: u64,
}

impl ServedNights {
    /// Bytes of a manifest for each byte of its text, at most.
    const MANIFEST_FACTOR: u64 = 4;

    /// Takes memory for the manifest of one more night.
    fn hold(&mut self, release: &ReleaseRecord) -> Result<(), Problem> {
        self.manifests += Self::MANIFEST_FACTOR * release.manifest.to_string().len() as u64;
        self.memory.hold(self.manifests)
    }

    fn manifests(&self) -> Vec<&Manifest> {
        self.nights.iter().map(|night| &night.manifest).collect()
    }
}

/// Runs the attack on a night and all nights before it.
///
/// # Errors
/// `forbidden` without the scope for keys, `gone` without a table, or the problem of the attack.
pub(in crate::api) async fn attack(
    app: &App,
    caller: &Caller,
    id: Uuid,
    request: AttackRequest,
) -> Result<AttackReport, Problem> {
    let AttackRequest { options, rule, .. } = request;
    if options.persons == PersonLink::Keys {
        check_internal_scope(caller, "the keys of persons, unless \"options\": {\"persons\": \"cells\"} is asked for")?;
    }
    let nights = nights_up_to(app, caller, id, options.persons).await?;
    run_engine("the computation", move |control| intersect(nights, rule.as_deref(), control)).await
}

/// A night and those before it that are served, the first first. Each names the one before.
async fn nights_up_to(app: &App, caller: &Caller, id: Uuid, by: PersonLink) -> Result<ServedNights, Problem> {
    let (last, manifest) = served::read(app, caller, id).await?;
    engine::previous_night(&manifest)?;
    let memory = FileMemory::new(app.service.budget.clone());
    let mut nights = ServedNights { nights: Vec::new(), memory, manifests: 0 };
    nights.hold(&last)?;
    nights.nights.push(open(app, caller, &last, manifest.clone(), by).await?);
    let mut before = manifest;
    while let Some(earlier) = engine::previous_night(&before)?.and_then(|previous| previous.release) {
        // the first nights may have been published elsewhere
        let Some(release) = app.service.store.release(&caller.tenant, earlier).await? else { break };
        before = served::manifest(&release)?;
        if release.status.is_served() {
            nights.hold(&release)?;
            nights.nights.push(open(app, caller, &release, before.clone(), by).await?);
            Intersection::check_work(&nights.manifests())?;
        }
    }
    nights.nights.reverse();
    Ok(nights)
}

async fn open(
    app: &App,
    caller: &Caller,
    release: &ReleaseRecord,
    manifest: Manifest,
    by: PersonLink,
) -> Result<ServedNight, Problem> {
    served::record_read(app, caller, release).await?;
    let table = match by {
        PersonLink::Keys => Some(app.service.night_table(caller, release).await?),
        PersonLink::Cells => None,
    };
    let (store, tenant) = (Arc::clone(&app.service.store), release.tenant.clone());
    let parts = PartStorage::new(Handle::current(), store, tenant, release.job, release.attempt);
    Ok(ServedNight { manifest, parts, table })
}

/// Reads one night after the other, each dropped before the next one.
fn intersect(nights: ServedNights, rule: Option<&str>, control: &Control) -> Result<AttackReport, EngineError> {
    let ServedNights { nights, mut memory, manifests: held } = nights;
    let manifests: Vec<&Manifest> = nights.iter().map(|night| &night.manifest).collect();
    let none = || EngineError::Refused(StoreError::corrupt("no night is attacked").into());
    let last = manifests.last().ok_or_else(none)?;
    engine::rules_of(last, rule, &[]).map_err(engine_problem)?;
    let by = if nights.iter().all(|night| night.table.is_some()) { PersonLink::Keys } else { PersonLink::Cells };
    let mut intersection = Intersection::new(&manifests, by)?;
    for ServedNight { manifest, parts, table } in &nights {
        control.check()?;
        memory.hold(held + intersection.memory(manifest)).map_err(EngineError::Refused)?;
        let read = table.as_ref().map(|table| table.read(control)).transpose()?;
        let original =
            read.as_ref().map(|read| NightOriginal { names: &read.names, table: &read.table, persons: &read.persons });
        let added = intersection.add(&ReleasedNight { manifest, parts, original }, control);
        added.map_err(|error| if is_gone(manifest, parts) { gone() } else { error })?;
    }
    Ok(intersection.report().of_attack(last))
}

/// Whether a part is not there any more.
fn is_gone(manifest: &Manifest, parts: &PartStorage) -> bool {
    let mut all = manifest.tables.iter().flat_map(|table| &table.parts);
    all.any(|part| parts.reader(&part.csv()).is_err_and(|error| error.kind() == io::ErrorKind::NotFound))
}

fn gone() -> EngineError {
    EngineError::Refused(Problem::new(Kind::Gone, "a night was rejected or withdrawn meanwhile"))
}
