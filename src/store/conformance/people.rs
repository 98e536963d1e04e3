//! Who releases speak of.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::json;
use uuid::Uuid;

use super::{Bench, TENANT, at, audit_entry, begun, dataset, dataset_record, is_conflict};
use crate::inputs::{
    InputError, JobPeople, JobPersons, KeptReadings, PeopleLedger, PersonKeys, RowChoice, announce, chosen_rows,
    standing,
};
use crate::microdata::{Chunk, ChunkColumn, Interner};
use crate::people::{
    Coverage, CoverageId, Evidence, Fold, JudgedRows, KeyedHash, LedgerView, Look, Place, Population, PopulationError,
    PopulationKey, Separation, SeparationStatement, Signature, SignatureSample, SystemColumns, SystemEvidence,
    UnrelatedPolicy, look, person_hashes,
};
use crate::ports::{
    AlikeKind, AlikeMark, AnnouncementEnd, CommonMark, CoverageSelection, CoverageState, NamedPopulation, NewCoverage,
    PeopleEntry, PeopleEntryOutcome, SampleId, SeparationRecord, SeriesStatement, StatementRecord, Store, StoreError,
};
use crate::vault::Vault;

pub(super) fn hash(number: u128) -> KeyedHash {
    KeyedHash::from_bytes((number << 64 | number).to_be_bytes())
}

pub(super) fn population(systems: &[&str]) -> Population {
    let key = |system: &&str| PopulationKey {
        key_system: (*system).to_owned(),
        columns: vec!["id".to_owned()],
        fold: Fold::Digits,
    };
    Population {
        description: "of the clinic, 10 \u{b0}".to_owned(),
        person: systems.iter().map(key).collect(),
        max_rows_per_person: 2,
        republication: None,
    }
}

/// Enters a population and statements.
async fn enter(
    store: &dyn Store,
    population: Option<NamedPopulation>,
    separations: Vec<SeparationStatement>,
) -> PeopleEntryOutcome {
    let audit_entry = audit_entry();
    let entry =
        PeopleEntry { tenant: TENANT.to_owned(), population, separations, attributes: None, at: at(1), audit_entry };
    store.enter_people(&entry).await.unwrap()
}

async fn try_define(store: &dyn Store, name: &str, systems: &[&str]) -> PeopleEntryOutcome {
    enter(store, Some(NamedPopulation { name: name.to_owned(), population: population(systems) }), Vec::new()).await
}

pub(crate) async fn define(store: &dyn Store, name: &str, systems: &[&str]) {
    assert!(matches!(try_define(store, name, systems).await, PeopleEntryOutcome::Recorded { .. }));
}

/// Persons of key system `k`, in a table that no other one equals.
pub(super) fn evidence(persons: &[u128], table: u128) -> Evidence {
    let system = SystemEvidence { persons: persons.len() as u64, columns: BTreeMap::new() };
    Evidence {
        rows: persons.len() as u64,
        systems: [("k".to_owned(), system)].into(),
        table: Some(hash(table)),
        ..Evidence::default()
    }
}

pub(super) fn new_coverage(evidence: &Evidence, population: &str, dataset: u128) -> NewCoverage {
    NewCoverage {
        tenant: TENANT.to_owned(),
        job: Uuid::from_u128(dataset),
        coverage: Coverage::new(Uuid::from_u128(dataset), Some(population), evidence),
        published: ["age".to_owned()].into(),
        cuts: vec![false, true],
    }
}

/// An announced coverage with these persons, in a dataset of the number of the table.
pub(super) async fn announced(store: &dyn Store, population: &str, persons: &[u128], table: u128) -> CoverageId {
    let evidence = evidence(persons, table);
    let id = store.announce_coverage(&new_coverage(&evidence, population, table)).await.unwrap();
    let hashes: Vec<KeyedHash> = persons.iter().copied().map(hash).collect();
    store.cover_persons(TENANT, id, "k", &hashes).await.unwrap();
    id
}

pub(super) async fn live(store: &dyn Store, population: &str, persons: &[u128], table: u128) -> CoverageId {
    let id = announced(store, population, persons, table).await;
    store.draw_ticket(TENANT, id).await.unwrap();
    store.end_announcement(TENANT, id, &AnnouncementEnd::Live).await.unwrap();
    id
}

pub(super) async fn common(
    store: &dyn Store,
    tenant: &str,
    system: &str,
    persons: &[u128],
) -> BTreeMap<CoverageId, u64> {
    let persons: Vec<KeyedHash> = persons.iter().copied().map(hash).collect();
    store.common_persons(tenant, system, &persons, None).await.unwrap()
}

