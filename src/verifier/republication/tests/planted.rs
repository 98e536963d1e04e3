//! Nights of the publisher, each changed so that it breaks a promise of the nights before.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::super::chain::{ChainBucket, ChainFault, ChainNight};
use super::super::night::{AuditedNight, audit_night};
use super::super::parts::ShownSignatures;
use super::audit_chain;
use crate::control::Control;
use crate::microdata::{Arena, Attr, AttributeType, Codes, Column, Domain};
use crate::publication::{
    BucketMerging, ChangedValues, NightDigest, PreviousNight, ReadColumn, ReadPart, RepublishDetails, RepublishFigures,
};
use crate::random::{RandomStreams, ReleaseKey};
use crate::republication::{Diversity, Night, NightBucket, NightInput, NightTerms, SensitiveText, State};

const L: u64 = 3;

/// A night as the publisher made it, to be changed.
#[derive(Clone)]
struct Made {
    before: Option<Vec<u8>>,
    after: Vec<u8>,
    persons: Vec<[u8; 16]>,
    values: Vec<Vec<u8>>,
    labels: Vec<u32>,
    shown: BTreeMap<u32, Vec<Option<Vec<u8>>>>,
    digest: String,
    details: RepublishDetails,
}

fn hash(name: &str) -> [u8; 16] {
    let mut hash = [0; 16];
    hash[..name.len()].copy_from_slice(name.as_bytes());
    hash
}

/// A sensitive part as the verifier reads it.
fn read_part(slots: Vec<(u32, Option<&[u8]>)>) -> ReadPart {
    let texts: BTreeSet<&[u8]> = slots.iter().filter_map(|(_, value)| *value).chain([&b"none"[..]]).collect();
    let mut arena = Arena::default();
    texts.iter().for_each(|text| arena.push(text));
    let domain = Arc::new(Domain::from_sorted(AttributeType::Text, true, arena));
    let code = |value: &Option<&[u8]>| domain.iter().position(|of| of == *value).unwrap() as u32;
    let codes =
        Codes::collect(domain.len(), slots.iter().map(|(_, value)| code(value)).collect::<Vec<_>>().into_iter());
    let column = ReadColumn { attribute: Attr(1), column: Column { domain: Arc::clone(&domain), codes } };
    ReadPart { labels: slots.iter().map(|(label, _)| label - 1).collect(), columns: vec![column] }
}

fn details(night: u32) -> RepublishDetails {
    RepublishDetails {
        night,
        previous: None,
        changes: ChangedValues::Withhold,
        merge: BucketMerging::Single,
        min_newcomers: L,
        grace: 1,
        forget_after: None,
        figures: RepublishFigures::default(),
        earlier: Vec::new(),
    }
}

impl Made {
    /// The night of a table such as `ax by`: a letter for the person, one for the value.
    fn new(state: &State, before: Option<&[u8]>, table: &str, seed: u8) -> (Self, State) {
        Self::on(state, before, table, seed, details(state.nights() + 1))
    }

    fn on(state: &State, before: Option<&[u8]>, table: &str, seed: u8, details: RepublishDetails) -> (Self, State) {
        let previous = state.digest().map(|digest| PreviousNight { release: None, digest: digest.clone() });
        let details = RepublishDetails { earlier: state.past_nights().to_vec(), previous, ..details };
        let rows: Vec<(&str, &str)> = table.split(' ').map(|row| row.split_at(1)).collect();
        let mut values: Vec<SensitiveText> = rows.iter().map(|(_, value)| Some(value.as_bytes().into())).collect();
        values.sort();
        values.dedup();
        let rank = |value: &str| values.iter().position(|of| of.as_deref() == Some(value.as_bytes())).unwrap() as u32;
        let persons: Vec<[u8; 16]> = rows.iter().map(|(person, _)| hash(person)).collect();
        let value_of: Vec<u32> = rows.iter().map(|(_, value)| rank(value)).collect();
        let order: Vec<u32> = (0..rows.len() as u32).collect();
        let terms = NightTerms {
            founding: &Diversity { l: L },
            changes: details.changes,
            group: L as u32,
            merging: details.merge,
            min_newcomers: details.min_newcomers,
            grace: details.grace,
            forget_after: details.forget_after,
        };
        let input = NightInput { persons: &persons, value_of: &value_of, values: &values, order: &order };
        let streams = RandomStreams::Keyed(ReleaseKey::from_bytes([seed; 32]));
        let night = Night::new(state.clone(), input, &terms, &streams, &Control::default()).unwrap();
        let text = |value: &u32| night.values[*value as usize].as_ref().map(|text| text.to_vec());
        let signature = |bucket: &NightBucket| night.signature(*bucket).iter().map(text).collect();
        let shown = (1..).zip(night.buckets.iter().map(signature)).collect();
        let digest = NightDigest(format!("{seed:064}"));
        let state = night.state.published_as(digest.clone());
        let made = Self {
            before: before.map(<[u8]>::to_vec),
            after: state.to_bytes(),
            persons,
            values: rows.iter().map(|(_, value)| value.as_bytes().to_vec()).collect(),
            labels: night.bucket_of.iter().map(|bucket| bucket.map_or(0, |bucket| bucket + 1)).collect(),
            shown,
            digest: digest.0,
            details,
        };
        (made, state)
    }

