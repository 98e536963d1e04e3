//! The three steps of slicing: attribute partition, column generalization and tuple partition.

use super::columns::is_cover;
use super::counts::FrequencyBound;
use super::keys::{self, IdentityKeys};
use super::mixture::MixtureChecker;
use super::plan::{SlicingDiversity, SlicingPlan};
use super::posterior::BucketWeights;
use super::sliced::{SlicedTable, SlicingError};
use super::unmixed::{LocalMixtureChecker, NeedsOtherBuckets};
use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, AttrSet, Column, ColumnAnnotations, Table};
use crate::privacy::links::{Strata, StratumRows};
use crate::privacy::{self, OverallCounts};
use crate::publication::{Guarantee, Ratio};
use crate::publish::assign::BucketAssignment;
use crate::publish::generalize::{CountedRows, GeneralizationInput, GeneralizeError};
use crate::publish::partition::{
    self, BucketRequirement, GroupTally, MedianSplit, PartitionError, PerHalfPredicate, RowWeights, TableAnnotations,
    TalliedRows, TallyGroups,
};

/// Boxes of each column; `None` for a column without generalized values.
type ColumnBoxes = Vec<Option<BucketAssignment>>;

impl SlicingPlan {
    /// Slices `table`, whose rows are already permuted secretly: row order breaks ties, and nothing else is drawn.
    ///
    /// # Errors
    /// [`SlicingError`] if the columns cannot be made, if the whole table violates the diversity, or on cancellation.
    pub fn slice(
        &self,
        table: &Table,
        annotations: &dyn TableAnnotations,
        control: &Control,
    ) -> Result<SlicedTable, SlicingError> {
        self.check_input(table)?;
        let columns = self.columns.divide(table, self.attributes, self.sensitive, &self.bins, control)?;
        self.slice_columns(table, columns, annotations, control)
    }

    /// Slices `table` in columns that are decided, those with the sensitive attribute last.
    ///
    /// # Errors
    /// [`SlicingError`] if the whole table violates the diversity, or on cancellation.
    pub(super) fn slice_columns(
        &self,
        table: &Table,
        columns: Vec<AttrSet>,
        annotations: &dyn TableAnnotations,
        control: &Control,
    ) -> Result<SlicedTable, SlicingError> {
        self.check_input(table)?;
        if is_cover(&columns) {
            let buckets = self.cover(table, &columns, annotations, control)?;
            let boxes = columns.iter().map(|_| None).collect();
            return Ok(SlicedTable { columns, boxes, buckets });
        }
        let weights = &RowWeights::default();
        let slicer = Slicer { plan: self, table, weights, columns: &columns, annotations, control };
        let boxes = slicer.boxes()?;
        let buckets = slicer.buckets(&boxes)?;
        Ok(SlicedTable { columns, boxes, buckets })
    }

    /// Checks that the whole table as one bucket satisfies the diversity in these columns. Otherwise no slicing does.
    ///
    /// # Errors
    /// [`SlicingError::NotDiverse`] or [`SlicingError::NotDiverseTogether`] if it does not, or on cancellation.
    pub fn check_whole(
        &self,
        table: &Table,
        columns: &[AttrSet],
        annotations: &dyn TableAnnotations,
        control: &Control,
    ) -> Result<(), SlicingError> {
        if is_cover(columns) {
            return self.check_cover(table, columns, annotations, control);
        }
        let guarantees = match &self.diversity {
            SlicingDiversity::Bucket(guarantees) => guarantees.clone(),
            // in one bucket a row matches no other
            SlicingDiversity::Mixture(l) | SlicingDiversity::MixtureWeighted(l) => {
                let alpha = Ratio::new(l.denominator(), l.numerator()).map_err(|_| SlicingError::BelowOne)?;
                vec![Guarantee::AlphaK { alpha, k: 1 }]
            }
        };
        let weights = &RowWeights::default();
        let slicer = Slicer { plan: self, table, weights, columns, annotations, control };
        let companions = slicer.companions(&slicer.boxes()?)?;
        slicer.begin(&guarantees, &companions).map(|_| ())
    }

    /// Buckets of rows that each stand for several, in decided columns that are exact and share no attribute, with strict splits.
    ///
    /// # Errors
    /// [`SlicingError`] if the whole table violates the diversity, or on cancellation.
    pub(super) fn counted_buckets(
        &self,
        CountedRows { table, weights }: CountedRows<'_>,
        columns: &[AttrSet],
        control: &Control,
    ) -> Result<BucketAssignment, SlicingError> {
        self.check_input(table)?;
        let slicer = Slicer { plan: self, table, weights, columns, annotations: table, control };
        slicer.buckets(&columns.iter().map(|_| None).collect::<ColumnBoxes>())
    }

