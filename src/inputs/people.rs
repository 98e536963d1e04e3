//! What stands beside the rows of a job: announced and live coverages, as the store knows them.

use std::collections::{BTreeMap, BTreeSet};

use crate::microdata::Chunk;
use crate::people::{
    Block, CoverageId, Evidence, KeyedHash, KeyedHasher, LiveCoverage, Resemblance, SystemColumns, person_hashes,
};
use crate::ports::{
    AlikeKind, AlikeMark, CoverageRecord, CoverageState, HASHES_PER_CALL, NewCoverage, PeopleStore, StoreError,
};

/// Coverages whose samples of signatures are read whole: those with most common signatures.
const MAX_READ_SAMPLES: usize = 8;

/// Fewer common signatures than these are never twins more often than by chance.
const MIN_COMMON_SIGNATURES: usize = 81;

/// The evidence of the rows of a job, with all of their persons.
#[derive(Clone, Copy, Debug)]
pub struct JobPeople<'a> {
    /// The evidence.
    pub evidence: &'a Evidence,
    /// Per key system its persons.
    pub persons: &'a BTreeMap<String, Vec<KeyedHash>>,
}

/// Coverages as they stand to the rows of a job.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct StandingCoverages {
    /// The live ones.
    pub live: Vec<LiveCoverage>,
    /// Pending ones with a lower ticket, lowest first.
    pub pending: Vec<LiveCoverage>,
}

/// Announces rows: the coverage, its persons and its marks. It has no ticket yet.
///
/// # Errors
/// Those of the store.
pub async fn announce(
    store: &dyn PeopleStore,
    new: &NewCoverage,
    people: JobPeople<'_>,
) -> Result<CoverageId, StoreError> {
    let id = store.announce_coverage(new).await?;
    for (system, persons) in people.persons {
        for some in persons.chunks(HASHES_PER_CALL) {
            store.cover_persons(&new.tenant, id, system, some).await?;
        }
    }
    for some in marks(people.evidence).chunks(HASHES_PER_CALL) {
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

/// For each row of a chunk, whether nothing was published of its person, in any key system of the dataset. A row
/// without a key is none.
///
/// # Errors
/// Those of the store.
pub async fn unpublished_rows<H: KeyedHasher + Sync>(
    store: &dyn PeopleStore,
    tenant: &str,
    hasher: &H,
    systems: &[SystemColumns],
    chunk: &Chunk,
) -> Result<Vec<bool>, StoreError> {
    let mut is_unpublished = vec![!systems.is_empty(); chunk.rows as usize];
    for system in systems {
        let persons = person_hashes(hasher, system, chunk);
        let mut asked: Vec<KeyedHash> = persons.iter().flatten().copied().collect();
        asked.sort_unstable();
        asked.dedup();
        let mut published = BTreeSet::new();
        for some in asked.chunks(HASHES_PER_CALL) {
            published.extend(store.published_persons(tenant, &system.system, some).await?);
        }
        for (is_unpublished, person) in is_unpublished.iter_mut().zip(persons) {
            *is_unpublished &= person.is_some_and(|person| !published.contains(&person));
        }
    }
    Ok(is_unpublished)
}

/// Reads what stands beside the rows of a job that holds a ticket.
///
/// # Errors
/// Those of the store.
pub async fn standing(
    store: &dyn PeopleStore,
    tenant: &str,
    ticket: i64,
    people: JobPeople<'_>,
) -> Result<StandingCoverages, StoreError> {
    let records = store.standing_coverages(tenant, ticket).await?;
    let mut common: BTreeMap<CoverageId, BTreeMap<String, u64>> = BTreeMap::new();
    for (system, persons) in people.persons {
        for some in persons.chunks(HASHES_PER_CALL) {
            for (id, number) in store.common_persons(tenant, system, some).await? {
                *common.entry(id).or_default().entry(system.clone()).or_default() += number;
            }
        }
    }
    let meets = |record: &CoverageRecord| {
        let is_equal = people.evidence.table.is_some_and(|table| record.coverage.tables.contains(&table));
        is_equal || common.get(&record.id).is_some_and(|common| common.values().any(|number| *number > 0))
    };
    // exact evidence goes before what cells say
    let others: BTreeSet<CoverageId> = records.iter().filter(|record| !meets(record)).map(|record| record.id).collect();
    let resemblances = resemblances(store, tenant, people.evidence, &others).await?;
    let mut standing = StandingCoverages::default();
    for CoverageRecord { id, state, coverage, published, .. } in records {
        let (common, resemblance) = (common.remove(&id).unwrap_or_default(), resemblances.get(&id).copied());
        let list = if state == CoverageState::Live { &mut standing.live } else { &mut standing.pending };
        list.push(LiveCoverage { id, coverage, published, common, resemblance });
    }
    Ok(standing)
}

/// Which of these coverages have cells like those of a table.
async fn resemblances(
    store: &dyn PeopleStore,
    tenant: &str,
    evidence: &Evidence,
    among: &BTreeSet<CoverageId>,
) -> Result<BTreeMap<CoverageId, Resemblance>, StoreError> {
    let mut blocks: BTreeMap<CoverageId, BTreeSet<KeyedHash>> = BTreeMap::new();
    let mut signatures: BTreeMap<CoverageId, BTreeSet<KeyedHash>> = BTreeMap::new();
    let mut hashes: Vec<KeyedHash> = marks(evidence).into_iter().map(|mark| mark.hash).collect();
    hashes.sort_unstable();
    hashes.dedup();
    for some in hashes.chunks(HASHES_PER_CALL) {
        for (id, mark) in store.common_marks(tenant, some).await? {
            let of_kind = if mark.kind == AlikeKind::Block { &mut blocks } else { &mut signatures };
            of_kind.entry(id).or_default().insert(mark.hash);
        }
    }
    let mut nearest: Vec<(usize, CoverageId)> = signatures.iter().map(|(id, common)| (common.len(), *id)).collect();
    nearest.retain(|(number, id)| *number >= MIN_COMMON_SIGNATURES && among.contains(id));
    nearest.sort_unstable_by(|a, b| b.cmp(a));
    let read: BTreeSet<CoverageId> = nearest.into_iter().take(MAX_READ_SAMPLES).map(|(_, id)| id).collect();
    let mut found = BTreeMap::new();
    for id in among.iter().filter(|id| blocks.contains_key(id) || read.contains(id)) {
        let samples = if read.contains(id) { store.signature_samples(tenant, *id).await? } else { Vec::new() };
        let is_common = |mark| blocks.get(id).is_some_and(|common| common.contains(&mark));
        found.extend(evidence.resemblance(is_common, &samples).map(|by| (*id, by)));
    }
    Ok(found)
}
