//! Buckets of the least loss by integer programming over the number of buckets of each size.
//!
//! The solver uses floats; its proposal counts only if the flow test fills it. The numbers of variables and of search nodes bound
//! its work. Cancellation takes effect between two nodes.

use microlp::{
    ComparisonOp, LinearExpr, OptimizationDirection, Problem, Solution, SolveOptions, SolveOutcome, TerminationReason,
    Variable,
};

use super::share::{ValueClass, rows};
use super::sizes::loss;
use crate::control::{Cancelled, Control};
use crate::publication::SizeCount;

/// Largest number of variables of the program.
pub(super) const MAX_VARIABLES: u64 = 3_000;
/// Largest number of search nodes.
const MAX_SEARCH_NODES: u64 = 400;
/// Relative tolerance of floats.
const FLOAT_TOLERANCE: f64 = 1e-6;

/// Proposal of the solver.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct SolverProposal {
    /// Proposed sizes with their numbers of buckets.
    pub setting: Option<Vec<SizeCount>>,
    /// Lower bound of the loss.
    pub lower_bound: Option<u64>,
}

/// Number of variables of the program.
#[must_use]
pub(super) fn variables(kinds: &[ValueClass], m: u64, most: u64) -> u64 {
    (most + 1).saturating_sub(m).saturating_mul(kinds.len() as u64 + 1)
}

/// The best setting that a bounded search finds for sizes from `m` to `most`, starting from `known` buckets.
///
/// The result depends on the kinds, the sizes and the known buckets alone.
///
/// # Errors
/// [`Cancelled`] on cancellation.
pub(super) fn propose(
    kinds: &[ValueClass],
    m: u64,
    most: u64,
    known: Option<&[SizeCount]>,
    control: &Control,
) -> Result<SolverProposal, Cancelled> {
    let program = SizeProgram::new(kinds, m, most);
    let mut options = SolveOptions::default();
    options.warm_start = known.map(|known| program.start(known));
    let Some(outcome) = searched(&program.problem, options, control)? else { return Ok(SolverProposal::default()) };
    let bound = outcome.stats().best_bound.filter(|bound| bound.is_finite());
    let lower_bound = bound.map(|bound| (bound * (1.0 - FLOAT_TOLERANCE) - FLOAT_TOLERANCE).ceil().max(0.0) as u64);
    // rounding may lose rows
    let is_whole = |setting: &Vec<SizeCount>| setting.iter().map(|class| class.rows()).sum::<u64>() == rows(kinds);
    let setting = outcome.solution().map(|solution| program.setting(solution)).filter(is_whole);
    let lower_bound = match (&setting, lower_bound) {
        (Some(setting), Some(bound)) => Some(bound.min(loss(setting))),
        (_, bound) => bound,
    };
    Ok(SolverProposal { setting, lower_bound })
}

/// The program: numbers of buckets of each size, and of rows of each kind in them.
struct SizeProgram {
    problem: Problem,
    /// Sizes, each with the number of its buckets.
    sizes: Vec<SizeVariable>,
}

/// A size with the variable of its number of buckets.
struct SizeVariable {
    size: u64,
    number: Variable,
}

impl SizeProgram {
    fn new(kinds: &[ValueClass], m: u64, most: u64) -> Self {
        let rows = rows(kinds);
        let mut problem = Problem::new(OptimizationDirection::Minimize);
        let mut add_size = |size: u64| {
            let most = i32::try_from(rows / size).unwrap_or(i32::MAX);
            let number = problem.add_integer_var(((size - 1) * (size - 1)) as f64, (0, most));
            SizeVariable { size, number }
        };
        let sizes: Vec<SizeVariable> = (m.max(1)..=most.min(rows)).map(&mut add_size).collect();
        let mut in_size: Vec<LinearExpr> = sizes.iter().map(|_| LinearExpr::empty()).collect();
        for kind in kinds {
            let mut all = LinearExpr::empty();
            for (&SizeVariable { size, number }, held) in sizes.iter().zip(&mut in_size) {
                let room = kind.share.most(size);
                if room == 0 {
                    continue;
                }
                let count = problem.add_var(0.0, (0.0, (kind.count * kind.values) as f64));
                all.add(count, 1.0);
                held.add(count, 1.0);
                let mut fits = LinearExpr::empty();
                fits.add(count, 1.0);
                fits.add(number, -((room * kind.values) as f64));
                problem.add_constraint(fits, ComparisonOp::Le, 0.0);
            }
            problem.add_constraint(all, ComparisonOp::Eq, (kind.count * kind.values) as f64);
        }
        for (&SizeVariable { size, number }, mut held) in sizes.iter().zip(in_size) {
            held.add(number, -(size as f64));
            problem.add_constraint(held, ComparisonOp::Eq, 0.0);
        }
        Self { problem, sizes }
    }

    /// The numbers of known buckets, from which the search starts.
    fn start(&self, known: &[SizeCount]) -> Vec<(Variable, f64)> {
        let buckets =
            |size: u64| known.iter().filter(|class| class.size == size).map(|class| class.buckets).sum::<u64>();
        self.sizes.iter().map(|&SizeVariable { size, number }| (number, buckets(size) as f64)).collect()
    }

    /// The sizes that have buckets in a solution, with numbers rounded.
    fn setting(&self, solution: &Solution) -> Vec<SizeCount> {
        let classes = self.sizes.iter().map(|&SizeVariable { size, number }| SizeCount {
            size,
            buckets: solution.var_value(number).round().max(0.0) as u64,
        });
        classes.filter(|class| class.buckets > 0).collect()
    }
}

/// Solves one node at a time, so that a cancellation stops the search between nodes.
fn searched(
    problem: &Problem,
    mut options: SolveOptions,
    control: &Control,
) -> Result<Option<SolveOutcome>, Cancelled> {
    control.check()?;
    options.node_limit = Some(1);
    let mut outcome = problem.solve_with(options);
    loop {
        control.check()?;
        let Ok(found) = outcome else { return Ok(None) };
        if found.termination_reason() != TerminationReason::NodeLimit || found.stats().nodes_solved >= MAX_SEARCH_NODES
        {
            return Ok(Some(found));
        }
        outcome = found.resume();
    }
}
