//! What a classifier can learn of a class from tables in which the class stands with its predictors.
//!
//! Only attributes that no rule protects predict, so no score depends on a protected value.
//!
//! # Citations
//! - [Akaike 1974], the loss on other rows of what was fitted to these.

use std::collections::HashMap;

use super::addback::AddBackLimits;
use super::ground::{DecompositionInput, TableDraft};
use super::score::EntropyScorer;
use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, AttrSet, Table};
use crate::model::{RowGroups, entropy};

/// Smallest gain of a predictor, in nats.
const MIN_GAIN: f64 = 1e-9;

/// Groups of rows by some attributes: their entropy and their number.
#[derive(Clone, Copy)]
struct GroupFigures {
    entropy: f64,
    groups: u64,
}

/// Judge of tables by the uncertainty that their predictors leave about a class.
pub(super) struct ClassJudge<'a> {
    table: &'a Table,
    class: Attr,
    /// The class and the attributes that may predict it.
    visible: AttrSet,
    figures: HashMap<AttrSet, GroupFigures>,
    /// Per attributes that share a table with the class, what the best of them leave.
    left: HashMap<AttrSet, f64>,
    work: u64,
    control: &'a Control,
}

impl<'a> ClassJudge<'a> {
    pub(super) fn new(table: &'a Table, class: Attr, ground: &DecompositionInput<'_>, control: &'a Control) -> Self {
        let visible = ground.attributes.minus(ground.protected());
        Self { table, class, visible, figures: HashMap::new(), left: HashMap::new(), work: 0, control }
    }

    /// The uncertainty about the class, in nats, for who learns from the best of the tables.
    pub(super) fn left_by(&mut self, drafts: &[TableDraft]) -> Result<f64, Cancelled> {
        let mut least = self.of(AttrSet::one(self.class))?.entropy;
        for draft in drafts {
            if draft.known().contains(self.class) {
                least = least.min(self.left_of_table(draft.known())?);
            }
        }
        Ok(least)
    }

    /// What the predictors of one table leave. They are chosen one at a time, each time the best; the gain of each is less by what
    /// chance alone gains.
    fn left_of_table(&mut self, known: AttrSet) -> Result<f64, Cancelled> {
        let mut open = known.intersection(self.visible).without(self.class);
        if let Some(found) = self.left.get(&open) {
            return Ok(*found);
        }
        let (key, mut chosen) = (open, AttrSet::EMPTY);
        let mut left = self.of(AttrSet::one(self.class))?.entropy;
        loop {
            let mut best: Option<(f64, Attr)> = None;
            for attr in open.iter() {
                let of = self.left_after(chosen.with(attr))?;
                if best.is_none_or(|(least, _)| of < least - MIN_GAIN) {
                    best = Some((of, attr));
                }
            }
            match best {
                Some((of, attr)) if of < left - MIN_GAIN => {
                    (left, chosen, open) = (of, chosen.with(attr), open.without(attr));
                }
                _ => break,
            }
        }
        self.left.insert(key, left);
        Ok(left)
    }

    /// The uncertainty about the class of other rows, where these predictors are known.
    fn left_after(&mut self, predictors: AttrSet) -> Result<f64, Cancelled> {
        let alone = self.of(predictors)?;
        let together = self.of(predictors.with(self.class))?;
        let classes = self.of(AttrSet::one(self.class))?.groups;
        let fitted = (alone.groups.saturating_sub(1) * classes.saturating_sub(1)) as f64;
        Ok(together.entropy - alone.entropy + fitted / self.table.rows().max(1) as f64)
    }

    fn of(&mut self, attributes: AttrSet) -> Result<GroupFigures, Cancelled> {
        if let Some(found) = self.figures.get(&attributes) {
            return Ok(*found);
        }
        let groups = RowGroups::new(self.table, attributes, self.control)?;
        let figures = GroupFigures { entropy: entropy(groups.sizes()), groups: groups.sizes().len() as u64 };
        self.work += self.table.rows() as u64 * attributes.len() as u64;
        self.figures.insert(attributes, figures);
        Ok(figures)
    }

    /// Adds predictors to tables with the class, and the class to tables with predictors, each time what leaves the least
    /// uncertainty. No addition breaks a rule, and the tables stay a tree.
    pub(super) fn add_predictors(
        &mut self,
        ground: &DecompositionInput<'_>,
        drafts: Vec<TableDraft>,
        scorer: &EntropyScorer<'_>,
        bounds: AddBackLimits,
    ) -> Result<Vec<TableDraft>, Cancelled> {
        let mut drafts = drafts;
        let mut left = self.left_by(&drafts)?;
        let begun = self.work;
        loop {
            let mut best: Option<(f64, Vec<TableDraft>)> = None;
            for at in 0..drafts.len() {
                let class = AttrSet::one(self.class);
                let wanted = if drafts[at].known().contains(self.class) { self.visible } else { class };
                for attr in wanted.minus(drafts[at].attributes).iter() {
                    self.control.check()?;
                    if self.work - begun > bounds.work {
                        return Ok(drafts);
                    }
                    let mut added = drafts.clone();
                    added[at] = added[at].with(attr);
                    let of = self.left_by(&added)?;
                    let is_better = of < best.as_ref().map_or(left, |(least, _)| *least) - MIN_GAIN;
                    if is_better && ground.holds(&added) && scorer.sum_of(&added).is_some() {
                        best = Some((of, added));
                    }
                }
            }
            let Some((of, added)) = best else { return Ok(drafts) };
            (left, drafts) = (of, added);
        }
    }
}
