//! Members found by their hashes.
//!
//! Hashes put members where no other access is near. Who are looked up one after the other therefore share their first bits.

use super::state::{PersonHash, StateMember};

/// Rows of a group, about.
const ROWS_OF_A_GROUP: usize = 1 << 11;

/// Groups of rows, at most: the places that a processor writes to in turn.
const MOST_GROUP_BITS: u32 = 10;

/// A row of a table, and its person.
#[derive(Clone, Copy)]
pub(super) struct PersonRow {
    pub(super) person: PersonHash,
    pub(super) row: u32,
}

/// The rows of a table by the first bits of the hashes of their persons.
pub(super) struct PartedRows {
    rows: Vec<PersonRow>,
    /// Where each group begins, and where the last one ends.
    starts: Vec<usize>,
}

impl PartedRows {
    pub(super) fn new(persons: &[[u8; 16]]) -> Self {
        let bits = (persons.len() / ROWS_OF_A_GROUP).checked_ilog2().unwrap_or(0).min(MOST_GROUP_BITS);
        let group = |[high, low, ..]: &[u8; 16]| usize::from(u16::from_be_bytes([*high, *low])) >> (u16::BITS - bits);
        let mut starts = vec![0; (1 << bits) + 1];
        persons.iter().for_each(|person| starts[group(person) + 1] += 1);
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut rows = vec![PersonRow { person: PersonHash([0; 16]), row: 0 }; persons.len()];
        let mut next = starts.clone();
        for (person, row) in persons.iter().zip(0..) {
            let place = &mut next[group(person)];
            rows[*place] = PersonRow { person: PersonHash(*person), row };
            *place += 1;
        }
        Self { rows, starts }
    }

    /// The rows of each group. Persons of different groups are different.
    pub(super) fn groups(&self) -> impl Iterator<Item = &[PersonRow]> {
        self.starts.windows(2).map(|group| &self.rows[group[0]..group[1]])
    }
}

/// Sorted members by the first bits of their hashes, which keyed hashes have about equally often.
pub(super) struct MemberIndex<'a> {
    members: &'a [StateMember],
    /// The bits of a hash behind the first ones.
    others: u32,
    /// For each value of the first bits the first member with it or a higher one, and the number of members.
    starts: Vec<u32>,
}

impl<'a> MemberIndex<'a> {
    pub(super) fn new(members: &'a [StateMember]) -> Self {
        // about a member for each value
        let bits = members.len().max(2).ilog2();
        let others = u128::BITS - bits;
        let mut starts = vec![0; (1 << bits) + 1];
        members.iter().for_each(|member| starts[(member.person.number() >> others) as usize + 1] += 1);
        let mut all = 0;
        for start in &mut starts {
            all += *start;
            *start = all;
        }
        Self { members, others, starts }
    }

    /// The position of the member with a hash.
    pub(super) fn position(&self, person: PersonHash) -> Option<u32> {
        let first = (person.number() >> self.others) as usize;
        let start = self.starts[first];
        let members = &self.members[start as usize..self.starts[first + 1] as usize];
        members.iter().position(|member| member.person == person).map(|at| start + at as u32)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_row_stands_in_the_group_of_its_person(
            first in prop::collection::vec(any::<u16>(), 0..40),
            times in prop::sample::select(vec![1_usize, 300]),
        ) {
            let person = |first: u16, at: u16| {
                let mut person = [0; 16];
                person[..2].copy_from_slice(&first.to_be_bytes());
                person[14..].copy_from_slice(&at.to_be_bytes());
                person
            };
            let persons: Vec<[u8; 16]> =
                (0..times as u16).flat_map(|at| first.iter().map(move |of| person(*of, at % 7))).collect();
            let parted = PartedRows::new(&persons);
            let mut left: Vec<bool> = vec![true; persons.len()];
            let (mut before, mut here) = (None, None);
            for group in parted.groups() {
                for PersonRow { person, row } in group {
                    prop_assert!(std::mem::replace(&mut left[*row as usize], false));
                    prop_assert_eq!(person.0, persons[*row as usize]);
                    prop_assert!(before < Some(person.0), "groups rise, and share no person");
                    here = here.max(Some(person.0));
                }
                before = here;
            }
            prop_assert!(left.iter().all(|is_left| !is_left));
        }

        #[test]
        fn members_are_found_where_they_stand(
            known in prop::collection::btree_set(prop_oneof![any::<u128>(), 0..9u128, u128::MAX - 9..], 0..60),
            other in any::<u128>(),
        ) {
            let hash = |number: u128| PersonHash(number.to_be_bytes());
            let member = |&number: &u128| StateMember { person: hash(number), bucket: 0, slot: 0, last: 1 };
            let members: Vec<StateMember> = known.iter().map(member).collect();
            let index = MemberIndex::new(&members);
            let next = known.iter().map(|number| number.wrapping_add(1));
            for number in known.iter().copied().chain(next).chain([other]) {
                let expected = known.iter().position(|of| *of == number).map(|at| at as u32);
                prop_assert_eq!(index.position(hash(number)), expected);
            }
        }
    }
}
