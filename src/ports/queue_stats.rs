//! What an operator wants to know of a store.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::error::StoreError;

/// How many jobs there are to do, of all tenants together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Backlog {
    /// Jobs that wait.
    pub queued: u64,
    /// Jobs that workers have.
    pub running: u64,
    /// When the oldest of those that wait was accepted.
    pub oldest_queued: Option<DateTime<Utc>>,
}

/// Health of the store. Numbers only, so that no tenant is named.
#[async_trait]
pub trait QueueStatsStore: Send + Sync {
    /// Whether the store answers and its tables are of the version that this process opened.
    ///
    /// # Errors
    /// [`StoreError::Schema`] when they are of another one.
    async fn check(&self) -> Result<(), StoreError>;

    /// The jobs to do.
    async fn backlog(&self) -> Result<Backlog, StoreError>;
}