    fn check_input(&self, table: &Table) -> Result<(), SlicingError> {
        if let SlicingDiversity::Mixture(l) | SlicingDiversity::MixtureWeighted(l) = self.diversity
            && l < Ratio::ONE
        {
            return Err(SlicingError::BelowOne);
        }
        if table.rows() == 0 { Err(SlicingError::Empty) } else { Ok(()) }
    }
}

/// A slicing of a table in decided columns that share no attribute.
pub(super) struct Slicer<'a> {
    pub(super) plan: &'a SlicingPlan,
    pub(super) table: &'a Table,
    /// How many rows each row stands for; more than one only with strict splits and diversity of buckets.
    pub(super) weights: &'a RowWeights,
    pub(super) columns: &'a [AttrSet],
    pub(super) annotations: &'a dyn TableAnnotations,
    pub(super) control: &'a Control,
}

impl<'a> Slicer<'a> {
    /// Boxes of every generalized column: strict splits of the column by itself.
    pub(super) fn boxes(&self) -> Result<ColumnBoxes, SlicingError> {
        self.columns.iter().map(|column| self.boxes_of(*column)).collect()
    }

    fn boxes_of(&self, column: AttrSet) -> Result<Option<BucketAssignment>, SlicingError> {
        let quasi_identifiers = column.without(self.plan.sensitive);
        let Some(k) = self.plan.column_k.filter(|_| !quasi_identifiers.is_empty()) else { return Ok(None) };
        let generalization = GeneralizationInput {
            quasi_identifiers,
            k,
            guarantees: Vec::new(),
            split: MedianSplit::Strict,
            max_attempts: None,
            strata: None,
            weights: RowWeights::default(),
        };
        let classes = generalization.classes(self.table, &ValueOrder(self.annotations), self.control);
        classes.map(Some).map_err(|error| match error {
            GeneralizeError::TooFewRows { rows } => SlicingError::TooFewRows { rows },
            GeneralizeError::Cancelled(cancelled) => SlicingError::Cancelled(cancelled),
            // there are rows, and no guarantees
            GeneralizeError::Empty | GeneralizeError::NotKept(_) => SlicingError::Empty,
        })
    }

    /// The tuple partition.
    fn buckets(&self, boxes: &[Option<BucketAssignment>]) -> Result<BucketAssignment, SlicingError> {
        match &self.plan.diversity {
            SlicingDiversity::Mixture(l) => self.mixture(*l, BucketWeights::Shares, boxes),
            SlicingDiversity::MixtureWeighted(l) => self.mixture(*l, BucketWeights::SharesAndSizes, boxes),
            SlicingDiversity::Bucket(guarantees) => {
                let companions = self.companions(boxes)?;
                let mut predicate = self.begin(guarantees, &companions)?;
                let space = self.plan.space(self.table, self.annotations).weighted(self.weights.clone());
                let (rows, limits) = (self.table.rows(), self.plan.limits());
                let buckets = partition::partition_apart(space, rows, limits, &mut predicate, self.control);
                buckets.map_err(|error| error.cancelled().into())
            }
        }
    }

    /// The tuple partition under mixture diversity: bucket by bucket where possible, otherwise over all matching buckets.
    fn mixture(
        &self,
        l: Ratio,
        weights: BucketWeights,
        boxes: &[Option<BucketAssignment>],
    ) -> Result<BucketAssignment, SlicingError> {
        let keys = self.keys(boxes)?;
        // strict splits give disjoint buckets of values, so that a row matches its own bucket alone
        let by_known = self.plan.dimensions.is_none_or(|dimensions| !dimensions.contains(self.plan.sensitive));
        let apart = self.plan.split == MedianSplit::Strict && by_known && boxes.iter().all(Option::is_none);
        let checker = LocalMixtureChecker::begin(&keys, self.sensitive(), self.bound(l), weights, apart);
        let mut checker = checker.ok_or_else(|| self.worst(&keys.companions))?;
        let space = self.plan.space(self.table, self.annotations);
        let (rows, limits) = (self.table.rows(), self.plan.limits());
        let buckets = partition::partition_apart(space, rows, limits, &mut checker, self.control);
        drop(checker);
        match buckets {
            Err(PartitionError::Unclear(NeedsOtherBuckets)) => self.mixed(&keys, self.bound(l), weights),
            Err(PartitionError::Cancelled) => Err(Cancelled.into()),
            Ok(buckets) => Ok(buckets),
        }
    }

