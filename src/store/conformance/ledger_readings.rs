//! What a look at coverages finds, and how long it holds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use uuid::Uuid;

use super::people::{announced, define, evidence, hash, live, new_coverage};
use super::{Bench, TENANT, at, audit_entry, begun, claim, dataset_record, enqueue, is_conflict};
use crate::inputs::{JobPeople, JobPersons, KeptReadings, PeopleLedger, StandingCoverages, standing};
use crate::people::{
    Coverage, CoverageId, Evidence, KeyedHash, Place, Resemblance, Signature, SignatureSample, SystemEvidence,
};
use crate::ports::{
    AlikeKind, AlikeMark, AnnouncementEnd, ClaimedJob, CoverageRecord, CoverageSelection, LedgerMoment, NewCoverage,
    Store, WriteOutcome,
};

pub(crate) async fn the_ledger_moves_with_persons_and_marks(bench: &impl Bench) {
    let store = bench.store();
    let moment = async || store.ledger_moment(TENANT).await.unwrap();
    let at = |ticket, changes| LedgerMoment { ticket, changes };
    define(&*store, "clinic", &["k", "new"]).await;
    assert_eq!(moment().await, at(1, 0), "what is declared takes a ticket");
    let target = announced(&*store, "clinic", &[1, 2], 1).await;
    assert_eq!(moment().await, at(1, 0), "nobody is judged by what has no ticket");
    store.draw_ticket(TENANT, target).await.unwrap();
    assert_eq!(moment().await, at(2, 0));
    store.end_announcement(TENANT, target, &AnnouncementEnd::Live).await.unwrap();
    assert_eq!(moment().await, at(2, 0), "it has the persons that it was announced with");

    let both = Evidence {
        systems: ["k", "new"].map(|name| (name.to_owned(), SystemEvidence { persons: 2, ..Default::default() })).into(),
        ..evidence(&[1, 2], 1)
    };
    let joining = store.announce_coverage(&new_coverage(&both, "clinic", 2)).await.unwrap();
    for (system, persons) in [("k", [1, 2]), ("new", [11, 12])] {
        store.cover_persons(TENANT, joining, system, &persons.map(hash)).await.unwrap();
    }
    store.draw_ticket(TENANT, joining).await.unwrap();
    let mut coverage = store.standing_coverages(TENANT, 0).await.unwrap()[0].coverage.clone();
    let learned = coverage.adopt(Uuid::from_u128(2), Some("clinic"), &both, &BTreeSet::new());
    let end = AnnouncementEnd::Joined { target, coverage: coverage.into(), published: BTreeSet::new(), learned };
    store.end_announcement(TENANT, joining, &end).await.unwrap();
    assert_eq!(moment().await, at(3, 1), "its persons went over to the other");

    let void = announced(&*store, "clinic", &[3], 3).await;
    for _ in 0..2 {
        store.end_announcement(TENANT, void, &AnnouncementEnd::Void).await.unwrap();
    }
    assert_eq!(moment().await, at(3, 2), "its persons ceased to stand, once");
    let vanished = announced(&*store, "clinic", &[4], 4).await;
    assert_eq!(store.void_announcements(TENANT, Uuid::from_u128(4), None).await.unwrap(), 1);
    assert_eq!(store.void_announcements(TENANT, Uuid::from_u128(4), None).await.unwrap(), 0);
    assert_eq!(moment().await, at(3, 3), "{vanished:?}");
    announced(&*store, "clinic", &[5], 5).await;
    store.sweep_void_coverages().await.unwrap();
    assert_eq!(moment().await, at(3, 4), "its job does not run");
    assert_eq!(store.ledger_moment("x").await.unwrap(), at(0, 0), "another tenant's");
    let seen = store.select_coverages(TENANT, 0, &CoverageSelection::default()).await.unwrap();
    assert_eq!(seen.moment, at(3, 4));
}

/// A job of these persons, with the readings of its process.
struct LookingJob {
    store: Arc<dyn Store>,
    people: JobPeople,
    kept: KeptReadings,
}

