//! Buckets with few repeated values of the other attributes.
//!
//! Rows of equal primary value are chosen as buckets are filled, and exchanged between buckets afterwards. Neither changes the
//! primary values of a bucket.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::repeats::{FewestRepeats, RowValueCounts, repeats};
use super::{RowsByGroup, SensitiveCodesByRow};
use crate::control::{Cancelled, Control};
use crate::random::RandomStream;

/// Largest number of rows of equal primary value examined for a slot.
const CANDIDATE_ROWS: usize = 32;
/// Largest number of buckets tried for an exchange.
const EXCHANGE_PARTNERS: usize = 32;
/// Largest number of passes over all buckets.
const MAX_EXCHANGE_SWEEPS: usize = 5;

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
    let mut values = RowValueCounts::new(sensitive);
    for group in groups {
        control.check()?;
        let mut of_primary: Vec<(usize, u32)> = group
            .iter()
            .map(|&row| sensitive.primary[row as usize])
            .map(|value| (lists.get(&value).map_or(0, Vec::len), value))
            .collect();
        // the scarcest primary value has the least choice and comes first
        of_primary.sort_unstable();
        let mut rows: Vec<u32> = Vec::with_capacity(group.len());
        values.clear();
        for (_, value) in of_primary {
            let Some(list) = lists.get_mut(&value) else { continue };
            // from the end; the first of equal ones wins
            let (mut best, mut fewest) = (None, usize::MAX);
            for (at, &row) in list.iter().enumerate().rev().take(CANDIDATE_ROWS) {
                let repeated = values.repeated(row);
                if repeated < fewest {
                    (best, fewest) = (Some(at), repeated);
                }
                if fewest == 0 {
                    break;
                }
            }
            if let Some(at) = best {
                let row = list.swap_remove(at);
                values.add(row);
                rows.push(row);
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
    let mut search = SwapSearch::new(sensitive, groups);
    for _ in 0..MAX_EXCHANGE_SWEEPS {
        let before = search.moves;
        for at in 0..search.groups.len() {
            control.check()?;
            if search.repeats[at] == 0 {
                continue;
            }
            let partners = search.partners(at);
            if search.is_settled(at, &partners) {
                continue;
            }
            while search.repeats[at] > 0 && search.improved(at, &partners) {
                control.check()?;
            }
            search.tried[at] = Some(search.moves);
        }
        if search.moves == before {
            break;
        }
    }
    Ok(search.groups)
}

/// Search for exchanges.
struct SwapSearch<'a> {
    sensitive: &'a SensitiveCodesByRow,
    groups: RowsByGroup,
    /// Number of repeated values of each bucket.
    repeats: Vec<usize>,
    fewest: FewestRepeats,
    /// Buckets of each primary value, which exchanges do not change.
    holders: BTreeMap<u32, Vec<u32>>,
    /// Number of exchanges so far, and when each bucket took part in the last one.
    moves: u64,
    moved: Vec<u64>,
    /// When no exchange with the partners of a bucket was found.
    tried: Vec<Option<u64>>,
    /// Number of primary values that a bucket shares with each other one; 0 between calls.
    shared: Vec<u32>,
    here: RowValueCounts<'a>,
    there: RowValueCounts<'a>,
}

impl<'a> SwapSearch<'a> {
    fn new(sensitive: &'a SensitiveCodesByRow, groups: RowsByGroup) -> Self {
        let mut holders: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (at, group) in (0..).zip(&groups) {
            for &row in group {
                let of = holders.entry(sensitive.primary[row as usize]).or_default();
                if of.last() != Some(&at) {
                    of.push(at);
                }
            }
        }
        Self {
            sensitive,
            repeats: groups.iter().map(|group| repeats(sensitive, group)).collect(),
            fewest: FewestRepeats::new(sensitive, &groups),
            holders,
            moves: 0,
            moved: vec![0; groups.len()],
            tried: vec![None; groups.len()],
            shared: vec![0; groups.len()],
            here: RowValueCounts::new(sensitive),
            there: RowValueCounts::new(sensitive),
            groups,
        }
    }

    /// The buckets that share most primary values with a bucket.
    fn partners(&mut self, at: usize) -> Vec<u32> {
        let mut partners: Vec<u32> = Vec::new();
        for &row in &self.groups[at] {
            // of a value in very many buckets, the next ones after this bucket
            let of = self.holders.get(&self.sensitive.primary[row as usize]).map_or(&[][..], |of| &of[..]);
            let from = of.partition_point(|&other| (other as usize) < at);
            let turn = of[from..].iter().chain(&of[..from]).take(4 * EXCHANGE_PARTNERS);
            for &other in turn.filter(|&&other| other as usize != at) {
                let shared = &mut self.shared[other as usize];
                if *shared == 0 {
                    partners.push(other);
                }
                *shared += 1;
            }
        }
        let key = |other: &u32| (Reverse(self.shared[*other as usize]), *other);
        if partners.len() > EXCHANGE_PARTNERS {
            partners.select_nth_unstable_by_key(EXCHANGE_PARTNERS, key);
        }
        let most = partners.len().min(EXCHANGE_PARTNERS);
        partners[..most].sort_unstable_by_key(key);
        partners.iter().for_each(|&other| self.shared[other as usize] = 0);
        partners.truncate(most);
        partners
    }

    /// Whether no exchange was found since the last one that concerned a bucket or its partners.
    fn is_settled(&self, at: usize, partners: &[u32]) -> bool {
        let since =
            |tried: u64| self.moved[at] <= tried && partners.iter().all(|&other| self.moved[other as usize] <= tried);
        self.tried[at].is_some_and(since)
    }

    /// Exchanges rows with the first partner with which fewer values repeat then.
    fn improved(&mut self, at: usize, partners: &[u32]) -> bool {
        let is_best =
            |search: &Self, bucket: usize| search.repeats[bucket] == search.fewest.of(search.groups[bucket].len());
        let best = is_best(self, at);
        self.here.fill(&self.groups[at]);
        for &other in partners {
            let other = other as usize;
            if best && is_best(self, other) {
                continue;
            }
            self.there.fill(&self.groups[other]);
            if let Some(exchange) = self.exchange(at, other) {
                for (a, b) in exchange {
                    let row = self.groups[at][a];
                    self.groups[at][a] = std::mem::replace(&mut self.groups[other][b], row);
                }
                self.moves += 1;
                for bucket in [at, other] {
                    self.repeats[bucket] = repeats(self.sensitive, &self.groups[bucket]);
                    self.moved[bucket] = self.moves;
                }
                return true;
            }
        }
        false
    }

    /// One or two pairs of positions of rows whose exchange leaves fewer repeats; `None` if there are none.
    fn exchange(&mut self, at: usize, other: usize) -> Option<Vec<(usize, usize)>> {
        let (here, there) = (&self.groups[at], &self.groups[other]);
        let primary = |row: u32| self.sensitive.primary[row as usize];
        let pairs: Vec<(usize, usize)> = (0..here.len())
            .flat_map(|a| (0..there.len()).map(move |b| (a, b)))
            .filter(|&(a, b)| primary(here[a]) == primary(there[b]))
            .collect();
        let (of_here, of_there) = (&mut self.here, &mut self.there);
        let mut exchanged = |(a, b): (usize, usize), back: bool| {
            let (out, into) = if back { (there[b], here[a]) } else { (here[a], there[b]) };
            of_here.exchange(out, into) + of_there.exchange(into, out)
        };
        for &pair in &pairs {
            let change = exchanged(pair, false);
            exchanged(pair, true);
            if change < 0 {
                return Some(vec![pair]);
            }
        }
        for (number, &first) in pairs.iter().enumerate() {
            let change = exchanged(first, false);
            let apart = |second: &&(usize, usize)| second.0 != first.0 && second.1 != first.1;
            for &second in pairs[number + 1..].iter().filter(apart) {
                let both = change + exchanged(second, false);
                exchanged(second, true);
                if both < 0 {
                    exchanged(first, true);
                    return Some(vec![first, second]);
                }
            }
            exchanged(first, true);
        }
        None
    }
}
