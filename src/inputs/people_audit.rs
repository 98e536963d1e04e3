//! The audit of who a release speaks of: evidence from the rows that it publishes, held against the coverage that the
//! ledger records and the claim of the manifest.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use super::context::JobContext;
use super::env::InputEnv;
use super::error::InputError;
use super::kept_rows::KeptRows;
use super::stored_rows::StoredRows;
use crate::control::{Cancelled, Control};
use crate::microdata::Chunk;
use crate::people::{
    Coverage, CoverageId, Fold, KeyedHash, Place, PopulationRegistry, Separation, SignatureSample, SystemEvidence,
};
use crate::ports::{
    AlikeKind, AlikeMark, AnnouncementEnd, CARRIED_HASHES, CommonMark, CoverageRecord, CoverageSelection,
    CoverageState, CoveragesAt, HASHES_PER_CALL, MARKS_PER_CALL, SampleId, StoreError,
};
use crate::publication::CompositionMode;
use crate::report::ManifestIdentity;
use crate::vault::ContentHasher;
use crate::verifier::{
    AuditedMark, AuditedRows, AuditedSample, AuditedSystem, ClaimedPeople, ContinuedRows, KeyFold, KnownSystem,
    MarkKind, OtherCoverage, OtherCoverageError, PeopleClaimError, PeopleFacts, RecordedPersons, RecordedRows,
    RecordedStatement, RowsLayout, audit_claim, audit_recorded, decisive_marks, derive_facts,
};

/// Coverages whose samples are read: those with most common signatures.
const MAX_SAMPLED_COVERAGES: usize = 8;

/// How often the ledger is read again for one audit, as it changed meanwhile.
const MAX_READINGS: u32 = 8;

/// With fewer signatures of one sample by which it was found, a table is not alike by rows, but for one key in 3 * 10^7.
const FEWEST_FOUND: u64 = 3;

/// Coverages that are looked at for their signatures: many of these do not stand, or share persons.
const MAX_FOUND: usize = 64;

/// Why the people of a release are not audited.
#[derive(Debug)]
pub(crate) enum PeopleAuditError {
    /// The release must not be.
    Claim(PeopleClaimError),
    /// What the audit needs cannot be had.
    Input(InputError),
}

impl From<PeopleClaimError> for PeopleAuditError {
    fn from(fault: PeopleClaimError) -> Self {
        Self::Claim(fault)
    }
}

impl From<InputError> for PeopleAuditError {
    fn from(error: InputError) -> Self {
        Self::Input(error)
    }
}

impl From<StoreError> for PeopleAuditError {
    fn from(error: StoreError) -> Self {
        Self::Input(error.into())
    }
}

impl From<Cancelled> for PeopleAuditError {
    fn from(cancelled: Cancelled) -> Self {
        Self::Input(cancelled.into())
    }
}

impl From<io::Error> for PeopleAuditError {
    fn from(error: io::Error) -> Self {
        let error = match error.kind() {
            io::ErrorKind::StorageFull => StoreError::Full,
            _ => StoreError::Unavailable(Box::new(error)),
        };
        Self::Input(error.into())
    }
}

/// What a release does to the ledger.
pub(crate) struct AuditedEntry<'a> {
    /// Its announced coverage, and its ticket.
    pub(crate) id: CoverageId,
    pub(crate) ticket: i64,
    /// The number of rows that it was made of.
    pub(crate) rows: u64,
    /// The columns that it publishes.
    pub(crate) columns: &'a BTreeSet<String>,
    /// The coverages that it was judged together with, or whose chain it continues.
    pub(crate) joined: &'a [CoverageId],
    /// The population that it republishes.
    pub(crate) chain: Option<&'a str>,
    /// Whether it is to be held. Of a chain, its persons stand by themselves until it is decided.
    pub(crate) is_held: bool,
    /// How its announcement will end.
    pub(crate) end: &'a AnnouncementEnd,
    /// Its manifest.
    pub(crate) manifest: &'a Value,
}

/// The evidence of the rows that a job publishes, derived again.
pub(crate) struct PeopleAudit<'a> {
    env: &'a InputEnv,
    job: &'a JobContext,
    names: Vec<String>,
    facts: PeopleFacts,
}

