use std::path::Path;

use super::error::StartError;
use super::vault;
use crate::config::StoreOptions;
use crate::store::OpenStore;

/// Opens the store of the options, after a check of the expected id.
pub(super) async fn open_store(options: &StoreOptions, data: &Path) -> Result<OpenStore, StartError> {
    let database = options.database().map_err(StartError::Config)?;
    if let Some(expected) = options.expect_store {
        let found = OpenStore::id_of(database, data).await?;
        if found != Some(expected) {
            return Err(StartError::OtherStore { expected, found });
        }
    }
    Ok(OpenStore::open(database, data).await?)
}

/// Opens the store of the options for a command that needs no master key, after a check of the one that is there.
pub(super) async fn open_store_without_key(options: &StoreOptions, data: &Path) -> Result<OpenStore, StartError> {
    let store = open_store(options, data).await?;
    match vault::check(store.shared().as_ref(), options, data).await {
        Ok(()) => Ok(store),
        Err(error) => {
            store.close().await;
            Err(error)
        }
    }
}
