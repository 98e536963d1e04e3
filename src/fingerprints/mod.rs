//! Keyed hashes that identify the subjects of a dataset, and their comparison.

mod canonical_key;
mod collect;
mod compare;
mod sample;

pub(crate) use canonical_key::canonical_key;
pub(super) use collect::FingerprintCollector;
pub(super) use compare::{
    FingerprintComparison, FingerprintedDataset, RecordOverlap, comparable, describe_uncompared, overlaps,
    record_overlap,
};
