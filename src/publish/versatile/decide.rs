//! Choice of the decomposition: UAD, GD, or the best of several.

use super::addback::{AddBackLimits, SCORE_EPSILON, add_back};
use super::correlated::CorrelatedAttributes;
use super::ground::{DecompositionInput, TableDraft, without_redundant};
use super::score::EntropyScorer;
use super::{gd, uad};
use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, AttrSet};
use crate::publish::design::CandidateScores;
use crate::spec::{Algorithm, AutoGoal, UadSettings, VersatileSpec};

/// Largest work of `auto` for each algorithm, in values read.
const MAX_AUTO_WORK: u64 = 1_000_000_000;
/// Work of an algorithm that the specification names.
const UNBOUNDED_WORK: u64 = u64::MAX;

/// Number of protected attributes from which forms of UAD alone are compared for COUNT queries.
const COUNT_UAD_ATTRIBUTES: usize = 4;

/// A decomposition with its score.
struct ScoredDecomposition {
    name: &'static str,
    drafts: Vec<TableDraft>,
    score: f64,
}

/// Search for a decomposition of one job.
pub(super) struct DecompositionSearch<'a, 's, 'l> {
    pub(super) ground: &'a DecompositionInput<'a>,
    pub(super) scorer: &'a mut EntropyScorer<'s>,
    pub(super) links: &'a mut CorrelatedAttributes<'l>,
    pub(super) control: &'a Control,
}

impl DecompositionSearch<'_, '_, '_> {
    /// Tables of an algorithm that reads the data, with the scores of all candidates if there are several.
    ///
    /// # Errors
    /// [`Cancelled`] on cancellation.
    pub(super) fn decide(
        &mut self,
        spec: &VersatileSpec,
    ) -> Result<(Vec<TableDraft>, Option<CandidateScores>), Cancelled> {
        let asked = AddBackLimits { fill: spec.fill, work: UNBOUNDED_WORK };
        match spec.algorithm {
            Algorithm::Auto => self.auto(spec),
            Algorithm::Gd => Ok((self.tried_gd(spec.try_all, asked)?.drafts, None)),
            _ => {
                let bounds = AddBackLimits { fill: false, ..asked };
                Ok((self.added("uad", from_uad(self.ground, spec.uad), bounds)?.drafts, None))
            }
        }
    }

    fn auto(&mut self, spec: &VersatileSpec) -> Result<(Vec<TableDraft>, Option<CandidateScores>), Cancelled> {
        let ground = self.ground;
        let mut all = Vec::new();
        for (name, saturate) in [("uad", false), ("uad, saturated", true)] {
            all.push(self.scored(name, from_uad(ground, UadSettings { saturate, ..spec.uad }))?);
        }
        for (name, saturate) in [("uad, attributes added back", false), ("uad, saturated, attributes added back", true)]
        {
            let bounds = self.within(spec);
            all.push(self.added(name, from_uad(ground, UadSettings { saturate, ..spec.uad }), bounds)?);
        }
        let protected = ground.protected().len();
        let prefers_uad = spec.goal == AutoGoal::Count && protected >= COUNT_UAD_ATTRIBUTES;
        let only_uad = prefers_uad && all.iter().any(|tried| ground.holds(&tried.drafts));
        if !only_uad {
            let bounds = self.within(spec);
            all.push(self.tried_gd(spec.try_all, bounds)?);
        }
        // next to earlier tables some candidates may break rules, others may separate correlated attributes
        if all.iter().any(|tried| ground.holds(&tried.drafts)) {
            all.retain(|tried| ground.holds(&tried.drafts));
        }
        // tables of UAD alone share no attribute
        let mut possible = Vec::new();
        for tried in all {
            if self.links.apart(&tried.drafts)?.is_empty() {
                possible.push(tried);
            }
        }
        if spec.goal == AutoGoal::Classification {
            for tried in &mut possible {
                tried.score = -self.scorer.information(&tried.drafts, ground.protected())?;
            }
        }
        let considered = possible.iter().map(|tried| (tried.name, tried.score)).collect();
        let (winner, drafts) = best(possible).map(|tried| (tried.name, tried.drafts)).unwrap_or_default();
        let only_uad_for = only_uad.then_some(protected);
        Ok((drafts, Some(CandidateScores { winner, goal: spec.goal, only_uad_for, considered })))
    }

    /// The limits of one algorithm of `auto`.
    fn within(&self, spec: &VersatileSpec) -> AddBackLimits {
        AddBackLimits { fill: spec.fill, work: self.scorer.work().saturating_add(MAX_AUTO_WORK) }
    }

    /// GD, started with the first rule, or once with each protected attribute.
    fn tried_gd(&mut self, try_all: bool, bounds: AddBackLimits) -> Result<ScoredDecomposition, Cancelled> {
        let ground = self.ground;
        let mut firsts: Vec<Attr> = Vec::new();
        for rule in &ground.rules {
            if !firsts.contains(&rule.sensitive) {
                firsts.push(rule.sensitive);
            }
        }
        if !try_all {
            firsts.truncate(1);
        }
        let mut starts: Vec<Vec<TableDraft>> = Vec::new();
        for first in firsts {
            let mut drafts = gd::decompose(ground, first, self.control)?;
            if !ground.holds(&drafts) {
                // earlier tables conflict with these; single columns connect no attributes
                drafts = single_columns(ground);
            }
            if !ground.holds(&drafts) {
                // earlier tables break rules by themselves: the composition check refuses the release
                drafts = gd::decompose(&ground.alone(), first, self.control)?;
            }
            if !starts.contains(&drafts) {
                starts.push(drafts);
            }
        }
        if starts.is_empty() {
            starts.push(vec![TableDraft::plain(ground.attributes)]);
        }
        let tried = starts.into_iter().map(|start| self.added("gd", start, bounds));
        let mut tried: Vec<ScoredDecomposition> = tried.collect::<Result<_, _>>()?;
        if tried.iter().any(|tried| ground.holds(&tried.drafts)) {
            tried.retain(|tried| ground.holds(&tried.drafts));
        }
        // at least one start was tried
        Ok(best(tried).unwrap_or(ScoredDecomposition { name: "gd", drafts: Vec::new(), score: f64::INFINITY }))
    }

    /// A decomposition after attributes are added back.
    fn added(
        &mut self,
        name: &'static str,
        start: Vec<TableDraft>,
        bounds: AddBackLimits,
    ) -> Result<ScoredDecomposition, Cancelled> {
        let mut drafts = with_idle_released(self.ground, start);
        if self.ground.holds(&drafts) {
            drafts = add_back(self.ground, drafts, self.scorer, bounds, self.control)?;
        }
        self.scored(name, drafts)
    }

    /// The decomposition as it is published, with its score.
    fn scored(&mut self, name: &'static str, drafts: Vec<TableDraft>) -> Result<ScoredDecomposition, Cancelled> {
        let score = score_of(&drafts, self.scorer)?;
        let plain_alone =
            |draft: TableDraft| if draft.known().is_empty() { TableDraft::plain(draft.attributes) } else { draft };
        let drafts: Vec<TableDraft> = self.ground.released(&drafts).into_iter().map(plain_alone).collect();
        let drafts = self.links.together(without_redundant(&drafts))?;
        let tied: Vec<AttrSet> = drafts.iter().filter(|draft| draft.is_tied()).map(|draft| draft.sensitive).collect();
        for &tied in &tied {
            if !self.scorer.knows(tied) {
                self.links.draw(self.ground, tied, self.scorer)?;
            }
        }
        let score = if tied.is_empty() { score } else { score_of(&drafts, self.scorer)? };
        Ok(ScoredDecomposition { name, drafts, score })
    }
}

