//! Scores of decompositions: the entropy of a reader's estimate.
//!
//! The estimate `p~` follows from the groups and buckets that would be published. A protected attribute counts together with
//! others only if buckets separate them, and alone elsewhere. So no score depends on the assignment of sensitive values to rows
//! within a bucket, whichever decomposition is chosen. If no plain table holds a protected attribute, the score is the entropy of
//! the estimate itself.
//!
//! See `docs/spec/guardian-normal-form.md#adding-attributes`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::ground::{DecompositionInput, TableDraft};
use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, AttrSet, Codes, Column, Table};
use crate::model::{BucketedColumn, JoinTree, RowGroups, TableView, ValueShare, entropy};
use crate::publish::assign::BucketAssignment;
use crate::publish::designed_table::Bucketized;
use crate::publish::input::{BucketSource, PlanRows};
use crate::spec::DecompositionScore;

/// Largest number of terms that are computed in parallel.
const MAX_THREADS: usize = 4;

/// Largest number of value combinations, over all buckets, at which shared buckets are scored.
const MAX_SHARED_VALUES: u64 = 1 << 24;

/// Key of a term that several decompositions share.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct ScoreTermKey {
    known: AttrSet,
    /// The sensitive attributes of a bucketized table.
    sensitive: AttrSet,
}

impl ScoreTermKey {
    const fn plain(known: AttrSet) -> Self {
        Self { known, sensitive: AttrSet::EMPTY }
    }
}

/// Scorer of the decompositions of one table.
pub struct EntropyScorer<'a> {
    table: &'a Table,
    score: DecompositionScore,
    /// Attributes that count only where buckets separate them.
    hidden: AttrSet,
    buckets: BTreeMap<AttrSet, BucketedSensitive>,
    figures: HashMap<ScoreTermKey, f64>,
    work: u64,
    control: &'a Control,
}

/// Sensitive attributes in buckets.
struct BucketedSensitive {
    buckets: BucketedColumn,
    /// Code of the values of each row; of several attributes, of their combination.
    together: Option<Codes>,
}

/// The terms of a score.
pub struct ScoreTerms {
    added: Vec<ScoreTermKey>,
    subtracted: Vec<ScoreTermKey>,
}

