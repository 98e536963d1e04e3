//! Keys. One master key, kept in a file outside the store, from which a key for each use is derived: one wraps the release
//! keys of jobs that have not ended, one keys the hashes of contents. Whoever has the store alone can neither redo a
//! release's drawing nor test whether a guessed table was uploaded.

mod file;

use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce};
use hmac::{Hmac, Mac};
use sha2::Sha256;
use uuid::Uuid;
use zeroize::Zeroizing;

/// A 256-bit secret, wiped when dropped.
pub type Secret = Zeroizing<[u8; 32]>;

/// The layout of a wrapped secret: this byte, the nonce, the ciphertext with its tag.
const LAYOUT: u8 = 1;
const NONCE: usize = 24;

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
    /// A wrapped secret was damaged, belongs to another job, or was wrapped under another master key.
    #[error(
        "a wrapped key cannot be opened: it was damaged, or wrapped under another master key; every process on a store needs \
         the same key file"
    )]
    Unwrap,
}

/// Wraps secrets and keys hashes. Has no `Debug` and wipes its keys when dropped.
pub struct Vault {
    wrapping: Secret,
    hashing: Secret,
    fingerprint: [u8; 32],
}

impl Vault {
    /// The vault of a key file, which is made (mode 0600, in a folder of mode 0700, from the system's randomness) when there is
    /// none.
    ///
    /// # Errors
    /// When the file cannot be made or read, is not a key, or others may read it.
    pub fn open(path: &std::path::Path) -> Result<Self, VaultError> {
        Ok(Self::from_master(&file::read_or_create(path)?))
    }

    /// A vault of a key that nobody keeps, for tests and for work without a store.
    ///
    /// # Errors
    /// When the system gives no randomness.
    pub fn in_memory() -> Result<Self, VaultError> {
        Ok(Self::from_master(&Self::fresh_secret()?))
    }

    fn from_master(master: &Secret) -> Self {
        Self {
            wrapping: keyed(master, b"guardian wrapping 1"),
            hashing: keyed(master, b"guardian content hashes 1"),
            fingerprint: *keyed(master, b"guardian fingerprint 1"),
        }
    }

    /// Equal for vaults of one master key, and says nothing else of it: a store keeps it to know its key by.
    #[must_use]
    pub const fn fingerprint(&self) -> &[u8; 32] {
        &self.fingerprint
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

    /// Wraps the secret of a job, so that it opens for this job only.
    ///
    /// # Errors
    /// When the system gives no randomness for the nonce.
    pub fn wrap(&self, job: Uuid, secret: &Secret) -> Result<Vec<u8>, VaultError> {
        let mut nonce = [0; NONCE];
        getrandom::fill(&mut nonce).map_err(|_| VaultError::Randomness)?;
        let sealed = self
            .cipher()
            .encrypt(XNonce::from_slice(&nonce), Payload { msg: secret.as_slice(), aad: job.as_bytes() })
            .map_err(|_| VaultError::Unwrap)?;
        Ok([&[LAYOUT], nonce.as_slice(), &sealed].concat())
    }

    /// Opens what [`Vault::wrap`] wrapped for the same job.
    ///
    /// # Errors
    /// When it was damaged, belongs to another job, or was wrapped under another master key.
    pub fn unwrap_secret(&self, job: Uuid, wrapped: &[u8]) -> Result<Secret, VaultError> {
        let (&layout, rest) = wrapped.split_first().ok_or(VaultError::Unwrap)?;
        if layout != LAYOUT || rest.len() < NONCE {
            return Err(VaultError::Unwrap);
        }
        let (nonce, sealed) = rest.split_at(NONCE);
        let opened = self
            .cipher()
            .decrypt(XNonce::from_slice(nonce), Payload { msg: sealed, aad: job.as_bytes() })
            .map(Zeroizing::new)
            .map_err(|_| VaultError::Unwrap)?;
        let mut secret = Zeroizing::new([0; 32]);
        if opened.len() != secret.len() {
            return Err(VaultError::Unwrap);
        }
        secret.copy_from_slice(&opened);
        Ok(secret)
    }

    /// A hasher of a tenant's contents. Equal contents hash equal for one tenant only.
    #[must_use]
    pub fn content_hasher(&self, tenant: &str) -> ContentHasher {
        ContentHasher(mac(&keyed(&self.hashing, tenant.as_bytes())))
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(self.wrapping.as_slice().into())
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

    fn job(n: u128) -> Uuid {
        Uuid::from_u128(n)
    }

    #[test]
    fn a_wrapped_secret_opens_for_its_job_only() {
        let vault = Vault::in_memory().unwrap();
        let secret = Vault::fresh_secret().unwrap();
        let wrapped = vault.wrap(job(1), &secret).unwrap();
        assert_eq!(*vault.unwrap_secret(job(1), &wrapped).unwrap(), *secret);
        assert!(vault.unwrap_secret(job(2), &wrapped).is_err());
        assert!(Vault::in_memory().unwrap().unwrap_secret(job(1), &wrapped).is_err());
        for at in 0..wrapped.len() {
            let mut damaged = wrapped.clone();
            damaged[at] ^= 1;
            assert!(vault.unwrap_secret(job(1), &damaged).is_err(), "byte {at}");
            assert!(vault.unwrap_secret(job(1), &wrapped[..at]).is_err(), "cut at {at}");
        }
        assert!(!wrapped.windows(8).any(|window| window == &secret[..8]));
    }

    #[test]
    fn the_same_secret_never_wraps_alike() {
        let vault = Vault::in_memory().unwrap();
        let secret = Vault::fresh_secret().unwrap();
        assert_ne!(vault.wrap(job(1), &secret).unwrap(), vault.wrap(job(1), &secret).unwrap());
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
