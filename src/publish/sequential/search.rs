//! The way down: from the roots, the step that is worth most among those that keep every requirement (sequential, section 6).

use super::gain::Cells;
use super::growth::Growth;
use super::joined::Joined;
use super::planned::{Planned, Planning};
use super::share::Share;
use super::span::Places;
use super::tables::{Tables, distinct};
use super::{Achieved, Cut, Gain, Label, Measure, Score, Sequel, Sequence, Step, Unsequenced};
use crate::control::{Cancelled, Control};

/// A step that may be taken.
struct Candidate {
    growth: usize,
    node: u32,
    children: Vec<u32>,
    /// What it is worth, whatever else is done.
    gain: f64,
}

/// A step that was looked at.
struct Attempt {
    candidate: usize,
    measures: Vec<Share>,
    keeps_all: bool,
    score: f64,
}

/// What came of looking at a step.
enum Tried {
    Made(Attempt),
    /// It breaks a requirement; for ever, when nothing can repair it.
    Broken {
        for_ever: bool,
    },
}

/// A cut that keeps all requirements.
struct Kept {
    cuts: Vec<Vec<u32>>,
    steps: usize,
    levels: Vec<Option<Share>>,
}

/// A search for the cut.
pub(super) struct Search<'a> {
    sequence: &'a Sequence<'a>,
    tables: Tables,
    growths: Vec<Growth<'a>>,
    pub(super) planned: Planned,
    candidates: Vec<Candidate>,
    /// The measures as they are, by requirement.
    measures: Vec<Share>,
}

/// Scores that are equal in so many decimals are equal.
fn rounded(score: f64) -> i128 {
    (score * 1e9).round() as i128
}

impl<'a> Search<'a> {
    /// Everything at its root. With `reduce` a join that depends on one release alone is not made.
    pub(super) fn begin(sequence: &'a Sequence<'a>, reduce: bool, control: &Control) -> Result<Self, Unsequenced> {
        if sequence.new.rows == 0 {
            return Err(Unsequenced::EmptyTable);
        }
        let tables = Tables::of(sequence, control)?;
        let growths = growths(sequence, &tables, control)?;
        let planned = Planning { sequence, tables: &tables, growths: &growths, control }.begin(reduce)?;
        let mut search = Self { sequence, tables, growths, planned, candidates: Vec::new(), measures: Vec::new() };
        let levels = search.levels();
        search.measures = (0..sequence.requirements.len())
            .map(|requirement| {
                let worst = search.planned.worst(&search.tables, requirement, &levels);
                worst.ok_or(Unsequenced::EmptyJoin { requirement })
            })
            .collect::<Result<_, _>>()?;
        (0..search.growths.len()).for_each(|growth| search.propose(growth, 0));
        Ok(search)
    }

    /// Goes down as far as it goes.
    pub(super) fn run(&mut self, control: &Control) -> Result<Sequel, Unsequenced> {
        let root = self.measures.clone();
        let broken = (0..root.len()).find(|&requirement| !self.measure(requirement).allows(root[requirement]));
        if let Some(requirement) = broken
            && !self.sequence.allow_violating_prefix
        {
            return Err(Unsequenced::InfeasibleRoot { requirement, proof: self.is_proof(requirement) });
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
            (Some(kept), _) => Ok(self.sequel(root, steps, &kept, control)?),
            // not all cuts were seen
            (None, broken) => {
                let requirement = broken.unwrap_or_default();
                Err(Unsequenced::InfeasibleRoot { requirement, proof: self.is_proof(requirement) })
            }
        }
    }

    fn measure(&self, requirement: usize) -> &Measure {
        &self.tables.sought[requirement].measure
    }

    fn levels(&self) -> Vec<Option<Share>> {
        self.planned.open.iter().map(Joined::level).collect()
    }

    /// Whether a broken requirement can be kept by no cut below this one.
    fn is_proof(&self, requirement: usize) -> bool {
        let broken = |open: &&Joined| !open.level().is_some_and(|level| open.measure.allows(level));
        let of_it = self.planned.open.iter().filter(|open| open.requirement == requirement);
        of_it.filter(broken).any(|open| open.is_monotone)
    }

    fn kept(&self, steps: usize) -> Kept {
        Kept { cuts: self.growths.iter().map(|growth| growth.cut.clone()).collect(), steps, levels: self.levels() }
    }

