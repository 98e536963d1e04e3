//! Keyed hashes, and sums of them.
//!
//! Who holds the store holds no key. What is made of keyed hashes here needs no other key, as its input cannot be
//! guessed.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::block_api::compress256;
use sha2::{Digest, Sha256};

/// A keyed hash, cut to sixteen bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyedHash(pub(crate) u128);

impl KeyedHash {
    /// From its bytes, the highest first.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(u128::from_be_bytes(bytes))
    }

    /// Its bytes, the highest first: they sort as the hashes do.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }
}

impl fmt::Debug for KeyedHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl Serialize for KeyedHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:032x}", self.0))
    }
}

impl<'de> Deserialize<'de> for KeyedHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let digits = String::deserialize(deserializer)?;
        u128::from_str_radix(&digits, 16).map(Self).map_err(serde::de::Error::custom)
    }
}

/// The keyed hash of a tenant. Its key is outside the store.
pub trait KeyedHasher: Sync {
    /// The first 16 bytes of the keyed hash of some bytes.
    fn keyed_bytes(&self, bytes: &[u8]) -> KeyedHash;

    /// The same of the label, a zero byte, and each text behind its length in four bytes.
    fn keyed(&self, label: &str, texts: &[&[u8]]) -> KeyedHash {
        self.keyed_bytes(&labelled(label, texts))
    }
}

/// The bytes that [`KeyedHasher::keyed`] hashes.
pub(crate) fn labelled(label: &str, texts: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(label.len() + 1 + texts.iter().map(|text| text.len() + 4).sum::<usize>());
    bytes.extend_from_slice(label.as_bytes());
    bytes.push(0);
    texts.iter().for_each(|text| put_text(&mut bytes, text));
    bytes
}

/// Adds a text to the bytes of [`labelled`].
pub(super) fn put_text(bytes: &mut Vec<u8>, text: &[u8]) {
    bytes.extend_from_slice(&(text.len() as u32).to_be_bytes());
    bytes.extend_from_slice(text);
}

/// A hash of keyed hashes.
#[derive(Clone)]
pub(super) struct HashOfHashes(Sha256);

impl HashOfHashes {
    pub(super) fn new(label: &[u8]) -> Self {
        Self(Sha256::new_with_prefix(label))
    }

    pub(super) fn update(&mut self, hash: u128) {
        self.0.update(hash.to_be_bytes());
    }

    pub(super) fn finish(self) -> u128 {
        let bytes: [u8; 32] = self.0.finalize().into();
        bytes[..16].iter().fold(0, |word, &byte| word << 8 | u128::from(byte))
    }
}

/// The first state of SHA-256 (FIPS 180-4, section 5.3.3).
const FIRST_STATE: [u32; 8] =
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];

/// Bytes of a block of SHA-256, and those behind a message: a bit, and its length.
const BLOCK_BYTES: usize = 64;
const LENGTH_BYTES: usize = 8;

/// Hashes of multisets of keyed hashes, given as their sums, behind one label.
///
/// Sums of hashes under one key are equal by chance alone, unless the multisets are. They need no memory and no order. Label and sum
/// are one block of SHA-256, which is laid out once: tables have as many of them as rows and columns.
#[derive(Clone)]
pub(super) struct SumHasher {
    block: [u8; BLOCK_BYTES],
    place: usize,
}

impl SumHasher {
    /// Behind a label of at most 39 bytes.
    pub(super) fn new(label: &[u8]) -> Self {
        let (place, end) = (label.len(), label.len() + size_of::<u128>());
        let mut block = [0; BLOCK_BYTES];
        block[..place].copy_from_slice(label);
        block[end] = 0x80;
        block[BLOCK_BYTES - LENGTH_BYTES..].copy_from_slice(&(end as u64 * 8).to_be_bytes());
        Self { block, place }
    }

    pub(super) fn hash(&self, sum: u128) -> u128 {
        let (mut block, mut state) = (self.block, FIRST_STATE);
        block[self.place..self.place + size_of::<u128>()].copy_from_slice(&sum.to_be_bytes());
        compress256(&mut state, &[block]);
        state[..4].iter().fold(0, |hash, &word| hash << 32 | u128::from(word))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use hmac::{Hmac, KeyInit, Mac};

    use super::*;

    /// The tenant of the vectors.
    #[derive(Clone, Copy)]
    pub(in crate::people) struct GoldenTenant;

    impl KeyedHasher for GoldenTenant {
        fn keyed_bytes(&self, bytes: &[u8]) -> KeyedHash {
            let mut mac = Hmac::<Sha256>::new_from_slice(b"golden").unwrap();
            mac.update(bytes);
            let bytes: [u8; 32] = mac.finalize().into_bytes().into();
            KeyedHash::from_bytes(*bytes.first_chunk().unwrap())
        }
    }

    #[test]
    fn a_hash_of_a_sum_is_that_of_its_bytes() {
        for (label, sum) in [(&b""[..], 0), (b"row\0", u128::MAX), (b"row\0", 1 << 77 | 5), (&[7; 39], 12)] {
            let mut hash = HashOfHashes::new(label);
            hash.update(sum);
            assert_eq!(SumHasher::new(label).hash(sum), hash.finish(), "{label:?}");
        }
    }

    #[test]
    fn lengths_keep_texts_apart() {
        let keyed = |texts: &[&[u8]]| GoldenTenant.keyed("person", texts);
        assert_ne!(keyed(&[b"ab", b"c"]), keyed(&[b"a", b"bc"]));
        assert_ne!(keyed(&[b"ab"]), GoldenTenant.keyed("cell", &[b"ab"]));
        assert_eq!(KeyedHash::from_bytes(keyed(&[b"ab"]).to_bytes()), keyed(&[b"ab"]));
    }
}
