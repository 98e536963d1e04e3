//! Members found by their hashes.

use super::state::{PersonHash, StateMember};

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
        let number = person.number();
        let first = (number >> self.others) as usize;
        let start = self.starts[first];
        let members = &self.members[start as usize..self.starts[first + 1] as usize];
        let found = members.binary_search_by_key(&number, |member| member.person.number());
        found.ok().map(|at| start + at as u32)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
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
