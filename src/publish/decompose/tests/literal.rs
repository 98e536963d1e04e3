//! Choices of rows and noise as the specification describes them: every row is looked at, and every exchange is made to be judged.
//!
//! The same stream leads to the same choices.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::super::{NoiseError, NoiseValue, RowsByGroup, SensitiveCodesByRow, repeats};
use crate::control::{Cancelled, Control};
use crate::random::RandomStream;

const CANDIDATE_ROWS: usize = 32;
const EXCHANGE_PARTNERS: usize = 32;
const MAX_EXCHANGE_SWEEPS: usize = 5;
const NOISE_CANDIDATE_ROWS: usize = 64;

/// Values of each bucket and other attribute.
type Sets = Vec<Vec<BTreeSet<u32>>>;

/// Buckets with noise in their sets.
pub(super) struct NoisySets {
    pub(super) groups: RowsByGroup,
    pub(super) sets: Sets,
    /// Added values; buckets by their numbers at that time.
    pub(super) noise: Vec<NoiseValue>,
    pub(super) merged: usize,
}

/// Values of the rows of each bucket.
fn sets_of(sensitive: &SensitiveCodesByRow, groups: &RowsByGroup) -> Sets {
    let set = |group: &Vec<u32>, codes: &Vec<u32>| group.iter().map(|&row| codes[row as usize]).collect();
    groups.iter().map(|group| sensitive.others.iter().map(|codes| set(group, codes)).collect()).collect()
}

/// Refills every bucket with rows of its primary values, each time with one that repeats the fewest values so far.
pub(super) fn fresh_pick(
    sensitive: &SensitiveCodesByRow,
    groups: &RowsByGroup,
    stream: &mut RandomStream,
    control: &Control,
) -> Result<RowsByGroup, Cancelled> {
    let mut lists: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for &row in groups.iter().flatten() {
        lists.entry(sensitive.primary[row as usize]).or_default().push(row);
    }
    for list in lists.values_mut() {
        control.check()?;
        list.sort_unstable();
        stream.shuffle(list);
    }
    let mut picked: RowsByGroup = Vec::with_capacity(groups.len());
    for group in groups {
        control.check()?;
        let mut values: Vec<u32> = group.iter().map(|&row| sensitive.primary[row as usize]).collect();
        // the scarcest primary value has the least choice and comes first
        values.sort_by_key(|value| (lists[value].len(), *value));
        let mut rows: Vec<u32> = Vec::with_capacity(group.len());
        for value in values {
            let Some(list) = lists.get_mut(&value) else { continue };
            let repeated = |&row: &u32| {
                let had = |codes: &&Vec<u32>| rows.iter().any(|&r| codes[r as usize] == codes[row as usize]);
                sensitive.others.iter().filter(had).count()
            };
            // from the end; the first of equal ones wins
            let tried = list.iter().enumerate().rev().take(CANDIDATE_ROWS);
            if let Some((at, _)) = tried.map(|(at, row)| (at, repeated(row))).min_by_key(|&(_, repeated)| repeated) {
                rows.push(list.swap_remove(at));
            }
        }
        picked.push(rows);
    }
    Ok(picked)
}

/// Exchanges one or two rows of equal primary value between two buckets while fewer values repeat.
pub(super) fn fresh_swap(
    sensitive: &SensitiveCodesByRow,
    groups: RowsByGroup,
    control: &Control,
) -> Result<RowsByGroup, Cancelled> {
    let mut groups = groups;
    // buckets of each primary value, which exchanges do not change
    let mut holders: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (at, group) in groups.iter().enumerate() {
        for &row in group {
            let of = holders.entry(sensitive.primary[row as usize]).or_default();
            if of.last() != Some(&at) {
                of.push(at);
            }
        }
    }
    for _ in 0..MAX_EXCHANGE_SWEEPS {
        let mut moved = false;
        for at in 0..groups.len() {
            control.check()?;
            while repeats(sensitive, &groups[at]) > 0 && improved(sensitive, &mut groups, at, &holders) {
                moved = true;
                control.check()?;
            }
        }
        if !moved {
            break;
        }
    }
    Ok(groups)
}

