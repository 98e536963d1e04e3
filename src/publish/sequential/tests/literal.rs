//! The definitions, by nested loops over rows: what the search is held against.

use std::collections::{BTreeMap, BTreeSet};

use super::super::*;
use super::fixture::{Kind, SequentialFixture};

/// The labels of a column of the new release that is generalized.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct LiteralCut {
    pub(super) column: usize,
    pub(super) labels: BTreeSet<(u32, u32)>,
}

/// What is in the join of a requirement: tuples by values on X, then on Y. Rows stand for themselves.
type Found = BTreeMap<Vec<NodeSet>, BTreeMap<Vec<NodeSet>, u128>>;

/// Whether one place is among those of both.
fn meet(a: &NodeSet, b: &NodeSet) -> bool {
    a.spans().iter().any(|a| b.spans().iter().any(|b| (a.first..=a.last).any(|at| b.first <= at && at <= b.last)))
}

pub(super) fn span((first, last): (u32, u32)) -> NodeRange {
    NodeRange { first, last }
}

impl SequentialFixture {
    fn label(&self, cuts: &[LiteralCut], release: usize, row: usize, column: usize) -> NodeSet {
        let given = &self.releases[release][column];
        let raw = &given.places[given.codes.get(row) as usize];
        match cuts.iter().find(|cut| release == 0 && cut.column == column) {
            None => raw.clone(),
            Some(cut) => {
                let above: Vec<NodeRange> = cut.labels.iter().copied().map(span).filter(|&l| raw.within(l)).collect();
                assert_eq!(above.len(), 1, "a cut has one label above every value");
                above[0].into()
            }
        }
    }

    fn column(&self, release: usize, attribute: usize) -> Option<usize> {
        self.releases[release].iter().position(|given| given.attribute == attribute)
    }

    fn matches(&self, cuts: &[LiteralCut], a: (usize, usize), b: (usize, usize)) -> bool {
        for (here, given) in self.releases[a.0].iter().enumerate() {
            if let Some(there) = self.column(b.0, given.attribute)
                && !meet(&self.label(cuts, a.0, a.1, here), &self.label(cuts, b.0, b.1, there))
            {
                return false;
            }
        }
        let is_true = |side: &ResolvedConditions, row: (usize, usize)| {
            side.release == row.0
                && side.within.iter().all(|&(attribute, within)| {
                    let column = self.column(row.0, attribute as usize).unwrap();
                    self.label(cuts, row.0, row.1, column).within(within)
                })
        };
        !self.exclusions.iter().any(|ResolvedExclusion { left, right }| {
            (is_true(left, a) && is_true(right, b)) || (is_true(left, b) && is_true(right, a))
        })
    }

    fn tuples(&self, cuts: &[LiteralCut], joined: &[usize]) -> Vec<Vec<(usize, usize)>> {
        let mut tuples: Vec<Vec<(usize, usize)>> = vec![Vec::new()];
        for &release in joined {
            let mut longer = Vec::new();
            for tuple in &tuples {
                for row in 0..self.rows[release] {
                    if tuple.iter().all(|&other| self.matches(cuts, other, (release, row))) {
                        longer.push(tuple.iter().copied().chain([(release, row)]).collect());
                    }
                }
            }
            tuples = longer;
        }
        tuples
    }

    fn found(&self, cuts: &[LiteralCut], joined: &[usize], requirement: &ResolvedRequirement) -> Found {
        let mut found = Found::new();
        let (x, y) = self.within(requirement, joined);
        for tuple in self.tuples(cuts, joined) {
            let row = |release: usize| tuple.iter().find(|(other, _)| *other == release).unwrap().1;
            let value = |&ResolvedAttribute { release, attribute }: &ResolvedAttribute| {
                self.label(cuts, release, row(release), self.column(release, attribute as usize).unwrap())
            };
            let y_element = |y_element: &ResolvedYElement| match y_element {
                ResolvedYElement::Attribute(reference) => value(reference),
                ResolvedYElement::Key(release) => NodeRange::point(row(*release) as u32).into(),
            };
            let (x, y) = (x.iter().map(value).collect(), y.iter().map(y_element).collect());
            *found.entry(x).or_default().entry(y).or_default() += 1;
        }
        found
    }

