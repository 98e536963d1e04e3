//! The audit of all nights from their parts, with persons linked by their keys: an adversary who intersects.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;
use std::num::NonZeroU32;

use ahash::RandomState;
use hashbrown::HashTable;

use crate::control::{Cancelled, Control};
use crate::verifier::definition::share::ShareOfRows;

/// A value of a signature; `None` is the missing value.
type Text = Option<Vec<u8>>;

/// A bucket as a night shows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChainBucket {
    /// The label.
    pub label: u32,
    /// The members, where a row can be linked with a person.
    pub members: Vec<Option<[u8; 16]>>,
    /// The values of the sensitive part, sorted.
    pub signature: Vec<Text>,
}

/// A night, with its rows linked with persons as far as its parts allow.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ChainNight {
    /// The buckets.
    pub buckets: Vec<ChainBucket>,
    /// Persons of the table who may stand in several buckets.
    pub unplaced: Vec<[u8; 16]>,
}

/// A promise of earlier nights that a night breaks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ChainFault {
    /// A bucket has more members than slots.
    TooManyMembers,
    /// A value takes more than 1/l of a signature.
    Guarantee,
    /// A person has two signatures that share a value.
    Signature,
    /// A person enters a bucket of others, or one with counterfeits.
    Entry,
    /// Persons of one component stand together who did not before.
    Recombined,
    /// Buckets keep their labels.
    LabelsKept,
}

impl fmt::Display for ChainFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooManyMembers => "a bucket has more members than slots",
            Self::Guarantee => "a value takes too large a share of a signature",
            Self::Signature => "a person has two signatures that share a value",
            Self::Entry => "a person enters a bucket of others, or one with counterfeits",
            Self::Recombined => "persons of one component stand together who did not before",
            Self::LabelsKept => "buckets keep the labels of the night before",
        })
    }
}

/// What the nights show together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChainReport {
    /// The faults, each with the first night that has it.
    pub faults: BTreeMap<ChainFault, usize>,
    /// The number of linked persons.
    pub persons: u64,
    /// The number of persons of whom a value has more than 1/l of what remains of their signatures.
    pub above: u64,
    /// The largest such share; `None` without linked persons.
    pub worst: Option<ShareOfRows>,
}

/// The number of a signature among those that were seen.
type SignatureNumber = u32;

/// A person with one signature.
type VersionNumber = u32;

/// What is remembered of a person.
#[derive(Clone, Copy)]
struct ChainPerson {
    /// The signature on the last night with a row.
    signature: SignatureNumber,
    version: VersionNumber,
    /// What an adversary keeps of all signatures.
    remaining: SignatureNumber,
    worst: SlotShare,
    /// The last label, and the night that had it.
    label: u32,
    night: u32,
}

/// The share of the most frequent value among the slots of a signature.
#[derive(Clone, Copy)]
struct SlotShare {
    count: u32,
    of: u32,
}

impl SlotShare {
    /// Of sorted values.
    fn largest(values: &[Text]) -> Self {
        let most = values.chunk_by(|a, b| a == b).map(<[Text]>::len).max().unwrap_or(0);
        Self { count: most as u32, of: values.len() as u32 }
    }

    fn of_rows(self) -> ShareOfRows {
        ShareOfRows::new(u64::from(self.count), u64::from(self.of))
    }
}

/// The persons who were seen, side by side: a table of numbers is small however much is known of each.
#[derive(Default)]
struct ChainPersons {
    numbers: HashTable<u32>,
    hasher: RandomState,
    /// By number.
    hashes: Vec<[u8; 16]>,
    known: Vec<ChainPerson>,
}

impl ChainPersons {
    fn get(&self, person: &[u8; 16]) -> Option<&ChainPerson> {
        let number = self.numbers.find(self.hasher.hash_one(person), |&at| self.hashes[at as usize] == *person)?;
        Some(&self.known[*number as usize])
    }

    fn insert(&mut self, person: [u8; 16], known: ChainPerson) {
        let Self { numbers, hasher, hashes, known: all } = self;
        let hash = hasher.hash_one(person);
        if let Some(&at) = numbers.find(hash, |&at| hashes[at as usize] == person) {
            all[at as usize] = known;
            return;
        }
        let number = hashes.len() as u32;
        hashes.push(person);
        all.push(known);
        numbers.insert_unique(hash, number, |&at| hasher.hash_one(hashes[at as usize]));
    }
}

/// The sets of persons that versions stood in. Nearly all stand in one.
#[derive(Default)]
struct StoodTogether {
    /// By version; `None` before the first set.
    first: Vec<Option<NonZeroU32>>,
    more: HashMap<VersionNumber, Vec<NonZeroU32>>,
    sets: u32,
}

