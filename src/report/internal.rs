//! The internal report: what the original says of a release. For its holder alone: nothing of it stands in any other document.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::manifest::SpecificationNotice;
use crate::publication::ModelKind;

/// What only the original can say of a release.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct InternalReport {
    /// Rows of the original.
    pub rows: u64,
    /// Rows that stand in no table.
    pub suppressed_rows: u64,
    /// How far the readers' model is from the original; where the specification asks for it.
    pub kl: Option<KlReport>,
    /// How wrong estimates of COUNT queries are; where the specification asks for it.
    pub count_queries: Option<CountReport>,
    /// How far attributes are generalized, in a sequential release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generalization: Option<Generalization>,
    /// How well its class can be told from a sequential release, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classification: Option<Classification>,
    /// What the plan pointed out.
    pub warnings: Vec<SpecificationNotice>,
}

/// How much less is published than the original has.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Generalization {
    /// Steps up taxonomies, over all generalized attributes, for each row; an interval of several values is one step.
    pub levels_per_row: f64,
    /// Cells that are not published as they are, for each row.
    pub values_per_row: f64,
}

/// How often a decision tree (C4.5), learnt from two thirds of the rows as they are published, tells the class of the others wrongly. A
/// value or label is to it as far from one as from any other, also among numbers.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Classification {
    /// The class.
    pub class: String,
    /// Rows it was learnt from.
    pub trained_rows: u64,
    /// Rows it was held against.
    pub tested_rows: u64,
    /// The share of these whose class is told wrongly.
    pub error: f64,
    /// The same of a tree that was learnt from the same attributes ungeneralized.
    pub error_of_original: f64,
    /// The same of whoever always says the most frequent class.
    pub error_of_most_frequent: f64,
}

/// Kullback and Leibler's divergence of the original from the readers' model.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct KlReport {
    /// In nats; null when it is infinite, because some row of the original cannot occur in the model.
    pub nats: Option<f64>,
    /// In bits.
    pub bits: Option<f64>,
    /// How the model is made: `closed_form` of all tables; where some form no tree, `ipf` of all, by iterative proportional fitting;
    /// or `acyclic_subset`, of some that form one, when they have too many combinations of values to be fitted.
    pub kl_method: ModelKind,
}

impl KlReport {
    /// So many nats of a model that is made like this.
    #[must_use]
    pub fn new(nats: f64, kl_method: ModelKind) -> Self {
        let nats = Some(nats).filter(|nats| nats.is_finite());
        Self { nats, bits: nats.map(|nats| nats / std::f64::consts::LN_2), kl_method }
    }
}

/// Errors of random COUNT queries, relative to the true counts.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct CountReport {
    /// Queries that were compared; fewer than were asked for when hardly any query has a row.
    pub queries: u64,
    /// Queries that were drawn again because no row has them.
    pub redrawn: u64,
    /// The mean of the relative errors.
    pub mean: Option<f64>,
    /// Half the width of the 95% confidence interval of the mean.
    pub mean_within: Option<f64>,
    /// The median.
    pub median: Option<f64>,
    /// The 95th percentile.
    pub percentile_95: Option<f64>,
    /// The largest.
    pub largest: Option<f64>,
}

impl CountReport {
    /// What relative errors amount to; `rising` are they in their order.
    #[must_use]
    pub fn new(rising: &[f64], redrawn: u64) -> Self {
        let queries = rising.len();
        let of = queries as f64;
        let mean = (queries > 0).then(|| rising.iter().sum::<f64>() / of);
        let spread = |mean: f64| rising.iter().map(|error| (error - mean).powi(2)).sum::<f64>() / (of - 1.0);
        let at = |share: f64| rising.get(((of * share).ceil() as usize).max(1) - 1).copied();
        Self {
            queries: queries as u64,
            redrawn,
            mean,
            mean_within: mean.filter(|_| queries > 1).map(|mean| 1.96 * (spread(mean) / of).sqrt()),
            median: at(0.5),
            percentile_95: at(0.95),
            largest: rising.last().copied(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_summed_up() {
        let report = CountReport::new(&[0.0, 0.0, 0.5, 1.5], 3);
        assert_eq!((report.queries, report.redrawn, report.mean), (4, 3, Some(0.5)));
        assert_eq!((report.median, report.percentile_95, report.largest), (Some(0.0), Some(1.5), Some(1.5)));
        // squares of deviations: 0.25, 0.25, 0, 1
        assert!((report.mean_within.unwrap() - 1.96 * (0.5_f64 / 4.0).sqrt()).abs() < 1e-12);
        let none = CountReport::new(&[], 9);
        assert_eq!((none.mean, none.median, none.largest, none.mean_within), (None, None, None, None));
        assert_eq!(CountReport::new(&[0.25], 0).mean_within, None);
    }
}