impl<'a> PeopleAudit<'a> {
    /// Reads the rows; on a blocking thread.
    ///
    /// # Errors
    /// [`PeopleAuditError`]
    pub(crate) fn derive(env: &'a InputEnv, job: &'a JobContext, control: &Control) -> Result<Self, PeopleAuditError> {
        let stored = job.stored_rows(env)?;
        let registry = env.handle.block_on(env.store.people_registry(&job.dataset.tenant))?;
        let (names, layout) = (job.columns.clone(), layout(job, &registry)?);
        let hasher = env.vault.content_hasher(&job.dataset.tenant);
        let mut rows = SubmittedRows { env, job, stored, kept: job.kept.as_deref(), only: None, hasher };
        let facts = derive_facts(&mut rows, &layout, &env.spool, control)?;
        Ok(Self { env, job, names, facts })
    }

    /// Holds the ledger and the manifest against the rows.
    ///
    /// # Errors
    /// [`PeopleAuditError`]
    pub(crate) fn check(&mut self, entry: &AuditedEntry<'_>) -> Result<(), PeopleAuditError> {
        let InputEnv { handle, store, .. } = self.env;
        let tenant = &self.job.dataset.tenant;
        let claim = self.claim(entry)?;
        let statements = handle.block_on(store.separations(tenant))?;
        let named = statements.iter().flat_map(|statement| &statement.of).filter_map(dataset_of).collect();
        let (shared, CoveragesAt { records, samples, .. }) = self.standing(entry.id, entry.ticket, named)?;
        let own = records.iter().find(|record| record.id == entry.id);
        let own = own.ok_or_else(|| StoreError::Unavailable("the announcement of the job has ended".into()))?;
        let recorded = self.recorded(own, &shared)?;
        let continued = own.coverage.continues;
        let mut persons = AnnouncedPersons { env: self.env, tenant, own: entry.id, continued, is_last: false };
        audit_recorded(&mut self.facts, &self.names, &claim, &recorded, &mut persons)?;
        // later ones saw this one
        let is_other = |of: &&CoverageRecord| of.id != entry.id && of.ticket.is_none_or(|ticket| ticket < entry.ticket);
        let others: Vec<&CoverageRecord> = records.iter().filter(is_other).collect();
        let systems: Vec<String> = self.facts.systems.iter().map(|of| of.name.clone()).collect();
        check_end(entry, own.coverage.continues, &systems, &others)?;
        let others = self.others(&others, shared, &samples)?;
        let statements: Vec<RecordedStatement> = statements
            .iter()
            .map(|of| RecordedStatement {
                id: of.id.to_string(),
                is_disjoint: of.kind == Separation::Disjoint,
                of: of.of.clone().map(|place| place.to_string()),
            })
            .collect();
        Ok(audit_claim(&self.facts, &self.names, &claim, &others, &statements)?)
    }

    fn claim(&self, entry: &AuditedEntry<'_>) -> Result<ClaimedPeople, PeopleAuditError> {
        let unreadable = |_| PeopleClaimError::Claim("what cannot be read");
        let mode = CompositionMode::deserialize(&entry.manifest["composition"]).map_err(unreadable)?;
        let identity = ManifestIdentity::deserialize(&entry.manifest["identity"]).map_err(unreadable)?;
        let dataset = &self.job.dataset;
        if identity.population != dataset.population {
            return Err(PeopleClaimError::Claim("another population").into());
        }
        if entry.rows != self.facts.rows {
            return Err(PeopleClaimError::OtherRows.into());
        }
        let population = dataset.population.iter().map(|name| format!("population:{name}"));
        Ok(ClaimedPeople {
            mode,
            key_systems: identity.key_systems.into_iter().collect(),
            statements: identity.statements.iter().map(|of| of.id.to_string()).collect(),
            unrelated: identity.unrelated.into_iter().collect(),
            places: population.chain([format!("dataset:{}", dataset.id)]).collect(),
            publishes: entry.columns.clone(),
            joined: entry.joined.iter().map(|id| id.0).collect(),
            chain: entry.chain.map(str::to_owned),
        })
    }

