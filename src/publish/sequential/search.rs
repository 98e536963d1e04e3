//! Search for a cut: from the roots, the step of the best score that keeps every requirement.
//!
//! # Citations
//! - [Fung et al. 2005], top-down specialization.
//! - [Wang and Fung 2006], scores of steps on joins.
//! - `docs/spec/sequential.md#search`

use super::cut_state::CutState;
use super::gain::ClassHistogram;
use super::joined::{CutNodeRef, RequirementJoin};
use super::planned::{JoinPlanner, PlannedJoins};
use super::share::MeasureValue;
use super::span::NodeSet;
use super::tables::{ColumnRef, JoinTables, distinct};
use super::{
    AchievedMeasure, ColumnCut, CutLabel, GroupMeasure, SequentialError, SequentialProblem, SequentialSolution,
    SpecializationGain, SpecializationScore, TakenStep,
};
use crate::control::{Cancelled, Control};

/// A step that may be taken.
struct CandidateStep {
    cut_state: usize,
    node: u32,
    children: Vec<u32>,
    /// Gain of the step.
    gain: f64,
}

/// A step whose measures are known.
struct StepAttempt {
    candidate: usize,
    measures: Vec<MeasureValue>,
    keeps_all: bool,
    score: f64,
}

/// Outcome of an attempt.
enum AttemptOutcome {
    Made(StepAttempt),
    /// The step breaks a requirement, for ever if nothing can repair it.
    Broken {
        for_ever: bool,
    },
}

/// A cut that keeps all requirements.
struct FeasibleCut {
    cuts: Vec<Vec<u32>>,
    steps: usize,
    levels: Vec<Option<MeasureValue>>,
}

/// Search for the cut of a problem.
pub(super) struct CutSearch<'a> {
    problem: &'a SequentialProblem<'a>,
    tables: JoinTables,
    cut_states: Vec<CutState<'a>>,
    pub(super) planned: PlannedJoins,
    candidates: Vec<CandidateStep>,
    /// Current measure of each requirement.
    measures: Vec<MeasureValue>,
}

/// Rounds a score, so that nearly equal scores are equal.
fn rounded(score: f64) -> i128 {
    (score * 1e9).round() as i128
}

impl SequentialProblem<'_> {
    /// Solves the problem.
    ///
    /// # Errors
    /// [`SequentialError`] if a requirement is invalid, cannot be kept or cannot be checked, or on cancellation.
    pub fn release(&self, control: &Control) -> Result<SequentialSolution, SequentialError> {
        CutSearch::begin(self, true, control)?.run(control)
    }
}

impl<'a> CutSearch<'a> {
    /// Begins at the roots. With `reduce`, a join that depends on one release alone is not made.
    pub(super) fn begin(
        problem: &'a SequentialProblem<'a>,
        reduce: bool,
        control: &Control,
    ) -> Result<Self, SequentialError> {
        if problem.new.rows == 0 {
            return Err(SequentialError::EmptyTable);
        }
        let tables = JoinTables::from_problem(problem, control)?;
        let cut_states = cut_states(problem, &tables, control)?;
        let planned = JoinPlanner { problem, tables: &tables, cut_states: &cut_states, control }.begin(reduce)?;
        let mut search = Self { problem, tables, cut_states, planned, candidates: Vec::new(), measures: Vec::new() };
        let levels = search.levels();
        search.measures = (0..problem.requirements.len())
            .map(|requirement| {
                let worst = search.planned.worst(&search.tables, requirement, &levels);
                worst.ok_or(SequentialError::EmptyJoin { requirement })
            })
            .collect::<Result<_, _>>()?;
        (0..search.cut_states.len()).for_each(|cut_state| search.propose(cut_state, 0));
        Ok(search)
    }

