//! Hashes that stand in a file, and stay there until they are asked for.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::{fmt, io};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::ports::disclosures::StatementRecord;
use crate::ports::fingerprints::{FingerprintPiece, SubjectFingerprint, SubjectOverlap};
use crate::ports::statements::Statement;
use crate::publication::ReleaseStatus;

/// The hashes of a piece of a fingerprint: at hand, or where they stand in the file that they are carried in. A file has more of them than memory
/// should hold.
#[derive(Clone)]
pub struct FingerprintHashes(HashLocation);

#[derive(Clone)]
enum HashLocation {
    Here(Vec<u8>),
    InFile(FilePosition),
}

/// What is read again of the line of a piece.
#[derive(Deserialize)]
struct HashLine {
    #[serde(rename = "people")]
    piece: LineHashes,
}

#[derive(Deserialize)]
struct LineHashes {
    #[serde(with = "base64")]
    hashes: FingerprintHashes,
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
    /// Bytes of hashes, and the offset of their line.
    pub(in crate::ports) fn in_file(file: &Arc<File>, begin: u64, line: &[u8], length: usize) -> Self {
        let sha256 = Sha256::digest(line).into();
        Self(HashLocation::InFile(FilePosition { file: Arc::clone(file), begin, bytes: line.len(), sha256, length }))
    }

    /// Whether they are left in a file.
    #[cfg(test)]
    pub(in crate::ports) const fn are_in_file(&self) -> bool {
        matches!(self.0, HashLocation::InFile(_))
    }

    /// How many bytes they are.
    pub(in crate::ports) const fn length(&self) -> usize {
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
            HashLine { piece: LineHashes { hashes: Self(HashLocation::Here(hashes)) } } => Ok(Cow::Owned(hashes)),
            HashLine { .. } => Err(changed()),
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
pub(crate) mod base64 {
    use base64::Engine;
    use base64::prelude::BASE64_STANDARD;
    use serde::{Deserialize, Deserializer, Serializer, de, ser};

    use super::FingerprintHashes;

    pub(crate) fn serialize<S: Serializer>(hashes: &FingerprintHashes, serializer: S) -> Result<S::Ok, S::Error> {
        let bytes = hashes.read().map_err(ser::Error::custom)?;
        serializer.serialize_str(&BASE64_STANDARD.encode(bytes))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<FingerprintHashes, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = BASE64_STANDARD.decode(text).map_err(|_undecodable| de::Error::custom("not base64"))?;
        Ok(bytes.into())
    }
}

/// A release, without what it published.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortableRelease {
    /// UUIDv7.
    pub id: Uuid,
    /// Whose it is.
    pub tenant: String,
    /// The series.
    pub series: String,
    /// Keyed hash of the dataset's content.
    #[serde(with = "super::hex")]
    pub content_hash: [u8; 32],
    /// The job's reuse key.
    #[serde(with = "super::hex")]
    pub reuse_key: [u8; 32],
    /// The method's name.
    pub method: String,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// The status when the ledger was exported.
    pub status: ReleaseStatus,
    /// Whether somebody read a part of it while it was held.
    pub was_read: bool,
}

impl PortableRelease {
    /// What does not change in a release's life.
    pub(super) fn identity(&self) -> (&str, LedgerContent, &[u8; 32], &str, DateTime<Utc>) {
        (&self.tenant, self.content(), &self.reuse_key, &self.method, self.created_at)
    }

    pub(super) fn content(&self) -> LedgerContent {
        LedgerContent { tenant: self.tenant.clone(), series: self.series.clone(), hash: self.content_hash }
    }

    /// Rejected before anybody read it: the ledger keeps nothing of it.
    pub(super) fn is_lifted(&self) -> bool {
        self.status == ReleaseStatus::Rejected && !self.was_read
    }
}

/// A published table; tenant, series and content are its release's.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortableDisclosure {
    /// UUIDv7.
    pub id: Uuid,
    /// The release it belongs to.
    pub release: Uuid,
    /// The published table's name.
    pub table: String,
    /// What the ledger keeps of it.
    pub body: Value,
    /// Time when it was recorded.
    pub recorded_at: DateTime<Utc>,
}

