//! The vault of a store, and the rotation of its master key.

use std::path::Path;

use super::error::StartError;
use super::open::open_store;
use crate::config::{MasterKeyLocation, NewKeyOptions, StoreOptions};
use crate::ports::{HASHING_KEY_PIN, MASTER_KEY_PIN, Rotation, RotationCounts, Store, StoreError};
use crate::vault::{MasterKey, Vault, VaultError};

/// Opens the vault of a store after a check of its master key; creates the key for an unused store.
pub(super) async fn open(store: &dyn Store, place: &MasterKeyLocation<'_>) -> Result<Vault, StartError> {
    let known = store.pinned(MASTER_KEY_PIN).await?.is_some();
    if let MasterKeyLocation::File(path) = place
        && known
        && !path.exists()
    {
        return Err(StartError::KeyMissing(path.clone()));
    }
    let master = master(place)?;
    // stores of earlier versions derive the hashing key from the master key
    let vault = if known { Vault::derived(&master) } else { Vault::fresh(&master)? };
    pinned(store, place, vault).await
}

/// Checks the master key that the options name, for commands that need none: they create no key and open no data.
///
/// A key that is not there is missed only where the options name it and the store has one.
pub(super) async fn check(store: &dyn Store, options: &StoreOptions, data: &Path) -> Result<(), StartError> {
    let place = options.master_key(data).map_err(StartError::Config)?;
    let pinned = store.pinned(MASTER_KEY_PIN).await?;
    match &place {
        MasterKeyLocation::File(path) if !path.exists() => match options.master_key.is_some() && pinned.is_some() {
            true => Err(StartError::KeyMissing(path.clone())),
            false => Ok(()),
        },
        MasterKeyLocation::File(_) | MasterKeyLocation::Digits { .. } => {
            let vault = Vault::derived(&master(&place)?);
            match pinned.is_none_or(|pinned| pinned == vault.fingerprint()) {
                true => Ok(()),
                false => Err(StartError::ForeignKey(place.to_string())),
            }
        }
    }
}

/// Like [`open`]; an unused store adopts the hashing key of `brought`.
pub(super) async fn open_as(
    store: &dyn Store,
    place: &MasterKeyLocation<'_>,
    brought: Vault,
) -> Result<Vault, StartError> {
    if store.pinned(MASTER_KEY_PIN).await?.is_some() {
        open(store, place).await
    } else {
        pinned(store, place, brought).await
    }
}

/// The vault of the current master key and a hashing key wrapped under it.
pub(super) fn brought(place: &MasterKeyLocation<'_>, wrapped: &[u8]) -> Result<Vault, VaultError> {
    Vault::derived(&master(place)?).with_hashing_key(wrapped)
}

async fn pinned(store: &dyn Store, place: &MasterKeyLocation<'_>, vault: Vault) -> Result<Vault, StartError> {
    if store.pin(MASTER_KEY_PIN, vault.fingerprint()).await? != vault.fingerprint() {
        return Err(StartError::ForeignKey(place.to_string()));
    }
    let hashing_key = store.pin(HASHING_KEY_PIN, &vault.wrapped_hashing_key()?).await?;
    Ok(vault.with_hashing_key(&hashing_key)?)
}

fn master(place: &MasterKeyLocation<'_>) -> Result<MasterKey, VaultError> {
    match place {
        MasterKeyLocation::File(path) => MasterKey::open(path),
        MasterKeyLocation::Digits { name, digits } => MasterKey::of_digits(name, digits.reveal()),
    }
}

/// Replaces the master key of a store that no other process has open: wraps all keys again or none. Ciphertexts and hashes remain.
///
/// # Errors
/// [`StartError`]; the current key remains valid then.
pub async fn rotate(options: &StoreOptions, data: &Path, new: &NewKeyOptions) -> Result<RotationCounts, StartError> {
    let (present, next) =
        (options.master_key(data).map_err(StartError::Config)?, new.place().map_err(StartError::Config)?);
    let store = open_store(options, data).await?;
    let rotated = rotate_in(store.shared().as_ref(), &present, &next).await;
    store.close().await;
    rotated
}

async fn rotate_in(
    store: &dyn Store,
    present: &MasterKeyLocation<'_>,
    next: &MasterKeyLocation<'_>,
) -> Result<RotationCounts, StartError> {
    if store.pinned(MASTER_KEY_PIN).await?.is_none() {
        return Err(StartError::Config("the store is unused and has no master key".to_owned()));
    }
    let old = open(store, present).await?;
    let new = old.rotated(&master(next)?);
    if new.fingerprint() == old.fingerprint() {
        return Err(StartError::Config(format!("{next} holds the present master key")));
    }
    let rotation = Rotation {
        from: *old.fingerprint(),
        to: *new.fingerprint(),
        hashing_key: new.wrapped_hashing_key()?,
        rewrap: &|purpose, id, wrapped| Ok(old.rewrap(&new, purpose, id, wrapped)?),
    };
    store.rotate(rotation).await.map_err(|error| match error {
        // another process replaced it since the check
        StoreError::Conflict => StartError::ForeignKey(present.to_string()),
        other => other.into(),
    })
}
