//! Columns that share attributes: a cover of the attributes in place of a partition. Several columns may hold the sensitive one.
//!
//! Shared attributes link rows of the columns, so that counts of single columns bound nothing. The check examines combinations of
//! one row per column. An adversary may ignore columns and infer more, so that each bound holds for every choice of the sensitive
//! columns.
//!
//! See `docs/spec/overlapping-slicing.md#guarantee`.

mod alone;
mod dense;
mod halves;
mod join;
mod margins;
mod mixed;
mod nearby;
mod weights;

use self::alone::BucketwiseChecker;
use self::halves::{RenumberedLocal, RenumberedPredicate};
use self::margins::BucketMargins;
use self::mixed::{CoverColumns, OverlapMixtureChecker};
use self::nearby::NearbyRows;
use self::weights::WorstShare;
use super::columns::{ColumnsError, MAX_SENSITIVE_COLUMNS};
use super::counts::FrequencyBound;
use super::plan::{SlicingDiversity, SlicingPlan};
use super::posterior::BucketWeights;
use super::sliced::SlicingError;
use crate::control::Control;
use crate::microdata::{AttrSet, Table, branches};
use crate::publication::{Guarantee, Ratio};
use crate::publish::assign::BucketAssignment;
use crate::publish::partition::{self, PartitionError, TableAnnotations};

/// Every choice of one or more columns.
fn choices(columns: &[AttrSet]) -> impl Iterator<Item = Vec<AttrSet>> {
    (1_u32..1 << columns.len().min(MAX_SENSITIVE_COLUMNS)).map(|chosen| {
        let chosen = columns.iter().enumerate().filter(|(at, _)| chosen >> at & 1 == 1);
        chosen.map(|(_, column)| *column).collect()
    })
}

/// Whether the columns form a tree with every choice of the sensitive ones, which stand last.
fn are_trees(columns: &[AttrSet], sensitive: usize) -> bool {
    let (others, sensitive) = columns.split_at(columns.len() - sensitive);
    choices(sensitive).all(|chosen| branches(&[others, &chosen].concat()).is_some())
}

/// Largest number of combinations of rows that are examined in a bucket.
const MAX_COMBINATIONS: u64 = 10_000_000;

/// Predicate of splits, by diversity.
enum SplitChecker<'a> {
    Alone(BucketwiseChecker<'a>),
    Mixed(Box<OverlapMixtureChecker<'a>>),
}

/// A table in columns that share attributes, the sensitive ones last.
#[derive(Clone, Copy)]
struct Cover<'a> {
    table: &'a Table,
    columns: &'a [AttrSet],
    /// Largest number of combinations of rows that are examined in a bucket.
    max_combinations: u64,
    control: &'a Control,
}

impl SlicingPlan {
    /// The tuple partition in columns that share attributes, the sensitive ones last.
    pub(super) fn cover(
        &self,
        table: &Table,
        columns: &[AttrSet],
        annotations: &dyn TableAnnotations,
        control: &Control,
    ) -> Result<BucketAssignment, SlicingError> {
        let (rows, space) = (table.rows(), || self.space(table, annotations));
        let nearby = match rows > self.tuning.unnumbered_rows {
            true => Some(NearbyRows::new(table, space(), self.tuning, control)?),
            false => None,
        };
        let (nearby, numbers) = nearby.map(|nearby| (nearby.table, nearby.numbers)).unzip();
        let nearby_table = nearby.as_ref().unwrap_or(table);
        let cover = Cover { table: nearby_table, columns, max_combinations: MAX_COMBINATIONS, control };
        let begun = match self.begin_cover(cover, annotations) {
            Ok(begun) => begun,
            // of equal shares, the first one in the order of the table is named
            Err(error) => return self.check_cover(table, columns, annotations, control).and(Err(error)),
        };
        match begun {
            SplitChecker::Alone(alone) => {
                let mut predicate = RenumberedLocal::wrap(|rows: &[u32]| alone.holds(rows), numbers);
                let buckets = partition::partition_apart(space(), rows, self.limits(), &mut predicate, control);
                Ok(buckets.map_err(PartitionError::cancelled)?)
            }
            SplitChecker::Mixed(mut mixed) => {
                let mut predicate = RenumberedPredicate::wrap(&mut *mixed, numbers);
                Ok(partition::partition(space(), rows, self.limits(), &mut predicate, control)?)
            }
        }
    }

