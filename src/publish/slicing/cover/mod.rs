//! Columns that share attributes, a cover in place of a partition (slicing, section 8). The sensitive attribute may stand in several.
//!
//! What columns share ties their rows to each other, so that counts of single columns bound nothing any more: what is looked at are
//! combinations of one row per column. Whoever leaves columns aside may come to another conclusion, so that each bound holds for
//! every choice of the columns with the sensitive attribute.

mod alone;
mod join;
mod margins;
mod mixed;
mod weights;

use self::alone::BucketwiseChecker;
use self::margins::BucketMargins;
use self::mixed::OverlapMixtureChecker;
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
use crate::publish::partition::{self, SplitPredicate, TableAnnotations};

/// A bucket has too many combinations of rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct JoinTooDenseError;

impl JoinTooDenseError {
    /// So many combinations are looked at in a bucket; fewer where tests want to see more.
    const LIMIT: u64 = if cfg!(test) { 20_000 } else { 10_000_000 };
}

/// Every choice of one or more of the columns.
fn choices(columns: &[AttrSet]) -> impl Iterator<Item = Vec<AttrSet>> {
    (1_u32..1 << columns.len().min(MAX_SENSITIVE_COLUMNS)).map(|chosen| {
        let chosen = columns.iter().enumerate().filter(|(at, _)| chosen >> at & 1 == 1);
        chosen.map(|(_, column)| *column).collect()
    })
}

/// Whether the columns form a tree, and do so with every choice of the sensitive ones, which stand last.
fn are_trees(columns: &[AttrSet], sensitive: usize) -> bool {
    let (others, sensitive) = columns.split_at(columns.len() - sensitive);
    choices(sensitive).all(|chosen| branches(&[others, &chosen].concat()).is_some())
}

/// What splits are judged by.
enum SplitChecker<'a> {
    Alone(BucketwiseChecker<'a>),
    Mixed(Box<OverlapMixtureChecker<'a>>),
}

impl SlicingPlan {
    /// The tuple partition of a table in columns that share attributes, the sensitive ones last.
    pub(super) fn cover(
        &self,
        table: &Table,
        columns: &[AttrSet],
        stated: &dyn TableAnnotations,
        control: &Control,
    ) -> Result<BucketAssignment, SlicingError> {
        let part = |judge: &mut dyn HalfPredicate| -> Result<BucketAssignment, SlicingError> {
            let (space, mut judge) = (self.space(table, stated), RenumberedPredicate::wrap(judge));
            Ok(partition::partition(space, table.rows(), self.limits(), &mut judge, control)?)
        };
        match self.begin(table, columns, stated, control)? {
            SplitChecker::Alone(mut alone) => part(&mut alone),
            SplitChecker::Mixed(mut mixed) => part(&mut *mixed),
        }
    }

    /// Whether the whole table holds as one bucket.
    pub(super) fn check_cover(
        &self,
        table: &Table,
        columns: &[AttrSet],
        stated: &dyn TableAnnotations,
        control: &Control,
    ) -> Result<(), SlicingError> {
        self.begin(table, columns, stated, control).map(|_| ())
    }

    /// Begins with the whole table as one bucket.
    fn begin<'a>(
        &self,
        table: &'a Table,
        columns: &'a [AttrSet],
        stated: &dyn TableAnnotations,
        control: &'a Control,
    ) -> Result<SplitChecker<'a>, SlicingError> {
        if self.column_k.is_some() {
            return Err(ColumnsError::Generalized.into());
        }
        let sensitive = columns.iter().filter(|column| column.contains(self.sensitive)).count();
        let bound = |l| FrequencyBound { l, annotations: stated.annotations(self.sensitive) };
        let margins = BucketMargins::new(table, self.sensitive);
        let refused = |found: Result<Option<WorstShare>, JoinTooDenseError>| {
            // what was told to stop has no answer either
            control.check()?;
            match found {
                Err(JoinTooDenseError) => Err(SlicingError::TooDense),
                Ok(Some(WorstShare { share, attributes, .. })) => {
                    let known = attributes.without(self.sensitive);
                    Err(SlicingError::NotDiverseTogether { known, most: share.most, of: share.of })
                }
                Ok(None) => Ok(()),
            }
        };
        let (l, weights) = match &self.diversity {
            SlicingDiversity::Bucket(guarantees) => {
                if sensitive > 1 && !are_trees(columns, sensitive) {
                    return Err(ColumnsError::Circle.into());
                }
                let l = of_shares(guarantees).ok_or(SlicingError::NotOfShares)?;
                let alone = BucketwiseChecker::new(margins, &columns[columns.len() - sensitive..], bound(l), control)?;
                let all: Vec<u32> = (0..table.rows() as u32).collect();
                refused(alone.whole(&all))?;
                return Ok(SplitChecker::Alone(alone));
            }
            SlicingDiversity::Mixture(l) => (*l, BucketWeights::Shares),
            SlicingDiversity::MixtureWeighted(l) => (*l, BucketWeights::SharesAndSizes),
        };
        if weights == BucketWeights::SharesAndSizes && !are_trees(columns, sensitive) {
            return Err(ColumnsError::Circle.into());
        }
        let begun = OverlapMixtureChecker::begin(margins, columns, sensitive, bound(l), weights, control);
        let mut mixed = Err(JoinTooDenseError);
        refused(match begun? {
            Ok((begun, worst)) => {
                mixed = Ok(begun);
                Ok(worst)
            }
            Err(dense) => Err(dense),
        })?;
        mixed.map(|mixed| SplitChecker::Mixed(Box::new(mixed))).map_err(|JoinTooDenseError| SlicingError::TooDense)
    }
}

