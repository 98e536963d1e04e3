//! Eligibility: whether the data itself satisfies a rule's guarantee, without which no publication of the sensitive
//! attribute can (Lemma 1 assumes it silently).

use super::guarantee::{Population, holds};
use super::rule::Rule;
use crate::microdata::Counts;
use crate::publication::{Guarantee, Ratio};

/// Why a rule cannot be satisfied, and what could be asked for instead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ineligible {
    /// The guarantee that was asked for.
    pub requested: Guarantee,
    /// The largest diversity that the data allows: rows divided by the count of the most frequent value, rounded down.
    pub largest_l: u64,
}

/// Whether the distribution of the rule's sensitive attribute over the whole table satisfies its guarantee. Where only the
/// most frequent value and the number of values are known, what these cannot refute is let through: the table will be asked.
///
/// # Errors
/// [`Ineligible`], with the largest feasible diversity.
pub fn check(rule: &Rule, counts: &dyn Counts) -> Result<(), Ineligible> {
    let (rows, largest) = (counts.rows(), counts.largest(rule.sensitive));
    let satisfied = match (rule.guarantee, counts.of_values(rule.sensitive)) {
        (guarantee, Some(values)) => {
            let population = Population::new(values);
            holds(guarantee, &population.as_bucket(), &population)
        }
        (Guarantee::LDiversity { l }, None) => u128::from(largest) * u128::from(l) <= u128::from(rows),
        (Guarantee::AlphaK { alpha, k }, None) => is_at_most(largest, rows, alpha) && rows >= k,
        (Guarantee::DistinctLDiversity { l }, None) => counts.distinct(rule.sensitive) >= l,
        (Guarantee::EntropyLDiversity { l }, None) => counts.distinct(rule.sensitive) >= l.ceil(),
        (Guarantee::RecursiveLDiversity { l, .. }, None) => counts.distinct(rule.sensitive) >= l,
        (Guarantee::TCloseness { .. } | Guarantee::Rho { .. } | Guarantee::Delta { .. }, None) => true,
    };
    if satisfied { Ok(()) } else { Err(Ineligible { requested: rule.guarantee, largest_l: rows / largest.max(1) }) }
}

fn is_at_most(count: u64, of: u64, share: Ratio) -> bool {
    u128::from(count) * u128::from(share.denominator()) <= u128::from(share.numerator()) * u128::from(of)
}
