//! What is read of coverages to carry them elsewhere, and series that become populations.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use super::people::{announced, common_mark, define, evidence, hash, live, new_coverage, population};
use super::{Bench, TENANT, at, audit_entry, begun, dataset_record, is_conflict};
use crate::people::{CoverageId, Evidence, KeyedHash, Place, Signature, SignatureSample};
use crate::ports::{
    AdoptedSeries, AlikeKind, AlikeMark, AnnouncementEnd, CARRIED_HASHES, CoverageRecord, CoverageSelection,
    HASHES_PER_CALL, NamedPopulation, SampleId, Store, StoreError,
};

pub(crate) async fn persons_of_a_coverage_are_read_in_pieces(bench: &impl Bench) {
    let store = bench.store();
    define(&*store, "clinic", &["k", "other"]).await;
    let id = announced(&*store, "clinic", &[], 1).await;
    let mut persons: Vec<KeyedHash> = (0..=CARRIED_HASHES as u128).rev().map(hash).collect();
    for some in persons.chunks(HASHES_PER_CALL) {
        store.cover_persons(TENANT, id, "k", some).await.unwrap();
    }
    live(&*store, "clinic", &[1, 2], 2).await;
    persons.sort_unstable();
    let piece = async |tenant, system, after| store.coverage_persons(tenant, id, system, after).await;
    let first = piece(TENANT, "k", None).await.unwrap();
    assert_eq!(first, persons[..CARRIED_HASHES]);
    assert_eq!(piece(TENANT, "k", first.last().copied()).await.unwrap(), persons[CARRIED_HASHES..]);
    assert_eq!(piece(TENANT, "k", persons.last().copied()).await.unwrap(), []);
    assert_eq!(piece(TENANT, "other", None).await.unwrap(), []);
    for (tenant, system) in [(TENANT, "unknown"), ("x", "k")] {
        assert!(matches!(piece(tenant, system, None).await, Err(StoreError::NotFound)), "{tenant} {system}");
    }
    assert_eq!(store.coverage_persons(TENANT, CoverageId(0), "k", None).await.unwrap(), []);
}

pub(crate) async fn marks_of_a_coverage_are_read_by_kind(bench: &impl Bench) {
    let store = bench.store();
    define(&*store, "clinic", &["k"]).await;
    let id = announced(&*store, "clinic", &[1], 1).await;
    let mark = |number, kind, weight| AlikeMark { hash: hash(number), kind, weight };
    let marks = [
        mark(8, AlikeKind::Signature(1), 1),
        mark(7, AlikeKind::Signature(1), 1),
        mark(8, AlikeKind::Signature(0), 3),
        mark(9, AlikeKind::Block, 5000),
        mark(5, AlikeKind::Block, 4000),
    ];
    store.add_alike_marks(TENANT, id, &marks).await.unwrap();
    let other = announced(&*store, "clinic", &[2], 2).await;
    store.add_alike_marks(TENANT, other, &marks[..1]).await.unwrap();
    let mut expected = marks.to_vec();
    expected.sort_by_key(|mark| (mark.kind, mark.hash));
    assert_eq!(store.coverage_marks(TENANT, id).await.unwrap(), expected);
    assert_eq!(store.coverage_marks(TENANT, other).await.unwrap(), marks[..1]);
    assert_eq!(store.coverage_marks("x", id).await.unwrap(), []);
    assert_eq!(store.coverage_marks(TENANT, CoverageId(0)).await.unwrap(), []);
}

/// Coverages of before the signatures of one were a value have all marks in rows.
pub(crate) async fn marks_of_a_former_coverage_are_rows(bench: &impl Bench) {
    let store = bench.store();
    define(&*store, "clinic", &["k"]).await;
    let id = announced(&*store, "clinic", &[1], 1).await;
    let marks =
        [5, 6, 7, 8].map(|number| AlikeMark { hash: hash(number), kind: AlikeKind::Block, weight: number as u64 });
    store.add_alike_marks(TENANT, id, &marks).await.unwrap();
    assert!(!bench.refuses("DELETE FROM coverage_signatures").await);
    assert!(!bench.refuses("UPDATE indexed_marks SET kind = 1, weight = weight - 5 WHERE weight > 5").await);
    let signature = |(number, weight)| AlikeMark { hash: hash(number), kind: AlikeKind::Signature(0), weight };
    let signatures = [(6, 1), (7, 2), (8, 3)].map(signature);
    assert_eq!(store.coverage_marks(TENANT, id).await.unwrap(), [&marks[..1], &signatures].concat());
    let asked = [5, 8].map(hash);
    let held = [marks[0], signatures[2]].map(|mark| common_mark(id, mark));
    assert_eq!(store.common_marks(TENANT, &asked, None).await.unwrap(), held);
    let selection =
        CoverageSelection { sampled: [SampleId { coverage: id, sample: 0 }].into(), ..CoverageSelection::default() };
    let samples = store.select_coverages(TENANT, 0, &selection).await.unwrap().samples;
    let lowest = signatures.map(|AlikeMark { hash, weight, .. }| Signature { hash, rows: weight }).to_vec();
    assert_eq!(samples[&id][0], SignatureSample { lowest, is_cut: false });
    store.end_announcement(TENANT, id, &AnnouncementEnd::Void).await.unwrap();
    assert_eq!(store.sweep_void_coverages().await.unwrap(), 5);
    assert_eq!(bench.count("indexed_marks").await, 0);
}