    /// What a requirement says of some releases; of the new one alone, less than it says.
    fn within(
        &self,
        requirement: &ResolvedRequirement,
        joined: &[usize],
    ) -> (Vec<ResolvedAttribute>, Vec<ResolvedYElement>) {
        let x = requirement.x.iter().filter(|reference| joined.contains(&reference.release)).copied();
        let y = requirement.y.iter().filter(|y_element| match y_element {
            ResolvedYElement::Attribute(reference) => joined.contains(&reference.release),
            ResolvedYElement::Key(release) => joined.contains(release),
        });
        let mut y: Vec<ResolvedYElement> = y.copied().collect();
        if joined == [0] && y.is_empty() && matches!(requirement.measure, GroupMeasure::Anonymity { .. }) {
            y.push(ResolvedYElement::Key(0));
        }
        (x.collect(), y)
    }

    /// The measure of a requirement on a join.
    pub(super) fn measure(
        &self,
        cuts: &[LiteralCut],
        joined: &[usize],
        requirement: &ResolvedRequirement,
    ) -> Option<MeasureValue> {
        let found = self.found(cuts, joined, requirement);
        match &requirement.measure {
            GroupMeasure::Anonymity { .. } => found.values().map(|y| MeasureValue::number(y.len() as u128)).min(),
            GroupMeasure::Linkability { sensitive, .. } => {
                let attributes: Vec<usize> = {
                    let all =
                        requirement.y.iter().filter(|y_element| matches!(y_element, ResolvedYElement::Attribute(_)));
                    let here = |y_element: &&ResolvedYElement| matches!(y_element, ResolvedYElement::Attribute(r) if joined.contains(&r.release));
                    all.enumerate().filter(|(_, y_element)| here(y_element)).map(|(at, _)| at).collect()
                };
                let (_, y_element) = self.within(requirement, joined);
                let is_sensitive = |y: &[NodeSet]| {
                    let labels = y_element
                        .iter()
                        .zip(y)
                        .filter(|(y_element, _)| matches!(y_element, ResolvedYElement::Attribute(_)));
                    let labels: Vec<&NodeSet> = labels.map(|(_, label)| label).collect();
                    let may_be = |value: &Vec<NodeRange>| {
                        labels.iter().zip(&attributes).all(|(l, &at)| meet(l, &value[at].into()))
                    };
                    sensitive.as_ref().is_none_or(|values| values.iter().any(may_be))
                };
                let share = |y: &BTreeMap<Vec<NodeSet>, u128>| {
                    let most = y.iter().filter(|(y, _)| is_sensitive(y)).map(|(_, tuples)| *tuples).max();
                    MeasureValue { count: most.unwrap_or(0), of: y.values().sum() }
                };
                found.values().map(share).max()
            }
        }
    }

    /// The joins on which a requirement must hold.
    pub(super) fn joins_of(&self, requirement: &ResolvedRequirement) -> Vec<Vec<usize>> {
        let releases = self.releases.len();
        let named = |release: usize| {
            release == 0
                || requirement.x.iter().any(|reference| reference.release == release)
                || requirement.y.iter().any(|y_element| match y_element {
                    ResolvedYElement::Attribute(reference) => reference.release == release,
                    ResolvedYElement::Key(key) => *key == release,
                })
        };
        let mut joins = Vec::new();
        for set in 0..1_usize << releases {
            let has = |release: usize| set >> release & 1 == 1;
            let others = (0..releases).filter(|&release| has(release) && !named(release)).count();
            let missing = (0..releases).filter(|&release| !has(release)).count();
            let wanted = match self.joins {
                JoinScope::Whole => missing == 0,
                JoinScope::Extended => others <= 1 || missing == 0,
                JoinScope::All => true,
            };
            if wanted && (0..releases).all(|release| has(release) || !named(release)) {
                joins.push((0..releases).filter(|&release| has(release)).collect());
            }
        }
        let y_here = |y_element: &ResolvedYElement| match y_element {
            ResolvedYElement::Attribute(reference) => reference.release == 0,
            ResolvedYElement::Key(release) => *release == 0,
        };
        let distinguishes = requirement.y.iter().any(y_here);
        let knows = requirement.x.iter().any(|reference| reference.release == 0);
        let counts = matches!(requirement.measure, GroupMeasure::Anonymity { .. });
        if !self.same_rows && (distinguishes || (knows && counts)) {
            joins.push(vec![0]);
        }
        joins
    }

