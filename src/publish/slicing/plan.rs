//! Request of a slicing: columns, diversity and limits of the partition.

use std::sync::Arc;

use super::columns::{ColumnChoice, CorrelationBins, is_cover};
use crate::microdata::{Attr, AttrSet, Table};
use crate::privacy;
use crate::privacy::links::Strata;
use crate::publication::{Guarantee, Protected, Ratio, SlicedDiversity, TableGuard, TableProtection};
use crate::publish::partition::{MedianSplit, PartitionLimits, PartitionTuning, SplitSpace, TableAnnotations};
use crate::spec::{SlicedColumns, SlicingSpec};

/// Diversity of a sliced table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SlicingDiversity {
    /// Every bucket keeps the guarantees by itself, among rows whose sensitive columns are equal.
    ///
    /// A fractional l is `alpha_k` with alpha = 1/l and k = 1.
    Bucket(Vec<Guarantee>),
    /// No sensitive value has a posterior above 1/l over all matching buckets of a row [Li et al. 2012, section 3.2].
    ///
    /// Buckets are weighted by the share of their combinations that are the row. A small bucket may exceed the bound if a large one
    /// compensates for it.
    Mixture(Ratio),
    /// Mixture diversity, also with buckets weighted by the expected number of copies of the row.
    MixtureWeighted(Ratio),
}

impl SlicingDiversity {
    /// Default of the smallest number of rows of a bucket.
    #[must_use]
    pub fn least_rows(&self) -> u64 {
        match self {
            Self::Bucket(guarantees) => guarantees.iter().map(|&g| privacy::fewest_rows(g)).max().unwrap_or(1).max(1),
            Self::Mixture(l) | Self::MixtureWeighted(l) => l.ceil().max(1),
        }
    }

    /// Protection of the sliced table.
    ///
    /// It is guarding if every bucket keeps the guarantees and `columns` share no attribute. Otherwise another table may link
    /// rows of the columns.
    #[must_use]
    pub fn protection(&self, columns: &[AttrSet], sensitive: Attr) -> TableProtection {
        let attributes = columns.iter().fold(AttrSet::EMPTY, |all, column| all.union(*column));
        match self {
            _ if is_cover(columns) => TableProtection::Exclusive,
            Self::Bucket(guarantees) => TableProtection::Guarding(vec![TableGuard::new(
                attributes.without(sensitive),
                Protected::Attribute(sensitive),
                guarantees.clone(),
            )]),
            Self::Mixture(_) | Self::MixtureWeighted(_) => TableProtection::Exclusive,
        }
    }
}

/// How a table is to be sliced.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlicingPlan {
    /// The published attributes.
    pub attributes: AttrSet,
    /// The sensitive attribute.
    pub sensitive: Attr,
    /// Attributes of each column, or how to choose them.
    pub columns: ColumnChoice,
    /// Diversity of the table.
    pub diversity: SlicingDiversity,
    /// How the partition halves a bucket.
    pub split: MedianSplit,
    /// Attributes along which rows are split. Default: the published ones without the sensitive one.
    pub dimensions: Option<AttrSet>,
    /// Largest number of dimensions tried for a bucket; `None` for all.
    pub max_attempts: Option<usize>,
    /// Smallest number of rows of a bucket. Default: [`SlicingDiversity::least_rows`].
    pub min_bucket: Option<usize>,
    /// Smallest number of rows of each value of a generalized column, the sensitive attribute apart.
    pub column_k: Option<u64>,
    /// Bins of numeric attributes when correlations are measured.
    pub bins: CorrelationBins,
    /// Memory layout and parallelism of the partition.
    pub tuning: PartitionTuning,
    /// The sets of rows in which buckets are made; `None` for the whole table.
    pub strata: Option<Arc<Strata>>,
}

impl SlicingPlan {
    /// The request of a specification that publishes `attributes`.
    #[must_use]
    pub fn from_spec(spec: &SlicingSpec, attributes: AttrSet) -> Self {
        let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        // the specification has an l wherever the diversity is a mixture
        let l = spec.l.unwrap_or(Ratio::ONE);
        Self {
            attributes,
            sensitive: spec.sensitive(),
            columns: match &spec.columns {
                SlicedColumns::Count(count) => ColumnChoice::Count(number(*count)),
                SlicedColumns::SensitiveWidth { count, width } => {
                    ColumnChoice::SensitiveWidth { count: number(*count), width: number(*width) }
                }
                SlicedColumns::Explicit(columns) => ColumnChoice::Explicit(columns.clone()),
            },
            diversity: match spec.diversity {
                SlicedDiversity::Bucket => SlicingDiversity::Bucket(vec![spec.rule.guarantee]),
                SlicedDiversity::Mixture => SlicingDiversity::Mixture(l),
                SlicedDiversity::MixtureWeighted => SlicingDiversity::MixtureWeighted(l),
            },
            split: if spec.strict { MedianSplit::Strict } else { MedianSplit::Relaxed },
            dimensions: None,
            max_attempts: spec.max_attempts.map(number),
            min_bucket: spec.min_bucket.map(number),
            column_k: spec.column_k,
            bins: CorrelationBins { of: spec.bins.clone(), ..CorrelationBins::default() },
            tuning: PartitionTuning::default(),
            strata: None,
        }
    }

    /// The diversity, as a publication names it.
    pub(super) const fn published_diversity(&self) -> SlicedDiversity {
        match self.diversity {
            SlicingDiversity::Bucket(_) => SlicedDiversity::Bucket,
            SlicingDiversity::Mixture(_) => SlicedDiversity::Mixture,
            SlicingDiversity::MixtureWeighted(_) => SlicedDiversity::MixtureWeighted,
        }
    }

    /// Dimensions along which rows are split.
    pub(super) fn space(&self, table: &Table, annotations: &dyn TableAnnotations) -> SplitSpace {
        let dimensions = self.dimensions.unwrap_or(self.attributes.without(self.sensitive));
        SplitSpace::new(table, dimensions, annotations).within(self.strata.as_ref())
    }

    /// Limits of the tuple partition.
    pub(super) fn limits(&self) -> PartitionLimits {
        let least = self.min_bucket.unwrap_or(usize::try_from(self.diversity.least_rows()).unwrap_or(usize::MAX));
        PartitionLimits {
            split: self.split,
            max_attempts: self.max_attempts,
            min_bucket: least.max(1),
            tuning: self.tuning,
        }
    }
}