    fn audit(&self) -> Result<(), String> {
        let distinct: BTreeSet<&Vec<u8>> = self.values.iter().collect();
        let mut arena = Arena::default();
        distinct.iter().for_each(|value| arena.push(value));
        let distinct: Vec<&Vec<u8>> = distinct.into_iter().collect();
        let codes = self.values.iter().map(|value| distinct.binary_search(&value).unwrap() as u32);
        let codes = Codes::collect(distinct.len(), codes.collect::<Vec<_>>().into_iter());
        let domain = Arc::new(Domain::from_sorted(AttributeType::Text, false, arena));
        let values = Column { domain, codes };
        let slots = self.shown.iter().flat_map(|(label, values)| values.iter().map(|of| (*label, of.as_deref())));
        let found = self.audit_with(&values, &slots.clone().collect());
        // the verifier audits what it has read of a part with other values as well
        let read = ShownSignatures::from_read(&read_part(slots.collect()));
        assert_eq!(self.audit_with(&values, &read.unwrap()), found);
        found
    }

    fn audit_with(&self, values: &Column, shown: &ShownSignatures) -> Result<(), String> {
        let night = AuditedNight {
            before: self.before.as_deref(),
            after: &self.after,
            digest: &self.digest,
            persons: &self.persons,
            values,
            labels: &self.labels,
            shown,
            details: &self.details,
            l: L,
        };
        audit_night(&night, &Control::default()).unwrap()
    }

    /// The night with a change, and what the audit says of it.
    fn broken(&self, change: impl FnOnce(&mut Self)) -> String {
        let mut changed = self.clone();
        change(&mut changed);
        changed.audit().expect_err("the change is found")
    }

    fn row(&self, person: &str) -> usize {
        self.persons.iter().position(|known| *known == hash(person)).unwrap()
    }

    fn night(&self) -> ChainNight {
        let bucket = |(label, signature): (&u32, &Vec<Option<Vec<u8>>>)| {
            let members = self.persons.iter().zip(&self.labels).filter(|(_, of)| *of == label);
            let mut signature = signature.clone();
            signature.sort();
            ChainBucket { label: *label, members: members.map(|(person, _)| Some(*person)).collect(), signature }
        };
        ChainNight { buckets: self.shown.iter().map(bucket).collect(), unplaced: Vec::new() }
    }
}

const FIRST: &str = "ax bx cx dy ey fy gz hz iz";

/// Two nights: of nine persons two leave, who cannot empty a bucket, and three come, in one bucket.
fn two_nights() -> (Made, Made) {
    let (first, state) = Made::new(&State::new(b"terms".to_vec()), None, FIRST, 1);
    let before = state.to_bytes();
    let (second, _) = Made::new(&state, Some(&before), "ax bx dy ey gz hz iz jx ky lz", 2);
    (first, second)
}

#[test]
fn nights_of_the_publisher_pass() {
    let (first, second) = two_nights();
    assert_eq!((first.audit(), second.audit()), (Ok(()), Ok(())));
    assert!(second.shown.len() > 3, "a bucket of newcomers, and the old ones");
    let report = audit_chain(&[first.night(), second.night()], L, &Control::default()).unwrap();
    assert!(report.faults.is_empty() && report.above == 0, "{report:?}");
    assert_eq!(report.persons, 12);
}