    /// The worst measure of a requirement.
    fn worst(&self, cuts: &[LiteralCut], requirement: &ResolvedRequirement) -> Option<MeasureValue> {
        let joins = self.joins_of(requirement);
        let levels: Option<Vec<MeasureValue>> =
            joins.iter().map(|joined| self.measure(cuts, joined, requirement)).collect();
        requirement.measure.worst(levels?)
    }

    fn worsts(&self, cuts: &[LiteralCut]) -> Option<Vec<MeasureValue>> {
        self.requirements.iter().map(|requirement| self.worst(cuts, requirement)).collect()
    }

    fn keeps(&self, measures: &[MeasureValue]) -> bool {
        self.requirements.iter().zip(measures).all(|(requirement, &level)| requirement.measure.allows(level))
    }

    fn places(&self, column: usize, within: NodeRange) -> Vec<(u32, u32)> {
        let given = &self.releases[0][column];
        let rows = 0..self.rows[0];
        let places = rows.map(|row| (given.places[given.codes.get(row) as usize].first(), self.class.get(row)));
        places.filter(|&(place, _)| NodeRange::point(place).within(within)).collect()
    }

    /// The labels below one: children, or the halves of an interval by trying all cut points.
    fn below(&self, column: usize, label: NodeRange) -> Vec<NodeRange> {
        let attribute = self.releases[0][column].attribute;
        let rows = self.places(column, label);
        let cuts: BTreeSet<u32> = rows.iter().map(|&(place, _)| place).collect();
        match &self.kinds[attribute] {
            Kind::Tree(tree) => {
                let node = tree.spans.iter().position(|&other| other == label).unwrap();
                return tree.children(node as u32).into_iter().map(|child| tree.span(child)).collect();
            }
            Kind::Values if label.is_point() => return Vec::new(),
            Kind::Values => return cuts.into_iter().map(NodeRange::point).collect(),
            Kind::Numbers => {}
        }
        let mut best: Option<(f64, u32)> = None;
        for &cut in cuts.iter().skip(1) {
            let halves = [NodeRange { first: label.first, last: cut - 1 }, NodeRange { first: cut, last: label.last }];
            let worth = match self.gain {
                SpecializationGain::Information => self.information(column, label, &halves),
                SpecializationGain::Distortion => {
                    let [left, right] = halves.map(|half| self.places(column, half).len());
                    -(left.abs_diff(right) as f64)
                }
            };
            if best.is_none_or(|(most, _)| worth > most + 1e-12) {
                best = Some((worth, cut));
            }
        }
        let halves = |cut: u32| {
            vec![NodeRange { first: label.first, last: cut - 1 }, NodeRange { first: cut, last: label.last }]
        };
        best.map_or(Vec::new(), |(_, cut)| halves(cut))
    }

    fn entropy(&self, rows: &[(u32, u32)]) -> f64 {
        let mut counts: BTreeMap<u32, f64> = BTreeMap::new();
        rows.iter().for_each(|&(_, class)| *counts.entry(class).or_default() += 1.0);
        counts.values().map(|count| count / rows.len() as f64).map(|share| -share * share.log2()).sum()
    }

    fn information(&self, column: usize, label: NodeRange, below: &[NodeRange]) -> f64 {
        let whole = self.places(column, label);
        let part = |&child: &NodeRange| {
            let rows = self.places(column, child);
            if rows.is_empty() { 0.0 } else { rows.len() as f64 / whole.len() as f64 * self.entropy(&rows) }
        };
        self.entropy(&whole) - below.iter().map(part).sum::<f64>()
    }

    fn score_of(&self, gain: f64, before: &[MeasureValue], after: &[MeasureValue]) -> f64 {
        let mut loss: f64 = 0.0;
        for (requirement, (before, after)) in self.requirements.iter().zip(before.iter().zip(after)) {
            let change = match requirement.measure {
                GroupMeasure::Anonymity { .. } => before.to_f64() - after.to_f64(),
                GroupMeasure::Linkability { .. } => after.to_f64() - before.to_f64(),
            };
            let change = if before == after { 0.0 } else { change };
            let several = self.requirements.len() > 1 && before.count > 0;
            loss = loss.max(if several { change / before.to_f64() } else { change });
        }
        match self.score {
            SpecializationScore::PlusOne => gain / (loss + 1.0),
            SpecializationScore::Ratio if loss > 0.0 => gain / loss,
            SpecializationScore::Ratio => gain,
        }
    }

