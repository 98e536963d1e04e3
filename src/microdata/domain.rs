//! The distinct values of a column, in canonical order: a code is a value's rank.

use std::sync::Arc;

use rayon::prelude::*;

use super::value::AttributeType;

/// Byte strings stored one behind the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arena {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Arena {
    /// No values yet, with room for a number of values and for their bytes.
    #[must_use]
    pub fn with_capacity(values: usize, bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes), ends: Vec::with_capacity(values) }
    }

    /// Values given by their lengths and by their bytes, one behind the other; `None` when the lengths do not add up.
    pub(crate) fn from_parts(lengths: &[u32], bytes: &[u8]) -> Option<Self> {
        let mut end = 0_usize;
        let ends: Option<Vec<usize>> = lengths
            .iter()
            .map(|&length| {
                end = end.checked_add(length as usize)?;
                (end <= bytes.len()).then_some(end)
            })
            .collect();
        (end == bytes.len()).then_some(Self { bytes: bytes.to_vec(), ends: ends? })
    }

    /// All values, one behind the other.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Appends a value.
    pub fn push(&mut self, value: &[u8]) {
        self.bytes.extend_from_slice(value);
        self.ends.push(self.bytes.len());
    }

    /// Forgets all values, and keeps their room.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// The value at `index`.
    #[must_use]
    pub fn get(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.bytes[start..self.ends[index]]
    }

    /// How many values there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// All values, in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// The same for all processors, each of which takes at least `least` at once.
    pub(crate) fn par_iter(&self, least: usize) -> impl IndexedParallelIterator<Item = &[u8]> {
        (0..self.len()).into_par_iter().with_min_len(least).map(|index| self.get(index))
    }

    /// How many bytes all values begin with.
    fn shared_prefix(&self) -> usize {
        let mut values = self.iter();
        let Some(first) = values.next() else { return 0 };
        let mut shared = first.len();
        for value in values {
            shared = first[..shared].iter().zip(value).take_while(|(a, b)| a == b).count();
            if shared == 0 {
                break;
            }
        }
        shared
    }

    /// The bytes that the values take together.
    #[must_use]
    pub fn size(&self) -> usize {
        self.bytes.len()
    }
}

/// The distinct values that occur in a column, sorted canonically. Code `c` is the value of rank `c`; a missing value, where
/// one occurs, has code 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    kind: AttributeType,
    missing: bool,
    values: Arena,
}

impl Domain {
    /// A domain of `values`, which the caller has sorted by [`AttributeType::compare`] and which are distinct.
    #[must_use]
    pub fn from_sorted(kind: AttributeType, missing: bool, values: Arena) -> Self {
        if cfg!(any(test, debug_assertions)) {
            assert!((1..values.len()).all(|i| kind.compare(Some(values.get(i - 1)), Some(values.get(i))).is_lt()));
        }
        Self { kind, missing, values }
    }

    /// Sorts the values of a dictionary and gives the code of each of them: `(domain, rank of every value, code of
    /// missing)`.
    #[must_use]
    pub fn sort(kind: AttributeType, missing: bool, values: &Arena) -> (Arc<Self>, Vec<u32>) {
        // what all texts begin with says nothing of their order
        let shared = if kind == AttributeType::Text { values.shared_prefix() } else { 0 };
        let key = |value: &[u8]| kind.sort_key(&value[shared..]);
        let mut order: Vec<(u64, u32)> =
            values.iter().enumerate().map(|(index, value)| (key(value), index as u32)).collect();
        order.sort_unstable_by(|&(a_key, a), &(b_key, b)| {
            let whole = || kind.compare(Some(values.get(a as usize)), Some(values.get(b as usize)));
            a_key.cmp(&b_key).then_with(whole)
        });
        let mut sorted = Arena::with_capacity(values.len(), values.size());
        let mut ranks = vec![0; order.len()];
        for (rank, &(_, index)) in order.iter().enumerate() {
            sorted.push(values.get(index as usize));
            ranks[index as usize] = rank as u32 + u32::from(missing);
        }
        (Arc::new(Self::from_sorted(kind, missing, sorted)), ranks)
    }

    /// The type of the values.
    #[must_use]
    pub const fn kind(&self) -> AttributeType {
        self.kind
    }

    /// Whether a missing value occurs; it then has code 0.
    #[must_use]
    pub const fn has_missing(&self) -> bool {
        self.missing
    }

    /// How many codes there are, a missing value counted as one.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len() + usize::from(self.missing)
    }

    /// Whether there is no code, as in a column without rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of `code`; `None` when it is the missing one.
    #[must_use]
    pub fn value(&self, code: u32) -> Option<&[u8]> {
        (code as usize).checked_sub(usize::from(self.missing)).map(|index| self.values.get(index))
    }

    /// All values in code order.
    pub fn iter(&self) -> impl Iterator<Item = Option<&[u8]>> + Clone {
        (0..self.len() as u32).map(|code| self.value(code))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_begin_alike_are_sorted_by_all_their_bytes() {
        let texts =
            ["person-", "person-\0", "person-1", "person-10", "person-1000000007", "person-1000000008", "person-9"];
        let mut values = Arena::default();
        texts.iter().rev().for_each(|text| values.push(text.as_bytes()));
        assert_eq!(values.shared_prefix(), 7);
        let (domain, ranks) = Domain::sort(AttributeType::Text, false, &values);
        assert!(domain.iter().flatten().eq(texts.iter().map(|text| text.as_bytes())));
        assert_eq!(ranks, [6, 5, 4, 3, 2, 1, 0]);
    }
}
