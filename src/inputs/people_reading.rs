//! What coverages have in common with the rows of a job: persons, and marks of their cells.
//!
//! It is most of what a look at the ledger costs. A plan, a submission, a reservation and a ticket look one after the
//! other, hence a reading is kept while nothing changes it. Which coverages stand, and what was declared, is read at each
//! look.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::error::InputError;
use super::kept_evidence::KeptEvidence;
use super::people::{JobPeople, JobPersons, PersonPlace, declared_datasets};
use crate::people::{
    CoverageId, Evidence, KeyedHash, LiveCoverage, MIN_FOUND_TWINS, Resemblance, SeparationStatement, SignatureSample,
};
use crate::ports::{
    AlikeKind, CommonMark, CoverageRecord, CoverageSelection, CoverageState, CoveragesAt, LedgerMoment, MARKS_PER_CALL,
    PeopleStore, SampleId, StoreError,
};

/// Coverages of which samples of signatures are read: those with most common signatures.
const MAX_READ_COVERAGES: usize = 8;

/// Most coverages that are named by their signatures. Not all of them stand before the ticket of a job.
const MAX_NEAREST: usize = 64;

/// How often the ledger is read again for one look, as it changed meanwhile.
const MAX_READINGS: u32 = 8;

/// Readings that a process keeps, and the coverages that each may name.
const MAX_KEPT_READINGS: usize = 64;
const MAX_KEPT_COVERAGES: usize = 1_000;

/// The coverages of a tenant, with what was read of them before.
#[derive(Clone, Copy)]
pub struct PeopleLedger<'a> {
    /// The store.
    pub store: &'a dyn PeopleStore,
    /// The tenant.
    pub tenant: &'a str,
    /// Readings of before.
    pub kept: &'a KeptReadings,
}

/// The last readings of a process, each while nothing changes it.
#[derive(Clone, Default)]
pub struct KeptReadings {
    /// The evidence that is looked up.
    pub evidence: KeptEvidence,
    readings: Arc<Mutex<VecDeque<KeptReading>>>,
}

struct KeptReading {
    key: ReadingKey,
    reading: Arc<PeopleReading>,
}

/// A tenant, and the persons and marks that were looked up.
#[derive(Clone, PartialEq, Eq)]
struct ReadingKey {
    tenant: String,
    rows: [u8; 32],
}

impl ReadingKey {
    fn new(tenant: &str, people: &JobPeople) -> Self {
        let mut digest = Sha256::new();
        match &people.persons {
            // its evidence never changes
            JobPersons::OfDataset(dataset) => digest.update(dataset),
            JobPersons::Listed(listed) => {
                for (system, persons) in listed.iter() {
                    digest.update((system.len() as u64).to_be_bytes());
                    digest.update(system);
                    digest.update((persons.len() as u64).to_be_bytes());
                    persons.iter().for_each(|person| digest.update(person.to_bytes()));
                }
                people.evidence.telling_marks().iter().for_each(|mark| digest.update(mark.to_bytes()));
            }
        }
        Self { tenant: tenant.to_owned(), rows: digest.finalize().into() }
    }
}

impl KeptReadings {
    fn find(&self, key: &ReadingKey) -> Option<Arc<PeopleReading>> {
        let kept = self.readings.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|kept| kept.key == *key).map(|kept| Arc::clone(&kept.reading))
    }

    fn keep(&self, key: ReadingKey, reading: Arc<PeopleReading>) {
        let mut kept = self.readings.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|kept| kept.key != key);
        if reading.named() <= MAX_KEPT_COVERAGES {
            kept.push_front(KeptReading { key, reading });
            kept.truncate(MAX_KEPT_READINGS);
        }
    }
}

impl fmt::Debug for KeptReadings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptReadings").finish_non_exhaustive()
    }
}

/// What coverages have in common with rows, at a moment.
#[derive(Default)]
struct PeopleReading {
    moment: LedgerMoment,
    /// Per key system how many persons.
    persons: BTreeMap<CoverageId, BTreeMap<String, u64>>,
    /// Those whose blocks say that they are of the same people.
    by_blocks: BTreeSet<CoverageId>,
    /// Those of which enough twins of one sample were found, most first, and that share no person: exact evidence goes before what
    /// cells say.
    by_twins: Vec<(CoverageId, FoundSamples)>,
    /// Whether they do, where the samples were read.
    by_rows: Mutex<BTreeMap<CoverageId, bool>>,
}

/// Samples of a coverage that have enough of the signatures of rows, and how many the one that has most.
#[derive(Default)]
struct FoundSamples {
    samples: BTreeSet<u16>,
    most: u64,
}

