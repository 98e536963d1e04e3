use uuid::Uuid;

use crate::api::http::app::App;
use crate::identity::{Caller, Scope};
use crate::ports::{ReleaseRecord, StoreError};
use crate::problem::{Kind, Problem};
use crate::publication::ReleaseStatus;
use crate::report::Manifest;

/// A release that a caller may read, with its manifest. Held releases require the scope `releases:approve`.
pub(in crate::api) async fn read(app: &App, caller: &Caller, id: Uuid) -> Result<(ReleaseRecord, Manifest), Problem> {
    let release = app.service.store.release(&caller.tenant, id).await?;
    let may_read =
        |release: &ReleaseRecord| release.status != ReleaseStatus::Held || caller.has_scope(Scope::ReleasesApprove);
    // a held release is refused as an absent one is
    let Some(release) = release.filter(may_read) else { return Err(app.service.no_such_release(caller, id).await) };
    if !release.status.is_served() {
        return Err(gone());
    }
    let manifest = manifest(&release)?;
    Ok((release, manifest))
}

/// Records that rows of a release are read, before the first byte: a later rejection keeps its disclosures.
///
/// # Errors
/// `gone` if the release was rejected or withdrawn meanwhile, or the store's problem.
pub(in crate::api) async fn record_read(app: &App, caller: &Caller, release: &ReleaseRecord) -> Result<(), Problem> {
    if release.status != ReleaseStatus::Held {
        return Ok(());
    }
    if app.service.read_held(caller, release.id).await? { Ok(()) } else { Err(gone()) }
}

/// Converts a missing part into a problem.
///
/// # Errors
/// `gone` if the release was rejected or withdrawn meanwhile, or the store's problem.
pub(in crate::api) async fn still_served(app: &App, release: &ReleaseRecord) -> Result<(), Problem> {
    let now = app.service.store.release(&release.tenant, release.id).await?;
    if now.is_some_and(|now| now.status.is_served()) { Ok(()) } else { Err(gone()) }
}

fn gone() -> Problem {
    Problem::new(Kind::Gone, "the release was rejected or withdrawn")
}

/// The manifest with the current status of the release.
pub(in crate::api) fn manifest(release: &ReleaseRecord) -> Result<Manifest, Problem> {
    let manifest: Result<Manifest, _> = serde_json::from_value(release.manifest.clone());
    let mut manifest = manifest.map_err(StoreError::corrupt)?;
    manifest.status = release.status;
    Ok(manifest)
}
