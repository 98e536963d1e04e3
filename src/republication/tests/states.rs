//! The bytes of states, and what repeats.

use super::*;
use crate::republication::StateError;

fn rows(text: &str) -> Vec<TestRow> {
    text.split(' ').map(|row| TestRow { person: row[..1].to_owned(), value: row[1..].to_owned() }).collect()
}

fn after_two_nights() -> State {
    let terms = TestTerms::diversity(3);
    let first = terms.night(&State::new(b"terms".to_vec()), &rows("ax bx cy dy ez fz"), &keyed(1)).unwrap();
    terms.night(&first.state, &rows("ax dy gx hy iz"), &keyed(2)).unwrap().state
}

#[test]
fn state_read_back_is_equal_and_small() {
    let state = after_two_nights();
    let bytes = state.to_bytes();
    assert!(State::from_bytes(&bytes).unwrap() == state);
    assert_eq!((state.persons(), state.nights(), state.terms()), (9, 2, &b"terms"[..]));
    assert_eq!(format!("{state:?}"), "State(night 2, 9 persons)");
    // 26 bytes a person, 8 a bucket
    let content = state.members.len() * 26 + state.buckets.len() * 8;
    // and 28 of each of the last nights
    assert!(bytes.len() <= content + 2 * 28 + 150, "{}", bytes.len());
    // not grown while it is written
    assert!(bytes.capacity() < bytes.len() + 256, "{}", bytes.capacity());
}

#[test]
fn damaged_state_is_refused() {
    let bytes = after_two_nights().to_bytes();
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        assert!(State::from_bytes(&damaged).is_err(), "byte {at}");
        assert!(State::from_bytes(&bytes[..at]).is_err(), "cut at {at}");
    }
    assert_eq!(State::from_bytes(&[&bytes[..], &[0]].concat()), Err(StateError::Damaged));
    let mut later = bytes.clone();
    later[4] = 3;
    assert_eq!(State::from_bytes(&later), Err(StateError::Version(3)));
}

#[test]
fn unsound_state_with_a_valid_digest_is_refused() {
    let sound = after_two_nights();
    let broken = |change: &dyn Fn(&mut State)| {
        let mut state = sound.clone();
        change(&mut state);
        assert_eq!(State::from_bytes(&state.to_bytes()).err(), Some(StateError::Damaged));
    };
    broken(&|state| state.members[0].bucket = 99);
    broken(&|state| state.members[0].slot = 3);
    broken(&|state| state.members[0].last = 3);
    broken(&|state| state.members[0].last = 0);
    broken(&|state| state.members.swap(0, 1));
    broken(&|state| state.buckets[0].signature = 9);
    broken(&|state| state.buckets[0].component = 77);
    broken(&|state| state.signatures[0][0] = 9);
    broken(&|state| state.signatures[0].reverse());
    broken(&|state| state.values.reverse());
    broken(&|state| state.forgotten = vec![2, 1]);
    broken(&|state| state.past.truncate(1));
    broken(&|state| state.past[0].night = 2);
    broken(&|state| {
        let (bucket, slot) = (state.members[0].bucket, state.members[0].slot);
        (state.members[1].bucket, state.members[1].slot) = (bucket, slot);
    });
}

#[test]
fn night_repeats_under_the_same_key() {
    let terms = TestTerms::diversity(3);
    let state = after_two_nights();
    let table = rows("ax cy dy ez gx hy iz jx ky lz");
    let (one, again) =
        (terms.night(&state, &table, &keyed(3)).unwrap(), terms.night(&state, &table, &keyed(3)).unwrap());
    assert_eq!(one.state.to_bytes(), again.state.to_bytes());
    assert_eq!((&one.buckets, &one.signatures), (&again.buckets, &again.signatures));
    assert_eq!(one.bucket_of, again.bucket_of);
    let from_bytes = State::from_bytes(&state.to_bytes()).unwrap();
    assert_eq!(terms.night(&from_bytes, &table, &keyed(3)).unwrap().state.to_bytes(), one.state.to_bytes());
}

#[test]
fn night_several_rows_of_a_person_are_refused() {
    let outcome = TestTerms::diversity(2).night(&State::new(Vec::new()), &rows("ax ay bz"), &keyed(1));
    assert_eq!(outcome.err(), Some(NightError::SeveralRows { rows: 1 }));
}

#[test]
fn forgotten_person_is_withheld_for_good() {
    let terms = TestTerms { forget_after: Some(2), ..TestTerms::diversity(2) };
    let mut state = State::new(Vec::new());
    let mut tallies = Vec::new();
    for table in ["ax by cx dy", "ax by cx", "ax by cx", "ax by cx dy", "ax by cx dy ez fy"] {
        let night = terms.night(&state, &rows(table), &keyed(4)).unwrap();
        tallies.push((night.tally.withheld, night.state.forgotten()));
        state = night.state;
    }
    assert_eq!(tallies, [(0, 0), (0, 0), (0, 1), (1, 1), (1, 1)]);
}

#[test]
fn tally_counts_who_came_and_left() {
    let terms = TestTerms::diversity(2);
    let first = terms.night(&State::new(Vec::new()), &rows("ax by cx dy"), &keyed(5)).unwrap();
    let second = terms.night(&first.state, &rows("ax by cz ex"), &keyed(6)).unwrap();
    let expected = NightTally {
        known: 3,
        newcomers: 1,
        departed: 1,
        changed: 1,
        waiting: 1,
        withheld: 1,
        ..NightTally::default()
    };
    assert_eq!(second.tally, expected);
    let third = terms.night(&second.state, &rows("ax by cx dy ex fx"), &keyed(7)).unwrap();
    let expected =
        NightTally { known: 4, newcomers: 2, returning: 2, waiting: 2, ineligible: true, ..NightTally::default() };
    assert_eq!(third.tally, expected);
}
