use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::credentials::AuthMethods;
use super::gateway::Gateway;
use super::limits::{ConcurrencyLimit, ConcurrencyLimits};
use super::renderings::RenderingCache;
use crate::app::AppService;
use crate::microdata::formats::IngestLimits;
use crate::objects::{ObjectFolder, ObjectStores, SourceList};
use crate::ports::{Store, StoreError};
use crate::problem::{Kind, Problem};

/// The longest wait for the store in a readiness check.
const READINESS_TIMEOUT: Duration = Duration::from_secs(3);

/// Conditions of `/readyz`.
#[derive(Clone)]
pub struct Readiness {
    /// Must answer with the schema that this process opened.
    pub store: Arc<dyn Store>,
    /// Cancelled when the process starts to stop.
    pub draining: CancellationToken,
}

impl Readiness {
    /// Checks whether the service can answer requests.
    ///
    /// # Errors
    /// `unavailable` with the reason.
    pub async fn check(&self) -> Result<(), Problem> {
        let unavailable = |detail: &str| Problem::new(Kind::Unavailable, detail).retry_after(5);
        if self.draining.is_cancelled() {
            return Err(unavailable("the process is stopping"));
        }
        match tokio::time::timeout(READINESS_TIMEOUT, self.store.check()).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(StoreError::Schema(found))) => {
                tracing::warn!(found, "store schema changed since the start");
                Err(unavailable("the schema of the store has another version"))
            }
            Ok(Err(error)) => {
                tracing::warn!(error = %error, "store does not answer");
                Err(unavailable("the store does not answer"))
            }
            Err(_elapsed) => Err(unavailable("the store does not answer in time")),
        }
    }
}

/// What the service may read on request, and by what.
#[derive(Clone)]
pub struct TableSources {
    /// The sources that the operator lists.
    pub allowed: SourceList,
    /// Opens their stores.
    pub stores: ObjectStores,
}

/// The objects of parts, and how long links to them are valid.
#[derive(Clone)]
pub struct LinkSource {
    /// The prefix of the objects.
    pub folder: ObjectFolder,
    /// The time that a link is valid.
    pub lifetime: Duration,
}

/// State of all handlers.
#[derive(Clone)]
pub struct App {
    /// The operations below HTTP.
    pub service: AppService,
    /// Limits of uploaded tables.
    pub limits: IngestLimits,
    /// The folder of unnamed temporary files, for formats with their index at the end.
    pub spool: Arc<Path>,
    /// Maximum size of an upload's body, in bytes.
    pub max_upload_bytes: u64,
    /// Limit of concurrent uploads.
    pub uploads: ConcurrencyLimit,
    /// The sources of uploads by reference, where there are any.
    pub sources: Option<TableSources>,
    /// What gives links to objects of parts, where the operator permits them.
    pub links: Option<LinkSource>,
    /// Limit of concurrent plans, queries, attacks and verifications.
    pub plans: ConcurrencyLimit,
    /// Limits of all requests.
    pub bounds: ConcurrencyLimits,
    /// Renderings of parts, for requests of ranges.
    pub renderings: RenderingCache,
    /// Accepted methods of authentication.
    pub accepts: AuthMethods,
    /// Conditions of `/readyz`.
    pub readiness: Readiness,
    /// The gateway in front of the service.
    pub gateway: Gateway,
}
