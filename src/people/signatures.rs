//! Signatures of rows: of whole rows, and of rows without one column. Two tables of other people have twins within as
//! often as between.

use std::io;
use std::ops::Range;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::blocks::ScanError;
use super::cells::{CellChunk, CellFile};
use super::hash::{KeyedHash, SumHasher};
use super::surprise::exceeds_chance;
use crate::control::{Cancelled, Control};

/// Signatures kept of a kind: those with the lowest hashes.
const MAX_SAMPLED_SIGNATURES: usize = 256;

/// Signatures that are collected until the lowest are looked for among them.
const COLLECTED_SIGNATURES: usize = 4 * MAX_SAMPLED_SIGNATURES;

/// Of signatures of one row those find tables whose hashes this divides.
const FINDING_DIVISOR: u128 = 4;

/// Fewest twins by which a table is found, in one sample. Of 81, the fewest that make tables alike, fewer are found for one key of
/// a tenant in 30 million.
pub const MIN_FOUND_TWINS: u64 = 3;

/// Rows whose signatures a processor takes at once.
const ROWS_AT_ONCE: usize = 1 << 13;

/// Fewest columns of tables of which one may be left out.
const MIN_COLUMNS_TO_LEAVE_OUT: usize = 3;

/// The lowest signatures of one kind.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "StoredSample", into = "StoredSample")]
pub struct SignatureSample {
    /// Each with the number of its rows, in order.
    pub lowest: Vec<Signature>,
    /// Whether the table has signatures above these.
    pub is_cut: bool,
}

/// A sample as evidence keeps it: most of a document of evidence are the hashes of signatures.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum StoredSample {
    Joined {
        /// Sixteen bytes for each hash, in order, in Base64.
        hashes: String,
        rows: Vec<u64>,
        is_cut: bool,
    },
    /// Of evidence from before these were joined.
    Listed { lowest: Vec<Signature>, is_cut: bool },
}

#[derive(Debug, thiserror::Error)]
enum StoredSampleError {
    #[error("the hashes of a sample are not Base64")]
    Encoding(#[from] base64::DecodeError),
    #[error("a sample has other numbers of hashes and of rows")]
    Cut,
}

impl From<SignatureSample> for StoredSample {
    fn from(SignatureSample { lowest, is_cut }: SignatureSample) -> Self {
        let hashes: Vec<u8> = lowest.iter().flat_map(|signature| signature.hash.to_bytes()).collect();
        let rows = lowest.iter().map(|signature| signature.rows).collect();
        Self::Joined { hashes: STANDARD_NO_PAD.encode(hashes), rows, is_cut }
    }
}

impl TryFrom<StoredSample> for SignatureSample {
    type Error = StoredSampleError;

    fn try_from(stored: StoredSample) -> Result<Self, StoredSampleError> {
        let (hashes, rows, is_cut) = match stored {
            StoredSample::Listed { lowest, is_cut } => return Ok(Self { lowest, is_cut }),
            StoredSample::Joined { hashes, rows, is_cut } => (STANDARD_NO_PAD.decode(hashes)?, rows, is_cut),
        };
        let (hashes, rest) = hashes.as_chunks::<16>();
        if !rest.is_empty() || hashes.len() != rows.len() {
            return Err(StoredSampleError::Cut);
        }
        let signature = |(hash, rows): (&[u8; 16], u64)| Signature { hash: KeyedHash::from_bytes(*hash), rows };
        Ok(Self { lowest: hashes.iter().zip(rows).map(signature).collect(), is_cut })
    }
}

/// What some rows have in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Signature {
    /// The hash of the cells.
    pub hash: KeyedHash,
    /// How many rows have it.
    pub rows: u64,
}

impl Signature {
    /// Whether tables are found by it. Twins have one row in each, and the last bits of a hash do not say which are the lowest.
    #[must_use]
    pub const fn finds_tables(&self) -> bool {
        self.rows == 1 && self.hash.0.is_multiple_of(FINDING_DIVISOR)
    }
}

impl SignatureSample {
    /// Those of one row.
    fn singles(&self) -> impl Iterator<Item = KeyedHash> {
        self.lowest.iter().filter(|signature| signature.rows == 1).map(|signature| signature.hash)
    }

    /// Up to where the sample has all signatures of its table.
    fn end(&self) -> Option<KeyedHash> {
        self.lowest.last().filter(|_| self.is_cut).map(|signature| signature.hash)
    }
}

/// Collects the lowest signatures. What was among the lowest at the end was so throughout, hence the numbers of rows
/// are exact.
struct SampleCollector {
    /// Those up to `end`; some may be there several times.
    found: Vec<(u128, u64)>,
    /// Up to where hashes can be among the lowest.
    end: u128,
    is_cut: bool,
}

