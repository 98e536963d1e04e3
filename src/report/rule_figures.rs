//! A rule in figures: what is known before a release, what the rule allows, and what the release gives away.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::manifest::{ManifestAchieved, ManifestEnforcedBy, ManifestRule};
use super::ratio::ManifestRatio;
use crate::publication::{Guarantee, Ratio};

/// A rule in figures. All are of rows, also where a person may have several.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct RuleFigures {
    /// The pointer of the rule in the specification.
    pub pointer: Option<String>,
    /// What may be known, an arrow, and what is protected.
    pub rule: String,
    /// The table that enforces the rule; absent where no path of tables leads to what it protects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub table: Option<String>,
    /// The largest probability of a value without the release: its share of all rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub prior: Option<ManifestRatio>,
    /// The largest probability that the rule allows; absent where it bounds no probability.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub bound: Option<ManifestRatio>,
    /// The largest probability in any bucket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub worst: Option<ManifestRatio>,
    /// What the rule bounds besides probabilities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub measure: Option<RuleMeasure>,
    /// Whether the bound holds over all buckets that match a row together, so that one bucket may reveal more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub is_over_buckets: bool,
    /// The rows that the rule does not bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub rows_without_bound: Option<ManifestRatio>,
}

/// What a rule bounds besides probabilities.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct RuleMeasure {
    /// Its name.
    pub name: String,
    /// What the rule allows.
    pub limit: String,
    /// Its value in the worst bucket or class.
    pub worst: f64,
}

/// Of what a bound is one, where buckets are weighed together.
pub const OVER_BUCKETS: &str = " over all buckets that match a row";

impl RuleMeasure {
    /// The worst value: a count, or three decimals.
    #[must_use]
    pub fn worst_in_words(&self) -> String {
        if self.worst.fract() == 0.0 { format!("{}", self.worst) } else { format!("{:.3}", self.worst) }
    }
}

impl RuleFigures {
    /// The figures of a rule; `is_over_buckets` where its bound holds over all buckets that match a row together.
    #[must_use]
    pub fn new(rule: &ManifestRule, is_over_buckets: bool) -> Self {
        let side = |names: &[String]| if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
        let protected = if rule.sensitive.is_empty() {
            "the person's row".to_owned()
        } else {
            rule.sensitive.join(if rule.combination { " and " } else { ", " })
        };
        let closed = rule.closed.filter(|closed| closed.buckets > 0);
        // a decomposition only lists at least l values of some attributes
        let is_bounded = closed.is_some() || rule.bounded != Some(false);
        let achieved = rule.achieved.unwrap_or_default();
        Self {
            pointer: rule.pointer.clone(),
            rule: format!("{} -> {protected}", side(&rule.quasi_identifiers)),
            table: match &rule.enforced_by {
                ManifestEnforcedBy::Unreachable { .. } => None,
                ManifestEnforcedBy::Guardian { guardian: table, .. } | ManifestEnforcedBy::Table { table } => {
                    Some(table.clone())
                }
            },
            prior: achieved.prior,
            bound: bound(rule.of_rows()).filter(|_| is_bounded),
            worst: achieved.worst_posterior,
            measure: measure(rule.of_rows(), &achieved),
            is_over_buckets,
            rows_without_bound: closed.map(|closed| ManifestRatio::new(closed.rows, closed.of)),
        }
    }

    /// What a bounded rule allows and gives away, in a sentence; `None` where there is nothing to compare.
    #[must_use]
    pub fn in_words(&self) -> Option<String> {
        let Self { rule, prior, bound, worst, measure, is_over_buckets, .. } = self;
        let (over, alone) = if *is_over_buckets { (OVER_BUCKETS, " alone") } else { ("", "") };
        let before = prior.map(|prior| format!("before the release at most {}", prior.in_words()));
        let allowed = bound.map(|bound| format!("allowed {}{over}", bound.in_words()));
        let given = worst.map(|worst| format!("in the worst bucket{alone} {}", worst.in_words()));
        let measured =
            measure.as_ref().map(|of| format!("{} {}, in the worst bucket {}", of.name, of.limit, of.worst_in_words()));
        let all: Vec<String> = [before, allowed, given, measured].into_iter().flatten().collect();
        (!all.is_empty()).then(|| format!("{rule}: {}", all.join("; ")))
    }
}

/// The largest probability of a value that a guarantee allows.
fn bound(guarantee: Guarantee) -> Option<ManifestRatio> {
    let ratio = |of: Ratio| ManifestRatio::new(of.numerator(), of.denominator());
    match guarantee {
        Guarantee::LDiversity { l } => Some(ManifestRatio::new(1, l)),
        Guarantee::AlphaK { alpha, .. } => Some(ratio(alpha)),
        Guarantee::Thresholds { most, .. } => Some(ratio(most)),
        Guarantee::KAnonymity { .. }
        | Guarantee::DistinctLDiversity { .. }
        | Guarantee::EntropyLDiversity { .. }
        | Guarantee::RecursiveLDiversity { .. }
        | Guarantee::TCloseness { .. }
        | Guarantee::Rho { .. }
        | Guarantee::Delta { .. } => None,
    }
}

fn measure(guarantee: Guarantee, achieved: &ManifestAchieved) -> Option<RuleMeasure> {
    let of = |name: &str, limit: String, worst: Option<f64>| {
        worst.map(|worst| RuleMeasure { name: name.to_owned(), limit, worst })
    };
    let count = |value: Option<u64>| value.map(|value| value as f64);
    match guarantee {
        Guarantee::KAnonymity { k } => of("rows of a class", format!("at least {k}"), count(achieved.k)),
        Guarantee::DistinctLDiversity { l } => {
            of("values of a bucket", format!("at least {l}"), count(achieved.distinct_values))
        }
        Guarantee::EntropyLDiversity { l } => {
            of("equally frequent values with the same entropy", format!("at least {l}"), achieved.entropy_l)
        }
        Guarantee::RecursiveLDiversity { c, .. } => {
            of("quotient of the first and the later values", format!("below {c}"), achieved.recursive_c)
        }
        Guarantee::TCloseness { t, .. } => of("distance", format!("at most {t}"), achieved.distance),
        Guarantee::Delta { b, .. } => of("distance", format!("at most {b}"), achieved.distance),
        Guarantee::Rho { rho1, rho2, .. } => {
            of("gain in probability", format!("no fact from at most {rho1} to above {rho2}"), achieved.gain)
        }
        Guarantee::LDiversity { .. } | Guarantee::AlphaK { .. } | Guarantee::Thresholds { .. } => None,
    }
}
