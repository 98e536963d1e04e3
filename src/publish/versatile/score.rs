//! What decompositions are compared by: how much the reader's estimate leaves open.
//!
//! The score is the entropy of the estimate `p~`, from the groups and the buckets that would be published. A protected attribute
//! is counted where buckets part it from the others, and alone everywhere else: so no score of any decomposition depends
//! on which row of a bucket has which sensitive value, also when another one is chosen in the end. Where no protected
//! attribute stands in a table that is not bucketized on it, the score is the entropy of the estimate itself.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::ground::{DecompositionInput, TableDraft};
use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, AttrSet, Codes, Column, Table};
use crate::model::{BucketedColumn, JoinTree, RowGroups, TableView, entropy};
use crate::publish::assign::BucketAssignment;
use crate::publish::designed_table::Bucketized;
use crate::publish::input::PlanRows;
use crate::spec::DecompositionScore;

/// So many figures are computed at once, where there are processors for them.
const MAX_THREADS: usize = 4;

/// Sensitive attributes that share buckets are not compared beyond so many values of a bucket together, over all buckets.
const MAX_SHARED_VALUES: u64 = 1 << 24;

/// A number that several decompositions share: of a table of these known attributes, with the sensitive ones if it is
/// bucketized.
type ScoreTermKey = (AttrSet, AttrSet);

/// Compares decompositions of one table.
pub struct EntropyScorer<'a> {
    table: &'a Table,
    score: DecompositionScore,
    /// The attributes that count only where buckets part them from others.
    hidden: AttrSet,
    buckets: BTreeMap<AttrSet, BucketedSensitive>,
    figures: HashMap<ScoreTermKey, f64>,
    work: u64,
    control: &'a Control,
}

/// Sensitive attributes in buckets.
struct BucketedSensitive {
    buckets: BucketedColumn,
    /// Of several attributes the code of each row's values together.
    together: Option<Codes>,
}

/// A decomposition that can be scored: what the score is a sum of.
pub struct ScoreTerms {
    added: Vec<ScoreTermKey>,
    subtracted: Vec<ScoreTermKey>,
}

impl<'a> EntropyScorer<'a> {
    /// Draws the buckets of every protected attribute as the release will, once.
    ///
    /// # Errors
    /// [`Cancelled`] on cancellation.
    pub fn draw(
        ground: &DecompositionInput<'_>,
        rows: PlanRows<'a>,
        score: DecompositionScore,
        control: &'a Control,
    ) -> Result<Self, Cancelled> {
        let draw = |sensitive: Attr| {
            let alone = AttrSet::one(sensitive);
            let bucketized = Bucketized::on(alone, sensitive, ground.guarantees(sensitive).to_vec());
            Ok((sensitive, bucketized.draw(rows.table, rows.streams, control)?))
        };
        let drawn: BTreeMap<Attr, BucketAssignment> = ground.protected().iter().map(draw).collect::<Result<_, _>>()?;
        Self::with(drawn, rows.table, score, control)
    }

    /// A scorer for buckets that are drawn already, of all protected attributes.
    ///
    /// # Errors
    /// [`Cancelled`] on cancellation.
    pub fn with(
        drawn: BTreeMap<Attr, BucketAssignment>,
        table: &'a Table,
        score: DecompositionScore,
        control: &'a Control,
    ) -> Result<Self, Cancelled> {
        let protected: AttrSet = drawn.keys().copied().collect();
        let made = |(attr, drawn): (Attr, BucketAssignment)| {
            let buckets = BucketedColumn::new(table.column(attr), drawn.bucket_of, drawn.buckets as usize, control)?;
            Ok((AttrSet::one(attr), BucketedSensitive { buckets, together: None }))
        };
        Ok(Self {
            table,
            score,
            hidden: if score == DecompositionScore::Kl { AttrSet::EMPTY } else { protected },
            buckets: drawn.into_iter().map(made).collect::<Result<_, _>>()?,
            figures: HashMap::new(),
            work: 0,
            control,
        })
    }

    /// Takes buckets into account that several attributes share. Tables with them are comparable only when there are not too many
    /// values in a bucket.
    ///
    /// # Errors
    /// [`Cancelled`] on cancellation.
    pub(super) fn tie(&mut self, tied: AttrSet, drawn: BucketAssignment) -> Result<(), Cancelled> {
        if let Some(parted) = BucketedSensitive::of_several(self.table, tied, drawn, self.control)? {
            self.buckets.insert(tied, parted);
        }
        Ok(())
    }

    /// Whether the buckets of the attributes are known.
    #[must_use]
    pub(super) fn knows(&self, sensitive: AttrSet) -> bool {
        self.buckets.contains_key(&sensitive)
    }

