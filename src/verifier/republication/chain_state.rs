//! The state of a population, read by the verifier's own reader of its bytes.

use crate::publication::PastNight;

/// A value of a signature as text; `None` is the missing value.
pub(super) type Text = Option<Vec<u8>>;

/// The place of a value that is not there.
pub(super) const NO_VALUE: u32 = u32::MAX;

/// The keyed hash of a person.
pub(super) type PersonHashBytes = [u8; 16];

/// Where a person stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ChainStanding {
    pub(super) bucket: u32,
    pub(super) slot: u32,
    pub(super) last: u32,
}

/// A bucket: its signature and its component.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Slots {
    pub(super) signature: u32,
    pub(super) component: u32,
}

/// Signatures, one behind the other: for each slot the place of its value among the values of the state.
#[derive(Default)]
pub(super) struct Signatures {
    slots: Vec<u32>,
    ends: Vec<usize>,
}

impl Signatures {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The slots of a signature.
    pub(super) fn slots(&self, signature: u32) -> &[u32] {
        let at = signature as usize;
        &self.slots[at.checked_sub(1).map_or(0, |before| self.ends[before])..self.ends[at]]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &[u32]> {
        (0..self.len() as u32).map(|signature| self.slots(signature))
    }
}

/// The bytes of a person in a state: the hash, the bucket, the slot, and the last night.
const PERSON_BYTES: usize = 26;

/// The persons of a state by rising hash, where the bytes of the state have them.
#[derive(Clone, Copy, Default)]
pub(super) struct StatePersons<'b> {
    records: &'b [[u8; PERSON_BYTES]],
}

impl StatePersons<'_> {
    pub(super) const fn len(&self) -> usize {
        self.records.len()
    }

    /// Where a person stands, by number.
    pub(super) fn get(&self, at: u32) -> Option<ChainStanding> {
        self.records.get(at as usize).map(standing_of)
    }

    /// Where each stands.
    pub(super) fn standings(&self) -> impl Iterator<Item = ChainStanding> {
        self.records.iter().map(standing_of)
    }

    /// The hash of each.
    pub(super) fn hashes(&self) -> impl Iterator<Item = u128> {
        self.records.iter().map(hash_of)
    }
}

fn hash_of(record: &[u8; PERSON_BYTES]) -> u128 {
    record.first_chunk().map_or(0, person_number)
}

const fn standing_of(record: &[u8; PERSON_BYTES]) -> ChainStanding {
    let &[.., b0, b1, b2, b3, s0, s1, l0, l1, l2, l3] = record;
    ChainStanding {
        bucket: u32::from_le_bytes([b0, b1, b2, b3]),
        slot: u16::from_le_bytes([s0, s1]) as u32,
        last: u32::from_le_bytes([l0, l1, l2, l3]),
    }
}

/// A state.
#[derive(Default)]
pub(super) struct ChainState<'b> {
    pub(super) terms: Vec<u8>,
    pub(super) night: u32,
    /// What the last night published; empty before it is written.
    pub(super) digest: Vec<u8>,
    /// Number, rows, slots and buckets of the last nights.
    pub(super) past: Vec<PastNight>,
    /// Rising.
    pub(super) values: Vec<Text>,
    pub(super) signatures: Signatures,
    pub(super) buckets: Vec<Slots>,
    pub(super) persons: StatePersons<'b>,
    /// The first bytes of hashes, rising.
    pub(super) forgotten: Vec<[u8; 8]>,
}

