//! Keyed hashes, and sums of them.
//!
//! Who holds the store holds no key. What is made of keyed hashes here needs no other key, as its input cannot be
//! guessed.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
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
pub trait KeyedHasher {
    /// The first 16 bytes of the keyed hash of the label, a zero byte, and each text behind its length in four bytes.
    fn keyed(&self, label: &str, texts: &[&[u8]]) -> KeyedHash;
}

/// The bytes that [`KeyedHasher::keyed`] hashes.
pub(crate) fn labelled(label: &str, texts: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(label.len() + 1 + texts.iter().map(|text| text.len() + 4).sum::<usize>());
    bytes.extend_from_slice(label.as_bytes());
    bytes.push(0);
    for text in texts {
        bytes.extend_from_slice(&(text.len() as u32).to_be_bytes());
        bytes.extend_from_slice(text);
    }
    bytes
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

/// The hash of a multiset of keyed hashes, given as their sum.
///
/// Sums of hashes under one key are equal by chance alone, unless the multisets are. They need no memory and no order.
pub(super) fn hash_of_sum(label: &[u8], sum: u128) -> u128 {
    let mut hash = HashOfHashes::new(label);
    hash.update(sum);
    hash.finish()
}

#[cfg(test)]
pub(super) mod tests {
    use hmac::{Hmac, KeyInit, Mac};

    use super::*;

    /// The tenant of the vectors.
    #[derive(Clone, Copy)]
    pub(in crate::people) struct GoldenTenant;

    impl KeyedHasher for GoldenTenant {
        fn keyed(&self, label: &str, texts: &[&[u8]]) -> KeyedHash {
            let mut mac = Hmac::<Sha256>::new_from_slice(b"golden").unwrap();
            mac.update(&labelled(label, texts));
            let bytes: [u8; 32] = mac.finalize().into_bytes().into();
            KeyedHash::from_bytes(*bytes.first_chunk().unwrap())
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
