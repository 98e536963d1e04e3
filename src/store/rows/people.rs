//! Rows of populations, statements about them, and coverages.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use serde::Deserialize;
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

#[derive(Deserialize)]
pub(in crate::store) struct AlikeRow {
    pub(in crate::store) hash: KeyedHash,
    pub(in crate::store) kind: i64,
    pub(in crate::store) weight: i64,
}

impl AlikeRow {
    pub(in crate::store) fn mark(&self) -> Result<AlikeMark, StoreError> {
        alike_mark(self.hash, self.kind, self.weight)
    }
}

fn alike_mark(hash: KeyedHash, kind: i64, weight: i64) -> Result<AlikeMark, StoreError> {
    let (kind, weight) = (AlikeKind::from_number(kind)?, weight.try_into().map_err(StoreError::corrupt)?);
    Ok(AlikeMark { hash, kind, weight })
}

/// A coverage that has a mark, with the kind and the weight of the mark there.
#[derive(Clone, Copy, Deserialize)]
pub(in crate::store) struct MarkHolder(pub(in crate::store) i64, pub(in crate::store) i64, pub(in crate::store) i64);

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

/// A mark that some coverages have; of one that many have, none of them.
#[derive(Deserialize)]
pub(in crate::store) struct CommonMark(pub(in crate::store) KeyedHash, pub(in crate::store) Vec<MarkHolder>);

impl CommonMark {
    /// The number of coverages from which on it is not said who has a mark. One that is left out has it, too.
    pub(in crate::store) fn limit(except: Option<i64>) -> i64 {
        NAMED_HOLDERS + 1 - i64::from(except.is_some())
    }
}

/// What is held in common, in the order of coverages.
pub(in crate::store) fn common_marks(found: Vec<CommonMark>) -> Result<CommonMarks, StoreError> {
    let mut common = CommonMarks::default();
    for CommonMark(hash, holders) in found {
        if holders.is_empty() {
            common.frequent.insert(hash);
        }
        for MarkHolder(coverage, kind, weight) in holders {
            common.held.push((CoverageId(coverage), alike_mark(hash, kind, weight)?));
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
