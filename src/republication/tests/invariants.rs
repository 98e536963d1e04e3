//! The invariants on random histories, from what is published alone.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

/// A person with the signature of a version.
type Version = (String, Vec<String>);

/// What earlier nights showed.
#[derive(Default)]
struct Shown {
    signature: BTreeMap<String, Vec<String>>,
    component: BTreeMap<Version, usize>,
    together: BTreeSet<BTreeSet<Version>>,
    next: usize,
}

impl Shown {
    /// Holds a night against the nights before.
    fn check(&mut self, buckets: &[TestBucket], values: &BTreeMap<String, String>, l: usize) {
        let mut here = BTreeSet::new();
        for TestBucket { persons, signature } in buckets {
            assert!(signature.len() >= l && signature.is_sorted(), "whole signatures");
            assert!(signature.iter().all(|v| signature.iter().filter(|w| v == *w).count() * l <= signature.len()));
            let mut left = signature.clone();
            for person in persons {
                assert!(here.insert(person.clone()), "a person stands in one bucket");
                let at = left.iter().position(|value| *value == values[person]).expect("members have different slots");
                left.remove(at);
                if let Some(known) = self.signature.get(person).filter(|known| *known != signature) {
                    assert!(known.iter().all(|value| !signature.contains(value)), "a version has one signature");
                }
            }
            let is_new = |person: &&String| self.signature.get(*person) != Some(signature);
            let fresh = persons.iter().filter(is_new).count();
            assert!(fresh == 0 || fresh == signature.len(), "newcomers enter in full buckets of their own");
            let versions: BTreeSet<Version> = persons.iter().map(|p| (p.clone(), signature.clone())).collect();
            if fresh > 0 {
                for version in &versions {
                    self.signature.insert(version.0.clone(), version.1.clone());
                    self.component.insert(version.clone(), self.next);
                }
                self.next += 1;
            } else if !self.together.iter().any(|known| versions.is_subset(known)) {
                let components: BTreeSet<usize> = versions.iter().map(|version| self.component[version]).collect();
                assert_eq!(components.len(), versions.len(), "components meet once");
                assert!(signature.len() > 2, "two survivors of two slots would have equal values for certain");
                let first = *components.iter().next().unwrap();
                self.component.values_mut().filter(|of| components.contains(of)).for_each(|of| *of = first);
            }
            self.together.insert(versions);
        }
    }
}

#[derive(Clone, Debug)]
struct Moves {
    leave: Vec<bool>,
    come: Vec<bool>,
    change: Vec<u8>,
}

const PERSONS: usize = 40;

