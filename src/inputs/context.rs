use std::sync::Arc;

use super::columns::{DatasetRows, load};
use super::env::{ColumnSelection, InputEnv, OtherSelections};
use super::error::InputError;
use super::kept_rows::KeptRows;
use super::profiles::specification_of;
use super::stored_rows::StoredRows;
use crate::control::Control;
use crate::microdata::{ChunkFile, ColumnProfile, Table, UploadedColumn};
use crate::ports::{DatasetRecord, JobRecord, StoreError};
use crate::problem::Problem;
use crate::spec::Specification;

/// The columns of a dataset that a specification does not use, rows in the same order.
#[derive(Default)]
pub(crate) struct OtherTables {
    /// The columns of earlier releases.
    pub(crate) extra: Option<Table>,
    /// The columns that no release publishes.
    dropped: Option<Table>,
}

impl OtherTables {
    /// The columns that no release publishes.
    pub(crate) fn dropped(&self) -> Vec<UploadedColumn<'_>> {
        self.dropped.iter().flat_map(Table::uploaded).collect()
    }
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
    /// The rows that it publishes; all, if it names none.
    pub(super) kept: Option<Arc<KeptRows>>,
    /// The rows of a dataset that are in another engine, once they were copied.
    pub(crate) copied: Option<Arc<ChunkFile>>,
}

impl JobContext {
    pub(crate) fn new(dataset: DatasetRecord, profiles: Vec<ColumnProfile>, specification: Specification) -> Self {
        let columns = profiles.iter().map(|profile| profile.name.clone()).collect();
        Self { dataset, profiles, columns, specification, kept: None, copied: None }
    }

    /// The context of an accepted job.
    ///
    /// # Errors
    /// [`InputError::Refused`] when the specification no longer fits, or an error of the store.
    pub(crate) async fn for_job(job: &JobRecord, env: &InputEnv) -> Result<Self, InputError> {
        let dataset = env.store.dataset(&job.tenant, job.dataset).await?;
        let dataset = dataset.ok_or_else(|| StoreError::corrupt("the dataset of a job is unknown"))?;
        let profiles = dataset.profiles(&env.vault)?;
        let specification = specification_of(job, &dataset, &profiles, &env.limits);
        let specification = specification.map_err(|faults| InputError::Refused(Problem::of_faults(faults)))?;
        Ok(Self::new(dataset, profiles, specification))
    }

    /// The rows that the job publishes.
    pub(super) fn rows(&self) -> DatasetRows<'_> {
        DatasetRows { dataset: &self.dataset, kept: self.kept.as_deref(), copied: self.copied.as_ref() }
    }

    /// All rows of the dataset, chunk by chunk; on a blocking thread.
    pub(super) fn stored_rows<'a>(&'a self, env: &'a InputEnv) -> Result<StoredRows<'a>, InputError> {
        StoredRows::open(env, &self.dataset, self.copied.as_ref())
    }

    /// Loads the columns of the specification; on a blocking thread.
    pub(crate) fn load(&self, env: &InputEnv, control: &Control) -> Result<Table, InputError> {
        let Specification { names, used, .. } = &self.specification;
        load(env, self.rows(), names, used, control)
    }

    /// Loads other columns, if there are any; on a blocking thread.
    pub(crate) fn load_others(
        &self,
        env: &InputEnv,
        others: &OtherSelections,
        control: &Control,
    ) -> Result<OtherTables, InputError> {
        let load = |ColumnSelection { names, indexes }: &ColumnSelection| match indexes.is_empty() {
            true => Ok(None),
            false => load(env, self.rows(), names, indexes, control).map(Some),
        };
        Ok(OtherTables { extra: load(&others.extra)?, dropped: load(&others.dropped)? })
    }
}
