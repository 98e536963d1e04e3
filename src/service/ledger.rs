//! The ledger carried from one store to another, from the command line.

#[cfg(test)]
mod tests;

use crate::ports;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::error::StartError;
use super::open::open_store;
use super::vault;
use crate::clock::Clock;
use crate::config::{MasterKeyLocation, StoreOptions};
use crate::ports::{ImportConflict, ImportSummary, PortablePiece, Store, StoreError};
use crate::ports::{LedgerFileError, LedgerHeader, LedgerWriter};

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
    /// The file was written under another master key.
    #[error("the file is of the store {store}, which has another master key: name the one of that store")]
    OtherKey {
        /// Where it was written.
        store: uuid::Uuid,
    },
    /// The store has hashed contents by another secret.
    #[error(
        "the file is of the store {store}, whose contents are hashed by another secret than those here: equal tables would not be \
         known as equal; import into a store that was never used"
    )]
    OtherSecret {
        /// Where it was written.
        store: uuid::Uuid,
    },
    /// What the file says contradicts what is here.
    #[error("nothing was imported: {0}")]
    Conflict(#[from] ImportConflict),
    /// It cannot be written.
    #[error("the ledger cannot be written: {0}")]
    Unwritten(#[from] io::Error),
}

impl From<StoreError> for LedgerError {
    fn from(error: StoreError) -> Self {
        Self::Start(error.into())
    }
}

/// Writes the ledger of a tenant, or of all, as a file.
///
/// # Errors
/// [`LedgerError`]; what was written until then is told from a whole file.
pub async fn export(
    options: &StoreOptions,
    data: &Path,
    tenant: Option<String>,
    out: impl Write,
) -> Result<(), LedgerError> {
    let place = existing_key(options, data)?;
    let store = open_store(options, data).await?;
    let exported = async {
        let vault = vault::open(store.shared().as_ref(), &place).await?;
        let wrapped = vault.wrapped_hashing_key().map_err(StartError::from)?;
        let id = store.id().await?;
        let header =
            LedgerHeader::new(id, &vault.hashing_fingerprint(), &wrapped, Clock::system().now(), tenant.clone());
        written(store.shared().as_ref(), &header, tenant.as_deref(), out).await
    };
    let exported = exported.await;
    store.close().await;
    exported
}

/// The people of datasets are written piece by piece: what is there of a visible dataset never changes.
async fn written(
    store: &dyn Store,
    header: &LedgerHeader,
    tenant: Option<&str>,
    out: impl Write,
) -> Result<(), LedgerError> {
    let copy = store.copy_ledger(tenant).await?;
    let people: Vec<_> =
        copy.datasets.iter().map(|of| (of.tenant.clone(), of.id, of.pieces().collect::<Vec<_>>())).collect();
    let mut file = LedgerWriter::begin(out, header)?;
    file.copy(copy)?;
    for (tenant, dataset, pieces) in people {
        for piece in pieces {
            let hashes = store.people_pieces(&tenant, &[(dataset, piece)]).await?.pop().flatten();
            let hashes = hashes.ok_or_else(|| StoreError::corrupt("a piece of hashes is missing"))?;
            file.people(PortablePiece { dataset, piece: piece.number(), hashes: hashes.into() })?;
        }
    }
    Ok(file.end()?)
}

/// Enters the ledger that a file holds, read from its beginning. A store that was never used takes up the secret by which the file's contents are hashed.
///
/// # Errors
/// [`LedgerError`]; then nothing was entered.
pub async fn import(options: &StoreOptions, data: &Path, file: File) -> Result<ImportSummary, LedgerError> {
    let (header, copy) = ports::read(file)?;
    let place = existing_key(options, data)?;
    // before the store is touched: a new one would be begun with this key
    let brought = vault::brought(&place, &header.hashing_key().unwrap_or_default());
    let brought = brought.map_err(|_| LedgerError::OtherKey { store: header.store })?;
    if !header.is_keyed_by(&brought.hashing_fingerprint()) {
        return Err(LedgerError::OtherKey { store: header.store });
    }
    let store = open_store(options, data).await?;
    let imported = async {
        let vault = vault::open_as(store.shared().as_ref(), &place, brought).await?;
        if !header.is_keyed_by(&vault.hashing_fingerprint()) {
            return Err(LedgerError::OtherSecret { store: header.store });
        }
        Ok(store.shared().import_ledger(&copy, Clock::system().now()).await??)
    };
    let imported = imported.await;
    store.close().await;
    imported
}

/// Where the master key is; none is made.
fn existing_key<'a>(options: &'a StoreOptions, data: &Path) -> Result<MasterKeyLocation<'a>, LedgerError> {
    match options.master_key(data).map_err(StartError::Config)? {
        MasterKeyLocation::File(path) if !path.exists() => Err(LedgerError::NoKey(path)),
        place => Ok(place),
    }
}