    /// The coverage of the job, as the store has it.
    fn recorded(&self, own: &CoverageRecord, shared: &SharedEvidence) -> Result<RecordedRows, PeopleAuditError> {
        let InputEnv { handle, store, .. } = self.env;
        let tenant = &self.job.dataset.tenant;
        let marks = handle.block_on(store.coverage_marks(tenant, own.id))?;
        let cuts = handle.block_on(store.sample_cuts(tenant, own.id))?;
        let CoverageRecord { coverage, published, .. } = own;
        let contents = coverage.contents.iter();
        let continued = |id: CoverageId| ContinuedRows { id: id.0, common: shared.listed_in(id) };
        Ok(RecordedRows {
            places: places(coverage),
            tables: coverage.tables.iter().copied().map(number_of).collect(),
            contents: contents.map(|(name, of)| (name.clone(), of.iter().copied().map(number_of).collect())).collect(),
            systems: systems(coverage),
            marks: marks.iter().map(audited_mark).collect(),
            cuts,
            published: published.clone(),
            chain: coverage.chain.clone(),
            continued: coverage.continues.map(continued),
        })
    }

    /// The coverages that stand before a ticket and its own, what they have in common with the rows, and the samples that
    /// may be alike: all of one moment.
    fn standing(
        &mut self,
        own: CoverageId,
        ticket: i64,
        named: BTreeSet<Uuid>,
    ) -> Result<(SharedEvidence, CoveragesAt), PeopleAuditError> {
        let InputEnv { handle, store, .. } = self.env;
        let tenant = &self.job.dataset.tenant;
        let table = hash_of(self.facts.table);
        let mut selection = CoverageSelection { table: Some(table), datasets: named, ..CoverageSelection::default() };
        for _ in 0..MAX_READINGS {
            let before = handle.block_on(store.ledger_moment(tenant))?;
            let shared = self.shared(own)?;
            let nearest = shared.nearest();
            let listed = shared.common.keys().chain(shared.blocks.keys());
            selection.ids = listed.chain(nearest.iter().map(|(id, _)| id)).copied().collect();
            selection.sampled = BTreeSet::new();
            // its own has a ticket below the next
            let mut found = handle.block_on(store.select_coverages(tenant, ticket + 1, &selection))?;
            let meets = |of: &CoverageRecord| {
                of.coverage.tables.contains(&table) || shared.common(of).values().any(|number| *number > 0)
            };
            let is_other = |id: &CoverageId| !found.records.iter().any(|of| of.id == *id && meets(of));
            let nearest = nearest.into_iter().filter(|(id, _)| is_other(id)).take(MAX_SAMPLED_COVERAGES);
            let samples =
                nearest.flat_map(|(coverage, of)| of.into_iter().map(move |sample| SampleId { coverage, sample }));
            selection.sampled = samples.collect();
            if !selection.sampled.is_empty() {
                found = handle.block_on(store.select_coverages(tenant, ticket + 1, &selection))?;
            }
            if found.moment.changes == before.changes {
                return Ok((shared, found));
            }
        }
        Err(StoreError::Unavailable("the ledger of people kept changing while it was audited".into()).into())
    }

    /// What other coverages have in common with the rows.
    fn shared(&mut self, own: CoverageId) -> Result<SharedEvidence, PeopleAuditError> {
        let tenant = &self.job.dataset.tenant;
        let InputEnv { handle, store, .. } = self.env;
        let mut shared = SharedEvidence::default();
        for system in &mut self.facts.systems {
            system.persons.batches(HASHES_PER_CALL, |some| -> Result<(), PeopleAuditError> {
                let some: Vec<KeyedHash> = some.iter().copied().map(hash_of).collect();
                for (id, number) in handle.block_on(store.common_persons(tenant, &system.name, &some, Some(own)))? {
                    *shared.common.entry(id).or_default().entry(system.name.clone()).or_default() += number;
                }
                Ok(())
            })?;
        }
        let hashes: Vec<KeyedHash> = decisive_marks(&self.facts).into_iter().map(hash_of).collect();
        for some in hashes.chunks(MARKS_PER_CALL) {
            for CommonMark { coverage, hash, kind } in handle.block_on(store.common_marks(tenant, some, Some(own)))? {
                match kind {
                    AlikeKind::Block => drop(shared.blocks.entry(coverage).or_default().insert(number_of(hash))),
                    AlikeKind::Signature(sample) => *shared.found.entry((coverage, sample)).or_default() += 1,
                }
            }
        }
        Ok(shared)
    }

