//! Rows of marks by which tables are alike. Those that find tables have a row each; the signatures of a sample are one value, too.

use std::collections::BTreeMap;

use serde::Deserialize;
use sqlx::FromRow;

use super::numbers::number;
use crate::people::{CoverageId, KeyedHash, Signature, SignatureSample};
use crate::ports::{AlikeKind, AlikeMark, CommonMark, StoreError};

/// A signature as it is kept: its hash, and its rows.
const HASH_BYTES: usize = 16;
const SIGNATURE_BYTES: usize = HASH_BYTES + 8;

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

/// A sample of a coverage that was asked for.
#[derive(FromRow)]
pub(in crate::store) struct SampleRow {
    pub(in crate::store) id: i64,
    pub(in crate::store) sample: i64,
    #[sqlx(json)]
    pub(in crate::store) cuts: Vec<bool>,
    /// None of coverages from when each mark had a row.
    pub(in crate::store) signatures: Option<Vec<u8>>,
}

impl SampleRow {
    /// The sample, given the marks of the coverage that have rows where it has no value; none if the coverage has fewer samples.
    /// Those of a chain are replaced by those of its next night, which may have fewer columns.
    pub(in crate::store) fn sample(&self, indexed: &[AlikeMark]) -> Result<Option<SignatureSample>, StoreError> {
        let number: u16 = number(self.sample)?;
        let Some(&is_cut) = self.cuts.get(usize::from(number)) else { return Ok(None) };
        let own = indexed.iter().filter(|mark| mark.kind == AlikeKind::Signature(number));
        let of_rows = own.map(|mark| Signature { hash: mark.hash, rows: mark.weight });
        let lowest = self.signatures.as_deref().map_or_else(|| Ok(of_rows.collect()), signatures_in)?;
        Ok(Some(SignatureSample { lowest, is_cut }))
    }
}

fn signatures_in(bytes: &[u8]) -> Result<Vec<Signature>, StoreError> {
    let (signatures, rest) = bytes.as_chunks::<SIGNATURE_BYTES>();
    if !rest.is_empty() {
        return Err(StoreError::corrupt("a list of signatures is cut"));
    }
    let signature = |bytes: &[u8; SIGNATURE_BYTES]| {
        let (hash, rows) = bytes.split_first_chunk::<HASH_BYTES>().unwrap_or((&[0; HASH_BYTES], &[]));
        let rows = rows.iter().fold(0, |rows, byte| rows << 8 | u64::from(*byte));
        Signature { hash: KeyedHash::from_bytes(*hash), rows }
    };
    Ok(signatures.iter().map(signature).collect())
}

/// The samples of a coverage: the signatures of each, once and in order.
#[derive(Default)]
pub(in crate::store) struct KeptSamples(BTreeMap<u16, Vec<Signature>>);

impl KeptSamples {
    /// Those of values with their numbers.
    pub(in crate::store) fn from_rows(rows: Vec<(i64, Vec<u8>)>) -> Result<Self, StoreError> {
        let sample = |(sample, bytes): (i64, Vec<u8>)| Ok((number(sample)?, signatures_in(&bytes)?));
        rows.into_iter().map(sample).collect::<Result<_, StoreError>>().map(Self)
    }

    /// The values with their numbers.
    pub(in crate::store) fn to_rows(&self) -> Vec<(u16, Vec<u8>)> {
        let bytes = |of: &Signature| of.hash.to_bytes().into_iter().chain(of.rows.to_be_bytes());
        self.0.iter().map(|(sample, of)| (*sample, of.iter().flat_map(bytes).collect())).collect()
    }

    /// Adds the signatures among marks. What is there already stays.
    pub(in crate::store) fn add(&mut self, marks: &[AlikeMark]) {
        for AlikeMark { hash, kind, weight } in marks {
            if let AlikeKind::Signature(sample) = kind {
                self.0.entry(*sample).or_default().push(Signature { hash: *hash, rows: *weight });
            }
        }
        for sample in self.0.values_mut() {
            sample.sort_by_key(|of| of.hash);
            sample.dedup_by_key(|of| of.hash);
        }
    }

    /// All marks of a coverage, given those that have rows: by kind and hash.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] where the rows are not those of the signatures that find tables.
    pub(in crate::store) fn with_indexed(&self, indexed: Vec<AlikeMark>) -> Result<Vec<AlikeMark>, StoreError> {
        if self.0.is_empty() {
            return Ok(indexed);
        }
        let mark =
            |sample, of: &Signature| AlikeMark { hash: of.hash, kind: AlikeKind::Signature(sample), weight: of.rows };
        let own = self.0.iter().flat_map(|(sample, of)| of.iter().map(move |of| mark(*sample, of)));
        let own: Vec<AlikeMark> = own.collect();
        let (blocks, found): (Vec<_>, Vec<_>) =
            indexed.into_iter().partition(|mark: &AlikeMark| mark.kind == AlikeKind::Block);
        if !own.iter().filter(|mark| mark.is_indexed()).eq(&found) {
            return Err(StoreError::corrupt("the signatures of a coverage are not those that find it"));
        }
        Ok([blocks, own].concat())
    }
}
