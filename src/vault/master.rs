//! The master key: 32 bytes in a file, or 64 hexadecimal digits in the environment.

use std::path::Path;

use zeroize::Zeroizing;

use super::error::VaultError;
use super::file;
use super::secret::{self, Secret};

/// The master key, without `Debug`, wiped when dropped.
pub struct MasterKey(pub(super) Secret);

impl From<Secret> for MasterKey {
    fn from(secret: Secret) -> Self {
        Self(secret)
    }
}

impl MasterKey {
    /// Opens the key of a file; creates a random key (mode 0600, folder mode 0700) if absent.
    ///
    /// # Errors
    /// If the file cannot be created or read, is not a key, or is readable by others.
    pub fn open(path: &Path) -> Result<Self, VaultError> {
        file::read_or_create(path).map(Self)
    }

    /// Parses a key of 64 hexadecimal digits; `name` is their source, for the error.
    ///
    /// # Errors
    /// [`VaultError::NotDigits`], without the digits.
    pub fn of_digits(name: &'static str, digits: &str) -> Result<Self, VaultError> {
        let mut secret: Secret = Zeroizing::new([0; 32]);
        let wrong = || VaultError::NotDigits { name };
        let (pairs, []) = digits.as_bytes().as_chunks::<2>() else { return Err(wrong()) };
        if pairs.len() != secret.len() {
            return Err(wrong());
        }
        for (byte, &[high, low]) in secret.iter_mut().zip(pairs) {
            let digit = |digit: u8| char::from(digit).to_digit(16).map(|digit| digit as u8);
            *byte = digit(high).zip(digit(low)).map(|(high, low)| high << 4 | low).ok_or_else(wrong)?;
        }
        Ok(Self(secret))
    }

    /// Draws a new random key.
    ///
    /// # Errors
    /// If the system provides no randomness.
    pub fn fresh() -> Result<Self, VaultError> {
        secret::draw().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_accepts_hexadecimal_digits_only() {
        let key = MasterKey::of_digits("KEY", &"0aF9".repeat(16)).unwrap();
        assert_eq!(key.0.as_slice(), [0x0a, 0xf9].repeat(16));
        let secret = "5e".repeat(31);
        for wrong in
            ["", &secret, &format!("{secret}5e5"), &format!("{secret}5g"), &format!("{secret} 5"), &"é".repeat(32)]
        {
            let Err(error) = MasterKey::of_digits("KEY", wrong) else { panic!("taken: {wrong}") };
            let said = format!("{error} {error:?}");
            assert!(said.contains("KEY") && !said.contains("5e5e"), "{said}");
        }
    }
}