impl PeopleReading {
    async fn read(store: &dyn PeopleStore, tenant: &str, people: &JobPeople) -> Result<Self, InputError> {
        // before all else: what changes from now on shows
        let mut reading = Self { moment: store.ledger_moment(tenant).await?, ..Self::default() };
        for system in people.evidence.systems.keys() {
            let mut persons = people.batches(store, PersonPlace { tenant, system });
            while let Some(some) = persons.next().await? {
                for (id, number) in store.common_persons(tenant, system, &some, None).await? {
                    *reading.persons.entry(id).or_default().entry(system.clone()).or_default() += number;
                }
            }
        }
        reading.add_marks(store, tenant, &people.evidence).await?;
        Ok(reading)
    }

    async fn add_marks(
        &mut self,
        store: &dyn PeopleStore,
        tenant: &str,
        evidence: &Evidence,
    ) -> Result<(), StoreError> {
        let mut blocks: BTreeMap<CoverageId, BTreeSet<KeyedHash>> = BTreeMap::new();
        let mut of_samples: BTreeMap<(CoverageId, u16), u64> = BTreeMap::new();
        for some in evidence.telling_marks().chunks(MARKS_PER_CALL) {
            for CommonMark { coverage, hash, kind } in store.common_marks(tenant, some, None).await? {
                match kind {
                    AlikeKind::Block => drop(blocks.entry(coverage).or_default().insert(hash)),
                    AlikeKind::Signature(sample) => *of_samples.entry((coverage, sample)).or_default() += 1,
                }
            }
        }
        let are_alike = |(_, common): &(CoverageId, BTreeSet<KeyedHash>)| {
            evidence.resemblance(|mark| common.contains(&mark), &[]).is_some()
        };
        self.by_blocks = blocks.into_iter().filter(are_alike).map(|(id, _)| id).collect();
        let mut by_twins: BTreeMap<CoverageId, FoundSamples> = BTreeMap::new();
        of_samples.retain(|(id, _), number| *number >= MIN_FOUND_TWINS && !self.persons.contains_key(id));
        for ((id, sample), number) in of_samples {
            let found = by_twins.entry(id).or_default();
            found.samples.insert(sample);
            found.most = found.most.max(number);
        }
        self.by_twins = by_twins.into_iter().collect();
        self.by_twins.sort_by_key(|(_, found)| Reverse(found.most));
        self.by_twins.truncate(MAX_NEAREST);
        Ok(())
    }

    /// Keeps what samples say that were read at a moment at which it holds.
    fn learn(&self, evidence: &Evidence, samples: &BTreeMap<CoverageId, Vec<SignatureSample>>) {
        let theirs: Vec<&[SignatureSample]> = samples.values().map(Vec::as_slice).collect();
        let alike = evidence.are_alike_by_rows(&theirs);
        let mut by_rows = self.by_rows.lock().unwrap_or_else(PoisonError::into_inner);
        by_rows.extend(samples.keys().copied().zip(alike));
    }

    /// Which of these coverages are alike, or which samples have to be read first: of those with most common signatures.
    fn resemblances(&self, among: &BTreeSet<CoverageId>) -> Result<BTreeMap<CoverageId, Resemblance>, Unread> {
        let nearest = self.by_twins.iter().filter(|(id, _)| among.contains(id)).take(MAX_READ_COVERAGES);
        let by_blocks = among.intersection(&self.by_blocks).map(|id| (*id, Resemblance::Blocks));
        let mut found: BTreeMap<CoverageId, Resemblance> = by_blocks.collect();
        let by_rows = self.by_rows.lock().unwrap_or_else(PoisonError::into_inner);
        let mut unread = BTreeSet::new();
        for (id, of) in nearest.filter(|(id, _)| !self.by_blocks.contains(id)) {
            match by_rows.get(id) {
                Some(true) => drop(found.insert(*id, Resemblance::Rows)),
                Some(false) => {}
                None => unread.extend(of.samples.iter().map(|sample| SampleId { coverage: *id, sample: *sample })),
            }
        }
        if unread.is_empty() { Ok(found) } else { Err(Unread(unread)) }
    }

    /// Whether it still holds for whom a ticket makes wait for lower ones; without a ticket, for all that were drawn.
    fn holds_at(&self, moment: LedgerMoment, ticket: i64) -> bool {
        let last = if ticket > 0 { ticket - 1 } else { moment.ticket };
        self.moment.changes == moment.changes && self.moment.ticket >= last
    }

    /// The coverages that have something in common.
    fn candidates(&self) -> BTreeSet<CoverageId> {
        self.persons.keys().chain(&self.by_blocks).chain(self.by_twins.iter().map(|(id, _)| id)).copied().collect()
    }

    fn named(&self) -> usize {
        self.persons.len() + self.by_blocks.len() + self.by_twins.len()
    }

