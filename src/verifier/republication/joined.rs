//! The rows of a night, and the persons of the states before and after it, brought together by their hashes.

use std::collections::HashMap;

use super::chain_state::{ChainStanding, ChainState, PersonHashBytes, Text};

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

/// All persons of a night, by rising hash.
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
}

/// The place of who is not there.
const NOWHERE: u32 = u32::MAX;

impl<'a> JoinedPersons<'a> {
    /// The persons of a table and of both states; `None` where a person has two rows.
    pub(super) fn new(table: LabelledPersons<'_>, before: &'a ChainState, after: &'a ChainState) -> Option<Self> {
        let LabelledPersons { persons, labels } = table;
        let order = by_person(persons);
        let person = |row: &u32| persons[*row as usize];
        if order.windows(2).any(|pair| person(&pair[0]) == person(&pair[1])) {
            return None;
        }
        let mut rows = order.iter().copied().peekable();
        let mut known = (0u32..).zip(&before.persons).peekable();
        let mut kept = (0u32..).zip(&after.persons).peekable();
        let mut places = Vec::with_capacity(after.persons.len().max(order.len()));
        loop {
            let heads = [
                rows.peek().map(person),
                known.peek().map(|(_, (person, _))| *person),
                kept.peek().map(|(_, (person, _))| *person),
            ];
            let Some(next) = heads.into_iter().flatten().min() else { break };
            let row = rows.next_if(|row| person(row) == next).unwrap_or(NOWHERE);
            places.push(JoinedPlace {
                row,
                before: known.next_if(|(_, (of, _))| *of == next).map_or(NOWHERE, |(at, _)| at),
                after: kept.next_if(|(_, (of, _))| *of == next).map_or(NOWHERE, |(at, _)| at),
                label: labels.get(row as usize).copied().unwrap_or(0),
                was_forgotten: before.has_forgotten(&next),
                is_forgotten: after.has_forgotten(&next),
            });
        }
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
        })
    }
}

/// The rows in the order of their persons.
fn by_person(persons: &[PersonHashBytes]) -> Vec<u32> {
    // numbers are compared faster than bytes and in the same order, and half of a hash nearly always decides
    let first = |person: &PersonHashBytes| u64::from_be_bytes(std::array::from_fn(|at| person[at]));
    let mut numbers: Vec<(u64, u32)> = persons.iter().map(first).zip(0..).collect();
    numbers.sort_unstable_by(|(one, a), (other, b)| {
        one.cmp(other).then_with(|| persons[*a as usize].cmp(&persons[*b as usize]))
    });
    numbers.into_iter().map(|(_, row)| row).collect()
}

/// Numbers of signatures that are equal exactly if the signatures are, by the numbers of both states.
pub(super) struct SignatureNumbers {
    before: Vec<u32>,
    after: Vec<u32>,
}

impl SignatureNumbers {
    pub(super) fn new(before: &ChainState, after: &ChainState) -> Self {
        let mut ids: HashMap<&[Text], u32> = HashMap::new();
        let all = before.signatures.iter().chain(&after.signatures);
        let mut numbers: Vec<u32> = all
            .map(|signature| {
                let next = ids.len() as u32;
                *ids.entry(signature).or_insert(next)
            })
            .collect();
        let after = numbers.split_off(before.signatures.len());
        Self { before: numbers, after }
    }

    /// Whether a person has the signature that the person had.
    pub(super) fn are_equal(&self, before: u32, after: u32) -> bool {
        self.before[before as usize] == self.after[after as usize]
    }
}
