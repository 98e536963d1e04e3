//! What stands beside the rows of a job: announced and live coverages, as the store knows them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use uuid::Uuid;

use crate::microdata::Chunk;
use crate::people::{
    Block, CoverageId, Evidence, KeyedHash, LiveCoverage, Place, Resemblance, SeparationStatement, SignatureSample,
    SystemColumns, SystemEvidence, person_hashes,
};
use crate::ports::{
    AlikeKind, AlikeMark, CoverageRecord, CoverageSelection, CoverageState, HASHES_PER_CALL, NewCoverage, PeopleStore,
    StoreError,
};
use crate::vault::ContentHasher;

/// Coverages whose samples of signatures are read whole: those with most common signatures.
const MAX_READ_SAMPLES: usize = 8;

/// Fewer common signatures than these are never twins more often than by chance.
const MIN_COMMON_SIGNATURES: usize = 81;

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
    fn batches<'a>(&'a self, store: &'a dyn PeopleStore, place: PersonPlace<'a>) -> PersonBatches<'a> {
        PersonBatches { store, people: self, place, next: 0, piece: Vec::new(), found: 0 }
    }
}

/// Hands over the persons of a key system, at most [`HASHES_PER_CALL`] at once.
struct PersonBatches<'a> {
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
    /// The next batch; [`StoreError::NotFound`] when persons are missing, as the dataset was purged.
    async fn next(&mut self) -> Result<Option<Vec<KeyedHash>>, StoreError> {
        let PersonPlace { tenant, system } = self.place;
        if self.piece.is_empty() {
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
        let expected = self.people.evidence.systems.get(system).map_or(0, |system| system.persons);
        if self.found == expected { Ok(None) } else { Err(StoreError::NotFound) }
    }
}

/// A key system of a tenant.
#[derive(Clone, Copy)]
struct PersonPlace<'a> {
    tenant: &'a str,
    system: &'a str,
}

/// Coverages as they stand to the rows of a job.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct StandingCoverages {
    /// The live ones.
    pub live: Vec<LiveCoverage>,
    /// Pending ones with a lower ticket, lowest first.
    pub pending: Vec<LiveCoverage>,
    /// The jobs of these.
    pub jobs: BTreeMap<CoverageId, Uuid>,
}

