//! Incremental check of mixture diversity: exact, without a look at every row after every split.
//!
//! An adversary sees a mixture of the buckets that a row matches. A split of a bucket concerns only identities that match it, and
//! each half matches some of these. A mixture violates the bound only if one of its buckets does so by itself, so that most
//! identities need no arithmetic. A check costs the rows of the bucket times the columns, and the identities that match it.
//!
//! Nearly every identity matches one bucket. Its values are stored with that bucket, so that a check reads memory in order. Only
//! identities that matched several buckets share a record elsewhere.
//!
//! See `docs/spec/slicing.md#incremental-check`.

use std::borrow::Cow;
use std::num::NonZeroU32;

use smallvec::SmallVec;

use super::counts::{FrequencyBound, StoredCounts, TrialCounts};
use super::keys::{self, IdentityKeys};
use super::posterior::{BucketWeights, MatchedBucket, PosteriorJudge, weight};
use crate::control::{Cancelled, Control};
use crate::microdata::{Codes, Column};
use crate::publish::partition;

/// Predicate of splits after which every identity keeps the bound over all buckets that it matches.
pub(super) struct MixtureChecker<'a> {
    keys: Cow<'a, IdentityKeys>,
    codes: Cow<'a, Codes>,
    values: usize,
    judge: PosteriorJudge,
    /// Identities that matched several buckets at once, from index 1.
    shared: Vec<IdentityMatches>,
    /// Buckets by number; `None` after a split.
    buckets: Vec<Option<MixtureBucket>>,
    left: TrialCounts,
    right: TrialCounts,
    /// Whether the bucket under trial is bad, by companion value; all false between trials.
    bad_before: Vec<bool>,
    plan: Vec<MixtureChange>,
}

struct MixtureBucket {
    counts: StoredCounts,
    /// Identities that match the bucket; empty when it is closed.
    matching: IdentityIndex,
}

/// Distinct identities of the rows.
struct IdentityIndex {
    identities: Vec<Identity>,
    /// Values of the identities in every column but the sensitive one, one identity after the other.
    others: Vec<u32>,
}

#[derive(Clone, Copy)]
struct Identity {
    /// Companion value of the identity.
    companion: u32,
    /// Index of its record among shared identities.
    shared: Option<NonZeroU32>,
}

/// Buckets that an identity matches.
#[derive(Default)]
struct IdentityMatches {
    /// Buckets with the weight of the identity in each.
    buckets: SmallVec<[(u32, f64); 3]>,
    /// Number of these that are bad for it by themselves.
    bad_in: u32,
}

/// Effect of a split on an identity.
struct MixtureChange {
    in_left: bool,
    in_right: bool,
    bad_in: u32,
}

impl IdentityIndex {
    fn from_keys(keys: &IdentityKeys, control: &Control) -> Result<Self, Cancelled> {
        let groups = keys.together(control)?;
        let mut matching = Self::empty();
        let mut seen = vec![false; groups.count as usize];
        for (row, &number) in groups.of_row.iter().enumerate() {
            if !std::mem::replace(&mut seen[number as usize], true) {
                matching.identities.push(Identity { companion: keys.companions.of_row[row], shared: None });
                matching.others.extend(keys.others.iter().map(|other| other.of_row[row]));
            }
        }
        Ok(matching)
    }

    const fn empty() -> Self {
        Self { identities: Vec::new(), others: Vec::new() }
    }

    fn push(&mut self, identity: Identity, others: &[u32]) {
        self.identities.push(identity);
        self.others.extend_from_slice(others);
    }

    /// Every identity with its values in `width` columns.
    fn iter(&self, width: usize) -> impl Iterator<Item = (Identity, &[u32])> {
        self.identities.iter().enumerate().map(move |(at, &identity)| (identity, &self.others[at * width..][..width]))
    }
}

impl<'a> MixtureChecker<'a> {
    /// Begins with the whole table as one bucket; `None` if that violates the bound.
    pub(super) fn begin(
        keys: &'a IdentityKeys,
        sensitive: &'a Column,
        bound: FrequencyBound,
        weights: BucketWeights,
        control: &Control,
    ) -> Result<Option<Self>, Cancelled> {
        let all: Vec<u32> = (0..sensitive.codes.len() as u32).collect();
        let values = sensitive.domain.len();
        let mut left = TrialCounts::new(keys);
        left.count(&all, keys, &sensitive.codes, values, &bound);
        if left.has_bad() {
            return Ok(None);
        }
        let whole = MixtureBucket { counts: left.kept(), matching: IdentityIndex::from_keys(keys, control)? };
        Ok(Some(Self {
            keys: Cow::Borrowed(keys),
            codes: Cow::Borrowed(&sensitive.codes),
            values,
            judge: PosteriorJudge::new(bound, weights, values),
            shared: vec![IdentityMatches::default()],
            buckets: vec![Some(whole)],
            left,
            right: TrialCounts::new(keys),
            bad_before: vec![false; keys.companions.count as usize],
            plan: Vec::new(),
        }))
    }