    /// The other coverages, as they stand to the rows.
    fn others(
        &self,
        records: &[&CoverageRecord],
        mut shared: SharedEvidence,
        samples: &BTreeMap<CoverageId, Vec<SignatureSample>>,
    ) -> Result<Vec<OtherCoverage>, PeopleAuditError> {
        let mut others: BTreeMap<CoverageId, OtherCoverage> = BTreeMap::new();
        for record in records {
            let mut other = other(record);
            other.common = shared.common(record);
            other.blocks = shared.blocks.remove(&record.id).unwrap_or_default();
            if other.tables.is_empty() && self.env.handle.block_on(self.has_equal_content(record))? {
                other.tables.insert(self.facts.table);
            }
            let sample = |of: &SignatureSample| AuditedSample {
                rows: of.lowest.iter().map(|of| (number_of(of.hash), of.rows)).collect(),
                is_cut: of.is_cut,
            };
            other.samples = samples.get(&record.id).into_iter().flatten().map(sample).collect();
            others.insert(record.id, other);
        }
        Ok(others.into_values().collect())
    }

    /// Whether a coverage without marks is of a dataset of the same content.
    async fn has_equal_content(&self, record: &CoverageRecord) -> Result<bool, StoreError> {
        let own = &self.job.dataset;
        for id in &record.coverage.datasets {
            let dataset = self.env.store.dataset(&own.tenant, *id).await?;
            if dataset.is_some_and(|dataset| dataset.content_hash == own.content_hash) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// What coverages have in common with the rows of a release.
#[derive(Default)]
struct SharedEvidence {
    /// Per key system how many persons.
    common: BTreeMap<CoverageId, BTreeMap<String, u64>>,
    blocks: BTreeMap<CoverageId, BTreeSet<u128>>,
    /// How many signatures of each sample found it.
    found: BTreeMap<(CoverageId, u16), u64>,
}

impl SharedEvidence {
    /// Per key system how many persons of the rows are listed in a coverage.
    fn listed_in(&self, id: CoverageId) -> BTreeMap<String, u64> {
        self.common.get(&id).cloned().unwrap_or_default()
    }

    /// The same, with those of the coverage that it continues while it is announced: any of these may be its own.
    fn common(&self, record: &CoverageRecord) -> BTreeMap<String, u64> {
        let mut common = self.listed_in(record.id);
        let continued = record.coverage.continues.filter(|_| record.state == CoverageState::Pending);
        for (system, number) in continued.map(|id| self.listed_in(id)).into_iter().flatten() {
            *common.entry(system).or_default() += number;
        }
        common
    }

    /// The coverages that may be alike by rows with the samples that say so, those that most signatures of one sample found first.
    /// Those that list a person of the rows are the same or refused, whatever their cells say.
    fn nearest(&self) -> Vec<(CoverageId, Vec<u16>)> {
        let mut most: BTreeMap<CoverageId, u64> = BTreeMap::new();
        let mut samples: BTreeMap<CoverageId, Vec<u16>> = BTreeMap::new();
        for ((id, sample), found) in &self.found {
            if *found >= FEWEST_FOUND && !self.common.contains_key(id) {
                most.entry(*id).and_modify(|most| *most = (*most).max(*found)).or_insert(*found);
                samples.entry(*id).or_default().push(*sample);
            }
        }
        let mut nearest: Vec<(CoverageId, Vec<u16>)> = samples.into_iter().collect();
        nearest.sort_by_key(|(id, _)| Reverse(most[id]));
        nearest.truncate(MAX_FOUND);
        nearest
    }
}

/// The persons of an announced coverage.
struct AnnouncedPersons<'a> {
    env: &'a InputEnv,
    tenant: &'a str,
    own: CoverageId,
    continued: Option<CoverageId>,
    /// Whether the last page was not full: there are no more of its key system.
    is_last: bool,
}

impl RecordedPersons for AnnouncedPersons<'_> {
    type Error = PeopleAuditError;

    fn listed(&mut self, system: &str, after: Option<u128>) -> Result<Vec<u128>, PeopleAuditError> {
        if after.is_some() && self.is_last {
            return Ok(Vec::new());
        }
        let found = self.env.store.coverage_persons(self.tenant, self.own, system, after.map(hash_of));
        let found = self.env.handle.block_on(found)?;
        self.is_last = found.len() < CARRIED_HASHES;
        Ok(found.into_iter().map(number_of).collect())
    }

    fn continued(&mut self, system: &str, persons: &[u128]) -> Result<u64, PeopleAuditError> {
        let Some(continued) = self.continued else { return Ok(0) };
        let mut found = 0;
        for some in persons.chunks(HASHES_PER_CALL) {
            let some: Vec<KeyedHash> = some.iter().copied().map(hash_of).collect();
            let common = self.env.store.common_persons(self.tenant, system, &some, Some(self.own));
            found += self.env.handle.block_on(common)?.get(&continued).copied().unwrap_or(0);
        }
        Ok(found)
    }
}

/// A dataset whose rows a job publishes, or some of them.
struct SubmittedRows<'a> {
    env: &'a InputEnv,
    job: &'a JobContext,
    stored: StoredRows<'a>,
    kept: Option<&'a KeptRows>,
    /// The chunk of a table that has no other one.
    only: Option<Arc<Chunk>>,
    hasher: ContentHasher,
}

