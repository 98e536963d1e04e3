//! Hashes that stand in a file, and stay there until they are asked for.

use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::{LedgerLine, PortablePiece};

/// The hashes of a piece of people: at hand, or where they stand in the file that they are carried in. A file has more of them than memory
/// should hold.
#[derive(Clone)]
pub struct FingerprintHashes(HashLocation);

#[derive(Clone)]
enum HashLocation {
    Here(Vec<u8>),
    InFile(FilePosition),
}

/// The line of a piece.
#[derive(Clone)]
struct FilePosition {
    file: Arc<File>,
    begin: u64,
    bytes: usize,
    sha256: [u8; 32],
    /// The bytes of its hashes.
    length: usize,
}

impl FingerprintHashes {
    /// So many bytes of hashes in the line that begins there.
    pub(super) fn in_file(file: &Arc<File>, begin: u64, line: &[u8], length: usize) -> Self {
        let sha256 = Sha256::digest(line).into();
        Self(HashLocation::InFile(FilePosition { file: Arc::clone(file), begin, bytes: line.len(), sha256, length }))
    }

    /// Whether they are left in a file.
    #[cfg(test)]
    pub(super) const fn are_in_file(&self) -> bool {
        matches!(self.0, HashLocation::InFile(_))
    }

    /// How many bytes they are.
    pub(super) const fn length(&self) -> usize {
        match &self.0 {
            HashLocation::Here(hashes) => hashes.len(),
            HashLocation::InFile(place) => place.length,
        }
    }

    /// Sixteen bytes each.
    ///
    /// # Errors
    /// When the file cannot be read, or the line is not what it was.
    pub fn read(&self) -> io::Result<Cow<'_, [u8]>> {
        let place = match &self.0 {
            HashLocation::Here(hashes) => return Ok(Cow::Borrowed(hashes)),
            HashLocation::InFile(place) => place,
        };
        let mut line = vec![0; place.bytes];
        place.file.read_exact_at(&mut line, place.begin)?;
        let changed = || io::Error::new(io::ErrorKind::InvalidData, "the file was changed while it was read");
        if Sha256::digest(&line)[..] != place.sha256[..] {
            return Err(changed());
        }
        match serde_json::from_slice(&line)? {
            LedgerLine::People(PortablePiece { hashes: Self(HashLocation::Here(hashes)), .. }) => {
                Ok(Cow::Owned(hashes))
            }
            _ => Err(changed()),
        }
    }
}

impl From<Vec<u8>> for FingerprintHashes {
    fn from(hashes: Vec<u8>) -> Self {
        Self(HashLocation::Here(hashes))
    }
}

/// By what they are, wherever they stand.
impl PartialEq for FingerprintHashes {
    fn eq(&self, other: &Self) -> bool {
        matches!((self.read(), other.read()), (Ok(own), Ok(other)) if own == other)
    }
}

impl fmt::Debug for FingerprintHashes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes of hashes", self.length())
    }
}

/// As text.
pub(in crate::jobs) mod base64 {
    use base64::Engine;
    use base64::prelude::BASE64_STANDARD;
    use serde::{Deserialize, Deserializer, Serializer, de, ser};

    use super::FingerprintHashes;

    pub(in crate::jobs) fn serialize<S: Serializer>(
        hashes: &FingerprintHashes,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let bytes = hashes.read().map_err(ser::Error::custom)?;
        serializer.serialize_str(&BASE64_STANDARD.encode(bytes))
    }

    pub(in crate::jobs) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<FingerprintHashes, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = BASE64_STANDARD.decode(text).map_err(|_undecodable| de::Error::custom("not base64"))?;
        Ok(bytes.into())
    }
}
