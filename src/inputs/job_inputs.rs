use std::collections::BTreeSet;

use super::context::JobContext;
use super::earlier_releases::{earlier_releases_memory, find_earlier_releases};
use super::env::{ColumnSelection, InputEnv};
use super::error::InputError;
use super::memory_estimate::{extra_columns_memory, job_memory};
use crate::ledger::EarlierDisclosures;

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
    /// The columns that the ledger names and the specification does not use, except those that cannot be loaded.
    pub(crate) fn extra_columns(&self, env: &InputEnv, earlier: &EarlierDisclosures) -> ColumnSelection {
        let identities = &earlier.identities;
        let named: BTreeSet<&str> = earlier.names().flat_map(|name| identities.roots(name)).collect();
        let is_extra = |name: &String| {
            !self.specification.names.contains(name) && identities.roots(name).iter().any(|root| named.contains(root))
        };
        let loadable = self.profiles.iter().enumerate().filter(|(_, profile)| !profile.exceeds(&env.limits));
        let extra = loadable.filter(|(_, profile)| is_extra(&profile.name));
        let (indexes, names) = extra.map(|(index, profile)| (index, profile.name.clone())).unzip();
        ColumnSelection { names, indexes }
    }

    /// The extra columns and the memory of the job, given the earlier disclosures.
    ///
    /// # Errors
    /// [`InputError::Refused`] when an earlier release that the specification names cannot be used, or an error of the store.
    pub(crate) async fn inputs(&self, env: &InputEnv, earlier: &EarlierDisclosures) -> Result<JobInputs, InputError> {
        let Self { dataset, profiles, specification, .. } = self;
        let extra = self.extra_columns(env, earlier);
        let named = find_earlier_releases(env, self, earlier).await?;
        Ok(JobInputs {
            release_bytes: job_memory(dataset, profiles, specification).saturating_add(self.night_memory(env).await?),
            extra_bytes: extra_columns_memory(dataset, profiles, specification, &extra.indexes),
            earlier_bytes: earlier_releases_memory(self, earlier, &named),
            extra,
        })
    }
}
