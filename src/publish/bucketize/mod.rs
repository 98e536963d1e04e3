//! Bucketization with a threshold for each sensitive value.
//!
//! Frequent values may take more of a bucket than rare ones. Buckets of several sizes keep more of the table than equal ones. Every
//! decision depends on the frequencies of the sensitive values alone, which the published parts reveal, too.
//!
//! # Citations
//! - [Wang et al. 2012, section 4], thresholds, valid settings and MultiSizeBucketing.
//! - `docs/spec/bucketize.md`: definitions and proofs.

mod capped;
mod columns;
mod counterfeits;
mod filled;
mod flow;
mod method;
mod multi;
mod optimal;
mod place;
mod planned;
mod planner;
mod share;
mod sizes;

#[cfg(test)]
mod tests;

pub(super) use capped::capped;
pub(super) use counterfeits::{Counterfeit, with_counterfeits};
pub use filled::FilledBuckets;
pub use flow::fill;
pub use method::{CountedDomain, plan, size_by_counts};
pub use multi::{MoveOrder, MultiSizeSearch};
pub use place::place;
pub use planned::PlannedBuckets;
pub(super) use planned::{PlacedRows, counterfeits_label};
pub use planner::try_sizes;
pub use share::{ValueClass, ValueThreshold, kinds, shares, unused};
pub use sizes::{Pruning, SizePairs, TwoSizes, loss, one_size, two_are_valid, two_sizes};
