use uuid::Uuid;

use super::columns::{DatasetRows, load};
use super::context::JobContext;
use super::env::{ColumnSelection, InputEnv};
use super::error::{ExternalRowsError, InputError};
use super::external_rows::ExternalRows;
use super::kept_rows::KeptRows;
use super::memory::{MemoryBudget, MemoryPermit};
use super::memory_estimate::columns_memory;
use crate::control::Control;
use crate::engine::{EngineError, ExternalTableRows, ReadFile};
use crate::microdata::Table;
use crate::ports::{DatasetRecord, JobRecord, StoreError};
use crate::problem::{Fault, Kind, Problem};
use crate::vault::ContentHasher;

/// What a release was made from, not read yet.
pub struct ReleaseOriginal {
    pub(crate) env: InputEnv,
    pub(crate) budget: MemoryBudget,
    pub(crate) dataset: DatasetRecord,
    /// The job, if it left out persons.
    pub(crate) left_out_by: Option<Uuid>,
    /// The columns, by their published names.
    pub(crate) columns: ColumnSelection,
    pub(crate) need: u64,
    pub(crate) hasher: ContentHasher,
}

/// External tables that a release was joined with, not read yet.
pub struct ExternalRowsSource {
    pub(crate) env: InputEnv,
    pub(crate) budget: MemoryBudget,
    pub(crate) tables: Vec<ExternalRows>,
}

/// The table that a night was made of, not read yet.
pub struct NightTable {
    pub(crate) env: InputEnv,
    pub(crate) budget: MemoryBudget,
    pub(crate) job: JobRecord,
}

/// The table of a night, which takes memory until it is dropped.
pub struct ReadNightTable {
    /// The published names of its columns.
    pub names: Vec<String>,
    /// The columns.
    pub table: Table,
    /// The hash of the person of each row.
    pub persons: Vec<[u8; 16]>,
    _room: MemoryPermit,
}

impl NightTable {
    /// Bytes for the person of each row.
    const PERSON_BYTES: u64 = 32;

    /// Reads it, on a blocking thread.
    ///
    /// # Errors
    /// [`EngineError`]
    pub fn read(&self, control: &Control) -> Result<ReadNightTable, EngineError> {
        let Self { env, budget, job } = self;
        let context = env.handle.block_on(JobContext::for_job(job, env))?;
        let population = env.handle.block_on(context.republished(env))?;
        let population =
            population.ok_or_else(|| InputError::from(StoreError::corrupt("a night republishes no population")))?;
        let columns = columns_memory(&context.dataset, &context.profiles, &context.specification.used);
        let need = columns.saturating_add(context.dataset.rows.saturating_mul(Self::PERSON_BYTES));
        let room = budget.try_acquire(need).map_err(EngineError::Refused)?;
        let persons = context.persons_of_rows(env, &population.key_system, control)?;
        let table = context.load(env, control)?;
        Ok(ReadNightTable { names: context.specification.published_names, table, persons, _room: room })
    }
}

impl ExternalRowsSource {
    /// Reads them, on a blocking thread; they take memory until what comes with them is dropped.
    ///
    /// # Errors
    /// [`EngineError`]
    pub fn read(&self, control: &Control) -> Result<(Vec<ExternalTableRows>, MemoryPermit), EngineError> {
        let need = self.tables.iter().map(ExternalRows::memory_of_rows).fold(0, u64::saturating_add);
        let room = self.budget.try_acquire(need).map_err(EngineError::Refused)?;
        let read = |table: &ExternalRows| {
            table.read(&self.env, control).map_err(|why| match why {
                ExternalRowsError::Failed(InputError::Cancelled) => EngineError::Cancelled,
                other => EngineError::Refused(external_rows_problem(other)),
            })
        };
        Ok((self.tables.iter().map(read).collect::<Result<_, _>>()?, room))
    }
}

/// The problem of an external table that cannot be attacked.
pub(crate) fn external_rows_problem(why: ExternalRowsError) -> Problem {
    match why {
        ExternalRowsError::Absent(detail) => Problem::of_faults(vec![Fault::new("/attack", Kind::BadColumns, detail)]),
        ExternalRowsError::Purged => {
            let detail = "the dataset that held the rows of a table which the release was made against was purged";
            Problem::new(Kind::Gone, detail)
        }
        ExternalRowsError::Failed(error) => error.into(),
    }
}

impl ReleaseOriginal {
    /// A secret hash of each row, always the same.
    pub fn hash(&self) -> impl Fn(usize) -> u64 + use<> {
        let hasher = self.hasher.clone();
        move |row| {
            let mut hasher = hasher.clone();
            hasher.update(&(row as u64).to_be_bytes());
            let hash = hasher.finish();
            hash.iter().take(8).fold(0, |word, &byte| word << 8 | u64::from(byte))
        }
    }

    /// Reads it, on a blocking thread; it takes memory until what comes with it is dropped.
    ///
    /// # Errors
    /// [`EngineError`]
    pub fn read(&self, control: &Control) -> Result<(ReadFile, MemoryPermit), EngineError> {
        let room = self.budget.try_acquire(self.need).map_err(EngineError::Refused)?;
        let ColumnSelection { names, indexes } = &self.columns;
        let kept = match self.left_out_by {
            Some(job) => Some(KeptRows::of_job(&self.env, &self.dataset, job, control)?),
            None => None,
        };
        let rows = DatasetRows { kept: kept.as_ref(), ..(&self.dataset).into() };
        let table = load(&self.env, rows, names, indexes, control)?;
        let columns = table.attributes().iter().map(|attr| (table.name(attr).to_owned(), table.column(attr).clone()));
        Ok((ReadFile { columns: columns.collect(), rows: table.rows() }, room))
    }
}