impl StoodTogether {
    /// The sets of a version.
    fn of(&self, version: VersionNumber) -> impl Iterator<Item = NonZeroU32> {
        let more = self.more.get(&version).into_iter().flatten();
        self.first[version as usize].into_iter().chain(more.copied())
    }

    /// Puts versions into a set of their own.
    fn join(&mut self, versions: &[VersionNumber]) {
        self.sets += 1;
        let Some(set) = NonZeroU32::new(self.sets) else { return };
        for version in versions {
            let first = &mut self.first[*version as usize];
            match first {
                None => *first = Some(set),
                Some(_) => self.more.entry(*version).or_default().push(set),
            }
        }
    }
}

/// Intersects the signatures of each person over nights that come one by one, and holds each night against those before it.
#[derive(Default)]
pub struct ChainAudit {
    l: u64,
    /// The number of nights so far.
    nights: usize,
    faults: BTreeMap<ChainFault, usize>,
    numbers: HashMap<Vec<Text>, SignatureNumber>,
    /// By number.
    signatures: Vec<Vec<Text>>,
    persons: ChainPersons,
    /// Persons who may have stood in several buckets.
    uncertain: HashSet<[u8; 16]>,
    /// Whether persons may be seen who came before.
    has_gap: bool,
    /// The parent of each version in the forest of components.
    parents: Vec<VersionNumber>,
    together: StoodTogether,
}

impl ChainAudit {
    /// Bytes for each person who was ever seen, at most.
    pub const PERSON_BYTES: u64 = 320;

    /// Of nights that keep 1/l.
    #[must_use]
    pub fn new(l: u64) -> Self {
        Self { l, ..Self::default() }
    }

    /// The number of persons so far.
    #[must_use]
    pub fn persons(&self) -> u64 {
        (self.persons.known.len() + self.uncertain.len()) as u64
    }

    /// Judges no entry from now on: persons may be seen who came on a night that is not known, or under other cells.
    pub const fn skip(&mut self) {
        self.has_gap = true;
    }

    /// Takes in the next night.
    ///
    /// # Errors
    /// [`Cancelled`] on cancellation.
    pub fn night(&mut self, night: &ChainNight, control: &Control) -> Result<(), Cancelled> {
        let number = self.nights;
        let (mut linked, mut equal) = (0_usize, 0_usize);
        for bucket in &night.buckets {
            control.check()?;
            for person in bucket.members.iter().flatten() {
                let Some(known) = self.persons.get(person).filter(|known| known.night as usize + 1 == number) else {
                    continue;
                };
                linked += 1;
                equal += usize::from(known.label == bucket.label);
            }
        }
        self.labels(number, night.buckets.len(), Agreement { linked, equal });
        for bucket in &night.buckets {
            control.check()?;
            self.bucket(number, bucket);
        }
        self.uncertain.extend(&night.unplaced);
        self.nights += 1;
        Ok(())
    }

    /// What the nights so far show.
    #[must_use]
    pub fn report(self) -> ChainReport {
        let mut worst: Option<ShareOfRows> = None;
        let persons = &self.persons.known;
        for share in persons.iter().map(|person| person.worst.of_rows()) {
            worst = Some(worst.map_or(share, |known| known.worse(share)));
        }
        ChainReport {
            persons: persons.len() as u64,
            above: persons.iter().filter(|person| !self.keeps_guarantee(person.worst)).count() as u64,
            worst,
            faults: self.faults,
        }
    }

    fn fault(&mut self, fault: ChainFault, night: usize) {
        self.faults.entry(fault).or_insert(night);
    }

    fn root(&mut self, mut version: VersionNumber) -> VersionNumber {
        loop {
            let parent = self.parents[version as usize];
            if parent == version {
                return version;
            }
            // halves the way of the next look
            self.parents[version as usize] = self.parents[parent as usize];
            version = parent;
        }
    }

    fn keeps_guarantee(&self, share: SlotShare) -> bool {
        u128::from(share.count) * u128::from(self.l) <= u128::from(share.of)
    }

    fn number(&mut self, signature: &[Text]) -> SignatureNumber {
        if let Some(number) = self.numbers.get(signature) {
            return *number;
        }
        let number = self.signatures.len() as u32;
        self.numbers.insert(signature.to_vec(), number);
        self.signatures.push(signature.to_vec());
        number
    }

