//! Tables that were published elsewhere: the dataset that holds the rows of one, and which of them are rows of another dataset.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use uuid::Uuid;

use super::columns::load;
use super::context::JobContext;
use super::env::InputEnv;
use super::error::{ExternalRowsError, InputError};
use super::memory_estimate::columns_memory;
use super::record_match::{RECORD_BYTES, match_records, records};
use crate::control::Control;
use crate::engine;
use crate::engine::ExternalTableRows;
use crate::ledger::{AttributeIdentities, EarlierDisclosures};
use crate::microdata::{Attr, ColumnProfile, Table};
use crate::ports::DatasetRecord;
use crate::publication::{RecordMatches, RowCorrespondence};

/// An external table whose rows a dataset holds.
#[derive(Clone)]
pub(crate) struct ExternalRows {
    pub(super) id: Uuid,
    dataset: DatasetRecord,
    profiles: Vec<ColumnProfile>,
    /// Its attributes, by the names of the series, and the columns of the dataset that they are.
    attributes: Vec<String>,
    places: Vec<usize>,
    cuts: BTreeMap<String, Vec<Option<String>>>,
}

/// The declared attributes of an external table.
#[derive(Clone, Copy)]
pub(crate) struct ExternalAttributes<'a> {
    /// Their names in the series.
    pub(crate) names: &'a [String],
    /// The labels of each generalized attribute; `None` is the missing value.
    pub(crate) cuts: &'a BTreeMap<String, Vec<Option<String>>>,
}

/// Why one column of a dataset is not the attribute of a table.
pub(crate) const NO_SINGLE_COLUMN_DETAIL: &str = "is not exactly one column of the dataset, by its name or an alias";

/// The columns that attributes are: those of their names, else the only declared alias. No column is two.
///
/// # Errors
/// The places of the attributes that are none.
pub(super) fn columns_of(
    attributes: &[String],
    columns: &[&str],
    identities: &AttributeIdentities,
) -> Result<Vec<usize>, Vec<usize>> {
    let place = |attribute: &String| {
        let by_name = columns.iter().position(|column| column == attribute);
        let same = |column: &str| identities.canonical(column) == identities.canonical(attribute);
        by_name.or_else(|| {
            let mut alike = (0..columns.len()).filter(|&at| same(columns[at]));
            alike.next().filter(|_| alike.next().is_none())
        })
    };
    let mut taken = BTreeSet::new();
    let places = attributes.iter().map(|attribute| place(attribute).filter(|place| taken.insert(*place)));
    let places: Vec<Option<usize>> = places.collect();
    let all: Option<Vec<usize>> = places.iter().copied().collect();
    all.ok_or_else(|| places.iter().enumerate().filter(|(_, place)| place.is_none()).map(|(at, _)| at).collect())
}

impl ExternalRows {
    /// The external table of a disclosure of a tenant.
    ///
    /// # Errors
    /// [`ExternalRowsError`]
    pub(crate) async fn find(
        env: &InputEnv,
        tenant: &str,
        id: Uuid,
        earlier: &EarlierDisclosures,
    ) -> Result<Self, ExternalRowsError> {
        let table = earlier.disclosures.iter().find(|(of, _)| *of == id).map(|(_, disclosure)| disclosure);
        let (Some(table), Some(declared)) = (table, earlier.external.get(&id)) else {
            let detail =
                "it was neither published nor declared here: the rows by which the join is checked cannot be read";
            return Err(ExternalRowsError::Absent(detail.to_owned()));
        };
        let Some(dataset) = declared.dataset else {
            let detail = "the table was declared without a dataset that holds its rows: the rows cannot be read, by which the join is \
                          checked. Publish them here, as plain tuples, and name that release";
            return Err(ExternalRowsError::Absent(detail.to_owned()));
        };
        let found =
            env.store.dataset(tenant, dataset).await.map_err(|error| ExternalRowsError::Failed(error.into()))?;
        let dataset = match found {
            None => {
                return Err(ExternalRowsError::Absent(
                    "the dataset that held the rows of the table is not here".to_owned(),
                ));
            }
            Some(dataset) if dataset.purged_at.is_some() => return Err(ExternalRowsError::Purged),
            Some(dataset) => dataset,
        };
        let profiles = dataset.profiles(&env.vault)?;
        let attributes = ExternalAttributes { names: &table.attributes, cuts: &declared.cuts };
        let found = Self::new(id, dataset, profiles, attributes, &earlier.identities);
        found.map_err(|unknown| {
            let names: Vec<&str> = unknown.iter().map(|at| table.attributes[*at].as_str()).collect();
            ExternalRowsError::Absent(format!("of the external table, {} {NO_SINGLE_COLUMN_DETAIL}", names.join(", ")))
        })
    }

    /// A table of these attributes, whose rows a dataset holds.
    ///
    /// # Errors
    /// The places of the attributes that are no columns of it.
    pub(crate) fn new(
        id: Uuid,
        dataset: DatasetRecord,
        profiles: Vec<ColumnProfile>,
        declared: ExternalAttributes<'_>,
        identities: &AttributeIdentities,
    ) -> Result<Self, Vec<usize>> {
        let columns: Vec<&str> = profiles.iter().map(|profile| profile.name.as_str()).collect();
        let places = columns_of(declared.names, &columns, identities)?;
        let (attributes, cuts) = (declared.names.to_vec(), declared.cuts.clone());
        Ok(Self { id, dataset, profiles, attributes, places, cuts })
    }

    /// Whether it publishes an attribute generalized.
    pub(crate) fn has_cuts(&self) -> bool {
        !self.cuts.is_empty()
    }

