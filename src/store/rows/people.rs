//! Rows of populations, statements about them, and coverages.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Deserializer};
use sqlx::FromRow;
use uuid::Uuid;

use crate::people::{
    Coverage, CoverageId, Evidence, KeySystem, KeyedHash, Population, PopulationRegistry, SeparationStatement,
    Signature, SignatureSample,
};
use crate::ports::{AlikeKind, AlikeMark, CommonMarks, CoverageRecord, CoverageState, SeparationRecord, StoreError};

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

#[derive(FromRow, Deserialize)]
pub(in crate::store) struct AlikeRow {
    #[serde(deserialize_with = "from_digits")]
    hash: Vec<u8>,
    kind: i64,
    weight: i64,
}

impl AlikeRow {
    pub(in crate::store) fn mark(&self) -> Result<AlikeMark, StoreError> {
        let (hash, kind) = (hash_of(&self.hash)?, AlikeKind::from_number(self.kind)?);
        Ok(AlikeMark { hash, kind, weight: self.weight.try_into().map_err(StoreError::corrupt)? })
    }
}

/// Of a store that gives hashes in hexadecimal digits.
fn from_digits<'de, D: Deserializer<'de>>(digits: D) -> Result<Vec<u8>, D::Error> {
    Ok(KeyedHash::deserialize(digits)?.to_bytes().to_vec())
}

/// A coverage that has a mark, with the kind and the weight of the mark there.
#[derive(Clone, Copy, Deserialize)]
pub(in crate::store) struct MarkHolder(i64, i64, i64);

/// Persons that are read at once.
#[derive(Clone, Copy)]
pub(in crate::store) struct PersonRange {
    /// The last one that was read before.
    pub(in crate::store) after: Option<KeyedHash>,
    /// Most of them.
    pub(in crate::store) most: i64,
}

/// Coverages that are named of a mark: what more have says nothing of any.
const NAMED_HOLDERS: i64 = 5;

#[derive(FromRow)]
pub(in crate::store) struct CommonMarkRow {
    /// None of a mark that many have.
    coverage: Option<i64>,
    #[sqlx(flatten)]
    row: AlikeRow,
}

impl CommonMarkRow {
    /// The number of coverages from which on it is not said who has a mark. One that is left out has it, too.
    pub(in crate::store) fn limit(except: Option<i64>) -> i64 {
        NAMED_HOLDERS + 1 - i64::from(except.is_some())
    }

    pub(in crate::store) fn new(hash: KeyedHash, MarkHolder(coverage, kind, weight): MarkHolder) -> Self {
        Self { coverage: Some(coverage), row: AlikeRow { hash: hash.to_bytes().to_vec(), kind, weight } }
    }

    pub(in crate::store) fn frequent(hash: KeyedHash) -> Self {
        Self { coverage: None, row: AlikeRow { hash: hash.to_bytes().to_vec(), kind: 0, weight: 0 } }
    }
}

/// What the rows say, in the order of coverages.
pub(in crate::store) fn common_marks(rows: Vec<CommonMarkRow>) -> Result<CommonMarks, StoreError> {
    let mut common = CommonMarks::default();
    for CommonMarkRow { coverage, row } in rows {
        let mark = row.mark()?;
        match coverage {
            Some(id) => common.held.push((CoverageId(id), mark)),
            None => drop(common.frequent.insert(mark.hash)),
        }
    }
    common.held.sort_unstable_by_key(|(id, mark)| (*id, mark.kind, mark.hash));
    Ok(common)
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

/// The hash of sixteen bytes.
pub(in crate::store) fn hash_of(bytes: &[u8]) -> Result<KeyedHash, StoreError> {
    let bytes = bytes.try_into().map_err(|_| StoreError::corrupt("a hash has not sixteen bytes"))?;
    Ok(KeyedHash::from_bytes(bytes))
}

pub(in crate::store) fn registry(systems: Vec<KeySystemRow>, populations: Vec<PopulationRow>) -> PopulationRegistry {
    PopulationRegistry {
        systems: systems.into_iter().map(|row| (row.name, row.body)).collect(),
        populations: populations.into_iter().map(|row| (row.name, row.body)).collect(),
    }
}

/// The samples of a coverage: as many as it has cuts.
pub(in crate::store) fn samples(cuts: &[bool], rows: Vec<AlikeRow>) -> Result<Vec<SignatureSample>, StoreError> {
    let sample = |&is_cut: &bool| SignatureSample { lowest: Vec::new(), is_cut };
    let mut samples: Vec<SignatureSample> = cuts.iter().map(sample).collect();
    for row in rows {
        let AlikeMark { hash, kind, weight } = row.mark()?;
        let AlikeKind::Signature(number) = kind else { continue };
        let sample = samples.get_mut(usize::from(number)).ok_or_else(|| StoreError::corrupt("a sample too many"))?;
        sample.lowest.push(Signature { hash, rows: weight });
    }
    Ok(samples)
}
