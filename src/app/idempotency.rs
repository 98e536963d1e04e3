//! Requests that can be repeated: the same key with the same content is the same request, however often it is sent.
//!
//! The id of what a request makes is drawn, and kept with the key, before it is made. A request is therefore done exactly when
//! something stands under that id, and no crash can come between making it and remembering that it was made. A request that
//! still runs renews a lease; one whose process is gone stops doing so, and the next repeat takes its place.

use std::time::Duration;

use serde_json::Value;
use tokio::task::AbortHandle;
use uuid::Uuid;

use super::service::AppService;
use crate::identity::Caller;
use crate::ports::{IdempotencyRecord, JobRecord, NewIdempotencyKey, StoreError};
use crate::problem::{Kind, Problem};

/// So long a key is remembered at least.
pub const IDEMPOTENCY_KEY_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

/// So long a request counts as running without a word.
const IDEMPOTENCY_LEASE: Duration = Duration::from_secs(10);

/// Where a key was sent to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum IdempotentRoute {
    Jobs,
    Datasets,
}

/// What a key opens.
pub enum IdempotencyOutcome {
    /// The request is the first under its key, or comes after one that failed.
    First(IdempotencyClaim),
    /// The request was done before.
    Repeat(IdempotencyRecord),
}

/// A key that a running request holds. Dropping it ends the renewals, so that the key lapses.
pub struct IdempotencyClaim {
    service: AppService,
    tenant: String,
    route: IdempotentRoute,
    resource: Uuid,
    renewals: AbortHandle,
}

impl Drop for IdempotencyClaim {
    fn drop(&mut self) {
        self.renewals.abort();
    }
}

impl IdempotencyClaim {
    /// The id to make the resource under.
    #[must_use]
    pub const fn resource(&self) -> Uuid {
        self.resource
    }

    /// Notes what was sent, which must come before the resource is made.
    ///
    /// # Errors
    /// `conflict` when another request has taken the key meanwhile, or the store's problem.
    pub async fn record_content(&self, content_hash: &[u8; 32]) -> Result<(), Problem> {
        let noted = self.service.store.note_content(self.resource, content_hash).await;
        if noted? {
            Ok(())
        } else {
            Err(Problem::new(Kind::Conflict, "another request with the same Idempotency-Key took its place")
                .retry_after(1))
        }
    }

    /// Lets go of the key of a request that failed, so that it can be tried again.
    pub async fn give_up(self) {
        // a store may fail to answer after it has done its work: what is there keeps its key
        let dropped = match self.service.is_there(&self.tenant, self.route, self.resource).await {
            Ok(true) => return,
            Ok(false) => self.service.store.drop_idempotency_key(self.resource).await,
            Err(error) => Err(error),
        };
        if let Err(error) = dropped {
            tracing::warn!(error = %error, "the key of a failed request stays until its lease ends");
        }
    }
}

impl AppService {
    /// Accepts a job, as [`AppService::submit`] does; under a key, once.
    ///
    /// # Errors
    /// Those of [`AppService::submit`]; `idempotency-conflict` when the key came with another document, `conflict` while the first
    /// request still runs.
    pub async fn submit_once(
        &self,
        caller: &Caller,
        document: Value,
        key: Option<String>,
    ) -> Result<JobRecord, Problem> {
        let Some(key) = key else { return self.submit(caller, &document, Uuid::now_v7()).await };
        let content_hash = self.request_hash(caller, &[document.to_string().as_bytes()]);
        match self.begin(caller, IdempotentRoute::Jobs, key, Some(content_hash)).await? {
            IdempotencyOutcome::Repeat(first) => {
                first.check_content(&content_hash)?;
                let job = self
                    .store
                    .job(&caller.tenant, first.resource)
                    .await
                    .and_then(|job| job.ok_or(StoreError::NotFound));
                job.map_err(Problem::from)
            }
            IdempotencyOutcome::First(claim) => {
                let (service, caller) = (self.clone(), caller.clone());
                // a task of its own: a caller that goes away does not leave the key behind
                let submitting = tokio::spawn(async move {
                    let submitted = service.submit(&caller, &document, claim.resource).await;
                    if submitted.is_err() {
                        claim.give_up().await;
                    }
                    submitted
                });
                submitting
                    .await
                    .map_err(|_panicked| Problem::new(Kind::Internal, "the submission stopped unexpectedly"))?
            }
        }
    }

