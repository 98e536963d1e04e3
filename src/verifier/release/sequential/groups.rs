//! The tuples of a join, counted by what groups are made of and what is told of them.

use std::collections::BTreeMap;

use ahash::AHashMap;

use crate::control::{Cancelled, Control};

/// The rows of a release that are alike in what matters.
pub(in crate::verifier) struct ReleaseRows {
    /// Distinct labels of what is matched, and per such the distinct labels on X and Y with the number of rows.
    pub(in crate::verifier) keys: Vec<Vec<u32>>,
    pub(in crate::verifier) within: Vec<Vec<(Vec<u32>, u128)>>,
}

/// For two releases of a join, by their places, the keys of the second per key of the first.
pub(in crate::verifier) type ReleaseMatches = BTreeMap<(usize, usize), Vec<Vec<usize>>>;

/// A value on Y in a group.
#[derive(Clone, Copy)]
pub(in crate::verifier) struct YValue {
    /// Tuples that have it.
    pub(in crate::verifier) tuples: u128,
    /// So many values are counted as one, because they differ in rows alone; tuples are those of all of them.
    pub(in crate::verifier) alike: u128,
}

/// Per labels on X, per labels on Y and rows that are told apart: what there is.
pub(in crate::verifier) struct JoinGroups<'g> {
    pub(in crate::verifier) x: &'g [(usize, usize)],
    pub(in crate::verifier) y: &'g [(usize, usize)],
    pub(in crate::verifier) keys: &'g [usize],
    /// Per release, the wanted columns in the order of the labels within keys.
    pub(in crate::verifier) own: Vec<Vec<usize>>,
    pub(in crate::verifier) found: AHashMap<Vec<u32>, AHashMap<Vec<u32>, YValue>>,
    pub(in crate::verifier) steps: u64,
}

impl JoinGroups<'_> {
    /// Chooses a key of the next release, which matches those that are chosen.
    pub(in crate::verifier) fn walk(
        &mut self,
        rows: &[ReleaseRows],
        matches: &ReleaseMatches,
        chosen: &mut Vec<usize>,
        control: &Control,
    ) -> Result<(), JoinError> {
        let at = chosen.len();
        if at == rows.len() {
            return self.count(rows, chosen, &mut Vec::new());
        }
        control.check()?;
        let of = |before: usize| &matches[&(before, at)][chosen[before]];
        let candidates: Vec<usize> = match at {
            0 => (0..rows[0].keys.len()).collect(),
            _ => {
                let all = |key: &usize| (0..at - 1).all(|before| of(before).binary_search(key).is_ok());
                of(at - 1).iter().copied().filter(all).collect()
            }
        };
        for key in candidates {
            chosen.push(key);
            self.walk(rows, matches, chosen, control)?;
            chosen.pop();
        }
        Ok(())
    }

    /// Counts the tuples of keys that all match, by what is wanted of each release.
    fn count(&mut self, rows: &[ReleaseRows], chosen: &[usize], within: &mut Vec<usize>) -> Result<(), JoinError> {
        let at = within.len();
        if at < rows.len() {
            for choice in 0..rows[at].within[chosen[at]].len() {
                within.push(choice);
                self.count(rows, chosen, within)?;
                within.pop();
            }
            return Ok(());
        }
        self.steps += 1;
        if self.steps > MAX_JOIN_STEPS {
            return Err(JoinError::TooMany);
        }
        let row = |release: usize| &rows[release].within[chosen[release]][within[release]];
        let label = |&(release, column): &(usize, usize)| {
            let place = self.own[release].iter().position(|of| *of == column).unwrap_or_default();
            row(release).0[place]
        };
        let x: Vec<u32> = self.x.iter().map(label).collect();
        let rows_told = self.keys.iter().flat_map(|&release| [chosen[release] as u32, within[release] as u32]);
        let y: Vec<u32> = self.y.iter().map(label).chain(rows_told).collect();
        let times = |product: u128, release: usize| product.checked_mul(row(release).1);
        let tuples = (0..rows.len()).try_fold(1, times).ok_or(JoinError::TooMany)?;
        let alike = self.keys.iter().copied().try_fold(1, times).ok_or(JoinError::TooMany)?;
        let value = self.found.entry(x).or_default().entry(y).or_insert(YValue { tuples: 0, alike });
        value.tuples = value.tuples.checked_add(tuples).ok_or(JoinError::TooMany)?;
        Ok(())
    }
}

/// So many steps are taken for one requirement on one join.
pub(in crate::verifier) const MAX_JOIN_STEPS: u64 = 100_000_000;

/// Why a join was not measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JoinError {
    /// It would take too many steps.
    TooMany,
    /// Something is named that is not there.
    Unknown,
    /// No tuple matches.
    Empty,
    /// It was told to stop.
    Cancelled(Cancelled),
}

impl From<Cancelled> for JoinError {
    fn from(cancelled: Cancelled) -> Self {
        Self::Cancelled(cancelled)
    }
}
