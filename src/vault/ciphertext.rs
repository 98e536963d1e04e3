//! Encryption under the key of a dataset or of a chain.

use std::fmt;

use chacha20poly1305::aead::AeadInPlace;
use chacha20poly1305::{KeyInit, Tag, XChaCha20Poly1305, XNonce};
use uuid::Uuid;

use super::error::VaultError;
use super::secret::{Secret, SecretBytes};

/// The version byte of the layout: version, nonce, ciphertext, tag.
const CIPHERTEXT_LAYOUT: u8 = 1;
const NONCE_BYTES: usize = 24;
const TAG_BYTES: usize = 16;
/// The bytes before the ciphertext.
const HEAD_BYTES: usize = 1 + NONCE_BYTES;

/// The role of a ciphertext within its dataset or chain; decryption requires the same role.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CiphertextContext {
    /// One column of a chunk.
    Chunk {
        /// The index of the chunk.
        chunk: u32,
        /// The index of the column.
        column: u32,
    },
    /// The profiles of the columns: names, kinds and counts.
    Profiles,
    /// The internal report of a release.
    InternalReport {
        /// The release.
        release: Uuid,
    },
    /// A piece of a state of a chain.
    ChainPiece {
        /// The job that wrote the state.
        job: Uuid,
        /// Its attempt.
        attempt: u32,
        /// The index of the piece.
        piece: u32,
        /// Whether the state ends with it: a state without its end does not open.
        is_last: bool,
    },
}

impl CiphertextContext {
    /// The associated data of the ciphertext, unique per role and owner, since the tag fixes its length.
    fn context_bytes(self, owner: Uuid) -> Vec<u8> {
        let mut covered = owner.as_bytes().to_vec();
        match self {
            Self::Chunk { chunk, column } => {
                covered.push(b'c');
                covered.extend_from_slice(&chunk.to_le_bytes());
                covered.extend_from_slice(&column.to_le_bytes());
            }
            Self::Profiles => covered.push(b'p'),
            Self::InternalReport { release } => {
                covered.push(b'r');
                covered.extend_from_slice(release.as_bytes());
            }
            Self::ChainPiece { job, attempt, piece, is_last } => {
                covered.push(b's');
                covered.extend_from_slice(job.as_bytes());
                covered.extend_from_slice(&attempt.to_le_bytes());
                covered.extend_from_slice(&piece.to_le_bytes());
                covered.push(u8::from(is_last));
            }
        }
        covered
    }
}

/// Encrypted bytes. Only a [`DataKey`] creates them; a store returns them unchanged.
#[derive(Clone, PartialEq, Eq)]
pub struct Ciphertext(Vec<u8>);

impl Ciphertext {
    /// Bytes that a store read back. Only [`DataKey::encrypt`] makes new ciphertexts.
    pub(crate) const fn from_stored(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// The bytes for a store.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Ciphertext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ciphertext({} bytes)", self.0.len())
    }
}

/// The key of a dataset or of a chain, without `Debug`, wiped when dropped.
pub struct DataKey {
    owner: Uuid,
    secret: Secret,
}

impl DataKey {
    pub(super) const fn new(owner: Uuid, secret: Secret) -> Self {
        Self { owner, secret }
    }

    /// Encrypts bytes for a role within the dataset or chain.
    ///
    /// # Errors
    /// If the system provides no randomness for the nonce.
    pub fn encrypt(&self, place: CiphertextContext, plain: &[u8]) -> Result<Ciphertext, VaultError> {
        Ok(Ciphertext(encrypt_bytes(&self.secret, &place.context_bytes(self.owner), plain)?))
    }

    /// Decrypts a ciphertext of the same role.
    ///
    /// # Errors
    /// [`VaultError::Damaged`] for any other ciphertext.
    pub fn decrypt(&self, place: CiphertextContext, ciphertext: &Ciphertext) -> Result<Vec<u8>, VaultError> {
        decrypt_bytes(&self.secret, &place.context_bytes(self.owner), &ciphertext.0)
    }
}

/// Encrypts bytes with a fresh nonce; the tag also covers `covered`.
pub(super) fn encrypt_bytes(key: &Secret, covered: &[u8], plain: &[u8]) -> Result<Vec<u8>, VaultError> {
    let mut ciphertext = Vec::with_capacity(HEAD_BYTES + plain.len() + TAG_BYTES);
    ciphertext.resize(HEAD_BYTES, 0);
    ciphertext.extend_from_slice(plain);
    encrypt_behind_head(key, covered, &mut ciphertext)?;
    Ok(ciphertext)
}

