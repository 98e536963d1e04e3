//! The people of a job: their announcement, and which of them the store knows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use uuid::Uuid;

use super::error::InputError;
use crate::microdata::Chunk;
use crate::people::{
    Block, CoverageId, Evidence, KeyedHash, Place, SeparationStatement, SystemColumns, SystemEvidence, person_hashes,
};
use crate::ports::{AlikeKind, AlikeMark, HASHES_PER_CALL, MARKS_PER_CALL, NewCoverage, PeopleStore, StoreError};
use crate::vault::ContentHasher;

/// The evidence of the rows of a job, with all of their persons.
#[derive(Clone, Debug)]
pub struct JobPeople {
    /// The evidence.
    pub evidence: Arc<Evidence>,
    /// The persons of its key systems.
    pub persons: JobPersons,
}

/// The persons of the rows of a job.
#[derive(Clone, Debug)]
pub enum JobPersons {
    /// All of a dataset, as they were kept when it was uploaded.
    OfDataset(Uuid),
    /// Those of some of its rows, per key system and sorted.
    Listed(Arc<BTreeMap<String, Vec<KeyedHash>>>),
}

impl JobPeople {
    /// The persons of a key system, in batches.
    pub(super) fn batches<'a>(&'a self, store: &'a dyn PeopleStore, place: PersonPlace<'a>) -> PersonBatches<'a> {
        PersonBatches { store, people: self, place, next: 0, piece: Vec::new(), found: 0 }
    }
}

/// Hands over the persons of a key system, at most [`HASHES_PER_CALL`] at once.
pub(super) struct PersonBatches<'a> {
    store: &'a dyn PeopleStore,
    people: &'a JobPeople,
    place: PersonPlace<'a>,
    /// The next piece.
    next: u32,
    /// What is left of the last one.
    piece: Vec<KeyedHash>,
    found: u64,
}

impl PersonBatches<'_> {
    /// The next batch.
    ///
    /// # Errors
    /// [`InputError::Purged`] when persons are missing because the dataset was purged; the store's.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<KeyedHash>>, InputError> {
        let PersonPlace { tenant, system } = self.place;
        let expected = self.people.evidence.systems.get(system).map_or(0, |system| system.persons);
        if self.piece.is_empty() && self.found < expected {
            let piece = match &self.people.persons {
                JobPersons::Listed(listed) if self.next == 0 => listed.get(system).cloned(),
                JobPersons::Listed(_) => None,
                JobPersons::OfDataset(dataset) => self.store.person_piece(tenant, *dataset, system, self.next).await?,
            };
            self.next += 1;
            self.piece = piece.unwrap_or_default();
        }
        let rest = self.piece.split_off(HASHES_PER_CALL.min(self.piece.len()));
        let batch = std::mem::replace(&mut self.piece, rest);
        self.found += batch.len() as u64;
        if !batch.is_empty() {
            return Ok(Some(batch));
        }
        // persons that are not there would be persons that nothing was published of
        if self.found == expected { Ok(None) } else { Err(self.incomplete().await?) }
    }

    /// Why persons are missing. A purge destroys evidence and persons at once.
    async fn incomplete(&self) -> Result<InputError, StoreError> {
        let evidence = match self.people.persons {
            JobPersons::Listed(_) => None,
            JobPersons::OfDataset(dataset) => Some(self.store.evidence(self.place.tenant, dataset).await?),
        };
        Ok(match evidence {
            Some(None) => InputError::Purged,
            _ => StoreError::corrupt("persons of a dataset are missing").into(),
        })
    }
}

/// A key system of a tenant.
#[derive(Clone, Copy)]
pub(super) struct PersonPlace<'a> {
    pub(super) tenant: &'a str,
    pub(super) system: &'a str,
}

/// Announces rows: the coverage, its persons and its marks. It has no ticket yet.
///
/// # Errors
/// [`InputError::Purged`], or the store's.
pub async fn announce(
    store: &dyn PeopleStore,
    new: &NewCoverage,
    people: &JobPeople,
) -> Result<CoverageId, InputError> {
    let id = store.announce_coverage(new).await?;
    for system in people.evidence.systems.keys() {
        let mut persons = people.batches(store, PersonPlace { tenant: &new.tenant, system });
        while let Some(some) = persons.next().await? {
            store.cover_persons(&new.tenant, id, system, &some).await?;
        }
    }
    // sorted: the pages are written one after the other
    let mut marks = marks(&people.evidence);
    marks.sort_unstable_by_key(|mark| (mark.hash, mark.kind));
    for some in marks.chunks(MARKS_PER_CALL) {
        store.add_alike_marks(&new.tenant, id, some).await?;
    }
    Ok(id)
}

