//! Keys. One master key, kept outside the store, wraps every other: the release keys of jobs that have not ended, the key of each
//! dataset, under which its originals are encrypted, and the one that keys the hashes of contents. Whoever has the store alone can
//! neither read an original, nor redo a release's drawing, nor test whether a guessed table was uploaded.
//!
//! The master key can be changed: what it wraps is wrapped anew, and what is encrypted or hashed stays as it is.

mod ciphertext;
mod file;
mod master;

use hmac::{Hmac, Mac};
use sha2::Sha256;
use uuid::Uuid;
use zeroize::Zeroizing;

pub use ciphertext::{Ciphertext, CiphertextContext, DataKey};
pub use master::MasterKey;

/// A 256-bit secret, wiped when dropped.
pub type Secret = Zeroizing<[u8; 32]>;

/// What a wrapped secret is for. It opens for nothing else.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// To draw the release of a job.
    Release,
    /// To encrypt a dataset.
    Dataset,
    /// To hash contents; there is one.
    Hashing,
}

impl Purpose {
    /// What the wrapping covers beside the secret. Ids have one length, so that two labels never cover the same bytes.
    fn context_bytes(self, id: Uuid) -> Vec<u8> {
        let label: &[u8] = match self {
            // release keys were wrapped before anything else was: those of jobs that wait must open still
            Self::Release => b"",
            Self::Dataset => b"dataset key",
            Self::Hashing => b"hashing key",
        };
        [label, id.as_bytes()].concat()
    }
}

/// What can go wrong with keys. Never says anything of a key.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// The key file or its folder cannot be made or read.
    #[error("the key file {path} cannot be used")]
    File {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The key file is not 32 bytes long.
    #[error("the key file {path} does not hold a key of 32 bytes")]
    NotAKey {
        /// The file.
        path: String,
    },
    /// Others than the owner may read the key file.
    #[error("the key file {path} is open to others; its mode must be 0600")]
    Exposed {
        /// The file.
        path: String,
    },
    /// The operating system gave no randomness.
    #[error("the operating system gave no randomness")]
    Randomness,
    /// The master key's digits are not 64 hexadecimal ones.
    #[error("{name} is not a key: it must be 64 hexadecimal digits")]
    NotDigits {
        /// Where they stand.
        name: &'static str,
    },
    /// A wrapped secret was damaged, belongs to something else, or was wrapped under another master key.
    #[error(
        "a wrapped key cannot be opened: it was damaged, or wrapped under another master key; every process on a store needs \
         the same master key"
    )]
    Unwrap,
    /// Sealed bytes were damaged, stand in another place than theirs, or are another dataset's.
    #[error("encrypted data cannot be opened: it was damaged, or belongs elsewhere")]
    Damaged,
}

/// Wraps secrets and keys hashes. Has no `Debug` and wipes its keys when dropped.
pub struct Vault {
    wrapping: Secret,
    hashing: Secret,
    fingerprint: [u8; 32],
}

impl Vault {
    /// The vault of a master key and a hashing key of its own, new contents' hashes with it.
    ///
    /// # Errors
    /// When the system gives no randomness.
    pub fn fresh(master: &MasterKey) -> Result<Self, VaultError> {
        Ok(Self::new(master, Self::fresh_secret()?))
    }

    /// The vault of a master key on a store from the time when the hashing key was derived from it.
    #[must_use]
    pub fn derived(master: &MasterKey) -> Self {
        Self::new(master, keyed(&master.0, b"guardian content hashes 1"))
    }

    /// The same with the hashing key that [`Vault::wrapped_hashing_key`] gave, under the same master key.
    ///
    /// # Errors
    /// [`VaultError::Unwrap`]
    pub fn with_hashing_key(self, wrapped: &[u8]) -> Result<Self, VaultError> {
        let hashing = self.unwrap_secret(Purpose::Hashing, Uuid::nil(), wrapped)?;
        Ok(Self { hashing, ..self })
    }

    /// The vault of another master key that hashes contents as this one does.
    #[must_use]
    pub fn rotated(&self, master: &MasterKey) -> Self {
        Self::new(master, self.hashing.clone())
    }

    /// The hashing key, wrapped: a store keeps it, so that contents hash alike under every master key it will have.
    ///
    /// # Errors
    /// When the system gives no randomness for the nonce.
    pub fn wrapped_hashing_key(&self) -> Result<Vec<u8>, VaultError> {
        self.wrap(Purpose::Hashing, Uuid::nil(), &self.hashing)
    }

