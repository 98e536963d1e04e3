//! Kinds of rows: rows of one kind have equal sensitive values.

use std::collections::HashMap;

use ahash::RandomState;

use super::codes::{RowsByGroup, SensitiveCodesByRow};
use crate::control::{Cancelled, Control};

/// The kinds of the rows of buckets.
pub(super) struct RowKinds {
    /// Values of the other attributes, kind by kind.
    values: Vec<u32>,
    attributes: usize,
    /// Primary values, rising.
    pub(super) primaries: Vec<u32>,
    /// For each primary value, its kinds.
    pub(super) of_primary: Vec<Vec<u32>>,
    /// For each primary value, the buckets with it.
    pub(super) holders: Vec<Vec<Holder>>,
}

/// The rows of a bucket with one primary value.
pub(super) struct Holder {
    pub(super) group: u32,
    /// Number of rows.
    pub(super) rows: u32,
    /// One of the kinds of these rows, and the others.
    pub(super) kind: u32,
    pub(super) more: Vec<u32>,
}

impl RowKinds {
    pub(super) fn new(
        sensitive: &SensitiveCodesByRow,
        groups: &RowsByGroup,
        control: &Control,
    ) -> Result<Self, Cancelled> {
        let (kind_of, examples) = numbered(sensitive, groups, control)?;
        let mut primaries: Vec<u32> = examples.iter().map(|&row| sensitive.primary[row as usize]).collect();
        let of_kind = primaries.clone();
        primaries.sort_unstable();
        primaries.dedup();
        let number: HashMap<u32, usize, RandomState> = primaries.iter().copied().zip(0..).collect();
        let mut of_primary = vec![Vec::new(); primaries.len()];
        for (kind, primary) in (0..).zip(&of_kind) {
            of_primary[number[primary]].push(kind);
        }
        let mut holders: Vec<Vec<Holder>> = primaries.iter().map(|_| Vec::new()).collect();
        let mut of_bucket: Vec<(u32, u32)> = Vec::new();
        let mut kinds = kind_of.into_iter();
        for (group, rows) in (0..).zip(groups) {
            control.check()?;
            of_bucket.clear();
            of_bucket.extend(kinds.by_ref().take(rows.len()).map(|kind| (of_kind[kind as usize], kind)));
            of_bucket.sort_unstable();
            for alike in of_bucket.chunk_by(|a, b| a.0 == b.0) {
                let mut more: Vec<u32> =
                    alike.iter().map(|(_, kind)| *kind).filter(|kind| *kind != alike[0].1).collect();
                more.dedup();
                let (rows, kind) = (alike.len() as u32, alike[0].1);
                holders[number[&alike[0].0]].push(Holder { group, rows, kind, more });
            }
        }
        let attributes = sensitive.others.len();
        let values = examples.iter().flat_map(|&row| sensitive.others.iter().map(move |codes| codes[row as usize]));
        Ok(Self { values: values.collect(), attributes, primaries, of_primary, holders })
    }

    /// Values of the other attributes of a kind.
    pub(super) fn values(&self, kind: u32) -> &[u32] {
        &self.values[kind as usize * self.attributes..][..self.attributes]
    }

    /// Number of pairs of a bucket and a kind of row with a common primary value.
    pub(super) fn pairs(&self) -> u64 {
        let pairs = self.of_primary.iter().zip(&self.holders).map(|(kinds, of)| kinds.len() as u64 * of.len() as u64);
        pairs.fold(0, u64::saturating_add)
    }
}

/// The kind of each row, bucket by bucket, and a row of each kind.
fn numbered(
    sensitive: &SensitiveCodesByRow,
    groups: &RowsByGroup,
    control: &Control,
) -> Result<(Vec<u32>, Vec<u32>), Cancelled> {
    let mut kinds: Vec<u32> = groups.iter().flatten().map(|&row| sensitive.primary[row as usize]).collect();
    let mut examples: Vec<u32> = Vec::new();
    for codes in sensitive.others.iter().chain(sensitive.others.is_empty().then_some(&sensitive.primary)) {
        control.check()?;
        let mut numbers: HashMap<u64, u32, RandomState> = HashMap::default();
        examples.clear();
        for (kind, &row) in kinds.iter_mut().zip(groups.iter().flatten()) {
            let key = u64::from(*kind) << 32 | u64::from(codes[row as usize]);
            *kind = *numbers.entry(key).or_insert_with(|| {
                examples.push(row);
                examples.len() as u32 - 1
            });
        }
    }
    Ok((kinds, examples))
}