/// Exchanges rows with the bucket that shares most primary values, if fewer values repeat then.
fn improved(
    sensitive: &SensitiveCodesByRow,
    groups: &mut RowsByGroup,
    at: usize,
    holders: &BTreeMap<u32, Vec<usize>>,
) -> bool {
    let mut shared: BTreeMap<usize, usize> = BTreeMap::new();
    for &row in &groups[at] {
        // of a value in very many buckets, the next ones after this bucket
        let of = holders.get(&sensitive.primary[row as usize]).map_or(&[][..], |of| &of[..]);
        let from = of.partition_point(|&other| other < at);
        for &other in of[from..].iter().chain(&of[..from]).take(4 * EXCHANGE_PARTNERS).filter(|&&other| other != at) {
            *shared.entry(other).or_default() += 1;
        }
    }
    let mut partners: Vec<(usize, usize)> = shared.into_iter().collect();
    partners.sort_by_key(|&(other, count)| (Reverse(count), other));
    for (other, _) in partners.into_iter().take(EXCHANGE_PARTNERS) {
        let (here, there) = (&groups[at], &groups[other]);
        let before = repeats(sensitive, here) + repeats(sensitive, there);
        let primary = |row: u32| sensitive.primary[row as usize];
        let pairs: Vec<(usize, usize)> = (0..here.len())
            .flat_map(|a| (0..there.len()).map(move |b| (a, b)))
            .filter(|&(a, b)| primary(here[a]) == primary(there[b]))
            .collect();
        let ones = pairs.iter().map(|&pair| vec![pair]);
        let twos = pairs.iter().enumerate().flat_map(|(at, &first)| {
            let apart = move |second: &&(usize, usize)| second.0 != first.0 && second.1 != first.1;
            pairs[at + 1..].iter().filter(apart).map(move |&second| vec![first, second])
        });
        for exchange in ones.chain(twos) {
            let (mut here, mut there) = (here.clone(), there.clone());
            for (a, b) in exchange {
                std::mem::swap(&mut here[a], &mut there[b]);
            }
            if repeats(sensitive, &here) + repeats(sensitive, &there) < before {
                (groups[at], groups[other]) = (here, there);
                return true;
            }
        }
    }
    false
}

/// Adds values until every set is large enough, and merges buckets if nothing can be added.
pub(super) fn swap_noise(
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
                let mut best = search.best(&noisy, at, attribute, stream);
                if best.is_empty() {
                    merge(&mut noisy, at, attribute)?;
                    search.owner = owners(sensitive, &noisy.groups);
                    at = 0;
                    continue 'groups;
                }
                while !best.is_empty() && (noisy.sets[at][attribute].len() as u64) < wanted {
                    let (row, other) = best.swap_remove(stream.below(best.len() as u32) as usize);
                    if noisy.sets[at][attribute].contains(&sensitive.others[attribute][other as usize]) {
                        continue;
                    }
                    for noise in search.added(&noisy, at, row, other) {
                        noisy.sets[noise.group][noise.attribute].insert(noise.value);
                        noisy.noise.push(noise);
                    }
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

    /// The rows of a bucket, each with one of a new value in another bucket, whose exchange adds the fewest values.
    fn best(&self, noisy: &NoisySets, group: usize, attribute: usize, stream: &mut RandomStream) -> Vec<(u32, u32)> {
        let (mut best, mut least) = (Vec::new(), usize::MAX);
        for &row in &noisy.groups[group] {
            let rows = self.by_value.get(&self.sensitive.primary[row as usize]).map_or(&[][..], |rows| &rows[..]);
            let new = |other: &&u32| {
                let value = self.sensitive.others[attribute][**other as usize];
                self.owner[**other as usize] != group && !noisy.sets[group][attribute].contains(&value)
            };
            // from a position that depends on the row, so that none is preferred
            let from = if rows.len() > NOISE_CANDIDATE_ROWS { stream.below(rows.len() as u32) as usize } else { 0 };
            for &other in rows[from..].iter().chain(&rows[..from]).filter(new).take(NOISE_CANDIDATE_ROWS) {
                let added = self.added(noisy, group, row, other).len();
                if added < least {
                    best.clear();
                    least = added;
                }
                if added == least {
                    best.push((row, other));
                }
            }
        }
        best
    }

    /// The values that an exchange adds, attribute by attribute, first those of the bucket.
    fn added(&self, noisy: &NoisySets, group: usize, row: u32, other: u32) -> Vec<NoiseValue> {
        let missing = |group: usize, attribute: usize, row: u32| {
            let value = self.sensitive.others[attribute][row as usize];
            (!noisy.sets[group][attribute].contains(&value)).then_some(NoiseValue { group, attribute, value })
        };
        let owner = self.owner[other as usize];
        let of = |attribute| missing(group, attribute, other).into_iter().chain(missing(owner, attribute, row));
        (0..self.sensitive.others.len()).flat_map(of).collect()
    }
}

/// Merges a bucket with the one that brings most new values of an attribute. The share of a primary value does not exceed the
/// larger of both.
fn merge(noisy: &mut NoisySets, at: usize, attribute: usize) -> Result<(), NoiseError> {
    let together = |other: usize| noisy.sets[at][attribute].union(&noisy.sets[other][attribute]).count();
    let others = (0..noisy.groups.len()).filter(|&other| other != at);
    let other = others.max_by_key(|&other| (together(other), Reverse(other)));
    let other = other.ok_or(NoiseError::TooFew { attribute })?;
    let (first, second) = (at.min(other), at.max(other));
    let (rows, sets) = (noisy.groups.remove(second), noisy.sets.remove(second));
    noisy.groups[first].extend(rows);
    noisy.sets[first].iter_mut().zip(sets).for_each(|(set, more)| set.extend(more));
    noisy.merged += 1;
    Ok(())
}
