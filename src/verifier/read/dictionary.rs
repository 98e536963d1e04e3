//! Dictionary of a column: codes of cells, and the canonical order of codes.

use ahash::RandomState;
use hashbrown::HashTable;

use crate::microdata::{Arena, AttributeType, Domain, Interner, ValueKey};

/// The values of one column of a part.
///
/// Values of the original's domain have its codes; other values have the following codes, in order of appearance.
pub(in crate::verifier) struct PartDictionary<'a> {
    kind: Option<AttributeType>,
    domain: Option<&'a Domain>,
    base: u32,
    extra: Arena,
    /// The code of the missing value, if it has one.
    missing: Option<u32>,
    table: HashTable<u32>,
    hasher: RandomState,
}

impl<'a> PartDictionary<'a> {
    /// A dictionary for values of the type `kind`, which starts with the values of the original's `domain`.
    pub(in crate::verifier) fn new(domain: Option<&'a Domain>, kind: Option<AttributeType>) -> Self {
        let base = domain.map_or(0, |domain| domain.len() as u32);
        let mut dictionary = Self {
            kind,
            domain,
            base,
            extra: Arena::default(),
            missing: domain.and_then(|domain| domain.has_missing().then_some(0)),
            table: HashTable::with_capacity(base as usize),
            hasher: RandomState::new(),
        };
        for code in 0..base {
            if let Some(value) = domain.and_then(|domain| domain.value(code)) {
                dictionary.remember(value, code);
            }
        }
        dictionary
    }

    fn remember(&mut self, value: &[u8], code: u32) {
        let (domain, base, extra, hasher) = (self.domain, self.base, &self.extra, &self.hasher);
        let rehash = |&code: &u32| hasher.hash_one(value_of(domain, base, extra, code));
        self.table.insert_unique(hasher.hash_one(value), code, rehash);
    }

    /// The code of the missing value; it gets one if it has none.
    pub(in crate::verifier) fn missing(&mut self) -> u32 {
        *self.missing.get_or_insert_with(|| {
            // a placeholder keeps codes dense
            self.extra.push(b"");
            self.base + self.extra.len() as u32 - 1
        })
    }

    /// A code that is likely that of a value; `None` only where the value has none.
    fn likely(&self, value: &[u8]) -> Option<u32> {
        self.table.find(self.hasher.hash_one(value), |_| true).copied()
    }

    /// The text of `code`, which is not that of the missing value.
    fn text(&self, code: u32) -> &[u8] {
        value_of(self.domain, self.base, &self.extra, code)
    }

    /// The code of a value, if it has one.
    fn find(&self, value: &[u8]) -> Option<u32> {
        let same = |&code: &u32| self.text(code) == value;
        self.table.find(self.hasher.hash_one(value), same).copied()
    }

    /// The code of a value; it gets one if it has none.
    pub(in crate::verifier) fn code(&mut self, value: &[u8]) -> u32 {
        self.find(value).unwrap_or_else(|| {
            let code = self.len() as u32;
            self.extra.push(value);
            self.remember(value, code);
            code
        })
    }

    /// Number of codes.
    pub(in crate::verifier) fn len(&self) -> usize {
        self.base as usize + self.extra.len()
    }

    /// Number of codes of the original's domain.
    pub(in crate::verifier) const fn known(&self) -> usize {
        self.base as usize
    }

    /// The value of `code`; `None` for the missing value.
    pub(in crate::verifier) fn value(&self, code: u32) -> Option<&[u8]> {
        (self.missing != Some(code)).then(|| self.text(code))
    }

    fn extra_values(&self) -> impl Iterator<Item = &[u8]> {
        (self.base..self.len() as u32).filter_map(|code| self.value(code))
    }

    /// The rank of each code in the canonical order of the values; `None` when codes are ranks.
    pub(in crate::verifier) fn ranks(&self) -> Option<Vec<u32>> {
        let narrowest = || AttributeType::infer((0..self.len() as u32).filter_map(|code| self.value(code)));
        let kind = self.kind.or_else(|| self.domain.map(Domain::kind)).unwrap_or_else(narrowest);
        // values that the original does not have may need a wider type
        let kind = self.extra_values().fold(kind, |kind, value| AttributeType::widened(Some(kind), value));
        let compare = |a: u32, b: u32| {
            let (a, b) = (self.value(a), self.value(b));
            // values outside the type have no canonical rank; any deterministic order suffices
            kind.compare(a, b).then_with(|| a.cmp(&b))
        };
        let codes = self.len() as u32;
        if (1..codes).all(|code| compare(code - 1, code).is_lt()) {
            return None;
        }
        let mut order: Vec<u32> = (0..codes).collect();
        order.sort_unstable_by(|&a, &b| compare(a, b));
        let mut ranks = vec![0; order.len()];
        for (rank, &code) in order.iter().enumerate() {
            ranks[code as usize] = rank as u32;
        }
        Some(ranks)
    }
}

