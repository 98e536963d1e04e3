//! Errors of keys.

/// Errors of keys; their messages contain no key material.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// The key file or its folder cannot be created or read.
    #[error("the key file {path} cannot be used")]
    File {
        /// The path of the file.
        path: String,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The key file is not 32 bytes long.
    #[error("the key file {path} does not contain a key of 32 bytes")]
    NotAKey {
        /// The path of the file.
        path: String,
    },
    /// The key file is readable by others.
    #[error("the key file {path} is open to others; its mode must be 0600, or 0440 with a group of this process")]
    Exposed {
        /// The path of the file.
        path: String,
    },
    /// The operating system provides no randomness.
    #[error("the operating system provides no randomness")]
    Randomness,
    /// The master key is not 64 hexadecimal digits.
    #[error("{name} is not a key: it must be 64 hexadecimal digits")]
    NotDigits {
        /// The source of the digits.
        name: &'static str,
    },
    /// A wrapped secret was damaged, belongs to something else, or was wrapped under another master key.
    #[error(
        "a wrapped key cannot be opened: it was damaged, or wrapped under another master key; every process on a store needs \
         the same master key"
    )]
    Unwrap,
    /// A ciphertext is damaged, or belongs to another role or dataset.
    #[error("encrypted data cannot be decrypted: it is damaged or belongs elsewhere")]
    Damaged,
}
