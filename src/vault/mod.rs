//! Keys and their wrapping under the master key.
//!
//! The master key, stored outside the store, wraps the release keys of unfinished jobs, the data key of each dataset and the hashing
//! key of contents. An adversary with the store alone can neither read an original, nor repeat the randomness of a release, nor test
//! a guessed table. A rotation of the master key wraps all keys again; ciphertexts and hashes remain.

mod ciphertext;
mod error;
mod file;
mod keys;
mod master;
mod sealed_file;
mod secret;
mod short_mac;

pub use ciphertext::{Ciphertext, CiphertextContext, DataKey};
pub use error::VaultError;
pub use keys::{ContentHasher, Purpose, Vault};
pub use master::MasterKey;
pub use sealed_file::{SealedFile, SealedFileError};
pub use secret::{Secret, SecretBytes};
