//! Rows of marks by which tables are alike. Those that find tables have a row each; the signatures of a coverage are one value, too.

use serde::Deserialize;

use crate::people::{CoverageId, KeyedHash, Signature, SignatureSample};
use crate::ports::{AlikeKind, AlikeMark, CommonMark, StoreError};

/// A signature as it is kept: its hash, the number of its kind, and its rows.
const HASH_BYTES: usize = 16;
const KIND_BYTES: usize = 2;
const SIGNATURE_BYTES: usize = HASH_BYTES + KIND_BYTES + 8;

/// A mark with a row of its own.
#[derive(Deserialize)]
pub(in crate::store) struct IndexedMarkRow {
    pub(in crate::store) hash: KeyedHash,
    pub(in crate::store) kind: i64,
    pub(in crate::store) weight: i64,
}

impl TryFrom<IndexedMarkRow> for AlikeMark {
    type Error = StoreError;

    fn try_from(row: IndexedMarkRow) -> Result<Self, StoreError> {
        let IndexedMarkRow { hash, kind, weight } = row;
        Ok(Self { hash, kind: AlikeKind::from_number(kind)?, weight: weight.try_into().map_err(StoreError::corrupt)? })
    }
}

/// A coverage that has a mark, the kind of the mark there, and 1 if it is live.
#[derive(Clone, Copy, Deserialize)]
pub(in crate::store) struct MarkHolder(pub(in crate::store) i64, pub(in crate::store) i64, pub(in crate::store) i64);

/// A mark with its holders: all pending ones, and [`LIVE_HOLDERS`] live ones at most.
#[derive(Deserialize)]
pub(in crate::store) struct CommonMarkRow(pub(in crate::store) KeyedHash, pub(in crate::store) Vec<MarkHolder>);

/// The number of live coverages from which on a mark says nothing of any. Announced ones do not count: there are only as many as
/// jobs run, and each of these could hide the others.
pub(in crate::store) const LIVE_HOLDERS: i64 = 6;

/// What is held in common, by coverage, kind and hash.
pub(in crate::store) fn common_marks(found: Vec<CommonMarkRow>) -> Result<Vec<CommonMark>, StoreError> {
    let mut common = Vec::new();
    for CommonMarkRow(hash, holders) in found {
        let live: i64 = holders.iter().map(|MarkHolder(_, _, is_live)| is_live).sum();
        for MarkHolder(coverage, kind, is_live) in holders {
            if is_live == 0 || live < LIVE_HOLDERS {
                common.push(CommonMark { coverage: CoverageId(coverage), hash, kind: AlikeKind::from_number(kind)? });
            }
        }
    }
    common.sort_unstable_by_key(|of| (of.coverage, of.kind, of.hash));
    Ok(common)
}

/// The signatures of a coverage: each once in a sample, by sample and hash.
#[derive(Default)]
pub(in crate::store) struct KeptSignatures(Vec<AlikeMark>);

impl KeptSignatures {
    /// Those of a value.
    pub(in crate::store) fn from_bytes(bytes: &[u8]) -> Result<Self, StoreError> {
        let (signatures, rest) = bytes.as_chunks::<SIGNATURE_BYTES>();
        if !rest.is_empty() {
            return Err(StoreError::corrupt("a list of signatures is cut"));
        }
        let signature = |bytes: &[u8; SIGNATURE_BYTES]| {
            let number = |bytes: &[u8]| bytes.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
            let (hash, rest) = bytes.split_first_chunk::<HASH_BYTES>().unwrap_or((&[0; HASH_BYTES], &[]));
            let (sample, rows) = rest.split_at(KIND_BYTES);
            let kind = AlikeKind::Signature(number(sample) as u16);
            AlikeMark { hash: KeyedHash::from_bytes(*hash), kind, weight: number(rows) }
        };
        Ok(Self(signatures.iter().map(signature).collect()))
    }

    /// The value.
    pub(in crate::store) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.0.len() * SIGNATURE_BYTES);
        for AlikeMark { hash, kind, weight } in &self.0 {
            let AlikeKind::Signature(sample) = kind else { continue };
            bytes.extend(hash.to_bytes());
            bytes.extend(sample.to_be_bytes());
            bytes.extend(weight.to_be_bytes());
        }
        bytes
    }

    /// Adds the signatures among marks. What is there already stays.
    pub(in crate::store) fn add(&mut self, marks: &[AlikeMark]) {
        self.0.extend(marks.iter().filter(|mark| mark.kind != AlikeKind::Block));
        self.0.sort_by_key(|mark| (mark.kind, mark.hash));
        self.0.dedup_by_key(|mark| (mark.kind, mark.hash));
    }

    /// Them as marks.
    pub(in crate::store) fn into_marks(self) -> Vec<AlikeMark> {
        self.0
    }

    /// All marks of a coverage, given those that have rows: by kind and hash.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] where the rows are not those of the signatures that find tables.
    pub(in crate::store) fn with_indexed(self, indexed: Vec<AlikeMark>) -> Result<Vec<AlikeMark>, StoreError> {
        let (blocks, found): (Vec<_>, Vec<_>) =
            indexed.into_iter().partition(|mark: &AlikeMark| mark.kind == AlikeKind::Block);
        if !self.0.iter().filter(|mark| mark.is_indexed()).eq(&found) {
            return Err(StoreError::corrupt("the signatures of a coverage are not those that find it"));
        }
        Ok([blocks, self.0].concat())
    }
}

/// The samples of a coverage: as many as it has cuts.
pub(in crate::store) fn samples(cuts: &[bool], marks: Vec<AlikeMark>) -> Result<Vec<SignatureSample>, StoreError> {
    let sample = |&is_cut: &bool| SignatureSample { lowest: Vec::new(), is_cut };
    let mut samples: Vec<SignatureSample> = cuts.iter().map(sample).collect();
    for AlikeMark { hash, kind, weight } in marks {
        let AlikeKind::Signature(number) = kind else { continue };
        let sample = samples.get_mut(usize::from(number)).ok_or_else(|| StoreError::corrupt("a sample too many"))?;
        sample.lowest.push(Signature { hash, rows: weight });
    }
    Ok(samples)
}
