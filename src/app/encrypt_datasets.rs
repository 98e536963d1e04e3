//! Sealing what was uploaded before anything was sealed.

use crate::ports::{Store, StoreError};
use crate::vault::Vault;

/// Seals the datasets that are not; gives their number.
///
/// # Errors
/// The store's. What was sealed until then stays so.
pub async fn encrypt_datasets(store: &dyn Store, vault: &Vault) -> Result<u64, StoreError> {
    let mut sealed = 0;
    for dataset in store.unsealed_datasets().await? {
        let (key, wrapped_key) = vault.fresh_data_key(dataset)?;
        store.seal_dataset(dataset, &wrapped_key, &|place, plain| Ok(key.seal(place, plain)?)).await?;
        sealed += 1;
    }
    Ok(sealed)
}