impl SampleCollector {
    /// Of hashes up to `end`; others are known to be too high.
    const fn new(end: u128) -> Self {
        Self { found: Vec::new(), end, is_cut: false }
    }

    fn push(&mut self, hash: u128, rows: u64) {
        if hash > self.end {
            self.is_cut = true;
            return;
        }
        self.found.push((hash, rows));
        if self.found.len() == COLLECTED_SIGNATURES {
            self.settle();
        }
    }

    /// Leaves the lowest alone, each once and in order.
    fn settle(&mut self) {
        self.found.sort_unstable_by_key(|(hash, _)| *hash);
        self.found.dedup_by(|(next, more), (hash, rows)| {
            let is_same = next == hash;
            *rows += if is_same { *more } else { 0 };
            is_same
        });
        self.is_cut |= self.found.len() > MAX_SAMPLED_SIGNATURES;
        self.found.truncate(MAX_SAMPLED_SIGNATURES);
        if self.found.len() == MAX_SAMPLED_SIGNATURES {
            self.end = self.found.last().map_or(self.end, |(last, _)| *last);
        }
    }

    /// Takes what another one collected of other rows.
    fn merge(&mut self, other: Self) {
        self.is_cut |= other.is_cut;
        other.found.into_iter().for_each(|(hash, rows)| self.push(hash, rows));
    }