    /// Checks the whole table as one bucket.
    pub(super) fn check_cover(
        &self,
        table: &Table,
        columns: &[AttrSet],
        annotations: &dyn TableAnnotations,
        control: &Control,
    ) -> Result<(), SlicingError> {
        let cover = Cover { table, columns, max_combinations: MAX_COMBINATIONS, control };
        self.begin_cover(cover, annotations).map(|_| ())
    }

    /// Begins with the whole table as one bucket.
    fn begin_cover<'a>(
        &self,
        cover: Cover<'a>,
        annotations: &dyn TableAnnotations,
    ) -> Result<SplitChecker<'a>, SlicingError> {
        if self.column_k.is_some() {
            return Err(ColumnsError::Generalized.into());
        }
        let (l, weights) = match &self.diversity {
            SlicingDiversity::Bucket(guarantees) => return self.begin_alone(cover, guarantees, annotations),
            SlicingDiversity::Mixture(l) => (*l, BucketWeights::Shares),
            SlicingDiversity::MixtureWeighted(l) => (*l, BucketWeights::SharesAndSizes),
        };
        let sensitive = self.sensitive_columns(cover.columns);
        if weights == BucketWeights::SharesAndSizes && !are_trees(cover.columns, sensitive) {
            return Err(ColumnsError::Circle.into());
        }
        let bound = FrequencyBound { l, annotations: annotations.annotations(self.sensitive) };
        let margins = BucketMargins::new(cover.table, self.sensitive, cover.max_combinations);
        let (others, sensitive) = cover.columns.split_at(cover.columns.len() - sensitive);
        let columns = CoverColumns { others, sensitive };
        let mut checker = OverlapMixtureChecker::new(margins, columns, bound, weights, cover.control)?;
        let worst = checker.begin()?;
        // a cancelled check has no result
        cover.control.check()?;
        self.check_worst(worst?)?;
        Ok(SplitChecker::Mixed(Box::new(checker)))
    }

    /// Begins with a bound that every bucket keeps by itself.
    fn begin_alone<'a>(
        &self,
        cover: Cover<'a>,
        guarantees: &[Guarantee],
        annotations: &dyn TableAnnotations,
    ) -> Result<SplitChecker<'a>, SlicingError> {
        let sensitive = self.sensitive_columns(cover.columns);
        if sensitive > 1 && !are_trees(cover.columns, sensitive) {
            return Err(ColumnsError::Circle.into());
        }
        let l = of_shares(guarantees).ok_or(SlicingError::NotOfShares)?;
        let bound = FrequencyBound { l, annotations: annotations.annotations(self.sensitive) };
        let margins = BucketMargins::new(cover.table, self.sensitive, cover.max_combinations);
        let columns = &cover.columns[cover.columns.len() - sensitive..];
        let checker = BucketwiseChecker::new(margins, columns, bound, cover.control)?;
        let all: Vec<u32> = (0..cover.table.rows() as u32).collect();
        let worst = checker.whole(&all);
        // a cancelled check has no result
        cover.control.check()?;
        self.check_worst(worst?)?;
        Ok(SplitChecker::Alone(checker))
    }

    /// Number of columns with the sensitive attribute.
    fn sensitive_columns(&self, columns: &[AttrSet]) -> usize {
        columns.iter().filter(|column| column.contains(self.sensitive)).count()
    }

    /// Refuses the whole table for a share above the bound.
    fn check_worst(&self, worst: Option<WorstShare>) -> Result<(), SlicingError> {
        let Some(WorstShare { share, attributes, .. }) = worst else { return Ok(()) };
        let known = attributes.without(self.sensitive);
        Err(SlicingError::NotDiverseTogether { known, most: share.most, of: share.of })
    }
}

/// The strictest l of guarantees that bound the share of each value; `None` for any other guarantee.
fn of_shares(guarantees: &[Guarantee]) -> Option<Ratio> {
    let l = |guarantee: &Guarantee| match *guarantee {
        Guarantee::LDiversity { l } => Ratio::new(l, 1).ok(),
        Guarantee::AlphaK { alpha, k: 0 | 1 } => Ratio::new(alpha.denominator(), alpha.numerator()).ok(),
        _ => None,
    };
    let all: Option<Vec<Ratio>> = guarantees.iter().map(l).collect();
    all?.into_iter().max()
}

#[cfg(test)]
mod tests;