/// A dataset of a former series with these rows, in no population.
async fn former(store: &dyn Store, own: &Evidence) -> Uuid {
    let id = begun(store).await;
    store.put_evidence(id, own).await.unwrap();
    let mut record = dataset_record(id, 0);
    (record.population, record.person) = (None, BTreeMap::new());
    store.insert_dataset(&record, &audit_entry()).await.unwrap();
    id
}

async fn standing(store: &dyn Store) -> Vec<CoverageRecord> {
    store.standing_coverages(TENANT, i64::MAX).await.unwrap()
}

pub(crate) async fn a_series_becomes_a_population(bench: &impl Bench) {
    let store = bench.store();
    let bare = |table| Evidence { systems: BTreeMap::new(), ..evidence(&[], table) };
    let (kept, gone) = (former(&*store, &bare(1)).await, former(&*store, &bare(2)).await);
    let block = AlikeMark { hash: hash(5), kind: AlikeKind::Block, weight: 4000 };
    for (dataset, table) in [(kept, 1), (gone, 2)] {
        let mut new = new_coverage(&bare(table), "people", 0);
        (new.coverage.populations, new.coverage.datasets) = (BTreeSet::new(), [dataset].into());
        let id = store.announce_coverage(&new).await.unwrap();
        store.add_alike_marks(TENANT, id, &[block]).await.unwrap();
        store.draw_ticket(TENANT, id).await.unwrap();
        store.end_announcement(TENANT, id, &AnnouncementEnd::Live).await.unwrap();
    }
    store.purge_dataset(TENANT, gone, at(9), &audit_entry()).await.unwrap();
    let found = store.datasets_of_series().await.unwrap();
    assert_eq!(found.iter().map(|of| (of.dataset, of.is_purged)).collect::<Vec<_>>(), [(kept, false), (gone, true)]);
    assert_eq!((found[0].series.as_str(), &found[0].record_key), ("people", &Some(vec!["a".into(), "b,c".into()])));

    let named = NamedPopulation { name: "people".to_owned(), population: population(&["k"]) };
    let series = AdoptedSeries {
        tenant: TENANT.to_owned(),
        population: named,
        datasets: [(kept, [("k".to_owned(), vec!["a".to_owned()])].into()), (gone, BTreeMap::new())].into(),
        purged: [gone].into(),
        audit_entry: audit_entry(),
    };
    let entries = bench.count("audit_log").await;
    store.adopt_series(&series).await.unwrap();
    assert_eq!(bench.count("audit_log").await, entries + 1);
    assert_eq!(store.people_registry(TENANT).await.unwrap().populations["people"], series.population.population);
    assert_eq!(store.datasets_of_series().await.unwrap(), []);
    let record = store.dataset(TENANT, kept).await.unwrap().unwrap();
    assert_eq!((record.population.as_deref(), record.person["k"].as_slice()), (Some("people"), &["a".to_owned()][..]));
    // evidence and coverage of rows that are there begin anew, those of rows that are gone stay
    assert_eq!(store.evidence(TENANT, kept).await.unwrap(), None);
    assert_eq!(store.uncovered_datasets(TENANT).await.unwrap(), [kept]);
    let [only] = &standing(&*store).await[..] else { panic!("one coverage stays") };
    assert_eq!((&only.coverage.datasets, &only.coverage.tables), (&[gone].into(), &[hash(2)].into()));
    assert_eq!(only.coverage.populations, BTreeSet::from(["people".to_owned()]));
    assert_eq!(store.common_marks(TENANT, &[block.hash], None).await.unwrap(), [common_mark(only.id, block)]);

    // a published population only grows: one that is defined otherwise is not adopted
    let other = NamedPopulation { name: "people".to_owned(), population: population(&["other"]) };
    assert!(is_conflict(&store.adopt_series(&AdoptedSeries { population: other, ..series }).await));
}

pub(crate) async fn a_kept_coverage_is_listed_by_its_group_anew(bench: &impl Bench) {
    let store = bench.store();
    define(&*store, "clinic", &["k"]).await;
    let first = live(&*store, "clinic", &[1], 1).await;
    // rows of the clinic that an upload of a former series had too, and are gone
    let gone = former(&*store, &Evidence { systems: BTreeMap::new(), ..evidence(&[], 2) }).await;
    let mut new = new_coverage(&evidence(&[2], 2), "clinic", 2);
    new.coverage.datasets.insert(gone);
    let both = store.announce_coverage(&new).await.unwrap();
    store.draw_ticket(TENANT, both).await.unwrap();
    store.end_announcement(TENANT, both, &AnnouncementEnd::Live).await.unwrap();
    store.purge_dataset(TENANT, gone, at(9), &audit_entry()).await.unwrap();
    let representatives = async || {
        let read = store.select_coverages(TENANT, 0, &CoverageSelection::default()).await.unwrap();
        read.records.into_iter().map(|record| record.id).collect::<Vec<_>>()
    };
    assert_eq!(representatives().await, [first], "both stand alike");

    let series = AdoptedSeries {
        tenant: TENANT.to_owned(),
        population: NamedPopulation { name: "people".to_owned(), population: population(&["other"]) },
        datasets: [(gone, BTreeMap::new())].into(),
        purged: [gone].into(),
        audit_entry: audit_entry(),
    };
    store.adopt_series(&series).await.unwrap();
    // what is declared of the clinic alone does not speak for it
    assert_eq!(representatives().await, [first, both], "it stands by itself");
    let places = ["clinic", "people"].map(|name| Place::Population(name.to_owned()));
    assert_eq!(store.published_places(TENANT).await.unwrap(), BTreeSet::from(places));
}
