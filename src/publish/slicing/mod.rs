//! Slicing: attributes in columns, rows in buckets, and in every bucket the values of each column in no order (slicing,
//! section 2).
//!
//! Three steps: the attribute partition puts attributes that go together into columns (section 4.1); the optional
//! generalization makes values of a column frequent (section 4.2); the tuple partition halves buckets while the published
//! table stays l-diverse (section 4.3). It refuses splits by looking at sensitive values, so that its guarantees are those of
//! an adversary without minimality.
//!
//! With two columns, one of them the sensitive attribute alone, this is bucketization; with one attribute in every column
//! each bucket holds the multisets of its values; a single bucket gives independent marginals.
//!
//! Columns may share attributes; what is then asked of buckets is in `cover`.

mod columns;
mod counts;
mod cover;
mod designed;
mod keys;
mod medoids;
mod method;
mod mixture;
mod posterior;
mod unmixed;

pub use columns::{ColumnChoice, ColumnPartitionError, ColumnsError, CorrelationBins};
pub use cover::is_cover;
pub use designed::WholeTableViolation;
pub use keys::IdentityKeys;
pub use method::SlicingMethod;

use self::counts::FrequencyBound;
use self::mixture::MixtureChecker;
use self::posterior::BucketWeights;
use self::unmixed::{LocalMixtureChecker, NeedsOtherBuckets};
use super::assign::BucketAssignment;
use super::generalize::{GeneralizationInput, GeneralizeError};
use super::partition::{
    self, BucketRequirement, GroupTally, MedianSplit, PartitionError, PartitionLimits, PerHalfPredicate, SplitSpace,
    TableAnnotations, TallyGroups,
};
use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, AttrSet, ColumnAnnotations, Table};
use crate::privacy::{self, Population};
use crate::publication::{Guarantee, Protected, Ratio, TableGuard, TableProtection};

/// What a slicing holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SlicingDiversity {
    /// In every bucket the rows that are alike beside the sensitive attribute keep the guarantees alone, whatever else is
    /// known. An l that is not whole is `alpha_k` with alpha = 1/l and k = 1.
    Bucket(Vec<Guarantee>),
    /// The paper's definition: over all buckets that a row may stand in, weighed by the share of a bucket's combinations that
    /// are the row, no sensitive value is likelier than 1/l. A small bucket may then be worse, beside a large one.
    Mixture(Ratio),
    /// The same, and also with buckets weighed by the number of copies of the row that are expected in them.
    MixtureWeighted(Ratio),
}

impl SlicingDiversity {
    /// No bucket of fewer rows is made unless the caller allows it.
    #[must_use]
    pub fn least_rows(&self) -> u64 {
        match self {
            Self::Bucket(guarantees) => guarantees.iter().map(|&g| privacy::fewest_rows(g)).max().unwrap_or(1).max(1),
            Self::Mixture(l) | Self::MixtureWeighted(l) => l.ceil().max(1),
        }
    }

    /// What the sliced table is worth beside others: a guard where every bucket holds alone, and no attribute stands in several of
    /// `columns`, as another table may tie the rows of these.
    #[must_use]
    pub fn protection(&self, columns: &[AttrSet], sensitive: Attr) -> TableProtection {
        let attributes = columns.iter().fold(AttrSet::EMPTY, |all, column| all.union(*column));
        match self {
            _ if is_cover(columns) => TableProtection::Exclusive,
            Self::Bucket(guarantees) => TableProtection::Guarding(vec![TableGuard {
                known: attributes.without(sensitive),
                protects: Protected::Attribute(sensitive),
                guarantees: guarantees.clone(),
            }]),
            Self::Mixture(_) | Self::MixtureWeighted(_) => TableProtection::Exclusive,
        }
    }
}

/// How a table is to be sliced.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlicingPlan {
    /// The attributes that are published.
    pub attributes: AttrSet,
    /// The sensitive one of them.
    pub sensitive: Attr,
    /// Which attributes stand together.
    pub columns: ColumnChoice,
    /// What holds.
    pub diversity: SlicingDiversity,
    /// How a bucket is halved.
    pub split: MedianSplit,
    /// The attributes along which rows are split; the published ones but for the sensitive one, where nothing is said.
    pub dimensions: Option<AttrSet>,
    /// So many dimensions are tried before a bucket is left as it is; all of them without a limit.
    pub max_attempts: Option<usize>,
    /// No bucket has fewer rows; [`SlicingDiversity::least_rows`] where nothing is said.
    pub min_bucket: Option<usize>,
    /// Column generalization: every value of a column occurs so often, the sensitive attribute apart.
    pub column_k: Option<u64>,
    /// Into how many bins numbers of many values are cut to see what they go with.
    pub bins: CorrelationBins,
}