impl AuditedRows for SubmittedRows<'_> {
    type Error = PeopleAuditError;

    fn chunks(&self) -> u32 {
        self.stored.chunks()
    }

    fn chunk(&mut self, number: u32) -> Result<Arc<Chunk>, PeopleAuditError> {
        if let Some(only) = &self.only {
            return Ok(Arc::clone(only));
        }
        let chunk = Arc::new(self.stored.chunk(number)?);
        self.only = (self.chunks() == 1).then(|| Arc::clone(&chunk));
        Ok(chunk)
    }

    fn is_kept(&self, chunk: u32, row: usize) -> bool {
        self.kept.is_none_or(|kept| kept.has(chunk, row))
    }

    fn hash(&self, bytes: &[u8]) -> u128 {
        let mut hasher = self.hasher.clone();
        hasher.update(b"people\0");
        hasher.update(bytes);
        hasher.finish().iter().take(16).fold(0, |hash, byte| hash << 8 | u128::from(*byte))
    }

    fn published(&mut self, system: &str, persons: &[u128]) -> Result<BTreeSet<u128>, PeopleAuditError> {
        let mut found = BTreeSet::new();
        for some in persons.chunks(HASHES_PER_CALL) {
            let some: Vec<KeyedHash> = some.iter().copied().map(hash_of).collect();
            let published = self.env.store.published_persons(&self.job.dataset.tenant, system, &some);
            found.extend(self.env.handle.block_on(published)?.into_iter().map(number_of));
        }
        Ok(found)
    }
}

/// The key columns of the dataset of a job.
fn layout(job: &JobContext, registry: &PopulationRegistry) -> Result<RowsLayout, StoreError> {
    let place = |name: &String| {
        let found = job.columns.iter().position(|column| column == name);
        found.ok_or_else(|| StoreError::corrupt("a key of a dataset has an unknown column"))
    };
    let mut systems = Vec::new();
    for (name, columns) in &job.dataset.person {
        let system = registry.systems.get(name);
        let system = system.ok_or_else(|| StoreError::corrupt("a dataset has an unknown key system"))?;
        let fold = match system.fold {
            Fold::Standard => KeyFold::Standard,
            Fold::Alphanumeric => KeyFold::Alphanumeric,
            Fold::Digits => KeyFold::Digits,
            Fold::Exact => KeyFold::Exact,
        };
        let columns = columns.iter().map(place).collect::<Result<_, _>>()?;
        systems.push(AuditedSystem { name: name.clone(), fold, columns });
    }
    let record_key = job.dataset.record_key.iter().flatten().map(place).collect::<Result<_, _>>()?;
    let max_rows_per_person = job.dataset.max_rows_per_subject.unwrap_or(1);
    Ok(RowsLayout { columns: job.columns.len(), systems, record_key, max_rows_per_person })
}

