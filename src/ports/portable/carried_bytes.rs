//! Hashes and ciphertexts that stand in a file, and stay there until they are asked for.

use std::borrow::Cow;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::{fmt, io};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};
use sha2::{Digest, Sha256};

use crate::people::KeyedHash;
use crate::ports::people::{AlikeKind, AlikeMark};
use crate::vault::Ciphertext;

/// Bytes of a person in a piece.
const PERSON_BYTES: usize = 16;

/// Bytes of a mark in a piece: hash, kind and weight.
const MARK_BYTES: usize = 32;

/// Persons or marks of a coverage, or a piece of a state: at hand, or where they stand in the file that they are carried
/// in. A file has more of them than memory should hold.
#[derive(Clone)]
pub struct CarriedBytes(HashLocation);

#[derive(Clone)]
enum HashLocation {
    Here(Vec<u8>),
    InFile(FilePosition),
}

/// What is read again of the line of a piece.
#[derive(Deserialize)]
struct HashLine {
    #[serde(alias = "chain_piece")]
    hashes: LineHashes,
}

#[derive(Deserialize)]
struct LineHashes {
    #[serde(alias = "payload")]
    hashes: CarriedBytes,
}

/// The line of a piece.
#[derive(Clone)]
struct FilePosition {
    file: Arc<File>,
    begin: u64,
    bytes: usize,
    sha256: [u8; 32],
    /// The bytes that it carries.
    length: usize,
}

impl CarriedBytes {
    /// Persons.
    #[must_use]
    pub fn of_persons(persons: &[KeyedHash]) -> Self {
        Self(HashLocation::Here(persons.iter().flat_map(|person| person.to_bytes()).collect()))
    }

    /// Marks.
    #[must_use]
    pub fn of_marks(marks: &[AlikeMark]) -> Self {
        let bytes = |mark: &AlikeMark| {
            let numbers = [mark.kind.number().to_be_bytes(), mark.weight.to_be_bytes()];
            mark.hash.to_bytes().into_iter().chain(numbers.into_iter().flatten())
        };
        Self(HashLocation::Here(marks.iter().flat_map(bytes).collect()))
    }

    /// A piece of a state.
    #[must_use]
    pub fn of_ciphertext(piece: &Ciphertext) -> Self {
        Self(HashLocation::Here(piece.as_bytes().to_vec()))
    }

    /// The same, where its line stands in a file.
    pub(super) fn in_file(&self, file: &Arc<File>, begin: u64, line: &[u8]) -> Self {
        let sha256 = Sha256::digest(line).into();
        let (file, bytes, length) = (Arc::clone(file), line.len(), self.length());
        Self(HashLocation::InFile(FilePosition { file, begin, bytes, sha256, length }))
    }

    /// Whether they are left in a file.
    #[cfg(test)]
    pub(super) const fn are_in_file(&self) -> bool {
        matches!(self.0, HashLocation::InFile(_))
    }

    pub(super) const fn length(&self) -> usize {
        match &self.0 {
            HashLocation::Here(hashes) => hashes.len(),
            HashLocation::InFile(place) => place.length,
        }
    }

    /// How many persons they are; `None` if one is cut.
    pub(super) const fn persons(&self) -> Option<usize> {
        if self.length().is_multiple_of(PERSON_BYTES) { Some(self.length() / PERSON_BYTES) } else { None }
    }

    /// How many marks they are; `None` if one is cut.
    pub(super) const fn marks(&self) -> Option<usize> {
        if self.length().is_multiple_of(MARK_BYTES) { Some(self.length() / MARK_BYTES) } else { None }
    }

    /// The persons.
    ///
    /// # Errors
    /// When the file cannot be read, or the line is not what it was.
    pub fn read_persons(&self) -> io::Result<Vec<KeyedHash>> {
        let bytes = self.bytes()?;
        let (hashes, _) = bytes.as_chunks::<PERSON_BYTES>();
        Ok(hashes.iter().map(|bytes| KeyedHash::from_bytes(*bytes)).collect())
    }

    /// The marks.
    ///
    /// # Errors
    /// As of [`CarriedBytes::read_persons`], or when one is none.
    pub fn read_marks(&self) -> io::Result<Vec<AlikeMark>> {
        let bytes = self.bytes()?;
        let (marks, _) = bytes.as_chunks::<MARK_BYTES>();
        let number = |bytes: &[u8]| bytes.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        let mark = |bytes: &[u8; MARK_BYTES]| {
            let (hash, numbers) = bytes.split_first_chunk::<16>().unwrap_or((&[0; 16], &[]));
            let kind = i64::try_from(number(&numbers[..8])).ok().and_then(|kind| AlikeKind::from_number(kind).ok());
            let kind = kind.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a mark is of no kind"))?;
            Ok(AlikeMark { hash: KeyedHash::from_bytes(*hash), kind, weight: number(&numbers[8..]) })
        };
        marks.iter().map(mark).collect()
    }

    /// The encrypted bytes of a piece of a state.
    ///
    /// # Errors
    /// As of [`CarriedBytes::read_persons`].
    pub fn read_ciphertext(&self) -> io::Result<Cow<'_, [u8]>> {
        self.bytes()
    }

    fn bytes(&self) -> io::Result<Cow<'_, [u8]>> {
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
            HashLine { hashes: LineHashes { hashes: Self(HashLocation::Here(hashes)) } } => Ok(Cow::Owned(hashes)),
            HashLine { .. } => Err(changed()),
        }
    }
}

/// By what they are, wherever they stand.
impl PartialEq for CarriedBytes {
    fn eq(&self, other: &Self) -> bool {
        matches!((self.bytes(), other.bytes()), (Ok(own), Ok(other)) if own == other)
    }
}

impl fmt::Debug for CarriedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} carried bytes", self.length())
    }
}

impl Serialize for CarriedBytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let bytes = self.bytes().map_err(ser::Error::custom)?;
        serializer.serialize_str(&BASE64_STANDARD.encode(bytes))
    }
}

impl<'de> Deserialize<'de> for CarriedBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = BASE64_STANDARD.decode(text).map_err(|_undecodable| de::Error::custom("not base64"))?;
        Ok(Self(HashLocation::Here(bytes)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn marks_are_read_as_they_were_written(marks in prop::collection::vec((any::<u128>(), 0..70_i64, any::<u64>()), 0..5)) {
            let mark = |(hash, kind, weight): (u128, i64, u64)| {
                AlikeMark { hash: KeyedHash(hash), kind: AlikeKind::from_number(kind).unwrap(), weight }
            };
            let marks: Vec<AlikeMark> = marks.into_iter().map(mark).collect();
            let carried = CarriedBytes::of_marks(&marks);
            prop_assert_eq!(carried.marks(), Some(marks.len()));
            let written = serde_json::to_string(&carried).unwrap();
            let read: CarriedBytes = serde_json::from_str(&written).unwrap();
            prop_assert_eq!(read.read_marks().unwrap(), marks);
        }
    }
}
