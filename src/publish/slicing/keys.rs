//! What an adversary knows of a row, as a slicing sees it: one value per column.

use std::collections::HashMap;

use ahash::RandomState;

use crate::control::{Cancelled, Control};
use crate::microdata::{AttrSet, Table};
use crate::publish::partition::Groups;

/// The values that a slicing puts side by side, numbered column by column.
pub struct Keys {
    /// The value of each row in every column but the sensitive one.
    pub(super) others: Vec<Groups>,
    /// The value of each row in the sensitive column, without the sensitive attribute.
    pub(super) beside: Groups,
}

/// Numbers the values of `attributes` that occur together. All rows have the same value of no attributes.
pub(super) fn together(table: &Table, attributes: AttrSet, control: &Control) -> Result<Groups, Cancelled> {
    let mut groups = Groups { of_row: vec![0; table.rows()], count: 1 };
    for attr in attributes.iter() {
        let column = table.column(attr);
        let codes = Groups { of_row: column.codes.iter().collect(), count: column.domain.len() as u32 };
        groups = if groups.count == 1 { codes } else { pairs(&groups, &codes, control)? };
    }
    Ok(groups)
}

/// Numbers pairs of groups, in the order of their first rows.
fn pairs(a: &Groups, b: &Groups, control: &Control) -> Result<Groups, Cancelled> {
    let mut numbers: HashMap<u64, u32, RandomState> = HashMap::default();
    let mut of_row = Vec::with_capacity(a.of_row.len());
    for (a, b) in a.of_row.chunks(Control::STRIDE).zip(b.of_row.chunks(Control::STRIDE)) {
        control.check()?;
        for (&a, &b) in a.iter().zip(b) {
            let next = numbers.len() as u32;
            of_row.push(*numbers.entry(u64::from(a) << 32 | u64::from(b)).or_insert(next));
        }
    }
    Ok(Groups { of_row, count: numbers.len() as u32 })
}

/// The distinct rows of a table as an adversary knows them.
pub(super) struct Identities {
    /// The values of each identity, column by column, the sensitive column last; one identity behind the other.
    values: Vec<u32>,
    width: usize,
}

impl Identities {
    pub(super) fn of(keys: &Keys, control: &Control) -> Result<Self, Cancelled> {
        let mut groups = keys.beside.clone();
        for other in &keys.others {
            groups = pairs(&groups, other, control)?;
        }
        let width = keys.others.len() + 1;
        let mut values = Vec::with_capacity(groups.count as usize * width);
        let mut seen = vec![false; groups.count as usize];
        for (row, &group) in groups.of_row.iter().enumerate() {
            if !std::mem::replace(&mut seen[group as usize], true) {
                values.extend(keys.others.iter().map(|other| other.of_row[row]));
                values.push(keys.beside.of_row[row]);
            }
        }
        Ok(Self { values, width })
    }

    pub(super) fn len(&self) -> usize {
        self.values.len() / self.width
    }

    /// The values of an identity in every column but the sensitive one, and beside the sensitive attribute.
    pub(super) fn get(&self, identity: u32) -> (&[u32], u32) {
        let values = &self.values[identity as usize * self.width..][..self.width];
        (&values[..self.width - 1], values[self.width - 1])
    }
}
