//! Rules of earlier releases that the tables of a design keep.

use crate::microdata::AttrSet;
use crate::privacy::{self, PrivacyRule};
use crate::publication::Guarantee;
use crate::publish::input::PlanInput;

/// The active rules whose guarantees buckets can keep: the table as one bucket keeps them.
///
/// Thresholds of an earlier release are known by their digest alone. No value may have more than the least of them.
pub(super) fn claimable(input: &PlanInput<'_>) -> Vec<PrivacyRule> {
    let stricter = |rule: &PrivacyRule| {
        let guarantee = match rule.guarantee {
            Guarantee::Thresholds { digest, least, .. }
                if input.counts.annotations(rule.sensitive).limits(digest.bytes()).is_none() =>
            {
                Guarantee::LDiversity { l: least.denominator().div_ceil(least.numerator().max(1)) }
            }
            guarantee => guarantee,
        };
        PrivacyRule { guarantee, ..*rule }
    };
    // what protects an attribute that is not published says nothing of buckets
    let published = AttrSet::first(input.counts.attributes());
    let (claimed, others): (Vec<&PrivacyRule>, Vec<&PrivacyRule>) =
        input.active_rules.iter().partition(|rule| published.contains(rule.sensitive));
    let kept = claimed.into_iter().map(stricter).filter(|rule| privacy::check_eligibility(rule, input.counts).is_ok());
    kept.chain(others.into_iter().copied()).collect()
}
