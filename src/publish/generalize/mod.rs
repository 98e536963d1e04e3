//! Generalization: rows in classes whose quasi-identifiers are published alike (slicing, sections 4.3 and 6.1; Mondrian).
//!
//! Classes are found by median splits, each half keeping k-anonymity and every guarantee alone. What looks at sensitive values
//! to refuse a split tells something by refusing: the guarantees are those of an adversary without minimality. A table whose
//! classes each keep a guarantee, and which generalizes every other column, is guarding; cells that are alike in several
//! classes join these, which breaks nothing, because what each of them keeps their union keeps.

mod cells;
mod method;

pub use cells::{ClassInterval, ValueTree, intervals, nodes, sets};
pub use method::Generalize;
pub(in crate::publish) use method::interval_cells;

use super::assign::BucketAssignment;
use super::partition::{
    self, BucketRequirement, GroupTally, MedianSplit, PartitionLimits, PerHalfPredicate, SplitSpace, TableAnnotations,
};
use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, AttrSet, Table};
use crate::privacy::{self, Population};
use crate::publication::Guarantee;

/// What classes are to keep, and along which attributes they may be cut.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GeneralizationInput {
    /// The attributes that are generalized, and along which rows are split.
    pub quasi_identifiers: AttrSet,
    /// k-anonymity: every class has so many rows; 1 asks for nothing.
    pub k: u64,
    /// What every class keeps, with the sensitive attribute that it is kept for.
    pub guarantees: Vec<(Attr, Guarantee)>,
    /// Whether rows with equal quasi-identifiers stay together. With relaxed splits cells of classes may overlap.
    pub split: MedianSplit,
    /// So many quasi-identifiers are tried before a class is left as it is; all of them without a limit.
    pub max_attempts: Option<usize>,
}

/// Why there are no classes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum GeneralizeError {
    /// The table has no rows.
    #[error("the table has no rows")]
    Empty,
    /// The table as one class has too few rows for k-anonymity.
    #[error("the table has {rows} rows, fewer than k")]
    TooFewRows {
        /// The rows of the table.
        rows: u64,
    },
    /// The table as one class breaks a guarantee: the one at this index.
    #[error("guarantee {0} does not hold in the whole table")]
    NotKept(usize),
    /// It was told to stop.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

impl GeneralizationInput {
    /// The class of every row. `table` has its rows already permuted secretly, and classes are numbered in the order of
    /// making: as buckets, they are published under secret labels or none.
    ///
    /// # Errors
    /// [`GeneralizeError`] when not even the whole table keeps what is asked, or when told to stop.
    pub fn classes(
        &self,
        table: &Table,
        stated: &dyn TableAnnotations,
        control: &Control,
    ) -> Result<BucketAssignment, GeneralizeError> {
        let rows = table.rows() as u64;
        if rows == 0 {
            return Err(GeneralizeError::Empty);
        }
        if rows < self.k {
            return Err(GeneralizeError::TooFewRows { rows });
        }
        let requirement = |&(attr, guarantee): &(Attr, Guarantee)| {
            let sensitive = table.column(attr);
            let population = Population::new(sensitive.counts()).on(stated.annotations(attr));
            let holds = move |counts: &[(u32, u64)]| privacy::holds(guarantee, counts, &population);
            BucketRequirement { groups: None, sensitive, holds: Box::new(holds) }
        };
        let mut judge = PerHalfPredicate::new(self.guarantees.iter().map(requirement).collect());
        let all: Vec<u32> = (0..table.rows() as u32).collect();
        if let Some((index, _)) = judge.first_broken(&all, &mut GroupTally::default()) {
            return Err(GeneralizeError::NotKept(index));
        }
        let fewest = self.guarantees.iter().map(|&(_, guarantee)| privacy::fewest_rows(guarantee)).max().unwrap_or(1);
        // at most the number of rows: the whole table keeps all of it
        let min_bucket = self.k.max(fewest).max(1) as usize;
        let limits = PartitionLimits { split: self.split, max_attempts: self.max_attempts, min_bucket };
        let space = SplitSpace::new(table, self.quasi_identifiers, stated);
        let made = partition::partition_apart(space, table.rows(), limits, &mut judge, control);
        made.map_err(|unfinished| unfinished.cancelled().into())
    }
}

#[cfg(test)]
mod tests;
