//! Remedies of faults: patches of the document (RFC 6902), each of which was tried.
//!
//! A fault says what it knows: the names that a misspelled one resembles, the bounds of a number, the largest l. From that come
//! candidates. A candidate is a remedy if the document that it leads to has the fault no more, and no new fault where it was
//! changed; but what the data forbid of a rule may be seen once the rule can be read. What only a person can decide is no
//! candidate: no rule, and nothing that a rule protects, is left out.

mod candidate;
mod guarantees;
mod members;
mod patch;
mod rewritten;
mod rules;
mod sizes;
mod values;

use serde_json::Value;

use crate::problem::{Fault, FaultRemedy, Kind, Problem};
use candidate::Candidate;
use patch::{MAX_SIZE, apply, size};
pub use rewritten::{fitted, in_whole_members};

/// How many faults of a document get remedies: each candidate is a reading of the whole document.
const MAX_REMEDIED: usize = 10;

/// How many remedies a fault gets.
const MAX_REMEDIES: usize = 3;

/// How many candidates of a fault are tried.
const MAX_TRIED: usize = 12;

/// What a document says, or the problem that it does not, with remedies of its faults.
///
/// # Errors
/// The problem of the faults that `read` finds.
pub fn read_or_remedy<T>(document: &Value, read: impl Fn(&Value) -> Result<T, Vec<Fault>>) -> Result<T, Problem> {
    let faults = |document: &Value| read(document).err().unwrap_or_default();
    read(document).map_err(|found| with_remedies(Problem::of_faults(found), document, faults))
}

/// The problem with remedies of its first faults, after those that faults have already; `read` gives the faults of another
/// document.
pub fn with_remedies(mut problem: Problem, document: &Value, read: impl Fn(&Value) -> Vec<Fault>) -> Problem {
    if problem.errors.is_empty() || size(document, MAX_SIZE) >= MAX_SIZE {
        return problem;
    }
    let before = problem.errors.clone();
    // an unknown name may mean an attribute that seems to be without a place
    let is_misspelled = before.iter().any(|fault| fault.kind == Kind::UnknownAttribute);
    // of a fault that `read` does not see, it cannot say whether it is gone; the engine says what ends it
    let read_again = read(document);
    let is_tried = |fault: &Fault| read_again.iter().any(|other| is_at(other, fault) && is_of_table(other, fault));
    let is_unclear = |fault: &Fault| is_misspelled && fault.kind == Kind::UnclassifiedAttributes;
    let mendable = |fault: &&mut Fault| is_tried(fault) && !is_unclear(fault);
    for fault in problem.errors.iter_mut().filter(mendable).take(MAX_REMEDIED) {
        let mut offered = std::mem::take(&mut fault.remedies);
        let mut families = Vec::new();
        // what was tried on the data needs no guess from its counts
        let is_bound = matches!(fault.kind, Kind::RuleIneligible | Kind::InfeasibleRoot) && !offered.is_empty();
        let candidates = if is_bound { Vec::new() } else { candidates(fault, document) };
        for candidate in candidates.into_iter().take(MAX_TRIED) {
            let is_known = offered.iter().any(|remedy| remedy.title == candidate.title)
                || candidate.family.is_some_and(|family| families.contains(&family));
            if is_known || offered.len() >= MAX_REMEDIES {
                continue;
            }
            let ends = |patched: Value| ends(fault, &before, &read(&patched), &candidate);
            if apply(document, &candidate.operations).is_some_and(ends) {
                families.extend(candidate.family);
                offered.push(FaultRemedy { title: candidate.title, patch: candidate.operations.into() });
            }
        }
        fault.remedies = offered;
    }
    problem
}

/// Whether two faults are of one kind at one place.
fn is_at(fault: &Fault, other: &Fault) -> bool {
    (&fault.pointer, fault.kind) == (&other.pointer, other.kind)
}

/// Whether a fault of sizes is of the whole table, as a trial is: what strata lack is said in other words.
fn is_of_table(tried: &Fault, fault: &Fault) -> bool {
    !matches!(fault.kind, Kind::InfeasibleSizes | Kind::DomainTooSmall) || tried.detail == fault.detail
}

/// Whether the fault is gone, and nothing that was changed has a new one.
fn ends(fault: &Fault, before: &[Fault], after: &[Fault], candidate: &Candidate) -> bool {
    let paths = || candidate.operations.iter().filter_map(|operation| operation["path"].as_str());
    let is_moved = candidate.operations.iter().any(|operation| operation["op"] == "move");
    let changed = |other: &Fault| {
        paths().any(|path| match is_moved {
            // what is wrong within a moved value was wrong before, and unseen
            true => other.pointer == path,
            false => other.pointer.starts_with(path) || path.starts_with(&other.pointer),
        })
    };
    let count = |all: &[Fault]| all.iter().filter(|other| is_at(other, fault)).count();
    let is_new = |other: &&Fault| {
        let is_seen_now = candidate.spells(fault) && matches!(other.kind, Kind::RuleIneligible | Kind::RuleImpossible);
        !is_seen_now && !before.iter().any(|known| is_at(known, other))
    };
    let is_it = |other: &Fault| is_at(other, fault) && other.detail == fault.detail;
    let is_unmoved = !is_moved || !after.iter().any(changed);
    count(after) < count(before) && !after.iter().any(is_it) && is_unmoved && !after.iter().filter(is_new).any(changed)
}

fn candidates(fault: &Fault, document: &Value) -> Vec<Candidate> {
    let value = document.pointer(&fault.pointer);
    match fault.kind {
        Kind::UnknownField => members::of_unknown_member(fault, value),
        Kind::UnknownAttribute => members::of_unknown_attribute(fault, value),
        Kind::UnclassifiedAttributes => members::of_unclassified(fault, document),
        Kind::IdentifierPublished | Kind::ReservedName => members::of_attribute(fault, document),
        Kind::ParameterRange => value.map(|value| members::of_range(fault, value)).unwrap_or_default(),
        Kind::BadColumns | Kind::GuaranteeUnsupported => members::of_unfit(fault, document),
        Kind::InfeasibleSizes => sizes::of_sizes(fault, document),
        Kind::WorkLimit => sizes::of_work(fault, document),
        Kind::DomainTooSmall => sizes::of_counterfeits(fault, value),
        Kind::RepublishUnsupported => members::of_republication(fault),
        Kind::RuleMalformed => rules::of_malformed(fault, document),
        Kind::VacuousGuarantee => guarantees::of_vacuous(fault, value),
        Kind::RuleIneligible => guarantees::of_ineligible(fault, document),
        Kind::InfeasibleRoot => guarantees::of_infeasible(fault, document),
        Kind::TaxonomyConflict => values::of_conflict(fault, value),
        Kind::TaxonomyValueMissing => values::without_taxonomy(fault),
        Kind::ThresholdMissing => values::of_missing_threshold(fault, document),
        Kind::ThresholdUnused => values::of_unused_thresholds(fault, document),
        _ => Vec::new(),
    }
}