    /// The work done so far, in values looked at.
    #[must_use]
    pub const fn work(&self) -> u64 {
        self.work
    }

    /// What the score of the drafts is a sum of; `None` when their tables form no tree, or have buckets that are not known.
    #[must_use]
    pub fn sum_of(&self, drafts: &[TableDraft]) -> Option<ScoreTerms> {
        let parts_rows = |draft: &TableDraft| !draft.sensitive.is_empty() && !draft.known().is_empty();
        let view = |draft: &TableDraft| match parts_rows(draft) {
            true => TableView::tied(std::iter::once(draft.known()).chain(draft.sensitive.iter().map(AttrSet::one))),
            false => TableView::plain(draft.attributes),
        };
        if drafts.iter().any(|draft| draft.is_tied() && !self.knows(draft.sensitive)) {
            return None;
        }
        if !JoinTree::from_views(&drafts.iter().map(view).collect::<Vec<_>>()).is_decomposable() {
            return None;
        }
        let mut counted: Vec<TableDraft> = drafts
            .iter()
            .map(|draft| {
                let hidden = self.hidden.minus(draft.sensitive);
                TableDraft { attributes: draft.attributes.minus(hidden), ..*draft }
            })
            .collect();
        let shown = counted.iter().fold(AttrSet::EMPTY, |all, draft| all.union(draft.attributes));
        let all = drafts.iter().fold(AttrSet::EMPTY, |all, draft| all.union(draft.attributes));
        counted.extend(all.minus(shown).iter().map(|attr| TableDraft::plain(AttrSet::one(attr))));
        let tree = JoinTree::from_views(&counted.iter().map(view).collect::<Vec<_>>());
        let figure = |draft: &TableDraft| match parts_rows(draft) {
            true => (draft.known(), draft.sensitive),
            false => (draft.attributes, AttrSet::EMPTY),
        };
        let separators = tree.edges.iter().map(|edge| (edge.separator, AttrSet::EMPTY));
        tree.is_decomposable().then(|| ScoreTerms {
            added: tree.members.iter().map(|&member| figure(&counted[member])).collect(),
            subtracted: separators.filter(|(separator, _)| !separator.is_empty()).collect(),
        })
    }

    /// The score of each sum: the lower, the more is told.
    ///
    /// # Errors
    /// [`Cancelled`] on cancellation.
    pub fn scores(&mut self, sums: &[ScoreTerms]) -> Result<Vec<f64>, Cancelled> {
        let all = sums.iter().flat_map(|sum| sum.added.iter().chain(&sum.subtracted));
        let missing: BTreeSet<ScoreTermKey> =
            all.copied().filter(|figure| !self.figures.contains_key(figure)).collect();
        self.compute(&missing.into_iter().collect::<Vec<_>>())?;
        let total = |sum: &ScoreTerms| {
            let figures = |figures: &[ScoreTermKey]| figures.iter().map(|figure| self.figures[figure]).sum::<f64>();
            figures(&sum.added) - figures(&sum.subtracted)
        };
        Ok(sums.iter().map(total).collect())
    }

    /// Computes figures, several at once. Those that differ in few attributes share the groups of what they have in common.
    fn compute(&mut self, missing: &[ScoreTermKey]) -> Result<(), Cancelled> {
        for (base, figures) in batches(missing) {
            let groups = RowGroups::new(self.table, base, self.control)?;
            self.compute_batch(&figures, base, &groups)?;
        }
        Ok(())
    }

    /// Computes figures of attributes that all contain `base`, by which the rows are grouped already.
    fn compute_batch(&mut self, figures: &[ScoreTermKey], base: AttrSet, groups: &RowGroups) -> Result<(), Cancelled> {
        let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(figures.len())));
        let work = || {
            while let Some(figure) = figures.get(next.fetch_add(1, Ordering::Relaxed)) {
                let value = self.figure(*figure, base, groups);
                let stop = value.is_err();
                // a panic elsewhere is told by the one who joins
                found.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((*figure, value));
                if stop {
                    break;
                }
            }
        };
        let helpers = threads().min(figures.len()).saturating_sub(1);
        thread::scope(|scope| {
            (0..helpers).for_each(|_| drop(scope.spawn(work)));
            work();
        });
        for (figure, value) in found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
            self.figures.insert(figure, value?);
        }
        for (_, sensitive) in figures {
            let parted = self.buckets.get(sensitive);
            self.work += self.table.rows() as u64 + parted.map_or(0, |parted| self.visited(&parted.buckets));
        }
        Ok(())
    }

    /// How many shares an estimate looks at, at most: those of its bucket for every row.
    fn visited(&self, shares: &BucketedColumn) -> u64 {
        let rows = self.table.rows() as u64;
        rows.saturating_mul(shares.len() as u64) / (shares.count() as u64).max(1)
    }

    fn figure(&self, (set, sensitive): ScoreTermKey, base: AttrSet, groups: &RowGroups) -> Result<f64, Cancelled> {
        let columns: Vec<&Column> = set.minus(base).iter().map(|attr| self.table.column(attr)).collect();
        let groups = groups.refined(&columns, self.control)?;
        let Some(BucketedSensitive { buckets, together }) = self.buckets.get(&sensitive) else {
            return Ok(entropy(groups.sizes()));
        };
        let single = || sensitive.iter().next().map(|attr| &self.table.column(attr).codes);
        match together.as_ref().or_else(single).filter(|_| self.score == DecompositionScore::Kl) {
            Some(codes) => buckets.cross_entropy(&groups, codes, self.control),
            None => buckets.estimate_entropy(&groups, self.control),
        }
    }
}