pub(crate) async fn a_population_is_read_as_it_was_defined(bench: &impl Bench) {
    let store = bench.store();
    define(&*store, "clinic", &["k"]).await;
    define(&*store, "clinic", &["other", "k"]).await;
    let registry = store.people_registry(TENANT).await.unwrap();
    assert_eq!(registry.populations["clinic"], population(&["other", "k"]));
    assert_eq!(registry.systems.keys().collect::<Vec<_>>(), ["k", "other"]);
    assert_eq!(registry.systems["k"].fold, Fold::Digits);
    assert!(store.people_registry("x").await.unwrap().populations.is_empty());
    // with an announced release, key systems are only added at the end
    live(&*store, "clinic", &[1], 1).await;
    let turned = try_define(&*store, "clinic", &["k", "other"]).await;
    assert_eq!(turned, PeopleEntryOutcome::Refused(PopulationError::PopulationChanged));
    assert_eq!(store.people_registry(TENANT).await.unwrap(), registry);
    define(&*store, "clinic", &["other", "k", "third"]).await;
    assert_eq!(bench.count("audit_log").await, 3, "a refused definition is not logged");
}

pub(crate) async fn one_coverage_stands_for_its_group(bench: &impl Bench) {
    let store = bench.store();
    define(&*store, "clinic", &["k"]).await;
    define(&*store, "births", &["k"]).await;
    let mut clinic = Vec::new();
    for number in 1..=4 {
        clinic.push(live(&*store, "clinic", &[number], number).await);
    }
    let births = live(&*store, "births", &[5], 5).await;
    let undeclared = NewCoverage {
        coverage: Coverage::new(Uuid::from_u128(6), None, &evidence(&[], 6)),
        ..new_coverage(&evidence(&[], 6), "clinic", 6)
    };
    let undeclared = store.announce_coverage(&undeclared).await.unwrap();
    store.draw_ticket(TENANT, undeclared).await.unwrap();
    store.end_announcement(TENANT, undeclared, &AnnouncementEnd::Live).await.unwrap();
    let (pending, late) = (announced(&*store, "clinic", &[7], 7).await, announced(&*store, "clinic", &[8], 8).await);
    let low = store.draw_ticket(TENANT, pending).await.unwrap();
    store.draw_ticket(TENANT, late).await.unwrap();
    let selected = |selection: CoverageSelection| {
        let store = store.clone();
        async move {
            let records = store.select_coverages(TENANT, low + 1, &selection).await.unwrap().records;
            let all = store.standing_coverages(TENANT, low + 1).await.unwrap();
            assert!(records.iter().all(|record| all.contains(record)));
            records.into_iter().map(|record| record.id).collect::<Vec<_>>()
        }
    };
    let nothing = CoverageSelection::default();
    assert_eq!(selected(nothing.clone()).await, [clinic[0], births, undeclared, pending]);
    let ids = BTreeSet::from([clinic[2], late]);
    let by_id = CoverageSelection { ids, ..nothing.clone() };
    assert_eq!(selected(by_id).await, [clinic[0], clinic[2], births, undeclared, pending]);
    let by_table = CoverageSelection { table: Some(hash(4)), ..nothing.clone() };
    assert_eq!(selected(by_table).await, [clinic[0], clinic[3], births, undeclared, pending]);
    let of_dataset = |number| CoverageSelection {
        datasets: BTreeSet::from([Uuid::from_u128(number)]),
        ..CoverageSelection::default()
    };
    assert_eq!(selected(of_dataset(2)).await, [clinic[0], clinic[1], births, undeclared, pending]);
    assert_eq!(selected(of_dataset(9)).await, [clinic[0], births, undeclared, pending]);
    // what joins a coverage is listed with it
    let mut coverage = new_coverage(&evidence(&[3], 3), "clinic", 3).coverage;
    coverage.datasets.insert(Uuid::from_u128(9));
    let end = AnnouncementEnd::Joined {
        target: clinic[2],
        coverage: coverage.into(),
        published: BTreeSet::new(),
        learned: Vec::new(),
    };
    store.end_announcement(TENANT, pending, &end).await.unwrap();
    assert_eq!(selected(of_dataset(9)).await, [clinic[0], clinic[2], births, undeclared]);
    assert!(store.select_coverages("x", low, &of_dataset(2)).await.unwrap().records.is_empty(), "another tenant's");
}