impl LookingJob {
    fn new(store: Arc<dyn Store>, persons: &[u128], marks: &[u128]) -> Self {
        let listed = BTreeMap::from([("k".to_owned(), persons.iter().copied().map(hash).collect())]);
        let lowest = marks.iter().map(|number| Signature { hash: hash(*number), rows: 1 }).collect();
        let signatures = vec![SignatureSample { lowest, is_cut: false }];
        let evidence = Evidence { signatures, ..evidence(persons, 99) };
        let people = JobPeople { evidence: evidence.into(), persons: JobPersons::Listed(Arc::new(listed)) };
        Self { store, people, kept: KeptReadings::default() }
    }

    async fn look(&self, ticket: i64) -> StandingCoverages {
        let ledger = PeopleLedger { store: &*self.store, tenant: TENANT, kept: &self.kept };
        standing(ledger, ticket, &self.people, &[]).await.unwrap()
    }

    /// The same by who has read nothing before.
    async fn look_anew(&self, ticket: i64) -> StandingCoverages {
        let ledger = PeopleLedger { store: &*self.store, tenant: TENANT, kept: &KeptReadings::default() };
        standing(ledger, ticket, &self.people, &[]).await.unwrap()
    }

    /// With the next ticket.
    async fn finds_the_same_at_last(&self) -> StandingCoverages {
        let moment = self.store.ledger_moment(TENANT).await.unwrap();
        self.finds_the_same(moment.ticket + 1).await
    }

    async fn finds_the_same(&self, ticket: i64) -> StandingCoverages {
        let found = self.look(ticket).await;
        assert_eq!(found, self.look_anew(ticket).await);
        found
    }
}

fn met(found: &StandingCoverages) -> Vec<(CoverageId, u64)> {
    let common = |id: CoverageId, of: &BTreeMap<String, u64>| (id, of.values().sum::<u64>());
    let all = found.live.iter().chain(&found.pending);
    all.map(|coverage| common(coverage.id, &coverage.common)).filter(|(_, number)| *number > 0).collect()
}

pub(crate) async fn a_kept_reading_serves_while_it_holds(bench: &impl Bench) {
    let store = bench.store();
    define(&*store, "clinic", &["k", "new"]).await;
    let marks: Vec<u128> = (1000..1090).collect();
    let job = LookingJob::new(store.clone(), &[1, 2, 3, 11], &marks);
    let first = live(&*store, "clinic", &[3, 4], 1).await;
    assert_eq!(met(&job.finds_the_same(0).await), [(first, 1)]);
    // persons that are announced later are seen, whether live or pending with a lower ticket
    let second = live(&*store, "clinic", &[1, 2], 2).await;
    assert_eq!(met(&job.finds_the_same(0).await), [(first, 1), (second, 2)]);
    let pending = announced(&*store, "clinic", &[1], 3).await;
    let ticket = store.draw_ticket(TENANT, pending).await.unwrap();
    let own = announced(&*store, "clinic", &[8], 8).await;
    let own_ticket = store.draw_ticket(TENANT, own).await.unwrap();
    assert_eq!(own_ticket, ticket + 1);
    assert_eq!(met(&job.finds_the_same(own_ticket).await), [(first, 1), (second, 2), (pending, 1)]);
    store.end_announcement(TENANT, pending, &AnnouncementEnd::Void).await.unwrap();
    assert_eq!(met(&job.finds_the_same(own_ticket).await), [(first, 1), (second, 2)]);
    // a coverage learns a key system of one that joins it, without a ticket of its own
    let job = LookingJob { people: of_system(&job.people, "new"), ..job };
    assert_eq!(met(&job.finds_the_same(0).await), []);
    let joining = store.announce_coverage(&joining("clinic", 7)).await.unwrap();
    store.cover_persons(TENANT, joining, "new", &[hash(11)]).await.unwrap();
    store.draw_ticket(TENANT, joining).await.unwrap();
    assert_eq!(met(&job.finds_the_same_at_last().await), [(joining, 1)]);
    let coverage = new_coverage(&evidence(&[1, 2], 2), "clinic", 2).coverage;
    let learned = vec!["new".to_owned()];
    let end =
        AnnouncementEnd::Joined { target: second, coverage: coverage.into(), published: BTreeSet::new(), learned };
    store.end_announcement(TENANT, joining, &end).await.unwrap();
    assert_eq!(met(&job.finds_the_same_at_last().await), [(second, 1)]);
    // marks of cells, too
    let alike = announced(&*store, "clinic", &[20], 20).await;
    let mark = |number: &u128| AlikeMark { hash: hash(*number), kind: AlikeKind::Signature(0), weight: 1 };
    store.add_alike_marks(TENANT, alike, &marks.iter().map(mark).collect::<Vec<_>>()).await.unwrap();
    store.draw_ticket(TENANT, alike).await.unwrap();
    store.end_announcement(TENANT, alike, &AnnouncementEnd::Live).await.unwrap();
    let found = job.finds_the_same(0).await;
    let of = found.live.iter().find(|coverage| coverage.id == alike).unwrap();
    assert_eq!(of.resemblance, Some(Resemblance::Rows));
}

