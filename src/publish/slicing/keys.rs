//! Identity keys: the known values of a row, one per column.

use std::collections::HashMap;

use ahash::RandomState;

use crate::control::{Cancelled, Control};
use crate::microdata::{AttrSet, Table};
use crate::publish::partition::TallyGroups;

/// Known values of the rows, numbered column by column.
#[derive(Clone)]
pub struct IdentityKeys {
    /// Value of each row in every column but the sensitive one.
    pub(super) others: Vec<TallyGroups>,
    /// Companion value of each row: its value in the sensitive column, without the sensitive attribute.
    pub(super) companions: TallyGroups,
}

impl IdentityKeys {
    /// Keys of the rows in this order.
    pub(super) fn gather(&self, order: &[u32]) -> Self {
        let others = self.others.iter().map(|other| other.gather(order)).collect();
        Self { others, companions: self.companions.gather(order) }
    }

    /// Numbers the distinct identities of rows.
    pub(super) fn together(&self, control: &Control) -> Result<TallyGroups, Cancelled> {
        let columns = std::iter::once(&self.companions).chain(&self.others);
        let columns = columns.map(|groups| (groups.count, groups.of_row.iter().copied()));
        combined(self.companions.of_row.len(), columns, control)
    }
}

/// Numbers groups in the order of their first rows, groups without rows last. Returns the new number of each.
pub(super) fn renumber(groups: &mut TallyGroups) -> Vec<u32> {
    let mut numbers = vec![u32::MAX; groups.count as usize];
    let mut next = 0;
    let mut number = |number: &mut u32| {
        if *number == u32::MAX {
            *number = next;
            next += 1;
        }
        *number
    };
    groups.of_row.iter_mut().for_each(|group| *group = number(&mut numbers[*group as usize]));
    numbers.iter_mut().for_each(|group| {
        number(group);
    });
    numbers
}

/// Numbers the combinations of values of `attributes`. Without attributes, all rows have one value.
pub(super) fn together(table: &Table, attributes: AttrSet, control: &Control) -> Result<TallyGroups, Cancelled> {
    let columns = attributes.iter().map(|attr| table.column(attr));
    let columns = columns.map(|column| (column.domain.len() as u32, column.codes.iter()));
    combined(table.rows(), columns, control)
}

/// Numbers the combinations of values of several columns, in the order of their first rows.
///
/// Each column is `(bound on its values, values of the rows)`. The values of a single column keep their numbers. Values of a row
/// are packed into one number while there are few combinations, so that rarely more than one table is hashed.
fn combined(
    rows: usize,
    columns: impl Iterator<Item = (u32, impl Iterator<Item = u32>)>,
    control: &Control,
) -> Result<TallyGroups, Cancelled> {
    let mut keys = vec![0; rows];
    let (mut combinations, mut numbered) = (1, true);
    for (count, values) in columns {
        control.check()?;
        let count = u64::from(count.max(1));
        if combinations > u64::MAX / count {
            combinations = u64::from(number(&mut keys, control)?);
        }
        numbered = combinations == 1;
        combinations *= count;
        keys.iter_mut().zip(values).for_each(|(key, value)| *key = *key * count + u64::from(value));
    }
    if !numbered {
        combinations = u64::from(number(&mut keys, control)?);
    }
    Ok(TallyGroups { of_row: keys.into_iter().map(|key| key as u32).collect(), count: combinations as u32 })
}

/// Numbers keys in the order of their first rows, and returns their count.
fn number(keys: &mut [u64], control: &Control) -> Result<u32, Cancelled> {
    let mut numbers: HashMap<u64, u32, RandomState> = HashMap::default();
    for keys in keys.chunks_mut(Control::STRIDE) {
        control.check()?;
        for key in keys {
            let next = numbers.len() as u32;
            *key = u64::from(*numbers.entry(*key).or_insert(next));
        }
    }
    Ok(numbers.len() as u32)
}
