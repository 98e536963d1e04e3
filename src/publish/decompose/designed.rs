//! Decomposed tables of a design: the drawn buckets, and their details in a publication.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use super::attack::InferredBreach;
use super::codes::{PublishedSets, RowsByGroup};
use crate::microdata::{Attr, AttrSet};
use crate::problem::Fault;
use crate::publication::{BreachKind, DecompositionDetails, InferableBucket};
use crate::publish::assign::{BucketAssignment, Labels};

/// One of the two tables of a decomposition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DecomposedTable {
    /// Role of the table.
    pub role: DecompositionRole,
    /// Sensitive attribute that buckets are made by.
    pub primary: Attr,
    /// Smallest number of values that a bucket publishes, by sensitive attribute.
    pub l: BTreeMap<Attr, u64>,
    /// The buckets; `None` while rows are unknown, or with faults.
    pub drawn: Option<Arc<SecretBuckets>>,
    /// Why there are no buckets.
    pub faults: Vec<Fault>,
}

/// Role of a table of a decomposition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DecompositionRole {
    /// Buckets: quasi-identifiers, primary values, and a set of values of each other sensitive attribute.
    Buckets,
    /// Joint values of the sensitive attributes.
    Joint,
}

/// The buckets to publish. Secret: they reveal the bucket of each row, and `Debug` does not show them.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretBuckets {
    /// Rows of each bucket.
    pub groups: RowsByGroup,
    /// Published codes of each bucket and other attribute.
    pub sets: PublishedSets,
    /// Codes of the primary values without rows in the joint table.
    pub left_out: BTreeSet<u32>,
    /// Other attributes with noise: some set has a value that no row of its bucket has.
    pub noisy: AttrSet,
    /// Attributes of which no value can exceed the share 1/l of a bucket.
    pub bounded: AttrSet,
    /// Number of buckets in which no two rows can have the same value, by other attribute.
    pub repeat_free: BTreeMap<Attr, u64>,
    /// Inferences that readers of both tables can make.
    pub breaches: Vec<InferredBreach>,
}

impl fmt::Debug for SecretBuckets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretBuckets").field("buckets", &self.groups.len()).finish_non_exhaustive()
    }
}

impl DecomposedTable {
    /// Sensitive attributes without the primary one, in their order.
    pub fn others(&self) -> impl Iterator<Item = Attr> {
        self.l.keys().copied().filter(|attr| *attr != self.primary)
    }

    /// All sensitive attributes, the primary one included.
    #[must_use]
    pub fn sensitive(&self) -> AttrSet {
        self.l.keys().copied().collect()
    }

    /// Who may infer a value of another sensitive attribute, and in how many buckets; `None` where no adversary may.
    #[must_use]
    pub fn inferences_in_words(&self, drawn: &SecretBuckets, attr: Attr, names: &[String]) -> Option<String> {
        let (name, primary) = (&names[attr.index()], &names[self.primary.index()]);
        let at = self.others().position(|other| other == attr)?;
        let mut buckets: BTreeMap<BreachKind, BTreeSet<usize>> = BTreeMap::new();
        for breach in drawn.breaches.iter().filter(|breach| breach.attribute == at) {
            buckets.entry(breach.kind).or_default().insert(breach.group);
        }
        if buckets.is_empty() {
            return None;
        }
        let of = drawn.groups.len();
        let in_words = |(kind, buckets): (BreachKind, BTreeSet<usize>)| {
            let who = match kind {
                BreachKind::Chain => format!("an adversary who knows {primary} of a person"),
                BreachKind::Exclusion => format!("an adversary who excludes a value of {primary}"),
                BreachKind::Forced => "any reader of both tables".to_owned(),
            };
            format!("in {} of {of} buckets by {who}", buckets.len())
        };
        let inferences: Vec<String> = buckets.into_iter().map(in_words).collect();
        Some(format!("{name} may be inferred {}", inferences.join(", ")))
    }

    /// Details of the publication, under these labels of the buckets.
    #[must_use]
    pub fn method_details(&self, drawn: &SecretBuckets, labels: &[u32]) -> DecompositionDetails {
        let others: Vec<Attr> = self.others().collect();
        let inferable = |breach: &InferredBreach| InferableBucket {
            bucket: labels[breach.group],
            attribute: others[breach.attribute],
            kind: breach.kind,
        };
        let all: BTreeSet<InferableBucket> = drawn.breaches.iter().map(inferable).collect();
        let count = |kind| (kind, all.iter().filter(|bucket| bucket.kind == kind).count() as u64);
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
    /// Label of each bucket.
    #[must_use]
    pub fn labels(&self, labels: &Labels) -> Vec<u32> {
        let buckets = self.groups.len() as u32;
        labels.of_rows(BucketAssignment { bucket_of: (0..buckets).collect(), buckets })
    }

    /// Bucket of each row, given the number of rows.
    #[must_use]
    pub fn assignment(&self, rows: usize) -> BucketAssignment {
        let mut bucket_of = vec![BucketAssignment::NOWHERE; rows];
        for (group, bucket) in self.groups.iter().zip(0..) {
            group.iter().for_each(|&row| bucket_of[row as usize] = bucket);
        }
        BucketAssignment { bucket_of, buckets: self.groups.len() as u32 }
    }
}
