//! Named series of earlier versions: they are populations now.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use uuid::Uuid;

use super::api_keys::AuditEntry;
use super::error::StoreError;
use super::people::NamedPopulation;

/// A dataset that an upload of an earlier version put into a named series.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SeriesDataset {
    /// Whose it is.
    pub tenant: String,
    /// The series.
    pub series: String,
    /// The dataset.
    pub dataset: Uuid,
    /// The attributes that identify a record.
    pub record_key: Option<Vec<String>>,
    /// The attribute that identifies a subject.
    pub subject: Option<String>,
    /// How many rows one subject may have.
    pub max_rows_per_subject: Option<u64>,
    /// Whether its rows are gone.
    pub is_purged: bool,
}

/// What a series becomes.
#[derive(Clone, PartialEq, Debug)]
pub struct AdoptedSeries {
    /// The tenant.
    pub tenant: String,
    /// The population; it is defined unless it is there.
    pub population: NamedPopulation,
    /// Its datasets, each with the attributes of the key per key system.
    pub datasets: BTreeMap<Uuid, BTreeMap<String, Vec<String>>>,
    /// Those of them whose rows are gone: nothing can be collected of them.
    pub purged: BTreeSet<Uuid>,
    /// The entry for the audit log.
    pub audit_entry: AuditEntry,
}

/// Makes populations of series.
#[async_trait]
pub trait FormerSeriesStore: Send + Sync {
    /// The datasets of all tenants that are in a named series and in no population, oldest first.
    async fn datasets_of_series(&self) -> Result<Vec<SeriesDataset>, StoreError>;

    /// Puts the datasets of a series into a population. What was known of their persons is collected anew, and the
    /// coverages of their releases are made anew; that of rows that are gone stays, and is of the population.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when the population cannot be defined.
    async fn adopt_series(&self, series: &AdoptedSeries) -> Result<(), StoreError>;
}
