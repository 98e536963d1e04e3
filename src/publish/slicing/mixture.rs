//! The incremental check of the paper's l-diverse slicing: exactly the definition, without asking every row after every
//! split.
//!
//! Of the buckets that a row matches an adversary sees a mixture. When a bucket is split, only identities that match it are
//! concerned, and each half matches some of these; a mixture is bad only if one of its buckets is bad alone, so that most
//! identities need no arithmetic. A check costs the rows of the bucket times the columns, and the identities that match it.
//!
//! Nearly all identities match one bucket. They are written out with their values where its identities stand, so that a check reads
//! memory from front to back; only what several buckets need to know of an identity is elsewhere.

use std::borrow::Cow;
use std::num::NonZeroU32;

use smallvec::SmallVec;

use super::counts::{FrequencyBound, StoredCounts, TrialCounts};
use super::keys::{self, IdentityKeys};
use super::posterior::{BucketWeights, MatchedBucket, PosteriorJudge, weight};
use crate::control::{Cancelled, Control};
use crate::microdata::{Codes, Column};
use crate::publish::partition;

/// Allows the splits after which every identity holds l-diversity over all buckets that it matches.
pub(super) struct MixtureChecker<'a> {
    keys: Cow<'a, IdentityKeys>,
    codes: Cow<'a, Codes>,
    values: usize,
    judge: PosteriorJudge,
    /// The identities that have matched several buckets at once, behind one that is none.
    shared: Vec<IdentityMatches>,
    /// Per bucket made; none when it was split.
    buckets: Vec<Option<MixtureBucket>>,
    left: TrialCounts,
    right: TrialCounts,
    /// Values beside the sensitive attribute for which the bucket under trial is bad; all false between trials.
    bad_before: Vec<bool>,
    plan: Vec<MixtureChange>,
}

struct MixtureBucket {
    counts: StoredCounts,
    /// The identities that match it; none when it is closed.
    matching: IdentityIndex,
}

/// Distinct rows of the table as an adversary knows them.
struct IdentityIndex {
    identities: Vec<Identity>,
    /// Their values in every column but the sensitive one, one identity behind the other.
    others: Vec<u32>,
}

#[derive(Clone, Copy)]
struct Identity {
    /// What it has beside the sensitive attribute.
    beside: u32,
    /// Its place among those that have matched several buckets at once.
    shared: Option<NonZeroU32>,
}

/// What an identity matches.
#[derive(Default)]
struct IdentityMatches {
    /// Buckets, with the weight that each has for it.
    buckets: SmallVec<[(u32, f64); 3]>,
    /// How many of these are bad for it alone.
    bad_in: u32,
}

/// What a split would mean for an identity.
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
                matching.identities.push(Identity { beside: keys.beside.of_row[row], shared: None });
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
    /// Begins with the whole table as one bucket; `None` when that is not diverse.
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
            bad_before: vec![false; keys.beside.count as usize],
            plan: Vec::new(),
        }))
    }

    /// Plans the split of `bucket` into what `left` and `right` counted; false when an identity would not be diverse.
    fn is_allowed(&mut self, bucket: u32, split: &MixtureBucket) -> bool {
        self.plan.clear();
        for (identity, others) in split.matching.iter(self.keys.others.len()) {
            let beside = identity.beside;
            let in_left = self.left.matches(others, beside);
            let in_right = self.right.matches(others, beside);
            let shared = identity.shared.map(|at| &self.shared[at.get() as usize]);
            let elsewhere = shared.map_or(0, |shared| shared.bad_in - u32::from(self.bad_before[beside as usize]));
            let bad_in = elsewhere
                + u32::from(in_left && self.left.is_bad(beside))
                + u32::from(in_right && self.right.is_bad(beside));
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
                // what is bad in its only bucket is bad
                if mixed.len() == 1 || !self.judge.holds(others, beside, &mixed) {
                    return false;
                }
            }
            self.plan.push(MixtureChange { in_left, in_right, bad_in });
        }
        true
    }

    /// Replaces `bucket` by both halves.
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
        // taken out while it is tried: the mixtures of its identities are without it
        let Some(split) = self.buckets[bucket as usize].take() else { return false };
        self.left.count(left, &self.keys, &self.codes, self.values, self.judge.bound());
        self.right.count(right, &self.keys, &self.codes, self.values, self.judge.bound());
        let bad_sides = || split.counts.sides.iter().filter(|side| side.bad).map(|side| side.beside() as usize);
        bad_sides().for_each(|beside| self.bad_before[beside] = true);
        let allowed = self.is_allowed(bucket, &split);
        bad_sides().for_each(|beside| self.bad_before[beside] = false);
        if allowed {
            self.split(bucket, &split);
        } else {
            self.buckets[bucket as usize] = Some(split);
        }
        allowed
    }

    fn closed(&mut self, bucket: u32) {
        // its counts are still part of mixtures
        if let Some(bucket) = &mut self.buckets[bucket as usize] {
            bucket.matching = IdentityIndex::empty();
        }
    }

    /// Values and shared identities are renumbered with the rows, so that those of a bucket are near each other.
    fn reorder(&mut self, order: &[u32]) {
        self.codes = Cow::Owned(self.codes.gather(order));
        let mut keys = self.keys.gather(order);
        let numbers: Vec<Vec<u32>> = keys.others.iter_mut().map(keys::renumber).collect();
        // whatever only closed buckets share is not asked for again
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