fn moves() -> impl Strategy<Value = Moves> {
    let some = |percent: f64| proptest::collection::vec(proptest::bool::weighted(percent), PERSONS);
    (some(0.2), some(0.3), proptest::collection::vec(0_u8..60, PERSONS)).prop_map(|(leave, come, change)| Moves {
        leave,
        come,
        change,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn fifty_nights_keep_the_invariants(
        nights in proptest::collection::vec(moves(), 50),
        l in 2_u32..5,
        grace in 0_u32..4,
        changes in prop_oneof![Just(ChangedValues::Withhold), Just(ChangedValues::Move)],
        seed: u8,
    ) {
        let terms = TestTerms { grace, changes, ..TestTerms::diversity(l) };
        let mut here = [true; PERSONS];
        let mut value: Vec<u8> = (0..PERSONS as u8).map(|person| person % 6).collect();
        let (mut state, mut shown, mut published_rows) = (State::new(Vec::new()), Shown::default(), 0);
        for (night, moves) in nights.iter().enumerate() {
            for person in 0..PERSONS {
                here[person] = if here[person] { !moves.leave[person] } else { moves.come[person] };
                if moves.change[person] < 6 && changes == ChangedValues::Move {
                    value[person] = moves.change[person];
                }
            }
            let name = |person: usize| format!("p{person:02}");
            let rows: Vec<TestRow> = (0..PERSONS)
                .filter(|&person| here[person])
                .map(|person| TestRow { person: name(person), value: format!("v{}", value[person]) })
                .collect();
            let values = rows.iter().map(|row| (row.person.clone(), row.value.clone())).collect();
            let made = terms.night(&state, &rows, &keyed(seed.wrapping_add(night as u8))).unwrap();
            let buckets = published(&made, &rows);
            shown.check(&buckets, &values, l as usize);
            published_rows += buckets.iter().map(|bucket| bucket.persons.len()).sum::<usize>();
            let tally = made.tally;
            prop_assert_eq!(rows.len() as u64, tally.known + tally.newcomers);
            let kept = buckets.iter().map(|bucket| bucket.persons.len() as u64).sum::<u64>();
            prop_assert_eq!(rows.len() as u64, kept + tally.waiting + tally.withheld);
            state = State::from_bytes(&made.state.to_bytes()).unwrap();
            let slots: u64 = buckets.iter().map(|bucket| bucket.signature.len() as u64).sum();
            prop_assert_eq!(state.published_slots().by_value.iter().sum::<u64>(), slots);
        }
        prop_assert!(published_rows > 0);
    }

    #[test]
    fn rows_are_drawn_in_their_secret_order(
        order in Just((0..PERSONS as u32).collect::<Vec<u32>>()).prop_shuffle(),
        moves in moves(),
        seed: u8,
    ) {
        let name = |person: usize| format!("p{person:02}");
        let row = |person: usize, value: usize| TestRow { person: name(person), value: format!("v{}", value % 6) };
        let terms = TestTerms { changes: ChangedValues::Move, ..TestTerms::diversity(3) };
        let known: Vec<TestRow> = (0..PERSONS).filter(|&person| moves.leave[person]).map(|p| row(p, p)).collect();
        let state = terms.night(&State::new(Vec::new()), &known, &keyed(1)).map(|night| night.state);
        let state = state.unwrap_or_else(|_| State::new(Vec::new()));
        let changed = |person: usize| person + usize::from(moves.come[person]);
        let rows: Vec<TestRow> = (0..PERSONS).map(|person| row(person, changed(person))).collect();
        let drawn = terms.night_in_order(&state, &rows, &order, &keyed(seed)).unwrap();
        let in_order: Vec<TestRow> = order.iter().map(|&at| rows[at as usize].clone()).collect();
        let expected = terms.night(&state, &in_order, &keyed(seed)).unwrap();
        prop_assert_eq!(drawn.state.to_bytes(), expected.state.to_bytes());
        prop_assert_eq!((&drawn.buckets, &drawn.signatures), (&expected.buckets, &expected.signatures));
        let buckets: Vec<Option<u32>> = order.iter().map(|&at| drawn.bucket_of[at as usize]).collect();
        prop_assert_eq!(buckets, expected.bucket_of);
        prop_assert_eq!(drawn.tally, expected.tally);
    }

    #[test]
    fn rows_in_another_order_are_all_published(order in Just((0..12).collect::<Vec<usize>>()).prop_shuffle(), seed: u8) {
        let all: Vec<TestRow> =
            (0..12).map(|person| TestRow { person: format!("p{person:02}"), value: format!("v{}", person % 4) }).collect();
        let rows: Vec<TestRow> = order.iter().map(|&at| all[at].clone()).collect();
        let terms = TestTerms::diversity(3);
        let made = terms.night(&State::new(Vec::new()), &rows, &keyed(seed)).unwrap();
        let signatures = |night: &Night| {
            let mut all: Vec<Vec<u32>> = night.buckets.iter().map(|bucket| night.signature(*bucket).to_vec()).collect();
            all.sort();
            all
        };
        let straight = terms.night(&State::new(Vec::new()), &all, &keyed(seed)).unwrap();
        prop_assert_eq!(signatures(&made), signatures(&straight));
        prop_assert_eq!(made.state.persons(), 12);
    }
}