    /// The roots.
    pub(super) fn roots(&self) -> Vec<LiteralCut> {
        let mut cuts: Vec<LiteralCut> = Vec::new();
        for reference in self.requirements.iter().flat_map(|requirement| &requirement.x) {
            let Some(column) = self.column(0, reference.attribute as usize).filter(|_| reference.release == 0) else {
                continue;
            };
            if cuts.iter().any(|cut| cut.column == column) {
                continue;
            }
            let root = match &self.kinds[reference.attribute as usize] {
                Kind::Tree(tree) => (tree.spans[0].first, tree.spans[0].last),
                Kind::Values => (0, self.releases[0][column].places.len() as u32),
                Kind::Numbers => {
                    let everywhere = NodeRange { first: 0, last: u32::MAX };
                    let places: Vec<u32> = self.places(column, everywhere).into_iter().map(|(at, _)| at).collect();
                    (*places.iter().min().unwrap(), *places.iter().max().unwrap())
                }
            };
            cuts.push(LiteralCut { column, labels: BTreeSet::from([root]) });
        }
        cuts
    }

    /// All single steps down: the attribute, the label, and what comes of it.
    pub(super) fn steps(&self, cuts: &[LiteralCut]) -> Vec<(usize, NodeRange, Vec<NodeRange>, Vec<LiteralCut>)> {
        let mut steps = Vec::new();
        for (at, cut) in cuts.iter().enumerate() {
            for &label in &cut.labels {
                let below = self.below(cut.column, span(label));
                if below.is_empty() {
                    continue;
                }
                let mut after = cuts.to_vec();
                after[at].labels.remove(&label);
                after[at].labels.extend(below.iter().map(|span| (span.first, span.last)));
                steps.push((at, span(label), below, after));
            }
        }
        steps
    }

    /// The whole search with all measures from scratch: the steps, and the cut, if any keeps all.
    pub(super) fn literally(&self) -> Option<(Vec<TakenStep>, Vec<LiteralCut>)> {
        let mut cuts = self.roots();
        let mut measures = self.worsts(&cuts)?;
        if !self.keeps(&measures) && !self.prefix {
            return None;
        }
        let mut taken: Vec<TakenStep> = Vec::new();
        let mut kept = self.keeps(&measures).then(|| (0, cuts.clone()));
        loop {
            let mut best: Option<(bool, i128, TakenStep, Vec<LiteralCut>)> = None;
            for (at, label, below, after) in self.steps(&cuts) {
                let column = cuts[at].column;
                let rows = self.places(column, label).len();
                let gain = match self.gain {
                    SpecializationGain::Information if rows == 0 => 0.0,
                    SpecializationGain::Information => self.information(column, label, &below).max(0.0),
                    SpecializationGain::Distortion => rows as f64,
                };
                let Some(then) = self.worsts(&after) else { continue };
                let (keeps, score) = (self.keeps(&then), self.score_of(gain, &measures, &then));
                let is_worth_nothing = (gain * 1e9).round() == 0.0;
                if (!keeps && !self.prefix) || (self.stop_at_zero_gain && is_worth_nothing) {
                    continue;
                }
                let rounded = (score * 1e9).round() as i128;
                // attributes and labels come in the order of ties
                if best.as_ref().is_none_or(|best| (keeps, rounded) > (best.0, best.1)) {
                    let label = CutLabel { span: label, node: None };
                    best = Some((keeps, rounded, TakenStep { column, label, measures: then, score }, after));
                }
            }
            let Some((keeps, _, step, after)) = best else { break };
            measures.clone_from(&step.measures);
            taken.push(step);
            cuts = after;
            if keeps {
                kept = Some((taken.len(), cuts.clone()));
            }
        }
        let (steps, cuts) = kept?;
        taken.truncate(steps);
        Some((taken, cuts))
    }
}