    fn bucket(&mut self, night: usize, bucket: &ChainBucket) {
        if bucket.members.len() > bucket.signature.len() {
            self.fault(ChainFault::TooManyMembers, night);
        }
        if !self.keeps_guarantee(SlotShare::largest(&bucket.signature)) {
            self.fault(ChainFault::Guarantee, night);
        }
        let signature = self.number(&bucket.signature);
        let (mut arrived, mut members, mut is_followed) = (Vec::new(), Vec::new(), true);
        for person in bucket.members.iter().flatten() {
            let is_uncertain = self.uncertain.contains(person);
            let (version, is_new) = self.stands(*person, signature, BucketOfNight { label: bucket.label, night });
            if is_new && !is_uncertain {
                arrived.push(*person);
            }
            is_followed &= !is_uncertain;
            members.push((*person, version));
        }
        let is_founded = arrived.len() == members.len() && bucket.members.len() == bucket.signature.len();
        if !arrived.is_empty() && !is_founded {
            if self.has_gap {
                self.uncertain.extend(&arrived);
            } else if is_followed {
                self.fault(ChainFault::Entry, night);
            }
        }
        // with whom the others stood before is not known
        members.retain(|(person, _)| !self.uncertain.contains(person));
        let followed: Vec<VersionNumber> = members.into_iter().map(|(_, version)| version).collect();
        self.stand_together(night, &followed);
    }

    /// Where a person stands tonight: the version, and whether it is new.
    fn stands(&mut self, person: [u8; 16], signature: SignatureNumber, at: BucketOfNight) -> (VersionNumber, bool) {
        let BucketOfNight { label, night } = at;
        let Some(&known) = self.persons.get(&person) else {
            let (version, worst) = (self.new_version(), SlotShare::largest(&self.signatures[signature as usize]));
            let (remaining, night) = (signature, night as u32);
            self.persons.insert(person, ChainPerson { signature, version, remaining, worst, label, night });
            return (version, true);
        };
        let (before, left, version) = (known.signature, known.remaining, known.version);
        let remaining = if left == signature { left } else { self.intersected(left, signature) };
        let share = SlotShare::largest(&self.signatures[remaining as usize]);
        let is_new = before != signature;
        if is_new {
            let (old, new) = (&self.signatures[before as usize], &self.signatures[signature as usize]);
            if old.iter().any(|value| new.contains(value)) {
                self.fault(ChainFault::Signature, night);
            }
        }
        let version = if is_new { self.new_version() } else { version };
        let worst = if share.of_rows().exceeds(known.worst.of_rows()) { share } else { known.worst };
        let night = night as u32;
        self.persons.insert(person, ChainPerson { signature, version, remaining, worst, label, night });
        (version, is_new)
    }

    fn new_version(&mut self) -> VersionNumber {
        let version = self.parents.len() as u32;
        self.parents.push(version);
        self.together.first.push(None);
        version
    }

    /// The versions were together before, or are of different components, which they join.
    fn stand_together(&mut self, night: usize, versions: &[VersionNumber]) {
        let Some((first, others)) = versions.split_first() else { return };
        let is_of_all = |set| others.iter().all(|other| self.together.of(*other).any(|theirs| theirs == set));
        if self.together.of(*first).any(is_of_all) {
            return;
        }
        let roots: Vec<VersionNumber> = versions.iter().map(|version| self.root(*version)).collect();
        if roots.iter().collect::<BTreeSet<_>>().len() < roots.len() {
            self.fault(ChainFault::Recombined, night);
        }
        roots.iter().for_each(|root| self.parents[*root as usize] = roots[0]);
        self.together.join(versions);
    }

    /// What two signatures have in common; the second one where that is nothing: the value changed.
    fn intersected(&mut self, one: SignatureNumber, other: SignatureNumber) -> SignatureNumber {
        let mut shown = self.signatures[other as usize].clone();
        let mut kept = Vec::new();
        for value in &self.signatures[one as usize] {
            if let Some(at) = shown.iter().position(|of| of == value) {
                kept.push(shown.swap_remove(at));
            }
        }
        kept.sort();
        if kept.is_empty() { other } else { self.number(&kept) }
    }

    /// New labels agree with old ones in about one bucket.
    fn labels(&mut self, night: usize, buckets: usize, Agreement { linked, equal }: Agreement) {
        const FEWEST_BUCKETS: usize = 9;
        if buckets >= FEWEST_BUCKETS && linked >= FEWEST_BUCKETS && equal * 8 >= linked * 7 {
            self.fault(ChainFault::LabelsKept, night);
        }
    }
}

/// The persons of the night before who stand in a bucket again, and those of them whose bucket has its label again.
struct Agreement {
    linked: usize,
    equal: usize,
}

/// In which bucket of which night a person stands.
struct BucketOfNight {
    label: u32,
    night: usize,
}
