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

use super::ground::{Draft, Ground};
use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, AttrSet, Column, Table};
use crate::model::{Buckets, Groups, JoinTree, View, entropy};
use crate::publish::Rows;
use crate::publish::assign::{Assignment, Values, assign};
use crate::spec::Score;

/// So many figures are computed at once, where there are processors for them.
const MAX_THREADS: usize = 4;

/// A number that several decompositions share: of a table of these known attributes, with the sensitive one if it is
/// bucketized.
type Figure = (AttrSet, Option<Attr>);

/// Compares decompositions of one table.
pub struct Scorer<'a> {
    table: &'a Table,
    score: Score,
    /// The attributes that count only where buckets part them from others.
    hidden: AttrSet,
    buckets: BTreeMap<Attr, Buckets>,
    figures: HashMap<Figure, f64>,
    work: u64,
    control: &'a Control,
}

/// A decomposition that can be scored: what the score is a sum of.
pub struct Sum {
    added: Vec<Figure>,
    subtracted: Vec<Figure>,
}

impl<'a> Scorer<'a> {
    /// Draws the buckets of every protected attribute as the release will, once.
    ///
    /// # Errors
    /// [`Cancelled`] when told to stop.
    pub fn draw(ground: &Ground<'_>, rows: Rows<'a>, score: Score, control: &'a Control) -> Result<Self, Cancelled> {
        let draw = |sensitive: Attr| {
            let mut stream = rows.streams.stream(&format!("assign/{}", sensitive.0));
            let (column, terrain) = (rows.table.column(sensitive), rows.table.terrain(sensitive));
            Ok((
                sensitive,
                assign(Values::from(column).on(terrain), ground.guarantees(sensitive), &mut stream, control)?,
            ))
        };
        let drawn: BTreeMap<Attr, Assignment> = ground.protected().iter().map(draw).collect::<Result<_, _>>()?;
        Self::with(drawn, rows.table, score, control)
    }

    /// A scorer for buckets that are drawn already, of all protected attributes.
    ///
    /// # Errors
    /// [`Cancelled`] when told to stop.
    pub fn with(
        drawn: BTreeMap<Attr, Assignment>,
        table: &'a Table,
        score: Score,
        control: &'a Control,
    ) -> Result<Self, Cancelled> {
        let protected: AttrSet = drawn.keys().copied().collect();
        let made = |(attr, drawn): (Attr, Assignment)| {
            Ok((attr, Buckets::new(table.column(attr), drawn.bucket_of, drawn.buckets as usize, control)?))
        };
        Ok(Self {
            table,
            score,
            hidden: if score == Score::Kl { AttrSet::EMPTY } else { protected },
            buckets: drawn.into_iter().map(made).collect::<Result<_, _>>()?,
            figures: HashMap::new(),
            work: 0,
            control,
        })
    }

    /// The work done so far, in values looked at.
    #[must_use]
    pub const fn work(&self) -> u64 {
        self.work
    }

    /// What the score of the drafts is a sum of; `None` when their tables form no tree.
    #[must_use]
    pub fn sum_of(&self, drafts: &[Draft]) -> Option<Sum> {
        let view = |draft: &Draft| match draft.sensitive {
            Some(sensitive) if draft.attributes.len() > 1 => View::bucketized(draft.attributes, sensitive),
            _ => View::plain(draft.attributes),
        };
        if !JoinTree::of(&drafts.iter().map(view).collect::<Vec<_>>()).is_decomposable() {
            return None;
        }
        let mut counted: Vec<Draft> = drafts
            .iter()
            .map(|draft| {
                let hidden = draft.sensitive.map_or(self.hidden, |sensitive| self.hidden.without(sensitive));
                Draft { attributes: draft.attributes.minus(hidden), ..*draft }
            })
            .collect();
        let shown = counted.iter().fold(AttrSet::EMPTY, |all, draft| all.union(draft.attributes));
        let all = drafts.iter().fold(AttrSet::EMPTY, |all, draft| all.union(draft.attributes));
        counted.extend(all.minus(shown).iter().map(|attr| Draft::plain(AttrSet::one(attr))));
        let tree = JoinTree::of(&counted.iter().map(view).collect::<Vec<_>>());
        let figure = |draft: &Draft| match draft.sensitive {
            Some(sensitive) if draft.attributes.len() > 1 => (draft.known(), Some(sensitive)),
            _ => (draft.attributes, None),
        };
        let separators = tree.edges.iter().map(|edge| (edge.separator, None));
        tree.is_decomposable().then(|| Sum {
            added: tree.members.iter().map(|&member| figure(&counted[member])).collect(),
            subtracted: separators.filter(|(separator, _)| !separator.is_empty()).collect(),
        })
    }