/// Encrypts bytes behind some others as [`encrypt_bytes`] does. Afterwards they are nowhere in plain.
pub(super) fn encrypt_in_place(
    key: &Secret,
    covered: &[u8],
    first: &[u8],
    plain: SecretBytes,
) -> Result<Vec<u8>, VaultError> {
    let mut bytes = plain.into_bytes_with_room(HEAD_BYTES + first.len() + TAG_BYTES);
    bytes.splice(..0, [0; HEAD_BYTES].iter().chain(first).copied());
    if let Err(error) = encrypt_behind_head(key, covered, &mut bytes) {
        drop(SecretBytes::from(bytes));
        return Err(error);
    }
    Ok(bytes)
}

/// Encrypts what stands behind the room of the head, and adds the tag.
fn encrypt_behind_head(key: &Secret, covered: &[u8], ciphertext: &mut Vec<u8>) -> Result<(), VaultError> {
    let (head, body) = ciphertext.split_first_chunk_mut::<HEAD_BYTES>().ok_or(VaultError::Damaged)?;
    let (layout, nonce) = head.split_at_mut(1);
    layout.fill(CIPHERTEXT_LAYOUT);
    getrandom::fill(nonce).map_err(|_| VaultError::Randomness)?;
    let nonce = *XNonce::from_slice(nonce);
    let tag = cipher(key).encrypt_in_place_detached(&nonce, covered, body).map_err(|_| VaultError::Damaged)?;
    ciphertext.extend_from_slice(&tag);
    Ok(())
}

/// Decrypts the output of [`encrypt_bytes`].
pub(super) fn decrypt_bytes(key: &Secret, covered: &[u8], ciphertext: &[u8]) -> Result<Vec<u8>, VaultError> {
    let (head, rest) = ciphertext.split_first_chunk::<HEAD_BYTES>().ok_or(VaultError::Damaged)?;
    let (body, tag) = rest.split_last_chunk::<TAG_BYTES>().ok_or(VaultError::Damaged)?;
    let mut plain = body.to_vec();
    decrypt(key, covered, head, &mut plain, tag)?;
    Ok(plain)
}

/// Decrypts the output of [`encrypt_bytes`] where it stands. On errors the bytes are as before.
pub(super) fn decrypt_in_place(key: &Secret, covered: &[u8], ciphertext: &mut Vec<u8>) -> Result<(), VaultError> {
    let (head, rest) = ciphertext.split_first_chunk_mut::<HEAD_BYTES>().ok_or(VaultError::Damaged)?;
    let (body, tag) = rest.split_last_chunk_mut::<TAG_BYTES>().ok_or(VaultError::Damaged)?;
    decrypt(key, covered, head, body, tag)?;
    ciphertext.truncate(ciphertext.len() - TAG_BYTES);
    ciphertext.drain(..HEAD_BYTES);
    Ok(())
}

/// Decrypts a body. The tag is compared first, so that a wrong one leaves the body as it is.
fn decrypt(
    key: &Secret,
    covered: &[u8],
    head: &[u8; HEAD_BYTES],
    body: &mut [u8],
    tag: &[u8; TAG_BYTES],
) -> Result<(), VaultError> {
    let [CIPHERTEXT_LAYOUT, nonce @ ..] = head else { return Err(VaultError::Damaged) };
    let opened = cipher(key).decrypt_in_place_detached(XNonce::from_slice(nonce), covered, body, Tag::from_slice(tag));
    opened.map_err(|_| VaultError::Damaged)
}

/// A cipher that wipes its copy of the key when dropped.
fn cipher(key: &Secret) -> XChaCha20Poly1305 {
    XChaCha20Poly1305::new(key.as_slice().into())
}

#[cfg(test)]
mod tests {
    use super::super::Vault;
    use super::*;

    const PLACE: CiphertextContext = CiphertextContext::Chunk { chunk: 1, column: 2 };

    fn key(dataset: u128) -> DataKey {
        Vault::in_memory().unwrap().fresh_data_key(Uuid::from_u128(dataset)).unwrap().0
    }