/// A rule that a release promised to keep.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortableRule {
    /// The release.
    pub release: Uuid,
    /// Counted from 0 in the release.
    pub number: u32,
    /// The rule.
    pub body: Value,
}

/// The version of a content's ledger.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortableVersion {
    /// Whose content it is.
    pub tenant: String,
    /// The series.
    pub series: String,
    /// Keyed hash of the content.
    #[serde(with = "super::hex")]
    pub content_hash: [u8; 32],
    /// Rises with every entry.
    pub version: i64,
}

impl PortableVersion {
    pub(super) fn content(&self) -> LedgerContent {
        LedgerContent { tenant: self.tenant.clone(), series: self.series.clone(), hash: self.content_hash }
    }
}

/// An upload, without its rows.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortableDataset {
    /// UUIDv7.
    pub id: Uuid,
    /// Whose it is.
    pub tenant: String,
    /// What the uploader called it.
    pub name: Option<String>,
    /// The data subjects it speaks of.
    pub series: String,
    /// Declaration whether an overlap with another series is of the same data subjects.
    pub same_people: Option<bool>,
    /// Declared reason why not.
    pub same_people_reason: Option<String>,
    /// The population whose persons it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub population: Option<String>,
    /// Per key system that identifies its persons, the attributes of the key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub person: BTreeMap<String, Vec<String>>,
    /// The attributes that identify a record.
    pub record_key: Option<Vec<String>>,
    /// The attribute that identifies a subject.
    pub subject: Option<String>,
    /// How many rows one subject may have.
    pub max_rows_per_subject: Option<u64>,
    /// When it became visible.
    pub created_at: DateTime<Utc>,
    /// Rows.
    pub rows: u64,
    /// Bytes of the uploaded body.
    pub bytes: u64,
    /// Media type of the upload.
    pub format: String,
    /// Keyed hash of the content.
    #[serde(with = "super::hex")]
    pub content_hash: [u8; 32],
    /// The data subjects that other series spoke of when it was uploaded.
    pub overlaps: Vec<SubjectOverlap>,
    /// Whom it speaks of; none of an upload from before fingerprints were stored.
    #[serde(rename = "people")]
    pub fingerprint: Option<SubjectFingerprint>,
}

/// Keyed hashes of the data subjects of an upload.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortablePiece {
    /// The upload.
    pub dataset: Uuid,
    /// -1 is the sample, and the set is counted from 0.
    pub piece: i64,
    /// Sixteen bytes each.
    #[serde(with = "base64")]
    pub hashes: FingerprintHashes,
}

impl PortableDataset {
    /// What is kept of its data subjects, piece by piece.
    pub fn pieces(&self) -> impl Iterator<Item = FingerprintPiece> {
        let sets = |fingerprint: &SubjectFingerprint| (0..fingerprint.pieces).map(FingerprintPiece::Set);
        self.fingerprint
            .iter()
            .flat_map(move |fingerprint| std::iter::once(FingerprintPiece::Sample).chain(sets(fingerprint)))
    }
}

/// A statement about a series.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortableStatement {
    /// UUIDv7.
    pub id: Uuid,
    /// Whose series it is.
    pub tenant: String,
    /// The series.
    pub series: String,
    /// Tables, other names, and what is computed from what.
    pub body: Value,
    /// Time when it was recorded.
    pub recorded_at: DateTime<Utc>,
}

impl PortableStatement {
    /// `None` when it is none.
    pub(in crate::ports) fn read(&self) -> Option<Statement> {
        let Self { id, body, recorded_at, .. } = self.clone();
        Statement::read(&StatementRecord { id, body, recorded_at }).ok()
    }
}

/// A series of a tenant.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SeriesName {
    /// The tenant.
    pub tenant: String,
    /// The name of the series.
    pub series: String,
}

impl SeriesName {
    pub(super) fn new(tenant: &str, series: &str) -> Self {
        Self { tenant: tenant.to_owned(), series: series.to_owned() }
    }
}

/// What a ledger is of.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct LedgerContent {
    /// Whose content it is.
    pub tenant: String,
    /// The series.
    pub series: String,
    /// Keyed hash of the content.
    pub hash: [u8; 32],
}