/// A table in columns and buckets.
pub struct SlicedTable {
    /// The attributes of each column, the sensitive column last.
    pub columns: Vec<AttrSet>,
    /// Per column, the boxes of its values but for the sensitive attribute, where columns are generalized and it has any.
    pub boxes: Vec<Option<BucketAssignment>>,
    /// The bucket of each row: secret, to be published under [`super::assign::Labels`].
    pub buckets: BucketAssignment,
}

/// Why a table was not sliced.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SlicingError {
    /// The columns cannot be made.
    #[error(transparent)]
    Columns(#[from] ColumnsError),
    /// The table has no rows.
    #[error("the table has no rows")]
    Empty,
    /// A diversity below 1.
    #[error("l is below 1")]
    BelowOne,
    /// Fewer rows than a value of a column is to occur.
    #[error("the table has {rows} rows, fewer than values of a column are to occur")]
    TooFewRows {
        /// The rows of the table.
        rows: u64,
    },
    /// Not even the table as one bucket holds. No l above `of / most` can hold, where no values are declared excludable.
    #[error("in the whole table a sensitive value takes {most} of {of} rows that are alike beside it")]
    NotDiverse {
        /// Rows with the most frequent sensitive value, where its share is largest.
        most: u64,
        /// The rows among which they are.
        of: u64,
    },
    /// Not even the table as one bucket holds, where columns share attributes: whoever knows `beside` and puts the columns together gives a
    /// sensitive value the probability `most / of`. Rounded, where that has too many digits.
    #[error("in the whole table a sensitive value has the probability {most} of {of} for who puts columns together")]
    NotDiverseTogether {
        /// The attributes that are known.
        beside: AttrSet,
        /// The numerator.
        most: u64,
        /// The denominator.
        of: u64,
    },
    /// Columns that share attributes have too many combinations of rows.
    #[error("the columns have too many combinations of rows that agree on what they share")]
    TooDense,
    /// Columns that share attributes bound the share of single values alone.
    #[error("columns that share attributes hold no other guarantee than a bound on single values")]
    NotOfShares,
    /// It was told to stop.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

impl From<ColumnPartitionError> for SlicingError {
    fn from(none: ColumnPartitionError) -> Self {
        match none {
            ColumnPartitionError::Refused(error) => Self::Columns(error),
            ColumnPartitionError::Cancelled(cancelled) => Self::Cancelled(cancelled),
        }
    }
}

impl SlicingPlan {
    /// Slices `table`, whose rows are already permuted secretly: ties are decided by their order, and nothing else is drawn.
    ///
    /// # Errors
    /// [`SlicingError`] when the columns cannot be made, when not even the whole table holds, or when told to stop.
    pub fn slice(
        &self,
        table: &Table,
        stated: &dyn TableAnnotations,
        control: &Control,
    ) -> Result<SlicedTable, SlicingError> {
        if let SlicingDiversity::Mixture(l) | SlicingDiversity::MixtureWeighted(l) = self.diversity
            && l < Ratio::ONE
        {
            return Err(SlicingError::BelowOne);
        }
        if table.rows() == 0 {
            return Err(SlicingError::Empty);
        }
        let columns = self.columns.divide(table, self.attributes, self.sensitive, &self.bins, control)?;
        if is_cover(&columns) {
            let buckets = self.cover(table, &columns, stated, control)?;
            let boxes = columns.iter().map(|_| None).collect();
            return Ok(SlicedTable { columns, boxes, buckets });
        }
        let boxes = self.boxes(table, &columns, stated, control)?;
        let buckets = self.buckets(table, &columns, &boxes, stated, control)?;
        Ok(SlicedTable { columns, boxes, buckets })
    }

    /// The boxes of every column that is generalized: strict splits of the column alone.
    fn boxes(
        &self,
        table: &Table,
        columns: &[AttrSet],
        stated: &dyn TableAnnotations,
        control: &Control,
    ) -> Result<Vec<Option<BucketAssignment>>, SlicingError> {
        let of_column = |column: &AttrSet| {
            let quasi_identifiers = column.without(self.sensitive);
            let Some(k) = self.column_k.filter(|_| !quasi_identifiers.is_empty()) else { return Ok(None) };
            let guarantees = Vec::new();
            let alone = GeneralizationInput {
                quasi_identifiers,
                k,
                guarantees,
                split: MedianSplit::Strict,
                max_attempts: None,
            };
            alone.classes(table, &TaxonomyOrder(stated), control).map(Some).map_err(|none| match none {
                GeneralizeError::TooFewRows { rows } => SlicingError::TooFewRows { rows },
                GeneralizeError::Cancelled(cancelled) => SlicingError::Cancelled(cancelled),
                // there are rows, and no guarantees
                GeneralizeError::Empty | GeneralizeError::NotKept(_) => SlicingError::Empty,
            })
        };
        columns.iter().map(of_column).collect()
    }

    /// Along what rows are split.
    fn space(&self, table: &Table, stated: &dyn TableAnnotations) -> SplitSpace {
        SplitSpace::new(table, self.dimensions.unwrap_or(self.attributes.without(self.sensitive)), stated)
    }

    /// How far rows are split.
    fn limits(&self) -> PartitionLimits {
        let least = self.min_bucket.unwrap_or(usize::try_from(self.diversity.least_rows()).unwrap_or(usize::MAX));
        PartitionLimits { split: self.split, max_attempts: self.max_attempts, min_bucket: least.max(1) }
    }

    /// The tuple partition.
    fn buckets(
        &self,
        table: &Table,
        columns: &[AttrSet],
        boxes: &[Option<BucketAssignment>],
        stated: &dyn TableAnnotations,
        control: &Control,
    ) -> Result<BucketAssignment, SlicingError> {
        let space = || self.space(table, stated);
        let limits = self.limits();
        let sensitive = table.column(self.sensitive);
        let mixture = |l, weights| {
            let bound = || FrequencyBound { l, annotations: stated.annotations(self.sensitive) };
            let keys = keys_of(table, columns, boxes, self.sensitive, control)?;
            // the buckets of strict splits are boxes that have no value in common, and a row matches its own alone
            let quasi_identifiers = self.dimensions.is_none_or(|dimensions| !dimensions.contains(self.sensitive));
            let apart = self.split == MedianSplit::Strict && quasi_identifiers && boxes.iter().all(Option::is_none);
            let begun = LocalMixtureChecker::begin(&keys, sensitive, bound(), weights, apart);
            let mut unmixed = begun.ok_or_else(|| self.worst(table, &keys.beside))?;
            let made = partition::partition_apart(space(), table.rows(), limits, &mut unmixed, control);
            drop(unmixed);
            match made {
                Err(PartitionError::Unclear(NeedsOtherBuckets)) => {
                    self.mixed(table, &keys, bound(), weights, stated, control)
                }
                Err(PartitionError::Cancelled) => Err(Cancelled.into()),
                Ok(buckets) => Ok(buckets),
            }
        };
        match &self.diversity {
            SlicingDiversity::Mixture(l) => mixture(*l, BucketWeights::Shares),
            SlicingDiversity::MixtureWeighted(l) => mixture(*l, BucketWeights::SharesAndSizes),
            SlicingDiversity::Bucket(guarantees) => {
                let beside = beside_of(table, columns, boxes, self.sensitive, control)?;
                let population = Population::new(sensitive.counts()).on(stated.annotations(self.sensitive));
                let holds = |counts: &[(u32, u64)]| guarantees.iter().all(|&g| privacy::holds(g, counts, &population));
                let groups = (beside.count > 1).then_some(&beside);
                let mut judge =
                    PerHalfPredicate::new(vec![BucketRequirement { groups, sensitive, holds: Box::new(holds) }]);
                let all: Vec<u32> = (0..table.rows() as u32).collect();
                if !judge.holds(&all, &mut GroupTally::default()) {
                    return Err(self.worst(table, &beside));
                }
                let made = partition::partition_apart(space(), table.rows(), limits, &mut judge, control);
                made.map_err(|unfinished| unfinished.cancelled().into())
            }
        }
    }

    /// The tuple partition by a check that looks at all buckets which a row matches.
    fn mixed(
        &self,
        table: &Table,
        keys: &IdentityKeys,
        bound: FrequencyBound,
        weights: BucketWeights,
        stated: &dyn TableAnnotations,
        control: &Control,
    ) -> Result<BucketAssignment, SlicingError> {
        let begun = MixtureChecker::begin(keys, table.column(self.sensitive), bound, weights, control)?;
        let mut judge = begun.ok_or_else(|| self.worst(table, &keys.beside))?;
        Ok(partition::partition(self.space(table, stated), table.rows(), self.limits(), &mut judge, control)?)
    }

    /// Whether the whole table, as one bucket in these columns, holds: without that no slicing does.
    ///
    /// # Errors
    /// [`SlicingError::NotDiverse`] or [`SlicingError::NotDiverseTogether`] where it does not, or when told to stop.
    pub fn check_whole(
        &self,
        table: &Table,
        columns: &[AttrSet],
        stated: &dyn TableAnnotations,
        control: &Control,
    ) -> Result<(), SlicingError> {
        if is_cover(columns) {
            return self.check_cover(table, columns, stated, control);
        }
        let boxes = self.boxes(table, columns, stated, control)?;
        let beside = beside_of(table, columns, &boxes, self.sensitive, control)?;
        let sensitive = table.column(self.sensitive);
        let population = Population::new(sensitive.counts()).on(stated.annotations(self.sensitive));
        let guarantees = match &self.diversity {
            SlicingDiversity::Bucket(guarantees) => guarantees.clone(),
            // in one bucket no row has another to be mixed with
            SlicingDiversity::Mixture(l) | SlicingDiversity::MixtureWeighted(l) => {
                let alpha = Ratio::new(l.denominator(), l.numerator()).map_err(|_| SlicingError::BelowOne)?;
                vec![Guarantee::AlphaK { alpha, k: 1 }]
            }
        };
        let holds = |counts: &[(u32, u64)]| guarantees.iter().all(|&g| privacy::holds(g, counts, &population));
        let groups = (beside.count > 1).then_some(&beside);
        let judge = PerHalfPredicate::new(vec![BucketRequirement { groups, sensitive, holds: Box::new(holds) }]);
        let all: Vec<u32> = (0..table.rows() as u32).collect();
        if judge.holds(&all, &mut GroupTally::default()) { Ok(()) } else { Err(self.worst(table, &beside)) }
    }

    /// Where a sensitive value takes the largest share of the rows that are alike beside it.
    fn worst(&self, table: &Table, beside: &TallyGroups) -> SlicingError {
        let sensitive = table.column(self.sensitive);
        let all: Vec<u32> = (0..table.rows() as u32).collect();
        let (mut most, mut of) = (0, 1);
        GroupTally::default().groups(&all, Some(beside), &sensitive.codes, sensitive.domain.len(), |_, counts| {
            let here = counts.iter().map(|(_, count)| *count).max().unwrap_or(0);
            let rows: u64 = counts.iter().map(|(_, count)| count).sum();
            if u128::from(here) * u128::from(of) > u128::from(most) * u128::from(rows) {
                (most, of) = (here, rows);
            }
            true
        });
        SlicingError::NotDiverse { most, of }
    }
}

/// Boxes are published as intervals, which are read in the order of values: columns are cut along that order, whatever is stated.
struct TaxonomyOrder<'a>(&'a dyn TableAnnotations);

