//! The store that the options name.

use std::path::Path;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::postgres::{PostgresStore, SharedStoreLock};
use super::sqlite::SqliteStore;
use crate::ports::{Notifier, PartObjects, SharedStore, StoreError};

/// Pin of the id of a store, unique among stores.
const ID_PIN: &str = "store id";

/// A store that is open.
pub enum OpenStore {
    /// In a folder, for this process alone.
    Embedded(Arc<SqliteStore>),
    /// In a database, for this process among others.
    Shared(Arc<PostgresStore>),
}

impl OpenStore {
    /// Opens the store in a database, or the embedded one in a folder, and brings its tables up to date.
    ///
    /// # Errors
    /// When it is in use, cannot be reached, or its tables are of a later version.
    pub async fn open(database: Option<&str>, folder: &Path) -> Result<Self, StoreError> {
        let store = match database {
            Some(url) => Self::Shared(Arc::new(PostgresStore::connect(url).await?)),
            None => Self::Embedded(Arc::new(SqliteStore::open(folder).await?)),
        };
        // from the first start on
        store.id().await?;
        Ok(store)
    }

    /// The id of the store that would be opened, looked at without making or changing anything; `None` when there is none, or it
    /// has no id yet.
    ///
    /// # Errors
    /// When it cannot be reached or read.
    pub async fn id_of(database: Option<&str>, folder: &Path) -> Result<Option<Uuid>, StoreError> {
        let pinned = match database {
            Some(url) => PostgresStore::peek(url, ID_PIN).await?,
            None => SqliteStore::peek(folder, ID_PIN).await?,
        };
        pinned.map(|id| Uuid::from_slice(&id).map_err(StoreError::corrupt)).transpose()
    }

    /// Id of the store, drawn at its first start; a store that replaces it has another.
    ///
    /// # Errors
    /// When the store cannot answer.
    pub async fn id(&self) -> Result<Uuid, StoreError> {
        let id = self.shared().pin(ID_PIN, Uuid::now_v7().as_bytes()).await?;
        Uuid::from_slice(&id).map_err(StoreError::corrupt)
    }

    /// The store behind the traits.
    #[must_use]
    pub fn shared(&self) -> SharedStore {
        match self {
            Self::Embedded(store) => Arc::<SqliteStore>::clone(store),
            Self::Shared(store) => Arc::<PostgresStore>::clone(store),
        }
    }

    /// Whether other processes may have it open too.
    #[must_use]
    pub const fn is_shared(&self) -> bool {
        matches!(self, Self::Shared(_))
    }

    /// The database, without a password; `None` for the embedded store.
    #[must_use]
    pub fn database(&self) -> Option<&str> {
        match self {
            Self::Embedded(_) => None,
            Self::Shared(store) => Some(store.name()),
        }
    }

    /// The version of its tables.
    #[must_use]
    pub fn schema_version(&self) -> i64 {
        match self {
            Self::Embedded(store) => store.schema_version(),
            Self::Shared(store) => store.schema_version(),
        }
    }

    /// Keeps rotations of the master key away for the life of this process; nothing where no other process can be.
    ///
    /// # Errors
    /// When the store cannot be reached.
    pub async fn attend(&self) -> Result<Option<SharedStoreLock>, StoreError> {
        match self {
            Self::Embedded(_) => Ok(None),
            Self::Shared(store) => store.attend().await.map(Some),
        }
    }

    /// Says which master key this process wraps under.
    pub fn wraps_under(&self, fingerprint: [u8; 32]) {
        if let Self::Shared(store) = self {
            store.wraps_under(fingerprint);
        }
    }

    /// Keeps the payloads of new chunks of parts in an object store, and reads those that are there.
    pub fn keep_parts_in(&self, objects: Arc<dyn PartObjects>) {
        match self {
            Self::Embedded(store) => store.keep_parts_in(objects),
            Self::Shared(store) => store.keep_parts_in(objects),
        }
    }

    /// Lets `signals` hear what other processes do, until `stopping`. Without other processes there is nothing to hear.
    ///
    /// # Errors
    /// When the store cannot be reached.
    pub async fn listen(&self, signals: &Arc<Notifier>, stopping: &CancellationToken) -> Result<(), StoreError> {
        if let Self::Shared(store) = self {
            tokio::spawn(store.listen(Arc::clone(signals), stopping.clone()).await?);
        }
        Ok(())
    }

    /// Ends every connection.
    pub async fn close(&self) {
        match self {
            Self::Embedded(store) => store.close().await,
            Self::Shared(store) => store.close().await,
        }
    }
}
