use tokio::runtime::Handle;

use super::columns::load;
use super::composition::{CompositionCheck, CompositionContext, extra_columns};
use super::earlier_releases::{EarlierReleaseRef, earlier_releases_memory, find_earlier_releases};
use super::error::InputError;
use super::memory_estimate::{extra_columns_memory, job_memory};
use super::profiles::specification_of;
use crate::control::Control;
use crate::ledger::EarlierDisclosures;
use crate::microdata::formats::IngestLimits;
use crate::microdata::{ColumnProfile, Table};
use crate::ports::{DatasetRecord, JobRecord, Store, StoreError};
use crate::problem::Problem;
use crate::spec::Specification;
use crate::vault::Vault;

/// The services that inputs are read with.
#[derive(Clone, Copy)]
pub(crate) struct InputEnv<'a> {
    /// Holds the encrypted chunks.
    pub(crate) store: &'a dyn Store,
    /// Decrypts them.
    pub(crate) vault: &'a Vault,
    /// Bounds what a column may hold.
    pub(crate) limits: &'a IngestLimits,
}

/// A specification and its dataset, before any row is read.
pub(crate) struct JobContext {
    /// The dataset.
    pub(crate) dataset: DatasetRecord,
    /// Profiles of all its columns.
    pub(crate) profiles: Vec<ColumnProfile>,
    /// Names of all its columns.
    pub(crate) columns: Vec<String>,
    /// The specification.
    pub(crate) specification: Specification,
}

/// Columns of a dataset.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct ColumnSelection {
    /// Names that the loaded columns get.
    pub(crate) names: Vec<String>,
    /// Positions in the dataset.
    pub(crate) indexes: Vec<usize>,
}

/// Columns that a job reads in addition to those of its specification, and the memory of everything it reads.
pub(crate) struct JobInputs {
    /// Columns that are compared with columns of earlier releases.
    pub(crate) extra: ColumnSelection,
    /// Bytes for the release itself.
    pub(crate) release_bytes: u64,
    /// Bytes for the extra columns.
    pub(crate) extra_bytes: u64,
    /// Bytes for the earlier releases that the specification names.
    pub(crate) earlier_bytes: u64,
}

impl JobInputs {
    /// Bytes of memory that the whole job takes.
    pub(crate) const fn bytes(&self) -> u64 {
        self.release_bytes.saturating_add(self.extra_bytes).saturating_add(self.earlier_bytes)
    }
}

impl JobContext {
    pub(crate) fn new(dataset: DatasetRecord, profiles: Vec<ColumnProfile>, specification: Specification) -> Self {
        let columns = profiles.iter().map(|profile| profile.name.clone()).collect();
        Self { dataset, profiles, columns, specification }
    }

    /// The context of an accepted job.
    ///
    /// # Errors
    /// [`InputError::Refused`] when the specification no longer fits, or an error of the store.
    pub(crate) async fn for_job(job: &JobRecord, env: InputEnv<'_>) -> Result<Self, InputError> {
        let dataset = env.store.dataset(&job.tenant, job.dataset).await?;
        let dataset = dataset.ok_or_else(|| StoreError::corrupt("the dataset of a job is unknown"))?;
        let profiles = dataset.profiles(env.vault)?;
        let specification = specification_of(job, &dataset, &profiles, env.limits);
        let specification = specification.map_err(|faults| InputError::Refused(Problem::of_faults(faults)))?;
        Ok(Self::new(dataset, profiles, specification))
    }

    /// What the ledger holds about the data subjects of the dataset.
    pub(crate) async fn composition(&self, env: InputEnv<'_>) -> Result<CompositionContext, StoreError> {
        let check = CompositionCheck {
            store: env.store,
            vault: env.vault,
            dataset: &self.dataset,
            columns: &self.columns,
            used: &self.specification.names,
        };
        check.context(&env.store.series(&self.dataset.tenant, &self.dataset.series).await?).await
    }

    /// The columns that earlier releases make comparable.
    pub(crate) fn extra_columns(&self, env: InputEnv<'_>, earlier: &EarlierDisclosures) -> ColumnSelection {
        let indexes = extra_columns(&self.columns, &self.profiles, &self.specification, earlier, env.limits);
        let names = indexes.iter().map(|&index| self.columns[index].clone()).collect();
        ColumnSelection { names, indexes }
    }

    /// The extra columns and the memory of the job, given the earlier disclosures.
    ///
    /// # Errors
    /// [`InputError::Refused`] when an earlier release that the specification names cannot be used, or an error of the store.
    pub(crate) async fn inputs(
        &self,
        env: InputEnv<'_>,
        earlier: &EarlierDisclosures,
    ) -> Result<JobInputs, InputError> {
        let Self { dataset, profiles, specification, .. } = self;
        let extra = self.extra_columns(env, earlier);
        let named: Vec<EarlierReleaseRef> = find_earlier_releases(env, dataset, earlier, specification).await?;
        Ok(JobInputs {
            release_bytes: job_memory(dataset, profiles, specification),
            extra_bytes: extra_columns_memory(dataset, profiles, specification, &extra.indexes),
            earlier_bytes: earlier_releases_memory(dataset, profiles, specification, (earlier, &named)),
            extra,
        })
    }

    /// Loads the columns of the specification; on a blocking thread.
    pub(crate) fn load(&self, handle: &Handle, env: InputEnv<'_>, control: &Control) -> Result<Table, InputError> {
        let Specification { names, used, .. } = &self.specification;
        load(handle, env, &self.dataset, (names, used), control)
    }

    /// Loads extra columns, if there are any; on a blocking thread.
    pub(crate) fn load_extra(
        &self,
        handle: &Handle,
        env: InputEnv<'_>,
        extra: &ColumnSelection,
        control: &Control,
    ) -> Result<Option<Table>, InputError> {
        if extra.indexes.is_empty() {
            return Ok(None);
        }
        load(handle, env, &self.dataset, (&extra.names, &extra.indexes), control).map(Some)
    }
}
