//! Mixture diversity of columns that share attributes: posteriors over all matching buckets, checked after each split.
//!
//! In a bucket B, a row q has the sensitive value s with weight `n_1(q,s) ... n_c(q,s) / N_B`. `N_B` is the size of the natural
//! join of the columns of B, so that the weight is the share of combinations that are q and s. Weights are added over all
//! buckets.
//!
//! With weights by size, the bound must also hold for the expected number of rows that are q and s when all matchings of columns
//! are equally likely. This is `n_1(q,s) ... n_c(q,s)` divided by the counts of shared attributes, as in `alone`. Without shared
//! attributes it is the weight above times the size of B. Both hold for each choice of the columns with the sensitive attribute.
//!
//! A split concerns only rows that match the bucket, and each half matches some of these. A sum keeps the bound if each summand
//! does, so that only rows with a bad bucket are added up.
//!
//! See `docs/spec/overlapping-slicing.md#two-weightings` and `#diversity`.

use std::cell::OnceCell;

use smallvec::SmallVec;

use super::dense::JoinTooDenseError;
use super::halves::HalfPredicate;
use super::join::NaturalJoin;
use super::margins::{BucketMargins, DenseCounter, MarginCount, rows_of};
use super::weights::{self, CountProduct, ScaledFloat, UnreducedFraction, ValueWeight, WorstShare};

use crate::control::{Cancelled, Control};
use crate::microdata::{AttrSet, branches};
use crate::publish::partition::TallyGroups;
use crate::publish::slicing::counts::FrequencyBound;
use crate::publish::slicing::posterior::BucketWeights;

/// Largest number of rows of a bucket that are looked at one by one, in place of counts.
const MAX_SCANNED_ROWS: usize = 32;

/// Predicate of splits after which every row keeps the bound over all matching buckets.
pub(super) struct OverlapMixtureChecker<'a> {
    margins: BucketMargins<'a>,
    /// Columns without the sensitive attribute.
    others: Vec<QiColumn>,
    /// Margins of these that are counted in [`DenseCounter`] memory during a trial.
    apart: Vec<usize>,
    choices: Vec<SensitiveColumnSet>,
    bound: FrequencyBound,
    control: &'a Control,
    /// One row of each identity, and its side: its values in the columns with the sensitive attribute.
    identities: Vec<u32>,
    sides: Vec<u32>,
    /// Identity of each row.
    of_rows: Vec<u32>,
    /// For each identity, the matching buckets, and the number of these in which a value is too frequent.
    matched: Vec<SmallVec<[u32; 4]>>,
    bad_in: Vec<u32>,
    /// Buckets by number; `None` after a split.
    buckets: Vec<Option<MixtureBucketState>>,
    /// Memory of halves for reuse.
    spare: Vec<Vec<DenseCounter>>,
    revealed: [HalfShares; 2],
}

/// Weights of the values of a row.
type WeightList<W> = SmallVec<[ValueWeight<W>; 8]>;

/// A column without the sensitive attribute.
#[derive(Clone, Copy)]
struct QiColumn {
    margin: usize,
    /// Index among the margins that are counted apart.
    apart: Option<usize>,
}