/// Jobs at once on copies of a table, under other keys: none of them hides that the table is published.
pub(crate) async fn announced_copies_do_not_hide_a_table(bench: &impl Bench) {
    let store = bench.store();
    define(&*store, "clinic", &["k"]).await;
    let marks: Vec<u128> = (1000..1090).collect();
    let published = night(&*store, 1, &marks).await;
    store.end_announcement(TENANT, published, &AnnouncementEnd::Live).await.unwrap();
    let job = LookingJob::new(store.clone(), &[2], &marks);
    let ticket = store.ledger_moment(TENANT).await.unwrap().ticket + 1;
    for number in 3..20 {
        night(&*store, number, &marks).await;
        let found = job.look_anew(ticket).await;
        let alike: Vec<CoverageId> =
            found.live.iter().filter(|of| of.resemblance == Some(Resemblance::Rows)).map(|of| of.id).collect();
        assert_eq!(alike, [published], "behind copies up to {number}");
    }
}

/// A night of a chain whose cells have these marks, with a ticket.
async fn night(store: &dyn Store, number: u128, marks: &[u128]) -> CoverageId {
    let mut new = new_coverage(&evidence(&[number], number), "clinic", number);
    new.coverage.chain = Some("clinic".to_owned());
    new.cuts = vec![false];
    let id = store.announce_coverage(&new).await.unwrap();
    store.cover_persons(TENANT, id, "k", &[hash(number)]).await.unwrap();
    let mark = |number: &u128| AlikeMark { hash: hash(*number), kind: AlikeKind::Signature(0), weight: 1 };
    store.add_alike_marks(TENANT, id, &marks.iter().map(mark).collect::<Vec<_>>()).await.unwrap();
    store.draw_ticket(TENANT, id).await.unwrap();
    id
}

pub(crate) async fn marks_that_go_over_to_a_chain_are_never_missed(bench: &impl Bench) {
    let store = bench.store();
    define(&*store, "clinic", &["k"]).await;
    let marks: Vec<u128> = (1000..1090).collect();
    let others: Vec<u128> = (2000..2090).collect();
    let chain = night(&*store, 1, &others).await;
    store.end_announcement(TENANT, chain, &AnnouncementEnd::Live).await.unwrap();
    for round in 1..30 {
        let join = async |number, marks: &[u128]| {
            let own = night(&*store, number, marks).await;
            let coverage = store.standing_coverages(TENANT, 0).await.unwrap()[0].coverage.clone();
            let (target, learned) = (chain, vec!["k".to_owned()]);
            (own, AnnouncementEnd::Joined { target, coverage: coverage.into(), published: BTreeSet::new(), learned })
        };
        let (own, end) = join(round * 2, &marks).await;
        let ticket = store.ledger_moment(TENANT).await.unwrap().ticket + 1;
        let job = LookingJob::new(store.clone(), &[0], &marks);
        let ended = async {
            for _ in 0..round {
                store.ledger_moment(TENANT).await.unwrap();
            }
            store.end_announcement(TENANT, own, &end).await.unwrap();
        };
        let (found, ()) = tokio::join!(job.look_anew(ticket), ended);
        let all = found.live.iter().chain(&found.pending);
        let alike: Vec<CoverageId> = all.filter(|of| of.resemblance.is_some()).map(|of| of.id).collect();
        assert!(alike == [own] || alike == [chain], "round {round}: {alike:?}");
        // and other cells again
        let (own, end) = join(round * 2 + 1, &others).await;
        store.end_announcement(TENANT, own, &end).await.unwrap();
    }
}