    /// Takes steps as long as one is allowed.
    pub(super) fn run(&mut self, control: &Control) -> Result<SequentialSolution, SequentialError> {
        let root = self.measures.clone();
        let broken = (0..root.len()).find(|&requirement| !self.measure(requirement).allows(root[requirement]));
        if let Some(requirement) = broken
            && !self.problem.allow_violating_prefix
        {
            return Err(self.infeasible(requirement, root[requirement]));
        }
        let mut steps = Vec::new();
        let mut kept = broken.is_none().then(|| self.kept(0));
        while let Some(best) = self.best(control)? {
            let keeps_all = best.keeps_all;
            steps.push(self.take(best, control)?);
            if keeps_all {
                kept = Some(self.kept(steps.len()));
            }
        }
        match (kept, broken) {
            (Some(kept), _) => Ok(self.solution(root, steps, &kept, control)?),
            // some cuts were not examined
            (None, broken) => {
                let requirement = broken.unwrap_or_default();
                Err(self.infeasible(requirement, root[requirement]))
            }
        }
    }

    /// The refusal of a requirement of which the root keeps no more than this.
    fn infeasible(&self, requirement: usize, root: MeasureValue) -> SequentialError {
        SequentialError::InfeasibleRoot { requirement, proof: self.is_proof(requirement), root }
    }

    fn measure(&self, requirement: usize) -> &GroupMeasure {
        &self.tables.sought[requirement].measure
    }

    fn levels(&self) -> Vec<Option<MeasureValue>> {
        self.planned.open.iter().map(RequirementJoin::level).collect()
    }

    /// Whether no cut below this one can keep a broken requirement.
    fn is_proof(&self, requirement: usize) -> bool {
        let broken = |open: &&RequirementJoin| !open.level().is_some_and(|level| open.measure.allows(level));
        let of_it = self.planned.open.iter().filter(|open| open.requirement == requirement);
        of_it.filter(broken).any(|open| open.is_monotone)
    }

    fn kept(&self, steps: usize) -> FeasibleCut {
        FeasibleCut {
            cuts: self.cut_states.iter().map(|cut_state| cut_state.cut.clone()).collect(),
            steps,
            levels: self.levels(),
        }
    }

    /// Adds a node of the cut to the candidates, if it has children.
    fn propose(&mut self, cut_state: usize, node: u32) {
        let grown = &mut self.cut_states[cut_state];
        let children = grown.children(node);
        if children.is_empty() {
            return;
        }
        let span = grown.span(node);
        let gain = match self.problem.gain {
            SpecializationGain::Information => {
                grown.cells.information(span, children.iter().map(|&child| grown.span(child)))
            }
            SpecializationGain::Distortion => grown.cells.rows(span) as f64,
        };
        if !self.problem.stop_at_zero_gain || rounded(gain) > 0 {
            self.candidates.push(CandidateStep { cut_state, node, children, gain });
        }
    }

    /// The step of the best score among those that keep all requirements; else, if allowed, among all.
    fn best(&mut self, control: &Control) -> Result<Option<StepAttempt>, SequentialError> {
        let cut_states = &self.cut_states;
        let place = |candidate: &CandidateStep| {
            (candidate.cut_state, cut_states[candidate.cut_state].span(candidate.node).first)
        };
        self.candidates.sort_by(|a, b| b.gain.total_cmp(&a.gain).then_with(|| place(a).cmp(&place(b))));
        let mut best: Option<StepAttempt> = None;
        let mut at = 0;
        while at < self.candidates.len() {
            control.check()?;
            let gain = self.candidates[at].gain;
            // the score of a step is at most its gain, so that no later one is better
            let is_settled = |best: &StepAttempt| best.keeps_all && rounded(gain) < rounded(best.score);
            if self.never_exceeds_gain() && best.as_ref().is_some_and(is_settled) {
                break;
            }
            match self.attempt(at, control)? {
                AttemptOutcome::Broken { for_ever: true } => {
                    self.candidates.remove(at);
                    continue;
                }
                AttemptOutcome::Broken { for_ever: false } => {}
                AttemptOutcome::Made(attempt) => {
                    if best.as_ref().is_none_or(|best| self.is_better(&attempt, best)) {
                        best = Some(attempt);
                    }
                }
            }
            at += 1;
        }
        Ok(best)
    }

