//! The audit of all nights from their parts, with persons linked by their keys: an adversary who intersects.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

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

/// Intersects the signatures of each person over all nights, and holds each night against those before it.
///
/// # Errors
/// [`Cancelled`] on cancellation.
pub fn audit_chain(nights: &[ChainNight], l: u64, control: &Control) -> Result<ChainReport, Cancelled> {
    let mut audit = ChainAudit { l, ..ChainAudit::default() };
    for (number, night) in nights.iter().enumerate() {
        for bucket in &night.buckets {
            control.check()?;
            audit.bucket(number, bucket);
        }
        audit.uncertain.extend(&night.unplaced);
        audit.labels(number, night);
    }
    Ok(audit.report())
}

/// A person with one signature.
type VersionNumber = usize;

#[derive(Default)]
struct ChainAudit {
    l: u64,
    faults: BTreeMap<ChainFault, usize>,
    /// The signature and version of each person on the last night with a row.
    current: HashMap<[u8; 16], (Vec<Text>, VersionNumber)>,
    /// What an adversary keeps of the signatures of a person.
    remaining: HashMap<[u8; 16], Vec<Text>>,
    worst_of: HashMap<[u8; 16], ShareOfRows>,
    /// Persons who may have stood in several buckets.
    uncertain: BTreeSet<[u8; 16]>,
    /// The parent of each version in the forest of components.
    parents: Vec<VersionNumber>,
    /// The sets of persons that each version stood in, by number.
    together: Vec<Vec<usize>>,
    sets: usize,
    label_of: HashMap<[u8; 16], u32>,
}

impl ChainAudit {
    fn fault(&mut self, fault: ChainFault, night: usize) {
        self.faults.entry(fault).or_insert(night);
    }

    fn root(&self, mut version: VersionNumber) -> VersionNumber {
        while self.parents[version] != version {
            version = self.parents[version];
        }
        version
    }

    fn keeps_guarantee(&self, share: ShareOfRows) -> bool {
        u128::from(share.count) * u128::from(self.l) <= u128::from(share.of)
    }

    fn bucket(&mut self, night: usize, bucket: &ChainBucket) {
        let signature = &bucket.signature;
        if bucket.members.len() > signature.len() {
            self.fault(ChainFault::TooManyMembers, night);
        }
        if !self.keeps_guarantee(largest_share(signature)) {
            self.fault(ChainFault::Guarantee, night);
        }
        let linked: Vec<[u8; 16]> = bucket.members.iter().flatten().copied().collect();
        let (mut fresh, mut versions) = (0, Vec::new());
        for person in &linked {
            self.intersect(*person, signature);
            let known = self.current.get(person);
            if known.is_some_and(|(known, _)| known != signature && known.iter().any(|value| signature.contains(value)))
            {
                self.fault(ChainFault::Signature, night);
            }
            let version = match self.current.get(person) {
                Some((known, version)) if known == signature => *version,
                _ => {
                    fresh += usize::from(!self.uncertain.contains(person));
                    let version = self.parents.len();
                    self.parents.push(version);
                    self.together.push(Vec::new());
                    self.current.insert(*person, (signature.clone(), version));
                    version
                }
            };
            versions.push(version);
        }
        let followed: Vec<VersionNumber> = linked
            .iter()
            .zip(&versions)
            .filter(|(person, _)| !self.uncertain.contains(*person))
            .map(|of| *of.1)
            .collect();
        if fresh > 0
            && followed.len() == linked.len()
            && (fresh != linked.len() || bucket.members.len() != signature.len())
        {
            self.fault(ChainFault::Entry, night);
        }
        // with whom the others stood before is not known
        self.stand_together(night, &followed);
    }

    /// The versions were together before, or are of different components, which they join.
    fn stand_together(&mut self, night: usize, versions: &[VersionNumber]) {
        let Some((first, others)) = versions.split_first() else { return };
        let were_before = |set: &usize| others.iter().all(|other| self.together[*other].contains(set));
        if self.together[*first].iter().any(were_before) {
            return;
        }
        let roots: Vec<VersionNumber> = versions.iter().map(|version| self.root(*version)).collect();
        if roots.iter().collect::<BTreeSet<_>>().len() < roots.len() {
            self.fault(ChainFault::Recombined, night);
        }
        roots.iter().for_each(|root| self.parents[*root] = roots[0]);
        versions.iter().for_each(|version| self.together[*version].push(self.sets));
        self.sets += 1;
    }

    /// Keeps of a person's values those that the bucket has, too; all of the bucket's if none is left: the value changed.
    fn intersect(&mut self, person: [u8; 16], signature: &[Text]) {
        let remaining = self.remaining.entry(person).or_default();
        let mut kept = Vec::new();
        let mut shown = signature.to_vec();
        for value in remaining.iter() {
            if let Some(at) = shown.iter().position(|other| other == value) {
                kept.push(shown.swap_remove(at));
            }
        }
        *remaining = if kept.is_empty() { signature.to_vec() } else { kept };
        remaining.sort();
        let share = largest_share(remaining);
        let worst = self.worst_of.entry(person).or_insert(share);
        if share.exceeds(*worst) {
            *worst = share;
        }
    }

    /// New labels agree with old ones in about one bucket.
    fn labels(&mut self, number: usize, night: &ChainNight) {
        const FEWEST_BUCKETS: usize = 9;
        let mut labels = HashMap::new();
        for bucket in &night.buckets {
            labels.extend(bucket.members.iter().flatten().map(|person| (*person, bucket.label)));
        }
        let both = labels.iter().filter_map(|(person, label)| Some(self.label_of.get(person)? == label));
        let (mut linked, mut equal) = (0_usize, 0_usize);
        both.for_each(|is_equal| {
            linked += 1;
            equal += usize::from(is_equal);
        });
        if night.buckets.len() >= FEWEST_BUCKETS && linked >= FEWEST_BUCKETS && equal * 8 >= linked * 7 {
            self.fault(ChainFault::LabelsKept, number);
        }
        self.label_of = labels;
    }

    fn report(self) -> ChainReport {
        let mut worst: Option<ShareOfRows> = None;
        for share in self.worst_of.values() {
            worst = Some(worst.map_or(*share, |known| known.worse(*share)));
        }
        ChainReport {
            persons: self.worst_of.len() as u64,
            above: self.worst_of.values().filter(|share| !self.keeps_guarantee(**share)).count() as u64,
            worst,
            faults: self.faults,
        }
    }
}

/// The share of the most frequent value of sorted values.
fn largest_share(values: &[Text]) -> ShareOfRows {
    let most = values.chunk_by(|a, b| a == b).map(<[Text]>::len).max().unwrap_or(0);
    ShareOfRows::new(most as u64, values.len() as u64)
}