/// Announces rows: the coverage, its persons and its marks. It has no ticket yet.
///
/// # Errors
/// Those of the store.
pub async fn announce(
    store: &dyn PeopleStore,
    new: &NewCoverage,
    people: &JobPeople,
) -> Result<CoverageId, StoreError> {
    let id = store.announce_coverage(new).await?;
    for system in people.evidence.systems.keys() {
        let mut persons = people.batches(store, PersonPlace { tenant: &new.tenant, system });
        while let Some(some) = persons.next().await? {
            store.cover_persons(&new.tenant, id, system, &some).await?;
        }
    }
    for some in marks(&people.evidence).chunks(HASHES_PER_CALL) {
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
/// Those of the store.
pub(crate) async fn unpublished_persons(
    store: &dyn PeopleStore,
    tenant: &str,
    people: &JobPeople,
) -> Result<JobPeople, StoreError> {
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
/// Those of the store.
pub(crate) async fn count_published(
    store: &dyn PeopleStore,
    tenant: &str,
    system: &str,
    people: &JobPeople,
) -> Result<u64, StoreError> {
    let mut published = 0;
    let mut persons = people.batches(store, PersonPlace { tenant, system });
    while let Some(some) = persons.next().await? {
        published += store.published_persons(tenant, system, &some).await?.len() as u64;
    }
    Ok(published)
}

/// Reads what stands against the rows of a job that holds a ticket; with ticket 0 what is live. Of live coverages that share
/// neither people nor cells with the rows, and of whose datasets nothing is declared, one stands for all of its group.
///
/// # Errors
/// Those of the store.
pub async fn standing(
    store: &dyn PeopleStore,
    tenant: &str,
    ticket: i64,
    people: &JobPeople,
    statements: &[SeparationStatement],
) -> Result<StandingCoverages, StoreError> {
    let mut common: BTreeMap<CoverageId, BTreeMap<String, u64>> = BTreeMap::new();
    for system in people.evidence.systems.keys() {
        let mut persons = people.batches(store, PersonPlace { tenant, system });
        while let Some(some) = persons.next().await? {
            for (id, number) in store.common_persons(tenant, system, &some).await? {
                *common.entry(id).or_default().entry(system.clone()).or_default() += number;
            }
        }
    }
    let marked = MarkedCoverages::read(store, tenant, &people.evidence).await?;
    let table = people.evidence.table;
    let ids = common.keys().copied().chain(marked.candidates()).collect();
    let selection = CoverageSelection { ids, table, datasets: declared_datasets(statements) };
    let records = store.select_coverages(tenant, ticket, &selection).await?;
    let meets = |record: &&CoverageRecord| {
        let is_equal = table.is_some_and(|table| record.coverage.tables.contains(&table));
        is_equal || common.get(&record.id).is_some_and(|common| common.values().any(|number| *number > 0))
    };
    // exact evidence goes before what cells say
    let others = records.iter().filter(|record| !meets(record)).map(|record| record.id).collect();
    let resemblances = marked.resemblances(store, tenant, &others).await?;
    let mut standing = StandingCoverages::default();
    for CoverageRecord { id, job, state, coverage, published, .. } in records {
        if state == CoverageState::Pending {
            standing.jobs.insert(id, job);
        }
        let (common, resemblance) = (common.remove(&id).unwrap_or_default(), resemblances.get(&id).copied());
        let list = if state == CoverageState::Live { &mut standing.live } else { &mut standing.pending };
        list.push(LiveCoverage { id, coverage, published, common, resemblance });
    }
    Ok(standing)
}

/// The datasets that statements name.
pub(crate) fn declared_datasets(statements: &[SeparationStatement]) -> BTreeSet<Uuid> {
    let dataset = |place: &Place| match place {
        Place::Dataset(id) => Some(*id),
        Place::Population(_) => None,
    };
    statements.iter().flat_map(|statement| &statement.of).filter_map(dataset).collect()
}

/// The coverages that have marks of a table.
struct MarkedCoverages<'a> {
    evidence: &'a Evidence,
    blocks: BTreeMap<CoverageId, BTreeSet<KeyedHash>>,
    signatures: BTreeMap<CoverageId, BTreeSet<KeyedHash>>,
}

impl<'a> MarkedCoverages<'a> {
    async fn read(store: &dyn PeopleStore, tenant: &str, evidence: &'a Evidence) -> Result<Self, StoreError> {
        let mut marked = Self { evidence, blocks: BTreeMap::new(), signatures: BTreeMap::new() };
        let mut hashes: Vec<KeyedHash> = marks(evidence).into_iter().map(|mark| mark.hash).collect();
        hashes.sort_unstable();
        hashes.dedup();
        for some in hashes.chunks(HASHES_PER_CALL) {
            for (id, mark) in store.common_marks(tenant, some).await? {
                let is_block = mark.kind == AlikeKind::Block;
                let of_kind = if is_block { &mut marked.blocks } else { &mut marked.signatures };
                of_kind.entry(id).or_default().insert(mark.hash);
            }
        }
        Ok(marked)
    }

    fn resemblance(&self, id: CoverageId, samples: &[SignatureSample]) -> Option<Resemblance> {
        let is_common = |mark| self.blocks.get(&id).is_some_and(|common| common.contains(&mark));
        self.evidence.resemblance(is_common, samples)
    }

    /// The coverages that may be alike.
    fn candidates(&self) -> impl Iterator<Item = CoverageId> {
        let by_blocks = self.blocks.keys().filter(|id| self.resemblance(**id, &[]).is_some());
        let by_rows = self.signatures.iter().filter(|(_, common)| common.len() >= MIN_COMMON_SIGNATURES);
        by_blocks.copied().chain(by_rows.map(|(id, _)| *id))
    }

    /// Which of these coverages are alike.
    async fn resemblances(
        &self,
        store: &dyn PeopleStore,
        tenant: &str,
        among: &BTreeSet<CoverageId>,
    ) -> Result<BTreeMap<CoverageId, Resemblance>, StoreError> {
        let mut nearest: Vec<(usize, CoverageId)> =
            self.signatures.iter().map(|(id, common)| (common.len(), *id)).collect();
        nearest.retain(|(number, id)| *number >= MIN_COMMON_SIGNATURES && among.contains(id));
        nearest.sort_unstable_by(|a, b| b.cmp(a));
        let read: BTreeSet<CoverageId> = nearest.into_iter().take(MAX_READ_SAMPLES).map(|(_, id)| id).collect();
        let mut found = BTreeMap::new();
        for &id in among.iter().filter(|id| self.blocks.contains_key(id) || read.contains(id)) {
            let samples = if read.contains(&id) { store.signature_samples(tenant, id).await? } else { Vec::new() };
            found.extend(self.resemblance(id, &samples).map(|by| (id, by)));
        }
        Ok(found)
    }
}
