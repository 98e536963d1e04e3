//! Buckets with few repeated values of the other attributes.
//!
//! Rows of equal primary value are chosen as buckets are filled, and exchanged between buckets afterwards. Neither changes the
//! primary values of a bucket.

use std::collections::BTreeMap;

use super::{RowsByGroup, SensitiveCodesByRow};
use crate::control::{Cancelled, Control};
use crate::random::RandomStream;

/// Largest number of rows of equal primary value examined for a slot.
const CANDIDATE_ROWS: usize = 32;
/// Largest number of buckets tried for an exchange.
const EXCHANGE_PARTNERS: usize = 32;
/// Largest number of passes over all buckets.
const MAX_EXCHANGE_SWEEPS: usize = 5;

/// Number of rows of a bucket that repeat a value, over all other attributes.
#[must_use]
pub fn repeats(sensitive: &SensitiveCodesByRow, group: &[u32]) -> usize {
    let distinct = |codes: &Vec<u32>| {
        let mut values: Vec<u32> = group.iter().map(|&row| codes[row as usize]).collect();
        values.sort_unstable();
        values.dedup();
        values.len()
    };
    sensitive.others.iter().map(|codes| group.len() - distinct(codes)).sum()
}

/// Refills every bucket with rows of its primary values, each time with one that repeats the fewest values so far.
///
/// # Errors
/// [`Cancelled`]
pub fn fresh_pick(
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
///
/// # Errors
/// [`Cancelled`]
pub fn fresh_swap(
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
    partners.sort_by_key(|&(other, count)| (std::cmp::Reverse(count), other));
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
