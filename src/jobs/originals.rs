//! The original of a release, and the rows of tables that were entered, for attacks that need them.

use std::sync::Arc;

use tokio::runtime::Handle;
use uuid::Uuid;

use super::desk::unloaded;
use super::entered::{Entered, Unheld};
use super::load::{LoadError, Sources, load, memory_of_columns};
use super::publish::specification_of;
use super::{
    Action, DatasetRecord, Desk, MemoryBudget, ReleaseRecord, Statement, Store, StoreError, Taken, problem_of,
};
use crate::control::Control;
use crate::engine::{EnteredTable, ReadFile, Stopped};
use crate::identity::Caller;
use crate::ledger::Earlier;
use crate::microdata::formats::Limits;
use crate::problem::{Fault, Kind, Problem};
use crate::vault::{ContentHasher, Vault};

/// What a release was made from, not read yet.
pub struct Original {
    handle: Handle,
    store: Arc<dyn Store>,
    vault: Arc<Vault>,
    limits: Limits,
    budget: MemoryBudget,
    dataset: DatasetRecord,
    /// The published names of the columns, and where they stand.
    columns: (Vec<String>, Vec<usize>),
    need: u64,
    hasher: ContentHasher,
}

impl Desk {
    /// The original of a release that is served, which the caller may use.
    ///
    /// # Errors
    /// `gone` when it was purged, or the store's problem: what cannot be recorded is not answered.
    pub async fn original(&self, caller: &Caller, release: &ReleaseRecord) -> Result<Original, Problem> {
        let failed = |error: StoreError| problem_of(&error);
        let dataset = self.dataset(caller, release.dataset).await?;
        let job = self.store.job(&caller.tenant, release.job).await.map_err(failed)?;
        let job = job.ok_or_else(|| failed(StoreError::corrupt("a release has no job")))?;
        let profiles = self.profiles(&dataset)?;
        let unread = |_| Problem::new(Kind::Internal, "the specification of the release cannot be understood");
        let specification = specification_of(&job, &dataset, &profiles, &self.limits).map_err(unread)?;
        let need = memory_of_columns(&dataset, &profiles, &specification.used);
        let mut hasher = self.vault.content_hasher(&caller.tenant);
        hasher.update(b"halves of the rows of a release\0");
        hasher.update(release.id.as_bytes());
        self.note(caller, Action::ReadInternal, release.id).await?;
        Ok(Original {
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
pub struct EnteredRows {
    handle: Handle,
    store: Arc<dyn Store>,
    vault: Arc<Vault>,
    limits: Limits,
    budget: MemoryBudget,
    tables: Vec<Entered>,
}

impl Desk {
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
    ) -> Result<EnteredRows, Problem> {
        let series = self.store.series(&caller.tenant, &release.series).await.map_err(|error| problem_of(&error))?;
        let mut earlier = Earlier::default();
        for record in &series.statements {
            Statement::read(record).map_err(|error| problem_of(&error))?.enter(&mut earlier);
        }
        let mut tables = Vec::new();
        for id in ids {
            let found = Entered::find((self.store.as_ref(), &self.vault), &caller.tenant, *id, &earlier).await;
            tables.push(found.map_err(unheld)?);
        }
        self.note(caller, Action::ReadInternal, release.id).await?;
        Ok(EnteredRows {
            handle: Handle::current(),
            store: Arc::clone(&self.store),
            vault: Arc::clone(&self.vault),
            limits: self.limits.clone(),
            budget: self.budget.clone(),
            tables,
        })
    }
}

impl EnteredRows {
    /// Reads them, on a blocking thread; they take memory until what comes with them is dropped.
    ///
    /// # Errors
    /// [`Stopped`]
    pub fn read(&self, control: &Control) -> Result<(Vec<EnteredTable>, Taken), Stopped> {
        let need = self.tables.iter().map(Entered::memory_of_rows).fold(0, u64::saturating_add);
        let room = self.budget.take_now(need).map_err(Stopped::Refused)?;
        let sources = Sources { store: self.store.as_ref(), vault: &self.vault, limits: &self.limits };
        let read = |table: &Entered| {
            table.read(&self.handle, sources, control).map_err(|why| match why {
                Unheld::Failed(LoadError::Cancelled) => Stopped::Cancelled,
                other => Stopped::Refused(unheld(other)),
            })
        };
        Ok((self.tables.iter().map(read).collect::<Result<_, _>>()?, room))
    }
}

/// Why a table that was entered cannot be attacked.
fn unheld(why: Unheld) -> Problem {
    match why {
        Unheld::Absent(detail) => Problem::of_faults(vec![Fault::new("/attack", Kind::BadColumns, detail)]),
        Unheld::Purged => {
            let detail = "the dataset that held the rows of a table which the release was made against was purged";
            Problem::new(Kind::Gone, detail)
        }
        Unheld::Failed(error) => unloaded(error),
    }
}

impl Original {
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
    /// [`Stopped`]
    pub fn read(&self, control: &Control) -> Result<(ReadFile, Taken), Stopped> {
        let room = self.budget.take_now(self.need).map_err(Stopped::Refused)?;
        let sources = Sources { store: self.store.as_ref(), vault: &self.vault, limits: &self.limits };
        let (names, used) = &self.columns;
        let table =
            load(&self.handle, sources, &self.dataset, (names, used), control).map_err(|error| match error {
                LoadError::Cancelled => Stopped::Cancelled,
                other => Stopped::Refused(unloaded(other)),
            })?;
        let columns = table.attributes().iter().map(|attr| (table.name(attr).to_owned(), table.column(attr).clone()));
        Ok((ReadFile { columns: columns.collect(), rows: table.rows() }, room))
    }
}
