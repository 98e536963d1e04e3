//! Keyed hashes of messages that fit into one block.

use sha2::block_api::compress256;

use super::secret::Secret;

/// The first state of SHA-256 (FIPS 180-4, section 5.3.3).
const FIRST_STATE: [u32; 8] =
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];

/// Bytes of a block, and those behind a message: a bit, and its length.
const BLOCK_BYTES: usize = 64;
const LENGTH_BYTES: usize = 8;

const HASH_BYTES: usize = 32;

/// HMAC-SHA-256 (RFC 2104) of short messages.
///
/// Tables have millions of them. Their two blocks are laid out here: the incremental hash copies both its states and its
/// buffer for each message, which takes as long as the blocks do.
#[derive(Clone)]
pub(super) struct ShortMac {
    /// The states behind the block of the key, for the message and for its hash.
    inner: [u32; 8],
    outer: [u32; 8],
}

impl ShortMac {
    pub(super) fn new(key: &Secret) -> Self {
        let behind = |pad: u8| {
            let (mut block, mut state) = ([pad; BLOCK_BYTES], FIRST_STATE);
            block.iter_mut().zip(key.iter()).for_each(|(byte, key)| *byte ^= key);
            compress256(&mut state, &[block]);
            state
        };
        Self { inner: behind(0x36), outer: behind(0x5c) }
    }

    /// The hash of two texts behind each other; `None` of texts that a block does not hold.
    pub(super) fn hash(&self, label: &[u8], text: &[u8]) -> Option<[u8; 32]> {
        let mut block = [0; BLOCK_BYTES];
        let end = label.len() + text.len();
        if end >= BLOCK_BYTES - LENGTH_BYTES {
            return None;
        }
        block[..label.len()].copy_from_slice(label);
        block[label.len()..end].copy_from_slice(text);
        let mut hash = [0; HASH_BYTES];
        last_block(self.inner, &mut block, end, &mut hash);
        block = [0; BLOCK_BYTES];
        block[..HASH_BYTES].copy_from_slice(&hash);
        last_block(self.outer, &mut block, HASH_BYTES, &mut hash);
        Some(hash)
    }
}

/// The hash of a message whose second and last block is this one, of which it has some bytes.
#[inline]
fn last_block(mut state: [u32; 8], block: &mut [u8; BLOCK_BYTES], end: usize, hash: &mut [u8; HASH_BYTES]) {
    block[end] = 0x80;
    let bits = (BLOCK_BYTES + end) as u64 * 8;
    block[BLOCK_BYTES - LENGTH_BYTES..].copy_from_slice(&bits.to_be_bytes());
    compress256(&mut state, std::slice::from_ref(block));
    hash.as_chunks_mut().0.iter_mut().zip(state).for_each(|(bytes, word)| *bytes = word.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use hmac::{Hmac, KeyInit, Mac};
    use sha2::Sha256;
    use zeroize::Zeroizing;

    use super::*;

    #[test]
    fn hashes_are_those_of_the_incremental_hash() {
        let text: Vec<u8> = (0..70_u8).map(|at| at.wrapping_mul(37)).collect();
        for key in [[0; 32], [0xa5; 32], std::array::from_fn(|at| at as u8)] {
            let short = ShortMac::new(&Zeroizing::new(key));
            for length in 0..text.len() {
                let mut incremental = Hmac::<Sha256>::new_from_slice(&key).unwrap();
                incremental.update(&text[..length]);
                let expected: [u8; 32] = incremental.finalize().into_bytes().into();
                let (label, rest) = text[..length].split_at(length / 3);
                assert_eq!(short.hash(label, rest), (length < 56).then_some(expected), "{length} bytes");
            }
        }
    }
}
