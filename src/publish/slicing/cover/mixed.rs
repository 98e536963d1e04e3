//! Columns that share attributes over all buckets together: what a row may conclude from every bucket that it may stand in (slicing,
//! section 8), after each split.
//!
//! In a bucket B, a row q has the sensitive value s with the weight `n_1(q,s) ... n_c(q,s) / N_B`, `N_B` being the size of the natural join
//! of the columns of B: the share of the combinations that are q and s. The weights of all buckets are added up. Where sizes count, the
//! same must hold of the rows of B that are expected to be q and s when all ways to match the rows of its columns are equally
//! likely, which is `n_1(q,s) ... n_c(q,s)` divided by what columns share, as in `alone`; without shared attributes that is the weight above times
//! the size of B. Both hold for each choice of the columns with the sensitive attribute.
//!
//! Only rows that may stand in a bucket are concerned by its split, and each half takes some of these. A sum keeps the bound when each of its
//! summands does, so that only rows with a bad bucket are added up.

use std::cell::OnceCell;

use smallvec::SmallVec;

use super::join::NaturalJoin;
use super::margins::{BucketMargins, DenseCounter, MarginCounts, rows_of};
use super::weights::{self, CountProduct, NaturalLog, UnreducedFraction, WorstShare};
use super::{HalfPredicate, JoinTooDenseError};
use crate::control::{Cancelled, Control};
use crate::microdata::{AttrSet, branches};
use crate::publish::slicing::counts::FrequencyBound;
use crate::publish::slicing::posterior::BucketWeights;

/// Allows the splits after which every row keeps the bound over all buckets that it may stand in.
pub(super) struct OverlapMixtureChecker<'a> {
    margins: BucketMargins<'a>,
    /// The columns without the sensitive attribute.
    others: Vec<QiColumn>,
    /// The margins of those of them that are counted in [`DenseCounter`] memory while a split is tried.
    apart: Vec<usize>,
    choices: Vec<SensitiveColumnSet>,
    bound: FrequencyBound,
    control: &'a Control,
    /// A row of each identity, and what it has of the columns with the sensitive attribute.
    identities: Vec<u32>,
    sides: Vec<u32>,
    /// Per identity, the buckets that it matches, and in how many of them a value is too frequent.
    matched: Vec<SmallVec<[u32; 4]>>,
    bad_in: Vec<u32>,
    /// Per bucket made; none when it was split.
    buckets: Vec<Option<MixtureBucketState>>,
    /// Memory of halves.
    spare: Vec<Vec<DenseCounter>>,
    told: [HalfShares; 2],
}

/// A column without the sensitive attribute.
#[derive(Clone, Copy)]
struct QiColumn {
    margin: usize,
    /// Its place among those that are counted apart.
    apart: Option<usize>,
}

/// What the columns with the sensitive attribute tell in one half, by what rows have of them: whatever the other columns say is a factor of
/// all values alike.
#[derive(Default)]
struct HalfShares {
    of_sides: Vec<Option<SideShares>>,
    known: Vec<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SideShares {
    /// No column has it.
    Absent,
    Good,
    /// A value is too frequent.
    Bad,
}

impl HalfShares {
    fn side(&mut self, side: u32, found: impl FnOnce() -> SideShares) -> SideShares {
        *self.of_sides[side as usize].get_or_insert_with(|| {
            self.known.push(side);
            found()
        })
    }

