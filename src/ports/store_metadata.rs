//! What a store fixes with the first start, and the one act that changes it: the rotation of the master key.

use async_trait::async_trait;
use uuid::Uuid;

use super::error::StoreError;
use crate::vault::Purpose;

/// Pin of the fingerprint of the master key that wraps all keys of a store.
pub const MASTER_KEY_PIN: &str = "master key";

/// The pin of the key that contents are hashed with, wrapped.
pub const HASHING_KEY_PIN: &str = "hashing key";

/// Wraps a stored key anew.
pub type RewrapKey<'a> = &'a (dyn Fn(Purpose, Uuid, &[u8]) -> Result<Vec<u8>, StoreError> + Send + Sync);

/// A change of the master key.
pub struct Rotation<'a> {
    /// The fingerprint that the store must have.
    pub from: [u8; 32],
    /// The fingerprint that it gets.
    pub to: [u8; 32],
    /// The hashing key, wrapped under the new master key.
    pub hashing_key: Vec<u8>,
    /// What becomes of every other wrapped key.
    pub rewrap: RewrapKey<'a>,
}

/// How many keys a rotation has wrapped anew.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RotationCounts {
    /// Keys of datasets.
    pub datasets: u64,
    /// Keys of jobs that have not ended.
    pub jobs: u64,
    /// Keys of chains.
    pub chains: u64,
}

/// Keeps what is fixed, and the keys that the master key wraps.
#[async_trait]
pub trait MetadataStore: Send + Sync {
    /// Fixes a value with the first call for a name; later calls give that value back.
    async fn pin(&self, name: &str, value: &[u8]) -> Result<Vec<u8>, StoreError>;

    /// What [`MetadataStore::pin`] fixed.
    async fn pinned(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError>;

    /// Wraps every key anew and changes the pins, in one transaction: all or nothing.
    ///
    /// # Errors
    /// [`StoreError::InUse`] while another process has the store open, [`StoreError::Conflict`] when it is wrapped under another
    /// master key than the rotation says.
    async fn rotate(&self, rotation: Rotation<'_>) -> Result<RotationCounts, StoreError>;
}
