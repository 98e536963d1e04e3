//! The release key, labelled random streams and secret permutations.
//!
//! A release has one secret key of 256 bits. Each use derives its own ChaCha20 stream [RFC 8439] from the key and a
//! label. So the uses are independent of each other, and a retry by the same software gives the same bytes
//! (docs/security/threat-model.md#randomness).

use hmac::{Hmac, KeyInit, Mac};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;
use sha2::Sha256;
use zeroize::Zeroizing;

/// The secret key of one release.
///
/// Never shown, logged or serialized.
#[derive(Clone)]
pub struct ReleaseKey(Zeroizing<[u8; 32]>);

impl ReleaseKey {
    /// A key from known bytes: an unwrapped key, or a key of a test.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// Draws a key from the operating system.
    ///
    /// # Errors
    /// When the operating system has no randomness.
    pub fn draw() -> Result<Self, getrandom::Error> {
        let mut bytes = Zeroizing::new([0; 32]);
        getrandom::fill(&mut *bytes)?;
        Ok(Self(bytes))
    }

    /// The bytes of the key, for wrapping.
    #[must_use]
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// Source of the randomness of a release.
#[derive(Clone)]
pub enum RandomStreams {
    /// The streams of a key.
    Keyed(ReleaseKey),
    /// The identity: every permutation is the identity and every choice the first.
    ///
    /// Only for golden vectors.
    Identity,
}

/// Random stream of one use.
pub enum RandomStream {
    /// The stream of a key and a label.
    Keyed(Box<ChaCha20Rng>),
    /// The stream of the identity.
    Identity,
}

impl RandomStreams {
    /// The stream of one use.
    ///
    /// Different labels give independent streams.
    #[must_use]
    pub fn stream(&self, label: &str) -> RandomStream {
        match self {
            Self::Identity => RandomStream::Identity,
            Self::Keyed(_) => RandomStream::Keyed(Box::new(ChaCha20Rng::from_seed(*self.derived(label)))),
        }
    }

    /// A key of one use; zeros of the identity.
    #[must_use]
    pub fn derived(&self, label: &str) -> Zeroizing<[u8; 32]> {
        let Self::Keyed(key) = self else { return Zeroizing::new([0; 32]) };
        // Unwrap safety: HMAC takes keys of any length.
        #[expect(clippy::unwrap_used)]
        let mut derive = Hmac::<Sha256>::new_from_slice(key.bytes()).unwrap();
        derive.update(b"guardian stream 1\0");
        derive.update(label.as_bytes());
        Zeroizing::new(derive.finalize().into_bytes().into())
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
    fn stream_same_key_and_label_is_equal() {
        let draw = |byte, label| streams(byte).stream(label).permutation(50);
        assert_eq!(draw(1, "rows"), draw(1, "rows"));
        assert_ne!(draw(1, "rows"), draw(1, "labels"));
        assert_ne!(draw(1, "rows"), draw(2, "rows"));
    }

    #[test]
    fn permutation_of_identity_is_identity() {
        let mut stream = RandomStreams::Identity.stream("rows");
        assert_eq!(stream.permutation(4), [0, 1, 2, 3]);
        assert_eq!(stream.below(9), 0);
    }
}
