//! Populations that are republished, as the judge sees them.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use crate::people::{
    Admission, Basis, Coverage, CoverageId, Evidence, JudgedRows, KeyedHash, LedgerView, LiveCoverage, Look,
    PeopleRefusal, Place, Resemblance, Separation, SeparationStatement, SystemEvidence, UnrelatedPolicy, judge, look,
};

/// Rows of ten persons of key system `k`.
fn evidence() -> Evidence {
    let system = SystemEvidence { persons: 10, columns: BTreeMap::new() };
    Evidence { rows: 10, systems: [("k".to_owned(), system)].into(), table: Some(KeyedHash(1)), ..Evidence::default() }
}

/// A live coverage with this many common persons; of the chain of its population, or of none.
fn live(id: i64, population: &str, is_chain: bool, common: u64) -> LiveCoverage {
    let rows = Evidence { table: Some(KeyedHash(100 + id as u128)), ..evidence() };
    let mut coverage = Coverage::new(Uuid::from_u128(100 + id as u128), Some(population), &rows);
    coverage.chain = is_chain.then(|| population.to_owned());
    LiveCoverage {
        id: CoverageId(id),
        coverage,
        published: ["age".to_owned()].into(),
        common: [("k".to_owned(), common)].into(),
        resemblance: None,
    }
}

struct JudgedNight<'a> {
    population: &'a str,
    is_republication: bool,
    statements: &'a [SeparationStatement],
}

const NIGHT: JudgedNight<'_> = JudgedNight { population: "ward", is_republication: true, statements: &[] };

impl JudgedNight<'_> {
    fn judged(&self, live: &[LiveCoverage]) -> Result<Admission, PeopleRefusal> {
        let (evidence, publishes) = (evidence(), BTreeSet::from(["age".to_owned()]));
        judge(&self.rows(&evidence, &publishes), live, self.statements, UnrelatedPolicy::Refuse)
    }

    fn rows<'r>(&'r self, evidence: &'r Evidence, publishes: &'r BTreeSet<String>) -> JudgedRows<'r> {
        JudgedRows {
            dataset: Uuid::from_u128(1),
            population: Some(self.population),
            evidence,
            publishes,
            is_republication: self.is_republication,
        }
    }
}

fn chain_of(judged: Result<Admission, PeopleRefusal>) -> Option<i64> {
    judged.unwrap().chain.map(|id| id.0)
}

