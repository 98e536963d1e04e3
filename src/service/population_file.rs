//! The state of a population that is published without a server: a sealed file.

use std::path::Path;

use zeroize::Zeroizing;

use crate::vault::{ContentHasher, MasterKey, SealedFile, SealedFileError, SecretBytes, Vault, VaultError};

/// The bytes before the state: the key of person hashes.
const HASH_KEY_BYTES: usize = 32;

/// The state of a population, in a file that no other process works with meanwhile.
pub struct PopulationFile {
    file: SealedFile,
    /// The key of person hashes, and then the state; the key alone before the first night.
    content: SecretBytes,
    hasher: ContentHasher,
}

/// Why the state is not there.
#[derive(Debug, thiserror::Error)]
pub enum PopulationFileError {
    /// It is lost, or another one: its people cannot be published in the population again.
    #[error("{0}")]
    Lost(String),
    /// It would be begun twice.
    #[error("{0}: the population is begun already; leave --begin out")]
    Begun(String),
    /// A file cannot be read or written, or others can read it.
    #[error("{0}")]
    Files(String),
}

impl From<SealedFileError> for PopulationFileError {
    fn from(error: SealedFileError) -> Self {
        match error {
            SealedFileError::Missing(_) | SealedFileError::Unopened(_) => Self::Lost(error.to_string()),
            SealedFileError::Exists(_) => Self::Begun(error.to_string()),
            SealedFileError::InUse(_) | SealedFileError::Io(..) | SealedFileError::Vault(_) => {
                Self::Files(error.to_string())
            }
        }
    }
}

impl From<VaultError> for PopulationFileError {
    fn from(error: VaultError) -> Self {
        Self::Files(error.to_string())
    }
}

impl PopulationFile {
    /// Begins a population; its file is made with the first state.
    ///
    /// # Errors
    /// [`PopulationFileError`]
    pub fn begin(path: &Path) -> Result<Self, PopulationFileError> {
        let file = SealedFile::begin(path)?;
        let key = Vault::fresh_secret()?;
        Self::from_content(file, key.to_vec().into())
    }

    /// Reads the state of a population that was begun.
    ///
    /// # Errors
    /// [`PopulationFileError`]
    pub fn open(path: &Path) -> Result<Self, PopulationFileError> {
        let (file, content) = SealedFile::open(path)?;
        Self::from_content(file, content)
    }

    fn from_content(file: SealedFile, content: SecretBytes) -> Result<Self, PopulationFileError> {
        let Some(key) = content.first_chunk::<HASH_KEY_BYTES>() else {
            return Err(PopulationFileError::Lost("the state of the population is cut".to_owned()));
        };
        let hasher = Vault::derived(&MasterKey::from(Zeroizing::new(*key))).content_hasher("population");
        Ok(Self { file, content, hasher })
    }

    /// The state that the last night left behind; `None` before the first.
    #[must_use]
    pub fn state(&self) -> Option<&[u8]> {
        self.content.get(HASH_KEY_BYTES..).filter(|state| !state.is_empty())
    }

    /// The hasher of persons.
    #[must_use]
    pub const fn hasher(&self) -> &ContentHasher {
        &self.hasher
    }

    /// Puts a new state in place of the last. No other process works with the file until what is returned is dropped.
    ///
    /// # Errors
    /// [`PopulationFileError`]; nothing of the night may then be published.
    pub fn replace(self, state: Vec<u8>) -> Result<SealedFile, PopulationFileError> {
        let Self { mut file, content, .. } = self;
        file.replace(&content[..HASH_KEY_BYTES], state.into())?;
        Ok(file)
    }
}