    /// The bytes of memory that its rows take.
    pub(crate) fn memory_of_rows(&self) -> u64 {
        columns_memory(&self.dataset, &self.profiles, &self.places)
    }

    /// The attributes with labels outside their declared cut, on a blocking thread.
    ///
    /// # Errors
    /// [`InputError`]
    pub(crate) fn attributes_outside_cuts(&self, env: &InputEnv, control: &Control) -> Result<Vec<String>, InputError> {
        let mut found = Vec::new();
        for (name, place) in self.attributes.iter().zip(&self.places) {
            let Some(cut) = self.cuts.get(name) else { continue };
            let labels: BTreeSet<Option<&[u8]>> =
                cut.iter().map(|label| label.as_ref().map(String::as_bytes)).collect();
            let table = load(env, (&self.dataset).into(), std::slice::from_ref(name), &[*place], control)?;
            if !table.column(Attr::from(0_usize)).domain.iter().all(|cell| labels.contains(&cell)) {
                found.push(name.clone());
            }
        }
        Ok(found)
    }

    /// The bytes of memory that joining it with a dataset takes.
    pub(super) fn memory(&self, rows: u64) -> u64 {
        let sizes = super::memory_estimate::sizes_of(&self.dataset, &self.profiles, &self.places);
        let matching = RECORD_BYTES.saturating_mul(rows.saturating_add(self.dataset.rows));
        self.memory_of_rows().saturating_add(engine::join_memory(self.dataset.rows, &sizes)).saturating_add(matching)
    }

    /// Its rows, under the names of its attributes, on a blocking thread. Their correspondence to other tables is left out.
    ///
    /// # Errors
    /// [`ExternalRowsError`]
    pub(super) fn read(&self, env: &InputEnv, control: &Control) -> Result<ExternalTableRows, ExternalRowsError> {
        let table = load(env, (&self.dataset).into(), &self.attributes, &self.places, control)?;
        let (id, cuts) = (self.id.to_string(), self.cuts.clone());
        Ok(ExternalTableRows { id, table, cuts, rows_of: RowCorrespondence::Unknown })
    }

    /// Which of its rows are those of the dataset of a job, on a blocking thread, with the values of that dataset in them of the
    /// attributes among `joined`. Equal content is the same rows; otherwise records are, where both datasets have record keys of
    /// the same attributes.
    ///
    /// # Errors
    /// [`ExternalRowsError`]
    pub(super) fn rows_of(
        &self,
        env: &InputEnv,
        job: &JobContext,
        joined: &[String],
        identities: &AttributeIdentities,
        control: &Control,
    ) -> Result<RowCorrespondence, ExternalRowsError> {
        let JobContext { dataset, profiles, .. } = job;
        if self.dataset.content_hash == dataset.content_hash {
            return Ok(RowCorrespondence::Content);
        }
        let keys = key_of(dataset, profiles, identities).zip(key_of(&self.dataset, &self.profiles, identities));
        let Some((own, theirs)) = keys.filter(|(own, theirs)| own.names == theirs.names) else {
            return Ok(RowCorrespondence::Unknown);
        };
        let own = records(env, job.rows(), &own.columns, control)?;
        let theirs = records(env, (&self.dataset).into(), &theirs.columns, control)?;
        let (of_dataset, rows) = match_records(&own, &theirs);
        drop((own, theirs));
        let place = |name: &&String| profiles.iter().position(|profile| profile.name == **name);
        let shared = self.attributes.iter().filter(|name| joined.contains(name));
        let (names, places): (Vec<String>, Vec<usize>) =
            shared.filter_map(|name| Some((name.clone(), place(&name)?))).unzip();
        let values = match places.is_empty() {
            true => Table::new(Vec::new(), Vec::new()),
            false => load(env, job.rows(), &names, &places, control)?.reordered(&of_dataset),
        };
        Ok(RowCorrespondence::Records(RecordMatches { rows, values: Arc::new(values) }))
    }
}

/// The record key of a dataset: the names of its columns in the series, sorted, and their positions in the same order.
struct RecordKey<'a> {
    names: Vec<&'a str>,
    columns: Vec<usize>,
}

fn key_of<'a>(
    dataset: &DatasetRecord,
    profiles: &'a [ColumnProfile],
    identities: &'a AttributeIdentities,
) -> Option<RecordKey<'a>> {
    let key = dataset.record_key.as_ref().filter(|key| !key.is_empty())?;
    let place = |name: &String| {
        let place = profiles.iter().position(|profile| profile.name == *name)?;
        Some((identities.canonical(&profiles[place].name), place))
    };
    let mut columns: Vec<(&str, usize)> = key.iter().map(place).collect::<Option<_>>()?;
    columns.sort_unstable();
    let (names, columns) = columns.into_iter().unzip();
    Some(RecordKey { names, columns })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_columns_by_name_or_by_the_only_alias() {
        let mut identities = AttributeIdentities::default();
        identities.alias("zip", "zipcode").unwrap();
        for name in ["work", "trade"] {
            identities.alias(name, "job").unwrap();
        }
        let found = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            columns_of(&names, &["zip", "work", "trade", "age"], &identities)
        };
        assert_eq!(found(&["age", "zipcode"]), Ok(vec![3, 0]));
        assert_eq!(found(&["work", "trade"]), Ok(vec![1, 2]));
        // which of two names it has, or the same column twice
        assert_eq!(found(&["age", "job"]), Err(vec![1]));
        assert_eq!(found(&["zip", "zipcode", "ward"]), Err(vec![1, 2]));
    }
}
