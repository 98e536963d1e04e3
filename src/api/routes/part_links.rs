//! Links to the objects of a part, where parts are in an object store.

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;

use super::part_query::cursor_problem;
use super::served;
use crate::api::http::access::Authenticated;
use crate::api::http::app::{App, LinkSource};
use crate::api::http::extract::{PartPath, QueryParameters, no_such_part};
use crate::api::http::page::{self, PageQuery};
use crate::ports::{PartObjectRecord, StoreError};
use crate::problem::{Kind, Problem};

/// A page of links to the objects of a part.
#[derive(Serialize, ToSchema)]
pub(in crate::api) struct PartLinks {
    /// The objects, in the order of their rows.
    items: Vec<PartLink>,
    /// When the links end.
    expires_at: DateTime<Utc>,
    /// The `cursor` of the next page; null on the last page.
    next: Option<String>,
}

/// A link to an object.
#[derive(Serialize, ToSchema)]
pub(in crate::api) struct PartLink {
    /// The address of the object, with a signature that permits to read it.
    url: String,
    /// How many rows it holds.
    rows: u32,
    /// How many bytes it has.
    bytes: u64,
    /// The SHA-256 of its bytes, as 64 hexadecimal digits.
    sha256: String,
}

/// Lists links to the objects of a part
///
/// Where the operator keeps parts in an object store, a part can be read from there without the service. Each object has some rows of
/// the part as CSV, compressed with Zstandard; the first one begins with the header. The objects one after the other are one file that
/// `zstd -d` reads, and its content is that of `download_part` as CSV. A link needs no key: it reads its object until it expires or the
/// release is withdrawn. The service does not see what a link reads: compare `sha256`. The answer is `not-found` where the operator permits no links (`--part-link-seconds`), and for a part that is
/// not in an object store.
#[utoipa::path(get, path = "/v1/releases/{id}/tables/{table}/parts/{part}/links", tag = "releases",
    params(("id" = Uuid, Path), ("table" = String, Path), ("part" = String, Path), PageQuery),
    responses((status = 200, body = PartLinks)))]
pub(in crate::api) async fn list(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    PartPath { release, table, part }: PartPath,
    QueryParameters(query): QueryParameters<PageQuery>,
) -> Result<Json<PartLinks>, Problem> {
    let limit = page::limit(query.limit)?;
    let from: u32 = query.cursor.as_deref().map_or(Ok(0), str::parse).map_err(|_| cursor_problem())?;
    let (release, manifest) = served::read(&app, &caller, release).await?;
    let table = manifest.tables.iter().find(|candidate| candidate.name == table).ok_or_else(no_such_part)?;
    let part = table.parts.iter().find(|candidate| candidate.name == part).ok_or_else(no_such_part)?;
    let Some(source) = &app.links else {
        return Err(Problem::new(Kind::NotFound, "this service gives no links to objects; download the part"));
    };
    let store = &app.service.store;
    let mut objects = store.part_objects(&caller.tenant, release.job, release.attempt, &part.csv(), from).await?;
    if objects.is_empty() {
        served::still_served(&app, &release).await?;
        return Err(if from == 0 {
            Problem::new(Kind::NotFound, "the part is not in an object store; download it")
        } else {
            cursor_problem()
        });
    }
    let next = objects.get(limit as usize).map(|object| object.number.to_string());
    objects.truncate(limit as usize);
    served::record_read(&app, &caller, &release).await?;
    let expires_at = app.service.clock.now() + source.lifetime;
    let mut items = Vec::new();
    for object in objects {
        items.push(signed(source, object).await?);
    }
    Ok(Json(PartLinks { items, expires_at, next }))
}

async fn signed(source: &LinkSource, object: PartObjectRecord) -> Result<PartLink, Problem> {
    let PartObjectRecord { rows, key, sha256, bytes, .. } = object;
    let url = source.folder.sign(&key, source.lifetime).await;
    let url = url.map_err(|error| StoreError::Unavailable(Box::new(error)))?;
    Ok(PartLink { url, rows, bytes, sha256: hex::encode(sha256) })
}
