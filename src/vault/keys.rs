//! The vault: wrapping of secrets, and keyed hashes.

use hmac::{Hmac, Mac};
use sha2::Sha256;
use uuid::Uuid;
use zeroize::Zeroizing;

use super::ciphertext::{self, DataKey};
use super::error::VaultError;
use super::master::MasterKey;
use super::secret::{self, Secret};
use super::short_mac::ShortMac;

/// The purpose of a wrapped secret; unwrapping requires the same purpose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// The randomness of a job's release.
    Release,
    /// The encryption of a dataset.
    Dataset,
    /// The hashing of contents; one per store.
    Hashing,
    /// The encryption of a chain.
    Chain,
}

impl Purpose {
    /// The associated data of a wrapping, unambiguous because ids have a fixed length.
    fn context_bytes(self, id: Uuid) -> Vec<u8> {
        let label: &[u8] = match self {
            // release keys of earlier versions have no label; those of queued jobs must still open
            Self::Release => b"",
            Self::Dataset => b"dataset key",
            Self::Hashing => b"hashing key",
            Self::Chain => b"chain key",
        };
        [label, id.as_bytes()].concat()
    }
}

/// Wraps secrets and computes keyed hashes, without `Debug`, wiped when dropped.
pub struct Vault {
    wrapping: Secret,
    hashing: Secret,
    fingerprint: [u8; 32],
}

impl Vault {
    /// The vault of a master key with a new hashing key.
    ///
    /// # Errors
    /// If the system provides no randomness.
    pub fn fresh(master: &MasterKey) -> Result<Self, VaultError> {
        Ok(Self::new(master, Self::fresh_secret()?))
    }

    /// The vault of a store of an earlier version, with a hashing key derived from the master key.
    #[must_use]
    pub fn derived(master: &MasterKey) -> Self {
        Self::new(master, keyed(&master.0, b"guardian content hashes 1"))
    }

    /// The vault of a master key with a hashing key from [`Vault::wrapped_hashing_key`].
    ///
    /// # Errors
    /// [`VaultError::Unwrap`]
    pub fn with_hashing_key(self, wrapped: &[u8]) -> Result<Self, VaultError> {
        let hashing = self.unwrap_secret(Purpose::Hashing, Uuid::nil(), wrapped)?;
        Ok(Self { hashing, ..self })
    }

    /// The vault of another master key with the hashing key of this one.
    #[must_use]
    pub fn rotated(&self, master: &MasterKey) -> Self {
        Self::new(master, self.hashing.clone())
    }

    /// The wrapped hashing key for the store, so that hashes survive a rotation of the master key.
    ///
    /// # Errors
    /// If the system provides no randomness for the nonce.
    pub fn wrapped_hashing_key(&self) -> Result<Vec<u8>, VaultError> {
        self.wrap(Purpose::Hashing, Uuid::nil(), &self.hashing)
    }

    /// A vault with a temporary master key, for tests and commands without a store.
    ///
    /// # Errors
    /// If the system provides no randomness.
    pub fn in_memory() -> Result<Self, VaultError> {
        Self::fresh(&MasterKey::fresh()?)
    }

    fn new(master: &MasterKey, hashing: Secret) -> Self {
        Self {
            wrapping: keyed(&master.0, b"guardian wrapping 1"),
            hashing,
            fingerprint: *keyed(&master.0, b"guardian fingerprint 1"),
        }
    }

    /// Identifies the master key without revealing it; a store keeps it to check its key.
    #[must_use]
    pub const fn fingerprint(&self) -> &[u8; 32] {
        &self.fingerprint
    }

    /// Identifies the hashing key without revealing it.
    #[must_use]
    pub fn hashing_fingerprint(&self) -> [u8; 32] {
        *keyed(&self.hashing, b"guardian hashing fingerprint 1")
    }

    /// Draws a new secret, such as the release key of a job.
    ///
    /// # Errors
    /// If the system provides no randomness.
    pub fn fresh_secret() -> Result<Secret, VaultError> {
        secret::draw()
    }

    /// Wraps a secret for a purpose and id.
    ///
    /// # Errors
    /// If the system provides no randomness for the nonce.
    pub fn wrap(&self, purpose: Purpose, id: Uuid, secret: &Secret) -> Result<Vec<u8>, VaultError> {
        ciphertext::encrypt_bytes(&self.wrapping, &purpose.context_bytes(id), secret.as_slice())
    }

