use std::collections::BTreeSet;

use super::context::JobContext;
use super::earlier_releases::{earlier_releases_memory, find_earlier_releases};
use super::env::{ColumnSelection, InputEnv, OtherSelections};
use super::error::InputError;
use super::memory::MemoryBudget;
use super::memory_estimate::{dropped_columns_memory, engine_job_memory, extra_columns_memory, job_memory};
use crate::ledger::EarlierDisclosures;
use crate::microdata::ColumnProfile;
use crate::spec::{DependencySearch, PeopleChoice};

/// The other columns of a job, and the memory of everything it reads.
pub(crate) struct JobInputs {
    /// The columns.
    pub(crate) others: OtherSelections,
    /// Bytes for the release itself, where it is made here.
    release_bytes: u64,
    /// Bytes for the extra columns.
    extra_bytes: u64,
    /// Bytes for the earlier releases that the specification names.
    earlier_bytes: u64,
    site: ReleaseSite,
}

/// Where a release is made.
#[derive(Clone, Copy)]
enum ReleaseSite {
    /// Here, from rows that are read here.
    Here,
    /// By the engine that has the rows, which takes this much memory here; here if that engine refuses it and the rows are few.
    Engine { bytes: u64, or_here: bool },
}

impl JobInputs {
    /// Bytes of memory that the whole job takes, within a budget.
    pub(crate) fn bytes(&self, budget: &MemoryBudget) -> u64 {
        match self.site {
            ReleaseSite::Here => self.bytes_here(),
            ReleaseSite::Engine { bytes, .. } if self.may_be_made_here(budget) => bytes.max(self.bytes_here()),
            ReleaseSite::Engine { bytes, .. } => bytes,
        }
    }

    /// Bytes of memory without which no job can be made.
    pub(crate) const fn least_bytes(&self) -> u64 {
        match self.site {
            ReleaseSite::Here => self.release_bytes.saturating_add(self.earlier_bytes),
            ReleaseSite::Engine { bytes, .. } => bytes,
        }
    }

    /// Whether the release is made here if the engine refuses it.
    pub(crate) fn may_be_made_here(&self, budget: &MemoryBudget) -> bool {
        let or_here = matches!(self.site, ReleaseSite::Here | ReleaseSite::Engine { or_here: true, .. });
        or_here && budget.check(self.bytes_here()).is_ok()
    }

    const fn bytes_here(&self) -> u64 {
        self.release_bytes.saturating_add(self.extra_bytes).saturating_add(self.earlier_bytes)
    }
}

impl JobContext {
    /// The columns that the specification does not use, except those that cannot be loaded, and dropped ones that nothing
    /// published can determine.
    pub(crate) fn other_columns(&self, env: &InputEnv, earlier: &EarlierDisclosures) -> OtherSelections {
        if !self.dataset.is_readable_here() {
            return OtherSelections::default();
        }
        let identities = &earlier.identities;
        let named: BTreeSet<&str> = earlier.names().flat_map(|name| identities.roots(name)).collect();
        let is_extra = |name: &String| identities.roots(name).iter().any(|root| named.contains(root));
        let loadable = self.profiles.iter().enumerate().filter(|(_, profile)| !profile.exceeds(&env.limits));
        let unused = loadable.filter(|(_, profile)| !self.specification.names.contains(&profile.name));
        let (extra, dropped): (Vec<_>, Vec<_>) = unused.partition(|(_, profile)| is_extra(&profile.name));
        let most = self.most_values(&extra);
        let selection = |columns: Vec<(usize, &ColumnProfile)>| {
            let (indexes, names) = columns.into_iter().map(|(index, profile)| (index, profile.name.clone())).unzip();
            ColumnSelection { names, indexes }
        };
        let is_searched = self.specification.knowledge.search != DependencySearch::None;
        let may_tie = |profile: &ColumnProfile| profile.codes().is_some_and(|codes| (2..=most).contains(&codes));
        let dropped = dropped.into_iter().filter(|(_, profile)| is_searched && may_tie(profile));
        OtherSelections { dropped: selection(dropped.collect()), extra: selection(extra) }
    }

    /// The most values of a dropped column that a published, earlier published or named one may determine.
    ///
    /// A function has no more values than arguments, apart from its exceptions. Of some of the rows the counts are not known.
    fn most_values(&self, extra: &[(usize, &ColumnProfile)]) -> u64 {
        let Self { dataset, profiles, specification, .. } = self;
        if specification.people != PeopleChoice::All && !dataset.person.is_empty() {
            return u64::MAX;
        }
        let is_named = |profile: &&ColumnProfile| specification.dropped_names.contains(&profile.name);
        let published = specification.used.iter().filter_map(|&column| profiles.get(column));
        let ends = published.chain(extra.iter().map(|(_, profile)| *profile)).chain(profiles.iter().filter(is_named));
        let most = ends.filter_map(ColumnProfile::codes).max().unwrap_or(0);
        let tolerance = specification.knowledge.tolerance;
        let exceptions = u128::from(dataset.rows) * u128::from(tolerance.numerator());
        most.saturating_add((exceptions / u128::from(tolerance.denominator())) as u64)
    }

    /// The other columns and the memory of the job, given the earlier disclosures.
    ///
    /// # Errors
    /// [`InputError::Refused`] when an earlier release that the specification names cannot be used, or an error of the store.
    pub(crate) async fn inputs(&self, env: &InputEnv, earlier: &EarlierDisclosures) -> Result<JobInputs, InputError> {
        let Self { dataset, profiles, specification, .. } = self;
        let others = self.other_columns(env, earlier);
        let named = find_earlier_releases(env, self, earlier).await?;
        let site = match self.is_made_here(earlier) {
            true => ReleaseSite::Here,
            false => ReleaseSite::Engine {
                bytes: engine_job_memory(dataset, profiles, specification),
                or_here: self.dataset.is_readable_here(),
            },
        };
        Ok(JobInputs {
            release_bytes: job_memory(dataset, profiles, specification)
                .saturating_add(dropped_columns_memory(dataset, profiles, &others.dropped.indexes))
                .saturating_add(self.night_memory(env).await?),
            extra_bytes: extra_columns_memory(dataset, profiles, specification, &others.extra.indexes),
            earlier_bytes: earlier_releases_memory(self, earlier, &named),
            others,
            site,
        })
    }
}
