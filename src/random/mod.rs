//! The release key, labelled streams and secret permutations.
//!
//! One key of 256 bits is drawn per release. Every use derives its own ChaCha20 stream from the key and a label, so that
//! uses are independent of each other, and a retry by the same software gives the same bytes (`PRIVACY`, the release key).

use hmac::{Hmac, KeyInit, Mac};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;
use sha2::Sha256;
use zeroize::Zeroizing;

/// The secret of one release. Never shown, logged or serialized.
#[derive(Clone)]
pub struct ReleaseKey(Zeroizing<[u8; 32]>);

impl ReleaseKey {
    /// A key from known bytes: an unwrapped one, or a test's.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// A new key from the operating system.
    ///
    /// # Errors
    /// When the operating system has no randomness to give.
    pub fn draw() -> Result<Self, getrandom::Error> {
        let mut bytes = Zeroizing::new([0; 32]);
        getrandom::fill(&mut *bytes)?;
        Ok(Self(bytes))
    }

    /// The bytes, to be wrapped.
    #[must_use]
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// Where the randomness of a release comes from.
#[derive(Clone)]
pub enum RandomStreams {
    /// Streams of a key.
    Keyed(ReleaseKey),
    /// The identity: no permutation moves anything and every choice is the first. For golden vectors only.
    Identity,
}

/// The randomness of one use.
pub enum RandomStream {
    /// Of a key and a label.
    Keyed(Box<ChaCha20Rng>),
    /// Of the identity.
    Identity,
}

impl RandomStreams {
    /// The stream of one use. Different labels give independent streams.
    #[must_use]
    pub fn stream(&self, label: &str) -> RandomStream {
        match self {
            Self::Identity => RandomStream::Identity,
            Self::Keyed(key) => {
                // Unwrap safety: HMAC takes keys of any length.
                #[expect(clippy::unwrap_used)]
                let mut derive = Hmac::<Sha256>::new_from_slice(key.bytes()).unwrap();
                derive.update(b"guardian stream 1\0");
                derive.update(label.as_bytes());
                let seed: Zeroizing<[u8; 32]> = Zeroizing::new(derive.finalize().into_bytes().into());
                RandomStream::Keyed(Box::new(ChaCha20Rng::from_seed(*seed)))
            }
        }
    }
}

impl RandomStream {
    /// Permutes `items` uniformly.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        if let Self::Keyed(rng) = self {
            items.shuffle(rng);
        }
    }

    /// A uniform index below `bound`.
    ///
    /// # Panics
    /// When `bound` is 0.
    pub fn below(&mut self, bound: u32) -> u32 {
        assert!(bound > 0, "nothing to choose from");
        match self {
            Self::Keyed(rng) => rng.random_range(0..bound),
            Self::Identity => 0,
        }
    }

    /// A uniform permutation of `0..len`.
    pub fn permutation(&mut self, len: u32) -> Vec<u32> {
        let mut order: Vec<u32> = (0..len).collect();
        self.shuffle(&mut order);
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn streams(byte: u8) -> RandomStreams {
        RandomStreams::Keyed(ReleaseKey::from_bytes([byte; 32]))
    }

    #[test]
    fn a_stream_is_a_function_of_key_and_label() {
        let draw = |byte, label| streams(byte).stream(label).permutation(50);
        assert_eq!(draw(1, "rows"), draw(1, "rows"));
        assert_ne!(draw(1, "rows"), draw(1, "labels"));
        assert_ne!(draw(1, "rows"), draw(2, "rows"));
    }

    #[test]
    fn the_identity_moves_nothing() {
        let mut stream = RandomStreams::Identity.stream("rows");
        assert_eq!(stream.permutation(4), [0, 1, 2, 3]);
        assert_eq!(stream.below(9), 0);
    }
}