    #[test]
    fn damaged_ciphertext_is_rejected() {
        let key = key(7);
        for plain in [&b""[..], b"x", b"a column of values"] {
            let ciphertext = key.encrypt(PLACE, plain).unwrap();
            assert_eq!(key.decrypt(PLACE, &ciphertext).unwrap(), plain);
            assert_eq!(ciphertext.as_bytes().len(), plain.len() + 1 + NONCE_BYTES + TAG_BYTES);
            for at in 0..ciphertext.as_bytes().len() {
                for bit in 0..8 {
                    let mut damaged = ciphertext.clone();
                    damaged.0[at] ^= 1 << bit;
                    assert!(key.decrypt(PLACE, &damaged).is_err(), "bit {bit} of byte {at}");
                }
                assert!(key.decrypt(PLACE, &Ciphertext(ciphertext.0[..at].to_vec())).is_err(), "cut at {at}");
            }
            let longer = Ciphertext([ciphertext.as_bytes(), &[0]].concat());
            assert!(key.decrypt(PLACE, &longer).is_err());
        }
    }

    #[test]
    fn failed_decryption_in_place_leaves_the_bytes() {
        let [key, other] = [(); 2].map(|()| Vault::fresh_secret().unwrap());
        for (first, plain) in [(&b""[..], &b""[..]), (b"first", b""), (b"", b"other"), (b"of ", b"two")] {
            let sealed = encrypt_in_place(&key, b"here", first, plain.to_vec().into()).unwrap();
            let plain = [first, plain].concat();
            let mut bytes = sealed.clone();
            for (key, covered) in [(&other, &b"here"[..]), (&key, b"there")] {
                assert!(decrypt_in_place(key, covered, &mut bytes).is_err());
                assert_eq!(bytes, sealed);
            }
            assert_eq!(decrypt_bytes(&key, b"here", &bytes).unwrap(), plain);
            decrypt_in_place(&key, b"here", &mut bytes).unwrap();
            assert_eq!(bytes, plain);
        }
        assert!(decrypt_in_place(&key, b"here", &mut vec![CIPHERTEXT_LAYOUT; HEAD_BYTES + TAG_BYTES - 1]).is_err());
    }

    #[test]
    fn ciphertext_opens_in_its_context_only() {
        let key = key(7);
        let places = [
            PLACE,
            CiphertextContext::Chunk { chunk: 2, column: 1 },
            CiphertextContext::Chunk { chunk: 1, column: 1 },
            CiphertextContext::Chunk { chunk: 2, column: 2 },
            CiphertextContext::Profiles,
            CiphertextContext::ChainPiece { job: Uuid::nil(), attempt: 1, piece: 2, is_last: false },
            CiphertextContext::ChainPiece { job: Uuid::nil(), attempt: 1, piece: 2, is_last: true },
            CiphertextContext::ChainPiece { job: Uuid::nil(), attempt: 2, piece: 2, is_last: true },
            CiphertextContext::ChainPiece { job: Uuid::nil(), attempt: 1, piece: 1, is_last: true },
            CiphertextContext::ChainPiece { job: Uuid::max(), attempt: 1, piece: 2, is_last: true },
        ];
        for encrypted_for in places {
            let ciphertext = key.encrypt(encrypted_for, b"values").unwrap();
            for place in places {
                assert_eq!(
                    key.decrypt(place, &ciphertext).is_ok(),
                    place == encrypted_for,
                    "{encrypted_for:?} as {place:?}"
                );
            }
        }
    }

    #[test]
    fn another_datasets_key_opens_nothing() {
        let (vault, secret) = (Vault::in_memory().unwrap(), Vault::fresh_secret().unwrap());
        let of = |dataset| DataKey::new(Uuid::from_u128(dataset), secret.clone());
        let ciphertext = of(1).encrypt(PLACE, b"values").unwrap();
        assert!(of(1).decrypt(PLACE, &ciphertext).is_ok());
        assert!(of(2).decrypt(PLACE, &ciphertext).is_err(), "the same secret, but for another dataset");
        let other = vault.fresh_data_key(Uuid::from_u128(1)).unwrap().0;
        assert!(other.decrypt(PLACE, &ciphertext).is_err(), "the same dataset, but another secret");
    }

    #[test]
    fn equal_bytes_have_different_hidden_ciphertexts() {
        let key = key(7);
        let (one, other) = (key.encrypt(PLACE, b"values").unwrap(), key.encrypt(PLACE, b"values").unwrap());
        assert_ne!(one, other);
        assert_eq!(format!("{one:?}"), "Ciphertext(47 bytes)");
        assert!(!one.as_bytes().windows(6).any(|window| window == b"values"));
    }
}
