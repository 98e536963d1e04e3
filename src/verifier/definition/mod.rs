//! Guarantees, measures, taxonomies and Guardian Normal Form, literally as they are defined.

mod assignment_network;
pub(super) mod dependencies;
pub(super) mod feasible_worlds;
pub(super) mod fraction;
pub(super) mod gnf;
pub(super) mod guarantee;
pub(super) mod join_tree;
pub(super) mod links;
pub(super) mod measure;
pub(super) mod observed_decomposition;
pub(super) mod share;
pub(super) mod significance;
pub(super) mod taxonomy;
pub(super) mod thresholds;