    fn forget(&mut self) {
        self.known.drain(..).for_each(|side| self.of_sides[side as usize] = None);
    }
}

/// Some of the columns with the sensitive attribute.
struct SensitiveColumnSet {
    attributes: AttrSet,
    sensitive: Vec<usize>,
    /// The join of these and the others.
    join: NaturalJoin,
    /// What they share, each with the column it hangs on, where that counts.
    shared: Option<Vec<usize>>,
}

struct MixtureBucketState {
    counts: MarginCounts,
    /// The counts of columns that are counted apart, while the split that makes it is tried; they then stand with the others.
    dense: Vec<DenseCounter>,
    rows: u64,
    /// Per choice, the sizes of the join, where these were asked for.
    sizes: OnceCell<Result<Vec<Vec<u128>>, JoinTooDenseError>>,
    /// The identities that match it, each with whether a value is too frequent in it alone; none when it is closed.
    matching: Vec<(u32, bool)>,
}

/// A bucket with the sizes of its joins, per choice; none where these do not matter.
type JoinSizes<'b> = (&'b MixtureBucketState, &'b [Vec<u128>]);

/// How the weights of a bucket are made.
#[derive(Clone, Copy)]
enum WeightKind {
    /// As a share of its combinations.
    OfJoin,
    /// As expected rows.
    OfMatchings,
}

impl<'a> OverlapMixtureChecker<'a> {
    /// Begins with the whole table as one bucket; the largest share that it shows, where that is too large.
    pub(super) fn begin(
        mut margins: BucketMargins<'a>,
        columns: &[AttrSet],
        sensitive: usize,
        bound: FrequencyBound,
        weights: BucketWeights,
        control: &'a Control,
    ) -> Result<Result<(Self, Option<WorstShare>), JoinTooDenseError>, Cancelled> {
        let (without, with) = columns.split_at(columns.len() - sensitive);
        let others: Vec<usize> = without.iter().map(|set| margins.add(*set, control)).collect::<Result<_, _>>()?;
        let mut choices = Vec::new();
        for chosen in super::choices(with) {
            let sensitive: Vec<usize> =
                chosen.iter().map(|set| margins.add(*set, control)).collect::<Result<_, _>>()?;
            let all = [without, &chosen].concat();
            let shared = match weights {
                BucketWeights::Shares => None,
                BucketWeights::SharesAndSizes => {
                    let hung = branches(&all).unwrap_or_default().into_iter().skip(1);
                    Some(hung.map(|branch| margins.add(branch.shared, control)).collect::<Result<_, _>>()?)
                }
            };
            let join = NaturalJoin::new(&mut margins, &[&others[..], &sensitive].concat(), control)?;
            let attributes = all.iter().fold(AttrSet::EMPTY, |all, set| all.union(*set));
            choices.push(SensitiveColumnSet { attributes, sensitive, join, shared });
        }
        let all = columns.iter().fold(AttrSet::EMPTY, |all, set| all.union(*set));
        let identities = margins.representatives(all, control)?;
        let beside = with.iter().fold(AttrSet::EMPTY, |all, set| all.union(*set));
        let of_rows = margins.together(beside, control)?;
        let sides = identities.iter().map(|&row| of_rows.of_row[row as usize]).collect();
        // what is no more than looked up
        let used = |margin: &usize| {
            choices.iter().any(|choice: &SensitiveColumnSet| {
                choice.join.margins().any(|of| of == *margin) || choice.shared.iter().flatten().any(|of| of == margin)
            })
        };
        let apart: Vec<usize> = others.iter().copied().filter(|margin| !used(margin)).collect();
        let other = |&margin: &usize| QiColumn { margin, apart: apart.iter().position(|of| *of == margin) };
        let others: Vec<QiColumn> = others.iter().map(other).collect();
        let told = || HalfShares { of_sides: vec![None; of_rows.count as usize], known: Vec::new() };
        let mut judge = Self {
            margins,
            others,
            apart,
            sides,
            spare: Vec::new(),
            told: [told(), told()],
            choices,
            bound,
            control,
            matched: vec![SmallVec::from_slice(&[0]); identities.len()],
            bad_in: vec![0; identities.len()],
            identities,
            buckets: Vec::new(),
        };
        let rows: Vec<u32> = (0..judge.margins.rows() as u32).collect();
        let mut whole = judge.bucket(&rows);
        judge.settle(&mut whole);
        if let Err(dense) = judge.sizes(&whole) {
            return Ok(Err(dense));
        }
        let mut worst = WorstShare::none();
        let mut broken = false;
        let mut seen = vec![false; of_rows.count as usize];
        for (number, (&row, &side)) in judge.identities.iter().zip(&judge.sides).enumerate() {
            if number % Control::STRIDE == 0 {
                control.check()?;
            }
            if !std::mem::replace(&mut seen[side as usize], true) {
                broken |= !judge.keeps(row, &[&whole], Some(&mut worst));
            }
        }
        whole.matching = (0..judge.identities.len() as u32).map(|identity| (identity, false)).collect();
        judge.buckets.push(Some(whole));
        Ok(Ok((judge, broken.then_some(worst))))
    }

    /// Counts rows as a bucket, in memory that goes back to what is spare.
    fn bucket(&mut self, rows: &[u32]) -> MixtureBucketState {
        let counts = self.margins.count_but(rows, &self.apart);
        let spare = self.spare.pop();
        let fresh = || self.apart.iter().map(|&margin| self.margins.dense(margin)).collect();
        let mut dense: Vec<DenseCounter> = spare.unwrap_or_else(fresh);
        for (dense, &margin) in dense.iter_mut().zip(&self.apart) {
            dense.count(&self.margins, margin, rows);
        }
        MixtureBucketState { counts, dense, rows: rows.len() as u64, sizes: OnceCell::new(), matching: Vec::new() }
    }

