//! Choice of the decomposition: UAD, GD, or the best of several.

use super::addback::{AddBackLimits, add_back};
use super::correlated::CorrelatedAttributes;
use super::ground::{DecompositionInput, TableDraft, without_redundant};
use super::score::EntropyScorer;
use super::{gd, uad};
use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, AttrSet};
use crate::publish::design::CandidateScores;
use crate::spec::{Algorithm, VersatileSpec};

/// Largest work of `auto` for each algorithm, in values read.
const MAX_AUTO_WORK: u64 = 1_000_000_000;
/// Work of an algorithm that the specification names.
const UNBOUNDED_WORK: u64 = u64::MAX;

/// A decomposition with its score.
struct ScoredDecomposition {
    name: &'static str,
    drafts: Vec<TableDraft>,
    score: f64,
}

/// Tables of an algorithm that reads the data, with the scores of all candidates if there are several.
///
/// # Errors
/// [`Cancelled`] on cancellation.
pub(super) fn decide(
    spec: &VersatileSpec,
    ground: &DecompositionInput<'_>,
    scorer: &mut EntropyScorer<'_>,
    links: &mut CorrelatedAttributes<'_>,
    control: &Control,
) -> Result<(Vec<TableDraft>, Option<CandidateScores>), Cancelled> {
    let asked = AddBackLimits { fill: spec.fill, work: UNBOUNDED_WORK };
    match spec.algorithm {
        Algorithm::Auto => auto(ground, scorer, links, spec, control),
        Algorithm::Gd => {
            let tried = tried_gd(ground, scorer, links, spec.try_all, asked, control)?;
            Ok((tried.drafts, None))
        }
        _ => {
            let bounds = AddBackLimits { fill: false, ..asked };
            let start = from_uad(ground, spec.saturate);
            Ok((added("uad", ground, start, scorer, links, bounds, control)?.drafts, None))
        }
    }
}

fn auto(
    ground: &DecompositionInput<'_>,
    scorer: &mut EntropyScorer<'_>,
    links: &mut CorrelatedAttributes<'_>,
    spec: &VersatileSpec,
    control: &Control,
) -> Result<(Vec<TableDraft>, Option<CandidateScores>), Cancelled> {
    let mut all = Vec::new();
    for (name, saturate) in [("uad", false), ("uad, saturated", true)] {
        all.push(scored(name, ground, from_uad(ground, saturate), scorer, links)?);
    }
    let within = |scorer: &EntropyScorer<'_>| AddBackLimits {
        fill: spec.fill,
        work: scorer.work().saturating_add(MAX_AUTO_WORK),
    };
    for (name, saturate) in [("uad, attributes added back", false), ("uad, saturated, attributes added back", true)] {
        let bounds = within(scorer);
        all.push(added(name, ground, from_uad(ground, saturate), scorer, links, bounds, control)?);
    }
    let bounds = within(scorer);
    all.push(tried_gd(ground, scorer, links, spec.try_all, bounds, control)?);
    // next to earlier tables some candidates may break rules, others may separate correlated attributes
    if all.iter().any(|tried| ground.holds(&tried.drafts)) {
        all.retain(|tried| ground.holds(&tried.drafts));
    }
    // tables of UAD alone share no attribute
    let mut possible = Vec::new();
    for tried in all {
        if links.apart(&tried.drafts)?.is_empty() {
            possible.push(tried);
        }
    }
    let all = possible;
    let considered = all.iter().map(|tried| (tried.name, tried.score)).collect();
    let (winner, drafts) = best(all).map(|tried| (tried.name, tried.drafts)).unwrap_or_default();
    Ok((drafts, Some(CandidateScores { winner, considered })))
}

/// The candidate of the lowest score; the first of equal ones.
fn best(tried: Vec<ScoredDecomposition>) -> Option<ScoredDecomposition> {
    tried
        .into_iter()
        .reduce(|best, next| if next.score < best.score - super::addback::SCORE_EPSILON { next } else { best })
}

/// Each attribute in a table of its own, bucketized once attributes are added.
fn single_columns(ground: &DecompositionInput<'_>) -> Vec<TableDraft> {
    let protected = ground.protected();
    let alone =
        |attr| TableDraft { attributes: AttrSet::one(attr), sensitive: protected.intersection(AttrSet::one(attr)) };
    ground.attributes.iter().map(alone).collect()
}

