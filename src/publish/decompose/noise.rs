//! Noise: published values that no row of a bucket has, and that readers of the joint table cannot distinguish from true ones.
//!
//! Each noise value comes with the values that let its row be in the bucket, and another row of equal primary value in the place
//! of that row. Sets only grow, so that possible tuples stay possible.
//!
//! See `docs/spec/decompose.md#noise`.

use std::collections::BTreeMap;

use super::{PublishedSets, RowsByGroup, SensitiveCodesByRow, sets_of};
use crate::control::{Cancelled, Control};
use crate::random::RandomStream;

/// Largest number of rows of equal primary value examined for a row.
const NOISE_CANDIDATE_ROWS: usize = 64;

/// A value that was added to a set.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct NoiseValue {
    /// Index of the bucket at the time of the addition.
    pub group: usize,
    /// Index of the other attribute.
    pub attribute: usize,
    /// Code of the value.
    pub value: u32,
}

/// Buckets with noise in their sets.
#[derive(Clone, Debug)]
pub struct NoisySets {
    /// Rows of each bucket.
    pub groups: RowsByGroup,
    /// Published sets of each bucket.
    pub sets: PublishedSets,
    /// Added values. Buckets that were merged later keep their earlier numbers here.
    pub noise: Vec<NoiseValue>,
    /// Number of buckets that were merged with others.
    pub merged: usize,
}

/// Why a set stays too small.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoiseError {
    /// The job was cancelled.
    Cancelled,
    /// One bucket of all rows has too few values of this other attribute.
    TooFew {
        /// Index of the attribute.
        attribute: usize,
    },
}

impl From<Cancelled> for NoiseError {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

/// Adds values until every set is large enough, and merges buckets if nothing can be added.
///
/// # Errors
/// [`NoiseError`]
pub fn swap_noise(
    sensitive: &SensitiveCodesByRow,
    groups: RowsByGroup,
    wanted: &[u64],
    stream: &mut RandomStream,
    control: &Control,
) -> Result<NoisySets, NoiseError> {
    let sets = sets_of(sensitive, &groups);
    let mut noisy = NoisySets { groups, sets, noise: Vec::new(), merged: 0 };
    let mut search = ExchangeSearch::new(sensitive, &noisy.groups);
    let mut at = 0;
    'groups: while at < noisy.groups.len() {
        control.check()?;
        for (attribute, &wanted) in wanted.iter().enumerate() {
            while (noisy.sets[at][attribute].len() as u64) < wanted {
                control.check()?;
                let found = search.exchange(&noisy, at, attribute, stream);
                let Some(added) = found else {
                    merge(&mut noisy, at, attribute)?;
                    search.owner = owners(sensitive, &noisy.groups);
                    at = 0;
                    continue 'groups;
                };
                for noise in added {
                    noisy.sets[noise.group][noise.attribute].insert(noise.value);
                    noisy.noise.push(noise);
                }
            }
        }
        at += 1;
    }
    Ok(noisy)
}

/// Bucket of each row.
fn owners(sensitive: &SensitiveCodesByRow, groups: &RowsByGroup) -> Vec<usize> {
    let mut owner = vec![usize::MAX; sensitive.rows()];
    for (at, group) in groups.iter().enumerate() {
        group.iter().for_each(|&row| owner[row as usize] = at);
    }
    owner
}

/// Search for rows that could be exchanged.
struct ExchangeSearch<'a> {
    sensitive: &'a SensitiveCodesByRow,
    /// Rows with each primary value, rising.
    by_value: BTreeMap<u32, Vec<u32>>,
    /// Bucket of each row.
    owner: Vec<usize>,
}

impl<'a> ExchangeSearch<'a> {
    fn new(sensitive: &'a SensitiveCodesByRow, groups: &RowsByGroup) -> Self {
        let mut by_value: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for &row in groups.iter().flatten() {
            by_value.entry(sensitive.primary[row as usize]).or_default().push(row);
        }
        by_value.values_mut().for_each(|rows| rows.sort_unstable());
        Self { sensitive, by_value, owner: owners(sensitive, groups) }
    }

    /// Smallest additions that let a row with a new value be in the bucket, and a row of the bucket in its place.
    fn exchange(
        &self,
        noisy: &NoisySets,
        group: usize,
        attribute: usize,
        stream: &mut RandomStream,
    ) -> Option<Vec<NoiseValue>> {
        let missing = |group: usize, row: u32| {
            let sets = &noisy.sets[group];
            (0..self.sensitive.others.len()).filter_map(move |attribute| {
                let value = self.sensitive.others[attribute][row as usize];
                (!sets[attribute].contains(&value)).then_some(NoiseValue { group, attribute, value })
            })
        };
        let mut best: Vec<Vec<NoiseValue>> = Vec::new();
        for &row in &noisy.groups[group] {
            let rows = self.by_value.get(&self.sensitive.primary[row as usize]).map_or(&[][..], |rows| &rows[..]);
            let new = |other: &&u32| {
                let value = self.sensitive.others[attribute][**other as usize];
                self.owner[**other as usize] != group && !noisy.sets[group][attribute].contains(&value)
            };
            // from a position that depends on the row, so that none is preferred
            let from = if rows.len() > NOISE_CANDIDATE_ROWS { stream.below(rows.len() as u32) as usize } else { 0 };
            for &other in rows[from..].iter().chain(&rows[..from]).filter(new).take(NOISE_CANDIDATE_ROWS) {
                let mut added: Vec<NoiseValue> =
                    missing(group, other).chain(missing(self.owner[other as usize], row)).collect();
                added.sort_unstable();
                added.dedup();
                let least = best.first().map_or(usize::MAX, Vec::len);
                if added.len() < least {
                    best.clear();
                }
                if added.len() <= least {
                    best.push(added);
                }
            }
        }
        if best.is_empty() {
            return None;
        }
        let chosen = stream.below(best.len() as u32) as usize;
        Some(best.swap_remove(chosen))
    }
}

/// Merges a bucket with the one that brings most new values of an attribute. The share of a primary value does not exceed the
/// larger of both.
fn merge(noisy: &mut NoisySets, at: usize, attribute: usize) -> Result<(), NoiseError> {
    let together = |other: usize| noisy.sets[at][attribute].union(&noisy.sets[other][attribute]).count();
    let others = (0..noisy.groups.len()).filter(|&other| other != at);
    let other = others.max_by_key(|&other| (together(other), std::cmp::Reverse(other)));
    let other = other.ok_or(NoiseError::TooFew { attribute })?;
    let (first, second) = (at.min(other), at.max(other));
    let (rows, sets) = (noisy.groups.remove(second), noisy.sets.remove(second));
    noisy.groups[first].extend(rows);
    noisy.sets[first].iter_mut().zip(sets).for_each(|(set, more)| set.extend(more));
    noisy.merged += 1;
    Ok(())
}