    /// Begins an upload under a key. What it sends is known only at its end: it is to be noted then, or compared.
    ///
    /// # Errors
    /// `conflict` while the first request still runs, or the store's problem.
    pub async fn begin_upload(&self, caller: &Caller, key: String) -> Result<IdempotencyOutcome, Problem> {
        self.begin(caller, IdempotentRoute::Datasets, key, None).await
    }

    /// The keyed hash of the pieces of a caller's request.
    #[must_use]
    pub fn request_hash(&self, caller: &Caller, pieces: &[&[u8]]) -> [u8; 32] {
        let mut hash = self.vault.content_hasher(&caller.tenant);
        hash.update(b"request\0");
        for piece in pieces {
            hash.update(&(piece.len() as u64).to_le_bytes());
            hash.update(piece);
        }
        hash.finish()
    }

    async fn begin(
        &self,
        caller: &Caller,
        route: IdempotentRoute,
        name: String,
        content_hash: Option<[u8; 32]>,
    ) -> Result<IdempotencyOutcome, Problem> {
        let now = self.clock.now();
        let key = NewIdempotencyKey {
            tenant: caller.tenant.clone(),
            route: match route {
                IdempotentRoute::Jobs => "jobs",
                IdempotentRoute::Datasets => "datasets",
            },
            name,
            resource: Uuid::now_v7(),
            content_hash,
            began_at: now,
            lease_until: now + IDEMPOTENCY_LEASE,
        };
        loop {
            let held = match self.store.claim_idempotency_key(&key).await {
                Ok(held) => held,
                Err(error) => {
                    // the claim may have succeeded, and no other request would release it
                    if let Err(error) = self.store.drop_idempotency_key(key.resource).await {
                        tracing::warn!(error = %error, "the key of a failed request may stay until its lease ends");
                    }
                    return Err(error.into());
                }
            };
            let Some(held) = held else {
                return Ok(IdempotencyOutcome::First(self.claimed(caller, route, key.resource)));
            };
            if self.is_there(&caller.tenant, route, held.resource).await? {
                return Ok(IdempotencyOutcome::Repeat(held));
            }
            if held.lease_until > now {
                if let Some(content_hash) = &content_hash {
                    held.check_content(content_hash)?;
                }
                let detail = "a request with the same Idempotency-Key is still under way";
                return Err(Problem::new(Kind::Conflict, detail).retry_after(2));
            }
            // its process is gone, and made nothing
            self.store.drop_idempotency_key(held.resource).await?;
        }
    }

    fn claimed(&self, caller: &Caller, route: IdempotentRoute, resource: Uuid) -> IdempotencyClaim {
        let service = self.clone();
        let renewals = tokio::spawn(async move {
            loop {
                tokio::time::sleep(IDEMPOTENCY_LEASE / 3).await;
                match service.store.renew_idempotency_key(resource, service.clock.now() + IDEMPOTENCY_LEASE).await {
                    Ok(true) => {}
                    Ok(false) => return,
                    Err(error) => tracing::warn!(error = %error, "the key of a request could not be renewed"),
                }
            }
        });
        IdempotencyClaim {
            service: self.clone(),
            tenant: caller.tenant.clone(),
            route,
            resource,
            renewals: renewals.abort_handle(),
        }
    }

    async fn is_there(&self, tenant: &str, route: IdempotentRoute, resource: Uuid) -> Result<bool, StoreError> {
        Ok(match route {
            IdempotentRoute::Jobs => self.store.job(tenant, resource).await?.is_some(),
            IdempotentRoute::Datasets => self.store.dataset(tenant, resource).await?.is_some(),
        })
    }
}

impl IdempotencyRecord {
    /// Holds a repeat against the first request.
    ///
    /// # Errors
    /// `idempotency-conflict` when it sends something else.
    pub fn check_content(&self, content_hash: &[u8; 32]) -> Result<(), Problem> {
        if self.content_hash.as_ref() == Some(content_hash) {
            return Ok(());
        }
        Err(Problem::new(Kind::IdempotencyConflict, "the first request with this Idempotency-Key had another content"))
    }
}
