//! The incremental check of the paper's l-diverse slicing: exactly the definition, without asking every row after every
//! split.
//!
//! Of the buckets that a row matches an adversary sees a mixture. When a bucket is split, only identities that match it are
//! concerned, and each half matches some of these; a mixture is bad only if one of its buckets is bad alone, so that most
//! identities need no arithmetic. A check costs the rows of the bucket times the columns, and the identities that match it.

use std::borrow::Cow;

use smallvec::SmallVec;

use super::counts::{Bound, Counts, Kept, Trial};
use super::keys::{Identities, Keys};
use super::posterior::{Judge, Weights};
use crate::control::{Cancelled, Control};
use crate::microdata::{Codes, Column};
use crate::publish::partition;

/// Allows the splits after which every identity holds l-diversity over all buckets that it matches.
pub(super) struct Mixture<'a> {
    keys: Cow<'a, Keys>,
    identities: Identities,
    codes: Cow<'a, Codes>,
    values: usize,
    judge: Judge,
    /// Per identity, the buckets that it matches.
    matched: Vec<SmallVec<[u32; 4]>>,
    /// Per identity, how many of these are bad for it alone.
    bad_in: Vec<u32>,
    /// Per bucket made; none when it was split.
    buckets: Vec<Option<Bucket>>,
    left: Trial,
    right: Trial,
    /// Values beside the sensitive attribute for which the bucket under trial is bad; all false between trials.
    bad_before: Vec<bool>,
    plan: Vec<Change>,
}

struct Bucket {
    counts: Kept,
    /// The identities that match it; none when it is closed.
    matching: Vec<u32>,
}

/// What a split would mean for an identity.
struct Change {
    identity: u32,
    in_left: bool,
    in_right: bool,
    bad_in: u32,
}

impl<'a> Mixture<'a> {
    /// Begins with the whole table as one bucket; `None` when that is not diverse.
    pub(super) fn begin(
        keys: &'a Keys,
        sensitive: &'a Column,
        bound: Bound,
        weights: Weights,
        control: &Control,
    ) -> Result<Option<Self>, Cancelled> {
        let identities = Identities::of(keys, control)?;
        let all: Vec<u32> = (0..sensitive.codes.len() as u32).collect();
        let values = sensitive.domain.len();
        let mut left = Trial::new(keys);
        left.count(&all, keys, &sensitive.codes, values, &bound);
        if left.has_bad() {
            return Ok(None);
        }
        let whole = Bucket { counts: left.kept(), matching: (0..identities.len() as u32).collect() };
        Ok(Some(Self {
            keys: Cow::Borrowed(keys),
            codes: Cow::Borrowed(&sensitive.codes),
            values,
            judge: Judge::new(bound, weights, values),
            matched: vec![SmallVec::from_slice(&[0]); identities.len()],
            bad_in: vec![0; identities.len()],
            identities,
            buckets: vec![Some(whole)],
            left,
            right: Trial::new(keys),
            bad_before: vec![false; keys.beside.count as usize],
            plan: Vec::new(),
        }))
    }

    /// Plans the split of `bucket` into what `left` and `right` counted; false when an identity would not be diverse.
    fn is_allowed(&mut self, bucket: u32, split: &Bucket) -> bool {
        self.plan.clear();
        for &identity in &split.matching {
            let (others, beside) = self.identities.get(identity);
            let in_left = self.left.matches(others, beside);
            let in_right = self.right.matches(others, beside);
            let bad_in = self.bad_in[identity as usize] - u32::from(self.bad_before[beside as usize])
                + u32::from(in_left && self.left.is_bad(beside))
                + u32::from(in_right && self.right.is_bad(beside));
            if bad_in > 0 {
                let other = self.matched[identity as usize].iter().filter(|other| **other != bucket);
                let mut mixed: SmallVec<[&dyn Counts; 8]> = other
                    .filter_map(|&other| self.buckets[other as usize].as_ref())
                    .map(|other| &other.counts as &dyn Counts)
                    .collect();
                if in_left {
                    mixed.push(&self.left);
                }
                if in_right {
                    mixed.push(&self.right);
                }
                // what is bad in its only bucket is bad
                if mixed.len() == 1 || !self.judge.holds(others, beside, &mixed) {
                    return false;
                }
            }
            self.plan.push(Change { identity, in_left, in_right, bad_in });
        }
        true
    }

    /// Replaces `bucket` by both halves.
    fn split(&mut self, bucket: u32) {
        let (left, right) = (self.buckets.len() as u32, self.buckets.len() as u32 + 1);
        let (mut of_left, mut of_right) = (Vec::new(), Vec::new());
        for Change { identity, in_left, in_right, bad_in } in self.plan.drain(..) {
            self.bad_in[identity as usize] = bad_in;
            let matched = &mut self.matched[identity as usize];
            matched.retain(|other| *other != bucket);
            if in_left {
                matched.push(left);
                of_left.push(identity);
            }
            if in_right {
                matched.push(right);
                of_right.push(identity);
            }
        }
        self.buckets.push(Some(Bucket { counts: self.left.kept(), matching: of_left }));
        self.buckets.push(Some(Bucket { counts: self.right.kept(), matching: of_right }));
    }
}

impl partition::Judge for Mixture<'_> {
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
            self.split(bucket);
        } else {
            self.buckets[bucket as usize] = Some(split);
        }
        allowed
    }

    fn closed(&mut self, bucket: u32) {
        // its counts are still part of mixtures
        if let Some(bucket) = &mut self.buckets[bucket as usize] {
            bucket.matching = Vec::new();
        }
    }

    fn reorder(&mut self, order: &[u32]) {
        self.keys = Cow::Owned(self.keys.gather(order));
        self.codes = Cow::Owned(self.codes.gather(order));
    }
}
