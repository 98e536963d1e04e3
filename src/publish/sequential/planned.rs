//! Joins on which requirements are checked, and those that are settled in advance.

use super::cut_state::CutState;
use super::fixed::JoinedEarlier;
use super::joined::{RequirementJoin, SoughtJoin};
use super::share::MeasureValue;
use super::tables::{IndexedRequirement, JoinTables};
use super::{AchievedMeasure, JoinScope, SequentialError, SequentialProblem};
use crate::control::Control;

/// Largest number of joins of one requirement.
const MAX_JOINS: usize = 1 << 10;

/// All joins of all requirements.
pub(super) struct PlannedJoins {
    /// Joins whose measure steps may change.
    pub(super) open: Vec<RequirementJoin>,
    /// Measures that no step changes.
    pub(super) settled: Vec<AchievedMeasure>,
}

/// Planner of the joins of a problem.
pub(super) struct JoinPlanner<'a> {
    pub(super) problem: &'a SequentialProblem<'a>,
    pub(super) tables: &'a JoinTables,
    pub(super) cut_states: &'a [CutState<'a>],
    pub(super) control: &'a Control,
}

impl JoinPlanner<'_> {
    /// All joins at the roots. With `reduce`, a join that depends on one release alone is not made.
    pub(super) fn begin(&self, reduce: bool) -> Result<PlannedJoins, SequentialError> {
        let Self { problem, tables, .. } = *self;
        let mut planned = PlannedJoins { open: Vec::new(), settled: Vec::new() };
        let releases = tables.views.len();
        for (requirement, sought) in tables.sought.iter().enumerate() {
            let tuples = tables.views.iter().try_fold(1_u128, |tuples, view| {
                tuples.checked_mul((0..view.signatures.len()).map(|at| u128::from(view.signatures.count(at))).sum())
            });
            // tuples are counted up and down
            if tuples.is_none_or(|tuples| i128::try_from(tuples).is_err()) {
                return Err(SequentialError::TooDense { requirement });
            }
            let named = sought.named();
            if !sought.names_new() {
                let earlier: Vec<usize> = named.iter().copied().filter(|&release| release != 0).collect();
                let sought = &sought.on(&earlier);
                planned.settle(requirement, sought, self.settled(requirement, sought, &earlier)?, &earlier)?;
            }
            for joined in joins(&named, releases, problem.joins).ok_or(SequentialError::TooManyJoins { requirement })? {
                let sought = &sought.on(&joined);
                match tables.decisive(sought, &joined).filter(|_| reduce && problem.same_rows) {
                    None => planned.open.push(self.open(SoughtJoin { requirement, sought, releases: &joined })?),
                    Some(0) => self.alone(&mut planned, requirement, &sought.only(0), &joined)?,
                    Some(release) => {
                        let measure = self.settled(requirement, &sought.only(release), &[release])?;
                        planned.settle(requirement, sought, measure, &joined)?;
                    }
                }
            }
            // rows without a match are in no join
            if let Some(alone) = sought.alone().filter(|_| !problem.same_rows) {
                self.alone(&mut planned, requirement, &alone.on(&[0]), &[0])?;
            }
        }
        Ok(planned)
    }

    fn open(&self, join: SoughtJoin<'_>) -> Result<RequirementJoin, SequentialError> {
        let Self { problem, tables, cut_states, control } = *self;
        let begun = RequirementJoin::begin(tables, join, cut_states, problem.most_links, control);
        begun.map_err(|unjoined| unjoined.at_requirement(join.requirement))
    }

    /// A requirement on the new release alone.
    fn alone(
        &self,
        planned: &mut PlannedJoins,
        requirement: usize,
        sought: &IndexedRequirement,
        joined: &[usize],
    ) -> Result<(), SequentialError> {
        let mut alike = planned.open.iter_mut();
        if let Some(open) = alike.find(|open| open.requirement == requirement && open.is_alone) {
            open.joins.push(joined.to_vec());
            open.joins.dedup();
        } else {
            let mut open = self.open(SoughtJoin { requirement, sought, releases: &[0] })?;
            open.joins = vec![joined.to_vec()];
            planned.open.push(open);
        }
        Ok(())
    }

    /// A requirement on earlier releases alone.
    fn settled(
        &self,
        requirement: usize,
        sought: &IndexedRequirement,
        earlier: &[usize],
    ) -> Result<MeasureValue, SequentialError> {
        let fixed = JoinedEarlier::join(self.tables, sought, earlier, self.problem.most_links, self.control);
        let fixed = fixed.map_err(|unjoined| unjoined.at_requirement(requirement))?;
        fixed.level(&sought.measure).ok_or(SequentialError::EmptyJoin { requirement })
    }
}

impl PlannedJoins {
    /// Records a measure that no step changes.
    fn settle(
        &mut self,
        requirement: usize,
        sought: &IndexedRequirement,
        measure: MeasureValue,
        joined: &[usize],
    ) -> Result<(), SequentialError> {
        if !sought.measure.allows(measure) {
            return Err(SequentialError::PriorReleaseViolates { requirement });
        }
        let same = |settled: &&mut AchievedMeasure| settled.requirement == requirement && settled.measure == measure;
        match self.settled.iter_mut().find(same) {
            Some(settled) => settled.joins.push(joined.to_vec()),
            None => self.settled.push(AchievedMeasure { requirement, joins: vec![joined.to_vec()], measure }),
        }
        Ok(())
    }

    /// The worst measure of a requirement over its joins, at these levels.
    pub(super) fn worst(
        &self,
        tables: &JoinTables,
        requirement: usize,
        open: &[Option<MeasureValue>],
    ) -> Option<MeasureValue> {
        let of_open = self.open.iter().zip(open).filter(|(joined, _)| joined.requirement == requirement);
        let levels: Option<Vec<MeasureValue>> = of_open.map(|(_, level)| *level).collect();
        let settled = self.settled.iter().filter(|settled| settled.requirement == requirement);
        tables.sought[requirement].measure.worst(levels?.into_iter().chain(settled.map(|settled| settled.measure)))
    }
}

/// The joins of a requirement that names some of the releases; `None` where they are too many.
fn joins(named: &[usize], releases: usize, which: JoinScope) -> Option<Vec<Vec<usize>>> {
    let others: Vec<usize> = (0..releases).filter(|release| !named.contains(release)).collect();
    let with = |more: &[usize]| {
        let mut joined: Vec<usize> = named.iter().chain(more).copied().collect();
        joined.sort_unstable();
        joined
    };
    let mut joins = match which {
        JoinScope::Whole => vec![with(&others)],
        JoinScope::Extended => {
            let single = others.chunks(1).map(with);
            std::iter::once(with(&[])).chain(single).chain([with(&others)]).collect()
        }
        JoinScope::All => {
            let sets = 1_usize.checked_shl(others.len() as u32).filter(|sets| *sets <= MAX_JOINS)?;
            let of = |set: usize| others.iter().enumerate().filter(move |(at, _)| set >> at & 1 == 1).map(|(_, &o)| o);
            (0..sets).map(|set| with(&of(set).collect::<Vec<_>>())).collect::<Vec<_>>()
        }
    };
    joins.sort_unstable();
    joins.dedup();
    (joins.len() <= MAX_JOINS).then_some(joins)
}
