//! Groups of the tuples of a join: labels on X with the counts of their values on Y.

use std::collections::BTreeMap;

use ahash::AHashMap;

use crate::control::{Cancelled, Control};

/// Rows of a release, grouped by the labels that decide matches.
pub(in crate::verifier) struct ReleaseRows {
    /// Distinct labels of the matched columns.
    ///
    /// `within` holds for each of them the distinct labels on X and Y with the number of rows.
    pub(in crate::verifier) keys: Vec<Vec<u32>>,
    pub(in crate::verifier) within: Vec<Vec<(Vec<u32>, u128)>>,
}

/// For two releases of a join, the matching keys of the second for each key of the first.
pub(in crate::verifier) type ReleaseMatches = BTreeMap<(usize, usize), Vec<Vec<usize>>>;

/// A value on Y within a group.
#[derive(Clone, Copy)]
pub(in crate::verifier) struct YValue {
    /// Number of tuples with the value.
    pub(in crate::verifier) tuples: u128,
    /// Number of values that differ in their rows alone and are counted together; `tuples` is their sum.
    pub(in crate::verifier) alike: u128,
}

/// Groups of a join: by labels on X, the values on Y with the rows of keys.
pub(in crate::verifier) struct JoinGroups<'g> {
    pub(in crate::verifier) x: &'g [(usize, usize)],
    pub(in crate::verifier) y: &'g [(usize, usize)],
    pub(in crate::verifier) keys: &'g [usize],
    /// For each release, the columns of X and Y in the order of the labels in `within`.
    pub(in crate::verifier) own: Vec<Vec<usize>>,
    pub(in crate::verifier) found: AHashMap<Vec<u32>, AHashMap<Vec<u32>, YValue>>,
    pub(in crate::verifier) steps: u64,
}

impl JoinGroups<'_> {
    /// Adds each key of the next release that matches all chosen keys.
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

    /// Counts the tuples of matching keys, by their labels on X and Y.
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
        let key_rows = self.keys.iter().flat_map(|&release| [chosen[release] as u32, within[release] as u32]);
        let y: Vec<u32> = self.y.iter().map(label).chain(key_rows).collect();
        let times = |product: u128, release: usize| product.checked_mul(row(release).1);
        let tuples = (0..rows.len()).try_fold(1, times).ok_or(JoinError::TooMany)?;
        let alike = self.keys.iter().copied().try_fold(1, times).ok_or(JoinError::TooMany)?;
        let value = self.found.entry(x).or_default().entry(y).or_insert(YValue { tuples: 0, alike });
        value.tuples = value.tuples.checked_add(tuples).ok_or(JoinError::TooMany)?;
        Ok(())
    }
}

/// Maximal number of steps for one requirement on one join.
pub(in crate::verifier) const MAX_JOIN_STEPS: u64 = 100_000_000;

/// Reason why a join cannot be measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JoinError {
    /// The join takes too many steps.
    TooMany,
    /// A requirement names an unknown release, attribute or value.
    Unknown,
    /// No tuple of rows matches.
    Empty,
    /// The caller cancelled the computation.
    Cancelled(Cancelled),
}

impl From<Cancelled> for JoinError {
    fn from(cancelled: Cancelled) -> Self {
        Self::Cancelled(cancelled)
    }
}