pub(crate) async fn coverages_stand_in_the_order_of_tickets(bench: &impl Bench) {
    let store = bench.store();
    define(&*store, "clinic", &["k"]).await;
    let (first, second) =
        (announced(&*store, "clinic", &[1, 2], 1).await, announced(&*store, "clinic", &[2, 3], 2).await);
    let standing = |ticket| {
        let store = store.clone();
        async move { store.standing_coverages(TENANT, ticket).await.unwrap() }
    };
    assert_eq!(standing(i64::MAX).await, [], "without a ticket it is not seen");
    let early = store.end_announcement(TENANT, first, &AnnouncementEnd::Live).await;
    assert!(is_conflict(&early), "without a ticket it does not become live");
    let low = store.draw_ticket(TENANT, second).await.unwrap();
    let high = store.draw_ticket(TENANT, first).await.unwrap();
    assert!(low < high);
    assert_eq!(store.draw_ticket(TENANT, second).await.unwrap(), low, "a second draw");
    let seen = standing(high).await;
    assert_eq!(seen.iter().map(|record| record.id).collect::<Vec<_>>(), [second]);
    assert_eq!((seen[0].state, seen[0].ticket), (CoverageState::Pending, Some(low)));
    assert_eq!(seen[0].coverage, new_coverage(&evidence(&[2, 3], 2), "clinic", 2).coverage);
    assert_eq!(seen[0].published, BTreeSet::from(["age".to_owned()]));
    assert_eq!(standing(low).await, []);
    let late = store.cover_persons(TENANT, first, "k", &[hash(9)]).await;
    assert!(is_conflict(&late), "persons are announced before the ticket");
    store.end_announcement(TENANT, first, &AnnouncementEnd::Live).await.unwrap();
    let seen = standing(low).await;
    assert_eq!(seen.iter().map(|record| (record.id, record.state)).collect::<Vec<_>>(), [(first, CoverageState::Live)]);
    assert!(is_conflict(&store.end_announcement(TENANT, first, &AnnouncementEnd::Void).await), "it stays");
    assert!(store.standing_coverages("x", i64::MAX).await.unwrap().is_empty());
    let others = store.draw_ticket("x", second).await;
    assert!(matches!(others, Err(StoreError::NotFound)), "another tenant's");
}

pub(crate) async fn persons_are_found_by_key_system(bench: &impl Bench) {
    let store = bench.store();
    define(&*store, "clinic", &["k", "other"]).await;
    let (a, b) = (live(&*store, "clinic", &[1, 2, 3], 1).await, announced(&*store, "clinic", &[3, 4], 2).await);
    assert_eq!(common(&*store, TENANT, "k", &[2, 3, 9]).await, BTreeMap::from([(a, 2), (b, 1)]));
    assert!(common(&*store, TENANT, "other", &[2, 3]).await.is_empty());
    assert!(common(&*store, TENANT, "unknown", &[2, 3]).await.is_empty());
    assert!(common(&*store, "x", "k", &[2, 3]).await.is_empty());
    assert!(common(&*store, TENANT, "k", &[]).await.is_empty());
    let asked = [3, 4, 9].map(hash);
    let published = store.published_persons(TENANT, "k", &asked).await.unwrap();
    assert_eq!(published, BTreeSet::from([hash(3)]), "of live coverages alone");
    store.cover_persons(TENANT, b, "k", &[hash(4), hash(5)]).await.unwrap();
    assert_eq!(common(&*store, TENANT, "k", &[4, 5]).await, BTreeMap::from([(b, 2)]), "a repeated person");
    let unknown = store.cover_persons(TENANT, b, "unknown", &asked).await;
    assert!(matches!(unknown, Err(StoreError::NotFound)));
}

/// A mark as it is found.
pub(crate) fn common_mark(coverage: CoverageId, AlikeMark { hash, kind, .. }: AlikeMark) -> CommonMark {
    CommonMark { coverage, hash, kind }
}