    /// Whether a score is at most the gain: a loss counts at least 1, or is added to 1.
    fn never_exceeds_gain(&self) -> bool {
        match self.problem.score {
            SpecializationScore::PlusOne => true,
            SpecializationScore::Ratio => {
                let [only] = &self.tables.sought[..] else { return false };
                matches!(only.measure, GroupMeasure::Anonymity { .. })
            }
        }
    }

    fn is_better(&self, a: &StepAttempt, b: &StepAttempt) -> bool {
        let place = |attempt: &StepAttempt| {
            let CandidateStep { cut_state, node, .. } = self.candidates[attempt.candidate];
            (cut_state, self.cut_states[cut_state].span(node).first)
        };
        let by_score = rounded(b.score).cmp(&rounded(a.score)).then_with(|| place(a).cmp(&place(b)));
        b.keeps_all.cmp(&a.keeps_all).then(by_score).is_lt()
    }

    /// Measures a step on every join.
    fn attempt(&mut self, candidate: usize, control: &Control) -> Result<AttemptOutcome, SequentialError> {
        let CandidateStep { cut_state, node, ref children, gain } = self.candidates[candidate];
        let (mut levels, mut keeps_all) = (Vec::new(), true);
        let strict = !self.problem.allow_violating_prefix;
        for open in &mut self.planned.open {
            let level = open.weigh(CutNodeRef { cut_state, node }, children, &self.cut_states, strict, control);
            let level = level.map_err(|unjoined| unjoined.at_requirement(open.requirement))?;
            levels.push(level);
            if !level.is_some_and(|level| open.measure.allows(level)) {
                keeps_all = false;
                if level.is_none() || strict {
                    return Ok(AttemptOutcome::Broken { for_ever: open.is_monotone });
                }
            }
        }
        let worst = |requirement| self.planned.worst(&self.tables, requirement, &levels);
        let measures: Vec<MeasureValue> = (0..self.measures.len()).filter_map(worst).collect();
        let score = self.score(gain, &measures);
        Ok(AttemptOutcome::Made(StepAttempt { candidate, measures, keeps_all, score }))
    }

    /// Score of a step: its gain against the largest loss of a requirement, losses being relative to what is left.
    fn score(&self, gain: f64, after: &[MeasureValue]) -> f64 {
        let several = after.len() > 1;
        let losses = self.measures.iter().zip(after).enumerate().map(|(requirement, (&before, &after))| {
            let loss = self.measure(requirement).loss(before, after);
            if several && before.count > 0 { loss / before.to_f64() } else { loss }
        });
        let loss = losses.fold(0.0, f64::max);
        match self.problem.score {
            SpecializationScore::PlusOne => gain / (loss + 1.0),
            SpecializationScore::Ratio if loss > 0.0 => gain / loss,
            SpecializationScore::Ratio => gain,
        }
    }

    /// Takes a step on every join.
    fn take(&mut self, attempt: StepAttempt, control: &Control) -> Result<TakenStep, SequentialError> {
        let StepAttempt { candidate, measures, score, .. } = attempt;
        let CandidateStep { cut_state, node, children, .. } = self.candidates.remove(candidate);
        for open in &mut self.planned.open {
            let made = open.make(CutNodeRef { cut_state, node }, &children, &self.cut_states, control);
            made.map_err(|unjoined| unjoined.at_requirement(open.requirement))?;
        }
        let levels = self.levels();
        let found = |requirement| self.planned.worst(&self.tables, requirement, &levels);
        if cfg!(any(test, debug_assertions)) {
            assert!(measures.iter().zip(0..).all(|(weighed, requirement)| found(requirement) == Some(*weighed)));
        }
        self.measures.clone_from(&measures);
        let grown = &mut self.cut_states[cut_state];
        grown.specialize(node);
        let step = TakenStep {
            column: self.tables.original[grown.column],
            label: CutLabel { span: grown.span(node), node: grown.nodes[node as usize].tree },
            measures,
            score,
        };
        children.into_iter().for_each(|child| self.propose(cut_state, child));
        Ok(step)
    }

