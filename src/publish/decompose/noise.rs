//! Noise: published values that no row of a bucket has, and that readers of the joint table cannot distinguish from true ones.
//!
//! Each noise value comes with the values that let its row be in the bucket, and another row of equal primary value in the place
//! of that row. Sets only grow, so that possible tuples stay possible.
//!
//! See `docs/spec/decompose.md#noise`.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::alike::AlikeRows;
use super::codes::{PublishedSets, RowsByGroup, SensitiveCodesByRow, occurring};
use super::listed::ListedValues;
use crate::control::{Cancelled, Control};
use crate::random::RandomStream;

/// Largest number of rows of equal primary value examined for a row: as many as a word has bits.
const NOISE_CANDIDATE_ROWS: usize = 64;

/// A value that was added to a set.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct NoiseValue {
    /// Index of the bucket before buckets were merged.
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
    /// Added values, in the order of adding.
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
    let mut search = ExchangeSearch::new(sensitive, groups);
    let mut at = 0;
    'groups: while at < search.groups.len() {
        control.check()?;
        for (attribute, &wanted) in wanted.iter().enumerate() {
            while search.alive[at] && (search.listed[attribute].len(at) as u64) < wanted {
                control.check()?;
                if !search.exchange(at, attribute, wanted, stream) {
                    // the buckets before this one have enough values, and sets only grow
                    search.merge(at, attribute)?;
                    continue 'groups;
                }
            }
        }
        at += 1;
    }
    Ok(search.finish())
}

/// The rows that one row of a bucket may be exchanged with.
struct RowExchanges {
    row: u32,
    /// Where their positions begin.
    begin: usize,
    /// Fewest values that an exchange adds.
    least: u32,
    /// Which of them add no more than that.
    best: u64,
}

impl RowExchanges {
    /// The row with each position that adds no more than `least`.
    fn pairs(&self, found: &[u32]) -> impl Iterator<Item = (u32, u32)> {
        let rest = |best: &u64| Some(best & (best - 1)).filter(|rest| *rest > 0);
        let bits = std::iter::successors((self.best > 0).then_some(self.best), rest);
        bits.map(move |bits| (self.row, found[self.begin + bits.trailing_zeros() as usize]))
    }
}

/// Search for rows that could be exchanged.
struct ExchangeSearch<'a> {
    sensitive: &'a SensitiveCodesByRow,
    /// Rows of each bucket; none of a bucket that was merged into another.
    groups: RowsByGroup,
    alive: Vec<bool>,
    /// Listed values by other attribute.
    listed: Vec<ListedValues>,
    /// Upper bound of the number of values that a bucket lists, by other attribute.
    most_listed: Vec<usize>,
    /// Number of values that rows have, by other attribute.
    values: Vec<usize>,
    /// Rows with each primary value.
    alike: BTreeMap<u32, AlikeRows>,
    /// Added values, in the order of adding.
    noise: Vec<NoiseValue>,
    /// Memory of a search: the positions found for all rows of a bucket, and their exchanges.
    found: Vec<u32>,
    exchanges: Vec<RowExchanges>,
    /// Whether the bucket of a search lists a code; false between searches.
    marked: Vec<bool>,
}

impl<'a> ExchangeSearch<'a> {
    fn new(sensitive: &'a SensitiveCodesByRow, groups: RowsByGroup) -> Self {
        let listed: Vec<ListedValues> =
            sensitive.others.iter().map(|codes| ListedValues::of_rows(codes, &groups)).collect();
        let most = |listed: &ListedValues| (0..groups.len()).map(|at| listed.len(at)).max().unwrap_or(0);
        Self {
            sensitive,
            alive: vec![true; groups.len()],
            most_listed: listed.iter().map(most).collect(),
            values: sensitive.others.iter().map(|codes| occurring(codes, &groups)).collect(),
            listed,
            alike: AlikeRows::by_primary(sensitive, &groups),
            groups,
            noise: Vec::new(),
            found: Vec::new(),
            exchanges: Vec::new(),
            marked: Vec::new(),
        }
    }

    /// Adds values of an attribute, each with those that let a row of this value be in the bucket, and a row of the bucket in
    /// its place: as few as can be, until there are enough, or none is left that adds as few. False if there is no such row.
    fn exchange(&mut self, group: usize, attribute: usize, wanted: u64, stream: &mut RandomStream) -> bool {
        self.find(group, attribute, stream);
        let Some(least) = self.exchanges.iter().map(|of| of.least).min() else { return false };
        let best = self.exchanges.iter().filter(|of| of.least == least);
        let mut best: Vec<(u32, u32)> = best.flat_map(|of| of.pairs(&self.found)).collect();
        while !best.is_empty() && (self.listed[attribute].len(group) as u64) < wanted {
            let (row, place) = best.swap_remove(stream.below(best.len() as u32) as usize);
            let value = self.alike[&self.sensitive.primary[row as usize]].codes(attribute)[place as usize];
            if !self.listed[attribute].contains(group, value) {
                self.add(group, row, place);
            }
        }
        true
    }

