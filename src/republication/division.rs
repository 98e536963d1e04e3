//! Division of the rows of a night: survivors, changed, newcomers.

use super::founding::Newcomer;
use super::member_index::{MemberIndex, PartedRows, PersonRow};
use super::night::{NightError, NightInput};
use super::state::{PersonHash, State};
use crate::control::Control;
use crate::publication::ChangedValues;

/// A person whose value is not the published one, and could move.
#[derive(Clone, Copy)]
pub(super) struct Mover {
    pub(super) row: u32,
    pub(super) value: u32,
    /// The position of the person among the members.
    pub(super) member: u32,
}

/// The rows of a night by what becomes of them.
#[derive(Default)]
pub(super) struct Division {
    pub(super) survivors: Vec<PublishedMember>,
    /// In secret order.
    pub(super) newcomers: Vec<Newcomer>,
    /// In secret order.
    pub(super) movers: Vec<Mover>,
    pub(super) changed: u64,
    /// Rows of persons who were published on the night before, and survivors among them.
    pub(super) here: u64,
    pub(super) stayed: u64,
    /// Rows of forgotten persons, and changed rows that cannot move.
    pub(super) withheld: u64,
}

/// A row that is published, and the position of its person among the members.
#[derive(Clone, Copy)]
pub(super) struct PublishedMember {
    pub(super) row: u32,
    pub(super) member: u32,
}

/// Divides the rows of a table; `ranks` are the ranks of its values in the state, which is that of the night before.
pub(super) fn divide(
    state: &State,
    table: NightInput<'_>,
    ranks: &[u32],
    changes: ChangedValues,
    control: &Control,
) -> Result<Division, NightError> {
    let mut division = Division::default();
    let index = MemberIndex::new(&state.members);
    let (mut met, mut repeated) = (MetPersons::new(state.members.len()), 0);
    let mut is_drawn = vec![false; table.persons.len()];
    division.survivors.reserve_exact(table.persons.len().min(state.members.len()));
    for group in PartedRows::new(table.persons).groups() {
        control.check()?;
        for &PersonRow { person, row } in group {
            let Some(member) = index.position(person) else {
                met.others.push(person.number());
                match state.is_forgotten(person) {
                    true => division.withheld += 1,
                    false => is_drawn[row as usize] = true,
                }
                continue;
            };
            met.meet(member);
            let (known, value) = (state.members[member as usize], ranks[table.value_of[row as usize] as usize]);
            let signature = state.signature(known.bucket);
            let was_here = u64::from(state.night > 0 && known.last == state.night);
            division.here += was_here;
            if signature[usize::from(known.slot)] == value {
                division.survivors.push(PublishedMember { row, member });
                division.stayed += was_here;
                continue;
            }
            division.changed += 1;
            match changes {
                // a signature that shares the value would let the change itself say more than the signature
                ChangedValues::Move if !signature.contains(&value) => is_drawn[row as usize] = true,
                ChangedValues::Move | ChangedValues::Withhold | ChangedValues::Refuse => division.withheld += 1,
            }
        }
        repeated += met.take_repeated();
    }
    if repeated > 0 {
        return Err(NightError::SeveralRows { rows: repeated });
    }
    if changes == ChangedValues::Refuse && division.changed > 0 {
        return Err(NightError::ValueChanged { changed: division.changed });
    }
    for &row in table.order.iter().filter(|row| is_drawn[**row as usize]) {
        let (person, value) = (PersonHash(table.persons[row as usize]), ranks[table.value_of[row as usize] as usize]);
        match index.position(person) {
            Some(member) => division.movers.push(Mover { row, value, member }),
            None => division.newcomers.push(Newcomer { row, value }),
        }
    }
    Ok(division)
}

/// The persons who were met, group by group.
struct MetPersons {
    is_met: Vec<bool>,
    /// Meetings of members who were met before.
    repeated: u64,
    /// Those of the group who are no members.
    others: Vec<u128>,
}

impl MetPersons {
    fn new(members: usize) -> Self {
        Self { is_met: vec![false; members], repeated: 0, others: Vec::new() }
    }

    fn meet(&mut self, member: u32) {
        self.repeated += u64::from(std::mem::replace(&mut self.is_met[member as usize], true));
    }

    /// The meetings of the group with persons who were met before.
    fn take_repeated(&mut self) -> u64 {
        self.others.sort_unstable();
        let of_others = self.others.windows(2).filter(|pair| pair[0] == pair[1]).count() as u64;
        self.others.clear();
        of_others + std::mem::take(&mut self.repeated)
    }
}
