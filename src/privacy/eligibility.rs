//! Eligibility: whether the data itself satisfies a rule's guarantee, without which no publication of the sensitive
//! attribute can (Lemma 1 assumes it silently).

use super::rule::Rule;
use crate::microdata::Counts;
use crate::publication::Guarantee;

/// Why a rule cannot be satisfied, and what could be asked for instead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ineligible {
    /// The diversity that was asked for.
    pub requested: u64,
    /// The largest diversity that the data allows: rows divided by the count of the most frequent value, rounded down.
    pub largest_l: u64,
}

/// Whether the distribution of the rule's sensitive attribute over the whole table satisfies its guarantee.
///
/// # Errors
/// [`Ineligible`], with the largest feasible diversity.
pub fn check(rule: &Rule, counts: &dyn Counts) -> Result<(), Ineligible> {
    let Guarantee::LDiversity { l } = rule.guarantee;
    let (rows, largest) = (counts.rows(), counts.largest(rule.sensitive));
    if u128::from(largest) * u128::from(l) <= u128::from(rows) {
        Ok(())
    } else {
        Err(Ineligible { requested: l, largest_l: rows / largest.max(1) })
    }
}