pub(crate) async fn an_announced_night_has_the_persons_of_its_chain(bench: &impl Bench) {
    let store = bench.store();
    define(&*store, "clinic", &["k"]).await;
    let announce = async |persons: &[u128], number, continues| {
        let mut new = new_coverage(&evidence(persons, number), "clinic", number);
        (new.coverage.chain, new.coverage.continues) = (Some("clinic".to_owned()), continues);
        let id = store.announce_coverage(&new).await.unwrap();
        let hashes: Vec<KeyedHash> = persons.iter().copied().map(hash).collect();
        store.cover_persons(TENANT, id, "k", &hashes).await.unwrap();
        (id, store.draw_ticket(TENANT, id).await.unwrap())
    };
    let persons = async |id| store.coverage_persons(TENANT, id, "k", None).await.unwrap();
    let (other, _) = announce(&[9], 1, None).await;
    store.end_announcement(TENANT, other, &AnnouncementEnd::Live).await.unwrap();
    let (chain, _) = announce(&[1, 2, 3], 2, None).await;
    store.end_announcement(TENANT, chain, &AnnouncementEnd::Live).await.unwrap();
    let job = LookingJob::new(store.clone(), &[2, 4, 7], &[]);
    assert_eq!(met(&job.finds_the_same_at_last().await), [(chain, 1)]);

    let (night, ticket) = announce(&[2, 3, 4, 9], 3, Some(chain)).await;
    assert_eq!(persons(night).await, [4, 9].map(hash), "whom the chain has is not listed again");
    assert_eq!(met(&job.finds_the_same(ticket).await), [(chain, 1)], "a lower ticket does not see it");
    assert_eq!(met(&job.finds_the_same(ticket + 1).await), [(chain, 1), (night, 2)]);

    // it can end nowhere else: whom it does not list would be forgotten
    let joined = |target, records: &[CoverageRecord]| {
        let coverage = records.iter().find(|record| record.id == target).unwrap().coverage.clone();
        AnnouncementEnd::Joined {
            target,
            coverage: coverage.into(),
            published: BTreeSet::new(),
            learned: vec!["k".to_owned()],
        }
    };
    let live = store.standing_coverages(TENANT, 0).await.unwrap();
    for end in [AnnouncementEnd::Live, joined(other, &live)] {
        assert!(is_conflict(&store.end_announcement(TENANT, night, &end).await), "{end:?}");
    }
    store.end_announcement(TENANT, night, &joined(chain, &live)).await.unwrap();
    assert_eq!(persons(chain).await, [1, 2, 3, 4, 9].map(hash));
    let live = store.standing_coverages(TENANT, 0).await.unwrap();
    let of_chain = &live.iter().find(|record| record.id == chain).unwrap().coverage;
    assert_eq!((of_chain.systems["k"].persons, of_chain.continues), (5, None));
    assert_eq!(met(&job.finds_the_same_at_last().await), [(chain, 2)]);
    let (given_up, _) = announce(&[1, 5], 4, Some(chain)).await;
    store.end_announcement(TENANT, given_up, &AnnouncementEnd::Void).await.unwrap();
    assert_eq!(met(&job.finds_the_same_at_last().await), [(chain, 2)]);
}

/// The same persons by another key system.
fn of_system(people: &JobPeople, system: &str) -> JobPeople {
    let JobPersons::Listed(listed) = &people.persons else { panic!("they are listed") };
    let persons = listed["k"].clone();
    let of = SystemEvidence { persons: persons.len() as u64, columns: BTreeMap::new() };
    let evidence = Evidence { systems: [(system.to_owned(), of)].into(), ..(*people.evidence).clone() };
    let listed = BTreeMap::from([(system.to_owned(), persons)]);
    JobPeople { evidence: evidence.into(), persons: JobPersons::Listed(Arc::new(listed)) }
}

fn joining(population: &str, dataset: u128) -> NewCoverage {
    let of = SystemEvidence { persons: 1, columns: BTreeMap::new() };
    let evidence = Evidence { systems: [("new".to_owned(), of)].into(), ..evidence(&[], dataset) };
    new_coverage(&evidence, population, dataset)
}

