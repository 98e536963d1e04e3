//! Rows of which a reader infers a value.

use std::ops::AddAssign;

/// Rows of which a reader infers the value of a column.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct InferredRows {
    /// Rows with one possible value.
    pub fixed: u64,
    /// Rows whose likeliest value has a probability above 1/2; those with one possible value too.
    pub likely: u64,
}

impl InferredRows {
    /// Adds rows with the same knowledge.
    pub(super) fn add(&mut self, rows: u64, fixed: bool, likely: bool) {
        self.fixed += if fixed { rows } else { 0 };
        self.likely += if fixed || likely { rows } else { 0 };
    }

    /// Adds rows that agree in all that a reader knows.
    pub(super) fn add_agreeing(&mut self, agreeing: AgreeingRows) {
        let AgreeingRows { rows, most } = agreeing;
        self.add(u64::from(rows), most == rows, u64::from(most) * 2 > u64::from(rows));
    }
}

impl AddAssign for InferredRows {
    fn add_assign(&mut self, other: Self) {
        self.fixed += other.fixed;
        self.likely += other.likely;
    }
}

/// The rows of a group that agree in all columns but one.
#[derive(Clone, Copy, Default)]
pub(super) struct AgreeingRows {
    /// The rows.
    pub(super) rows: u32,
    /// Those with the most frequent value of the one column.
    pub(super) most: u32,
}
