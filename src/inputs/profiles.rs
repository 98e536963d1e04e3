use serde_json::Value;

use super::error::InputError;
use crate::microdata::formats::IngestLimits;
use crate::microdata::{Attr, AttributeCounts, ColumnProfile};
use crate::ports::{DatasetRecord, JobRecord, StoreError};
use crate::problem::Fault;
use crate::publication::Unit;
use crate::spec;
use crate::spec::{ColumnFacts, DatasetSchema, DocumentSource, PeopleChoice, Specification};
use crate::vault::{Ciphertext, CiphertextContext, DataKey, Vault};

impl DatasetRecord {
    /// What one unit of protection is.
    #[must_use]
    pub fn unit(&self) -> Unit {
        match (&self.subject, self.max_rows_per_subject) {
            (Some(attribute), Some(max_rows)) => {
                let kept = self.contributions.as_ref().map(|bounded| bounded.choice.clone());
                Unit::Subject { attribute: attribute.clone(), max_rows, kept }
            }
            _ => Unit::Row,
        }
    }

    /// The columns that identify records or persons, each once.
    #[must_use]
    pub fn key_columns(&self) -> Vec<String> {
        let mut columns = self.record_key.clone().unwrap_or_default();
        for column in self.person.values().flatten() {
            if !columns.contains(column) {
                columns.push(column.clone());
            }
        }
        columns
    }

    /// The key of the dataset.
    ///
    /// # Errors
    /// [`InputError::Purged`], or [`StoreError::Corrupt`] when there is none or it cannot be opened: what should be encrypted is never
    /// taken as it stands.
    pub(crate) fn data_key(&self, vault: &Vault) -> Result<DataKey, InputError> {
        match &self.wrapped_key {
            _ if self.purged_at.is_some() => Err(InputError::Purged),
            Some(wrapped_key) => Ok(vault.data_key(self.id, wrapped_key).map_err(StoreError::from)?),
            None => Err(StoreError::corrupt("a dataset has no key").into()),
        }
    }

    /// What is known of the columns.
    ///
    /// # Errors
    /// As [`DatasetRecord::data_key`], or [`StoreError::Corrupt`] when the stored profiles cannot be read.
    pub(crate) fn profiles(&self, vault: &Vault) -> Result<Vec<ColumnProfile>, InputError> {
        let key = self.data_key(vault)?;
        let ciphertext = self.profiles.as_ref().ok_or_else(|| StoreError::corrupt("a dataset has no profiles"))?;
        let profiles = key.decrypt(CiphertextContext::Profiles, ciphertext).map_err(StoreError::from)?;
        Ok(serde_json::from_slice(&profiles).map_err(StoreError::corrupt)?)
    }
}

/// The profiles as [`DatasetRecord::profiles`] reads them.
pub(crate) fn encrypt_profiles(key: &DataKey, profiles: &[ColumnProfile]) -> Result<Ciphertext, StoreError> {
    let plain = serde_json::to_vec(profiles).map_err(StoreError::corrupt)?;
    Ok(key.encrypt(CiphertextContext::Profiles, &plain)?)
}

/// What the check of a specification needs to know of the columns.
#[must_use]
pub(crate) fn column_facts(rows: u64, profiles: &[ColumnProfile], limits: &IngestLimits) -> Vec<ColumnFacts> {
    let facts =
        |profile: &ColumnProfile| ColumnFacts { overflow: profile.exceeds(limits), ..ColumnFacts::new(profile, rows) };
    profiles.iter().map(facts).collect()
}

/// The stored profile of a dataset as the counts of a job's attributes.
pub(crate) struct ProfileCounts<'a> {
    /// The rows of the dataset.
    pub(crate) rows: u64,
    /// The profiles of all columns.
    pub(crate) profiles: &'a [ColumnProfile],
    /// The columns that the job uses.
    pub(crate) used: &'a [usize],
}

impl ProfileCounts<'_> {
    fn profile(&self, attr: Attr) -> &ColumnProfile {
        &self.profiles[self.used[attr.index()]]
    }
}

impl AttributeCounts for ProfileCounts<'_> {
    fn rows(&self) -> u64 {
        self.rows
    }

    fn attributes(&self) -> usize {
        self.used.len()
    }

    fn largest(&self, attr: Attr) -> u64 {
        self.profile(attr).top
    }

    fn distinct(&self, attr: Attr) -> u64 {
        // columns with too many values are refused before any plan
        self.profile(attr).codes().unwrap_or(u64::MAX)
    }

    fn of_values(&self, _: Attr) -> Option<Vec<u64>> {
        None
    }
}

/// The specification of a job, as it was accepted.
///
/// # Errors
/// The faults of one that an earlier version accepted, or that is damaged: the caller can act on them.
pub(crate) fn specification_of(
    job: &JobRecord,
    dataset: &DatasetRecord,
    profiles: &[ColumnProfile],
    limits: &IngestLimits,
) -> Result<Specification, Vec<Fault>> {
    read_accepted(&job.specification, dataset, profiles, limits)
}

/// The specification that a document of a job gives.
///
/// # Errors
/// Its faults.
pub(super) fn read_accepted(
    document: &Value,
    dataset: &DatasetRecord,
    profiles: &[ColumnProfile],
    limits: &IngestLimits,
) -> Result<Specification, Vec<Fault>> {
    let facts = column_facts(dataset.rows, profiles, limits);
    let (keys, unit) = (dataset.key_columns(), dataset.unit());
    let schema = DatasetSchema { columns: &facts, keys: &keys, unit: &unit };
    let mut document = document.clone();
    // what becomes of the release after it is made is the job's matter, and no command line's
    document.as_object_mut().map(|members| members.remove("hold"));
    // nor is it known on a command line who was published before
    let people = document.as_object_mut().and_then(|members| members.remove("people"));
    let reading = spec::read(&document, &schema, DocumentSource::CommandLine);
    match reading.specification {
        Some(mut specification) if reading.faults.is_empty() => {
            // faults that show when rows are read point at its values
            specification.normalized["dataset"] = dataset.id.to_string().into();
            if let Some(people) = people {
                specification.people = serde_json::from_value(people.clone()).unwrap_or(PeopleChoice::Unpublished);
                specification.normalized["people"] = people;
            }
            Ok(specification)
        }
        _ => Err(reading.faults),
    }
}