pub(crate) async fn marks_are_read_as_they_were_written(bench: &impl Bench) {
    let store = bench.store();
    define(&*store, "clinic", &["k"]).await;
    let id = announced(&*store, "clinic", &[1], 1).await;
    let mark = |number, kind, weight| AlikeMark { hash: hash(number), kind, weight };
    let marks = [
        mark(5, AlikeKind::Block, 4000),
        mark(8, AlikeKind::Signature(0), 2),
        mark(6, AlikeKind::Signature(0), 1),
        mark(8, AlikeKind::Signature(1), 1),
    ];
    // what is there stays, of one call and of the one before
    let twice = [&marks[..], &[mark(8, AlikeKind::Signature(1), 9)]].concat();
    store.add_alike_marks(TENANT, id, &twice).await.unwrap();
    let more = [mark(9, AlikeKind::Block, 3), mark(12, AlikeKind::Signature(1), 1)];
    let other = [mark(5, AlikeKind::Block, 1), mark(6, AlikeKind::Signature(0), 7)];
    store.add_alike_marks(TENANT, id, &[more, other].concat()).await.unwrap();
    let asked = [5, 6, 7, 8, 9, 12].map(hash);
    let common = store.common_marks(TENANT, &asked, None).await.unwrap();
    // of signatures one in four of one row
    assert_eq!(common, [marks[0], more[0], marks[3], more[1]].map(|mark| common_mark(id, mark)));
    assert_eq!(store.common_marks("x", &asked, None).await.unwrap(), []);
    let all = [marks[0], more[0], marks[2], marks[1], marks[3], more[1]];
    assert_eq!(store.coverage_marks(TENANT, id).await.unwrap(), all);
    let signature = |number, rows| Signature { hash: hash(number), rows };
    let sampled = |asked: &[(CoverageId, u16)]| CoverageSelection {
        sampled: asked.iter().map(|&(coverage, sample)| SampleId { coverage, sample }).collect(),
        ..CoverageSelection::default()
    };
    let read = store.select_coverages(TENANT, 0, &sampled(&[(id, 0), (id, 1), (CoverageId(99), 0)])).await.unwrap();
    let samples = &read.samples[&id];
    assert_eq!(read.samples.len(), 1, "of those that are there");
    let first = SignatureSample { lowest: vec![signature(6, 1), signature(8, 2)], is_cut: false };
    let second = SignatureSample { lowest: vec![signature(8, 1), signature(12, 1)], is_cut: true };
    assert_eq!(samples[..], [first, second]);
    let one = store.select_coverages(TENANT, 0, &sampled(&[(id, 1)])).await.unwrap();
    assert_eq!(one.samples, BTreeMap::from([(id, samples[1..].to_vec())]));
    let replaced = store.select_coverages(TENANT, 0, &sampled(&[(id, 2)])).await.unwrap();
    assert_eq!(replaced.samples, BTreeMap::from([(id, vec![])]), "no sample that the coverage does not have");
    assert!(store.select_coverages("x", 0, &sampled(&[(id, 0)])).await.unwrap().samples.is_empty());
    assert_eq!(store.sample_cuts(TENANT, id).await.unwrap(), [false, true]);
    assert!(matches!(store.sample_cuts("x", id).await, Err(StoreError::NotFound)));
    store.draw_ticket(TENANT, id).await.unwrap();
    assert!(is_conflict(&store.add_alike_marks(TENANT, id, &marks).await), "marks are announced before the ticket");
}

pub(crate) async fn a_mark_of_many_coverages_says_nothing(bench: &impl Bench) {
    let store = bench.store();
    define(&*store, "clinic", &["k"]).await;
    let mark = AlikeMark { hash: hash(5), kind: AlikeKind::Block, weight: 4000 };
    let announce = async |number: u128| {
        let id = announced(&*store, "clinic", &[number], number).await;
        store.add_alike_marks(TENANT, id, &[mark]).await.unwrap();
        id
    };
    let common = async |except| store.common_marks(TENANT, &[hash(5), hash(6)], except).await.unwrap();
    let held = |ids: &[CoverageId]| ids.iter().map(|id| common_mark(*id, mark)).collect::<Vec<_>>();
    let void = announce(100).await;
    store.end_announcement(TENANT, void, &AnnouncementEnd::Void).await.unwrap();
    // announced ones hide neither each other nor those that are live
    let mut live = Vec::new();
    let mut pending = Vec::new();
    for number in 1..=7 {
        pending.push(announce(number).await);
        assert_eq!(common(None).await, held(&pending));
    }
    for number in 8..=13 {
        let id = announce(number).await;
        store.draw_ticket(TENANT, id).await.unwrap();
        store.end_announcement(TENANT, id, &AnnouncementEnd::Live).await.unwrap();
        live.push(id);
        let named = if live.len() <= 5 { &live[..] } else { &[] };
        assert_eq!(common(None).await, held(&[&pending, named].concat()));
        assert_eq!(common(Some(pending[0])).await, held(&[&pending[1..], named].concat()));
    }
}

