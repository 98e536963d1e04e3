//! Chains: the encrypted states by which the releases of one population go on from each other.
//!
//! A state is written in pieces under (job, attempt) before the commit, which makes it current in the transaction that
//! inserts the release. That of a held release is pending until the release is decided.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::api_keys::AuditEntry;
use super::error::StoreError;
use crate::vault::Ciphertext;

/// Most bytes of a piece of a state, before they are encrypted.
pub const CHAIN_PIECE_BYTES: usize = 1 << 22;

/// A state of a chain, without its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoredChainState {
    /// Counted from 1 in the chain.
    pub version: u64,
    /// The job that wrote it.
    pub job: Uuid,
    /// Its attempt.
    pub attempt: u32,
    /// How many pieces it has, numbered from 0.
    pub pieces: u32,
    /// How many bytes these have, encrypted.
    pub bytes: u64,
    /// The release that it goes on from.
    pub release: Uuid,
}

/// The chain of a population.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChainRecord {
    /// What its key is wrapped for.
    pub id: Uuid,
    /// Whose it is.
    pub tenant: String,
    /// The population.
    pub population: String,
    /// The wrapped key of its states; none once it is destroyed.
    pub wrapped_key: Option<Vec<u8>>,
    /// When the key was destroyed.
    pub ended_at: Option<DateTime<Utc>>,
    /// The state of the last release that counts; none before the first.
    pub current: Option<StoredChainState>,
    /// The state of a held release.
    pub pending: Option<StoredChainState>,
}

impl ChainRecord {
    /// The version that the next state goes on from.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.current.map_or(0, |state| state.version)
    }
}

/// A chain that begins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewChain {
    /// A new id.
    pub id: Uuid,
    /// Whose it is.
    pub tenant: String,
    /// The population.
    pub population: String,
    /// The wrapped key of its states.
    pub wrapped_key: Vec<u8>,
}

/// The step of a chain that a commit makes, to the state that its attempt has written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChainStep {
    /// The chain.
    pub chain: Uuid,
    /// The version that the release was made from; 0 of the first.
    pub from: u64,
    /// How many pieces the new state has.
    pub pieces: u32,
    /// How many bytes these have, encrypted.
    pub bytes: u64,
}

/// Keeps the states of chains.
#[async_trait]
pub trait ChainStore: Send + Sync {
    /// The chain of a tenant's population.
    async fn chain(&self, tenant: &str, population: &str) -> Result<Option<ChainRecord>, StoreError>;

    /// Whether the persons of a chain stand in the ledger while it has no state. A snapshot: the decision on a held first
    /// release changes both at once.
    async fn is_chain_lost(&self, tenant: &str, population: &str) -> Result<bool, StoreError>;

    /// Begins the chain of a population, and gives the one that is there, which another may have begun.
    async fn begin_chain(&self, new: &NewChain) -> Result<ChainRecord, StoreError>;

    /// Keeps a piece of a state. Nothing reads it before a commit.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] unless the job runs in this very attempt, the piece is new, and the chain has its key.
    async fn put_chain_piece(
        &self,
        chain: Uuid,
        job: Uuid,
        attempt: u32,
        piece: u32,
        payload: &Ciphertext,
    ) -> Result<(), StoreError>;

    /// A piece of a state; none of a state that another one has replaced.
    async fn chain_piece(
        &self,
        chain: Uuid,
        state: &StoredChainState,
        piece: u32,
    ) -> Result<Option<Ciphertext>, StoreError>;

    /// Destroys the key and the states of a tenant's chain for good. Its population is not republished any more, also
    /// not under a new key. A second time changes nothing.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when nothing was republished.
    async fn end_chain(
        &self,
        tenant: &str,
        population: &str,
        at: DateTime<Utc>,
        audit_entry: &AuditEntry,
    ) -> Result<ChainRecord, StoreError>;
}