/// The best candidate; the first of equal ones.
fn best(tried: Vec<ScoredDecomposition>) -> Option<ScoredDecomposition> {
    tried.into_iter().reduce(|best, next| if next.score < best.score - SCORE_EPSILON { next } else { best })
}

/// Each attribute in a table of its own, bucketized once attributes are added.
fn single_columns(ground: &DecompositionInput<'_>) -> Vec<TableDraft> {
    let protected = ground.protected();
    let alone =
        |attr| TableDraft { attributes: AttrSet::one(attr), sensitive: protected.intersection(AttrSet::one(attr)) };
    ground.attributes.iter().map(alone).collect()
}

fn from_uad(ground: &DecompositionInput<'_>, settings: UadSettings) -> Vec<TableDraft> {
    let draft = |selected: uad::SelectedTable| TableDraft {
        attributes: selected.attributes,
        sensitive: selected.sensitive.map_or(AttrSet::EMPTY, AttrSet::one),
    };
    uad::decompose(ground.attributes, &ground.rules, settings).into_iter().map(draft).collect()
}

/// Makes drafts plain whose buckets guard no rule before attributes are added. A later decision would depend on the values in
/// these buckets. A draft with its sensitive attribute alone has nothing to protect and stays.
fn with_idle_released(ground: &DecompositionInput<'_>, drafts: Vec<TableDraft>) -> Vec<TableDraft> {
    let released = ground.released(&drafts);
    let keep = |(draft, released): (TableDraft, TableDraft)| if draft.known().is_empty() { draft } else { released };
    drafts.into_iter().zip(released).map(keep).collect()
}

fn score_of(drafts: &[TableDraft], scorer: &mut EntropyScorer<'_>) -> Result<f64, Cancelled> {
    match scorer.sum_of(drafts) {
        Some(sum) => Ok(scorer.scores(&[sum])?[0]),
        None => Ok(f64::INFINITY),
    }
}
