//! Bearer tokens: shown once, stored as hashes.
//!
//! A token is `gk_ID_SECRET` with the id of its key and 256 random bits. Such a secret needs no slow hash. Hashes are compared in
//! constant time.

use std::fmt;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use uuid::Uuid;
use zeroize::Zeroizing;

const PREFIX: &str = "gk";

/// A bearer token; its `Debug` hides the secret.
pub struct Token {
    id: Uuid,
    secret: Zeroizing<[u8; 32]>,
}

/// The hash of a token's secret.
#[derive(Clone, Copy, Eq)]
pub struct TokenHash([u8; 32]);

impl Token {
    /// A new token for the key `id`.
    ///
    /// # Errors
    /// If the operating system provides no randomness.
    pub fn draw(id: Uuid) -> Result<Self, getrandom::Error> {
        let mut secret = Zeroizing::new([0; 32]);
        getrandom::fill(&mut *secret)?;
        Ok(Self { id, secret })
    }

    /// Whether `text` has the form of a key's token rather than an issuer's.
    #[must_use]
    pub fn is_meant(text: &str) -> bool {
        text.strip_prefix(PREFIX).is_some_and(|rest| rest.starts_with('_'))
    }

    /// Parses a token.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut members = text.splitn(3, '_');
        let (prefix, id, secret) = (members.next()?, members.next()?, members.next()?);
        if prefix != PREFIX || id.len() != 32 || secret.len() != 64 {
            return None;
        }
        let mut bytes = Zeroizing::new([0; 32]);
        for (byte, pair) in bytes.iter_mut().zip(secret.as_bytes().chunks(2)) {
            let digit = |at: usize| pair.get(at).and_then(|&c| char::from(c).to_digit(16)).map(|digit| digit as u8);
            *byte = digit(0)? << 4 | digit(1)?;
        }
        Some(Self { id: Uuid::try_parse(id).ok()?, secret: bytes })
    }

    /// The id of its key.
    #[must_use]
    pub const fn id(&self) -> Uuid {
        self.id
    }

    /// The stored hash of the secret.
    #[must_use]
    pub fn hash(&self) -> TokenHash {
        TokenHash(Sha256::digest(*self.secret).into())
    }

    /// The token as text, shown once.
    #[must_use]
    pub fn reveal(&self) -> Zeroizing<String> {
        let mut text = Zeroizing::new(format!("{PREFIX}_{}_", self.id.simple()));
        for byte in self.secret.iter() {
            text.push(char::from_digit(u32::from(byte >> 4), 16).unwrap_or_default());
            text.push(char::from_digit(u32::from(byte & 15), 16).unwrap_or_default());
        }
        text
    }
}

impl TokenHash {
    /// The hash with the stored `bytes`.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Compares a token of an unknown key in the time of a known one; always false.
    #[must_use]
    pub fn matches_unknown_key(token: &Token) -> bool {
        std::hint::black_box(Self([0; 32]) == token.hash())
    }

    /// The bytes to store.
    #[must_use]
    pub const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl PartialEq for TokenHash {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_round_trips_through_its_text_only() {
        let token = Token::draw(Uuid::now_v7()).unwrap();
        let text = token.reveal();
        let again = Token::parse(&text).unwrap();
        assert_eq!(again.id(), token.id());
        assert_eq!(again.hash(), token.hash());
        assert_ne!(Token::draw(token.id()).unwrap().hash(), token.hash());
        for other in ["", "gk", "gk_", "gk_0_0", &text[1..], &format!("{}0", *text), &text.replace("gk", "kg")] {
            assert!(Token::parse(other).is_none(), "{other}");
        }
    }
}