    /// Unwraps the output of [`Vault::wrap`] for the same purpose and id.
    ///
    /// # Errors
    /// If it is damaged, has another purpose or id, or was wrapped under another master key.
    pub fn unwrap_secret(&self, purpose: Purpose, id: Uuid, wrapped: &[u8]) -> Result<Secret, VaultError> {
        let opened = ciphertext::decrypt_bytes(&self.wrapping, &purpose.context_bytes(id), wrapped)
            .map_err(|_| VaultError::Unwrap)?;
        let opened = Zeroizing::new(opened);
        let mut secret = Zeroizing::new([0; 32]);
        if opened.len() != secret.len() {
            return Err(VaultError::Unwrap);
        }
        secret.copy_from_slice(&opened);
        Ok(secret)
    }

    /// Wraps a secret of this vault again for another vault.
    ///
    /// # Errors
    /// As [`Vault::unwrap_secret`] and [`Vault::wrap`].
    pub fn rewrap(&self, next: &Self, purpose: Purpose, id: Uuid, wrapped: &[u8]) -> Result<Vec<u8>, VaultError> {
        next.wrap(purpose, id, &self.unwrap_secret(purpose, id, wrapped)?)
    }

    /// Draws the key of a dataset; returns it with its wrapped form for the store.
    ///
    /// # Errors
    /// If the system provides no randomness.
    pub fn fresh_data_key(&self, dataset: Uuid) -> Result<(DataKey, Vec<u8>), VaultError> {
        let secret = Self::fresh_secret()?;
        let wrapped = self.wrap(Purpose::Dataset, dataset, &secret)?;
        Ok((DataKey::new(dataset, secret), wrapped))
    }

    /// Unwraps the key of a dataset from [`Vault::fresh_data_key`].
    ///
    /// # Errors
    /// As [`Vault::unwrap_secret`].
    pub fn data_key(&self, dataset: Uuid, wrapped: &[u8]) -> Result<DataKey, VaultError> {
        Ok(DataKey::new(dataset, self.unwrap_secret(Purpose::Dataset, dataset, wrapped)?))
    }

    /// Draws the key of a chain; returns it with its wrapped form for the store.
    ///
    /// # Errors
    /// If the system provides no randomness.
    pub fn fresh_chain_key(&self, chain: Uuid) -> Result<(DataKey, Vec<u8>), VaultError> {
        let secret = Self::fresh_secret()?;
        let wrapped = self.wrap(Purpose::Chain, chain, &secret)?;
        Ok((DataKey::new(chain, secret), wrapped))
    }

    /// Unwraps the key of a chain from [`Vault::fresh_chain_key`].
    ///
    /// # Errors
    /// As [`Vault::unwrap_secret`].
    pub fn chain_key(&self, chain: Uuid, wrapped: &[u8]) -> Result<DataKey, VaultError> {
        Ok(DataKey::new(chain, self.unwrap_secret(Purpose::Chain, chain, wrapped)?))
    }

    /// A hasher of contents; hashes are comparable within a tenant only.
    #[must_use]
    pub fn content_hasher(&self, tenant: &str) -> ContentHasher {
        let key = keyed(&self.hashing, tenant.as_bytes());
        ContentHasher { incremental: mac(&key), short: Some(ShortMac::new(&key)) }
    }
}

/// An incremental keyed hash (HMAC-SHA-256).
#[derive(Clone)]
pub struct ContentHasher {
    incremental: Hmac<Sha256>,
    /// Until something is added.
    short: Option<ShortMac>,
}

impl ContentHasher {
    /// Adds bytes; the caller delimits values.
    pub fn update(&mut self, bytes: &[u8]) {
        self.short = None;
        self.incremental.update(bytes);
    }

    /// The hash of all added bytes.
    #[must_use]
    pub fn finish(self) -> [u8; 32] {
        self.incremental.finalize().into_bytes().into()
    }

    /// The hash of all added bytes, a label, and a text behind it.
    #[must_use]
    pub fn hash(&self, label: &[u8], text: &[u8]) -> [u8; 32] {
        let short = self.short.as_ref().and_then(|short| short.hash(label, text));
        short.unwrap_or_else(|| {
            let mut hash = self.clone();
            hash.update(label);
            hash.update(text);
            hash.finish()
        })
    }
}

fn mac(key: &Secret) -> Hmac<Sha256> {
    #[expect(clippy::unwrap_used)]
    // Unwrap safety: HMAC accepts keys of every length
    <Hmac<Sha256> as hmac::KeyInit>::new_from_slice(key.as_slice()).unwrap()
}