fn value_of<'v>(domain: Option<&'v Domain>, base: u32, extra: &'v Arena, code: u32) -> &'v [u8] {
    match domain {
        Some(domain) if code < base => domain.value(code).unwrap_or_default(),
        _ => extra.get((code - base) as usize),
    }
}

/// Codes of the cells of a block: those of a dictionary, and following ones for what it lacks.
pub(in crate::verifier) struct BlockDictionary {
    recent: Vec<DictionarySlot>,
    /// The rows of a batch whose codes are still to be found, and their values.
    unresolved: (Vec<u32>, Arena),
    /// Values that the dictionary lacks.
    others: Interner,
    lacks_missing: bool,
}

/// Cache entry: key and code of a value.
///
/// `length` is the length of the value plus 1; 0 in an empty slot.
#[derive(Clone, Copy)]
struct DictionarySlot {
    ends: ValueKey,
    length: u32,
    code: u32,
}

impl BlockDictionary {
    const RECENT: usize = 1 << 12;

    pub(in crate::verifier) fn new(known: &PartDictionary<'_>) -> Self {
        // four slots for every expected value
        let slots = known.domain.map_or(256, |domain| 4 * domain.len()).next_power_of_two().min(Self::RECENT);
        let empty = DictionarySlot { ends: ValueKey::from_bytes(b""), length: 0, code: 0 };
        let (others, unresolved) = (Interner::default(), (Vec::new(), Arena::default()));
        Self { recent: vec![empty; slots], unresolved, others, lacks_missing: false }
    }

    /// Appends the code of a value, given with its key, to a batch. Unless it was seen lately, the code is right once the batch is
    /// resolved.
    #[inline]
    pub(in crate::verifier) fn push(
        &mut self,
        known: &PartDictionary<'_>,
        value: &[u8],
        ends: ValueKey,
        batch: &mut Vec<u32>,
    ) {
        let found = self.recent[ends.slot(self.recent.len())];
        let alike = found.ends == ends && found.length == value.len() as u32 + 1;
        if !alike || value.len() > 16 && self.value(known, found.code) != value {
            self.unresolved.0.push(batch.len() as u32);
            self.unresolved.1.push(value);
        }
        batch.push(found.code);
    }

    /// Finds the codes that a batch lacks.
    pub(in crate::verifier) fn resolve(&mut self, known: &PartDictionary<'_>, batch: &mut [u32]) {
        let (rows, values) = std::mem::take(&mut self.unresolved);
        // each step waits for memory: the processor lets many values wait at the same time
        let likely: Vec<Option<u32>> = values.iter().map(|value| known.likely(value)).collect();
        for ((&row, value), likely) in rows.iter().zip(values.iter()).zip(likely) {
            let found = match likely {
                Some(code) if known.text(code) == value => Some(code),
                Some(_) => known.find(value),
                None => None,
            };
            // the code after those of the dictionary is that of a missing value
            let code = found.unwrap_or_else(|| known.len() as u32 + 1 + self.others.intern(value));
            let ends = ValueKey::from_bytes(value);
            let slot = ends.slot(self.recent.len());
            self.recent[slot] = DictionarySlot { ends, length: value.len() as u32 + 1, code };
            batch[row as usize] = code;
        }
        self.unresolved = (rows, values);
        self.forget();
    }

    /// Forgets the values of a batch that is given up.
    pub(in crate::verifier) fn forget(&mut self) {
        self.unresolved.0.clear();
        self.unresolved.1.clear();
    }

    fn value<'v>(&'v self, known: &'v PartDictionary<'_>, code: u32) -> &'v [u8] {
        match code.checked_sub(known.len() as u32 + 1) {
            Some(other) => self.others.values().get(other as usize),
            None => known.text(code),
        }
    }

    /// The code of the missing value.
    pub(in crate::verifier) fn missing(&mut self, known: &PartDictionary<'_>) -> u32 {
        known.missing.unwrap_or_else(|| {
            self.lacks_missing = true;
            known.len() as u32
        })
    }

    /// Number of codes, those of the dictionary included.
    pub(in crate::verifier) fn len(&self, known: &PartDictionary<'_>) -> usize {
        match self.lacks_missing || !self.others.is_empty() {
            true => known.len() + 1 + self.others.len(),
            false => known.len(),
        }
    }

    /// What the dictionary lacks. The next block begins anew.
    pub(in crate::verifier) fn take(&mut self) -> OtherValues {
        if !self.others.is_empty() {
            // their codes are no longer theirs
            self.recent.iter_mut().for_each(|slot| slot.length = 0);
        }
        OtherValues { values: self.others.take(), missing: std::mem::take(&mut self.lacks_missing) }
    }
}

/// What a dictionary lacked of a block, in the order of its codes: first the missing value, used or not.
pub(in crate::verifier) struct OtherValues {
    values: Arena,
    missing: bool,
}