/// Shares of sensitive values in one half, by side. All other columns are a factor of all values alike.
#[derive(Default)]
struct HalfShares {
    of_sides: Vec<Option<SideShares>>,
    known: Vec<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SideShares {
    /// No column holds the side.
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

/// A choice of the columns with the sensitive attribute.
struct SensitiveColumnSet {
    attributes: AttrSet,
    sensitive: Vec<usize>,
    /// Join of these and the columns without the sensitive attribute.
    join: NaturalJoin,
    /// Margins that each column shares with its parent, if weights by size are checked.
    shared: Option<Vec<usize>>,
}

impl SensitiveColumnSet {
    /// The `chosen` columns with all `others`.
    fn new(
        margins: &mut BucketMargins<'_>,
        others: &[AttrSet],
        chosen: &[AttrSet],
        weights: BucketWeights,
        control: &Control,
    ) -> Result<Self, Cancelled> {
        let sensitive: Vec<usize> = chosen.iter().map(|set| margins.add(*set, control)).collect::<Result<_, _>>()?;
        let all = [others, chosen].concat();
        let shared = match weights {
            BucketWeights::Shares => None,
            BucketWeights::SharesAndSizes => {
                let joined = branches(&all).unwrap_or_default().into_iter().skip(1);
                Some(joined.map(|branch| margins.add(branch.shared, control)).collect::<Result<_, _>>()?)
            }
        };
        let columns: Vec<usize> = all.iter().map(|set| margins.add(*set, control)).collect::<Result<_, _>>()?;
        let join = NaturalJoin::new(margins, &columns, control)?;
        Ok(Self { attributes: union(&all), sensitive, join, shared })
    }

    /// Whether its join or weights use a margin.
    fn uses(&self, margin: usize) -> bool {
        self.join.margins().any(|of| of == margin) || self.shared.iter().flatten().any(|of| *of == margin)
    }
}

/// Columns of a cover.
#[derive(Clone, Copy)]
pub(super) struct CoverColumns<'c> {
    /// Columns without the sensitive attribute.
    pub(super) others: &'c [AttrSet],
    /// Columns with the sensitive attribute.
    pub(super) sensitive: &'c [AttrSet],
}

/// One row of each group.
fn representatives(groups: &TallyGroups) -> Vec<u32> {
    let mut rows = vec![0; groups.count as usize];
    (0..).zip(&groups.of_row).for_each(|(row, &group)| rows[group as usize] = row);
    rows
}

/// All attributes of some columns.
fn union(columns: &[AttrSet]) -> AttrSet {
    columns.iter().fold(AttrSet::EMPTY, |all, set| all.union(*set))
}

struct MixtureBucketState {
    rows: Vec<u32>,
    /// Counts by margin, made when they are needed.
    counts: Vec<OnceCell<MarginCount>>,
    /// Counts of the columns that are counted apart, during the trial of the split that makes the bucket.
    dense: Vec<DenseCounter>,
    /// Sizes of the join by choice, each computed when it is needed.
    sizes: Vec<OnceCell<Result<Vec<u128>, JoinTooDenseError>>>,
    /// Matching identities; empty when the bucket is closed.
    matching: Vec<MatchingIdentity>,
}

/// An identity that matches a bucket.
#[derive(Clone, Copy)]
struct MatchingIdentity {
    identity: u32,
    /// Whether a value is too frequent in the bucket.
    bad: bool,
}

/// A bucket, seen by one row.
struct SeenBucket<'b> {
    bucket: &'b MixtureBucketState,
    /// Number of rows that agree with the row, by column without the sensitive attribute.
    rows_with: SmallVec<[u32; 4]>,
}

/// A row, weighed in a bucket.
#[derive(Clone, Copy)]
struct WeighedRow<'b> {
    row: u32,
    bucket: &'b MixtureBucketState,
    /// Sizes of the join of the bucket; empty if they are not needed.
    sizes: &'b [u128],
    choice: usize,
    kind: WeightKind,
}

impl SeenBucket<'_> {
    /// The factor of the columns without the sensitive attribute.
    fn common<W: CountProduct>(&self) -> W {
        let mut common = W::one();
        self.rows_with.iter().for_each(|&rows| common.times(u128::from(rows)));
        common
    }
}

/// Weighting of a bucket.
#[derive(Clone, Copy)]
enum WeightKind {
    /// Share of the combinations of the bucket.
    OfJoin,
    /// Expected number of rows.
    OfMatchings,
}

