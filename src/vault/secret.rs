//! Secrets.

use zeroize::Zeroizing;

use super::error::VaultError;

/// A 256-bit secret, wiped when dropped.
pub type Secret = Zeroizing<[u8; 32]>;

/// Draws a new secret.
///
/// # Errors
/// If the system provides no randomness.
pub(super) fn draw() -> Result<Secret, VaultError> {
    let mut secret = Zeroizing::new([0; 32]);
    getrandom::fill(secret.as_mut_slice()).map_err(|_| VaultError::Randomness)?;
    Ok(secret)
}
