//! The records of a ledger that is carried to another store.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::carried_bytes::CarriedBytes;
use crate::people::{Coverage, CoverageId, KeySystem, Population, SeparationStatement};
use crate::ports::chains::{ChainRecord, StoredChainState};
use crate::ports::disclosures::StatementRecord;
use crate::ports::statements::Statement;
use crate::publication::ReleaseStatus;

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
    /// The ledger's name for its people.
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
    /// What earlier formats had.
    #[serde(default, skip_serializing)]
    pub overlaps: IgnoredAny,
    /// What earlier formats had.
    #[serde(default, rename = "people", skip_serializing)]
    pub fingerprint: IgnoredAny,
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

/// A key system of a tenant.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortableKeySystem {
    /// Whose it is.
    pub tenant: String,
    /// Its name.
    pub name: String,
    /// How it identifies persons.
    pub system: KeySystem,
}

/// A population of a tenant.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortablePopulation {
    /// Whose it is.
    pub tenant: String,
    /// Its name.
    pub name: String,
    /// What it is.
    pub population: Population,
}

/// A statement about the people of two places.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortableSeparation {
    /// Whose it is.
    pub tenant: String,
    /// What it says.
    pub statement: SeparationStatement,
    /// Time when it was recorded.
    pub recorded_at: DateTime<Utc>,
}

/// A live coverage, without its persons and marks.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortableCoverage {
    /// Whose it is.
    pub tenant: String,
    /// Its number in the store that it was read from.
    pub id: CoverageId,
    /// What is known of its rows.
    pub coverage: Coverage,
    /// The attributes that its releases published.
    pub published: BTreeSet<String>,
    /// For each sample of signatures, whether it is cut.
    pub cuts: Vec<bool>,
}

/// Some persons of a coverage, or some of its marks.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortableHashes {
    /// The coverage, by its number in the file.
    pub coverage: CoverageId,
    /// The key system of the persons; none of marks.
    pub system: Option<String>,
    /// The hashes.
    pub hashes: CarriedBytes,
}

/// The chain of a population, sealed as it is in its store: the master key that opens it is not in the file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortableChain {
    /// Whose it is.
    pub tenant: String,
    /// The population.
    pub population: String,
    /// What its key is wrapped for.
    pub id: Uuid,
    /// The wrapped key of its states; none once it is destroyed.
    #[serde(with = "super::hex::bytes")]
    pub wrapped_key: Vec<u8>,
    /// When the key was destroyed.
    pub ended_at: Option<DateTime<Utc>>,
    /// Its current state; none of a chain that has ended, or whose first release is held.
    pub state: Option<PortableChainState>,
    /// The held release that is not decided.
    pub pending: Option<Uuid>,
}

/// A state of a chain, without its pieces.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortableChainState {
    /// Counted from 1 in the chain.
    pub version: u64,
    /// The job that wrote it.
    pub job: Uuid,
    /// Its attempt.
    pub attempt: u32,
    /// How many pieces it has.
    pub pieces: u32,
    /// How many bytes these have.
    pub bytes: u64,
    /// The release that it goes on from.
    pub release: Uuid,
}

/// A piece of the state of a chain.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortableChainPiece {
    /// The chain.
    pub chain: Uuid,
    /// Counted from 0 in the state.
    pub piece: u32,
    /// The encrypted bytes.
    pub payload: CarriedBytes,
}

impl From<StoredChainState> for PortableChainState {
    fn from(state: StoredChainState) -> Self {
        let StoredChainState { version, job, attempt, pieces, bytes, release } = state;
        Self { version, job, attempt, pieces, bytes, release }
    }
}

impl From<PortableChainState> for StoredChainState {
    fn from(state: PortableChainState) -> Self {
        let PortableChainState { version, job, attempt, pieces, bytes, release } = state;
        Self { version, job, attempt, pieces, bytes, release }
    }
}

impl From<ChainRecord> for PortableChain {
    fn from(record: ChainRecord) -> Self {
        let ChainRecord { id, tenant, population, wrapped_key, ended_at, current, pending } = record;
        Self {
            tenant,
            population,
            id,
            wrapped_key: wrapped_key.unwrap_or_default(),
            ended_at,
            state: current.map(Into::into),
            pending: pending.map(|state| state.release),
        }
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
