//! Rows of a dataset that a job or a release is of: all, or those of some persons.

use std::collections::BTreeMap;
use std::sync::Arc;

use uuid::Uuid;

use super::context::JobContext;
use super::env::InputEnv;
use super::error::InputError;
use super::people::{JobPeople, JobPersons, PersonKeys, RowChoice, chosen_rows, unpublished_persons};
use super::stored_rows::StoredRows;
use crate::control::{Control, Phase};
use crate::microdata::{Chunk, ChunkColumn};
use crate::people::{EvidenceCollector, EvidenceError, KeyedHash, SystemColumns};
use crate::ports::{DatasetRecord, StoreError};
use crate::spec::PeopleChoice;
use crate::vault::ContentHasher;

/// Some rows of a dataset.
#[derive(Clone, Debug)]
pub(crate) struct KeptRows {
    /// For each row of each chunk, whether it is one.
    chunks: Vec<Vec<bool>>,
}

impl KeptRows {
    /// How many there are.
    pub(crate) fn rows(&self) -> u64 {
        self.chunks.iter().flatten().filter(|is_kept| **is_kept).count() as u64
    }

    /// Whether a row of a chunk is one.
    pub(super) fn has(&self, chunk: u32, row: usize) -> bool {
        self.chunks.get(chunk as usize).and_then(|kept| kept.get(row)).is_some_and(|is_kept| *is_kept)
    }

    /// The rows of a column of a chunk.
    pub(crate) fn of_column(&self, chunk: u32, column: &ChunkColumn) -> Result<ChunkColumn, StoreError> {
        let kept = self.chunks.get(chunk as usize).filter(|kept| kept.len() == column.rows());
        Ok(column.kept(kept.ok_or_else(|| StoreError::corrupt("a chunk has other rows than its keys"))?))
    }

    /// The rows of the persons of a release that left out others; on a blocking thread.
    ///
    /// # Errors
    /// [`InputError`]
    pub(crate) fn of_job(
        env: &InputEnv,
        dataset: &DatasetRecord,
        job: Uuid,
        control: &Control,
    ) -> Result<Self, InputError> {
        let keyed = KeyedRows::new(env, dataset, StoredRows::open(env, dataset, None)?)?;
        let mut chunks = Vec::new();
        for number in 0..keyed.rows.chunks() {
            control.check()?;
            let chunk = keyed.rows.chunk(number)?;
            chunks.push(keyed.chosen(env, RowChoice::OfJob(job), &dataset.tenant, &chunk)?);
        }
        Ok(Self { chunks })
    }
}

/// The rows of a dataset with their person keys.
struct KeyedRows<'a> {
    rows: StoredRows<'a>,
    systems: Vec<SystemColumns>,
    hasher: ContentHasher,
}

impl<'a> KeyedRows<'a> {
    fn new(env: &InputEnv, dataset: &DatasetRecord, rows: StoredRows<'a>) -> Result<Self, InputError> {
        let registry = env.handle.block_on(env.store.people_registry(&dataset.tenant))?;
        let systems = rows.key_layout(&registry)?.systems;
        Ok(Self { rows, systems, hasher: env.vault.content_hasher(&dataset.tenant) })
    }

    fn chosen(&self, env: &InputEnv, choice: RowChoice, tenant: &str, chunk: &Chunk) -> Result<Vec<bool>, StoreError> {
        let keys = PersonKeys { hasher: &self.hasher, systems: &self.systems };
        env.handle.block_on(chosen_rows(choice, env.store.as_ref(), tenant, keys, chunk))
    }
}

impl JobContext {
    /// Leaves out the rows that the job does not publish, and gives the evidence of the others; on a blocking thread.
    ///
    /// # Errors
    /// [`InputError`]
    pub(crate) fn choose_rows(&mut self, env: &InputEnv, control: &Control) -> Result<JobPeople, InputError> {
        if self.specification.people == PeopleChoice::All || self.dataset.person.is_empty() {
            self.kept = None;
            return env.handle.block_on(self.people(env));
        }
        let (kept, people) = self.collect_unpublished(env, control)?;
        self.kept = Some(Arc::new(kept));
        Ok(people)
    }

    fn collect_unpublished(&self, env: &InputEnv, control: &Control) -> Result<(KeptRows, JobPeople), InputError> {
        let tenant = &self.dataset.tenant;
        let keyed = KeyedRows::new(env, &self.dataset, self.stored_rows(env)?)?;
        let chunks = keyed.rows.chunks();
        let registry = env.handle.block_on(env.store.people_registry(tenant))?;
        let layout = keyed.rows.key_layout(&registry)?;
        let mut collector = EvidenceCollector::new(keyed.hasher.clone(), layout, &env.spool);
        let mut kept = KeptRows { chunks: Vec::new() };
        control.begin(Phase::Load, u64::from(chunks))?;
        for number in 0..chunks {
            control.advance(1)?;
            let chunk: Chunk = keyed.rows.chunk(number)?;
            let rows = keyed.chosen(env, RowChoice::Unpublished, tenant, &chunk)?;
            collector.add(&chunk, |row| rows[row]).map_err(evidence_error)?;
            kept.chunks.push(rows);
        }
        let mut persons: BTreeMap<String, Vec<KeyedHash>> = BTreeMap::new();
        let list = |system: &str, some: &[KeyedHash]| {
            persons.entry(system.to_owned()).or_default().extend_from_slice(some);
            Ok(())
        };
        let evidence = collector.finish(control, list).map_err(evidence_error)?;
        Ok((kept, JobPeople { evidence: Arc::new(evidence), persons: JobPersons::Listed(Arc::new(persons)) }))
    }

    /// What is known, without reading rows, of the persons whose rows the job publishes: their keys, and no cells.
    ///
    /// # Errors
    /// [`InputError::Purged`], or the store's.
    pub(crate) async fn chosen_people(&self, env: &InputEnv) -> Result<JobPeople, InputError> {
        let people = self.people(env).await?;
        match self.specification.people {
            PeopleChoice::All => Ok(people),
            PeopleChoice::Unpublished => unpublished_persons(env.store.as_ref(), &self.dataset.tenant, &people).await,
        }
    }
}

fn evidence_error(error: EvidenceError) -> InputError {
    match error {
        EvidenceError::Cancelled(_) => InputError::Cancelled,
        other => StoreError::corrupt(other).into(),
    }
}