impl<'a> OverlapMixtureChecker<'a> {
    /// A checker of a cover, without buckets.
    pub(super) fn new(
        mut margins: BucketMargins<'a>,
        columns: CoverColumns<'_>,
        bound: FrequencyBound,
        weights: BucketWeights,
        control: &'a Control,
    ) -> Result<Self, Cancelled> {
        let others: Vec<usize> =
            columns.others.iter().map(|set| margins.add(*set, control)).collect::<Result<_, _>>()?;
        let choices = super::choices(columns.sensitive)
            .map(|chosen| SensitiveColumnSet::new(&mut margins, columns.others, &chosen, weights, control))
            .collect::<Result<Vec<_>, _>>()?;
        let paired = union(columns.sensitive);
        let of_rows = margins.together(union(columns.others).union(paired), control)?;
        let identities = representatives(&of_rows);
        let sides_of_rows = margins.together(paired, control)?;
        let sides = identities.iter().map(|&row| sides_of_rows.of_row[row as usize]).collect();
        // margins that are looked up only
        let apart: Vec<usize> =
            others.iter().copied().filter(|margin| !choices.iter().any(|choice| choice.uses(*margin))).collect();
        let other = |&margin: &usize| QiColumn { margin, apart: apart.iter().position(|of| *of == margin) };
        let others: Vec<QiColumn> = others.iter().map(other).collect();
        let revealed = || HalfShares { of_sides: vec![None; sides_of_rows.count as usize], known: Vec::new() };
        Ok(Self {
            margins,
            others,
            apart,
            sides,
            spare: Vec::new(),
            revealed: [revealed(), revealed()],
            choices,
            bound,
            control,
            matched: vec![SmallVec::from_slice(&[0]); identities.len()],
            bad_in: vec![0; identities.len()],
            identities,
            of_rows: of_rows.of_row,
            buckets: Vec::new(),
        })
    }

    /// Begins with the whole table as one bucket. Returns its largest share if that violates the bound.
    pub(super) fn begin(&mut self) -> Result<Result<Option<WorstShare>, JoinTooDenseError>, Cancelled> {
        let rows: Vec<u32> = (0..self.margins.rows() as u32).collect();
        let mut whole = self.bucket(&rows);
        self.spare.push(std::mem::take(&mut whole.dense));
        if let Some(dense) = (0..self.choices.len()).find_map(|choice| self.sizes(&whole, choice).err()) {
            return Ok(Err(dense));
        }
        let mut worst = WorstShare::none();
        let mut broken = false;
        let mut seen = vec![false; self.revealed[0].of_sides.len()];
        for (number, (&row, &side)) in self.identities.iter().zip(&self.sides).enumerate() {
            if number % Control::STRIDE == 0 {
                self.control.check()?;
            }
            if !std::mem::replace(&mut seen[side as usize], true) {
                broken |= !self.keeps(row, &[&whole], Some(&mut worst));
            }
        }
        let matching = |identity: u32| MatchingIdentity { identity, bad: false };
        whole.matching = (0..self.identities.len() as u32).map(matching).collect();
        self.buckets.push(Some(whole));
        Ok(Ok(broken.then_some(worst)))
    }

    /// Counts rows as a bucket, in spare memory if there is any.
    fn bucket(&mut self, rows: &[u32]) -> MixtureBucketState {
        let fresh = || self.apart.iter().map(|&margin| self.margins.dense(margin)).collect();
        let mut dense: Vec<DenseCounter> = self.spare.pop().unwrap_or_else(fresh);
        for (dense, &margin) in dense.iter_mut().zip(&self.apart) {
            dense.count(&self.margins, margin, rows);
        }
        MixtureBucketState {
            rows: rows.to_vec(),
            counts: (0..self.margins.len()).map(|_| OnceCell::new()).collect(),
            dense,
            sizes: self.choices.iter().map(|_| OnceCell::new()).collect(),
            matching: Vec::new(),
        }
    }

