//! Exact posteriors: every assignment of slots to persons that fits all published buckets is equally likely.

use std::collections::{BTreeMap, BTreeSet};

use super::TestBucket;

/// A person between two changes of his signature.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Version {
    pub(super) person: String,
    /// The first night of the version.
    pub(super) since: usize,
}

/// The number of worlds in which a version has a value; the sum is that of all worlds.
pub(super) type ValueWorlds = BTreeMap<String, u64>;

/// The versions of all persons, and in how many worlds each has each value.
pub(super) fn posteriors(nights: &[Vec<TestBucket>]) -> BTreeMap<Version, ValueWorlds> {
    let mut versions: Vec<Version> = Vec::new();
    let mut signatures: Vec<Vec<String>> = Vec::new();
    let mut current: BTreeMap<String, usize> = BTreeMap::new();
    let mut near: Vec<BTreeSet<usize>> = Vec::new();
    for (night, buckets) in nights.iter().enumerate() {
        for TestBucket { persons, signature } in buckets {
            let mut together = Vec::new();
            for person in persons {
                let known = current.get(person).copied().filter(|&version| signatures[version] == *signature);
                let version = known.unwrap_or_else(|| {
                    versions.push(Version { person: person.clone(), since: night });
                    signatures.push(signature.clone());
                    near.push(BTreeSet::new());
                    versions.len() - 1
                });
                current.insert(person.clone(), version);
                together.push(version);
            }
            for &one in &together {
                near[one].extend(together.iter().copied().filter(|&other| other != one));
            }
        }
    }
    let mut search = Search {
        signatures: &signatures,
        near: &near,
        slots: Vec::new(),
        found: vec![BTreeMap::new(); versions.len()],
    };
    search.extend();
    let found = search.found;
    versions.into_iter().zip(found).collect()
}

struct Search<'a> {
    signatures: &'a [Vec<String>],
    near: &'a [BTreeSet<usize>],
    slots: Vec<usize>,
    found: Vec<ValueWorlds>,
}

impl Search<'_> {
    fn extend(&mut self) {
        let version = self.slots.len();
        if version == self.signatures.len() {
            for (version, &slot) in self.slots.iter().enumerate() {
                *self.found[version].entry(self.signatures[version][slot].clone()).or_default() += 1;
            }
            return;
        }
        for slot in 0..self.signatures[version].len() {
            if self.near[version].iter().all(|&other| other >= version || self.slots[other] != slot) {
                self.slots.push(slot);
                self.extend();
                self.slots.pop();
            }
        }
    }
}

#[test]
fn recombined_survivors_are_known_for_certain() {
    let bucket = |persons: &str, signature: &str| TestBucket {
        persons: persons.chars().map(String::from).collect(),
        signature: signature.chars().map(String::from).collect(),
    };
    // survivors of two or more per bucket, joined: x has the value of c
    let first = vec![bucket("abc", "xyz"), bucket("def", "xyz")];
    let alone = posteriors(std::slice::from_ref(&first));
    assert!(alone.values().all(|worlds| worlds.len() == 3 && worlds.values().all(|&number| number == 12)));
    // a value in two signatures that overlap is all that fits both
    let crossed = posteriors(&[vec![bucket("ab", "xy")], vec![bucket("ac", "xy")], vec![bucket("bc", "xy")]]);
    assert!(crossed.values().all(ValueWorlds::is_empty), "three persons cannot differ in two slots");
}