pub(crate) async fn a_joined_announcement_goes_over_to_the_other(bench: &impl Bench) {
    let store = bench.store();
    define(&*store, "clinic", &["k", "new"]).await;
    let target = live(&*store, "clinic", &[1, 2], 1).await;
    let both = Evidence {
        systems: ["k", "new"].map(|name| (name.to_owned(), SystemEvidence { persons: 2, ..Default::default() })).into(),
        ..evidence(&[1, 2], 1)
    };
    let own = store.announce_coverage(&new_coverage(&both, "clinic", 2)).await.unwrap();
    for (system, persons) in [("k", [1, 2]), ("new", [11, 12])] {
        store.cover_persons(TENANT, own, system, &persons.map(hash)).await.unwrap();
    }
    let mut coverage = store.standing_coverages(TENANT, i64::MAX).await.unwrap()[0].coverage.clone();
    let learned = coverage.adopt(Uuid::from_u128(2), Some("clinic"), &both, &BTreeSet::new());
    let published = BTreeSet::from(["age".to_owned(), "ward".to_owned()]);
    let end =
        AnnouncementEnd::Joined { target, coverage: coverage.clone().into(), published: published.clone(), learned };
    assert!(is_conflict(&store.end_announcement(TENANT, own, &end).await), "without a ticket");
    store.draw_ticket(TENANT, own).await.unwrap();
    store.end_announcement(TENANT, own, &end).await.unwrap();
    let standing = store.standing_coverages(TENANT, i64::MAX).await.unwrap();
    assert_eq!(standing.len(), 1);
    assert_eq!((standing[0].id, &standing[0].coverage, &standing[0].published), (target, &coverage, &published));
    assert_eq!(common(&*store, TENANT, "new", &[11, 12]).await, BTreeMap::from([(target, 2)]));
    assert_eq!(common(&*store, TENANT, "k", &[1, 2]).await, BTreeMap::from([(target, 2)]));
    assert_eq!(store.sweep_void_coverages().await.unwrap(), 4);
    assert_eq!(bench.count("covered").await, 4);
}

pub(crate) async fn evidence_of_a_dataset_goes_with_its_rows(bench: &impl Bench) {
    let store = bench.store();
    define(&*store, "clinic", &["k"]).await;
    let id = begun(&*store).await;
    let (own, persons) = (evidence(&[1, 2, 3], 1), [1, 2, 3].map(hash));
    store.put_person_piece(id, "k", 0, &persons[..2]).await.unwrap();
    store.put_person_piece(id, "k", 1, &persons[2..]).await.unwrap();
    store.put_person_piece(id, "k", 1, &persons[2..]).await.unwrap();
    store.put_evidence(id, &own).await.unwrap();
    assert_eq!(store.evidence(TENANT, id).await.unwrap(), None, "not visible yet");
    store.insert_dataset(&dataset_record(id, 0), &audit_entry()).await.unwrap();
    assert!(is_conflict(&store.put_person_piece(id, "k", 1, &persons).await), "evidence does not change");
    assert!(is_conflict(&store.put_person_piece(id, "k", 2, &persons).await), "evidence does not change");
    assert!(is_conflict(&store.put_evidence(id, &own).await), "evidence does not change");
    assert_eq!(store.evidence(TENANT, id).await.unwrap(), Some(own));
    let piece = |tenant: &'static str, system: &'static str, number| {
        let store = store.clone();
        async move { store.person_piece(tenant, id, system, number).await.unwrap() }
    };
    assert_eq!(piece(TENANT, "k", 0).await.as_deref(), Some(&persons[..2]));
    assert_eq!(piece(TENANT, "k", 1).await.as_deref(), Some(&persons[2..]));
    assert_eq!(
        (piece(TENANT, "k", 2).await, piece(TENANT, "other", 0).await, piece("x", "k", 0).await),
        (None, None, None)
    );
    assert_eq!(store.evidence("x", id).await.unwrap(), None);
    // what was published of it stays
    live(&*store, "clinic", &[1, 2, 3], 1).await;
    store.purge_dataset(TENANT, id, at(9), &audit_entry()).await.unwrap();
    assert_eq!((store.evidence(TENANT, id).await.unwrap(), piece(TENANT, "k", 0).await), (None, None));
    assert_eq!((bench.count("dataset_evidence").await, bench.count("dataset_persons").await), (0, 0));
    assert_eq!(bench.count("covered").await, 3);
    // a job that read the evidence before
    let people = JobPeople { evidence: Arc::new(evidence(&[1, 2, 3], 1)), persons: JobPersons::OfDataset(id) };
    let announced = announce(&*store, &new_coverage(&people.evidence, "clinic", 1), &people).await;
    assert!(matches!(announced, Err(InputError::Purged)), "{announced:?}");
}