impl BucketedSensitive {
    /// Several attributes that share buckets, in which every value of the one may stand with every value of the others; `None` when
    /// that is too many.
    fn of_several(
        table: &Table,
        tied: AttrSet,
        drawn: BucketAssignment,
        control: &Control,
    ) -> Result<Option<Self>, Cancelled> {
        let mut rows: Vec<Vec<u32>> = vec![Vec::new(); drawn.buckets as usize];
        for (&bucket, row) in drawn.bucket_of.iter().zip(0..) {
            rows[bucket as usize].push(row);
        }
        let mut shares: Vec<Vec<(u32, f64)>> = vec![vec![(0, 1.0)]; rows.len()];
        let (mut together, mut values) = (vec![0_u32; table.rows()], 1);
        for attr in tied.iter() {
            let codes = &table.column(attr).codes;
            let mut pairs: HashMap<(u32, u32), u32> = HashMap::new();
            let mut all = 0;
            for (rows, shares) in rows.iter().zip(&mut shares) {
                control.check()?;
                let mut here: Vec<u32> = rows.iter().map(|&row| codes.get(row as usize)).collect();
                here.sort_unstable();
                let runs: Vec<&[u32]> = here.chunk_by(|a, b| a == b).collect();
                all += runs.len() as u64 * shares.len() as u64;
                if all > MAX_SHARED_VALUES {
                    return Ok(None);
                }
                let mut wider = Vec::with_capacity(runs.len() * shares.len());
                for &(value, share) in shares.iter() {
                    for run in &runs {
                        let next = pairs.len() as u32;
                        let pair = *pairs.entry((value, run[0])).or_insert(next);
                        wider.push((pair, share * run.len() as f64 / rows.len() as f64));
                    }
                }
                wider.sort_unstable_by_key(|(pair, _)| *pair);
                *shares = wider;
            }
            // a row's values stand together in its bucket
            for (value, code) in together.iter_mut().zip(codes.iter()) {
                *value = pairs.get(&(*value, code)).copied().unwrap_or_default();
            }
            values = pairs.len();
        }
        let together = Some(Codes::collect(values, together.into_iter()));
        Ok(Some(Self { buckets: BucketedColumn::of_shares(drawn.bucket_of, shares, values, control)?, together }))
    }
}

/// The figures in batches, each with attributes that all of its figures contain: what several have in common but for one
/// attribute, as the candidates of one table have, and nothing for the others.
fn batches(missing: &[ScoreTermKey]) -> Vec<(AttrSet, Vec<ScoreTermKey>)> {
    /// Fewer figures are as well computed from the beginning.
    const WORTH: usize = 3;
    let mut containing: BTreeMap<AttrSet, Vec<ScoreTermKey>> = BTreeMap::new();
    for figure in missing {
        for attr in figure.0.iter() {
            containing.entry(figure.0.without(attr)).or_default().push(*figure);
        }
    }
    let mut largest_first: Vec<(AttrSet, Vec<ScoreTermKey>)> =
        containing.into_iter().filter(|(base, figures)| !base.is_empty() && figures.len() >= WORTH).collect();
    largest_first.sort_by_key(|(_, figures)| std::cmp::Reverse(figures.len()));
    let mut left: BTreeSet<ScoreTermKey> = missing.iter().copied().collect();
    let mut batches = Vec::new();
    for (base, figures) in largest_first {
        let figures: Vec<ScoreTermKey> = figures.into_iter().filter(|figure| left.contains(figure)).collect();
        if figures.len() >= WORTH {
            left.retain(|figure| !figures.contains(figure));
            batches.push((base, figures));
        }
    }
    batches.push((AttrSet::EMPTY, left.into_iter().collect()));
    batches
}

/// How many figures are computed at once.
pub fn threads() -> usize {
    thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS)
}