fn from_uad(ground: &DecompositionInput<'_>, saturate: bool) -> Vec<TableDraft> {
    let draft = |selected: uad::SelectedTable| TableDraft {
        attributes: selected.attributes,
        sensitive: selected.sensitive.map_or(AttrSet::EMPTY, AttrSet::one),
    };
    uad::decompose(ground.attributes, &ground.rules, saturate).into_iter().map(draft).collect()
}

/// GD, started with the first rule, or once with each protected attribute.
fn tried_gd(
    ground: &DecompositionInput<'_>,
    scorer: &mut EntropyScorer<'_>,
    links: &mut CorrelatedAttributes<'_>,
    try_all: bool,
    bounds: AddBackLimits,
    control: &Control,
) -> Result<ScoredDecomposition, Cancelled> {
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
        let mut drafts = gd::decompose(ground, first, control)?;
        if !ground.holds(&drafts) {
            // earlier tables conflict with these; single columns connect no attributes
            drafts = single_columns(ground);
        }
        if !ground.holds(&drafts) {
            // earlier tables break rules by themselves: the composition check refuses the release
            drafts = gd::decompose(&ground.alone(), first, control)?;
        }
        if !starts.contains(&drafts) {
            starts.push(drafts);
        }
    }
    if starts.is_empty() {
        starts.push(vec![TableDraft::plain(ground.attributes)]);
    }
    let tried = starts.into_iter().map(|start| added("gd", ground, start, scorer, links, bounds, control));
    let mut tried: Vec<ScoredDecomposition> = tried.collect::<Result<_, _>>()?;
    if tried.iter().any(|tried| ground.holds(&tried.drafts)) {
        tried.retain(|tried| ground.holds(&tried.drafts));
    }
    // at least one start was tried
    Ok(best(tried).unwrap_or(ScoredDecomposition { name: "gd", drafts: Vec::new(), score: f64::INFINITY }))
}

/// A decomposition after attributes are added back.
fn added(
    name: &'static str,
    ground: &DecompositionInput<'_>,
    start: Vec<TableDraft>,
    scorer: &mut EntropyScorer<'_>,
    links: &mut CorrelatedAttributes<'_>,
    bounds: AddBackLimits,
    control: &Control,
) -> Result<ScoredDecomposition, Cancelled> {
    let mut drafts = with_idle_released(ground, start);
    if ground.holds(&drafts) {
        drafts = add_back(ground, drafts, scorer, bounds, control)?;
    }
    scored(name, ground, drafts, scorer, links)
}

/// Makes drafts plain whose buckets guard no rule before attributes are added. A later decision would depend on the values in
/// these buckets. A draft with its sensitive attribute alone has nothing to protect and stays.
fn with_idle_released(ground: &DecompositionInput<'_>, drafts: Vec<TableDraft>) -> Vec<TableDraft> {
    let released = ground.released(&drafts);
    let keep = |(draft, released): (TableDraft, TableDraft)| if draft.known().is_empty() { draft } else { released };
    drafts.into_iter().zip(released).map(keep).collect()
}

/// The decomposition as it is published, with its score.
fn scored(
    name: &'static str,
    ground: &DecompositionInput<'_>,
    drafts: Vec<TableDraft>,
    scorer: &mut EntropyScorer<'_>,
    links: &mut CorrelatedAttributes<'_>,
) -> Result<ScoredDecomposition, Cancelled> {
    let score = score_of(&drafts, scorer)?;
    let plain_alone =
        |draft: TableDraft| if draft.known().is_empty() { TableDraft::plain(draft.attributes) } else { draft };
    let drafts: Vec<TableDraft> = ground.released(&drafts).into_iter().map(plain_alone).collect();
    let drafts = links.together(without_redundant(&drafts))?;
    let tied: Vec<AttrSet> = drafts.iter().filter(|draft| draft.is_tied()).map(|draft| draft.sensitive).collect();
    for &tied in &tied {
        if !scorer.knows(tied) {
            links.draw(ground, tied, scorer)?;
        }
    }
    let score = if tied.is_empty() { score } else { score_of(&drafts, scorer)? };
    Ok(ScoredDecomposition { name, drafts, score })
}

fn score_of(drafts: &[TableDraft], scorer: &mut EntropyScorer<'_>) -> Result<f64, Cancelled> {
    match scorer.sum_of(drafts) {
        Some(sum) => Ok(scorer.scores(&[sum])?[0]),
        None => Ok(f64::INFINITY),
    }
}
