//! The keys under which requests can be repeated, as they are stored.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::error::StoreError;

/// A key to be held while its request runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewIdempotencyKey {
    /// Whose it is.
    pub tenant: String,
    /// What it was sent to: a key means nothing elsewhere.
    pub route: &'static str,
    /// The key.
    pub name: String,
    /// The id that the request will make something under: once that is there, the request is done.
    pub resource: Uuid,
    /// Keyed hash of what was sent, where it is known already.
    pub content_hash: Option<[u8; 32]>,
    /// When the request began.
    pub began_at: DateTime<Utc>,
    /// Until when the request counts as running unless it says more.
    pub lease_until: DateTime<Utc>,
}

/// A key that another request has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IdempotencyRecord {
    /// What that request makes, or has made.
    pub resource: Uuid,
    /// Keyed hash of what it sent, once it is known.
    pub content_hash: Option<[u8; 32]>,
    /// Until when it counts as running.
    pub lease_until: DateTime<Utc>,
}

/// Keeps the keys of requests.
#[async_trait]
pub trait IdempotencyStore: Send + Sync {
    /// Claims a key, or returns the request that has it.
    async fn claim_idempotency_key(&self, key: &NewIdempotencyKey) -> Result<Option<IdempotencyRecord>, StoreError>;

    /// Lets go of the key that a resource is made under. What is not there is let go of already.
    async fn drop_idempotency_key(&self, resource: Uuid) -> Result<(), StoreError>;

    /// Says that a request still runs; whether it still has its key.
    async fn renew_idempotency_key(&self, resource: Uuid, until: DateTime<Utc>) -> Result<bool, StoreError>;

    /// Notes what was sent, before the resource is made; whether the request still has its key.
    async fn note_content(&self, resource: Uuid, content_hash: &[u8; 32]) -> Result<bool, StoreError>;

    /// Removes the keys of requests that began before a time.
    async fn expire_idempotency_keys(&self, before: DateTime<Utc>) -> Result<u64, StoreError>;

    /// Lets every request count as ended. For the start of a store that one process alone uses.
    async fn lapse_idempotency_keys(&self, now: DateTime<Utc>) -> Result<(), StoreError>;
}
