//! Populations for the command line: their list, and statements between all that are published.

use std::collections::BTreeSet;
use std::time::Duration;

use uuid::Uuid;

use super::populations::{contradicted_problem, disjoint, made_by, must_be_few, shown_population};
use crate::people::{Place, SeparationStatement};
use crate::ports::{AuditEntry, PeopleEntry, PeopleEntryOutcome, Store, StoreError};
use crate::problem::{Kind, Problem};
use crate::report::PopulationItem;

/// How often, and after which pauses, it is asked again whether a job has ended.
const MAX_POLLS: u32 = 100;
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// What came of statements between all published populations and tables.
#[derive(Clone, PartialEq, Debug)]
pub struct RelatedPlaces {
    /// How many pairs are declared now to have no person in common.
    pub disjoint_pairs: usize,
    /// The pairs that have persons or tables in common, as their places are written.
    pub contradicted_pairs: Vec<[String; 2]>,
    /// The problem of these pairs, if there are any.
    pub problem: Option<Problem>,
}

/// Why nothing was declared.
#[derive(Debug, thiserror::Error)]
pub enum RelateError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It is too much, or a job is about to end.
    #[error("{}", .0.detail)]
    Refused(Box<Problem>),
}

/// The populations of a tenant, by name.
///
/// # Errors
/// If the store cannot be read.
pub async fn populations_of(store: &dyn Store, tenant: &str) -> Result<Vec<PopulationItem>, StoreError> {
    let registry = store.people_registry(tenant).await?;
    Ok(registry.populations.iter().map(|(name, population)| shown_population(name, population)).collect())
}

/// Makes one statement for each pair of populations and of tables without one of which something is published. Pairs
/// that evidence contradicts are left out.
///
/// # Errors
/// [`RelateError`]; nothing is recorded then.
pub async fn relate_published(
    store: &dyn Store,
    reason: &str,
    audit_entry: AuditEntry,
) -> Result<RelatedPlaces, RelateError> {
    let tenant = audit_entry.tenant.clone();
    let places: Vec<Place> = store.published_places(&tenant).await?.into_iter().collect();
    let pairs = places.len() * places.len().saturating_sub(1) / 2;
    must_be_few(pairs).map_err(|problem| RelateError::Refused(Box::new(problem)))?;
    let pairs =
        places.iter().enumerate().flat_map(|(at, one)| places[..at].iter().map(|other| [other.clone(), one.clone()]));
    let separations = made_by(disjoint(pairs, reason), &audit_entry);
    let (at, all) = (audit_entry.at, separations.clone());
    let mut entry = PeopleEntry { tenant, population: None, separations, attributes: None, at, audit_entry };
    let mut wrong: BTreeSet<Uuid> = BTreeSet::new();
    for _ in 0..MAX_POLLS {
        match store.enter_people(&entry).await? {
            PeopleEntryOutcome::Contradicted(ids) => {
                wrong.extend(ids);
                entry.separations.retain(|statement| !wrong.contains(&statement.id));
            }
            PeopleEntryOutcome::Waits(_) => tokio::time::sleep(POLL_INTERVAL).await,
            // nothing is defined that could be refused
            PeopleEntryOutcome::Recorded { .. } | PeopleEntryOutcome::Refused(_) => {
                return Ok(related(&all, &wrong));
            }
        }
    }
    let detail = "a job that speaks of these people is about to end; nothing was recorded";
    Err(RelateError::Refused(Box::new(Problem::new(Kind::Unavailable, detail))))
}

fn related(all: &[SeparationStatement], wrong: &BTreeSet<Uuid>) -> RelatedPlaces {
    let contradicted = all.iter().filter(|statement| wrong.contains(&statement.id));
    let ids: Vec<Uuid> = wrong.iter().copied().collect();
    RelatedPlaces {
        disjoint_pairs: all.len() - wrong.len(),
        contradicted_pairs: contradicted.map(|statement| statement.of.each_ref().map(Place::to_string)).collect(),
        problem: (!ids.is_empty()).then(|| contradicted_problem(all, &ids, "the other pairs were recorded")),
    }
}