fn keyed(key: &Secret, label: &[u8]) -> Secret {
    let mut derived = mac(key);
    derived.update(label);
    Zeroizing::new(derived.finalize().into_bytes().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u128) -> Uuid {
        Uuid::from_u128(n)
    }

    #[test]
    fn secret_unwraps_for_its_purpose_and_id_only() {
        let vault = Vault::in_memory().unwrap();
        let secret = Vault::fresh_secret().unwrap();
        let purposes = [Purpose::Release, Purpose::Dataset, Purpose::Hashing, Purpose::Chain];
        for purpose in purposes {
            let wrapped = vault.wrap(purpose, id(1), &secret).unwrap();
            assert_eq!(*vault.unwrap_secret(purpose, id(1), &wrapped).unwrap(), *secret);
            assert!(vault.unwrap_secret(purpose, id(2), &wrapped).is_err());
            assert!(Vault::in_memory().unwrap().unwrap_secret(purpose, id(1), &wrapped).is_err());
            for other in purposes {
                assert_eq!(
                    vault.unwrap_secret(other, id(1), &wrapped).is_ok(),
                    other == purpose,
                    "{purpose:?} as {other:?}"
                );
            }
            for at in 0..wrapped.len() {
                let mut damaged = wrapped.clone();
                damaged[at] ^= 1;
                assert!(vault.unwrap_secret(purpose, id(1), &damaged).is_err(), "byte {at}");
                assert!(vault.unwrap_secret(purpose, id(1), &wrapped[..at]).is_err(), "cut at {at}");
            }
            assert!(!wrapped.windows(8).any(|window| window == &secret[..8]));
            assert_ne!(wrapped, vault.wrap(purpose, id(1), &secret).unwrap(), "the same secret never wraps alike");
        }
    }

    #[test]
    fn release_keys_of_earlier_versions_still_unwrap() {
        use chacha20poly1305::aead::{Aead, Payload};
        use chacha20poly1305::{KeyInit, XChaCha20Poly1305};

        let vault = Vault::in_memory().unwrap();
        let ciphertext = XChaCha20Poly1305::new(vault.wrapping.as_slice().into())
            .encrypt(&[9; 24].into(), Payload { msg: &[5; 32], aad: id(1).as_bytes() })
            .unwrap();
        let wrapped = [&[1], &[9; 24][..], &ciphertext].concat();
        assert_eq!(*vault.unwrap_secret(Purpose::Release, id(1), &wrapped).unwrap(), [5; 32]);
    }

    #[test]
    fn a_rotation_wraps_anew_and_hashes_alike() {
        let old = Vault::in_memory().unwrap();
        let master = MasterKey::fresh().unwrap();
        let new = old.rotated(&master);
        assert_ne!(old.fingerprint(), new.fingerprint());
        assert_eq!(old.content_hasher("a").finish(), new.content_hasher("a").finish());
        // as a process that starts with the new key knows it
        let restarted = Vault::derived(&master).with_hashing_key(&new.wrapped_hashing_key().unwrap()).unwrap();
        assert_eq!(old.content_hasher("a").finish(), restarted.content_hasher("a").finish());
        let secret = Vault::fresh_secret().unwrap();
        let wrapped = old.wrap(Purpose::Dataset, id(1), &secret).unwrap();
        assert!(new.unwrap_secret(Purpose::Dataset, id(1), &wrapped).is_err());
        let wrapped = old.rewrap(&new, Purpose::Dataset, id(1), &wrapped).unwrap();
        assert_eq!(*restarted.unwrap_secret(Purpose::Dataset, id(1), &wrapped).unwrap(), *secret);
        assert!(old.unwrap_secret(Purpose::Dataset, id(1), &wrapped).is_err());
        assert!(old.rewrap(&new, Purpose::Dataset, id(1), &wrapped).is_err());
    }

    #[test]
    fn contents_hash_by_key_and_tenant() {
        let hash = |vault: &Vault, tenant: &str, pieces: &[&[u8]]| {
            let mut hasher = vault.content_hasher(tenant);
            pieces.iter().for_each(|piece| hasher.update(piece));
            hasher.finish()
        };
        let (vault, other) = (Vault::in_memory().unwrap(), Vault::in_memory().unwrap());
        assert_eq!(hash(&vault, "a", &[b"ab", b"c"]), hash(&vault, "a", &[b"abc"]));
        assert_ne!(hash(&vault, "a", &[b"abc"]), hash(&vault, "b", &[b"abc"]));
        assert_ne!(hash(&vault, "a", &[b"abc"]), hash(&other, "a", &[b"abc"]));
        for length in [0, 3, 54, 55, 56, 200] {
            let (mut hasher, text) = (vault.content_hasher("a"), vec![b'x'; length]);
            assert_eq!(hasher.hash(b"y", &text), hash(&vault, "a", &[b"y", &text]), "{length} bytes");
            hasher.update(b"before");
            assert_eq!(hasher.hash(b"y", &text), hash(&vault, "a", &[b"before", b"y", &text]), "{length} bytes");
        }
    }
}