pub(crate) async fn evidence_of_a_visible_dataset_is_added_once(bench: &impl Bench) {
    let store = bench.store();
    let (old, purged) = (dataset(&*store).await, dataset(&*store).await);
    store.purge_dataset(TENANT, purged, at(9), &audit_entry()).await.unwrap();
    begun(&*store).await;
    assert_eq!(store.datasets_without_evidence().await.unwrap(), [(TENANT.to_owned(), old)]);
    // interrupted after the first piece, and begun again
    store.put_person_piece(old, "k", 0, &[hash(1)]).await.unwrap();
    store.put_person_piece(old, "k", 0, &[hash(1)]).await.unwrap();
    store.put_evidence(old, &evidence(&[1], 1)).await.unwrap();
    assert!(is_conflict(&store.put_evidence(old, &evidence(&[2], 2)).await));
    assert_eq!(store.evidence(TENANT, old).await.unwrap(), Some(evidence(&[1], 1)));
    assert!(is_conflict(&store.put_evidence(purged, &evidence(&[1], 1)).await), "its rows are gone");
    assert!(store.datasets_without_evidence().await.unwrap().is_empty());
}

pub(crate) async fn an_upload_that_was_given_up_leaves_no_evidence(bench: &impl Bench) {
    let store = bench.store();
    let id = begun(&*store).await;
    store.put_person_piece(id, "k", 0, &[hash(1)]).await.unwrap();
    store.put_evidence(id, &evidence(&[1], 1)).await.unwrap();
    store.discard_upload(id).await.unwrap();
    assert_eq!((bench.count("dataset_evidence").await, bench.count("dataset_persons").await), (0, 0));
    assert!(is_conflict(&store.put_person_piece(id, "k", 0, &[hash(1)]).await));
    assert!(is_conflict(&store.put_evidence(Uuid::now_v7(), &evidence(&[1], 1)).await));
}

pub(crate) async fn rows_of_published_people_are_left_out(bench: &impl Bench) {
    let store = bench.store();
    define(&*store, "clinic", &["k", "new"]).await;
    let hasher = Vault::in_memory().unwrap().content_hasher(TENANT);
    let column = |texts: &[&str]| {
        let mut interner = Interner::default();
        let codes: Vec<u16> = texts.iter().map(|text| interner.intern(text.as_bytes()) as u16 + 1).collect();
        ChunkColumn::new(interner.take(), &codes)
    };
    let chunk =
        Chunk { rows: 5, columns: vec![column(&["1", "2", "3", "4", "-"]), column(&["a1", "a2", "a3", "a4", "a5"])] };
    let system =
        |name: &str, number| SystemColumns { system: name.to_owned(), fold: Fold::Digits, columns: vec![number] };
    let (k, new) = (system("k", 0), system("new", 1));
    let unpublished = |systems: Vec<SystemColumns>| {
        let (store, hasher, chunk) = (store.clone(), hasher.clone(), chunk.clone());
        async move {
            let keys = PersonKeys { hasher: &hasher, systems: &systems };
            chosen_rows(RowChoice::Unpublished, &*store, TENANT, keys, &chunk).await.unwrap()
        }
    };
    assert_eq!(unpublished(vec![k.clone()]).await, [true, true, true, true, false], "a row without a key");
    for (system, row, is_live) in [(&k, 1, true), (&new, 2, true), (&k, 3, false)] {
        let person = person_hashes(&hasher, system, &chunk)[row].unwrap();
        let table = row as u128;
        let id = store.announce_coverage(&new_coverage(&evidence(&[], table), "clinic", table)).await.unwrap();
        store.cover_persons(TENANT, id, &system.system, &[person]).await.unwrap();
        store.draw_ticket(TENANT, id).await.unwrap();
        if is_live {
            store.end_announcement(TENANT, id, &AnnouncementEnd::Live).await.unwrap();
        }
    }
    assert_eq!(unpublished(vec![k.clone()]).await, [true, false, true, true, false]);
    assert_eq!(unpublished(vec![k, new]).await, [true, false, false, true, false], "in any key system");
    assert_eq!(unpublished(Vec::new()).await, [false; 5], "without person keys no one is known to be new");
}