    /// Takes a node of the cut among the candidates, if it has children.
    fn propose(&mut self, growth: usize, node: u32) {
        let grown = &mut self.growths[growth];
        let children = grown.children(node);
        if children.is_empty() {
            return;
        }
        let span = grown.span(node);
        let gain = match self.sequence.gain {
            Gain::Information => grown.cells.information(span, children.iter().map(|&child| grown.span(child))),
            Gain::Distortion => grown.cells.rows(span) as f64,
        };
        if !self.sequence.stop_at_zero_gain || rounded(gain) > 0 {
            self.candidates.push(Candidate { growth, node, children, gain });
        }
    }

    /// The step that is worth most: of those that keep all requirements; else, where that is allowed, of all.
    fn best(&mut self, control: &Control) -> Result<Option<Attempt>, Unsequenced> {
        let growths = &self.growths;
        let place = |candidate: &Candidate| (candidate.growth, growths[candidate.growth].span(candidate.node).first);
        self.candidates.sort_by(|a, b| b.gain.total_cmp(&a.gain).then_with(|| place(a).cmp(&place(b))));
        let mut best: Option<Attempt> = None;
        let mut at = 0;
        while at < self.candidates.len() {
            control.check()?;
            let gain = self.candidates[at].gain;
            // no later one is worth more than it gains
            let is_settled = |best: &Attempt| best.keeps_all && rounded(gain) < rounded(best.score);
            if self.never_exceeds_gain() && best.as_ref().is_some_and(is_settled) {
                break;
            }
            match self.attempt(at, control)? {
                Tried::Broken { for_ever: true } => {
                    self.candidates.remove(at);
                    continue;
                }
                Tried::Broken { for_ever: false } => {}
                Tried::Made(attempt) => {
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
        match self.sequence.score {
            Score::PlusOne => true,
            Score::Ratio => {
                let [only] = &self.tables.sought[..] else { return false };
                matches!(only.measure, Measure::Anonymity { .. })
            }
        }
    }

    fn is_better(&self, a: &Attempt, b: &Attempt) -> bool {
        let place = |attempt: &Attempt| {
            let Candidate { growth, node, .. } = self.candidates[attempt.candidate];
            (growth, self.growths[growth].span(node).first)
        };
        let by_score = rounded(b.score).cmp(&rounded(a.score)).then_with(|| place(a).cmp(&place(b)));
        b.keeps_all.cmp(&a.keeps_all).then(by_score).is_lt()
    }

    /// Looks at what a step would come to on every join.
    fn attempt(&mut self, candidate: usize, control: &Control) -> Result<Tried, Unsequenced> {
        let Candidate { growth, node, ref children, gain } = self.candidates[candidate];
        let (mut levels, mut keeps_all) = (Vec::new(), true);
        let strict = !self.sequence.allow_violating_prefix;
        for open in &mut self.planned.open {
            let level = open.weigh(growth, (node, children), &self.growths, strict, control);
            let level = level.map_err(|unjoined| unjoined.of(open.requirement))?;
            levels.push(level);
            if !level.is_some_and(|level| open.measure.allows(level)) {
                keeps_all = false;
                if level.is_none() || strict {
                    return Ok(Tried::Broken { for_ever: open.is_monotone });
                }
            }
        }
        let worst = |requirement| self.planned.worst(&self.tables, requirement, &levels);
        let measures: Vec<Share> = (0..self.measures.len()).filter_map(worst).collect();
        let score = self.score(gain, &measures);
        Ok(Tried::Made(Attempt { candidate, measures, keeps_all, score }))
    }

    /// The gain against the largest loss of a requirement. Losses of several are compared as parts of what there is.
    fn score(&self, gain: f64, after: &[Share]) -> f64 {
        let several = after.len() > 1;
        let losses = self.measures.iter().zip(after).enumerate().map(|(requirement, (&before, &after))| {
            let loss = self.measure(requirement).loss(before, after);
            if several && before.count > 0 { loss / before.to_f64() } else { loss }
        });
        let loss = losses.fold(0.0, f64::max);
        match self.sequence.score {
            Score::PlusOne => gain / (loss + 1.0),
            Score::Ratio if loss > 0.0 => gain / loss,
            Score::Ratio => gain,
        }
    }

    /// Takes a step.
    fn take(&mut self, attempt: Attempt, control: &Control) -> Result<Step, Unsequenced> {
        let Attempt { candidate, measures, score, .. } = attempt;
        let Candidate { growth, node, children, .. } = self.candidates.remove(candidate);
        for open in &mut self.planned.open {
            let made = open.make(growth, (node, &children), &self.growths, control);
            made.map_err(|unjoined| unjoined.of(open.requirement))?;
        }
        let levels = self.levels();
        let found = |requirement| self.planned.worst(&self.tables, requirement, &levels);
        debug_assert!(measures.iter().zip(0..).all(|(weighed, requirement)| found(requirement) == Some(*weighed)));
        self.measures.clone_from(&measures);
        let grown = &mut self.growths[growth];
        grown.specialize(node);
        let step = Step {
            column: self.tables.original[grown.column],
            label: Label { span: grown.span(node), node: grown.nodes[node as usize].tree },
            measures,
            score,
        };
        children.into_iter().for_each(|child| self.propose(growth, child));
        Ok(step)
    }

    fn sequel(
        &self,
        root: Vec<Share>,
        mut steps: Vec<Step>,
        kept: &Kept,
        control: &Control,
    ) -> Result<Sequel, Cancelled> {
        steps.truncate(kept.steps);
        let mut sequel =
            Sequel { cuts: Vec::new(), root, steps, achieved: self.achieved(kept), distortion: 0, changed: 0 };
        for (growth, cut) in self.growths.iter().zip(&kept.cuts) {
            let mut cut = cut.clone();
            cut.sort_by_key(|&node| growth.span(node).first);
            let codes = 0..growth.places.len() as u32;
            let of_code: Vec<u32> = codes.map(|code| growth.child_of(&cut, code) as u32).collect();
            let column = self.tables.original[growth.column];
            let steps_of: Vec<u64> =
                (0..).zip(&of_code).map(|(code, &label)| growth.steps(cut[label as usize], code) as u64).collect();
            for (row, code) in self.sequence.new.columns[column].codes.iter().enumerate() {
                if row % Control::STRIDE == 0 {
                    control.check()?;
                }
                let steps = steps_of[code as usize];
                sequel.distortion += steps;
                sequel.changed += u64::from(steps > 0);
            }
            let label = |&node: &u32| Label { span: growth.span(node), node: growth.nodes[node as usize].tree };
            sequel.cuts.push(Cut { column, labels: cut.iter().map(label).collect(), of_code });
        }
        Ok(sequel)
    }

    fn achieved(&self, kept: &Kept) -> Vec<Achieved> {
        let achieved = |(open, level): (&Joined, &Option<Share>)| {
            level.map(|measure| Achieved { requirement: open.requirement, joins: open.joins.clone(), measure })
        };
        let open = self.planned.open.iter().zip(&kept.levels).filter_map(achieved);
        let mut all: Vec<Achieved> = open.chain(self.planned.settled.iter().cloned()).collect();
        all.sort_by(|a, b| (a.requirement, &a.joins).cmp(&(b.requirement, &b.joins)));
        all
    }
}

/// The attributes to specialize, in the order in which they stand in X.
fn growths<'a>(sequence: &'a Sequence<'a>, tables: &Tables, control: &Control) -> Result<Vec<Growth<'a>>, Unsequenced> {
    let class = match (sequence.gain, sequence.new.class) {
        (Gain::Distortion, _) => None,
        (Gain::Information, None) => return Err(Unsequenced::ClassMissing),
        (Gain::Information, Some(class)) => Some((class, distinct(class))),
    };
    let mut growths: Vec<Growth<'a>> = Vec::new();
    for &(release, column) in tables.sought.iter().flat_map(|sought| &sought.x) {
        if release != 0 || growths.iter().any(|growth| growth.column == column) {
            continue;
        }
        let original = &sequence.new.columns[tables.original[column]];
        let places: Vec<u32> = tables.views[0].places[column].iter().map(Places::first).collect();
        let cells = Cells::of(original.codes, &places, class, control)?;
        let growth = Growth::new(column, &original.scale, places, cells);
        growths.push(growth.ok_or(Unsequenced::NoScale { attribute: original.attribute })?);
    }
    if growths.is_empty() { Err(Unsequenced::NothingToGeneralize) } else { Ok(growths) }
}