impl<'a> EntropyScorer<'a> {
    /// Draws the buckets of every protected attribute once, as the release draws them.
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
            let guarantees = ground.guarantees(sensitive);
            let drawn =
                match rows.buckets {
                    BucketSource::Elsewhere(buckets) => buckets.of_attribute(sensitive, guarantees, control)?,
                    BucketSource::Drawn => Bucketized::on(AttrSet::one(sensitive), sensitive, guarantees.to_vec())
                        .draw(rows.table, rows.streams, control)?,
                };
            Ok((sensitive, drawn))
        };
        let drawn: BTreeMap<Attr, BucketAssignment> = ground.protected().iter().map(draw).collect::<Result<_, _>>()?;
        Self::with(drawn, rows.table, score, control)
    }

    /// A scorer for drawn buckets of all protected attributes.
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

    /// Adds buckets that several attributes share. Their tables have a score only if buckets have few enough combinations.
    ///
    /// # Errors
    /// [`Cancelled`] on cancellation.
    pub(super) fn tie(&mut self, tied: AttrSet, drawn: BucketAssignment) -> Result<(), Cancelled> {
        if let Some(parted) = BucketedSensitive::of_several(self.table, tied, drawn, self.control)? {
            self.buckets.insert(tied, parted);
        }
        Ok(())
    }

    /// Whether the buckets of the attributes are drawn.
    #[must_use]
    pub(super) fn knows(&self, sensitive: AttrSet) -> bool {
        self.buckets.contains_key(&sensitive)
    }

    /// Work so far, in values read.
    #[must_use]
    pub const fn work(&self) -> u64 {
        self.work
    }

    /// Terms of the score of the drafts; `None` if their tables form no tree, or need buckets that are not drawn.
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
            true => ScoreTermKey { known: draft.known(), sensitive: draft.sensitive },
            false => ScoreTermKey::plain(draft.attributes),
        };
        let separators = tree.edges.iter().map(|edge| edge.separator).filter(|separator| !separator.is_empty());
        tree.is_decomposable().then(|| ScoreTerms {
            added: tree.members.iter().map(|&member| figure(&counted[member])).collect(),
            subtracted: separators.map(ScoreTermKey::plain).collect(),
        })
    }

    /// Score of each sum; a lower score keeps more information.
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

    /// The information, in nats, that tables keep between each protected attribute and those that stand next to its buckets: the largest of
    /// any table, summed over protected attributes. Attributes that share buckets count with what they say of each other.
    ///
    /// # Errors
    /// [`Cancelled`] on cancellation.
    pub(super) fn information(&mut self, drafts: &[TableDraft], protected: AttrSet) -> Result<f64, Cancelled> {
        let mut most: BTreeMap<Attr, f64> = BTreeMap::new();
        for draft in drafts {
            let TableDraft { sensitive, .. } = *draft;
            // what no buckets hide counts alone: no choice depends on which row has which protected value
            let known = draft.known().minus(protected);
            if sensitive.is_empty() || known.is_empty() || !self.knows(sensitive) {
                continue;
            }
            let alone = sensitive.iter().map(|attr| ScoreTermKey::plain(AttrSet::one(attr)));
            let terms = ScoreTerms {
                added: alone.chain([ScoreTermKey::plain(known)]).collect(),
                subtracted: vec![ScoreTermKey { known, sensitive }],
            };
            let kept = self.scores(&[terms])?[0];
            for attr in sensitive.iter() {
                let before = most.entry(attr).or_default();
                *before = before.max(kept);
            }
        }
        Ok(most.values().sum())
    }

    /// Computes terms, several in parallel. Terms with common attributes share the groups of these.
    fn compute(&mut self, missing: &[ScoreTermKey]) -> Result<(), Cancelled> {
        for (base, figures) in batches(missing) {
            let groups = RowGroups::new(self.table, base, self.control)?;
            self.compute_batch(&figures, base, &groups)?;
        }
        Ok(())
    }

    /// Computes terms whose attributes all contain `base`, by which the rows are grouped already.
    fn compute_batch(&mut self, figures: &[ScoreTermKey], base: AttrSet, groups: &RowGroups) -> Result<(), Cancelled> {
        let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(figures.len())));
        let work = || {
            while let Some(figure) = figures.get(next.fetch_add(1, Ordering::Relaxed)) {
                let value = self.figure(*figure, base, groups);
                let stop = value.is_err();
                // a panic of a thread is propagated by the caller that joins it
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
        for figure in figures {
            let parted = self.buckets.get(&figure.sensitive);
            self.work += self.table.rows() as u64 + parted.map_or(0, |parted| self.visited(&parted.buckets));
        }
        Ok(())
    }

    /// Upper bound of the number of shares of an estimate: those of its bucket for every row.
    fn visited(&self, shares: &BucketedColumn) -> u64 {
        let rows = self.table.rows() as u64;
        rows.saturating_mul(shares.len() as u64) / (shares.count() as u64).max(1)
    }

    fn figure(&self, key: ScoreTermKey, base: AttrSet, groups: &RowGroups) -> Result<f64, Cancelled> {
        let columns: Vec<&Column> = key.known.minus(base).iter().map(|attr| self.table.column(attr)).collect();
        let groups = groups.refined(&columns, self.control)?;
        let Some(BucketedSensitive { buckets, together }) = self.buckets.get(&key.sensitive) else {
            return Ok(entropy(groups.sizes()));
        };
        let single = || key.sensitive.iter().next().map(|attr| &self.table.column(attr).codes);
        match together.as_ref().or_else(single).filter(|_| self.score == DecompositionScore::Kl) {
            Some(codes) => buckets.cross_entropy(&groups, codes, self.control),
            None => buckets.estimate_entropy(&groups, self.control),
        }
    }
}

impl BucketedSensitive {
    /// Shared buckets, in which every value of one attribute may occur with every value of the others. `None` if there are too
    /// many combinations.
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
        let mut shares = vec![vec![ValueShare { value: 0, share: 1.0 }]; rows.len()];
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
                for &ValueShare { value, share } in shares.iter() {
                    for run in &runs {
                        let next = pairs.len() as u32;
                        let value = *pairs.entry((value, run[0])).or_insert(next);
                        wider.push(ValueShare { value, share: share * run.len() as f64 / rows.len() as f64 });
                    }
                }
                wider.sort_unstable_by_key(|share| share.value);
                *shares = wider;
            }
            // the values of a row occur together in its bucket
            for (value, code) in together.iter_mut().zip(codes.iter()) {
                *value = pairs.get(&(*value, code)).copied().unwrap_or_default();
            }
            values = pairs.len();
        }
        let together = Some(Codes::collect(values, together.into_iter()));
        Ok(Some(Self { buckets: BucketedColumn::of_shares(drawn.bucket_of, shares, values, control)?, together }))
    }
}

/// Batches of terms, each with the attributes that all of its terms contain. The candidates for one table share all but one
/// attribute.
fn batches(missing: &[ScoreTermKey]) -> Vec<(AttrSet, Vec<ScoreTermKey>)> {
    /// Smallest batch that gains from shared groups.
    const WORTH: usize = 3;
    let mut containing: BTreeMap<AttrSet, Vec<ScoreTermKey>> = BTreeMap::new();
    for figure in missing {
        for attr in figure.known.iter() {
            containing.entry(figure.known.without(attr)).or_default().push(*figure);
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

/// Number of terms that are computed in parallel.
pub fn threads() -> usize {
    thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS)
}
