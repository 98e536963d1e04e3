//! Which rows of two datasets are of the same record.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::columns::DatasetRows;
use super::env::InputEnv;
use super::error::InputError;
use super::stored_rows::StoredRows;
use crate::control::{Control, Phase};
use crate::people::{Fold, KeyedHasher};
use crate::ports::StoreError;

/// Bytes of memory that a row of either dataset takes while records are matched.
pub(crate) const RECORD_BYTES: u64 = 64;

/// The records of all rows of a dataset by one spelling of their keys, in their order; `key` are the columns of the record key, in
/// an order that both datasets have.
///
/// # Errors
/// [`InputError`]
pub(crate) fn records(
    env: &InputEnv,
    rows: DatasetRows<'_>,
    key: &[usize],
    control: &Control,
) -> Result<Vec<u128>, InputError> {
    let DatasetRows { dataset, copied, .. } = rows;
    let (stored, template) = (StoredRows::open(env, dataset, copied)?, env.vault.content_hasher(&dataset.tenant));
    control.begin(Phase::Load, u64::from(stored.chunks()))?;
    let mut found = Vec::new();
    for number in 0..stored.chunks() {
        control.advance(1)?;
        let chunk = stored.columns(number, key)?;
        for row in 0..chunk.rows as usize {
            let mut folded = Vec::with_capacity(key.len());
            for column in &chunk.columns {
                let value = column.value(row).ok_or_else(|| StoreError::corrupt("a record has no key"))?;
                let text = std::str::from_utf8(value).map_err(StoreError::corrupt)?;
                folded.push(Fold::Standard.apply(text));
            }
            let texts: Vec<&[u8]> = folded.iter().map(|text| text.as_bytes()).collect();
            found.push(template.keyed("record of a row", &texts).0);
        }
    }
    if found.len() as u64 != dataset.rows {
        return Err(StoreError::corrupt("a record key has not the rows of its dataset").into());
    }
    Ok(found)
}

/// Pairs of rows of two datasets with the same record, in the order of the second one. Keys that are equal in canonical
/// spelling alone, but twice in a dataset, are left out.
pub(crate) fn match_records(one: &[u128], other: &[u128]) -> (Vec<u32>, Vec<u32>) {
    let mut rows: HashMap<u128, Option<u32>> = HashMap::with_capacity(one.len());
    for (record, row) in one.iter().zip(0..) {
        match rows.entry(*record) {
            Entry::Vacant(free) => drop(free.insert(Some(row))),
            Entry::Occupied(mut taken) => drop(taken.insert(None)),
        }
    }
    let mut times: HashMap<u128, u32> = HashMap::with_capacity(other.len());
    other.iter().for_each(|record| *times.entry(*record).or_default() += 1);
    let found = other.iter().zip(0..).filter(|(record, _)| times[record] == 1);
    found.filter_map(|(record, row)| Some((rows.get(record).copied()??, row))).unzip()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_match_where_a_record_is_once_in_each_dataset() {
        assert_eq!(match_records(&[5, 7, 9], &[9, 1, 5]), (vec![2, 0], vec![0, 2]));
        assert_eq!(match_records(&[5, 5, 9], &[5, 9]), (vec![2], vec![1]));
        assert_eq!(match_records(&[5, 9], &[5, 5, 9]), (vec![1], vec![2]));
        assert_eq!(match_records(&[], &[1]), (vec![], vec![]));
    }
}