    /// Counts of a bucket in a margin.
    fn counts<'b>(&self, bucket: &'b MixtureBucketState, margin: usize) -> &'b MarginCount {
        bucket.counts[margin].get_or_init(|| self.margins.count_one(margin, &bucket.rows))
    }

    /// Sizes of the join of a bucket in a choice. A half takes no longer than the whole.
    fn sizes<'b>(&self, bucket: &'b MixtureBucketState, choice: usize) -> Result<&'b [u128], JoinTooDenseError> {
        let sizes = bucket.sizes[choice].get_or_init(|| {
            let (counts, rows) = (|margin| self.counts(bucket, margin), bucket.rows.len() as u64);
            self.choices[choice].join.sizes(&self.margins, counts, rows)
        });
        sizes.as_deref().map_err(|dense| *dense)
    }

    /// Number of rows of a bucket that agree with a row on a column without the sensitive attribute.
    fn rows_with(&self, row: u32, bucket: &MixtureBucketState, other: QiColumn) -> u32 {
        let value = self.margins.value(other.margin, row);
        if let Some(dense) = other.apart.and_then(|at| bucket.dense.get(at)) {
            return dense.rows(value);
        }
        if bucket.rows.len() <= MAX_SCANNED_ROWS {
            return bucket.rows.iter().filter(|&&row| self.margins.value(other.margin, row) == value).count() as u32;
        }
        self.counts(bucket, other.margin).rows(value)
    }

    /// Whether some column with the sensitive attribute holds the values of a row.
    fn has_side(&self, row: u32, bucket: &MixtureBucketState) -> bool {
        let occurs = |&column: &usize| !self.counts(bucket, column).paired(self.margins.value(column, row)).is_empty();
        self.choices.iter().flat_map(|choice| &choice.sensitive).any(occurs)
    }

    /// Adds the weights of the sensitive values of a row in a bucket, of which `common` is a factor.
    fn weigh<W: CountProduct>(&self, weighed: WeighedRow<'_>, mut common: W, out: &mut WeightList<W>) {
        let WeighedRow { row, bucket, sizes, choice, kind } = weighed;
        let value = |column: usize| self.margins.value(column, row);
        let (of, counts) = (&self.choices[choice], |margin: usize| self.counts(bucket, margin));
        let shared = match kind {
            WeightKind::OfJoin => {
                sizes.iter().for_each(|size| common.over(*size));
                &[][..]
            }
            WeightKind::OfMatchings => of.shared.as_deref().unwrap_or_default(),
        };
        let Some((&first, more)) = of.sensitive.split_first() else { return };
        'values: for &(sensitive, rows) in counts(first).paired(value(first)) {
            let mut weight = common.clone();
            weight.times(u128::from(rows));
            for &column in more {
                match rows_of(counts(column).paired(value(column)), sensitive) {
                    0 => continue 'values,
                    rows => weight.times(u128::from(rows)),
                }
            }
            for &margin in shared {
                // a row that agrees on a column also agrees on its shared attributes, so that the divisor is positive
                weight.over(u128::from(self.margins.rows_with(margin, counts(margin), row, sensitive)));
            }
            out.push(ValueWeight { code: sensitive, weight });
        }
    }

    /// Whether a row keeps the bound over some of the buckets that it matches.
    fn keeps<'b>(&self, row: u32, buckets: &[&'b MixtureBucketState], mut worst: Option<&mut WorstShare>) -> bool {
        let mut floats: WeightList<ScaledFloat> = SmallVec::new();
        let mut kept = true;
        let seen = |&bucket: &&'b MixtureBucketState| {
            let rows_with = self.others.iter().map(|&other| self.rows_with(row, bucket, other));
            SeenBucket { bucket, rows_with: rows_with.collect() }
        };
        let mut seen: SmallVec<[SeenBucket<'b>; 4]> = buckets.iter().map(seen).collect();
        seen.retain(|seen| !seen.rows_with.contains(&0));
        for (choice, set) in self.choices.iter().enumerate() {
            let kinds = if set.shared.is_some() {
                &[WeightKind::OfJoin, WeightKind::OfMatchings][..]
            } else {
                &[WeightKind::OfJoin]
            };
            // the size of a single bucket is a factor of all values alike
            let size = |seen: &SeenBucket<'b>| match buckets.len() {
                1 => Ok(&[][..]),
                _ => self.sizes(seen.bucket, choice),
            };
            let Ok(sizes) = seen.iter().map(size).collect::<Result<SmallVec<[&[u128]; 4]>, _>>() else { return false };
            let sized = || seen.iter().zip(sizes.iter().copied());
            for &kind in kinds {
                floats.clear();
                for (seen, sizes) in sized() {
                    let weighed = WeighedRow { row, bucket: seen.bucket, sizes, choice, kind };
                    self.weigh(weighed, seen.common(), &mut floats);
                }
                if floats.is_empty() {
                    // these columns exclude the buckets
                    continue;
                }
                let exactly = || {
                    let mut exact: WeightList<UnreducedFraction> = SmallVec::new();
                    for (seen, sizes) in sized() {
                        let weighed = WeighedRow { row, bucket: seen.bucket, sizes, choice, kind };
                        self.weigh(weighed, seen.common(), &mut exact);
                    }
                    exact.into_vec()
                };
                kept &= weights::holds(&self.bound, &mut floats, exactly);
                match &mut worst {
                    Some(worst) => worst.see(&self.bound, set.attributes, &mut floats, exactly),
                    None if !kept => return false,
                    None => {}
                }
            }
        }
        kept
    }

    /// Shares of a side in a half, which all rows of the side have in common.
    fn shares(&self, side: u32, row: u32, half: &MixtureBucketState, revealed: &mut HalfShares) -> SideShares {
        revealed.side(side, || match self.has_side(row, half) {
            false => SideShares::Absent,
            true if self.keeps(row, &[half], None) => SideShares::Good,
            true => SideShares::Bad,
        })
    }

    /// Whether a half matches the columns of a row without the sensitive attribute.
    fn has_others(&self, row: u32, half: &MixtureBucketState) -> bool {
        self.others.iter().all(|&other| self.rows_with(row, half, other) > 0)
    }

    /// Whether a half is bad for one of its rows that matches nothing else: it then violates the bound for certain.
    fn refuses(&self, half: &MixtureBucketState, other: &MixtureBucketState, revealed: &mut HalfShares) -> bool {
        half.rows.iter().take(Control::STRIDE).any(|&row| {
            let identity = self.of_rows[row as usize] as usize;
            self.matched[identity].len() == 1
                && self.shares(self.sides[identity], row, half, revealed) == SideShares::Bad
                && !(self.has_others(row, other) && self.has_side(row, other))
        })
    }

    /// Plans the split of a bucket, with the identities that match each half. `None` if one would violate the bound.
    fn plan(
        &self,
        bucket: u32,
        split: &MixtureBucketState,
        halves: [&MixtureBucketState; 2],
        revealed: &mut [HalfShares; 2],
    ) -> Option<Vec<OverlapChange>> {
        revealed.iter_mut().for_each(HalfShares::forget);
        let [left, right] = halves;
        if self.refuses(left, right, &mut revealed[0]) || self.refuses(right, left, &mut revealed[1]) {
            return None;
        }
        let mut plan = Vec::with_capacity(split.matching.len());
        for (number, &MatchingIdentity { identity, bad }) in split.matching.iter().enumerate() {
            if number % Control::STRIDE == 0 && self.control.check().is_err() {
                return None;
            }
            let row = self.identities[identity as usize];
            let mut bad_in = self.bad_in[identity as usize] - u32::from(bad);
            let side = self.sides[identity as usize];
            let mut into = [None; 2];
            for ((into, half), revealed) in into.iter_mut().zip(halves).zip(revealed.iter_mut()) {
                if !self.has_others(row, half) {
                    continue;
                }
                let found = self.shares(side, row, half, revealed);
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
                of.matching.push(MatchingIdentity { identity, bad });
            }
        }
    }
}

/// Effect of a split on an identity.
struct OverlapChange {
    identity: u32,
    /// For each half that matches, whether a value is too frequent in it.
    into: [Option<bool>; 2],
    bad_in: u32,
}

impl HalfPredicate for OverlapMixtureChecker<'_> {
    fn allows(&mut self, bucket: u32, left: &[u32], right: &[u32]) -> bool {
        let (mut left, mut right) = (self.bucket(left), self.bucket(right));
        // the bucket under trial is taken out: its halves replace it in sums
        let Some(split) = self.buckets[bucket as usize].take() else { return false };
        let mut revealed = std::mem::take(&mut self.revealed);
        let plan = self.plan(bucket, &split, [&left, &right], &mut revealed);
        self.revealed = revealed;
        match plan {
            Some(plan) => {
                self.spare.extend([std::mem::take(&mut left.dense), std::mem::take(&mut right.dense)]);
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
        // the counts remain part of sums
        if let Some(bucket) = &mut self.buckets[bucket as usize] {
            bucket.matching = Vec::new();
        }
    }
}