    /// The tuple partition, checked over all matching buckets of a row.
    pub(super) fn mixed(
        &self,
        keys: &IdentityKeys,
        bound: FrequencyBound,
        weights: BucketWeights,
    ) -> Result<BucketAssignment, SlicingError> {
        let checker = MixtureChecker::begin(keys, self.sensitive(), bound, weights, self.control)?;
        let mut checker = checker.ok_or_else(|| self.worst(&keys.companions))?;
        let space = self.plan.space(self.table, self.annotations);
        Ok(partition::partition(space, self.table.rows(), self.plan.limits(), &mut checker, self.control)?)
    }

    /// The predicate of splits whose halves keep the guarantees, after a check of the whole table.
    fn begin<'b>(
        &'b self,
        guarantees: &'b [Guarantee],
        companions: &'b TallyGroups,
    ) -> Result<PerHalfPredicate<'b>, SlicingError> {
        let sensitive = self.sensitive();
        let declared = self.annotations.annotations(self.plan.sensitive);
        let population = OverallCounts::new(self.weights.counts(sensitive)).on(declared);
        let holds = move |counts: &[(u32, u64)]| guarantees.iter().all(|&g| privacy::holds(g, counts, &population));
        let groups = (companions.count > 1).then_some(companions);
        let predicate = PerHalfPredicate::new(vec![BucketRequirement { groups, sensitive, holds: Box::new(holds) }]);
        let predicate = predicate.weighted(self.weights.clone());
        let hold = self.first_buckets().iter().all(|rows| predicate.holds(rows, &mut GroupTally::default()));
        if hold { Ok(predicate) } else { Err(self.worst(companions)) }
    }

    /// The rows from which the partition starts.
    fn first_buckets(&self) -> StratumRows {
        let strata = self.plan.strata.as_deref();
        strata.map_or_else(|| Strata::new(self.table, AttrSet::EMPTY).split(), Strata::split)
    }

    fn sensitive(&self) -> &'a Column {
        self.table.column(self.plan.sensitive)
    }

    fn bound(&self, l: Ratio) -> FrequencyBound {
        FrequencyBound { l, annotations: self.annotations.annotations(self.plan.sensitive) }
    }

    /// The group in which a sensitive value has the largest share. Groups have equal values in the sensitive column.
    fn worst(&self, companions: &TallyGroups) -> SlicingError {
        let sensitive = self.sensitive();
        let (mut most, mut of) = (0, 1);
        let mut tally = GroupTally::default();
        for first in self.first_buckets().iter() {
            let (codes, values) = (&sensitive.codes, sensitive.domain.len());
            let tallied = TalliedRows { rows: first, groups: Some(companions), codes, values };
            tally.weighted(tallied, self.weights, |_, counts| {
                let here = counts.iter().map(|(_, count)| *count).max().unwrap_or(0);
                let rows: u64 = counts.iter().map(|(_, count)| count).sum();
                if u128::from(here) * u128::from(of) > u128::from(most) * u128::from(rows) {
                    (most, of) = (here, rows);
                }
                true
            });
        }
        SlicingError::NotDiverse { most, of }
    }

    /// Known values of each row: boxes of generalized columns, values of the others.
    pub(super) fn keys(&self, boxes: &[Option<BucketAssignment>]) -> Result<IdentityKeys, Cancelled> {
        let others = self.columns.iter().zip(boxes).filter(|(column, _)| !column.contains(self.plan.sensitive));
        let others = others.map(|(&column, boxes)| self.known(column, boxes.as_ref()));
        Ok(IdentityKeys { others: others.collect::<Result<_, _>>()?, companions: self.companions(boxes)? })
    }

    /// Known values of each row in the sensitive column.
    fn companions(&self, boxes: &[Option<BucketAssignment>]) -> Result<TallyGroups, Cancelled> {
        let column = self.columns.iter().zip(boxes).find(|(column, _)| column.contains(self.plan.sensitive));
        let (column, boxes) = column.map_or((AttrSet::EMPTY, None), |(column, boxes)| (*column, boxes.as_ref()));
        self.known(column.without(self.plan.sensitive), boxes)
    }

    /// Known values of each row in a column without the sensitive attribute.
    fn known(&self, column: AttrSet, boxes: Option<&BucketAssignment>) -> Result<TallyGroups, Cancelled> {
        match boxes {
            Some(boxes) => Ok(TallyGroups { of_row: boxes.bucket_of.clone(), count: boxes.buckets }),
            None => keys::together(self.table, column, self.control),
        }
    }
}

/// Annotations without declared orders: boxes are published as intervals, which are read in the order of values.
struct ValueOrder<'a>(&'a dyn TableAnnotations);

impl TableAnnotations for ValueOrder<'_> {
    fn annotations(&self, attr: Attr) -> ColumnAnnotations {
        self.0.annotations(attr)
    }
}