pub(crate) async fn published_places_are_read_without_documents(bench: &impl Bench) {
    let store = bench.store();
    for name in ["clinic", "births", "empty"] {
        define(&*store, name, &["k"]).await;
    }
    let places = async |tenant| store.published_places(tenant).await.unwrap();
    assert_eq!(places(TENANT).await, BTreeSet::new());
    live(&*store, "clinic", &[1], 1).await;
    live(&*store, "clinic", &[2], 2).await;
    let pending = announced(&*store, "births", &[3], 3).await;
    store.draw_ticket(TENANT, pending).await.unwrap();
    let undeclared = NewCoverage {
        coverage: Coverage::new(Uuid::from_u128(4), None, &evidence(&[], 4)),
        ..new_coverage(&evidence(&[], 4), "clinic", 4)
    };
    let undeclared = store.announce_coverage(&undeclared).await.unwrap();
    store.draw_ticket(TENANT, undeclared).await.unwrap();
    assert_eq!(places(TENANT).await, BTreeSet::from([Place::Population("clinic".to_owned())]));
    store.end_announcement(TENANT, undeclared, &AnnouncementEnd::Live).await.unwrap();
    store.end_announcement(TENANT, pending, &AnnouncementEnd::Live).await.unwrap();
    let populations = ["births", "clinic"].map(|name| Place::Population(name.to_owned()));
    let table = Place::Dataset(Uuid::from_u128(4));
    assert_eq!(places(TENANT).await, populations.into_iter().chain([table]).collect());
    assert_eq!(places("x").await, BTreeSet::new());
}

/// Who waits for a job may have looked before it was taken up again, and a worker may find out late that its lease is lost.
pub(crate) async fn an_attempt_ends_no_announcement_of_another(bench: &impl Bench) {
    let store = bench.store();
    define(&*store, "clinic", &["k"]).await;
    enqueue(&*store, 1).await;
    let (ClaimedJob { job, .. }, lost) = claim(&*store, at(1)).await;
    let announce = async |person| {
        let new = NewCoverage { job: job.id, ..new_coverage(&evidence(&[person], person), "clinic", person) };
        let id = store.announce_coverage(&new).await.unwrap();
        store.draw_ticket(TENANT, id).await.unwrap()
    };
    announce(1).await;
    assert_eq!(store.release_lease(job.id, lost, at(2)).await.unwrap(), WriteOutcome::Done);
    let (_, held) = claim(&*store, at(3)).await;
    assert_eq!(store.void_announcements(TENANT, job.id, None).await.unwrap(), 0, "it runs again");
    assert_eq!(store.void_announcements(TENANT, job.id, Some(lost)).await.unwrap(), 0, "the lease is another's");
    assert_eq!(store.void_announcements(TENANT, job.id, Some(held)).await.unwrap(), 1, "of the earlier attempt");
    let ticket = announce(2).await;
    assert_eq!(store.void_announcements(TENANT, job.id, Some(lost)).await.unwrap(), 0);
    assert_eq!(store.standing_coverages(TENANT, ticket + 1).await.unwrap().len(), 1);
    assert_eq!(store.release_lease(job.id, held, at(4)).await.unwrap(), WriteOutcome::Done);
    assert_eq!(store.void_announcements(TENANT, job.id, None).await.unwrap(), 1, "nothing runs");
}

pub(crate) async fn kept_evidence_ends_with_the_dataset(bench: &impl Bench) {
    let (store, kept) = (bench.store(), KeptReadings::default().evidence);
    let id = begun(&*store).await;
    let own = Arc::new(evidence(&[], 1));
    store.put_evidence(id, &own).await.unwrap();
    let read = async |record| kept.read(&*store, &record).await.unwrap();
    assert_eq!(read(dataset_record(id, 0)).await, None, "an upload that may be cut yet");
    store.insert_dataset(&dataset_record(id, 0), &audit_entry()).await.unwrap();
    let record = store.dataset(TENANT, id).await.unwrap().unwrap();
    assert_eq!(read(record.clone()).await, Some(Arc::clone(&own)));
    store.purge_dataset(TENANT, id, at(9), &audit_entry()).await.unwrap();
    assert_eq!(read(record.clone()).await, Some(own), "who has read the record before the purge");
    let purged = store.dataset(TENANT, id).await.unwrap().unwrap();
    assert_eq!(read(purged).await, None);
    assert_eq!(read(record).await, None, "nothing of it is kept");
}
