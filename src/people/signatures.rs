//! Signatures of rows: of whole rows, and of rows without one column. Two tables of other people have twins within as
//! often as between.

use std::collections::BTreeMap;
use std::io;

use serde::{Deserialize, Serialize};

use super::blocks::ScanError;
use super::cells::{CellChunk, CellFile};
use super::hash::{KeyedHash, hash_of_sum};
use super::surprise::exceeds_chance;
use crate::control::Control;

/// Signatures kept of a kind: those with the lowest hashes.
const MAX_SAMPLED_SIGNATURES: usize = 256;

/// Fewest columns of tables of which one may be left out.
const MIN_COLUMNS_TO_LEAVE_OUT: usize = 3;

/// The lowest signatures of one kind.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct SignatureSample {
    /// Each with the number of its rows, in order.
    pub lowest: Vec<Signature>,
    /// Whether the table has signatures above these.
    pub is_cut: bool,
}

/// What some rows have in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Signature {
    /// The hash of the cells.
    pub hash: KeyedHash,
    /// How many rows have it.
    pub rows: u64,
}

impl SignatureSample {
    /// Up to where the sample has all signatures of its table.
    fn end(&self) -> Option<KeyedHash> {
        self.lowest.last().filter(|_| self.is_cut).map(|signature| signature.hash)
    }
}

/// Collects the lowest signatures. What was among the lowest at the end was so throughout, hence the numbers of rows
/// are exact.
#[derive(Default)]
struct SampleCollector {
    lowest: BTreeMap<u128, u64>,
    is_cut: bool,
}

impl SampleCollector {
    fn push(&mut self, hash: u128) {
        let is_full = self.lowest.len() >= MAX_SAMPLED_SIGNATURES;
        if is_full && self.lowest.last_key_value().is_some_and(|(last, _)| *last < hash) {
            self.is_cut = true;
            return;
        }
        *self.lowest.entry(hash).or_default() += 1;
        if self.lowest.len() > MAX_SAMPLED_SIGNATURES {
            self.lowest.pop_last();
            self.is_cut = true;
        }
    }

    fn finish(self) -> SignatureSample {
        let signature = |(hash, rows)| Signature { hash: KeyedHash(hash), rows };
        SignatureSample { lowest: self.lowest.into_iter().map(signature).collect(), is_cut: self.is_cut }
    }
}

/// The samples of whole rows, and of rows without each of the chosen columns.
pub(super) fn signatures(
    cells: &mut CellFile,
    chosen: &[usize],
    control: &Control,
) -> Result<Vec<SignatureSample>, ScanError> {
    if cells.columns() == 0 {
        return Ok(Vec::new());
    }
    let left_out = if cells.columns() < MIN_COLUMNS_TO_LEAVE_OUT { &[] } else { chosen };
    let mut kinds: Vec<SampleCollector> = Vec::new();
    kinds.resize_with(1 + left_out.len(), SampleCollector::default);
    for chunk in 0..cells.chunks() {
        let columns = (0..cells.columns()).map(|column| cells.read(chunk, column));
        let columns: Vec<CellChunk> = columns.collect::<io::Result<_>>()?;
        for row in 0..columns[0].codes.len() {
            if row % Control::STRIDE == 0 {
                control.check()?;
            }
            let whole = columns.iter().fold(0_u128, |sum, column| sum.wrapping_add(column.cell(row)));
            kinds[0].push(hash_of_sum(b"row\0", whole));
            for (kind, &column) in kinds[1..].iter_mut().zip(left_out) {
                kind.push(hash_of_sum(b"row\0", whole.wrapping_sub(columns[column].cell(row))));
            }
        }
    }
    Ok(kinds.into_iter().map(SampleCollector::finish).collect())
}

/// The signatures of a table that can be twins of another one's: those of one row, of kinds that have enough of them.
pub(super) fn telling(own: &[SignatureSample]) -> impl Iterator<Item = KeyedHash> {
    let once = |sample: &SignatureSample| {
        sample.lowest.iter().filter(|signature| signature.rows == 1).map(|signature| signature.hash).collect()
    };
    let kinds =
        own.iter().map(once).filter(|once: &Vec<KeyedHash>| exceeds_chance(once.len() as u64, once.len() as u64));
    kinds.flatten()
}

/// Whether the twins of two tables, of any two kinds, stand once in each table more often than by chance.
pub(super) fn are_alike(one: &[SignatureSample], other: &[SignatureSample]) -> bool {
    one.iter().any(|own| other.iter().any(|theirs| have_common_twins(own, theirs)))
}

/// Twins are signatures that exactly two rows of both tables together have, as far as both samples go.
fn have_common_twins(own: &SignatureSample, theirs: &SignatureSample) -> bool {
    let end = own.end().into_iter().chain(theirs.end()).min();
    let is_below = |signature: &&Signature| end.is_none_or(|end| signature.hash <= end);
    let (mut own, mut theirs) = (own.lowest.iter().filter(is_below), theirs.lowest.iter().filter(is_below));
    let (mut first, mut second) = (own.next(), theirs.next());
    let (mut cross, mut within) = (0, 0);
    loop {
        match (first, second) {
            (Some(a), Some(b)) if a.hash == b.hash => {
                cross += u64::from(a.rows == 1 && b.rows == 1);
                (first, second) = (own.next(), theirs.next());
            }
            (Some(a), other) if other.is_none_or(|b| a.hash < b.hash) => {
                within += u64::from(a.rows == 2);
                first = own.next();
            }
            (_, Some(b)) => {
                within += u64::from(b.rows == 2);
                second = theirs.next();
            }
            _ => return exceeds_chance(cross, cross + within),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_sample_has_the_lowest_with_all_rows(hashes in prop::collection::vec(0..700_u128, 0..900)) {
            let mut collector = SampleCollector::default();
            let mut all: BTreeMap<u128, u64> = BTreeMap::new();
            for hash in hashes {
                collector.push(hash);
                *all.entry(hash).or_default() += 1;
            }
            let sample = collector.finish();
            let found: Vec<(u128, u64)> = sample.lowest.iter().map(|of| (of.hash.0, of.rows)).collect();
            prop_assert_eq!(sample.is_cut, all.len() > MAX_SAMPLED_SIGNATURES);
            prop_assert_eq!(found, all.into_iter().take(MAX_SAMPLED_SIGNATURES).collect::<Vec<_>>());
        }
    }

    fn sample(signatures: &[(u128, u64)]) -> SignatureSample {
        let signature = |(hash, rows): &(u128, u64)| Signature { hash: KeyedHash(*hash), rows: *rows };
        SignatureSample { lowest: signatures.iter().map(signature).collect(), is_cut: false }
    }

    #[test]
    fn twins_between_tables_make_them_alike() {
        let once: Vec<(u128, u64)> = (0..100).map(|hash| (hash, 1)).collect();
        let twice: Vec<(u128, u64)> = (200..300).map(|hash| (hash, 2)).collect();
        let both = [&once[..], &twice].concat();
        assert!(are_alike(&[sample(&once)], &[sample(&twice), sample(&once)]));
        assert!(!are_alike(&[sample(&once)], &[sample(&once[..80])]), "too few twins");
        assert!(!are_alike(&[sample(&both)], &[sample(&once)]), "as many twins within");
        let cut = SignatureSample { is_cut: true, ..sample(&once[..50]) };
        assert!(!are_alike(&[cut], &[sample(&once)]), "above the end of a sample nothing is known");
    }
}
