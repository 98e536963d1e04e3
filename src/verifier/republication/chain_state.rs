//! The state of a population, read by the verifier's own reader of its bytes.

use std::collections::{BTreeMap, BTreeSet};

/// A value of a signature as text; `None` is the missing value.
pub(super) type Text = Option<Vec<u8>>;

/// Where a person stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Standing {
    pub(super) bucket: usize,
    pub(super) slot: usize,
    pub(super) last: u32,
}

/// A bucket: its values by slot, and its component.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Slots {
    pub(super) values: Vec<Text>,
    pub(super) component: usize,
}

/// A state.
#[derive(Default)]
pub(super) struct ChainState {
    pub(super) terms: Vec<u8>,
    pub(super) night: u32,
    pub(super) buckets: Vec<Slots>,
    pub(super) persons: BTreeMap<[u8; 16], Standing>,
    pub(super) forgotten: BTreeSet<[u8; 8]>,
}

impl ChainState {
    /// Reads a state; `None` where the bytes are none.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        // the last 32 bytes are a digest of the others, which the writer's reader compares
        let mut left = StateCursor { bytes: bytes.get(..bytes.len().checked_sub(32)?)? };
        if left.take(5)? != b"GRST\x01" {
            return None;
        }
        let length = left.u32()?;
        let terms = left.take(length)?.to_vec();
        let night = left.u32()? as u32;
        let values = (0..left.u32()?).map(|_| left.value()).collect::<Option<Vec<Text>>>()?;
        let mut signatures: Vec<Vec<Text>> = Vec::new();
        for _ in 0..left.u32()? {
            let slots = left.u16()?;
            let value = |left: &mut StateCursor<'_>| values.get(left.u32()?).cloned();
            signatures.push((0..slots).map(|_| value(&mut left)).collect::<Option<_>>()?);
        }
        let mut buckets = Vec::new();
        for _ in 0..left.u32()? {
            let values = signatures.get(left.u32()?)?.clone();
            buckets.push(Slots { values, component: left.u32()? });
        }
        let mut persons = BTreeMap::new();
        for _ in 0..left.u32()? {
            let person = left.take(16)?.try_into().ok()?;
            let standing = Standing { bucket: left.u32()?, slot: left.u16()?, last: left.u32()? as u32 };
            let is_free = persons.insert(person, standing).is_none();
            if !is_free || standing.slot >= buckets.get(standing.bucket)?.values.len() {
                return None;
            }
        }
        let mut forgotten = BTreeSet::new();
        for _ in 0..left.u32()? {
            let mut prefix: [u8; 8] = left.take(8)?.try_into().ok()?;
            prefix.reverse();
            forgotten.insert(prefix);
        }
        left.bytes.is_empty().then_some(Self { terms, night, buckets, persons, forgotten })
    }

    /// The signature of a person.
    pub(super) fn signature(&self, standing: Standing) -> &[Text] {
        &self.buckets[standing.bucket].values
    }
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

    fn u32(&mut self) -> Option<usize> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?) as usize)
    }

    fn u16(&mut self) -> Option<usize> {
        Some(usize::from(u16::from_le_bytes(self.take(2)?.try_into().ok()?)))
    }

    fn value(&mut self) -> Option<Text> {
        let is_some = self.take(1)? == [1];
        let length = self.u32()?;
        let text = self.take(length)?;
        Some(is_some.then(|| text.to_vec()))
    }
}
