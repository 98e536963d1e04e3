//! Uploads by reference: the service reads the table from an object store, and takes it as it takes the body of an upload.

use std::sync::{Mutex, PoisonError};

use axum::Json;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use futures_util::TryStreamExt;
use futures_util::stream::try_unfold;
use serde::Deserialize;
use utoipa::ToSchema;

use super::datasets::Dataset;
use super::registration::register;
use super::upload::{
    self, AcceptedUpload, UploadEncoding, UploadHeaders, UploadQuery, UploadTask, created, csv_alone, give_up,
};
use crate::api::http::access::Authenticated;
use crate::api::http::app::{App, TableSources};
use crate::api::http::body::{BodyEnd, ReadDeadline, declared_digest, encoding, media_type_essence};
use crate::api::http::extract::{QueryParameters, RepeatableDocument};
use crate::microdata::formats::{Encoding, InputFormat};
use crate::objects::{ObjectAddress, ObjectError, ObjectFault, OpenedObject};
use crate::ports::{DatasetRecord, EngineTable};
use crate::problem::{Kind, Problem};

/// A table in an object store, or in another engine.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = TableReference)]
pub(in crate::api) struct ReferenceDocument {
    /// The address of the object: `s3://`, `gs://` or `az://` with a bucket and a key, or `https://` with a host and a path. It must be
    /// below an address that the operator lists, and has no user, query or fragment.
    #[schema(nullable = false, min_length = 1, max_length = 2048)]
    source: Option<String>,
    /// In place of `source`: the name of an engine that the operator sets up. The rows of the table stay there.
    #[schema(nullable = false, min_length = 1, max_length = 64)]
    engine: Option<String>,
    /// The table of the engine: one to three names with dots between them, or the path of a folder of Parquet files.
    #[schema(nullable = false, min_length = 1, max_length = 1024)]
    table: Option<String>,
    /// The media type of the table, as that of the body of `upload_dataset`; by default that of the ending of its name, and then that
    /// of the object.
    #[schema(nullable = false)]
    format: Option<String>,
    /// The compression of the object: `gzip`, `zstd` or `identity`; by default that of the ending `.gz` or `.zst`, and then that of the
    /// object.
    #[schema(nullable = false)]
    compression: Option<String>,
    /// The SHA-256 of the object as `sha-256=:BASE64:` (RFC 9530), which the service checks.
    #[schema(nullable = false)]
    digest: Option<String>,
}

/// Uploads a table by reference
///
/// The service reads the table from an object store, with the credentials of its own environment, and takes it as the body of
/// `upload_dataset`: formats, limits and the query are the same. The operator lists the addresses that may be read with `--sources`;
/// without a list every request is `source-refused`. An object that cannot be read is `source-unreadable`, and `reason` says why:
/// `not_found`, `access_denied`, `no_credentials`, `unconfigured`, `unreachable`, `redirected`, `changed`, `too_slow` or `failed`. A
/// redirect is not followed. An object that changes while it is read is refused. The audit log records the address.
///
/// With `engine` and `table` in place of `source`, the table is registered: the engine copies it, the service reads the copy once to
/// know columns and people again, and keeps no row. Jobs are then made by the engine. The operator sets up engines with `--engines` and
/// lists tables with `--engine-tables`. `reason` may also be `unsupported`: the table has a column that cannot be published from there.
#[utoipa::path(post, path = "/v1/datasets/by-reference", tag = "datasets",
    params(UploadQuery,
        ("Idempotency-Key" = Option<String>, Header, description = "Makes the request repeatable: 1 to 255 visible ASCII characters.")),
    request_body = ReferenceDocument,
    responses(
        (status = 201, body = Dataset, headers(("Location" = String)))))]
pub(in crate::api) async fn create(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    RawQuery(raw_query): RawQuery,
    query: Result<QueryParameters<UploadQuery>, Problem>,
    RepeatableDocument { document, key }: RepeatableDocument,
) -> Result<(StatusCode, [(HeaderName, String); 1], Json<Dataset>), Problem> {
    let malformed = || {
        let detail = "the body must be {\"source\": \"s3://…\"}, next to which format, compression and digest may be texts, or \
                      {\"engine\": \"…\", \"table\": \"…\"} alone";
        Problem::new(Kind::MalformedBody, detail)
    };
    let reference: ReferenceDocument = serde_json::from_value(document).map_err(|_| malformed())?;
    let QueryParameters(query) = query?;
    let mut request = upload::requested(query)?;
    let reference = match reference {
        ReferenceDocument {
            source: None,
            engine: Some(engine),
            table: Some(table),
            format: None,
            compression: None,
            digest: None,
        } => {
            request.place = Some(EngineTable { engine, table });
            let registered = register(&app, caller, UploadHeaders { request, packed: None, key }, raw_query).await;
            return created(&app, registered?).await;
        }
        ReferenceDocument { source: Some(_), engine: None, table: None, .. } => reference,
        _ => return Err(malformed()),
    };
    let read = ReadableSource::check(&app, &caller.tenant, &reference)?;
    request.source = Some(read.address.to_string());
    let repeated = [raw_query.unwrap_or_default(), read.address.to_string()].join("\n");
    let announced = UploadHeaders { request, packed: None, key };
    let (admitted, _) = upload::admit(&app, caller, announced, repeated).await?;
    let mut waiting = Some(admitted);
    let stored = store(&app, &read, &mut waiting).await;
    give_up(waiting).await;
    created(&app, stored?).await
}