    /// A vault of a key that nobody keeps, for tests and for work without a store.
    ///
    /// # Errors
    /// When the system gives no randomness.
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

    /// Equal for vaults of one master key, and says nothing else of it: a store keeps it to know its key by.
    #[must_use]
    pub const fn fingerprint(&self) -> &[u8; 32] {
        &self.fingerprint
    }

    /// Equal for vaults that hash equal contents alike, and says nothing else of the hashing key.
    #[must_use]
    pub fn hashing_fingerprint(&self) -> [u8; 32] {
        *keyed(&self.hashing, b"guardian hashing fingerprint 1")
    }

    /// A new secret from the system's randomness, such as the release key of a job.
    ///
    /// # Errors
    /// When the system gives none.
    pub fn fresh_secret() -> Result<Secret, VaultError> {
        let mut secret = Zeroizing::new([0; 32]);
        getrandom::fill(secret.as_mut_slice()).map_err(|_| VaultError::Randomness)?;
        Ok(secret)
    }

    /// Wraps a secret, so that it opens for this purpose and id only.
    ///
    /// # Errors
    /// When the system gives no randomness for the nonce.
    pub fn wrap(&self, purpose: Purpose, id: Uuid, secret: &Secret) -> Result<Vec<u8>, VaultError> {
        ciphertext::encrypt_bytes(&self.wrapping, &purpose.context_bytes(id), secret.as_slice())
    }

    /// Opens what [`Vault::wrap`] wrapped for the same purpose and id.
    ///
    /// # Errors
    /// When it was damaged, belongs to something else, or was wrapped under another master key.
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

    /// Wraps for another vault what was wrapped for this one.
    ///
    /// # Errors
    /// As [`Vault::unwrap_secret`] and [`Vault::wrap`].
    pub fn rewrap(&self, next: &Self, purpose: Purpose, id: Uuid, wrapped: &[u8]) -> Result<Vec<u8>, VaultError> {
        next.wrap(purpose, id, &self.unwrap_secret(purpose, id, wrapped)?)
    }

    /// Draws the key of a dataset; also gives it wrapped, as a store keeps it.
    ///
    /// # Errors
    /// When the system gives no randomness.
    pub fn fresh_data_key(&self, dataset: Uuid) -> Result<(DataKey, Vec<u8>), VaultError> {
        let secret = Self::fresh_secret()?;
        let wrapped = self.wrap(Purpose::Dataset, dataset, &secret)?;
        Ok((DataKey::new(dataset, secret), wrapped))
    }

    /// The key of a dataset, from what [`Vault::fresh_data_key`] wrapped.
    ///
    /// # Errors
    /// As [`Vault::unwrap_secret`].
    pub fn data_key(&self, dataset: Uuid, wrapped: &[u8]) -> Result<DataKey, VaultError> {
        Ok(DataKey::new(dataset, self.unwrap_secret(Purpose::Dataset, dataset, wrapped)?))
    }

    /// A hasher of a tenant's contents. Equal contents hash equal for one tenant only.
    #[must_use]
    pub fn content_hasher(&self, tenant: &str) -> ContentHasher {
        ContentHasher(mac(&keyed(&self.hashing, tenant.as_bytes())))
    }
}

/// A keyed hash under way (HMAC-SHA-256).
#[derive(Clone)]
pub struct ContentHasher(Hmac<Sha256>);

impl ContentHasher {
    /// Adds bytes. Where one value ends and the next begins is for the caller to mark.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The hash of all bytes added.
    #[must_use]
    pub fn finish(self) -> [u8; 32] {
        self.0.finalize().into_bytes().into()
    }
}

fn mac(key: &Secret) -> Hmac<Sha256> {
    #[expect(clippy::unwrap_used)]
    // Unwrap safety: HMAC takes keys of every length
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
    fn a_wrapped_secret_opens_for_its_purpose_and_id_only() {
        let vault = Vault::in_memory().unwrap();
        let secret = Vault::fresh_secret().unwrap();
        let purposes = [Purpose::Release, Purpose::Dataset, Purpose::Hashing];
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
    fn release_keys_that_were_wrapped_before_other_purposes_open_still() {
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
    }
}
