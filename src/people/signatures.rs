//! Signatures of rows: of whole rows, and of rows without one column. Two tables of other people have twins within as
//! often as between.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::blocks::ScanError;
use super::cells::{CellChunk, CellFile};
use super::evidence::Evidence;
use super::hash::{KeyedHash, SumHasher};
use super::surprise::exceeds_chance;
use crate::control::{Cancelled, Control};

/// Signatures kept of a kind: those with the lowest hashes.
const MAX_SAMPLED_SIGNATURES: usize = 256;

/// Rows whose signatures a processor takes at once.
const ROWS_AT_ONCE: usize = 1 << 13;

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
struct SampleCollector {
    lowest: BTreeMap<u128, u64>,
    /// Up to where hashes can be among the lowest.
    end: u128,
    is_cut: bool,
}

impl SampleCollector {
    /// Of hashes up to `end`; others are known to be too high.
    const fn new(end: u128) -> Self {
        Self { lowest: BTreeMap::new(), end, is_cut: false }
    }

    fn push(&mut self, hash: u128, rows: u64) {
        if hash > self.end {
            self.is_cut = true;
            return;
        }
        *self.lowest.entry(hash).or_default() += rows;
        if self.lowest.len() > MAX_SAMPLED_SIGNATURES {
            self.lowest.pop_last();
            self.is_cut = true;
        }
        if self.lowest.len() == MAX_SAMPLED_SIGNATURES {
            self.end = self.lowest.last_key_value().map_or(self.end, |(last, _)| *last);
        }
    }

    /// Takes what another one collected of other rows.
    fn merge(&mut self, other: Self) {
        self.is_cut |= other.is_cut;
        other.lowest.into_iter().for_each(|(hash, rows)| self.push(hash, rows));
    }

    fn finish(self) -> SignatureSample {
        let signature = |(hash, rows)| Signature { hash: KeyedHash(hash), rows };
        SignatureSample { lowest: self.lowest.into_iter().map(signature).collect(), is_cut: self.is_cut }
    }
}

/// The samples of whole rows, and of rows without each of the chosen columns.
pub(super) fn signatures(
    cells: &CellFile,
    chosen: &[usize],
    control: &Control,
) -> Result<Vec<SignatureSample>, ScanError> {
    if cells.columns() == 0 {
        return Ok(Vec::new());
    }
    let left_out = if cells.columns() < MIN_COLUMNS_TO_LEAVE_OUT { &[] } else { chosen };
    let mut kinds: Vec<SampleCollector> = Vec::new();
    kinds.resize_with(1 + left_out.len(), || SampleCollector::new(u128::MAX));
    for chunk in 0..cells.chunks() {
        let columns = (0..cells.columns()).map(|column| cells.read(chunk, column));
        let columns: Vec<CellChunk> = columns.collect::<io::Result<_>>()?;
        let rows = columns[0].codes.len();
        let pieces: Vec<usize> = (0..rows).step_by(ROWS_AT_ONCE).collect();
        let of_piece = |first: usize| {
            control.check()?;
            let mut found: Vec<SampleCollector> = kinds.iter().map(|kind| SampleCollector::new(kind.end)).collect();
            collect(&columns, left_out, first..rows.min(first + ROWS_AT_ONCE), &mut found);
            Ok(found)
        };
        let found: Vec<Vec<SampleCollector>> =
            pieces.into_par_iter().map(of_piece).collect::<Result<_, Cancelled>>()?;
        for (kind, found) in found.into_iter().flat_map(|found| found.into_iter().enumerate()) {
            kinds[kind].merge(found);
        }
    }
    Ok(kinds.into_iter().map(SampleCollector::finish).collect())
}

/// Collects the signatures of some rows: first of whole rows, then without each of the columns that are left out.
fn collect(columns: &[CellChunk], left_out: &[usize], rows: Range<usize>, kinds: &mut [SampleCollector]) {
    let hasher = SumHasher::new(b"row\0");
    for row in rows {
        let whole = columns.iter().fold(0_u128, |sum, column| sum.wrapping_add(column.cell(row)));
        kinds[0].push(hasher.hash(whole), 1);
        for (kind, &column) in kinds[1..].iter_mut().zip(left_out) {
            kind.push(hasher.hash(whole.wrapping_sub(columns[column].cell(row))), 1);
        }
    }
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

/// Bounds how many twins other tables can have with one, before their samples are read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TwinBound {
    /// The samples that have a signature, of one row.
    samples: BTreeMap<KeyedHash, Vec<usize>>,
    /// Per sample, how many of these any table may have.
    unknown: Vec<u64>,
}