#[test]
fn planted_faults_of_parts_are_found() {
    let (first, second) = two_nights();
    let label = second.labels[second.row("a")];
    let found = second.broken(|night| night.shown.get_mut(&label).unwrap()[0] = Some(b"w".to_vec()));
    assert_eq!(found, "a bucket does not show its whole signature");
    // a departed value is gone
    let found = second.broken(|night| drop(night.shown.get_mut(&label).unwrap().pop()));
    assert_eq!(found, "a bucket does not show its whole signature");
    // two survivors with one slot stand in each other's buckets
    let (one, other) = (second.row("a"), second.row("b"));
    assert_ne!(second.labels[one], second.labels[other]);
    let swapped = |night: &mut Made| night.labels.swap(one, other);
    assert_eq!(second.broken(swapped), "the buckets of the release are not those of the state");
    // a newcomer stands with a survivor
    let newcomer = second.row("j");
    let found = second.broken(|night| night.labels[newcomer] = label);
    assert_eq!(found, "the buckets of the release are not those of the state");
    // a person is left out
    let found = second.broken(|night| night.labels[one] = 0);
    assert!(found.contains("state") || found.contains("left out"), "{found}");
    // a value that changed is published in the old bucket
    let found = second.broken(|night| night.values[one] = b"y".to_vec());
    assert_eq!(found, "a person is published with another value than that of the slot");
    let found = second.broken(|night| night.persons[one] = night.persons[other]);
    assert_eq!(found, "a person is published twice");
    let found = second.broken(|night| night.details.min_newcomers = 4);
    assert_eq!(found, "newcomers are published who are too few");
    let found = second.broken(|night| night.digest = "0".repeat(64));
    assert_eq!(found, "the state or the release names another night before, or other parts");
    let found = second.broken(|night| night.details.previous = None);
    assert_eq!(found, "the state or the release names another night before, or other parts");
    let found = second.broken(|night| night.details.earlier[0].rows += 1);
    assert_eq!(found, "the release says other figures of earlier nights");
    assert_eq!(first.broken(|night| night.details.night = 2), "the state is not that of the night before");
}

#[test]
fn states_that_do_not_follow_are_found() {
    let (first, second) = two_nights();
    // the state of the night before last
    assert_eq!(second.broken(|night| night.before = None), "the state is not that of the night before");
    let found = second.broken(|night| night.after = first.after.clone());
    assert_eq!(found, "the state is not that of the night before");
    assert_eq!(second.broken(|night| night.after.truncate(40)), "a state of the population cannot be read");
    // a list in which a value stands twice, so that one person has another signature and the same values
    let twice = |state: &mut Vec<u8>| {
        let at = state.windows(6).position(|value| value == b"\x01\x01\0\0\0x").unwrap();
        state[at + 5] = b'y';
    };
    assert_eq!(second.broken(|night| twice(&mut night.after)), "a state of the population cannot be read");
    // nights that forget everybody follow each other, too, and persons who stay get a second signature
    let forgetful = Made::new(&State::new(b"terms".to_vec()), None, "jx ky lz", 7).1;
    let (_, empty) = Made::new(&forgetful, Some(&forgetful.to_bytes()), "jx ky lz", 8);
    let found = second.broken(|night| {
        night.after = empty.to_bytes();
        night.digest = format!("{:064}", 8);
    });
    assert_eq!(found, "a published person is not in the state");
    let (other, _) = Made::new(&State::new(b"others".to_vec()), None, FIRST, 1);
    assert_eq!(second.broken(|night| night.before = Some(other.after)), "the terms of the population changed");
}

#[test]
fn person_with_a_second_signature_is_found() {
    let (first, state) = Made::new(&State::new(b"terms".to_vec()), None, FIRST, 1);
    // the same persons under other values: as if the state before had been another one
    let (_, other) = Made::new(&State::new(b"terms".to_vec()), None, "aw bw cw dy ey fy gz hz iz", 1);
    let before = other.to_bytes();
    let (second, _) = Made::new(&other, Some(&before), "aw bw dy ey gz hz", 2);
    let found = second.broken(|night| night.before = Some(state.to_bytes()));
    assert_eq!(found, "the signature of a person changed");
    let report = audit_chain(&[first.night(), second.night()], L, &Control::default()).unwrap();
    assert!(report.faults.contains_key(&ChainFault::Signature) && report.above > 0, "{report:?}");
}