impl TableAnnotations for TaxonomyOrder<'_> {
    fn annotations(&self, attr: Attr) -> ColumnAnnotations {
        self.0.annotations(attr)
    }
}

/// What rows are known by: the boxes of generalized columns, the values of others.
fn keys_of(
    table: &Table,
    columns: &[AttrSet],
    boxes: &[Option<BucketAssignment>],
    sensitive: Attr,
    control: &Control,
) -> Result<IdentityKeys, Cancelled> {
    let others = columns.iter().zip(boxes).filter(|(column, _)| !column.contains(sensitive));
    let others = others.map(|(&column, boxes)| known_by(table, column, boxes.as_ref(), control));
    Ok(IdentityKeys {
        others: others.collect::<Result<_, _>>()?,
        beside: beside_of(table, columns, boxes, sensitive, control)?,
    })
}

/// What rows are known by in the sensitive column.
fn beside_of(
    table: &Table,
    columns: &[AttrSet],
    boxes: &[Option<BucketAssignment>],
    sensitive: Attr,
    control: &Control,
) -> Result<TallyGroups, Cancelled> {
    let column = columns.iter().zip(boxes).find(|(column, _)| column.contains(sensitive));
    let (column, boxes) = column.map_or((AttrSet::EMPTY, None), |(column, boxes)| (*column, boxes.as_ref()));
    known_by(table, column.without(sensitive), boxes, control)
}

/// What rows are known by in a column without the sensitive attribute.
fn known_by(
    table: &Table,
    column: AttrSet,
    boxes: Option<&BucketAssignment>,
    control: &Control,
) -> Result<TallyGroups, Cancelled> {
    match boxes {
        Some(boxes) => Ok(TallyGroups { of_row: boxes.bucket_of.clone(), count: boxes.buckets }),
        None => keys::together(table, column, control),
    }
}

#[cfg(test)]
mod tests;
