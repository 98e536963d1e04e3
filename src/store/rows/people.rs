//! Rows of populations, statements about them, and coverages.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use sqlx::FromRow;
use uuid::Uuid;

use crate::people::{
    Coverage, CoverageId, Evidence, KeySystem, KeyedHash, Population, PopulationRegistry, SeparationStatement,
};
use crate::ports::{CoverageRecord, CoverageState, SeparationRecord, StoreError};

#[derive(FromRow)]
pub(in crate::store) struct KeySystemRow {
    name: String,
    #[sqlx(json)]
    body: KeySystem,
}

#[derive(FromRow)]
pub(in crate::store) struct PopulationRow {
    name: String,
    #[sqlx(json)]
    body: Population,
}

#[derive(FromRow)]
pub(in crate::store) struct SeparationRow {
    #[sqlx(json)]
    body: SeparationStatement,
    recorded_at: DateTime<Utc>,
}

impl From<SeparationRow> for SeparationRecord {
    fn from(row: SeparationRow) -> Self {
        Self { statement: row.body, recorded_at: row.recorded_at }
    }
}

/// A state as the tables name it.
struct StoredState(CoverageState);

impl TryFrom<String> for StoredState {
    type Error = StoreError;

    fn try_from(name: String) -> Result<Self, StoreError> {
        CoverageState::from_name(&name).map(Self)
    }
}

#[derive(FromRow)]
pub(in crate::store) struct CoverageRow {
    id: i64,
    job: Uuid,
    #[sqlx(try_from = "String")]
    state: StoredState,
    ticket: Option<i64>,
    #[sqlx(json)]
    body: Coverage,
    #[sqlx(json)]
    published: BTreeSet<String>,
}

impl From<CoverageRow> for CoverageRecord {
    fn from(row: CoverageRow) -> Self {
        Self {
            id: CoverageId(row.id),
            job: row.job,
            state: row.state.0,
            ticket: row.ticket,
            coverage: row.body,
            published: row.published,
        }
    }
}

#[derive(FromRow)]
pub(in crate::store) struct EvidenceRow {
    #[sqlx(json)]
    pub(in crate::store) body: Evidence,
}

#[derive(FromRow)]
pub(in crate::store) struct CutsRow {
    #[sqlx(json)]
    pub(in crate::store) cuts: Vec<bool>,
}

/// Persons that are read at once.
#[derive(Clone, Copy)]
pub(in crate::store) struct PersonRange {
    /// The last one that was read before.
    pub(in crate::store) after: Option<KeyedHash>,
    /// Most of them.
    pub(in crate::store) most: i64,
}

/// Hashes as they are kept: sixteen bytes each, which sort as they do.
pub(in crate::store) fn joined(hashes: &[KeyedHash]) -> Vec<u8> {
    hashes.iter().flat_map(|hash| hash.to_bytes()).collect()
}

/// Undoes [`joined`].
pub(in crate::store) fn parted(bytes: &[u8]) -> Result<Vec<KeyedHash>, StoreError> {
    let (hashes, rest) = bytes.as_chunks::<16>();
    if !rest.is_empty() {
        return Err(StoreError::corrupt("a piece of persons is cut"));
    }
    Ok(hashes.iter().map(|bytes| KeyedHash::from_bytes(*bytes)).collect())
}

pub(in crate::store) fn registry(systems: Vec<KeySystemRow>, populations: Vec<PopulationRow>) -> PopulationRegistry {
    PopulationRegistry {
        systems: systems.into_iter().map(|row| (row.name, row.body)).collect(),
        populations: populations.into_iter().map(|row| (row.name, row.body)).collect(),
    }
}