#[test]
fn merges_that_are_not_of_single_survivors_are_found() {
    let (first, state) = Made::new(&State::new(b"terms".to_vec()), None, FIRST, 1);
    let bucket_of = |person: &str| first.labels[first.row(person)];
    // survivors of pairwise different buckets and slots
    let others: Vec<&str> = ["d", "e", "f"].into_iter().filter(|other| bucket_of(other) != bucket_of("a")).collect();
    let (alone, also) = (format!("ax {}y", others[0]), others[0]);
    let before = state.to_bytes();
    let (merged, _) = Made::new(&state, Some(&before), &alone, 3);
    assert_eq!(merged.audit(), Ok(()));
    assert_eq!(merged.labels[merged.row("a")], merged.labels[merged.row(also)], "the survivors are joined");
    let found = merged.broken(|night| night.details.merge = BucketMerging::Never);
    assert_eq!(found, "buckets were joined that are not of single survivors");
    let found = merged.broken(|night| night.details.grace = 2);
    assert_eq!(found, "buckets were joined that are not of single survivors");
    let report = audit_chain(&[first.night(), merged.night()], L, &Control::default()).unwrap();
    assert!(report.faults.is_empty(), "{report:?}");
    // two persons of a bucket with one of another
    let mate = ["g", "h", "i"].into_iter().find(|mate| bucket_of(mate) == bucket_of("a")).unwrap();
    let mut recombined = merged.night();
    recombined.buckets[0].members.push(Some(hash(mate)));
    let report = audit_chain(&[first.night(), recombined], L, &Control::default()).unwrap();
    assert!(report.faults.contains_key(&ChainFault::Recombined), "{report:?}");
}

#[test]
fn labels_of_the_night_before_are_found() {
    let table: Vec<String> =
        (0..30).map(|row| format!("{}{}", char::from(b'A' + row), char::from(b'r' + row % 3))).collect();
    let table = table.join(" ");
    let (first, state) = Made::new(&State::new(Vec::new()), None, &table, 1);
    let before = state.to_bytes();
    let (mut second, _) = Made::new(&state, Some(&before), &table, 2);
    let kept = [first.night(), first.night()];
    let report = audit_chain(&kept, L, &Control::default()).unwrap();
    assert_eq!(report.faults.keys().collect::<Vec<_>>(), [&ChainFault::LabelsKept]);
    // the publisher draws labels anew
    let buckets = second.shown.len() as u32;
    let next = |label: u32| label % buckets + 1;
    second.labels.iter_mut().for_each(|label| *label = next(*label));
    second.shown = second.shown.into_iter().map(|(label, values)| (next(label), values)).collect();
    assert_eq!(second.audit(), Ok(()));
    let report = audit_chain(&[first.night(), second.night()], L, &Control::default()).unwrap();
    assert!(report.faults.is_empty(), "{report:?}");
}

#[test]
fn moved_persons_stand_in_groups_of_their_own() {
    let terms = RepublishDetails { changes: ChangedValues::Move, ..details(1) };
    let (first, state) = Made::on(&State::new(Vec::new()), None, FIRST, 1, terms.clone());
    let before = state.to_bytes();
    let second = RepublishDetails { night: 2, ..terms };
    let (moved, _) = Made::on(&state, Some(&before), "au bv cw dy ey fy gz hz iz", 2, second);
    assert_eq!(moved.audit(), Ok(()));
    assert!(moved.labels.iter().all(|label| *label > 0), "u, v and w share no value with x, y and z");
    let found = moved.broken(|night| night.details.changes = ChangedValues::Withhold);
    assert_eq!(found, "the signature of a person changed");
    let report = audit_chain(&[first.night(), moved.night()], L, &Control::default()).unwrap();
    assert!(report.faults.is_empty() && report.above == 0, "{report:?}");
}
