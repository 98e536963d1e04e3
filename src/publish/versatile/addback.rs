//! Addition of attributes to tables, one at a time, by the best score that breaks no rule.
//!
//! # Citations
//! - [Jin et al. 2010, Algorithm 1, lines 5 to 8]

use std::collections::HashSet;

use super::ground::{DecompositionInput, TableDraft};
use super::score::{EntropyScorer, ScoreTerms};
use crate::control::{Cancelled, Control};
use crate::microdata::Attr;

/// Smallest gain of an addition.
const MIN_ENTROPY_GAIN: f64 = 1e-9;
/// Distance below which scores are equal; the first addition wins.
pub(super) const SCORE_EPSILON: f64 = 1e-12;

/// Limits of the additions.
#[derive(Clone, Copy, Debug)]
pub struct AddBackLimits {
    /// Whether additions without a gain are made, too.
    pub fill: bool,
    /// Largest work of the scorer after which no addition is tried.
    pub work: u64,
}

/// Adds attributes to drafts that keep every rule, each time with the lowest score; ties go to the first table and attribute.
///
/// No addition breaks a rule, and the tables stay a tree. Bucketized tables stay bucketized.
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
    // an addition that breaks a rule breaks it with more attributes, too
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
