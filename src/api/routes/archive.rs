//! Download of a release as a zip file.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::Response;
use sha2::{Digest, Sha256};

use super::part_query::{etag_matches, not_modified, set_etag};
use super::{part_stream, served};
use crate::api::http::access::Authenticated;
use crate::api::http::app::App;
use crate::api::http::extract::IdPath;
use crate::api::http::limits::hold_until_sent;
use crate::ports::StoreError;
use crate::problem::Problem;

/// Downloads a release as a zip file
///
/// The archive contains each part as CSV, `manifest.json`, `report.json`, `README.txt` and `datapackage.json` (Frictionless).
#[utoipa::path(get, path = "/v1/releases/{id}/archive", tag = "releases", 
    params(("id" = Uuid, Path), ("If-None-Match" = Option<String>, Header, description = "ETags of the client; an unchanged archive is answered 304.")),
    responses(
        (status = 200, headers(("ETag" = String)), content((Vec<u8> = "application/zip"))),
        (status = 304, description = "the archive has an ETag of If-None-Match")))]
pub(in crate::api) async fn get(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    IdPath(id): IdPath,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (release, manifest) = served::read(&app, &caller, id).await?;
    let mut hash = Sha256::new();
    hash.update(release.manifest.to_string());
    hash.update(release.report.to_string());
    let digest = hash.finalize();
    let digest = hex::encode(digest);
    // another version may pack the files into other bytes
    let etag = format!("\"{digest}-zip-{}\"", env!("CARGO_PKG_VERSION"));
    if etag_matches(&headers, &etag) {
        return Ok(not_modified(etag));
    }
    let report = serde_json::from_value(release.report.clone());
    let report = report.map_err(StoreError::corrupt)?;
    served::record_read(&app, &caller, &release).await?;
    let permit = app.bounds.downloads.try_acquire(&caller.tenant)?;
    let attachment = format!("attachment; filename=\"release-{}.zip\"", release.id);
    let mut response = Response::new(Body::from_stream(part_stream::archive(app, release, manifest, report).await?));
    let fields = [
        (header::CONTENT_TYPE, "application/zip"),
        (header::ETAG, etag.as_str()),
        (header::CONTENT_DISPOSITION, attachment.as_str()),
    ];
    set_etag(&mut response, fields);
    Ok(hold_until_sent(response, permit))
}
