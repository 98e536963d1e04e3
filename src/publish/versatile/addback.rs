//! Adding back (versatile publishing, Algorithm 1, lines 5 to 8): attribute by attribute to the tables where that tells most and
//! breaks no rule.

use std::collections::HashSet;

use super::ground::{DecompositionInput, TableDraft};
use super::score::{EntropyScorer, ScoreTerms};
use crate::control::{Cancelled, Control};
use crate::microdata::Attr;

/// What is no gain.
const MIN_ENTROPY_GAIN: f64 = 1e-9;
/// Scores so close are equal: the first addition is taken.
pub(super) const SCORE_EPSILON: f64 = 1e-12;

/// How far to go.
#[derive(Clone, Copy, Debug)]
pub struct AddBackLimits {
    /// Whether additions that gain nothing are made as well.
    pub fill: bool,
    /// No addition is looked for once the scorer has done so much work.
    pub work: u64,
}

/// Adds attributes to the drafts, which keep every rule: each time where the score becomes lowest, ties by table, then by
/// attribute. Each addition breaks no rule and leaves the tables a tree. What is bucketized stays so.
///
/// # Errors
/// [`Cancelled`] on cancellation.
pub fn add_back(
    ground: &DecompositionInput<'_>,
    drafts: Vec<TableDraft>,
    scorer: &mut EntropyScorer<'_>,
    bounds: AddBackLimits,
    control: &Control,
) -> Result<Vec<TableDraft>, Cancelled> {
    let mut drafts = drafts;
    let Some(sum) = scorer.sum_of(&drafts) else { return Ok(drafts) };
    let mut current = scorer.scores(&[sum])?[0];
    // what breaks a rule once breaks it beside more attributes
    let mut rejected: HashSet<(usize, Attr)> = HashSet::new();
    while scorer.work() < bounds.work {
        let mut additions: Vec<(usize, Attr)> = Vec::new();
        let mut sums: Vec<ScoreTerms> = Vec::new();
        for at in 0..drafts.len() {
            for attr in ground.attributes.minus(drafts[at].attributes).iter() {
                if rejected.contains(&(at, attr)) {
                    continue;
                }
                control.check()?;
                let added = with(&drafts, at, attr);
                if !ground.holds(&added) {
                    rejected.insert((at, attr));
                } else if let Some(sum) = scorer.sum_of(&added) {
                    additions.push((at, attr));
                    sums.push(sum);
                }
            }
        }
        let scores = scorer.scores(&sums)?;
        let mut best: Option<(f64, (usize, Attr))> = None;
        for (&score, &addition) in scores.iter().zip(&additions) {
            if best.is_none_or(|(lowest, _)| score < lowest - SCORE_EPSILON) {
                best = Some((score, addition));
            }
        }
        match best {
            Some((score, (at, attr))) if bounds.fill || current - score >= MIN_ENTROPY_GAIN => {
                drafts = with(&drafts, at, attr);
                current = score;
            }
            _ => break,
        }
    }
    Ok(drafts)
}

fn with(drafts: &[TableDraft], at: usize, attr: Attr) -> Vec<TableDraft> {
    let mut drafts = drafts.to_vec();
    drafts[at] = drafts[at].with(attr);
    drafts
}