impl OtherValues {
    /// Adds them to the dictionary, and gives the code of each; none if it lacked nothing.
    pub(in crate::verifier) fn added(&self, known: &mut PartDictionary<'_>) -> Vec<u32> {
        if !self.missing && self.values.is_empty() {
            return Vec::new();
        }
        let missing = if self.missing { known.missing() } else { 0 };
        std::iter::once(missing).chain(self.values.iter().map(|value| known.code(value))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn domain(kind: AttributeType, missing: bool, values: &[&str]) -> Domain {
        let mut arena = Arena::default();
        values.iter().for_each(|value| arena.push(value.as_bytes()));
        Domain::from_sorted(kind, missing, arena)
    }

    fn code(dictionary: &mut PartDictionary<'_>, cell: Option<&[u8]>) -> u32 {
        match cell {
            None => dictionary.missing(),
            Some(value) => dictionary.code(value),
        }
    }

    #[test]
    fn code_values_of_the_domain_are_unchanged() {
        let long = "a value of more than sixteen bytes";
        let domain = domain(AttributeType::Text, true, &["", "a", long, "ab", "abc", "abcdefgh", "b"]);
        let mut dictionary = PartDictionary::new(Some(&domain), None);
        for _ in 0..2 {
            for code in 0..domain.len() as u32 {
                assert_eq!(self::code(&mut dictionary, domain.value(code)), code);
            }
        }
        assert_eq!(dictionary.ranks(), None);
        assert_eq!(code(&mut dictionary, Some(b"aa")), 8);
        assert_eq!(code(&mut dictionary, Some(b"aa")), 8);
        assert_eq!(dictionary.ranks(), Some(vec![0, 1, 2, 3, 5, 6, 7, 8, 4]));
        assert_eq!((dictionary.known(), dictionary.len()), (8, 9));
    }

    #[test]
    fn ranks_without_domain_follows_the_inferred_type() {
        let mut dictionary = PartDictionary::new(None, None);
        let codes = [Some(&b"10"[..]), None, Some(b"9"), Some(b"-1"), None].map(|cell| code(&mut dictionary, cell));
        assert_eq!(codes, [0, 1, 2, 3, 1]);
        assert_eq!(dictionary.ranks(), Some(vec![3, 0, 2, 1]));
        code(&mut dictionary, Some(b""));
        assert_eq!(dictionary.ranks(), Some(vec![3, 0, 4, 2, 1]));
    }

    fn block_code(block: &mut BlockDictionary, known: &PartDictionary<'_>, value: &str) -> u32 {
        let mut batch = Vec::new();
        block.push(known, value.as_bytes(), ValueKey::from_bytes(value.as_bytes()), &mut batch);
        block.resolve(known, &mut batch);
        batch[0]
    }

    #[test]
    fn block_values_the_dictionary_lacks_get_its_next_codes() {
        let long = ["12345678a12345678", "12345678b12345678"];
        let domain = domain(AttributeType::Text, false, &[long[0], "a"]);
        let mut known = PartDictionary::new(Some(&domain), None);
        let mut block = BlockDictionary::new(&known);
        // the first code behind the dictionary is that of the missing value
        let found = [long[0], "a", long[1], "b", long[0], long[1]].map(|value| block_code(&mut block, &known, value));
        assert_eq!((found, block.missing(&known), block.len(&known)), ([0, 1, 3, 4, 0, 3], 2, 5));
        assert_eq!(block.take().added(&mut known), [2, 3, 4]);
        assert_eq!([2, 3, 4].map(|code| known.value(code)), [None, Some(long[1].as_bytes()), Some(&b"b"[..])]);
        let found = [long[1], "c", "a", "b"].map(|value| block_code(&mut block, &known, value));
        assert_eq!((found, block.missing(&known)), ([3, 6, 1, 4], 2));
        assert_eq!(block.take().added(&mut known), [0, 5]);
        assert_eq!((block.take().added(&mut known), block.len(&known)), (vec![], 6));
    }

    #[test]
    fn batches_have_the_codes_of_single_values() {
        let known: Vec<String> = (1000..3000).map(|number| number.to_string()).collect();
        let domain = domain(AttributeType::Text, false, &known.iter().map(String::as_str).collect::<Vec<_>>());
        let known = PartDictionary::new(Some(&domain), None);
        let texts: Vec<String> = (0..6000).map(|number| format!("{:04}", number * 7 % 3000)).collect();
        let (mut batched, mut single) = (BlockDictionary::new(&known), BlockDictionary::new(&known));
        let mut batch = Vec::new();
        for text in &texts {
            batched.push(&known, text.as_bytes(), ValueKey::from_bytes(text.as_bytes()), &mut batch);
        }
        batched.resolve(&known, &mut batch);
        assert_eq!(batch, texts.iter().map(|text| block_code(&mut single, &known, text)).collect::<Vec<_>>());
        // 0000, 0007 and 1001
        assert_eq!([0, 1, 143].map(|at| batch[at]), [2001, 2002, 1]);
    }
}
