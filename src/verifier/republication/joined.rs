//! The rows of a night, and the persons of the states before and after it, brought together by their hashes.

use std::collections::HashMap;

use super::chain_state::{ChainStanding, ChainState, PersonHashBytes, Text};

/// A person of the night: of the table, of the state before, of the state after, or of several of these.
#[derive(Clone, Copy, Default)]
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

/// All persons of a night; `None` where a person has two rows.
pub(super) fn joined(table: LabelledPersons<'_>, before: &ChainState, after: &ChainState) -> Option<Vec<NightPerson>> {
    let LabelledPersons { persons, labels } = table;
    // numbers are compared faster than bytes, and in the same order
    let mut numbers: Vec<(u128, u32)> = persons.iter().map(|person| u128::from_be_bytes(*person)).zip(0..).collect();
    numbers.sort_unstable();
    let order: Vec<(PersonHashBytes, u32)> = numbers.iter().map(|(person, row)| (person.to_be_bytes(), *row)).collect();
    drop(numbers);
    if order.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        return None;
    }
    let (mut rows, mut known, mut kept) =
        (order.iter().peekable(), before.persons.iter().peekable(), after.persons.iter().peekable());
    let mut all = Vec::with_capacity(after.persons.len().max(order.len()));
    loop {
        let heads = [
            rows.peek().map(|(person, _)| *person),
            known.peek().map(|(person, _)| *person),
            kept.peek().map(|(person, _)| *person),
        ];
        let Some(person) = heads.into_iter().flatten().min() else { break };
        let row = rows.next_if(|(of, _)| *of == person).map(|(_, row)| *row);
        all.push(NightPerson {
            row,
            label: row.map_or(0, |row| labels[row as usize]),
            before: known.next_if(|(of, _)| *of == person).map(|(_, standing)| *standing),
            after: kept.next_if(|(of, _)| *of == person).map(|(_, standing)| *standing),
            was_forgotten: before.has_forgotten(&person),
            is_forgotten: after.has_forgotten(&person),
        });
    }
    Some(all)
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
