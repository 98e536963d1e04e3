//! The internal report: utility figures that need the original, for the holder of the original alone.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::exposures::PractitionerExposures;
use super::manifest::SpecificationNotice;
use crate::publication::{ModelKind, NoticeKind};

/// Utility figures of a release that need the original.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct InternalReport {
    /// Rows of the original.
    pub rows: u64,
    /// Rows that no table holds.
    pub suppressed_rows: u64,
    /// What was left out before anything else, where a bounded number of rows of each person is kept; not counted in `rows`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub contributions: Option<LeftOutContributions>,
    /// The divergence of the original from the model of readers, where the specification asks for it.
    pub kl: Option<KlReport>,
    /// The errors of COUNT estimates, where the specification asks for them.
    pub count_queries: Option<CountReport>,
    /// The amount of generalization in a sequential release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub generalization: Option<Generalization>,
    /// The accuracy of a classifier on a sequential release with a class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub classification: Option<Classification>,
    /// What a reader infers who knows all other published columns of a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub practitioner: Option<PractitionerExposures>,
    /// The published attributes as they are in the original. Absent in older reports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<OriginalColumn>,
    /// What became of the rows, where the table is published night after night.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub night: Option<NightCounts>,
    /// Notices of the plan.
    pub warnings: Vec<SpecificationNotice>,
}

/// What became of the rows of a night.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct NightCounts {
    /// Rows of persons who were published before.
    pub known: u64,
    /// Rows of persons who were never published.
    pub newcomers: u64,
    /// Known persons who are published, and were not on the night before.
    pub returning: u64,
    /// Persons who were published on the night before, and are not in the table.
    pub departed: u64,
    /// Known persons whose sensitive value is not the published one.
    pub changed: u64,
    /// Newcomers who wait for a later night.
    pub waiting: u64,
    /// Rows of known or forgotten persons that are not published.
    pub withheld: u64,
    /// Persons with a new bucket for a new value.
    pub moved: u64,
    /// Buckets that were made of single survivors.
    pub merged: u64,
    /// Whether the newcomers are enough, and wait because a value is too frequent among them.
    pub ineligible: bool,
}

impl NightCounts {
    /// What the holder of the original should know of the night.
    #[must_use]
    pub fn notices(&self) -> Vec<SpecificationNotice> {
        let notice = |r#type, detail| SpecificationNotice { r#type, pointer: None, detail };
        let ineligible = self.ineligible.then(|| {
            let detail = format!(
                "{} newcomers wait though they are enough: a value is too frequent among them. Who sees that they wait may \
                 conclude so; state a larger min_newcomers",
                self.waiting
            );
            notice(NoticeKind::CohortIneligible, detail)
        });
        let unpublished = (self.waiting + self.withheld > 0).then(|| {
            let detail =
                format!("{} rows of newcomers wait, and {} of others are withheld", self.waiting, self.withheld);
            notice(NoticeKind::NotTonight, detail)
        });
        ineligible.into_iter().chain(unpublished).collect()
    }
}

/// What a bound on the rows of a person left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct LeftOutContributions {
    /// Rows of the upload that are in no dataset and in no table.
    pub left_out_rows: u64,
    /// Persons of whom rows were left out.
    pub cut_persons: u64,
}

/// A published attribute in the original.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct OriginalColumn {
    /// The attribute, by its published name.
    pub attribute: String,
    /// The number of different values; the missing one counts.
    pub distinct: u64,
}

/// The amount of generalization of a release.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Generalization {
    /// Steps up the taxonomies for each row, over all generalized attributes; an interval of several values is one step.
    pub levels_per_row: f64,
    /// Generalized cells for each row.
    pub values_per_row: f64,
}

/// The errors of a decision tree that is trained on two thirds of the published rows and tested on the others.
///
/// The tree treats all values and labels as unordered, also numbers.
///
/// # Citations
/// [Quinlan 1993]
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Classification {
    /// The class attribute.
    pub class: String,
    /// Rows that the tree is trained on.
    pub trained_rows: u64,
    /// Rows that the tree is tested on.
    pub tested_rows: u64,
    /// The share of tested rows with a wrong class.
    pub error: f64,
    /// The same share for a tree on the original attributes.
    pub error_of_original: f64,
    /// The same share for a constant guess of the most frequent class.
    pub error_of_most_frequent: f64,
}

/// Kullback-Leibler divergence of the original from the model of readers.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct KlReport {
    /// In nats; null when it is infinite, because some row of the original cannot occur in the model.
    pub nats: Option<f64>,
    /// In bits.
    pub bits: Option<f64>,
    /// How the model is made: `closed_form` of all tables; `ipf` by iterative proportional fitting where some form no join tree;
    /// `acyclic_subset` of some tables where fitting is too large.
    pub kl_method: ModelKind,
}

impl KlReport {
    /// A divergence in nats, and the kind of its model.
    #[must_use]
    pub fn new(nats: f64, kl_method: ModelKind) -> Self {
        let nats = Some(nats).filter(|nats| nats.is_finite());
        Self { nats, bits: nats.map(|nats| nats / std::f64::consts::LN_2), kl_method }
    }
}

/// Errors of random COUNT queries, relative to the true counts.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct CountReport {
    /// Queries that were compared; fewer than requested when few queries match a row.
    pub queries: u64,
    /// Queries that were drawn again because no row matches them.
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
    /// The summary of ascending relative errors.
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
    fn count_report_summarizes_errors() {
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