/// The l of guarantees that bound the share of each value, the strictest.
fn of_shares(guarantees: &[Guarantee]) -> Option<Ratio> {
    let l = |guarantee: &Guarantee| match *guarantee {
        Guarantee::LDiversity { l } => Ratio::new(l, 1).ok(),
        Guarantee::AlphaK { alpha, k: 0 | 1 } => Ratio::new(alpha.denominator(), alpha.numerator()).ok(),
        _ => None,
    };
    let all: Option<Vec<Ratio>> = guarantees.iter().map(l).collect();
    all?.into_iter().max()
}

/// Says which splits are made, by rows of the table.
trait HalfPredicate {
    /// As [`SplitPredicate::allows`].
    fn allows(&mut self, bucket: u32, left: &[u32], right: &[u32]) -> bool;

    /// As [`SplitPredicate::closed`].
    fn closed(&mut self, _bucket: u32) {}
}

/// A judge for whom rows keep their names.
struct RenumberedPredicate<'a> {
    judge: &'a mut dyn HalfPredicate,
    /// What rows are called in the table, once they were renumbered.
    names: Option<Vec<u32>>,
    halves: [Vec<u32>; 2],
}

impl<'a> RenumberedPredicate<'a> {
    const fn wrap(judge: &'a mut dyn HalfPredicate) -> Self {
        Self { judge, names: None, halves: [Vec::new(), Vec::new()] }
    }
}

impl SplitPredicate for RenumberedPredicate<'_> {
    fn allows(&mut self, bucket: u32, left: &[u32], right: &[u32]) -> bool {
        let Some(names) = &self.names else { return self.judge.allows(bucket, left, right) };
        for (half, rows) in self.halves.iter_mut().zip([left, right]) {
            half.clear();
            half.extend(rows.iter().map(|&row| names[row as usize]));
        }
        self.judge.allows(bucket, &self.halves[0], &self.halves[1])
    }

    fn closed(&mut self, bucket: u32) {
        self.judge.closed(bucket);
    }

    fn reorder(&mut self, order: &[u32]) {
        let named = |&row: &u32| self.names.as_ref().map_or(row, |names| names[row as usize]);
        self.names = Some(order.iter().map(named).collect());
    }
}

#[cfg(test)]
mod tests;
