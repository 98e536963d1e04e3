//! What is remembered between two nights.

use std::fmt;

use crate::publication::{NightDigest, PastNight};

/// The keyed hash of a person's record key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PersonHash(pub [u8; 16]);

impl PersonHash {
    /// The hash as a number: numbers are compared faster than bytes, and in the same order.
    pub(super) const fn number(self) -> u128 {
        u128::from_be_bytes(self.0)
    }

    /// What remains of a forgotten person.
    pub(super) fn prefix(self) -> u64 {
        self.0.first_chunk().map_or(0, |first| u64::from_be_bytes(*first))
    }
}

/// A sensitive value as text; `None` is the missing value. Bytes give the order of values, which never changes.
pub type SensitiveText = Option<Box<[u8]>>;

/// A person who was published.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct StateMember {
    pub(super) person: PersonHash,
    pub(super) bucket: u32,
    pub(super) slot: u16,
    /// The last night on which the person was published.
    pub(super) last: u32,
}

/// A bucket with a member who is not forgotten.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct StateBucket {
    pub(super) signature: u32,
    /// A bucket of the same component, its own representative.
    pub(super) component: u32,
}

/// The state of a population after a night. Who has it, its key and the parts has every published sensitive value.
#[derive(Clone, PartialEq, Eq)]
pub struct State {
    /// What the first night fixed, as text of the caller.
    pub(super) terms: Vec<u8>,
    pub(super) night: u32,
    /// What the last night published; none before it is written.
    pub(super) digest: Option<NightDigest>,
    /// The last nights, rising.
    pub(super) past: Vec<PastNight>,
    /// Rising.
    pub(super) values: Vec<SensitiveText>,
    /// The ranks of the values of each signature by slot, not falling.
    pub(super) signatures: Vec<Vec<u32>>,
    pub(super) buckets: Vec<StateBucket>,
    /// By rising hash.
    pub(super) members: Vec<StateMember>,
    /// Prefixes of the hashes of forgotten persons, rising.
    pub(super) forgotten: Vec<u64>,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "State(night {}, {} persons)", self.night, self.members.len())
    }
}

/// The number of slots of each value in the sensitive part of the last night.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PublishedSlots {
    /// A number for each value.
    pub by_value: Vec<u64>,
}

impl State {
    /// The longest terms, in bytes.
    pub const MAX_TERMS: usize = 1 << 14;

    /// The state before the first night. `terms` are kept unread, at most [`Self::MAX_TERMS`] bytes of them.
    #[must_use]
    pub fn new(mut terms: Vec<u8>) -> Self {
        terms.truncate(Self::MAX_TERMS);
        Self {
            terms,
            night: 0,
            digest: None,
            past: Vec::new(),
            values: Vec::new(),
            signatures: Vec::new(),
            buckets: Vec::new(),
            members: Vec::new(),
            forgotten: Vec::new(),
        }
    }

    /// What the first night fixed.
    #[must_use]
    pub fn terms(&self) -> &[u8] {
        &self.terms
    }

    /// The number of nights that were published.
    #[must_use]
    pub const fn nights(&self) -> u32 {
        self.night
    }

    /// What the last night published.
    #[must_use]
    pub const fn digest(&self) -> Option<&NightDigest> {
        self.digest.as_ref()
    }

    /// The state after a night that published this.
    #[must_use]
    pub fn published_as(self, digest: NightDigest) -> Self {
        Self { digest: Some(digest), ..self }
    }

    /// The last nights, rising: at most [`PastNight::KEPT`].
    #[must_use]
    pub fn past_nights(&self) -> &[PastNight] {
        &self.past
    }

    /// The number of persons who were published and are not forgotten.
    #[must_use]
    pub fn persons(&self) -> u64 {
        self.members.len() as u64
    }

    /// The number of persons who are forgotten.
    #[must_use]
    pub fn forgotten(&self) -> u64 {
        self.forgotten.len() as u64
    }

    /// The slots of the last night, as its sensitive part shows them.
    #[must_use]
    pub fn published_slots(&self) -> PublishedSlots {
        let mut shown = vec![false; self.buckets.len()];
        let last = self.members.iter().filter(|member| self.night > 0 && member.last == self.night);
        last.for_each(|member| shown[member.bucket as usize] = true);
        let mut by_value = vec![0; self.values.len()];
        for (bucket, _) in self.buckets.iter().zip(&shown).filter(|(_, shown)| **shown) {
            let signature = &self.signatures[bucket.signature as usize];
            signature.iter().for_each(|&value| by_value[value as usize] += 1);
        }
        by_value.retain(|&slots| slots > 0);
        PublishedSlots { by_value }
    }

    pub(super) fn is_forgotten(&self, person: PersonHash) -> bool {
        self.forgotten.binary_search(&person.prefix()).is_ok()
    }

    /// The ranks of a bucket's signature by slot.
    pub(super) fn signature(&self, bucket: u32) -> &[u32] {
        &self.signatures[self.buckets[bucket as usize].signature as usize]
    }

    /// Takes in values, and gives the rank of each among all.
    pub(super) fn rank(&mut self, values: &[SensitiveText]) -> Vec<u32> {
        let mut all: Vec<SensitiveText> = self.values.iter().chain(values).cloned().collect();
        all.sort_unstable();
        all.dedup();
        let rank = |value: &SensitiveText| all.binary_search(value).map_or(0, |rank| rank as u32);
        let moved: Vec<u32> = self.values.iter().map(rank).collect();
        let ranks = values.iter().map(rank).collect();
        self.signatures.iter_mut().flatten().for_each(|value| *value = moved[*value as usize]);
        self.values = all;
        ranks
    }
}
