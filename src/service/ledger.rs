//! The ledger carried from one store to another, from the command line.

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use super::{StartError, open_store, open_vault};
use crate::clock::Clock;
use crate::config::StoreOptions;
use crate::jobs::ledger_file::{self, LedgerFileError, LedgerHeader};
use crate::jobs::{ImportConflict, Imported, StoreError};
use crate::vault::Vault;

/// Why a ledger was not carried.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The store or its keys cannot be opened.
    #[error(transparent)]
    Start(#[from] StartError),
    /// There is no master key, and none is made.
    #[error("there is no master key in {}: a ledger means something under the key alone that it was written under", .0.display())]
    NoKey(PathBuf),
    /// The file is refused whole.
    #[error("the file is refused whole: {0}")]
    File(#[from] LedgerFileError),
    /// The file was written under another key.
    #[error(
        "the file is of the store {store}, whose contents are hashed under another secret (fingerprint {there}) than here \
         (fingerprint {here}): equal tables would not be known as equal; use the master key of that store"
    )]
    OtherSecret {
        /// Where it was written.
        store: uuid::Uuid,
        /// The fingerprint there.
        there: String,
        /// The fingerprint here.
        here: String,
    },
    /// What the file says contradicts what is here.
    #[error("nothing was imported: {0}")]
    Conflict(#[from] ImportConflict),
    /// It cannot be written as JSON.
    #[error("an entry of the ledger cannot be written: {0}")]
    Entry(#[from] serde_json::Error),
}

impl From<StoreError> for LedgerError {
    fn from(error: StoreError) -> Self {
        Self::Start(error.into())
    }
}

/// The fingerprint of the secret that keys the hashes of contents: where it is equal, equal contents hash equal.
const fn fingerprint_of_hashing(vault: &Vault) -> &[u8; 32] {
    vault.fingerprint()
}

/// The ledger of a tenant, or of all, as a file.
///
/// # Errors
/// [`LedgerError`]
pub async fn export(options: &StoreOptions, data: &Path, tenant: Option<String>) -> Result<String, LedgerError> {
    let key = existing_key(options, data)?;
    let store = open_store(options, data).await?;
    let vault = open_vault(&store, key).await?;
    let copy = store.shared().copy_ledger(tenant.as_deref()).await?;
    let header = LedgerHeader::new(store.id().await?, fingerprint_of_hashing(&vault), Clock::system().now(), tenant);
    store.close().await;
    Ok(ledger_file::write(&header, copy)?)
}

/// Enters the ledger that a file holds.
///
/// # Errors
/// [`LedgerError`]; then nothing was entered.
pub async fn import(options: &StoreOptions, data: &Path, file: &str) -> Result<Imported, LedgerError> {
    let (header, copy) = ledger_file::read(file)?;
    let key = existing_key(options, data)?;
    // before the store is touched: a new one would be begun with this key
    let vault = Vault::open(&key).map_err(StartError::from)?;
    let here = fingerprint_of_hashing(&vault);
    if !header.is_keyed_by(here) {
        let here = LedgerHeader::new(header.store, here, header.exported_at, None).hashing;
        return Err(LedgerError::OtherSecret { store: header.store, there: header.hashing, here });
    }
    let store = open_store(options, data).await?;
    open_vault(&store, key).await?;
    let imported = store.shared().import_ledger(&copy, Clock::system().now()).await?;
    store.close().await;
    Ok(imported?)
}

fn existing_key(options: &StoreOptions, data: &Path) -> Result<PathBuf, LedgerError> {
    let key = options.master_key(data);
    if key.exists() { Ok(key) } else { Err(LedgerError::NoKey(key)) }
}
