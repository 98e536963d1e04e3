//! What is done to a store while no service needs to run: migration and copies.

use std::path::Path;

use uuid::Uuid;

use super::error::StartError;
use super::open::open_store_without_key;
use crate::config::StoreOptions;
use crate::store::OpenStore;
use crate::store::sqlite::SqliteStore;

/// A migrated store.
pub struct MigratedStore {
    /// Its location without a password.
    pub store: String,
    /// Its unique id.
    pub id: Uuid,
    /// The version of its schema.
    pub version: i64,
}

/// Migrates the schema of a store, as every start does.
///
/// # Errors
/// [`StartError`]
pub async fn migrate(options: &StoreOptions, data: &Path) -> Result<MigratedStore, StartError> {
    let store = open_store_without_key(options, data).await?;
    let name = store.database().map_or_else(|| data.display().to_string(), str::to_owned);
    let migrated = MigratedStore { store: name, id: store.id().await?, version: store.schema_version() };
    store.close().await;
    Ok(migrated)
}

/// Copies the embedded store into a new file, as it is at one moment; a process may serve it meanwhile. The id of the store.
///
/// # Errors
/// [`StartError`]; nothing is left of the file.
pub async fn back_up(options: &StoreOptions, data: &Path, file: &Path) -> Result<Uuid, StartError> {
    if options.database().map_err(StartError::Config)?.is_some() {
        let detail = "the store is a Postgres database: pg_dump copies it; this command copies the embedded store";
        return Err(StartError::Config(detail.to_owned()));
    }
    let unknown = || StartError::Config(format!("{} holds no store", data.display()));
    let id = OpenStore::id_of(None, data).await?.ok_or_else(unknown)?;
    if options.expect_store.is_some_and(|expected| expected != id) {
        return Err(StartError::Config(format!("{} holds store {id}, which is not the expected one", data.display())));
    }
    SqliteStore::back_up(data, file).await?;
    Ok(id)
}