    /// The sizes of the join of a bucket, per choice. Those of a half take no longer than those of the whole.
    fn sizes<'b>(&self, bucket: &'b MixtureBucketState) -> Result<&'b [Vec<u128>], JoinTooDenseError> {
        let sizes = bucket.sizes.get_or_init(|| {
            let size = |choice: &SensitiveColumnSet| choice.join.sizes(&self.margins, &bucket.counts, bucket.rows);
            self.choices.iter().map(size).collect()
        });
        sizes.as_deref().map_err(|dense| *dense)
    }

    /// Keeps the counts of a bucket.
    fn settle(&mut self, bucket: &mut MixtureBucketState) {
        for (dense, &margin) in bucket.dense.iter_mut().zip(&self.apart) {
            bucket.counts[margin] = dense.kept();
        }
        self.spare.push(std::mem::take(&mut bucket.dense));
    }

    /// How many rows of a bucket have what a row has in a column without the sensitive attribute.
    fn rows_with(&self, row: u32, bucket: &MixtureBucketState, other: QiColumn) -> u32 {
        let value = self.margins.value(other.margin, row);
        match other.apart.and_then(|at| bucket.dense.get(at)) {
            Some(dense) => dense.rows(value),
            None => bucket.counts[other.margin].rows(value),
        }
    }

    /// Whether some column with the sensitive attribute has what a row has in it.
    fn has_side(&self, row: u32, bucket: &MixtureBucketState) -> bool {
        let occurs = |&column: &usize| !bucket.counts[column].beside(self.margins.value(column, row)).is_empty();
        self.choices.iter().flat_map(|choice| &choice.sensitive).any(occurs)
    }

    /// Adds the weights of the sensitive values that a row has in a bucket, of which the joins have `sizes`; none where these do not matter.
    fn weigh<W: CountProduct>(
        &self,
        row: u32,
        (bucket, sizes): JoinSizes<'_>,
        choice: usize,
        kind: WeightKind,
        out: &mut Vec<(u32, W)>,
    ) {
        let value = |column: usize| self.margins.value(column, row);
        let (of, counts) = (&self.choices[choice], &bucket.counts);
        let mut common = W::one();
        for &other in &self.others {
            match self.rows_with(row, bucket, other) {
                0 => return,
                rows => common.times(u128::from(rows)),
            }
        }
        let shared = match kind {
            WeightKind::OfJoin => {
                sizes.get(choice).into_iter().flatten().for_each(|size| common.over(*size));
                &[][..]
            }
            WeightKind::OfMatchings => of.shared.as_deref().unwrap_or_default(),
        };
        let Some((&first, more)) = of.sensitive.split_first() else { return };
        'values: for &(sensitive, rows) in counts[first].beside(value(first)) {
            let mut weight = common.clone();
            weight.times(u128::from(rows));
            for &column in more {
                match rows_of(counts[column].beside(value(column)), sensitive) {
                    0 => continue 'values,
                    rows => weight.times(u128::from(rows)),
                }
            }
            for &margin in shared {
                // whoever agrees in a column agrees in what it shares: there are some
                weight.over(u128::from(self.margins.rows_with(margin, &counts[margin], row, sensitive)));
            }
            out.push((sensitive, weight));
        }
    }

    /// Whether a row keeps the bound over buckets of which it matches some.
    fn keeps<'b>(&self, row: u32, buckets: &[&'b MixtureBucketState], mut worst: Option<&mut WorstShare>) -> bool {
        let mut floats: Vec<(u32, NaturalLog)> = Vec::new();
        let mut kept = true;
        // of a single bucket the size is a factor of all values alike
        let mut sized: SmallVec<[JoinSizes<'b>; 4]> = SmallVec::new();
        for &bucket in buckets {
            let sizes = if buckets.len() > 1 { self.sizes(bucket) } else { Ok(&[][..]) };
            let Ok(sizes) = sizes else { return false };
            sized.push((bucket, sizes));
        }
        for (choice, of) in self.choices.iter().enumerate() {
            let kinds = if of.shared.is_some() {
                &[WeightKind::OfJoin, WeightKind::OfMatchings][..]
            } else {
                &[WeightKind::OfJoin]
            };
            for &kind in kinds {
                floats.clear();
                for &(bucket, sizes) in &sized {
                    self.weigh(row, (bucket, sizes), choice, kind, &mut floats);
                }
                if floats.is_empty() {
                    // these columns rule the buckets out
                    continue;
                }
                let exactly = || {
                    let mut exact: Vec<(u32, UnreducedFraction)> = Vec::new();
                    for &(bucket, sizes) in &sized {
                        self.weigh(row, (bucket, sizes), choice, kind, &mut exact);
                    }
                    exact
                };
                kept &= weights::holds(&self.bound, &mut floats, exactly);
                match &mut worst {
                    Some(worst) => worst.see(&self.bound, of.attributes, &mut floats, exactly),
                    None if !kept => return false,
                    None => {}
                }
            }
        }
        kept
    }

    /// Plans the split of a bucket into halves, and says which identities match them; `None` when one would not keep the bound.
    fn plan(
        &self,
        bucket: u32,
        split: &MixtureBucketState,
        halves: [&MixtureBucketState; 2],
        told: &mut [HalfShares; 2],
    ) -> Option<Vec<OverlapChange>> {
        told.iter_mut().for_each(HalfShares::forget);
        let mut plan = Vec::with_capacity(split.matching.len());
        for (number, &(identity, bad)) in split.matching.iter().enumerate() {
            if number % Control::STRIDE == 0 && self.control.check().is_err() {
                return None;
            }
            let row = self.identities[identity as usize];
            let mut bad_in = self.bad_in[identity as usize] - u32::from(bad);
            let side = self.sides[identity as usize];
            let mut into = [None; 2];
            for ((into, half), told) in into.iter_mut().zip(halves).zip(told.iter_mut()) {
                if self.others.iter().any(|&other| self.rows_with(row, half, other) == 0) {
                    continue;
                }
                let found = told.side(side, || match self.has_side(row, half) {
                    false => SideShares::Absent,
                    true if self.keeps(row, &[half], None) => SideShares::Good,
                    true => SideShares::Bad,
                });
                *into = (found != SideShares::Absent).then_some(found == SideShares::Bad);
                bad_in += u32::from(found == SideShares::Bad);
            }
            if bad_in > 0 {
                let other = self.matched[identity as usize].iter().filter(|other| **other != bucket);
                let mut all: SmallVec<[&MixtureBucketState; 8]> =
                    other.filter_map(|&other| self.buckets[other as usize].as_ref()).collect();
                all.extend(halves.into_iter().zip(into).filter(|(_, into)| into.is_some()).map(|(half, _)| half));
                if !self.keeps(row, &all, None) {
                    return None;
                }
            }
            plan.push(OverlapChange { identity, into, bad_in });
        }
        Some(plan)
    }

    /// Replaces a bucket by its halves.
    fn split(&mut self, bucket: u32, halves: [MixtureBucketState; 2], plan: Vec<OverlapChange>) {
        let first = self.buckets.len() as u32;
        self.buckets.extend(halves.into_iter().map(Some));
        for OverlapChange { identity, into, bad_in } in plan {
            self.bad_in[identity as usize] = bad_in;
            let matched = &mut self.matched[identity as usize];
            matched.retain(|other| *other != bucket);
            for (half, into) in (first..).zip(into) {
                let (Some(bad), Some(of)) = (into, &mut self.buckets[half as usize]) else { continue };
                matched.push(half);
                of.matching.push((identity, bad));
            }
        }
    }
}

/// What a split would mean for an identity.
struct OverlapChange {
    identity: u32,
    /// Per half, where it matches it: whether a value is too frequent in it alone.
    into: [Option<bool>; 2],
    bad_in: u32,
}

impl HalfPredicate for OverlapMixtureChecker<'_> {
    fn allows(&mut self, bucket: u32, left: &[u32], right: &[u32]) -> bool {
        let (mut left, mut right) = (self.bucket(left), self.bucket(right));
        // taken out while it is tried: the sums of its identities are without it
        let Some(split) = self.buckets[bucket as usize].take() else { return false };
        let mut told = std::mem::take(&mut self.told);
        let plan = self.plan(bucket, &split, [&left, &right], &mut told);
        self.told = told;
        match plan {
            Some(plan) => {
                self.settle(&mut left);
                self.settle(&mut right);
                self.split(bucket, [left, right], plan);
                true
            }
            None => {
                self.spare.extend([left.dense, right.dense]);
                self.buckets[bucket as usize] = Some(split);
                false
            }
        }
    }

    fn closed(&mut self, bucket: u32) {
        // its counts are still part of sums
        if let Some(bucket) = &mut self.buckets[bucket as usize] {
            bucket.matching = Vec::new();
        }
    }
}