fn overlap(judged: Result<Admission, PeopleRefusal>) -> Vec<i64> {
    match judged {
        Err(PeopleRefusal::OverlappingPeople { coverages, .. }) => coverages.iter().map(|id| id.0).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_night_continues_the_chain_of_its_population() {
    assert_eq!(chain_of(NIGHT.judged(&[])), None, "the first");
    for common in [0, 1, 10] {
        assert_eq!(chain_of(NIGHT.judged(&[live(3, "ward", true, common)])), Some(3), "{common} in both");
    }
    // while a release is held its persons stand apart from the others
    assert_eq!(chain_of(NIGHT.judged(&[live(3, "ward", true, 5), live(4, "ward", true, 5)])), Some(3));
    assert_eq!(chain_of(NIGHT.judged(&[live(3, "ward", true, 5), live(4, "clinic", false, 0)])), Some(3));
}

#[test]
fn persons_stand_in_the_chain_or_elsewhere() {
    let chain = live(3, "ward", true, 5);
    for (other, population) in [(live(4, "ward", false, 1), "ward"), (live(4, "clinic", true, 1), "clinic")] {
        assert_eq!(overlap(NIGHT.judged(&[chain.clone(), other.clone()])), [3, 4], "{population}");
        assert_eq!(overlap(NIGHT.judged(&[other])), [4], "{population}");
    }
    // to whatever does not republish, a chain is an overlap, also of an equal table
    let once = JudgedNight { is_republication: false, ..NIGHT };
    let mut equal = live(3, "ward", true, 10);
    equal.coverage.tables.insert(KeyedHash(1));
    assert_eq!(overlap(once.judged(&[equal.clone()])), [3]);
    assert_eq!(overlap(JudgedNight { population: "clinic", ..NIGHT }.judged(&[equal.clone()])), [3]);
    assert_eq!(chain_of(NIGHT.judged(&[equal])), Some(3));
}

#[test]
fn what_was_published_once_does_not_become_a_chain() {
    let mut same = live(4, "ward", false, 10);
    same.coverage.tables = [KeyedHash(1)].into();
    let refused = NIGHT.judged(std::slice::from_ref(&same)).unwrap_err();
    assert_eq!(refused, PeopleRefusal::PublishedWithoutChain { coverages: vec![CoverageId(4)] });
    assert_eq!(overlap(NIGHT.judged(&[live(3, "ward", true, 5), same])), [3]);
}

#[test]
fn a_chain_excuses_nothing_else() {
    let chain = live(3, "ward", true, 5);
    let mut unknown = live(4, "clinic", false, 0);
    unknown.coverage.systems.clear();
    let refused = NIGHT.judged(&[chain.clone(), unknown]).unwrap_err();
    assert_eq!(refused, PeopleRefusal::PopulationUndeclared { coverages: vec![CoverageId(4)] });
    let alike = LiveCoverage { resemblance: Some(Resemblance::Rows), ..live(4, "clinic", false, 0) };
    let refused = NIGHT.judged(&[chain.clone(), alike]).unwrap_err();
    assert!(matches!(refused, PeopleRefusal::PeopleAlike { .. }), "{refused:?}");
    // keys drawn anew are noticed in the chain too
    let drawn = LiveCoverage { resemblance: Some(Resemblance::Rows), ..live(3, "ward", true, 0) };
    assert!(matches!(NIGHT.judged(&[drawn]).unwrap_err(), PeopleRefusal::PeopleAlike { .. }));
    let places = [Place::Dataset(Uuid::from_u128(1)), Place::Population("ward".to_owned())];
    let statement = SeparationStatement::new(Uuid::from_u128(9), Separation::Disjoint, places, "r".to_owned());
    let contradicted = JudgedNight { statements: &[statement.unwrap()], ..NIGHT }.judged(&[chain]).unwrap_err();
    assert!(matches!(contradicted, PeopleRefusal::StatementContradicted { .. }), "{contradicted:?}");
}

#[test]
fn statements_stay_part_of_what_a_night_rests_on() {
    let places = [Place::Population("ward".to_owned()), Place::Population("births".to_owned())];
    let statement = SeparationStatement::new(Uuid::from_u128(9), Separation::Disjoint, places, "r".to_owned());
    let mut births = live(4, "births", false, 0);
    births.coverage.systems.clear();
    let judged = JudgedNight { statements: &[statement.unwrap()], ..NIGHT };
    let admission = judged.judged(&[live(3, "ward", true, 5), births]).unwrap();
    let keys = Basis::Keys("k".to_owned());
    assert_eq!(admission.basis, BTreeSet::from([keys, Basis::Statement(Uuid::from_u128(9))]));
}

#[test]
fn nights_wait_for_earlier_ones_of_their_population() {
    let (evidence, publishes) = (evidence(), BTreeSet::new());
    let looks = |live: &[LiveCoverage], pending: &[LiveCoverage]| {
        let view = LedgerView { live, pending, statements: &[], policy: UnrelatedPolicy::Refuse };
        look(&NIGHT.rows(&evidence, &publishes), &view)
    };
    let pending = [live(5, "ward", true, 5)];
    assert_eq!(looks(&[], &pending), Look::Wait(CoverageId(5)), "which of them begins the chain?");
    // each later one goes on from the state of the one before
    for common in [0, 5] {
        let pending = [live(4, "clinic", true, 0), live(5, "ward", true, common), live(6, "ward", true, 5)];
        assert_eq!(looks(&[live(3, "ward", true, 5)], &pending), Look::Wait(CoverageId(5)), "{common} in both");
    }
    let others = [live(4, "clinic", true, 0)];
    match looks(&[live(3, "ward", true, 5)], &others) {
        Look::Decided(Ok(admission)) => assert_eq!(admission.chain, Some(CoverageId(3))),
        other => panic!("{other:?}"),
    }
    let elsewhere = [live(3, "clinic", false, 1)];
    assert!(matches!(looks(&elsewhere, &pending), Look::Decided(Err(_))), "a refusal waits for no one");
    // what does not republish waits for a night that shares persons with it
    let once = JudgedNight { is_republication: false, ..NIGHT };
    let view = LedgerView { live: &[], pending: &pending, statements: &[], policy: UnrelatedPolicy::Refuse };
    assert_eq!(look(&once.rows(&evidence, &publishes), &view), Look::Wait(CoverageId(5)));
}

#[test]
fn a_chain_counts_its_persons_as_they_come() {
    let mut chain = live(3, "ward", true, 0).coverage;
    let mut night = Coverage::new(Uuid::from_u128(8), Some("ward"), &evidence());
    night.systems.insert("badge".to_owned(), SystemEvidence { persons: 4, columns: BTreeMap::new() });
    chain.absorb(night.clone(), &BTreeSet::new());
    chain.count_new_persons("k", 2);
    chain.count_new_persons("badge", 4);
    assert_eq!((chain.systems["k"].persons, chain.systems["badge"].persons), (12, 4));
    let mut other = live(4, "ward", false, 0).coverage;
    other.absorb(night, &BTreeSet::new());
    other.count_new_persons("k", 2);
    assert_eq!((other.systems["k"].persons, other.systems["badge"].persons), (10, 4));
}