    fn finish(mut self) -> SignatureSample {
        self.settle();
        let signature = |(hash, rows)| Signature { hash: KeyedHash(hash), rows };
        SignatureSample { lowest: self.found.into_iter().map(signature).collect(), is_cut: self.is_cut }
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

/// The signatures of a table by which those that have twins with it are found: of samples that have enough of one row.
pub(super) fn telling(own: &[SignatureSample]) -> impl Iterator<Item = KeyedHash> {
    let has_enough = |sample: &&SignatureSample| {
        let once = sample.singles().count() as u64;
        exceeds_chance(once, once)
    };
    let signatures = own.iter().filter(has_enough).flat_map(|sample| &sample.lowest);
    signatures.filter(|signature| signature.finds_tables()).map(|signature| signature.hash)
}

/// The samples of a table, with what is needed to count its twins with many others.
pub(super) struct TwinCounter<'a> {
    samples: &'a [SignatureSample],
    /// The signatures of one row, in order, each with the number of its sample.
    singles: Vec<(KeyedHash, usize)>,
}

impl<'a> TwinCounter<'a> {
    pub(super) fn new(samples: &'a [SignatureSample]) -> Self {
        let singles = |(number, of): (usize, &'a SignatureSample)| of.singles().map(move |hash| (hash, number));
        let mut singles: Vec<(KeyedHash, usize)> = samples.iter().enumerate().flat_map(singles).collect();
        singles.sort_unstable();
        Self { samples, singles }
    }

    /// Whether the twins of two tables, of any two kinds, stand once in each table more often than by chance.
    pub(super) fn is_alike(&self, other: &[SignatureSample]) -> bool {
        // nearly all pairs of samples have too few common ones to be looked at
        let have_twins = |theirs: &SignatureSample| {
            let near = self.samples.iter().zip(self.common(theirs));
            let mut near = near.filter(|(_, common)| exceeds_chance(*common, *common));
            near.any(|(own, _)| have_common_twins(own, theirs))
        };
        other.iter().any(have_twins)
    }

    /// How many signatures of one row each sample has in common with one of another table.
    fn common(&self, theirs: &SignatureSample) -> Vec<u64> {
        let (mut common, mut own) = (vec![0; self.samples.len()], self.singles.iter().peekable());
        for hash in theirs.singles() {
            while let Some((of, sample)) = own.next_if(|(of, _)| *of <= hash) {
                common[*sample] += u64::from(*of == hash);
            }
        }
        common
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
    use std::collections::BTreeMap;

    use num_bigint::BigUint;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    proptest! {
        #[test]
        fn a_sample_has_the_lowest_with_all_rows(
            hashes in prop::collection::vec(any::<u128>(), 0..4 * COLLECTED_SIGNATURES),
            distinct in prop::sample::select(vec![200_u128, 300, 700, u128::MAX]),
            piece in 1..2 * COLLECTED_SIGNATURES,
        ) {
            let hashes: Vec<u128> = hashes.iter().map(|hash| hash % distinct).collect();
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

    fn alike(one: &[SignatureSample], other: &[SignatureSample]) -> bool {
        TwinCounter::new(one).is_alike(other)
    }

    fn sample(signatures: &[(u128, u64)]) -> SignatureSample {
        let signature = |(hash, rows): &(u128, u64)| Signature { hash: KeyedHash(*hash), rows: *rows };
        SignatureSample { lowest: signatures.iter().map(signature).collect(), is_cut: false }
    }

    #[test]
    fn samples_are_read_as_they_were_kept() {
        let own = SignatureSample { is_cut: true, ..sample(&[(7, 1), (u128::MAX, 300)]) };
        let kept = serde_json::to_value(&own).unwrap();
        let joined = json!({"hashes": "AAAAAAAAAAAAAAAAAAAAB/////////////////////8", "rows": [1, 300], "is_cut": true});
        assert_eq!(kept, joined);
        let former = json!({"lowest": own.lowest, "is_cut": true});
        for stored in [kept, former] {
            assert_eq!(serde_json::from_value::<SignatureSample>(stored).unwrap(), own);
        }
        let empty = sample(&[]);
        assert_eq!(serde_json::from_value::<SignatureSample>(serde_json::to_value(&empty).unwrap()).unwrap(), empty);
        for (member, wrong) in [("rows", json!([1])), ("hashes", json!("AAAA")), ("hashes", json!("?"))] {
            let mut stored = joined.clone();
            stored[member] = wrong;
            assert!(serde_json::from_value::<SignatureSample>(stored).is_err(), "{member}");
        }
    }

    #[test]
    fn twins_of_samples_with_enough_find_tables() {
        let once = |from: u128, number: u128| (from..from + number).map(|hash| (hash, 1)).collect::<Vec<_>>();
        let twice: Vec<(u128, u64)> = (2000..2400).map(|hash| (hash, 2)).collect();
        let found: Vec<u128> = telling(&[sample(&[once(0, 81), twice].concat()), sample(&once(1000, 80))])
            .map(|KeyedHash(hash)| hash)
            .collect();
        assert_eq!(found, (0..81).step_by(4).collect::<Vec<_>>());
    }

    /// Of `4^twins` equally probable choices of hashes, how many find fewer than three of these twins.
    fn unfound(twins: u32) -> BigUint {
        let power = |exponent| BigUint::from(3_u8).pow(twins - exponent);
        power(0) + power(1) * twins + power(2) * (twins * (twins - 1) / 2)
    }

    #[test]
    fn twins_are_rarely_missed() {
        let most = |twins| BigUint::from(FINDING_DIVISOR).pow(twins);
        assert!(unfound(81) * 33_000_000_u64 < most(81) && unfound(81) * 34_000_000_u64 > most(81));
        assert!(unfound(256) * BigUint::from(10_u8).pow(28) < most(256));
        assert_eq!(unfound(2), most(2), "two are never enough");
        assert_eq!(MIN_FOUND_TWINS, 3);
    }

    proptest! {
        #[test]
        fn twins_are_those_of_each_two_samples(
            hashes in prop::collection::vec((0..250_u128, 0..3_usize), 0..900),
            others in prop::collection::vec((0..250_u128, 0..2_usize), 0..600),
        ) {
            let mut samples = vec![BTreeMap::new(); 3];
            hashes.into_iter().for_each(|(hash, number)| {
                samples[number].insert(hash, if hash % 50 == 0 { 2 } else { 1 });
            });
            let mut theirs = vec![BTreeMap::new(); 2];
            others.into_iter().for_each(|(hash, number)| {
                theirs[number].insert(hash, 1);
            });
            let all = |of: Vec<BTreeMap<u128, u64>>| {
                of.into_iter().map(|of| sample(&of.into_iter().collect::<Vec<_>>())).collect::<Vec<_>>()
            };
            let (own, theirs) = (all(samples), all(theirs));
            let expected = own.iter().any(|own| theirs.iter().any(|theirs| have_common_twins(own, theirs)));
            prop_assert_eq!(alike(&own, &theirs), expected);
        }
    }

    #[test]
    fn twins_between_tables_make_them_alike() {
        let once: Vec<(u128, u64)> = (0..100).map(|hash| (hash, 1)).collect();
        let twice: Vec<(u128, u64)> = (200..300).map(|hash| (hash, 2)).collect();
        let both = [&once[..], &twice].concat();
        assert!(alike(&[sample(&once)], &[sample(&twice), sample(&once)]));
        assert!(!alike(&[sample(&once)], &[sample(&once[..80])]), "too few twins");
        assert!(!alike(&[sample(&both)], &[sample(&once)]), "as many twins within");
        let cut = SignatureSample { is_cut: true, ..sample(&once[..50]) };
        assert!(!alike(&[cut], &[sample(&once)]), "above the end of a sample nothing is known");
    }
}
