//! Membership disclosure: how well bucketized tables hide the tuples of the original.
//!
//! [Li et al. 2012, section 5], docs/spec/slicing.md#membership
//!
//! The attack counts the tuples that the table might hold by the number of buckets that match them in every part. It
//! compares tuples of the original with fake tuples, which no row of the original has.

pub(in crate::verifier) mod join;
pub(in crate::verifier) mod members;
pub(in crate::verifier) mod part_tuples;
pub(in crate::verifier) mod report;
pub(in crate::verifier) mod sampling;
