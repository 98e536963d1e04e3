//! Decomposed tables in a design: what was drawn of the rows, and what a publication says of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use super::{InferredBreach, PublishedSets, RowsByGroup};
use crate::microdata::{Attr, AttrSet};
use crate::problem::Fault;
use crate::publication::{BreachKind, DecompositionDetails, InferableBucket};
use crate::publish::assign::{BucketAssignment, Labels};

/// One of the two tables that belong together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DecomposedTable {
    /// Which one.
    pub role: DecompositionRole,
    /// The sensitive attribute that buckets are made by.
    pub primary: Attr,
    /// Per sensitive attribute, how many values a bucket publishes at least.
    pub l: BTreeMap<Attr, u64>,
    /// The buckets; nothing while rows are not known, or with faults.
    pub drawn: Option<Arc<SecretBuckets>>,
    /// Why there are no buckets.
    pub faults: Vec<Fault>,
}

/// What a table of a decomposition is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DecompositionRole {
    /// Buckets: quasi-identifiers, the primary values, and a set of values of each other sensitive attribute.
    Buckets,
    /// The joint values of the sensitive attributes.
    Joint,
}

/// Buckets as they come out. Secret: it says which row is where, and so is not shown by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretBuckets {
    /// The rows of each bucket.
    pub groups: RowsByGroup,
    /// Per bucket and further attribute, the codes that are published.
    pub sets: PublishedSets,
    /// The primary values, as codes, of which the joint table has no rows.
    pub left_out: BTreeSet<u32>,
    /// The further attributes of which some set has a value that no row of its bucket has.
    pub noisy: AttrSet,
    /// The attributes of which no value can have more of a bucket than its share.
    pub bounded: AttrSet,
    /// Per further attribute, the buckets in which no two rows can have the same value.
    pub repeat_free: BTreeMap<Attr, u64>,
    /// What readers can conclude.
    pub breaches: Vec<InferredBreach>,
}

impl fmt::Debug for SecretBuckets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Drawn").field("buckets", &self.groups.len()).finish_non_exhaustive()
    }
}

impl DecomposedTable {
    /// The sensitive attributes but the primary one, in their order: those that sets are published of.
    pub fn others(&self) -> impl Iterator<Item = Attr> {
        self.l.keys().copied().filter(|attr| *attr != self.primary)
    }

    /// The sensitive attributes.
    #[must_use]
    pub fn sensitive(&self) -> AttrSet {
        self.l.keys().copied().collect()
    }

    /// What a publication says, buckets having these labels.
    #[must_use]
    pub fn method_details(&self, drawn: &SecretBuckets, labels: &[u32]) -> DecompositionDetails {
        let others: Vec<Attr> = self.others().collect();
        let told = |breach: &InferredBreach| InferableBucket {
            bucket: labels[breach.group],
            attribute: others[breach.attribute],
            kind: breach.kind,
        };
        let all: BTreeSet<InferableBucket> = drawn.breaches.iter().map(told).collect();
        let count = |kind| (kind, all.iter().filter(|told| told.kind == kind).count() as u64);
        let buckets = drawn.groups.len() as u64;
        DecompositionDetails {
            primary: self.primary,
            l: self.l.clone(),
            noisy: drawn.noisy,
            bounded: drawn.bounded,
            repeat_free: drawn.repeat_free.iter().map(|(attr, free)| (*attr, (*free, buckets))).collect(),
            breach_counts: BreachKind::ALL.into_iter().map(count).collect(),
            first: all.into_iter().take(DecompositionDetails::LISTED).collect(),
        }
    }
}

impl SecretBuckets {
    /// The label of each bucket.
    #[must_use]
    pub fn labels(&self, labels: &Labels) -> Vec<u32> {
        let buckets = self.groups.len() as u32;
        labels.of_rows(BucketAssignment { bucket_of: (0..buckets).collect(), buckets })
    }

    /// The bucket of each row.
    #[must_use]
    pub fn assignment(&self, rows: usize) -> BucketAssignment {
        let mut bucket_of = vec![BucketAssignment::NOWHERE; rows];
        for (group, bucket) in self.groups.iter().zip(0..) {
            group.iter().for_each(|&row| bucket_of[row as usize] = bucket);
        }
        BucketAssignment { bucket_of, buckets: self.groups.len() as u32 }
    }
}