impl<'b> ChainState<'b> {
    /// Reads a state; `None` where the bytes are none.
    pub(super) fn read(bytes: &'b [u8]) -> Option<Self> {
        // the last 32 bytes are a digest of the others, which the writer's reader compares
        let mut left = StateCursor { bytes: bytes.get(..bytes.len().checked_sub(32)?)? };
        if left.take(5)? != b"GRST\x02" {
            return None;
        }
        let length = left.u32()?;
        let terms = left.take(length as usize)?.to_vec();
        let night = left.u32()?;
        let length = left.u32()?;
        let digest = left.take(length as usize)?.to_vec();
        let mut past = Vec::new();
        for _ in 0..left.u32()? {
            let night = left.u32()?;
            past.push(PastNight { night, rows: left.u64()?, slots: left.u64()?, buckets: left.u64()? });
        }
        let values = (0..left.u32()?).map(|_| left.value()).collect::<Option<Vec<Text>>>()?;
        let signatures = left.signatures(values.len())?;
        // then equal places are equal values
        if !values.is_sorted_by(|a, b| a < b) {
            return None;
        }
        let mut buckets = Vec::new();
        for _ in 0..left.u32()? {
            buckets.push(Slots { signature: left.u32()?, component: left.u32()? });
        }
        let is_bucket =
            |slots: &Slots| (slots.signature as usize) < signatures.len() && (slots.component as usize) < buckets.len();
        if !buckets.iter().all(is_bucket) {
            return None;
        }
        let length = (left.u32()? as usize).checked_mul(PERSON_BYTES)?;
        let persons = StatePersons { records: left.take(length)?.as_chunks().0 };
        let has_slot = |standing: ChainStanding| {
            let bucket = buckets.get(standing.bucket as usize);
            bucket.is_some_and(|bucket| (standing.slot as usize) < signatures.slots(bucket.signature).len())
        };
        if !persons.standings().all(has_slot) || !persons.hashes().is_sorted_by(|one, other| one < other) {
            return None;
        }
        let forgotten = left.forgotten()?;
        left.bytes.is_empty().then_some(Self {
            terms,
            night,
            digest,
            past,
            values,
            signatures,
            buckets,
            persons,
            forgotten,
        })
    }

    /// The number of the signature of a person.
    pub(super) fn signature(&self, standing: ChainStanding) -> u32 {
        self.buckets[standing.bucket as usize].signature
    }

    /// The slots of a person's signature.
    pub(super) fn slots(&self, standing: ChainStanding) -> &[u32] {
        self.signatures.slots(self.signature(standing))
    }

    /// The place of a value, or [`NO_VALUE`].
    pub(super) fn place(&self, value: Option<&[u8]>) -> u32 {
        self.values.binary_search_by(|known| known.as_deref().cmp(&value)).map_or(NO_VALUE, |place| place as u32)
    }

    /// Whether a person is forgotten.
    pub(super) fn has_forgotten(&self, person: &PersonHashBytes) -> bool {
        person.first_chunk().is_some_and(|prefix| self.forgotten.binary_search(prefix).is_ok())
    }
}

/// A hash as a number: numbers are compared faster than bytes, and in the same order.
pub(super) const fn person_number(person: &PersonHashBytes) -> u128 {
    u128::from_be_bytes(*person)
}

/// The bytes that are left.
struct StateCursor<'a> {
    bytes: &'a [u8],
}

impl<'a> StateCursor<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let taken = self.bytes.get(..length)?;
        self.bytes = &self.bytes[length..];
        Some(taken)
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn u16(&mut self) -> Option<u32> {
        Some(u32::from(u16::from_le_bytes(self.take(2)?.try_into().ok()?)))
    }

    fn forgotten(&mut self) -> Option<Vec<[u8; 8]>> {
        let mut forgotten: Vec<[u8; 8]> = Vec::new();
        for _ in 0..self.u32()? {
            let mut prefix: [u8; 8] = self.take(8)?.try_into().ok()?;
            prefix.reverse();
            if forgotten.last().is_some_and(|before| *before >= prefix) {
                return None;
            }
            forgotten.push(prefix);
        }
        Some(forgotten)
    }

    /// Signatures whose slots name one of this number of values.
    fn signatures(&mut self, values: usize) -> Option<Signatures> {
        let mut signatures = Signatures::default();
        for _ in 0..self.u32()? {
            let slots = self.u16()? as usize;
            for place in self.take(4 * slots)?.as_chunks().0 {
                let place = u32::from_le_bytes(*place);
                if place as usize >= values {
                    return None;
                }
                signatures.slots.push(place);
            }
            signatures.ends.push(signatures.slots.len());
        }
        Some(signatures)
    }

    fn value(&mut self) -> Option<Text> {
        let is_some = self.take(1)? == [1];
        let length = self.u32()?;
        let text = self.take(length as usize)?;
        Some(is_some.then(|| text.to_vec()))
    }
}
