//! Fingerprints of data subjects: hashes keyed by tenant under a secret outside the store. The ledger compares subjects, not
//! names of files: what an upload leaves behind here outlives its rows.
//!
//! A record's hash is that of its record key, where the upload names one, and of its cells otherwise; a cell's hash knows neither
//! the name nor the place of its column, so that a renamed or moved column hides no subject. Of each column a sum over all records says
//! what stands in it *of whom*: equal sums over the same records are the same attribute, whatever it is called.
//!
//! Whether two datasets have records in common is looked for in one spelling of their keys, so that no subject is hidden by a blank, a zero
//! or a capital letter; which records of a dataset are two, and what stands in its columns of whom, goes by keys as they are written.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::error::StoreError;
use crate::people::{KeyedHash, KeyedHasher, labelled};
use crate::vault::ContentHasher;

/// Hashes in one stored piece.
pub(crate) const HASHES_PER_PIECE: usize = 1 << 15;

/// Of fewer rows that differ from every other one in two attributes nothing is said.
pub(crate) const MIN_SAMPLED_ROWS: u64 = 1000;

impl KeyedHash {
    /// The name of a column.
    pub(crate) fn of_name(template: &ContentHasher, name: &str) -> Self {
        Self(hashed(template, b"name\0", name.as_bytes()))
    }
}

/// What records are known by.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordIdentity {
    /// The record key: every record once.
    Keys,
    /// All their cells: equal rows are one hash, as often as there are rows.
    Rows,
}

/// What a dataset says of its data subjects.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SubjectFingerprint {
    /// What the set is of.
    pub by: RecordIdentity,
    /// Whether it is of record keys in one spelling; of an upload from before there was one it is of keys as they are written.
    #[serde(default)]
    pub folded: bool,
    /// The names of the columns of the record key, in order.
    pub key: Vec<KeyedHash>,
    /// Records.
    pub rows: u64,
    /// How many pieces the set is kept in.
    pub pieces: u32,
    /// The whole set.
    pub set: KeyedHash,
    /// The whole table, without names of columns.
    pub table: KeyedHash,
    /// Each column: its name, and what stands in it of whom.
    pub columns: Vec<(KeyedHash, KeyedHash)>,
    /// How many rows the sample has.
    pub sampled: u64,
    /// The sample is of rows with a hash up to this one; of all rows where there is none.
    pub below: Option<KeyedHash>,
}

/// Whom a dataset of a tenant speaks of.
#[derive(Clone, PartialEq, Debug)]
pub struct FingerprintRecord {
    /// The dataset.
    pub dataset: Uuid,
    /// Its series.
    pub series: String,
    /// The keyed hash of its content.
    pub content_hash: [u8; 32],
    /// None of an upload from before fingerprints were stored.
    pub fingerprint: Option<SubjectFingerprint>,
}

/// Data subjects that another series speaks of too.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SubjectOverlap {
    /// The other series.
    pub series: String,
    /// Its datasets that have some of them.
    pub datasets: Vec<Uuid>,
    /// Rows of this dataset that one of them has too, of those that were compared.
    pub rows: Option<OverlapShare>,
    /// The same of record keys.
    pub record_keys: Option<OverlapShare>,
    /// Whether jobs need the series named, or a declaration.
    pub decides: bool,
}

/// A part of a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OverlapShare {
    /// The part.
    pub count: u64,
    /// The whole.
    pub of: u64,
}

/// What is kept of the data subjects of a new dataset.
#[derive(Clone, PartialEq, Debug)]
pub struct NewFingerprint {
    /// What it says of them.
    pub fingerprint: SubjectFingerprint,
    /// How many uploads of the tenant it was compared with.
    pub uploads: i64,
}

/// A piece of what is kept of data subjects.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FingerprintPiece {
    /// The sample.
    Sample,
    /// Of the set, counted from 0.
    Set(u32),
}

impl FingerprintPiece {
    /// How the store counts it.
    #[must_use]
    pub const fn number(self) -> i64 {
        match self {
            Self::Sample => -1,
            Self::Set(number) => number as i64,
        }
    }
}

/// Keeps whom datasets speak of, for ever.
#[async_trait]
pub trait FingerprintStore: Send + Sync {
    /// Keeps a piece of an upload that has begun.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when it is there already, the dataset is visible, or the upload has no key.
    async fn put_fingerprint_piece(
        &self,
        dataset: Uuid,
        piece: FingerprintPiece,
        hashes: &[u8],
    ) -> Result<(), StoreError>;

    /// Pieces of a tenant's datasets, purged or not, each where it was asked for.
    async fn fingerprint_pieces(
        &self,
        tenant: &str,
        wanted: &[(Uuid, FingerprintPiece)],
    ) -> Result<Vec<Option<Vec<u8>>>, StoreError>;

    /// Whom the tenant's datasets speak of, oldest first, or those of one series; and how many uploads there were.
    async fn fingerprints(
        &self,
        tenant: &str,
        series: Option<&str>,
    ) -> Result<(i64, Vec<FingerprintRecord>), StoreError>;
}

impl KeyedHasher for ContentHasher {
    fn keyed(&self, label: &str, texts: &[&[u8]]) -> KeyedHash {
        KeyedHash(hashed(self, b"people\0", &labelled(label, texts)))
    }
}

/// A keyed hash of labelled bytes.
pub(crate) fn hashed(template: &ContentHasher, label: &[u8], bytes: &[u8]) -> u128 {
    let mut hash = template.clone();
    hash.update(label);
    hash.update(bytes);
    cut(hash)
}

/// The first half of a hash.
pub(crate) fn cut(hash: ContentHasher) -> u128 {
    hash.finish().iter().take(16).fold(0, |word, &byte| word << 8 | u128::from(byte))
}

/// Hashes as they are kept: sixteen bytes each, the highest first, which sort as they do.
pub(crate) fn packed(hashes: &[u128]) -> Vec<u8> {
    hashes.iter().flat_map(|hash| hash.to_be_bytes()).collect()
}

/// Undoes [`packed`].
pub(crate) fn unpacked(bytes: &[u8]) -> Result<Vec<u128>, StoreError> {
    let (hashes, rest) = bytes.as_chunks::<16>();
    if !rest.is_empty() {
        return Err(StoreError::corrupt("a piece of hashes is cut"));
    }
    Ok(hashes.iter().map(|bytes| u128::from_be_bytes(*bytes)).collect())
}
