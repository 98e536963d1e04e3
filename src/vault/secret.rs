//! Secrets.

use std::ops::Deref;

use zeroize::{Zeroizing, optimization_barrier};

use super::error::VaultError;

/// A 256-bit secret, wiped when dropped.
pub type Secret = Zeroizing<[u8; 32]>;

/// A long secret, wiped when dropped. [`Zeroizing`] writes each byte by itself.
pub struct SecretBytes(Vec<u8>);

impl SecretBytes {
    /// The bytes, with room for more behind them: a list that grows by itself leaves a copy behind.
    pub(super) fn into_bytes_with_room(mut self, more: usize) -> Vec<u8> {
        if self.0.capacity() - self.0.len() >= more {
            return std::mem::take(&mut self.0);
        }
        let mut longer = Vec::with_capacity(self.0.len() + more);
        longer.extend_from_slice(&self.0);
        longer
    }

    fn wipe(&mut self) {
        let room = self.0.capacity();
        self.0.clear();
        self.0.resize(room, 0);
        // the compiler may not leave out what is never read again
        optimization_barrier(&self.0[..]);
    }
}

impl From<Vec<u8>> for SecretBytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl Deref for SecretBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for SecretBytes {
    fn drop(&mut self) {
        self.wipe();
    }
}

/// Draws a new secret.
///
/// # Errors
/// If the system provides no randomness.
pub(super) fn draw() -> Result<Secret, VaultError> {
    let mut secret = Zeroizing::new([0; 32]);
    getrandom::fill(secret.as_mut_slice()).map_err(|_| VaultError::Randomness)?;
    Ok(secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wiped_secret_has_no_byte_left() {
        let mut bytes = Vec::with_capacity(64);
        bytes.extend_from_slice(&[7; 48]);
        bytes.truncate(40);
        let mut secret = SecretBytes::from(bytes);
        assert_eq!(secret[..], [7; 40]);
        let room = secret.0.capacity();
        secret.wipe();
        assert_eq!(secret[..], vec![0; room], "nor in what lies behind its end");
    }
}