    /// Finds rows with a new value for each row of a bucket.
    fn find(&mut self, group: usize, attribute: usize, stream: &mut RandomStream) {
        let Self { sensitive, listed, alike, found, exchanges, marked, .. } = self;
        found.clear();
        exchanges.clear();
        listed[attribute].mark(group, marked, true);
        for &row in &self.groups[group] {
            let Some(alike) = alike.get_mut(&sensitive.primary[row as usize]) else { continue };
            // from a position that depends on the row, so that none is preferred
            let rows = alike.len();
            let from = if rows > NOISE_CANDIDATE_ROWS { stream.below(rows as u32) as usize } else { 0 };
            let begin = found.len();
            // a bucket lists the values of its own rows, so that none of them is found
            alike.unlisted(attribute, from, NOISE_CANDIDATE_ROWS, marked, found);
            let mut added = [1; NOISE_CANDIDATE_ROWS];
            let (found, alike) = (&found[begin..], &*alike);
            let added = &mut added[..found.len()];
            for (at, listed) in listed.iter().enumerate() {
                let owners = found.iter().map(|&place| alike.owner(place));
                listed.add_missing(owners, sensitive.others[at][row as usize], added);
                if at != attribute {
                    let codes = found.iter().map(|&place| alike.codes(at)[place as usize]);
                    added
                        .iter_mut()
                        .zip(codes)
                        .for_each(|(added, code)| *added += u32::from(!listed.contains(group, code)));
                }
            }
            let Some(least) = added.iter().copied().min() else { continue };
            let best = added.iter().rev().fold(0, |best, &added| best << 1 | u64::from(added == least));
            exchanges.push(RowExchanges { row, begin, least, best });
        }
        listed[attribute].mark(group, marked, false);
    }

    /// Adds the values that an exchange needs.
    fn add(&mut self, group: usize, row: u32, place: u32) {
        let alike = &self.alike[&self.sensitive.primary[row as usize]];
        let owner = alike.owner(place);
        for (attribute, listed) in self.listed.iter_mut().enumerate() {
            let theirs = alike.codes(attribute)[place as usize];
            let own = self.sensitive.others[attribute][row as usize];
            for (group, value) in [(group, theirs), (owner, own)] {
                if !listed.contains(group, value) {
                    listed.insert(group, value);
                    self.most_listed[attribute] = self.most_listed[attribute].max(listed.len(group));
                    self.noise.push(NoiseValue { group, attribute, value });
                }
            }
        }
    }

    /// Merges a bucket with the one that brings most new values of an attribute. The share of a primary value does not exceed
    /// the larger of both.
    fn merge(&mut self, at: usize, attribute: usize) -> Result<(), NoiseError> {
        let listed = &self.listed[attribute];
        // no bucket can bring more
        let most = self.values[attribute].min(listed.len(at) + self.most_listed[attribute]);
        let mut best: Option<(usize, Reverse<usize>)> = None;
        for other in (0..self.groups.len()).filter(|&other| other != at && self.alive[other]) {
            let together = listed.len_together(at, other);
            best = best.max(Some((together, Reverse(other))));
            if together == most {
                break;
            }
        }
        let (_, Reverse(other)) = best.ok_or(NoiseError::TooFew { attribute })?;
        let (first, second) = (at.min(other), at.max(other));
        let rows = std::mem::take(&mut self.groups[second]);
        self.alive[second] = false;
        for &row in &rows {
            if let Some(alike) = self.alike.get_mut(&self.sensitive.primary[row as usize]) {
                alike.give(row, first);
            }
        }
        self.groups[first].extend(rows);
        for (listed, most) in self.listed.iter_mut().zip(&mut self.most_listed) {
            listed.absorb(first, second);
            *most = (*most).max(listed.len(first));
        }
        Ok(())
    }

    /// The buckets that are left, in their order.
    fn finish(self) -> NoisySets {
        let left = |at: &usize| self.alive[*at];
        let sets = (0..self.groups.len()).filter(left).map(|at| self.listed.iter().map(|of| of.of(at)).collect());
        let sets: PublishedSets = sets.collect();
        let merged = self.groups.len() - sets.len();
        let groups = self.groups.into_iter().zip(self.alive).filter(|(_, alive)| *alive).map(|(rows, _)| rows);
        NoisySets { groups: groups.collect(), sets, noise: self.noise, merged }
    }
}
