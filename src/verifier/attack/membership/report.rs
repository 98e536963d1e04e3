use crate::control::Cancelled;

/// Reason why the membership attack has no result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MembershipError {
    /// The caller cancelled the attack.
    Cancelled,
    /// The table has too many rows in too many buckets.
    TooMany {
        /// The largest permitted number of words.
        limit: u64,
        /// The number of words that are needed.
        found: u64,
    },
    /// The parts share attributes in a cycle, and the tuples are too many for an exact count.
    Circle,
}

impl From<Cancelled> for MembershipError {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

/// A number of tuples, counted or estimated.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TupleEstimate {
    /// The number of tuples.
    pub value: f64,
    /// The standard error of an estimate; 0 for a count.
    pub standard_error: f64,
    /// Whether the tuples were counted.
    pub exact: bool,
}

/// Tuples by the number of matching buckets: at most 10, at most 20, and more.
#[derive(Clone, PartialEq, Debug)]
pub struct MembershipReport {
    /// Tuples of all attributes that match a bucket but are no row of the original.
    pub fake_full: TupleEstimate,
    /// The same, over the attributes that are not protected.
    pub fake_qi: TupleEstimate,
    /// Rows of the original, by the number of buckets that match all their attributes.
    pub rows: [u64; 3],
    /// Distinct rows of the original.
    pub originals: [u64; 3],
    /// Matching tuples that no row of the original has.
    pub fakes: [TupleEstimate; 3],
}

pub(in crate::verifier) fn class(buckets: u32) -> usize {
    match buckets {
        0..=10 => 0,
        11..=20 => 1,
        _ => 2,
    }
}

/// The number of fake tuples, when `originals` of the tuples are rows.
pub(in crate::verifier) fn less(tuples: TupleEstimate, originals: u64) -> TupleEstimate {
    TupleEstimate { value: (tuples.value - originals as f64).max(0.0), ..tuples }
}