    /// The score of each sum: the lower, the more is told.
    ///
    /// # Errors
    /// [`Cancelled`] when told to stop.
    pub fn scores(&mut self, sums: &[Sum]) -> Result<Vec<f64>, Cancelled> {
        let all = sums.iter().flat_map(|sum| sum.added.iter().chain(&sum.subtracted));
        let missing: BTreeSet<Figure> = all.copied().filter(|figure| !self.figures.contains_key(figure)).collect();
        self.compute(&missing.into_iter().collect::<Vec<_>>())?;
        let total = |sum: &Sum| {
            let figures = |figures: &[Figure]| figures.iter().map(|figure| self.figures[figure]).sum::<f64>();
            figures(&sum.added) - figures(&sum.subtracted)
        };
        Ok(sums.iter().map(total).collect())
    }

    /// Computes figures, several at once. Those that differ in few attributes share the groups of what they have in common.
    fn compute(&mut self, missing: &[Figure]) -> Result<(), Cancelled> {
        let bases = self.bases(missing)?;
        let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(missing.len())));
        let work = || {
            while let Some(figure) = missing.get(next.fetch_add(1, Ordering::Relaxed)) {
                let value = self.figure(*figure, &bases);
                let stop = value.is_err();
                // a panic elsewhere is told by the one who joins
                found.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((*figure, value));
                if stop {
                    break;
                }
            }
        };
        let helpers = threads().min(missing.len()).saturating_sub(1);
        thread::scope(|scope| {
            (0..helpers).for_each(|_| drop(scope.spawn(work)));
            work();
        });
        for (figure, value) in found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
            self.figures.insert(figure, value?);
        }
        for (_, sensitive) in missing {
            let shares = sensitive.and_then(|sensitive| self.buckets.get(&sensitive));
            self.work += self.table.rows() as u64 + shares.map_or(0, |shares| self.visited(shares));
        }
        Ok(())
    }

    /// How many shares an estimate looks at, at most: those of its bucket for every row.
    fn visited(&self, shares: &Buckets) -> u64 {
        let rows = self.table.rows() as u64;
        rows.saturating_mul(shares.len() as u64) / (shares.count() as u64).max(1)
    }

    /// The groups of what at least three figures have in common but for one attribute.
    fn bases(&self, missing: &[Figure]) -> Result<Vec<(AttrSet, Groups)>, Cancelled> {
        const WORTH: usize = 3;
        const MOST: usize = 6;
        let mut times: BTreeMap<AttrSet, usize> = BTreeMap::new();
        for (set, _) in missing.iter().filter(|(set, _)| set.len() > 2) {
            for attr in set.iter() {
                *times.entry(set.without(attr)).or_default() += 1;
            }
        }
        let mut often: Vec<(AttrSet, usize)> = times.into_iter().filter(|(_, times)| *times >= WORTH).collect();
        often.sort_by_key(|&(_, times)| std::cmp::Reverse(times));
        let mut bases: Vec<(AttrSet, Groups)> = Vec::new();
        let mut served: BTreeSet<Figure> = BTreeSet::new();
        for (base, _) in often {
            let of = missing.iter().filter(|(set, _)| base.is_subset(*set) && set.len() == base.len() + 1);
            let new: Vec<Figure> = of.copied().filter(|figure| !served.contains(figure)).collect();
            if new.len() >= WORTH && bases.len() < MOST {
                served.extend(new);
                bases.push((base, Groups::of(self.table, base, self.control)?));
            }
        }
        Ok(bases)
    }

    fn figure(&self, (set, sensitive): Figure, bases: &[(AttrSet, Groups)]) -> Result<f64, Cancelled> {
        let (base, from) = match bases.iter().find(|(base, _)| base.is_subset(set) && set.len() == base.len() + 1) {
            Some((base, groups)) => (*base, groups),
            None => (AttrSet::EMPTY, &Groups::whole(self.table.rows())),
        };
        let columns: Vec<&Column> = set.minus(base).iter().map(|attr| self.table.column(attr)).collect();
        let groups = from.refined(&columns, self.control)?;
        match sensitive.and_then(|attr| Some((attr, self.buckets.get(&attr)?))) {
            None => Ok(entropy(groups.sizes())),
            Some((attr, buckets)) if self.score == Score::Kl => {
                buckets.cross_entropy(&groups, self.table.column(attr), self.control)
            }
            Some((_, buckets)) => buckets.estimate_entropy(&groups, self.control),
        }
    }
}

/// How many figures are computed at once.
pub fn threads() -> usize {
    thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS)
}