/// Checks that what the release joins keeps all that was known of it, and learns what is new.
fn check_end(
    entry: &AuditedEntry<'_>,
    continued: Option<CoverageId>,
    systems: &[String],
    others: &[&CoverageRecord],
) -> Result<(), PeopleClaimError> {
    let ends_in = if let AnnouncementEnd::Joined { target, .. } = entry.end { Some(*target) } else { None };
    if let Some(id) = continued.filter(|id| Some(*id) != ends_in) {
        return Err(PeopleClaimError::Other { id: id.0, how: OtherCoverageError::NotJoined });
    }
    let AnnouncementEnd::Joined { target, coverage: new, published, learned } = entry.end else {
        let waits = entry.chain.is_some() && entry.is_held;
        let kept_apart = entry.joined.first().filter(|_| !waits);
        let fault = kept_apart.map(|id| PeopleClaimError::Other { id: id.0, how: OtherCoverageError::NotJoined });
        return fault.map_or(Ok(()), Err);
    };
    let fault = |how| Err(PeopleClaimError::Other { id: target.0, how });
    let Some(old) = others.iter().find(|other| other.id == *target && entry.joined.contains(target)) else {
        return fault(OtherCoverageError::NotSame);
    };
    let CoverageRecord { coverage: known, published: before, .. } = old;
    let keeps_contents =
        known.contents.iter().all(|(name, marks)| new.contents.get(name).is_some_and(|of| marks.is_subset(of)));
    let keeps_columns = |name: &String, of: &SystemEvidence| {
        let mut columns = of.columns.iter().filter(|(column, _)| before.contains(*column));
        let known = |new: &SystemEvidence| {
            new.persons == of.persons && columns.all(|(column, mark)| new.columns.get(column) == Some(mark))
        };
        new.systems.get(name).is_some_and(known)
    };
    let is_kept = known.populations.is_subset(&new.populations)
        && known.datasets.is_subset(&new.datasets)
        && known.tables.is_subset(&new.tables)
        && keeps_contents
        && known.systems.iter().all(|(name, of)| keeps_columns(name, of))
        // of a chain other persons come each time
        && (known.chain.is_none() || systems.iter().all(|system| learned.contains(system)))
        && known.chain == new.chain
        && before.is_subset(published)
        && published.len() >= entry.columns.len();
    if is_kept { Ok(()) } else { fault(OtherCoverageError::Forgets) }
}

fn dataset_of(place: &Place) -> Option<Uuid> {
    if let Place::Dataset(id) = place { Some(*id) } else { None }
}

fn other(record: &CoverageRecord) -> OtherCoverage {
    OtherCoverage {
        id: record.id.0,
        places: places(&record.coverage),
        tables: record.coverage.tables.iter().copied().map(number_of).collect(),
        systems: systems(&record.coverage),
        published: record.published.clone(),
        chain: record.coverage.chain.clone(),
        ..OtherCoverage::default()
    }
}

fn places(coverage: &Coverage) -> BTreeSet<String> {
    let populations = coverage.populations.iter().map(|name| format!("population:{name}"));
    populations.chain(coverage.datasets.iter().map(|id| format!("dataset:{id}"))).collect()
}

fn systems(coverage: &Coverage) -> BTreeMap<String, KnownSystem> {
    let known = |of: &SystemEvidence| KnownSystem {
        persons: of.persons,
        columns: of.columns.iter().map(|(name, mark)| (name.clone(), number_of(*mark))).collect(),
    };
    coverage.systems.iter().map(|(name, of)| (name.clone(), known(of))).collect()
}

fn audited_mark(mark: &AlikeMark) -> AuditedMark {
    let kind = match mark.kind {
        AlikeKind::Block => MarkKind::Block(0),
        AlikeKind::Signature(sample) => MarkKind::Signature(sample),
    };
    AuditedMark { hash: number_of(mark.hash), kind, weight: mark.weight }
}

fn number_of(hash: KeyedHash) -> u128 {
    u128::from_be_bytes(hash.to_bytes())
}

fn hash_of(number: u128) -> KeyedHash {
    KeyedHash::from_bytes(number.to_be_bytes())
}