/// A source that the operator allows, and what the caller says of it.
struct ReadableSource<'a> {
    sources: &'a TableSources,
    address: ObjectAddress,
    format: Option<InputFormat>,
    compression: Option<Encoding>,
    digest: Option<Vec<u8>>,
}

impl<'a> ReadableSource<'a> {
    /// # Errors
    /// `source-refused`, `malformed-body` or `unsupported-media-type`
    fn check(app: &'a App, tenant: &str, reference: &ReferenceDocument) -> Result<Self, Problem> {
        let refused = |detail: &str| Problem::new(Kind::SourceRefused, detail);
        let sources = app.sources.as_ref().ok_or_else(|| {
            refused("this service reads no tables by reference: its operator lists what it may read with --sources")
        })?;
        let no_address = "source must be an address such as s3://bucket/key";
        let source = reference.source.as_deref().unwrap_or_default();
        let address = ObjectAddress::parse(source).ok_or_else(|| refused(no_address))?;
        let address = address.map_err(|error| refused(&error.to_string()))?;
        if !sources.allowed.allows(&address, tenant) {
            return Err(refused("the operator does not list this source; what it lists, it sets with --sources"));
        }
        let mut headers = HeaderMap::new();
        let members = [
            (header::CONTENT_ENCODING, &reference.compression),
            (HeaderName::from_static("content-digest"), &reference.digest),
        ];
        for (name, text) in members.into_iter().filter_map(|(name, text)| Some((name, text.as_ref()?))) {
            let wrong = |_| Problem::new(Kind::MalformedBody, "compression and digest have visible ASCII characters");
            headers.insert(name, HeaderValue::from_str(text).map_err(wrong)?);
        }
        let format = reference.format.as_deref().map(|text| {
            let essence = media_type_essence(HeaderValue::from_str(text).ok().as_ref()).unwrap_or_default();
            InputFormat::of_media_type(&essence).ok_or_else(unknown_format)
        });
        Ok(Self {
            sources,
            address,
            format: format.transpose()?,
            compression: encoding(&headers)?,
            digest: declared_digest(&headers)?,
        })
    }

    /// Format, compression and digest: what the caller says, then what the name says, then what the store says.
    fn packed(&self, object: &OpenedObject) -> Result<UploadEncoding, Problem> {
        let name = self.address.file_name().unwrap_or_default();
        let (name, of_name) = match name.rsplit_once('.') {
            Some((name, "gz")) => (name, Some(Encoding::Gzip)),
            Some((name, "zst")) => (name, Some(Encoding::Zstd)),
            _ => (name, None),
        };
        let of_store = match object.content_encoding.as_deref() {
            Some("gzip") => Some(Encoding::Gzip),
            Some("zstd") => Some(Encoding::Zstd),
            _ => None,
        };
        let kept = || {
            let kept = object.content_type.as_deref()?;
            InputFormat::of_media_type(kept.split(';').next().unwrap_or_default().trim())
        };
        let format = self.format.or_else(|| InputFormat::of_file_name(name)).or_else(kept);
        Ok(UploadEncoding {
            format: format.ok_or_else(unknown_format)?,
            encoding: self.compression.or(of_name).or(of_store),
            digest: self.digest.clone(),
        })
    }
}

fn unknown_format() -> Problem {
    let types = InputFormat::accepted_media_types().join(", ");
    Problem::new(Kind::UnsupportedMediaType, format!("name the format of the source with format: {types}"))
}

/// Reads the source into the upload; takes the upload once nothing is wrong with the source.
async fn store(
    app: &App,
    source: &ReadableSource<'_>,
    waiting: &mut Option<AcceptedUpload>,
) -> Result<DatasetRecord, Problem> {
    let place = source.sources.stores.open(&source.address).await.map_err(|error| unreadable(&error))?;
    let object = place.read(app.max_upload_bytes).await.map_err(|error| unreadable(&error))?;
    let packed = source.packed(&object)?;
    if let Some(admitted) = waiting.as_ref() {
        csv_alone(&admitted.request, packed.format)?;
    }
    let admitted = waiting.take().ok_or_else(|| Problem::new(Kind::Internal, "the upload was taken before"))?;
    let mut pace = ReadDeadline::new(&app.bounds);
    let fault = Mutex::new(None);
    let bytes = try_unfold(object, async |mut object| Ok(object.next().await?.map(|bytes| (bytes, object))));
    let bytes = bytes.inspect_err(|error: &ObjectError| {
        *fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(unreadable(error));
    });
    let task = UploadTask::begin(app, admitted, packed);
    let fed = task.sender.feed(Box::pin(bytes), &mut pace).await;
    let fault = fault.into_inner().unwrap_or_else(PoisonError::into_inner);
    task.end(fault.map_or(fed, BodyEnd::Late)).await
}

fn unreadable(error: &ObjectError) -> Problem {
    let problem = match error.fault {
        ObjectFault::TooLarge(limit) => Problem::new(Kind::TooLarge, error.to_string()).with("limit", limit),
        ObjectFault::NoCredentials | ObjectFault::Unconfigured => {
            let detail = format!("the operator has not configured the store of this source: {error}");
            Problem::new(Kind::SourceUnreadable, detail)
        }
        _ => Problem::new(Kind::SourceUnreadable, error.to_string()),
    };
    problem.with("reason", error.fault.as_str())
}