    /// Plans the split of `bucket` into the counted halves. Returns false if an identity would violate the bound.
    fn is_allowed(&mut self, bucket: u32, split: &MixtureBucket) -> bool {
        self.plan.clear();
        for (identity, others) in split.matching.iter(self.keys.others.len()) {
            let companion = identity.companion;
            let in_left = self.left.matches(others, companion);
            let in_right = self.right.matches(others, companion);
            let shared = identity.shared.map(|at| &self.shared[at.get() as usize]);
            let elsewhere = shared.map_or(0, |shared| shared.bad_in - u32::from(self.bad_before[companion as usize]));
            let bad_in = elsewhere
                + u32::from(in_left && self.left.is_bad(companion))
                + u32::from(in_right && self.right.is_bad(companion));
            if bad_in > 0 {
                let other = shared.iter().flat_map(|shared| &shared.buckets).filter(|(other, _)| *other != bucket);
                let mut mixed: SmallVec<[MatchedBucket<'_>; 8]> = other
                    .filter_map(|&(other, weight)| Some((self.buckets[other as usize].as_ref()?, weight)))
                    .map(|(other, weight)| MatchedBucket::known(weight, &other.counts))
                    .collect();
                if in_left {
                    mixed.push(MatchedBucket::new(others, &self.left));
                }
                if in_right {
                    mixed.push(MatchedBucket::new(others, &self.right));
                }
                // an identity violates the bound in its only bucket if that is bad
                if mixed.len() == 1 || !self.judge.holds(others, companion, &mixed) {
                    return false;
                }
            }
            self.plan.push(MixtureChange { in_left, in_right, bad_in });
        }
        true
    }

    /// Replaces `bucket` by its halves.
    fn split(&mut self, bucket: u32, split: &MixtureBucket) {
        let (left, right) = (self.buckets.len() as u32, self.buckets.len() as u32 + 1);
        let (mut of_left, mut of_right) = (IdentityIndex::empty(), IdentityIndex::empty());
        let matching = split.matching.iter(self.keys.others.len());
        for ((mut identity, others), MixtureChange { in_left, in_right, bad_in }) in matching.zip(self.plan.drain(..)) {
            if in_left && in_right && identity.shared.is_none() {
                identity.shared = NonZeroU32::new(self.shared.len() as u32);
                self.shared.push(IdentityMatches::default());
            }
            if let Some(shared) = identity.shared {
                let shared = &mut self.shared[shared.get() as usize];
                shared.bad_in = bad_in;
                shared.buckets.retain(|(other, _)| *other != bucket);
                let halves = [(in_left, left, &self.left), (in_right, right, &self.right)];
                let matched = halves.into_iter().filter(|(matches, ..)| *matches);
                shared.buckets.extend(matched.map(|(_, half, trial)| (half, weight(others, trial))));
            }
            if in_left {
                of_left.push(identity, others);
            }
            if in_right {
                of_right.push(identity, others);
            }
        }
        self.buckets.push(Some(MixtureBucket { counts: self.left.kept(), matching: of_left }));
        self.buckets.push(Some(MixtureBucket { counts: self.right.kept(), matching: of_right }));
    }
}

impl partition::SplitPredicate for MixtureChecker<'_> {
    fn allows(&mut self, bucket: u32, left: &[u32], right: &[u32]) -> bool {
        // the bucket under trial is taken out: its halves replace it in mixtures
        let Some(split) = self.buckets[bucket as usize].take() else { return false };
        self.left.count(left, &self.keys, &self.codes, self.values, self.judge.bound());
        self.right.count(right, &self.keys, &self.codes, self.values, self.judge.bound());
        let bad_sides = || split.counts.sides.iter().filter(|side| side.bad).map(|side| side.companion() as usize);
        bad_sides().for_each(|companion| self.bad_before[companion] = true);
        let allowed = self.is_allowed(bucket, &split);
        bad_sides().for_each(|companion| self.bad_before[companion] = false);
        if allowed {
            self.split(bucket, &split);
        } else {
            self.buckets[bucket as usize] = Some(split);
        }
        allowed
    }

    fn closed(&mut self, bucket: u32) {
        // the counts remain part of mixtures
        if let Some(bucket) = &mut self.buckets[bucket as usize] {
            bucket.matching = IdentityIndex::empty();
        }
    }

    /// Renumbers values and shared identities with the rows, so that those of a bucket are close in memory.
    fn reorder(&mut self, order: &[u32]) {
        self.codes = Cow::Owned(self.codes.gather(order));
        let mut keys = self.keys.gather(order);
        let numbers: Vec<Vec<u32>> = keys.others.iter_mut().map(keys::renumber).collect();
        // records that only closed buckets share are never read again
        let mut shared = vec![IdentityMatches::default()];
        let mut moved: Vec<Option<NonZeroU32>> = vec![None; self.shared.len()];
        for MixtureBucket { counts, matching } in self.buckets.iter_mut().flatten() {
            counts.renumber(&numbers);
            for at in matching.identities.iter_mut().filter_map(|identity| identity.shared.as_mut()) {
                let place = &mut moved[at.get() as usize];
                if place.is_none() {
                    *place = NonZeroU32::new(shared.len() as u32);
                    shared.push(std::mem::take(&mut self.shared[at.get() as usize]));
                }
                *at = place.unwrap_or(*at);
            }
            for others in matching.others.chunks_mut(numbers.len().max(1)) {
                others.iter_mut().zip(&numbers).for_each(|(value, numbers)| *value = numbers[*value as usize]);
            }
        }
        self.shared = shared;
        self.left.clear();
        self.right.clear();
        self.keys = Cow::Owned(keys);
    }
}
