//! encryption what was uploaded before anything was encrypted.

use crate::ports::{Store, StoreError};
use crate::vault::Vault;

/// Seals the datasets that are not; gives their number.
///
/// # Errors
/// The store's. What was encrypted until then stays so.
pub async fn encrypt_datasets(store: &dyn Store, vault: &Vault) -> Result<u64, StoreError> {
    let mut ciphertext = 0;
    for dataset in store.unencrypted_datasets().await? {
        let (key, wrapped_key) = vault.fresh_data_key(dataset)?;
        store.encrypt_dataset(dataset, &wrapped_key, &|place, plain| Ok(key.encrypt(place, plain)?)).await?;
        ciphertext += 1;
    }
    Ok(ciphertext)
}
