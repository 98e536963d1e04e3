//! The look of a job that holds a ticket: which jobs it waits for, and what the ledger says.
//!
//! A job announces its persons, draws a ticket, and then looks. Of two jobs the one with the higher ticket sees the
//! other; the lower one may ignore it. Waits go to lower tickets, so there is no circle of waits.

use super::coverage::{CoverageId, LiveCoverage};
use super::judge::{Admission, JudgedRows, PeopleRefusal, UnrelatedPolicy, judge};
use super::statement::SeparationStatement;

/// Coverages, statements and settings at one moment.
#[derive(Clone, Copy, Debug)]
pub struct LedgerView<'a> {
    /// The live coverages.
    pub live: &'a [LiveCoverage],
    /// Announced coverages with a lower ticket, lowest first.
    pub pending: &'a [LiveCoverage],
    /// All statements, in their order.
    pub statements: &'a [SeparationStatement],
    /// What the tenant wants of unrelated populations.
    pub policy: UnrelatedPolicy,
}

/// What a job that holds a ticket does next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Look {
    /// It looks again when this one is live or void.
    Wait(CoverageId),
    /// The ledger has decided.
    Decided(Result<Admission, PeopleRefusal>),
}

/// Judges a job beside all live coverages, unless a pending one would change the outcome.
///
/// A refusal stays one, whatever becomes live. An admission names everything that it rests on, also where that is
/// pending. A night waits for all earlier ones of its population: each changes what the next one goes on from.
#[must_use]
pub fn look(rows: &JudgedRows<'_>, view: &LedgerView<'_>) -> Look {
    let judged = |pending: &[LiveCoverage]| {
        let live = [view.live, pending].concat();
        judge(rows, &live, view.statements, view.policy)
    };
    let admission = match judged(&[]) {
        Ok(admission) => admission,
        refusal => return Look::Decided(refusal),
    };
    let is_earlier_night = |pending: &&LiveCoverage| {
        let chain = pending.coverage.chain.as_deref();
        rows.is_republication && chain.is_some() && chain == rows.population
    };
    if let Some(pending) = view.pending.iter().find(is_earlier_night) {
        return Look::Wait(pending.id);
    }
    let changes = |outcome: &Result<Admission, PeopleRefusal>| match outcome {
        Ok(other) => Admission { basis: admission.basis.clone(), ..other.clone() } != admission,
        Err(_) => true,
    };
    let together = judged(view.pending);
    let is_awaited = |pending: &&LiveCoverage| changes(&judged(std::slice::from_ref(*pending)));
    // one of several may change nothing by itself, and yet together with others
    let first = || view.pending.first().filter(|_| changes(&together));
    match view.pending.iter().find(is_awaited).or_else(first) {
        Some(pending) => Look::Wait(pending.id),
        None => Look::Decided(together),
    }
}
