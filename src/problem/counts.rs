//! Counts of the data in problems, which callers without `datasets:inspect` do not see.

use serde_json::{Map, Value};

use super::{Kind, Problem};

/// Members that reveal a count of the data.
const COUNT_MEMBERS: [&str; 5] = ["largest_l", "largest_k", "smallest_h", "proof", "too_frequent"];
/// Members of `strata` that reveal a count.
const STRATA_COUNTS: [&str; 2] = ["ineligible", "of"];
/// Repairs that state a count of the data.
const REPAIRS_WITH_COUNTS: [&str; 6] = ["lower_l", "lower_k", "raise_c", "raise_alpha", "raise_t", "raise_thresholds"];
/// Faults whose detail reveals a count.
const KINDS_WITH_COUNTS: [Kind; 3] = [Kind::RuleIneligible, Kind::InfeasibleRoot, Kind::CanBeConcluded];
/// Faults whose remedies were found by counts: a detail has none.
const KINDS_WITH_COUNTED_REMEDIES: [Kind; 6] = [
    Kind::NoNoise,
    Kind::MultiSaEmpty,
    Kind::DomainTooSmall,
    Kind::InfeasibleSizes,
    Kind::ThresholdMissing,
    Kind::ThresholdUnused,
];

/// Replaces a detail that reveals a count.
const fn detail_without_counts(kind: Kind) -> &'static str {
    match kind {
        Kind::CanBeConcluded => {
            "values can be inferred; a key with datasets:inspect sees by whom and in how many buckets"
        }
        Kind::InfeasibleRoot => {
            "the data cannot satisfy the requirement; a key with datasets:inspect sees the strictest bound that it can"
        }
        _ => "the data cannot satisfy the rule; a key with datasets:inspect receives the largest possible l",
    }
}

/// Removes counts from a stored document, as [`Problem::without_counts`] does from a problem.
pub fn hide_counts(document: &mut Value) {
    let faults = document.get_mut("errors").and_then(Value::as_array_mut);
    for fault in faults.into_iter().flatten().filter_map(Value::as_object_mut) {
        let is_counted = remove_counts(fault);
        let kind = Kind::ALL.iter().copied().find(|kind| fault.get("type") == Some(&kind.uri().into()));
        if let Some(kind) = kind.filter(|kind| KINDS_WITH_COUNTS.contains(kind)) {
            fault.insert("detail".to_owned(), detail_without_counts(kind).into());
        }
        if is_counted || kind.is_none_or(has_counted_remedies) {
            fault.remove("remedies");
        }
    }
}

/// Whether the remedies of a kind say what the data can hold.
fn has_counted_remedies(kind: Kind) -> bool {
    KINDS_WITH_COUNTS.contains(&kind) || KINDS_WITH_COUNTED_REMEDIES.contains(&kind)
}

/// Removes the members that reveal a count, and the repairs that do; whether there is such a repair, which stands among the
/// remedies too.
fn remove_counts(members: &mut Map<String, Value>) -> bool {
    COUNT_MEMBERS.iter().for_each(|count| drop(members.remove(*count)));
    if let Some(strata) = members.get_mut("strata").and_then(Value::as_object_mut) {
        STRATA_COUNTS.iter().for_each(|count| drop(strata.remove(*count)));
    }
    let Some(repairs) = members.get_mut("repairs").and_then(Value::as_array_mut) else { return false };
    let before = repairs.len();
    repairs.retain(|repair| REPAIRS_WITH_COUNTS.iter().all(|count| repair.get(*count).is_none()));
    repairs.len() < before
}

impl Problem {
    /// Removes counts of the data, for callers without `datasets:inspect`.
    #[must_use]
    pub fn without_counts(mut self) -> Self {
        for fault in &mut self.errors {
            let is_counted = remove_counts(&mut fault.members);
            if KINDS_WITH_COUNTS.contains(&fault.kind) {
                detail_without_counts(fault.kind).clone_into(&mut fault.detail);
            }
            if is_counted || has_counted_remedies(fault.kind) {
                fault.remedies.clear();
            }
        }
        self
    }
}
