use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::credentials::AuthMethods;
use super::gateway::Gateway;
use super::limits::{ConcurrencyLimit, ConcurrencyLimits};
use crate::app::AppService;
use crate::microdata::formats::IngestLimits;
use crate::ports::{Store, StoreError};
use crate::problem::{Kind, Problem};

/// A store that takes longer cannot serve.
const READINESS_TIMEOUT: Duration = Duration::from_secs(3);

/// What it takes to serve.
#[derive(Clone)]
pub struct Readiness {
    /// Must answer, with the tables that this process knows.
    pub store: Arc<dyn Store>,
    /// Set as soon as the process was told to stop.
    pub draining: CancellationToken,
}

impl Readiness {
    /// Whether requests can be served.
    ///
    /// # Errors
    /// `unavailable`, with the reason.
    pub async fn check(&self) -> Result<(), Problem> {
        let unavailable = |detail: &str| Problem::new(Kind::Unavailable, detail).retry_after(5);
        if self.draining.is_cancelled() {
            return Err(unavailable("the process is stopping"));
        }
        match tokio::time::timeout(READINESS_TIMEOUT, self.store.check()).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(StoreError::Schema(said))) => {
                tracing::warn!(said, "the store has other tables than this process opened");
                Err(unavailable("the tables of the store are of another version"))
            }
            Ok(Err(error)) => {
                tracing::warn!(error = %error, "the store does not answer");
                Err(unavailable("the store does not answer"))
            }
            Err(_elapsed) => Err(unavailable("the store does not answer in time")),
        }
    }
}

/// What handlers share.
#[derive(Clone)]
pub struct App {
    /// Where callers are served.
    pub service: AppService,
    /// What uploads may hold.
    pub limits: IngestLimits,
    /// The folder for uploads that are read from their end; what is put there has no name.
    pub spool: Arc<Path>,
    /// The most bytes of an upload's body.
    pub max_upload_bytes: u64,
    /// Bounds uploads under way.
    pub uploads: ConcurrencyLimit,
    /// Bounds plans, and documents of queries, under way.
    pub plans: ConcurrencyLimit,
    /// Bounds requests of every kind.
    pub bounds: ConcurrencyLimits,
    /// What callers prove themselves with.
    pub accepts: AuthMethods,
    /// Whether requests can be served.
    pub readiness: Readiness,
    /// What stands before the service.
    pub gateway: Gateway,
}
