use super::vocabulary::{BucketMerging, ChangedValues};

/// The terms and figures of a night of a republished table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RepublishDetails {
    /// The number of the night, from 1.
    pub night: u32,
    /// What becomes of changed sensitive values.
    pub changes: ChangedValues,
    /// Which buckets are joined.
    pub merge: BucketMerging,
    /// Smaller cohorts of newcomers wait.
    pub min_newcomers: u64,
    /// The number of last nights on which the other members of a single survivor were absent.
    pub grace: u32,
    /// The number of nights after which absent persons are forgotten, and then never published again.
    pub forget_after: Option<u32>,
    /// What the parts show.
    pub figures: RepublishFigures,
}

/// What the parts of a night show.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RepublishFigures {
    /// The number of published persons.
    pub rows: u64,
    /// The number of rows of the sensitive part.
    pub slots: u64,
    /// The number of different signatures.
    pub signatures: u64,
    /// The number of buckets by signature size and counterfeits, rising.
    pub buckets: Vec<BucketFill>,
}

impl RepublishFigures {
    /// The number of counterfeits.
    #[must_use]
    pub const fn counterfeits(&self) -> u64 {
        self.slots.saturating_sub(self.rows)
    }
}

/// Buckets of one signature size with equally many counterfeits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct BucketFill {
    /// The number of slots of the signature.
    pub size: u64,
    /// The number of slots without a member.
    pub counterfeits: u64,
    /// The number of such buckets.
    pub buckets: u64,
}
