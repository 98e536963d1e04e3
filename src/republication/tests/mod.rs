mod invariants;
mod slot_worlds;
mod states;
mod vectors;

use super::{
    CohortValue, Diversity, FoundingRule, Night, NightError, NightInput, NightTally, NightTerms, PersonHash,
    SensitiveText, State,
};
use crate::control::Control;
use crate::publication::{BucketMerging, ChangedValues};
use crate::random::{RandomStreams, ReleaseKey};

/// A row of a test: a person and a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct TestRow {
    pub(super) person: String,
    pub(super) value: String,
}

/// A published bucket of a test.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct TestBucket {
    pub(super) persons: Vec<String>,
    pub(super) signature: Vec<String>,
}

/// The terms of a test.
pub(super) struct TestTerms {
    pub(super) founding: Box<dyn FoundingRule>,
    pub(super) l: u32,
    pub(super) changes: ChangedValues,
    pub(super) merging: BucketMerging,
    pub(super) min_newcomers: u64,
    pub(super) grace: u32,
    pub(super) forget_after: Option<u32>,
}

impl TestTerms {
    pub(super) fn diversity(l: u32) -> Self {
        Self {
            founding: Box::new(Diversity { l: l.into() }),
            l,
            changes: ChangedValues::Withhold,
            merging: BucketMerging::Single,
            min_newcomers: l.into(),
            grace: 0,
            forget_after: None,
        }
    }

    pub(super) fn night(&self, state: &State, rows: &[TestRow], streams: &RandomStreams) -> Result<Night, NightError> {
        self.night_in_order(state, rows, &(0..rows.len() as u32).collect::<Vec<u32>>(), streams)
    }

    /// The night of rows that are drawn in an order of their own.
    pub(super) fn night_in_order(
        &self,
        state: &State,
        rows: &[TestRow],
        order: &[u32],
        streams: &RandomStreams,
    ) -> Result<Night, NightError> {
        let mut values: Vec<SensitiveText> = rows.iter().map(|row| text(&row.value)).collect();
        values.sort();
        values.dedup();
        let place = |row: &TestRow| values.binary_search(&text(&row.value)).unwrap() as u32;
        let persons: Vec<[u8; 16]> = rows.iter().map(|row| hash(&row.person).0).collect();
        let value_of: Vec<u32> = rows.iter().map(place).collect();
        let terms = NightTerms {
            founding: &*self.founding,
            changes: self.changes,
            group: self.l,
            merging: self.merging,
            min_newcomers: self.min_newcomers,
            grace: self.grace,
            forget_after: self.forget_after,
        };
        let input = NightInput { persons: &persons, value_of: &value_of, values: &values, order };
        Night::new(state.clone(), input, &terms, streams, &Control::default())
    }
}

pub(super) fn text(value: &str) -> SensitiveText {
    Some(value.as_bytes().into())
}

/// A hash that keeps the order of short names.
pub(super) fn hash(person: &str) -> PersonHash {
    let mut bytes = [0; 16];
    bytes[..person.len()].copy_from_slice(person.as_bytes());
    PersonHash(bytes)
}

pub(super) fn keyed(seed: u8) -> RandomStreams {
    RandomStreams::Keyed(ReleaseKey::from_bytes([seed; 32]))
}

/// The published buckets, sorted.
pub(super) fn published(night: &Night, rows: &[TestRow]) -> Vec<TestBucket> {
    let value = |&value: &u32| String::from_utf8(night.values[value as usize].clone().unwrap().into_vec()).unwrap();
    let empty =
        |signature: &[u32]| TestBucket { persons: Vec::new(), signature: signature.iter().map(value).collect() };
    let mut buckets: Vec<TestBucket> = night.buckets.iter().map(|bucket| empty(night.signature(*bucket))).collect();
    for (row, bucket) in rows.iter().zip(&night.bucket_of) {
        if let Some(bucket) = bucket {
            buckets[*bucket as usize].persons.push(row.person.clone());
        }
    }
    for (bucket, made) in buckets.iter_mut().zip(&night.buckets) {
        assert_eq!(bucket.persons.len() as u64, made.members);
        bucket.persons.sort();
    }
    buckets.sort();
    buckets
}

/// The smallest valid bucket size for thresholds, as fractions of integers.
pub(super) struct Thresholds(pub(super) Vec<Threshold>);

/// The largest share of a value.
#[derive(Clone, Copy)]
pub(super) struct Threshold {
    pub(super) numerator: u64,
    pub(super) denominator: u64,
}

impl FoundingRule for Thresholds {
    fn buckets(&self, counts: &[CohortValue]) -> Option<u64> {
        let rows: u64 = counts.iter().map(|count| count.newcomers).sum();
        let most = |count: &CohortValue, size: u64| {
            let threshold = self.0[count.value as usize];
            threshold.numerator * size / threshold.denominator
        };
        let is_valid = |size: &u64| {
            rows.is_multiple_of(*size)
                && counts.iter().all(|count| count.newcomers <= most(count, *size) * (rows / size))
        };
        (1..=50).find(is_valid).map(|size| rows / size)
    }
}
