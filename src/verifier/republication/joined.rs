//! The rows of a night, and the persons of the states before and after it, brought together by their hashes.

use std::cmp::Ordering;

use ahash::AHashMap;

use super::chain_state::{ChainStanding, ChainState, NO_VALUE, PersonHashBytes, person_number};

/// A person of the night: of the table, of the state before, of the state after, or of several of these.
#[derive(Clone, Copy)]
pub(super) struct NightPerson {
    /// The row of the table.
    pub(super) row: Option<u32>,
    /// The label of the bucket; 0 of who is not published.
    pub(super) label: u32,
    /// Where the person stood.
    pub(super) before: Option<ChainStanding>,
    /// Where the person stands.
    pub(super) after: Option<ChainStanding>,
    /// Whether the person was forgotten before the night, and after it.
    pub(super) was_forgotten: bool,
    pub(super) is_forgotten: bool,
    /// Whether a version of the person begins tonight: of a newcomer, or of one who moved.
    pub(super) begins: bool,
}

impl NightPerson {
    pub(super) const fn is_published(&self) -> bool {
        self.label > 0
    }
}

/// The rows of the table of a night.
#[derive(Clone, Copy)]
pub(super) struct LabelledPersons<'a> {
    pub(super) persons: &'a [PersonHashBytes],
    /// The label of the bucket of each row; 0 of who is not published.
    pub(super) labels: &'a [u32],
}

/// All persons of a night.
pub(super) struct JoinedPersons<'a> {
    before: &'a ChainState,
    after: &'a ChainState,
    places: Vec<JoinedPlace>,
}

/// Where a person of a night stands: a fraction of what is known of the person.
#[derive(Clone, Copy)]
struct JoinedPlace {
    /// The row of the table, and the numbers of the person in both states, or [`NOWHERE`].
    row: u32,
    before: u32,
    after: u32,
    label: u32,
    was_forgotten: bool,
    is_forgotten: bool,
    begins: bool,
}

/// The place of who is not there.
const NOWHERE: u32 = u32::MAX;

impl<'a> JoinedPersons<'a> {
    /// The persons of a table and of both states; `None` where a person has two rows.
    pub(super) fn new(table: LabelledPersons<'_>, before: &'a ChainState, after: &'a ChainState) -> Option<Self> {
        let rows = FoundRows::new(table.persons, before, after)?;
        let signatures = EqualSignatures::new(before, after);
        let joined = |person: &PersonHashBytes, row: u32, earlier: u32, standing: u32| JoinedPlace {
            row,
            before: earlier,
            after: standing,
            label: table.labels.get(row as usize).copied().unwrap_or(0),
            was_forgotten: before.has_forgotten(person),
            is_forgotten: after.has_forgotten(person),
            begins: match (before.persons.get(earlier as usize), after.persons.get(standing as usize)) {
                (Some((_, earlier)), Some((_, standing))) => !signatures.are_equal(earlier.bucket, standing.bucket),
                _ => true,
            },
        };
        let mut places = Vec::with_capacity(after.persons.len() + rows.others.len());
        let (mut known, mut kept) =
            ((0_u32..).zip(&before.persons).peekable(), (0_u32..).zip(&after.persons).peekable());
        loop {
            let (person, order) = match (known.peek(), kept.peek()) {
                (None, None) => break,
                (Some((_, (person, _))), None) => (person, Ordering::Less),
                (None, Some((_, (person, _)))) => (person, Ordering::Greater),
                (Some((_, (one, _))), Some((_, (other, _)))) => {
                    let order = person_number(one).cmp(&person_number(other));
                    (if order.is_lt() { one } else { other }, order)
                }
            };
            let at = |taken: Option<(u32, _)>| taken.map_or(NOWHERE, |(at, _)| at);
            let earlier = at(known.next_if(|_| order.is_le()));
            let standing = at(kept.next_if(|_| order.is_ge()));
            let row = rows.after.get(standing as usize).or_else(|| rows.before.get(earlier as usize));
            places.push(joined(person, row.copied().unwrap_or(NOWHERE), earlier, standing));
        }
        let others = rows.others.iter();
        places.extend(others.map(|&(person, row)| joined(&person.to_be_bytes(), row, NOWHERE, NOWHERE)));
        Some(Self { before, after, places })
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = NightPerson> {
        let standing = |state: &ChainState, at: u32| state.persons.get(at as usize).map(|(_, standing)| *standing);
        self.places.iter().map(move |place| NightPerson {
            row: (place.row != NOWHERE).then_some(place.row),
            label: place.label,
            before: standing(self.before, place.before),
            after: standing(self.after, place.after),
            was_forgotten: place.was_forgotten,
            is_forgotten: place.is_forgotten,
            begins: place.begins,
        })
    }
}

/// The rows of the persons of a table.
struct FoundRows {
    /// The row of each person of the state after, or [`NOWHERE`].
    after: Vec<u32>,
    /// The row of each person of the state before whom the state after has not.
    before: Vec<u32>,
    /// The rows of persons whom no state has, by rising hash.
    others: Vec<(u128, u32)>,
}

impl FoundRows {
    /// `None` where a person has two rows.
    fn new(persons: &[PersonHashBytes], before: &ChainState, after: &ChainState) -> Option<Self> {
        let (known, kept) = (PersonIndex::new(&before.persons), PersonIndex::new(&after.persons));
        let mut found = Self {
            after: vec![NOWHERE; after.persons.len()],
            before: vec![NOWHERE; before.persons.len()],
            others: Vec::new(),
        };
        for (person, row) in persons.iter().zip(0..) {
            let place = if let Some(at) = kept.place(person) {
                &mut found.after[at]
            } else if let Some(at) = known.place(person) {
                &mut found.before[at]
            } else {
                found.others.push((person_number(person), row));
                continue;
            };
            if std::mem::replace(place, row) != NOWHERE {
                return None;
            }
        }
        found.others.sort_unstable();
        (!found.others.windows(2).any(|pair| pair[0].0 == pair[1].0)).then_some(found)
    }
}

/// The persons of a state by the first bits of their hashes, of which about one person has each value.
struct PersonIndex<'a> {
    persons: &'a [(PersonHashBytes, ChainStanding)],
    bits: u32,
    /// For each value the first person who has it or a higher one; and the number of persons.
    firsts: Vec<u32>,
}

