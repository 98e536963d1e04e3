//! Decompose (Ye, Liu, Lv and Feng): groups by a primary sensitive attribute in which the values of the others are published as
//! sets, beside a table of all sensitive tuples.
//!
//! What is bounded and what is not: in a group no primary value takes more than 1/l of the rows. Of another attribute a group
//! bounds the posterior when no value occurs in it twice; elsewhere sets hide how often values occur only from readers who ignore the
//! sensitive table. [`breaches`] tells what such readers can conclude, so that it is known before anything is published.

mod attack;
mod cover;
mod designed;
mod fresh;
mod made;
mod method;
mod noise;

#[cfg(test)]
mod tests;

pub use attack::{InferredBreach, MAX_GROUP_PAIRS, PossibleTuples, breaches, excludable, pairs, unlinked};
pub use designed::{DecomposedTable, DecompositionRole, SecretBuckets};
pub use fresh::{fresh_pick, fresh_swap, repeats};
pub use method::Decompose;
pub use noise::{NoiseError, NoiseValue, NoisySets, swap_noise};

use std::collections::BTreeSet;

/// The sensitive attributes of a table, as codes of each row.
#[derive(Clone, Debug)]
pub struct SensitiveCodesByRow {
    /// The one on which groups are made.
    pub primary: Vec<u32>,
    /// The others.
    pub others: Vec<Vec<u32>>,
}

impl SensitiveCodesByRow {
    /// How many rows there are.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.primary.len()
    }

    /// Whether a group that publishes these sets can hold a row of one of its primary values.
    fn admitted(&self, row: u32, sets: &[BTreeSet<u32>]) -> bool {
        self.others.iter().zip(sets).all(|(codes, set)| set.contains(&codes[row as usize]))
    }
}

/// Rows by group.
pub type RowsByGroup = Vec<Vec<u32>>;

/// Per group and other attribute, the values that are published.
pub type PublishedSets = Vec<Vec<BTreeSet<u32>>>;

/// The values that the rows of each group have.
#[must_use]
pub fn sets_of(sensitive: &SensitiveCodesByRow, groups: &RowsByGroup) -> PublishedSets {
    let set = |group: &Vec<u32>, codes: &Vec<u32>| group.iter().map(|&row| codes[row as usize]).collect();
    groups.iter().map(|group| sensitive.others.iter().map(|codes| set(group, codes)).collect()).collect()
}

/// The rows by the bucket that they are assigned to; rows that are in none are left out.
#[must_use]
pub fn groups_of(bucket_of: &[u32], buckets: u32) -> RowsByGroup {
    let mut groups: RowsByGroup = vec![Vec::new(); buckets as usize];
    for (&bucket, row) in bucket_of.iter().zip(0..) {
        if let Some(group) = groups.get_mut(bucket as usize) {
            group.push(row);
        }
    }
    groups
}

/// The largest l for which no value takes more than 1/l of the rows (Corollary 2), and no more than there are values.
#[must_use]
pub fn optimal_l(counts: &[u64]) -> u64 {
    let rows: u64 = counts.iter().sum();
    let most = counts.iter().copied().max().unwrap_or(0);
    let values = counts.iter().filter(|&&count| count > 0).count() as u64;
    rows.checked_div(most).unwrap_or(0).min(values)
}

/// Of several attributes' counts, the one that allows the least l: the first of equals.
#[must_use]
pub fn tightest(counts: &[Vec<u64>]) -> Option<usize> {
    (0..counts.len()).min_by_key(|&at| {
        let rows: u64 = counts[at].iter().sum();
        rows.checked_div(counts[at].iter().copied().max().unwrap_or(0)).unwrap_or(0)
    })
}

/// Per other attribute, in how many groups no value occurs twice: in these a value has the share of one row, also for readers of the
/// sensitive table.
#[must_use]
pub fn repeat_free(sensitive: &SensitiveCodesByRow, groups: &RowsByGroup) -> Vec<usize> {
    let sets = sets_of(sensitive, groups);
    let free = |at: usize| groups.iter().zip(&sets).filter(|(group, sets)| sets[at].len() == group.len()).count();
    (0..sensitive.others.len()).map(free).collect()
}