impl TwinBound {
    /// Of the table with this evidence, where it is not known who has the frequent ones among its signatures.
    #[must_use]
    pub fn new(evidence: &Evidence, frequent: &BTreeSet<KeyedHash>) -> Self {
        let mut bound = Self { samples: BTreeMap::new(), unknown: vec![0; evidence.signatures.len()] };
        for (number, sample) in evidence.signatures.iter().enumerate() {
            for Signature { hash, .. } in sample.lowest.iter().filter(|signature| signature.rows == 1) {
                bound.samples.entry(*hash).or_default().push(number);
                bound.unknown[number] += u64::from(frequent.contains(hash));
            }
        }
        bound
    }

    /// Whether a table that is known to have these signatures, each in one of its samples and of one row, can be alike.
    #[must_use]
    pub fn admits(&self, common: &BTreeSet<(KeyedHash, u16)>) -> bool {
        let mut found: BTreeMap<(usize, u16), u64> = BTreeMap::new();
        for (hash, theirs) in common {
            for own in self.samples.get(hash).into_iter().flatten() {
                *found.entry((*own, *theirs)).or_default() += 1;
            }
        }
        let known = found.into_iter().map(|((own, _), number)| number + self.unknown[own]);
        known.chain(self.unknown.iter().copied()).any(|most| exceeds_chance(most, most))
    }
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
        fn a_sample_has_the_lowest_with_all_rows(
            hashes in prop::collection::vec(0..700_u128, 0..900),
            piece in 1..400_usize,
        ) {
            let mut collector = SampleCollector::new(u128::MAX);
            let mut all: BTreeMap<u128, u64> = BTreeMap::new();
            for hashes in hashes.chunks(piece) {
                let mut found = SampleCollector::new(collector.end);
                hashes.iter().for_each(|hash| found.push(*hash, 1));
                collector.merge(found);
                hashes.iter().for_each(|hash| *all.entry(*hash).or_default() += 1);
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

    proptest! {
        #[test]
        fn what_is_alike_is_within_the_bound(
            shared in prop::collection::vec((0..3_usize, 0..2_usize, any::<bool>()), 60..300),
            rest in 0..40_u128,
        ) {
            let (mut own, mut theirs) = (vec![Vec::new(); 3], vec![Vec::new(); 2]);
            let (mut frequent, mut common) = (BTreeSet::new(), BTreeSet::new());
            for (number, (kind, other, is_frequent)) in shared.into_iter().enumerate() {
                let hash = number as u128;
                own[kind].push((hash, 1));
                theirs[other].push((hash, 1));
                // some of both
                match is_frequent && number % 3 == 0 {
                    true => drop(frequent.insert(KeyedHash(hash))),
                    false => drop(common.insert((KeyedHash(hash), other as u16))),
                }
            }
            own[0].extend((1000..1000 + rest).map(|hash| (hash, 2)));
            let samples = |of: &[Vec<(u128, u64)>]| of.iter().map(|of| sample(of)).collect::<Vec<_>>();
            let evidence = Evidence { signatures: samples(&own), ..Evidence::default() };
            let bound = TwinBound::new(&evidence, &frequent);
            prop_assert!(!are_alike(&evidence.signatures, &samples(&theirs)) || bound.admits(&common));
        }
    }

    #[test]
    fn too_few_common_signatures_of_two_samples_say_nothing() {
        let lowest = |from: u128| sample(&(from..from + 90).map(|hash| (hash, 1)).collect::<Vec<_>>());
        let evidence = Evidence { signatures: vec![lowest(0), lowest(100)], ..Evidence::default() };
        let bound = TwinBound::new(&evidence, &BTreeSet::new());
        let common = |from: u128, number, kind| (from..from + number).map(move |hash| (KeyedHash(hash), kind));
        assert!(bound.admits(&common(0, 81, 4).collect()));
        assert!(!bound.admits(&common(0, 80, 4).chain(common(100, 80, 4)).collect()), "of two samples");
        assert!(!bound.admits(&common(0, 50, 4).chain(common(50, 40, 5)).collect()), "of two others");
        let frequent = BTreeSet::from([KeyedHash(89)]);
        assert!(TwinBound::new(&evidence, &frequent).admits(&common(0, 80, 4).collect()), "and one that may be there");
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