fn disjoint(number: u128, a: &str, b: &str) -> SeparationStatement {
    let places = [a, b].map(|name| Place::Population(name.to_owned()));
    let statement = SeparationStatement::new(Uuid::from_u128(number), Separation::Disjoint, places, "known".to_owned());
    statement.unwrap()
}

pub(crate) async fn statements_are_judged_like_coverages(bench: &impl Bench) {
    let store = bench.store();
    for name in ["a", "b", "c"] {
        define(&*store, name, &["k"]).await;
    }
    let enter = |statements: Vec<SeparationStatement>| enter(&*store, None, statements);
    live(&*store, "a", &[1, 2], 1).await;
    let other = announced(&*store, "b", &[2, 3], 2).await;
    store.draw_ticket(TENANT, other).await.unwrap();
    let (ab, ac) = (disjoint(1, "a", "b"), disjoint(2, "a", "c"));
    assert_eq!(enter(vec![ac.clone(), ab.clone()]).await, PeopleEntryOutcome::Waits(other));
    assert_eq!(store.separations(TENANT).await.unwrap(), [], "all or none");
    store.end_announcement(TENANT, other, &AnnouncementEnd::Live).await.unwrap();
    assert_eq!(enter(vec![ac.clone(), ab.clone()]).await, PeopleEntryOutcome::Contradicted(vec![ab.id]));
    assert_eq!(store.separations(TENANT).await.unwrap(), []);
    assert!(matches!(enter(vec![ac.clone()]).await, PeopleEntryOutcome::Recorded { .. }));
    assert_eq!(store.separations(TENANT).await.unwrap(), [ac]);
    assert!(store.separations("x").await.unwrap().is_empty());
    // one table in two populations is one, whatever its persons
    live(&*store, "c", &[8], 7).await;
    let equal = announced(&*store, "b", &[9], 7).await;
    store.draw_ticket(TENANT, equal).await.unwrap();
    store.end_announcement(TENANT, equal, &AnnouncementEnd::Live).await.unwrap();
    assert_eq!(enter(vec![disjoint(3, "b", "c")]).await, PeopleEntryOutcome::Contradicted(vec![Uuid::from_u128(3)]));
}

pub(crate) async fn a_population_comes_with_its_statements(bench: &impl Bench) {
    let store = bench.store();
    define(&*store, "births", &["k"]).await;
    define(&*store, "staff", &["k"]).await;
    let place = |name: &str| Place::Population(name.to_owned());
    let disjoint = |id: u128, one: &str, other: &str| {
        let places = [place(one), place(other)];
        SeparationStatement::new(Uuid::from_u128(id), Separation::Disjoint, places, "why".to_owned()).unwrap()
    };
    let enter = async |systems: &[&str], separations: Vec<SeparationStatement>, attributes| {
        let named = NamedPopulation { name: "clinic".to_owned(), population: population(systems) };
        let (tenant, population, audit_entry) = (TENANT.to_owned(), Some(named), audit_entry());
        let entry = PeopleEntry { tenant, population, separations, attributes, at: at(7), audit_entry };
        store.enter_people(&entry).await.unwrap()
    };
    let recorded = |is_new| PeopleEntryOutcome::Recorded { is_new };
    live(&*store, "births", &[1, 2], 1).await;
    live(&*store, "clinic", &[2, 3], 2).await;
    let with_both = [disjoint(1, "clinic", "births"), disjoint(2, "clinic", "staff")];
    let wrong = enter(&["k"], with_both.to_vec(), None).await;
    assert_eq!(wrong, PeopleEntryOutcome::Contradicted(vec![with_both[0].id]));
    assert!(!store.people_registry(TENANT).await.unwrap().populations.contains_key("clinic"), "neither");
    assert_eq!((store.separations(TENANT).await.unwrap(), bench.count("audit_log").await), (vec![], 2));
    let statement = StatementRecord { id: Uuid::from_u128(9), body: json!({"a": 1}), recorded_at: at(7) };
    let attributes = Some(SeriesStatement { series: "clinic".to_owned(), statement: statement.clone() });
    assert_eq!(enter(&["k"], vec![with_both[1].clone()], attributes).await, recorded(true));
    let series = store.series(TENANT, "clinic").await.unwrap();
    assert_eq!((series.version, series.statements), (1, vec![statement]));
    let kept = SeparationRecord { statement: with_both[1].clone(), recorded_at: at(7) };
    assert_eq!(store.separation_records(TENANT).await.unwrap(), std::slice::from_ref(&kept));
    // what was declared before is not declared again, and what changes nothing is not logged
    assert_eq!(enter(&["k"], vec![disjoint(3, "staff", "clinic")], None).await, recorded(false));
    assert_eq!((store.separation_records(TENANT).await.unwrap(), bench.count("audit_log").await), (vec![kept], 3));
    assert_eq!(enter(&["k", "other"], vec![], None).await, recorded(false));
    let turned = enter(&["other", "k"], vec![disjoint(4, "births", "staff")], None).await;
    assert_eq!(turned, PeopleEntryOutcome::Refused(PopulationError::PopulationChanged));
    assert_eq!((store.separations(TENANT).await.unwrap().len(), bench.count("audit_log").await), (1, 4));
}

