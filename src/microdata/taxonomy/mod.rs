//! Taxonomies: rooted trees over the values of an attribute.

mod bound;
mod grow;
pub(super) mod spelling;
mod tree;
mod written;

#[cfg(test)]
mod tests;

pub use bound::{BoundTaxonomy, TaxonomyNodeRef, UncoveredValues};
pub use grow::{TaxonomyBuilder, TaxonomyError};
pub use tree::{MAX_DEPTH, MAX_NODES, Taxonomy};