    fn shares_persons(&self, record: &CoverageRecord) -> bool {
        self.common_persons(record).values().any(|number| *number > 0)
    }

    /// How many persons a coverage has in common with the rows, at most: while it is announced, all of one that it continues may
    /// be its own.
    fn common_persons(&self, record: &CoverageRecord) -> BTreeMap<String, u64> {
        let mut common: BTreeMap<String, u64> = BTreeMap::new();
        let continued = record.coverage.continues.filter(|_| record.state == CoverageState::Pending);
        let ids = [Some(record.id), continued].into_iter().flatten();
        for (system, number) in ids.filter_map(|id| self.persons.get(&id)).flatten() {
            *common.entry(system.clone()).or_default() += number;
        }
        common
    }
}

/// Samples that are needed.
struct Unread(BTreeSet<SampleId>);

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

/// Reads what stands against the rows of a job that holds a ticket; with ticket 0 what is live. Of live coverages that share
/// neither people nor cells with the rows, and of whose datasets nothing is declared, one stands for all of its group.
///
/// # Errors
/// [`InputError::Purged`]; those of the store, of which [`StoreError::Unavailable`] says that the ledger changed again and
/// again meanwhile.
pub async fn standing(
    ledger: PeopleLedger<'_>,
    ticket: i64,
    people: &JobPeople,
    statements: &[SeparationStatement],
) -> Result<StandingCoverages, InputError> {
    let ReadCoverages { reading, records, resemblances } = read_standing(ledger, ticket, people, statements).await?;
    let mut standing = StandingCoverages::default();
    for record in records {
        let common = reading.common_persons(&record);
        let CoverageRecord { id, job, state, coverage, published, .. } = record;
        if state == CoverageState::Pending {
            standing.jobs.insert(id, job);
        }
        let resemblance = resemblances.get(&id).copied();
        let list = if state == CoverageState::Live { &mut standing.live } else { &mut standing.pending };
        list.push(LiveCoverage { id, coverage, published, common, resemblance });
    }
    Ok(standing)
}

/// Coverages that stand, and what they have in common with rows.
struct ReadCoverages {
    reading: Arc<PeopleReading>,
    records: Vec<CoverageRecord>,
    /// By their cells alone.
    resemblances: BTreeMap<CoverageId, Resemblance>,
}

/// Reads the coverages that stand, and what these have in common with the rows of a job unless a kept reading says it. All of
/// it is of one moment.
///
/// # Errors
/// As of [`standing`].
async fn read_standing(
    ledger: PeopleLedger<'_>,
    ticket: i64,
    people: &JobPeople,
    statements: &[SeparationStatement],
) -> Result<ReadCoverages, InputError> {
    let PeopleLedger { store, tenant, kept } = ledger;
    let key = ReadingKey::new(tenant, people);
    let mut known = kept.find(&key);
    let mut is_kept = known.is_some();
    let (table, datasets) = (people.evidence.table, declared_datasets(statements));
    let mut sampled = BTreeSet::new();
    for _ in 0..MAX_READINGS {
        let reading = match known.take() {
            Some(reading) => reading,
            None => {
                is_kept = false;
                Arc::new(PeopleReading::read(store, tenant, people).await?)
            }
        };
        let (ids, datasets) = (reading.candidates(), datasets.clone());
        let selection = CoverageSelection { ids, table, datasets, sampled: std::mem::take(&mut sampled) };
        let CoveragesAt { moment, records, samples } = store.select_coverages(tenant, ticket, &selection).await?;
        // who has no ticket decides nothing: what others announce meanwhile is seen at the ticket
        let seen = if is_kept || ticket > 0 { moment } else { LedgerMoment { ticket: 0, ..moment } };
        if !reading.holds_at(seen, ticket) {
            continue;
        }
        reading.learn(&people.evidence, &samples);
        match reading.resemblances(&others(&reading, table, &records)) {
            Ok(resemblances) => {
                if !is_kept {
                    kept.keep(key, Arc::clone(&reading));
                }
                return Ok(ReadCoverages { reading, records, resemblances });
            }
            // with these the coverages are read once more: what stands and what it says are of one moment
            Err(Unread(samples)) => (sampled, known) = (samples, Some(reading)),
        }
    }
    Err(StoreError::Unavailable("the ledger of people kept changing while it was read".into()).into())
}

/// The coverages that share no person and no table with rows: exact evidence goes before what cells say.
fn others(reading: &PeopleReading, table: Option<KeyedHash>, records: &[CoverageRecord]) -> BTreeSet<CoverageId> {
    let meets = |record: &&CoverageRecord| {
        let is_equal = table.is_some_and(|table| record.coverage.tables.contains(&table));
        is_equal || reading.shares_persons(record)
    };
    records.iter().filter(|record| !meets(record)).map(|record| record.id).collect()
}
