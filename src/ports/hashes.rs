//! Keyed hashes of persons and rows, under a secret outside the store.

use crate::people::{KeyedHash, KeyedHasher, labelled};
use crate::vault::ContentHasher;

impl KeyedHasher for ContentHasher {
    fn keyed(&self, label: &str, texts: &[&[u8]]) -> KeyedHash {
        let mut hash = self.clone();
        hash.update(b"people\0");
        hash.update(&labelled(label, texts));
        KeyedHash(hash.finish().iter().take(16).fold(0, |word, &byte| word << 8 | u128::from(byte)))
    }
}