/// The blocks and signatures of a table as the store keeps them.
#[must_use]
pub fn marks(evidence: &Evidence) -> Vec<AlikeMark> {
    let block = |block: &Block| AlikeMark { hash: block.mark, kind: AlikeKind::Block, weight: block.surprise.into() };
    let samples = evidence.signatures.iter().enumerate().flat_map(|(number, sample)| {
        let kind = AlikeKind::Signature(number as u16);
        sample.lowest.iter().map(move |signature| AlikeMark { hash: signature.hash, kind, weight: signature.rows })
    });
    evidence.blocks.iter().map(block).chain(samples).collect()
}

/// Rows of a dataset, by their persons.
#[derive(Clone, Copy, Debug)]
pub enum RowChoice {
    /// Nothing was published of the person.
    Unpublished,
    /// A job covers the person.
    OfJob(Uuid),
}

impl RowChoice {
    /// The persons among some that the store knows.
    async fn known(
        self,
        store: &dyn PeopleStore,
        place: PersonPlace<'_>,
        some: &[KeyedHash],
    ) -> Result<BTreeSet<KeyedHash>, StoreError> {
        match self {
            Self::Unpublished => store.published_persons(place.tenant, place.system, some).await,
            Self::OfJob(job) => store.persons_of_job(place.tenant, job, place.system, some).await,
        }
    }
}

/// What the keys of persons are derived with.
#[derive(Clone, Copy)]
pub struct PersonKeys<'a> {
    /// The hasher of the tenant.
    pub hasher: &'a ContentHasher,
    /// The columns of each key system.
    pub systems: &'a [SystemColumns],
}

/// For each row of a chunk, whether its person is chosen in each key system of the dataset. A row without a key is not.
///
/// # Errors
/// Those of the store.
pub async fn chosen_rows(
    choice: RowChoice,
    store: &dyn PeopleStore,
    tenant: &str,
    keys: PersonKeys<'_>,
    chunk: &Chunk,
) -> Result<Vec<bool>, StoreError> {
    let mut is_chosen = vec![!keys.systems.is_empty(); chunk.rows as usize];
    for system in keys.systems {
        let place = PersonPlace { tenant, system: &system.system };
        let persons = person_hashes(keys.hasher, system, chunk);
        let mut asked: Vec<KeyedHash> = persons.iter().flatten().copied().collect();
        asked.sort_unstable();
        asked.dedup();
        let mut known = BTreeSet::new();
        for some in asked.chunks(HASHES_PER_CALL) {
            known.extend(choice.known(store, place, some).await?);
        }
        let are_known = matches!(choice, RowChoice::OfJob(_));
        for (is_chosen, person) in is_chosen.iter_mut().zip(persons) {
            *is_chosen &= person.is_some_and(|person| known.contains(&person) == are_known);
        }
    }
    Ok(is_chosen)
}

/// The persons of a job of whom nothing is published, by each key system alone. No cell of them is known.
///
/// # Errors
/// [`InputError::Purged`], or the store's.
pub(crate) async fn unpublished_persons(
    store: &dyn PeopleStore,
    tenant: &str,
    people: &JobPeople,
) -> Result<JobPeople, InputError> {
    let mut evidence = Evidence { names: people.evidence.names.clone(), ..Evidence::default() };
    let mut listed: BTreeMap<String, Vec<KeyedHash>> = BTreeMap::new();
    for system in people.evidence.systems.keys() {
        let mut persons = people.batches(store, PersonPlace { tenant, system });
        let unpublished = listed.entry(system.clone()).or_default();
        while let Some(some) = persons.next().await? {
            let published = store.published_persons(tenant, system, &some).await?;
            unpublished.extend(some.into_iter().filter(|person| !published.contains(person)));
        }
        let of = SystemEvidence { persons: unpublished.len() as u64, columns: BTreeMap::new() };
        evidence.systems.insert(system.clone(), of);
    }
    Ok(JobPeople { evidence: Arc::new(evidence), persons: JobPersons::Listed(Arc::new(listed)) })
}

/// How many persons of a job stand in a live coverage, by one key system.
///
/// # Errors
/// [`InputError::Purged`], or the store's.
pub(crate) async fn count_published(
    store: &dyn PeopleStore,
    tenant: &str,
    system: &str,
    people: &JobPeople,
) -> Result<u64, InputError> {
    let mut published = 0;
    let mut persons = people.batches(store, PersonPlace { tenant, system });
    while let Some(some) = persons.next().await? {
        published += store.published_persons(tenant, system, &some).await?.len() as u64;
    }
    Ok(published)
}

/// The datasets that statements name.
pub(crate) fn declared_datasets(statements: &[SeparationStatement]) -> BTreeSet<Uuid> {
    let dataset = |place: &Place| match place {
        Place::Dataset(id) => Some(*id),
        Place::Population(_) => None,
    };
    statements.iter().flat_map(|statement| &statement.of).filter_map(dataset).collect()
}
