//! Keyed hashes of persons and rows, under a secret outside the store.

use crate::people::{KeyedHash, KeyedHasher};
use crate::vault::ContentHasher;

impl KeyedHasher for ContentHasher {
    fn keyed_bytes(&self, bytes: &[u8]) -> KeyedHash {
        let mut hash = self.clone();
        hash.update(b"people\0");
        hash.update(bytes);
        KeyedHash(hash.finish().iter().take(16).fold(0, |word, &byte| word << 8 | u128::from(byte)))
    }
}
