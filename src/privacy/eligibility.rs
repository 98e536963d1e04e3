//! Eligibility: whether the table itself satisfies the guarantee of a rule.
//!
//! No publication of the sensitive attribute satisfies the rule otherwise.
//!
//! [Jin et al. 2010, Lemma 1] assumes it.

use super::guarantee::{OverallCounts, holds};
use super::rule::PrivacyRule;
use crate::microdata::{Attr, AttributeCounts, ColumnAnnotations};
use crate::publication::{Guarantee, Ratio, ValueDistance};

/// Reason why a rule cannot be satisfied, with the largest feasible diversity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IneligibilityReason {
    /// The guarantee of the rule.
    pub requested: Guarantee,
    /// The largest feasible diversity.
    ///
    /// It is the number of rows divided by the count of the most frequent value, rounded down.
    pub largest_l: u64,
}

/// Whether the whole table satisfies the guarantee of a rule.
///
/// Where only the most frequent value and the number of values are known, a guarantee that these do not refute
/// passes; the table itself is checked later.
///
/// # Errors
/// [`IneligibilityReason`], with the largest feasible diversity.
pub fn check(rule: &PrivacyRule, counts: &dyn AttributeCounts) -> Result<(), IneligibilityReason> {
    let (rows, largest) = (counts.rows(), counts.largest(rule.sensitive));
    let satisfied = match (rule.guarantee, counts.of_values(rule.sensitive)) {
        // a caller with the thresholds checks them
        (Guarantee::Thresholds { digest, .. }, Some(_))
            if counts.annotations(rule.sensitive).limits(digest.bytes()).is_none() =>
        {
            true
        }
        (Guarantee::Thresholds { .. }, None) => true,
        // values that are no leaves are a fault of their own
        (Guarantee::TCloseness { distance: ValueDistance::Hierarchical, .. }, Some(_))
            if counts.annotations(rule.sensitive).taxonomy().is_none() =>
        {
            true
        }
        (guarantee, Some(values)) => {
            let population = OverallCounts::new(values).on(counts.annotations(rule.sensitive));
            holds(guarantee, &population.as_bucket(), &population)
        }
        (Guarantee::KAnonymity { k }, None) => rows >= k,
        (Guarantee::LDiversity { l }, None) => u128::from(largest) * u128::from(l) <= u128::from(rows),
        (Guarantee::AlphaK { alpha, k }, None) => is_at_most(largest, rows, alpha) && rows >= k,
        (Guarantee::DistinctLDiversity { l }, None) => counts.distinct(rule.sensitive) >= l,
        (Guarantee::EntropyLDiversity { l }, None) => counts.distinct(rule.sensitive) >= l.ceil(),
        (Guarantee::RecursiveLDiversity { l, .. }, None) => counts.distinct(rule.sensitive) >= l,
        (Guarantee::TCloseness { .. } | Guarantee::Rho { .. } | Guarantee::Delta { .. }, None) => true,
    };
    let largest_l = || largest_l(counts, rule.sensitive);
    if satisfied { Ok(()) } else { Err(IneligibilityReason { requested: rule.guarantee, largest_l: largest_l() }) }
}

/// The largest diversity that the table allows for an attribute.
///
/// A lower bound of it where its values are not kept.
#[must_use]
pub fn largest_l(counts: &dyn AttributeCounts, attr: Attr) -> u64 {
    let (rows, annotations) = (counts.rows(), counts.annotations(attr));
    let values = counts.of_values(attr).filter(|_| !annotations.excludable().is_empty());
    let Some(values) = values else { return rows / counts.largest(attr).max(1) };
    let bucket: Vec<(u32, u64)> = (0..).zip(values).collect();
    largest_l_of(&bucket, &annotations)
}

/// The largest diversity of rows with these values and counts.
pub(super) fn largest_l_of(bucket: &[(u32, u64)], annotations: &ColumnAnnotations) -> u64 {
    let (excludable, informative): (Vec<_>, Vec<_>) =
        bucket.iter().partition(|(code, _)| annotations.is_excludable(*code));
    let rows = |counts: &[(u32, u64)]| counts.iter().map(|(_, count)| count).sum::<u64>();
    let bound = |of: u64, counts: &[(u32, u64)]| of / counts.iter().map(|(_, count)| *count).max().unwrap_or(0).max(1);
    bound(rows(bucket), &excludable).min(bound(rows(&informative), &informative))
}

fn is_at_most(count: u64, of: u64, share: Ratio) -> bool {
    u128::from(count) * u128::from(share.denominator()) <= u128::from(share.numerator()) * u128::from(of)
}