pub(crate) async fn tickets_drawn_at_once_see_all_lower_ones(bench: &impl Bench) {
    const JOBS: u128 = 12;
    let store = bench.store();
    define(&*store, "clinic", &["k"]).await;
    let mut jobs = Vec::new();
    for job in 0..JOBS {
        let store = store.clone();
        jobs.push(tokio::spawn(async move {
            let id = announced(&*store, "clinic", &[job], job).await;
            let ticket = store.draw_ticket(TENANT, id).await.unwrap();
            let seen = store.standing_coverages(TENANT, ticket).await.unwrap();
            (ticket, seen.iter().map(|record| record.ticket.unwrap()).collect::<Vec<_>>())
        }));
    }
    let mut drawn = Vec::new();
    for job in jobs {
        drawn.push(job.await.unwrap());
    }
    drawn.sort();
    let tickets: Vec<i64> = drawn.iter().map(|(ticket, _)| *ticket).collect();
    for (number, (_, seen)) in drawn.iter().enumerate() {
        assert_eq!(*seen, tickets[..number], "of {tickets:?}");
    }
    assert_eq!(tickets.len(), tickets.iter().collect::<BTreeSet<_>>().len());
}

/// Runs a job to its end, and says whether it was published.
async fn run(store: Arc<dyn Store>, persons: Vec<u128>, table: u128) -> bool {
    let evidence = evidence(&persons, table);
    let persons = BTreeMap::from([("k".to_owned(), persons.into_iter().map(hash).collect())]);
    let persons = JobPersons::Listed(Arc::new(persons));
    let people = JobPeople { evidence: Arc::new(evidence.clone()), persons };
    let id = announce(&*store, &new_coverage(&evidence, "clinic", table), &people).await.unwrap();
    let ticket = store.draw_ticket(TENANT, id).await.unwrap();
    let (publishes, kept) = (BTreeSet::from(["age".to_owned()]), KeptReadings::default());
    let dataset = Uuid::from_u128(table);
    let rows = JudgedRows {
        dataset,
        population: Some("clinic"),
        evidence: &evidence,
        publishes: &publishes,
        is_republication: false,
    };
    loop {
        let ledger = PeopleLedger { store: &*store, tenant: TENANT, kept: &kept };
        let found = standing(ledger, ticket, &people, &[]).await.unwrap();
        let statements = store.separations(TENANT).await.unwrap();
        let policy = UnrelatedPolicy::Refuse;
        let view = LedgerView { live: &found.live, pending: &found.pending, statements: &statements, policy };
        let is_admitted = match look(&rows, &view) {
            Look::Wait(_) => {
                tokio::task::yield_now().await;
                continue;
            }
            Look::Decided(outcome) => outcome.is_ok(),
        };
        let end = if is_admitted { AnnouncementEnd::Live } else { AnnouncementEnd::Void };
        store.end_announcement(TENANT, id, &end).await.unwrap();
        return is_admitted;
    }
}

pub(crate) async fn jobs_at_once_publish_no_person_twice(bench: &impl Bench) {
    let store = bench.store();
    define(&*store, "clinic", &["k"]).await;
    for round in 0..4_u128 {
        // neighbours in a ring share a person
        let first = round * 100;
        let ring = (0..6_u128)
            .map(|job| tokio::spawn(run(store.clone(), vec![first + job, first + (job + 1) % 6], first + job)));
        let ring: Vec<_> = ring.collect();
        let mut published = Vec::new();
        for job in ring {
            published.push(job.await.unwrap());
        }
        assert!((0..6).all(|job| !(published[job] && published[(job + 1) % 6])), "{published:?}");
        assert!(published.contains(&true), "{published:?}");
    }
    assert!(run(store.clone(), vec![900, 901], 900).await, "jobs of others do not wait");
}
