//! The original of a release, and the rows of tables that were entered, for attacks that need them.

use std::sync::Arc;

use tokio::runtime::Handle;
use uuid::Uuid;

use super::desk::load_problem;
use super::entered::{ExternalRows, ExternalRowsError};
use super::load::{ColumnSources, LoadError, columns_memory, load};
use super::publish::specification_of;
use super::{
    AppService, AuditAction, DatasetRecord, MemoryBudget, MemoryPermit, ReleaseRecord, Statement, Store, StoreError,
    problem_of,
};
use crate::control::Control;
use crate::engine::{EngineError, ExternalTableRows, ReadFile};
use crate::identity::Caller;
use crate::ledger::EarlierDisclosures;
use crate::microdata::formats::IngestLimits;
use crate::problem::{Fault, Kind, Problem};
use crate::vault::{ContentHasher, Vault};

/// What a release was made from, not read yet.
pub struct ReleaseOriginal {
    handle: Handle,
    store: Arc<dyn Store>,
    vault: Arc<Vault>,
    limits: IngestLimits,
    budget: MemoryBudget,
    dataset: DatasetRecord,
    /// The published names of the columns, and where they stand.
    columns: (Vec<String>, Vec<usize>),
    need: u64,
    hasher: ContentHasher,
}

impl AppService {
    /// The original of a release that is served, which the caller may use.
    ///
    /// # Errors
    /// `gone` when it was purged, or the store's problem: what cannot be recorded is not answered.
    pub async fn original(&self, caller: &Caller, release: &ReleaseRecord) -> Result<ReleaseOriginal, Problem> {
        let failed = |error: StoreError| problem_of(&error);
        let dataset = self.dataset(caller, release.dataset).await?;
        let job = self.store.job(&caller.tenant, release.job).await.map_err(failed)?;
        let job = job.ok_or_else(|| failed(StoreError::corrupt("a release has no job")))?;
        let profiles = self.profiles(&dataset)?;
        let unread = |_| Problem::new(Kind::Internal, "the specification of the release cannot be understood");
        let specification = specification_of(&job, &dataset, &profiles, &self.limits).map_err(unread)?;
        let need = columns_memory(&dataset, &profiles, &specification.used);
        let mut hasher = self.vault.content_hasher(&caller.tenant);
        hasher.update(b"halves of the rows of a release\0");
        hasher.update(release.id.as_bytes());
        self.note(caller, AuditAction::ReadInternal, release.id).await?;
        Ok(ReleaseOriginal {
            handle: Handle::current(),
            store: Arc::clone(&self.store),
            vault: Arc::clone(&self.vault),
            limits: self.limits.clone(),
            budget: self.budget.clone(),
            dataset,
            columns: (specification.published_names, specification.used),
            need,
            hasher,
        })
    }
}

/// Tables that were entered, and that a release was made against, not read yet.
pub struct ExternalRowsSource {
    handle: Handle,
    store: Arc<dyn Store>,
    vault: Arc<Vault>,
    limits: IngestLimits,
    budget: MemoryBudget,
    tables: Vec<ExternalRows>,
}

impl AppService {
    /// Those of the tables of a series that were entered and have these ids, which the caller may read.
    ///
    /// # Errors
    /// `gone` when the rows of one were purged, what else keeps them from being read, or the store's problem: what cannot be
    /// recorded is not answered.
    pub async fn entered(
        &self,
        caller: &Caller,
        release: &ReleaseRecord,
        ids: &[Uuid],
    ) -> Result<ExternalRowsSource, Problem> {
        let series = self.store.series(&caller.tenant, &release.series).await.map_err(|error| problem_of(&error))?;
        let mut earlier = EarlierDisclosures::default();
        for record in &series.statements {
            Statement::read(record).map_err(|error| problem_of(&error))?.enter(&mut earlier);
        }
        let mut tables = Vec::new();
        for id in ids {
            let found = ExternalRows::find((self.store.as_ref(), &self.vault), &caller.tenant, *id, &earlier).await;
            tables.push(found.map_err(external_rows_problem)?);
        }
        self.note(caller, AuditAction::ReadInternal, release.id).await?;
        Ok(ExternalRowsSource {
            handle: Handle::current(),
            store: Arc::clone(&self.store),
            vault: Arc::clone(&self.vault),
            limits: self.limits.clone(),
            budget: self.budget.clone(),
            tables,
        })
    }
}

impl ExternalRowsSource {
    /// Reads them, on a blocking thread; they take memory until what comes with them is dropped.
    ///
    /// # Errors
    /// [`EngineError`]
    pub fn read(&self, control: &Control) -> Result<(Vec<ExternalTableRows>, MemoryPermit), EngineError> {
        let need = self.tables.iter().map(ExternalRows::memory_of_rows).fold(0, u64::saturating_add);
        let room = self.budget.take_now(need).map_err(EngineError::Refused)?;
        let sources = ColumnSources { store: self.store.as_ref(), vault: &self.vault, limits: &self.limits };
        let read = |table: &ExternalRows| {
            table.read(&self.handle, sources, control).map_err(|why| match why {
                ExternalRowsError::Failed(LoadError::Cancelled) => EngineError::Cancelled,
                other => EngineError::Refused(external_rows_problem(other)),
            })
        };
        Ok((self.tables.iter().map(read).collect::<Result<_, _>>()?, room))
    }
}

/// Why a table that was entered cannot be attacked.
fn external_rows_problem(why: ExternalRowsError) -> Problem {
    match why {
        ExternalRowsError::Absent(detail) => Problem::of_faults(vec![Fault::new("/attack", Kind::BadColumns, detail)]),
        ExternalRowsError::Purged => {
            let detail = "the dataset that held the rows of a table which the release was made against was purged";
            Problem::new(Kind::Gone, detail)
        }
        ExternalRowsError::Failed(error) => load_problem(error),
    }
}

impl ReleaseOriginal {
    /// A number of each row, always the same, which nobody can foretell.
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
        let room = self.budget.take_now(self.need).map_err(EngineError::Refused)?;
        let sources = ColumnSources { store: self.store.as_ref(), vault: &self.vault, limits: &self.limits };
        let (names, used) = &self.columns;
        let table =
            load(&self.handle, sources, &self.dataset, (names, used), control).map_err(|error| match error {
                LoadError::Cancelled => EngineError::Cancelled,
                other => EngineError::Refused(load_problem(other)),
            })?;
        let columns = table.attributes().iter().map(|attr| (table.name(attr).to_owned(), table.column(attr).clone()));
        Ok((ReadFile { columns: columns.collect(), rows: table.rows() }, room))
    }
}
