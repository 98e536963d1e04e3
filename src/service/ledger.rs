//! Export and import of ledgers for the command line.

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
use crate::ports::{
    CarriedBytes, ImportConflict, ImportSummary, PortableChain, PortableChainPiece, PortableCoverage, PortableHashes,
    Store, StoreError,
};
use crate::ports::{LedgerFileError, LedgerHeader, LedgerWriter};

/// The reason why a ledger was not exported or imported.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The store or its keys cannot be opened.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The master key does not exist and is not created.
    #[error("there is no master key in {}: a ledger is readable only under the master key of its store", .0.display())]
    NoKey(PathBuf),
    /// The file is invalid.
    #[error("the file is invalid: {0}")]
    File(#[from] LedgerFileError),
    /// The file belongs to a store with another master key.
    #[error("the file belongs to the store {store} with another master key: give the master key of that store")]
    OtherKey {
        /// The store of the file.
        store: uuid::Uuid,
    },
    /// The store hashes contents with another secret.
    #[error(
        "the file is of the store {store}, whose contents are hashed by another secret than those here: equal tables would not be \
         known as equal; import into a store that was never used"
    )]
    OtherSecret {
        /// The store of the file.
        store: uuid::Uuid,
    },
    /// The file contradicts the store.
    #[error("nothing was imported: {0}")]
    Conflict(#[from] ImportConflict),
    /// A state was replaced while it was written.
    #[error("a release of the population {population} was made meanwhile: export the ledger again")]
    Moved {
        /// The population.
        population: String,
    },
    /// Writing the file failed.
    #[error("the ledger cannot be written: {0}")]
    Unwritten(#[from] io::Error),
}

impl From<StoreError> for LedgerError {
    fn from(error: StoreError) -> Self {
        Self::Start(error.into())
    }
}

/// Writes the ledger of a tenant, or of all tenants.
///
/// # Errors
/// [`LedgerError`]; an incomplete file is detected at its import.
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

/// Writes persons and marks piece by piece, since those of a live coverage stay.
async fn written(
    store: &dyn Store,
    header: &LedgerHeader,
    tenant: Option<&str>,
    out: impl Write,
) -> Result<(), LedgerError> {
    let copy = store.copy_ledger(tenant).await?;
    let (coverages, chains) = (copy.coverages.clone(), copy.chains.clone());
    let mut file = LedgerWriter::begin(out, header)?;
    file.copy(copy)?;
    for coverage in &coverages {
        write_hashes(store, coverage, &mut file).await?;
    }
    for chain in &chains {
        write_pieces(store, chain, &mut file).await?;
    }
    Ok(file.end()?)
}

/// Writes the state of a chain. The next release replaces it.
async fn write_pieces(
    store: &dyn Store,
    PortableChain { id, population, state, .. }: &PortableChain,
    file: &mut LedgerWriter<impl Write>,
) -> Result<(), LedgerError> {
    let Some(state) = *state else { return Ok(()) };
    for piece in 0..state.pieces {
        let found = store.chain_piece(*id, &state.into(), piece).await?;
        let found = found.ok_or_else(|| LedgerError::Moved { population: population.clone() })?;
        file.chain_piece(PortableChainPiece { chain: *id, piece, payload: CarriedBytes::of_ciphertext(&found) })?;
    }
    Ok(())
}

async fn write_hashes(
    store: &dyn Store,
    PortableCoverage { tenant, id, coverage, .. }: &PortableCoverage,
    file: &mut LedgerWriter<impl Write>,
) -> Result<(), LedgerError> {
    for system in coverage.systems.keys() {
        let mut after = None;
        loop {
            let persons = store.coverage_persons(tenant, *id, system, after).await?;
            let Some(last) = persons.last() else { break };
            after = Some(*last);
            let hashes = CarriedBytes::of_persons(&persons);
            file.hashes(PortableHashes { coverage: *id, system: Some(system.clone()), hashes })?;
        }
    }
    let marks = store.coverage_marks(tenant, *id).await?;
    Ok(file.hashes(PortableHashes { coverage: *id, system: None, hashes: CarriedBytes::of_marks(&marks) })?)
}

/// Imports the ledger of a file. An unused store adopts the hashing secret of the file.
///
/// # Errors
/// [`LedgerError`]; nothing is imported then.
pub async fn import(options: &StoreOptions, data: &Path, file: File) -> Result<ImportSummary, LedgerError> {
    let (header, copy) = ports::read(file)?;
    let place = existing_key(options, data)?;
    // before opening the store, since a new store would adopt this key
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

/// The location of an existing master key.
fn existing_key<'a>(options: &'a StoreOptions, data: &Path) -> Result<MasterKeyLocation<'a>, LedgerError> {
    match options.master_key(data).map_err(StartError::Config)? {
        MasterKeyLocation::File(path) if !path.exists() => Err(LedgerError::NoKey(path)),
        place => Ok(place),
    }
}
