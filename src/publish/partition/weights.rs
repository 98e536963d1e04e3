//! Rows that stand for several equal rows of a table.

use crate::microdata::Column;

/// How many rows of a table each row stands for; by default one.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RowWeights(Option<Vec<u64>>);

impl RowWeights {
    /// The rows that each row stands for, at least one.
    #[must_use]
    pub const fn new(weights: Vec<u64>) -> Self {
        Self(Some(weights))
    }

    /// The weight of each row; `None` where each row stands for itself.
    pub(super) fn each(&self) -> Option<&[u64]> {
        self.0.as_deref()
    }

    /// The rows of the table that some rows stand for.
    #[must_use]
    pub fn of(&self, rows: &[u32]) -> u64 {
        match &self.0 {
            None => rows.len() as u64,
            Some(weights) => rows.iter().map(|&row| weights[row as usize]).sum(),
        }
    }

    /// The rows of the table that all `rows` rows stand for.
    #[must_use]
    pub fn of_all(&self, rows: usize) -> u64 {
        self.0.as_ref().map_or(rows as u64, |weights| weights.iter().sum())
    }

    /// The rows of the table with each code of a column.
    #[must_use]
    pub fn counts(&self, column: &Column) -> Vec<u64> {
        let Some(weights) = &self.0 else { return column.counts() };
        let mut counts = vec![0; column.domain.len()];
        column.codes.iter().zip(weights).for_each(|(code, weight)| counts[code as usize] += weight);
        counts
    }

    /// Those of the rows in this order.
    #[must_use]
    pub fn gather(&self, order: &[u32]) -> Self {
        Self(self.0.as_ref().map(|weights| order.iter().map(|&row| weights[row as usize]).collect()))
    }
}
