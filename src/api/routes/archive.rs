//! Download of a release as a zip file.

use axum::extract::State;
use axum::response::Response;
use futures_util::{FutureExt, StreamExt};
use sha2::{Digest, Sha256};

use super::download::{Download, DownloadRequest};
use super::part_query::{etag_matches, not_modified};
use super::{part_stream, served};
use crate::api::http::access::Authenticated;
use crate::api::http::app::App;
use crate::api::http::extract::IdPath;
use crate::ports::StoreError;
use crate::problem::Problem;
use crate::report::PublicReport;

/// Downloads a release as a zip file
///
/// The archive contains each part as CSV, `manifest.json`, `report.json`, `README.txt` and `datapackage.json` (Frictionless).
#[utoipa::path(get, path = "/v1/releases/{id}/archive", tag = "releases", 
    params(("id" = Uuid, Path), ("If-None-Match" = Option<String>, Header, description = "ETags of the client; an unchanged archive is answered 304."),
        ("Range" = Option<String>, Header, description = "One range of bytes."),
        ("If-Range" = Option<String>, Header, description = "The ETag of the archive that the range belongs to; another archive is answered whole.")),
    responses(
        (status = 200, headers(("ETag" = String), ("Accept-Ranges" = String)), content((Vec<u8> = "application/zip"))),
        (status = 206, headers(("ETag" = String), ("Content-Range" = String)), content((Vec<u8> = "application/zip"))),
        (status = 304, description = "the archive has an ETag of If-None-Match")))]
pub(in crate::api) async fn get(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    IdPath(id): IdPath,
    request: DownloadRequest,
) -> Result<Response, Problem> {
    let (release, manifest) = served::read(&app, &caller, id).await?;
    let mut hash = Sha256::new();
    hash.update(release.manifest.to_string());
    hash.update(release.report.to_string());
    let digest = hash.finalize();
    let digest = hex::encode(digest);
    // another version may pack the files into other bytes
    let etag = format!("\"{digest}-zip-{}\"", env!("CARGO_PKG_VERSION"));
    if etag_matches(&request.headers, &etag) {
        return Ok(not_modified(etag));
    }
    let report: PublicReport = serde_json::from_value(release.report.clone()).map_err(StoreError::corrupt)?;
    served::record_read(&app, &caller, &release).await?;
    let source = || {
        let archive = part_stream::archive(app.clone(), release.clone(), manifest.clone(), report.clone());
        async { Ok(archive.await?.boxed()) }.boxed()
    };
    let attachment = format!("attachment; filename=\"release-{}.zip\"", release.id);
    let (file, media_type, attachment) = ("archive", "application/zip", attachment.as_str());
    Download { app: &app, release: &release, file, etag: &etag, media_type, attachment }.answer(&request, source).await
}
