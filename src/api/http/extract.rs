//! Extractors with problems as rejections.

use axum::body::{Body, HttpBody};
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use serde::de::DeserializeOwned;
use serde_json::Value;
use uuid::Uuid;

use super::app::App;
use super::body::{ReadDeadline, drain};
use super::limits::ConcurrencyLimits;
use crate::problem::{Kind, Problem};
use crate::spec::parse_json;

/// An id in the path; a malformed one is `not-found`.
pub(in crate::api) struct IdPath(pub(in crate::api) Uuid);

impl<S: Send + Sync> FromRequestParts<S> for IdPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let missing = || Problem::new(Kind::NotFound, "no resource has this id");
        let Path(id) = Path::<String>::from_request_parts(parts, state).await.map_err(|_| missing())?;
        parse(&id).map(Self).ok_or_else(missing)
    }
}

/// Accepts only the hyphenated spelling of an id.
fn parse(id: &str) -> Option<Uuid> {
    Uuid::try_parse(id).ok().filter(|_| id.len() == 36)
}

/// An unchecked name in the path; an undecodable one is `not-found`.
pub(in crate::api) struct NamePath(pub(in crate::api) String);

impl<S: Send + Sync> FromRequestParts<S> for NamePath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let name = Path::<String>::from_request_parts(parts, state).await;
        name.map(|Path(name)| Self(name)).map_err(|_| Problem::new(Kind::NotFound, "no resource has this name"))
    }
}

/// The path of a column of a dataset; an undecodable one is `not-found`.
pub(in crate::api) struct ColumnPath {
    pub(in crate::api) dataset: Uuid,
    pub(in crate::api) name: String,
}

impl<S: Send + Sync> FromRequestParts<S> for ColumnPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let missing = || Problem::new(Kind::NotFound, "no resource has this id");
        let path = Path::<(String, String)>::from_request_parts(parts, state).await;
        let Path((id, name)) = path.map_err(|_| missing())?;
        Ok(Self { dataset: parse(&id).ok_or_else(missing)?, name })
    }
}

/// The path of a part; an undecodable one is `not-found`.
pub(in crate::api) struct PartPath {
    pub(in crate::api) release: Uuid,
    pub(in crate::api) table: String,
    pub(in crate::api) part: String,
}

impl<S: Send + Sync> FromRequestParts<S> for PartPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = Path::<(String, String, String)>::from_request_parts(parts, state).await;
        let Path((id, table, part)) = path.map_err(|_| no_such_part())?;
        Ok(Self { release: parse(&id).ok_or_else(no_such_part)?, table, part })
    }
}

pub(in crate::api) fn no_such_part() -> Problem {
    Problem::new(Kind::NotFound, "the part does not exist")
}

/// Query parameters; rejects unknown ones.
pub(in crate::api) struct QueryParameters<T>(pub(in crate::api) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for QueryParameters<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        // Postgres cannot store this character
        if parts.uri.query().is_some_and(|query| query.contains("%00")) {
            return Err(Problem::new(Kind::MalformedRequest, "the query contains the character U+0000"));
        }
        match axum::extract::Query::<T>::from_request_parts(parts, state).await {
            Ok(axum::extract::Query(query)) => Ok(Self(query)),
            Err(rejection) => {
                let cause = std::error::Error::source(&rejection).map(ToString::to_string).unwrap_or_default();
                Err(Problem::new(Kind::MalformedRequest, format!("the query is malformed: {cause}")))
            }
        }
    }
}

/// A JSON document of any shape.
pub(in crate::api) struct JsonDocument(pub(in crate::api) Value);

impl FromRequest<App> for JsonDocument {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        if !is_json(request.headers()) {
            return Err(Problem::new(Kind::UnsupportedMediaType, "send application/json"));
        }
        let bytes = document_bytes(request.into_body(), &app.bounds).await?;
        let document = parse_json(&bytes)?;
        if document.is_object() {
            Ok(Self(document))
        } else {
            Err(Problem::new(Kind::MalformedBody, "the body must be one JSON object"))
        }
    }
}

/// A JSON document of any shape; an empty body is an empty document.
pub(in crate::api) struct OptionalDocument(pub(in crate::api) Value);

impl FromRequest<App> for OptionalDocument {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        if request.body().is_end_stream() {
            return Ok(Self(Value::Object(serde_json::Map::new())));
        }
        JsonDocument::from_request(request, app).await.map(|JsonDocument(document)| Self(document))
    }
}

/// A JSON document of any shape that may be sent again under a key.
pub(in crate::api) struct RepeatableDocument {
    pub(in crate::api) document: Value,
    pub(in crate::api) key: Option<String>,
}

impl FromRequest<App> for RepeatableDocument {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let key = idempotency_key(request.headers());
        let JsonDocument(document) = JsonDocument::from_request(request, app).await?;
        Ok(Self { document, key: key? })
    }
}

/// A JSON document, or the bytes of a CSV file.
pub(in crate::api) enum DocumentOrCsv {
    Document(Value),
    Csv(Vec<u8>),
}

impl FromRequest<App> for DocumentOrCsv {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        match content_type_essence(request.headers()).as_deref() {
            Some("text/csv") => document_bytes(request.into_body(), &app.bounds).await.map(Self::Csv),
            _ if !is_json(request.headers()) => {
                Err(Problem::new(Kind::UnsupportedMediaType, "send application/json or text/csv"))
            }
            _ => JsonDocument::from_request(request, app).await.map(|JsonDocument(document)| Self::Document(document)),
        }
    }
}

async fn document_bytes(body: Body, bounds: &ConcurrencyLimits) -> Result<Vec<u8>, Problem> {
    let mut bytes = Vec::new();
    let mut body = body.into_data_stream();
    let (mut pace, limit) = (ReadDeadline::new(bounds), bounds.max_document_bytes);
    while let Some(piece) = pace.next(&mut body).await? {
        let piece = piece.map_err(|_| Problem::new(Kind::MalformedRequest, "the body ended before it was complete"))?;
        let found = bytes.len() + piece.len();
        if found > limit {
            drain(body).await;
            let detail = format!("a document has at most {limit} bytes");
            return Err(Problem::new(Kind::TooLarge, detail).with("limit", limit).with("found", found));
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

/// The idempotency key of a request.
///
/// # Errors
/// `malformed-request` unless it has 1 to 255 visible ASCII characters.
pub(in crate::api) fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let mut values = headers.get_all("idempotency-key").iter();
    let Some(key) = values.next() else { return Ok(None) };
    let visible = key.to_str().ok().filter(|key| key.bytes().all(|byte| byte.is_ascii_graphic()));
    match visible {
        Some(key) if (1..=255).contains(&key.len()) && values.next().is_none() => Ok(Some(key.to_owned())),
        _ => Err(Problem::new(
            Kind::MalformedRequest,
            "Idempotency-Key must be one header of 1 to 255 visible ASCII characters",
        )),
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    content_type_essence(headers).is_none_or(|essence| essence == "application/json" || essence.ends_with("+json"))
}

/// The media type of a body without its parameters, if declared.
fn content_type_essence(headers: &HeaderMap) -> Option<String> {
    let declared = headers.get(header::CONTENT_TYPE)?.to_str().unwrap_or_default();
    Some(declared.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
}
