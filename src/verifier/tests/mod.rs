//! Tests of the verifier: checks on examples, planted faults, and definitions.

pub(super) mod bucketized;
pub(super) mod closed;
pub(super) mod decomposed;
pub(super) mod dependencies;
pub(super) mod external_overlapping;
pub(super) mod fixture;
pub(super) mod generalized;
pub(super) mod hospital;
pub(super) mod linked_methods;
pub(super) mod membership;
pub(super) mod multiple_sensitive;
pub(super) mod mutation;
pub(super) mod overlapping;
pub(super) mod sequential;
pub(super) mod sliced;