    fn solution(
        &self,
        root: Vec<MeasureValue>,
        mut steps: Vec<TakenStep>,
        kept: &FeasibleCut,
        control: &Control,
    ) -> Result<SequentialSolution, Cancelled> {
        steps.truncate(kept.steps);
        let mut solution = SequentialSolution {
            cuts: Vec::new(),
            root,
            steps,
            achieved: self.achieved(kept),
            distortion: 0,
            changed: 0,
        };
        for (cut_state, cut) in self.cut_states.iter().zip(&kept.cuts) {
            let mut cut = cut.clone();
            cut.sort_by_key(|&node| cut_state.span(node).first);
            let codes = 0..cut_state.places.len() as u32;
            let of_code: Vec<u32> = codes.map(|code| cut_state.child_of(&cut, code) as u32).collect();
            let column = self.tables.original[cut_state.column];
            let steps_of: Vec<u64> =
                (0..).zip(&of_code).map(|(code, &label)| cut_state.steps(cut[label as usize], code) as u64).collect();
            for (row, code) in self.problem.new.columns[column].codes.iter().enumerate() {
                if row % Control::STRIDE == 0 {
                    control.check()?;
                }
                let steps = steps_of[code as usize];
                solution.distortion += steps;
                solution.changed += u64::from(steps > 0);
            }
            let label =
                |&node: &u32| CutLabel { span: cut_state.span(node), node: cut_state.nodes[node as usize].tree };
            solution.cuts.push(ColumnCut { column, labels: cut.iter().map(label).collect(), of_code });
        }
        Ok(solution)
    }

    fn achieved(&self, kept: &FeasibleCut) -> Vec<AchievedMeasure> {
        let achieved = |(open, level): (&RequirementJoin, &Option<MeasureValue>)| {
            level.map(|measure| AchievedMeasure { requirement: open.requirement, joins: open.joins.clone(), measure })
        };
        let open = self.planned.open.iter().zip(&kept.levels).filter_map(achieved);
        let mut all: Vec<AchievedMeasure> = open.chain(self.planned.settled.iter().cloned()).collect();
        all.sort_by(|a, b| (a.requirement, &a.joins).cmp(&(b.requirement, &b.joins)));
        all
    }
}

/// Attributes under specialization, in the order of X.
fn cut_states<'a>(
    problem: &'a SequentialProblem<'a>,
    tables: &JoinTables,
    control: &Control,
) -> Result<Vec<CutState<'a>>, SequentialError> {
    let class = match (problem.gain, problem.new.class) {
        (SpecializationGain::Distortion, _) => None,
        (SpecializationGain::Information, None) => return Err(SequentialError::ClassMissing),
        (SpecializationGain::Information, Some(class)) => Some((class, distinct(class))),
    };
    let mut cut_states: Vec<CutState<'a>> = Vec::new();
    for &ColumnRef { release, column } in tables.sought.iter().flat_map(|sought| &sought.x) {
        if release != 0 || cut_states.iter().any(|cut_state| cut_state.column == column) {
            continue;
        }
        let original = &problem.new.columns[tables.original[column]];
        let places: Vec<u32> = tables.views[0].places[column].iter().map(NodeSet::first).collect();
        let cells = ClassHistogram::new(original.codes, &places, class, control)?;
        let cut_state = CutState::new(column, &original.scale, places, cells);
        cut_states.push(cut_state.ok_or(SequentialError::NoScale { attribute: original.attribute })?);
    }
    if cut_states.is_empty() { Err(SequentialError::NothingToGeneralize) } else { Ok(cut_states) }
}
