//! Division of the rows of a night: survivors, changed, newcomers.

use super::founding::Newcomer;
use super::night::{NightError, NightRow};
use super::state::State;
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
    /// Positions of published members, with their rows.
    pub(super) survivors: Vec<Survivor>,
    pub(super) newcomers: Vec<Newcomer>,
    pub(super) movers: Vec<Mover>,
    pub(super) changed: u64,
    /// Rows of persons who were published on the night before.
    pub(super) here: u64,
    /// Rows of forgotten persons, and changed rows that cannot move.
    pub(super) withheld: u64,
}

/// A row with the published value of its person.
#[derive(Clone, Copy)]
pub(super) struct Survivor {
    pub(super) row: u32,
    pub(super) member: u32,
}

/// The rows of a night, each with the position of its person among the members.
pub(super) struct KnownRows<'a> {
    pub(super) rows: &'a [NightRow],
    pub(super) members: Vec<Option<u32>>,
}

/// Divides rows; `ranks` are the ranks of their values in the state, which is that of the night before.
pub(super) fn divide(
    state: &State,
    rows: &KnownRows<'_>,
    ranks: &[u32],
    changes: ChangedValues,
    control: &Control,
) -> Result<Division, NightError> {
    let mut division = Division::default();
    for ((row, member), at) in rows.rows.iter().zip(&rows.members).zip(0_u32..) {
        if (at as usize).is_multiple_of(Control::STRIDE) {
            control.check()?;
        }
        let value = ranks[row.value as usize];
        let Some(member) = *member else {
            match state.is_forgotten(row.person) {
                true => division.withheld += 1,
                false => division.newcomers.push(Newcomer { row: at, value }),
            }
            continue;
        };
        let known = state.members[member as usize];
        let signature = state.signature(known.bucket);
        division.here += u64::from(state.night > 0 && known.last == state.night);
        if signature[usize::from(known.slot)] == value {
            division.survivors.push(Survivor { row: at, member });
            continue;
        }
        division.changed += 1;
        match changes {
            // a signature that shares the value would let the change itself say more than the signature
            ChangedValues::Move if !signature.contains(&value) => {
                division.movers.push(Mover { row: at, value, member })
            }
            ChangedValues::Move | ChangedValues::Withhold | ChangedValues::Refuse => division.withheld += 1,
        }
    }
    if changes == ChangedValues::Refuse && division.changed > 0 {
        return Err(NightError::ValueChanged { changed: division.changed });
    }
    Ok(division)
}
