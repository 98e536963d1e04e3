use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use uuid::Uuid;

use crate::identity::KeySetError;
use crate::ports::StoreError;
use crate::vault::VaultError;

/// The reason why a service did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The options contradict each other.
    #[error("{0}")]
    Config(String),
    /// The store cannot be opened.
    #[error("the store cannot be opened: {0}{because}", because = because(.0))]
    Store(#[from] StoreError),
    /// The master key cannot be opened.
    #[error("the master key cannot be opened: {0}")]
    Vault(#[from] VaultError),
    /// The keys of the store are wrapped under another master key.
    #[error(
        "the store has another master key than {0}; every process on a store needs the same: name its file with --master-key, or \
         give it in GUARDIAN_MASTER_KEY"
    )]
    ForeignKey(String),
    /// The store requires a master key, but none exists.
    #[error(
        "the store has a master key, but {} does not exist; bring back the file, or copy it from another process on the store, \
         and name it with --master-key",
        .0.display()
    )]
    KeyMissing(PathBuf),
    /// The store has another id than expected; nothing was created in it.
    #[error("--expect-store names the store {expected}, but {}; nothing was made or changed", found_instead(.found))]
    OtherStore {
        /// The expected id.
        expected: Uuid,
        /// The id of the store, if any.
        found: Option<Uuid>,
    },
    /// The first key cannot be created, or its file exists.
    #[error("the first key cannot be written to {file}: {1}", file = .0.display())]
    BootstrapKey(PathBuf, io::Error),
    /// The keys of the issuer cannot be read.
    #[error("the keys of the issuer cannot be read from {file}: {1}", file = .0.display())]
    Jwks(PathBuf, KeySetError),
    /// The operating system provides no randomness.
    #[error("the system provides no randomness for a key: {0}")]
    Randomness(getrandom::Error),
    /// The address is not available.
    #[error("{0} cannot be listened on: {1}")]
    Listen(SocketAddr, io::Error),
}

/// The cause of a failure, for the operator at the start only: it may name hosts and users, but no password.
fn because(error: &StoreError) -> String {
    error.source().map(|source| format!(": {source}")).unwrap_or_default()
}

fn found_instead(found: &Option<Uuid>) -> String {
    found.map_or_else(
        || "here is none with an id: it is empty, or `guardian migrate` has not given it one".to_owned(),
        |found| format!("this is the store {found}"),
    )
}
