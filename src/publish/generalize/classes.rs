//! Classes of rows by median splits, each half keeping k-anonymity and every guarantee by itself.

use std::sync::Arc;

use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, AttrSet, Table};
use crate::privacy::links::Strata;
use crate::privacy::{self, OverallCounts};
use crate::publication::Guarantee;
use crate::publish::assign::BucketAssignment;
use crate::publish::partition::{
    self, BucketRequirement, GroupTally, MedianSplit, PartitionLimits, PartitionTuning, PerHalfPredicate, RowWeights,
    SplitSpace, TableAnnotations,
};

/// Requirements on classes, and the attributes along which rows are split.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GeneralizationInput {
    /// Attributes that are generalized, and along which rows are split.
    pub quasi_identifiers: AttrSet,
    /// Smallest number of rows of a class; 1 without k-anonymity.
    pub k: u64,
    /// Guarantees of every class, each with its sensitive attribute.
    pub guarantees: Vec<(Attr, Guarantee)>,
    /// Whether rows with equal quasi-identifiers stay together. Cells of classes may overlap after relaxed splits.
    pub split: MedianSplit,
    /// Largest number of quasi-identifiers tried for a class; `None` for all.
    pub max_attempts: Option<usize>,
    /// The sets of rows in which classes are made; `None` for the whole table.
    pub strata: Option<Arc<Strata>>,
    /// How many rows each row stands for; then `split` is strict, and there are no strata.
    pub weights: RowWeights,
}

/// Why there are no classes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum GeneralizeError {
    /// The table has no rows.
    #[error("the table has no rows")]
    Empty,
    /// The table or a stratum as one class has too few rows for k-anonymity.
    #[error("the table or a stratum has {rows} rows, fewer than k")]
    TooFewRows {
        /// Number of rows.
        rows: u64,
    },
    /// The table or a stratum as one class breaks the guarantee at this index.
    #[error("guarantee {0} does not hold in the whole table or in a stratum")]
    NotKept(usize),
    /// The job was cancelled.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

impl GeneralizationInput {
    /// Class of every row, classes numbered in the order of making.
    ///
    /// The rows of `table` are already permuted secretly. Numbers are published under secret labels or not at all.
    ///
    /// # Errors
    /// [`GeneralizeError`] if the whole table breaks a requirement, or on cancellation.
    pub fn classes(
        &self,
        table: &Table,
        annotations: &dyn TableAnnotations,
        control: &Control,
    ) -> Result<BucketAssignment, GeneralizeError> {
        let rows = self.weights.of_all(table.rows());
        if rows == 0 {
            return Err(GeneralizeError::Empty);
        }
        let strata = self.strata.as_deref();
        let fewest_rows = strata.and_then(|strata| strata.sizes().iter().min()).map_or(rows, |&size| u64::from(size));
        if fewest_rows < self.k {
            return Err(GeneralizeError::TooFewRows { rows: fewest_rows });
        }
        let requirement = |&(attr, guarantee): &(Attr, Guarantee)| {
            let sensitive = table.column(attr);
            let population = OverallCounts::new(self.weights.counts(sensitive)).on(annotations.annotations(attr));
            let holds = move |counts: &[(u32, u64)]| privacy::holds(guarantee, counts, &population);
            BucketRequirement { groups: None, sensitive, holds: Box::new(holds) }
        };
        let requirements = self.guarantees.iter().map(requirement).collect();
        let mut predicate = PerHalfPredicate::new(requirements).weighted(self.weights.clone());
        let first = strata.map_or_else(|| Strata::new(table, AttrSet::EMPTY).split(), Strata::split);
        for rows in first.iter() {
            if let Some((index, _)) = predicate.first_broken(rows, &mut GroupTally::default()) {
                return Err(GeneralizeError::NotKept(index));
            }
        }
        let fewest = self.guarantees.iter().map(|&(_, guarantee)| privacy::fewest_rows(guarantee)).max().unwrap_or(1);
        // at most the rows of a first class, as it keeps every requirement
        let min_bucket = self.k.max(fewest).max(1) as usize;
        let limits = PartitionLimits {
            split: self.split,
            max_attempts: self.max_attempts,
            min_bucket,
            tuning: PartitionTuning::default(),
        };
        let space = SplitSpace::new(table, self.quasi_identifiers, annotations).within(self.strata.as_ref());
        let space = space.weighted(self.weights.clone());
        let classes = partition::partition_apart(space, table.rows(), limits, &mut predicate, control);
        classes.map_err(|error| error.cancelled().into())
    }
}
