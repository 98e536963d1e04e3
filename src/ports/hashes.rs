//! Keyed hashes of persons and rows, under a secret outside the store.

use crate::people::{KeyedHash, KeyedHasher};
use crate::vault::ContentHasher;

impl KeyedHasher for ContentHasher {
    fn keyed_bytes(&self, bytes: &[u8]) -> KeyedHash {
        let hash = self.hash(b"people\0", bytes);
        KeyedHash::from_bytes(std::array::from_fn(|at| hash[at]))
    }
}