impl<'a> PersonIndex<'a> {
    fn new(persons: &'a [(PersonHashBytes, ChainStanding)]) -> Self {
        let bits = persons.len().max(2).ilog2();
        let mut firsts = Vec::with_capacity((1 << bits) + 1);
        for ((person, _), at) in persons.iter().zip(0..) {
            firsts.resize(firsts.len().max(first_bits(person, bits) + 1), at);
        }
        firsts.resize((1 << bits) + 1, persons.len() as u32);
        Self { persons, bits, firsts }
    }

    /// Where a person stands.
    fn place(&self, person: &PersonHashBytes) -> Option<usize> {
        let bits = first_bits(person, self.bits);
        let (first, end) = (self.firsts[bits] as usize, self.firsts[bits + 1] as usize);
        let number = person_number(person);
        let found = self.persons[first..end].binary_search_by_key(&number, |(person, _)| person_number(person));
        found.ok().map(|at| first + at)
    }
}

/// The first bits of a hash as a number.
const fn first_bits(person: &PersonHashBytes, bits: u32) -> usize {
    (person_number(person) >> (u128::BITS - bits)) as usize
}

/// A number for the signature of each bucket of both states. Those of a bucket before and one after are equal exactly if the
/// signatures are.
struct EqualSignatures {
    before: Vec<u32>,
    after: Vec<u32>,
}

/// The number of a signature that the state after has not.
const UNEQUALLED: u32 = u32::MAX;

impl EqualSignatures {
    fn new(before: &ChainState, after: &ChainState) -> Self {
        let mut numbers: AHashMap<&[u32], u32> = AHashMap::with_capacity(after.signatures.len());
        let of_after = after.signatures.iter().zip(0..).map(|(slots, at)| *numbers.entry(slots).or_insert(at));
        let of_after: Vec<u32> = of_after.collect();
        let carried: Vec<u32> = before.values.iter().map(|value| after.place(value.as_deref())).collect();
        let mut slots = Vec::new();
        let of_before = before.signatures.iter().map(|signature| {
            slots.clear();
            slots.extend(signature.iter().map(|place| carried[*place as usize]));
            if slots.contains(&NO_VALUE) { UNEQUALLED } else { numbers.get(&slots[..]).copied().unwrap_or(UNEQUALLED) }
        });
        let of_before: Vec<u32> = of_before.collect();
        let of_buckets = |state: &ChainState, numbers: &[u32]| {
            state.buckets.iter().map(|bucket| numbers[bucket.signature as usize]).collect()
        };
        Self { before: of_buckets(before, &of_before), after: of_buckets(after, &of_after) }
    }

    /// Whether a bucket has the signature of one before.
    fn are_equal(&self, before: u32, after: u32) -> bool {
        self.before[before as usize] == self.after[after as usize]
    }
}
