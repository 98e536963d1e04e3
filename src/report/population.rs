//! A population for readers: who it is about, what was said of it, and what was published of it. It has neither hashes
//! nor counts of persons.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::series::Series;
use crate::publication::{BucketMerging, ChangedValues};

/// A population.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct PopulationItem {
    /// Its name.
    pub name: String,
    /// What it is.
    pub description: String,
    /// The key systems that identify its persons.
    pub person: Vec<PopulationKeyForm>,
    /// How many rows a person may have in an upload that does not say.
    #[schema(minimum = 1)]
    pub max_rows_per_person: u64,
    /// The terms under which its table is published night after night; null where each person is published once.
    pub republication: Option<RepublicationTerms>,
}

/// The terms under which the table of a population is published night after night. They stay once something is published.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct RepublicationTerms {
    /// The key system by which persons are known.
    pub key_system: String,
    /// What becomes of changed sensitive values.
    pub changes: ChangedValues,
    /// Which buckets are joined.
    pub merge: BucketMerging,
    /// Fewer newcomers wait, unless a job says otherwise.
    pub min_newcomers: NewcomersThreshold,
    /// A bucket has a single survivor if its other members were absent on this number of last nights.
    pub grace: u32,
    /// Persons who were absent on this number of nights are forgotten, unless a job says otherwise.
    pub forget_after: Option<u32>,
}

/// The smallest number of newcomers that are published.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum NewcomersThreshold {
    /// This many.
    Number(u64),
    /// `auto`: it follows from what the night before shows.
    Auto(AutoNewcomers),
}

/// A number that follows from what the night before shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AutoNewcomers {
    /// The only one.
    Auto,
}

/// How far a population is that is published night after night.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct RepublicationProgress {
    /// The number of nights that count; null before the first and after the end.
    pub nights: Option<u64>,
    /// The last release that counts.
    pub release: Option<Uuid>,
    /// A held release that is not decided: until it is, no other night is published.
    pub pending: Option<Uuid>,
    /// When the state was destroyed, so that no more nights follow.
    #[schema(format = DateTime)]
    pub ended_at: Option<String>,
}

/// A key system of a population.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct PopulationKeyForm {
    /// Its name, unique in the tenant.
    pub key_system: String,
    /// The columns that have it unless an upload names others.
    pub columns: Vec<String>,
    /// How keys are spelled alike: `standard`, `alphanumeric`, `digits` or `exact`.
    pub fold: String,
}

/// A statement about the people of two places. It is never taken back.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct PeopleStatement {
    /// Its id.
    pub id: Uuid,
    /// `disjoint`: the places have no person in common. `others`: they are alike, and yet of other people.
    pub kind: String,
    /// The two places, as `population:NAME` or `dataset:ID`.
    pub of: Vec<String>,
    /// Why.
    pub reason: String,
    /// When it was recorded.
    #[schema(format = DateTime)]
    pub recorded_at: String,
    /// Who made it, as in the audit log; null without authentication, and from before it was kept.
    pub actor: Option<String>,
}

/// A population with the statements about it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct DefinedPopulation {
    /// The population.
    #[serde(flatten)]
    pub item: PopulationItem,
    /// The first 100 statements about it and its datasets, oldest first.
    pub statements: Vec<PeopleStatement>,
    /// The `cursor` of `GET /v1/populations/{name}` that goes on after these; null where there are no more statements.
    pub next: Option<String>,
}

/// A population with a page of what was said and published of it: statements and datasets by their time, and what was
/// published of these datasets.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct PopulationDetails {
    /// The population.
    #[serde(flatten)]
    pub item: PopulationItem,
    /// The statements about it and its datasets, oldest first.
    pub statements: Vec<PeopleStatement>,
    /// Its datasets with the purged ones, oldest first.
    pub datasets: Vec<Uuid>,
    /// The releases that were made of them, oldest first.
    pub releases: Vec<Uuid>,
    /// What these datasets disclose, and what was declared of attributes; null as long as the population has neither
    /// datasets nor statements about attributes.
    pub ledger: Option<Series>,
    /// How far its republication is; null where nothing was published night after night.
    pub progress: Option<RepublicationProgress>,
    /// The `cursor` of the next page; null on the last page.
    pub next: Option<String>,
}
