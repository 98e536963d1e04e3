//! The original of a release, for an attack that needs it.

use std::sync::Arc;

use tokio::runtime::Handle;

use super::desk::unloaded;
use super::load::{LoadError, Sources, load, memory_of_columns};
use super::publish::specification_of;
use super::{Action, DatasetRecord, Desk, MemoryBudget, ReleaseRecord, Store, StoreError, Taken, problem_of};
use crate::control::Control;
use crate::engine::{ReadFile, Stopped};
use crate::identity::Caller;
use crate::microdata::formats::Limits;
use crate::problem::{Kind, Problem};
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
