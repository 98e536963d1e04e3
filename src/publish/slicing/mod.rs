//! Slicing: attributes in columns, rows in buckets, and the values of each column permuted within its bucket.
//!
//! Three steps lead to a sliced table. The attribute partition puts correlated attributes into one column. Column generalization,
//! which is optional, makes the values of a column frequent. The tuple partition halves buckets while the table stays l-diverse.
//! The partition refuses splits by sensitive values, so that the guarantees assume an adversary without minimality.
//!
//! With two columns, one of them the sensitive attribute alone, this is bucketization. With one attribute in every column, each
//! bucket holds the multisets of its values. A single bucket gives independent marginals.
//!
//! Columns may share attributes; `cover` checks their buckets.
//!
//! # Citations
//! - [Li et al. 2012, sections 2.1 and 3.2], sliced tables and their diversity.
//! - [Li et al. 2012, sections 4.1 to 4.3], the three steps.
//! - [Wong et al. 2007], minimality.
//! - `docs/spec/slicing.md`, `docs/spec/overlapping-slicing.md`: definitions and proofs.

mod columns;
mod counts;
mod cover;
mod designed;
mod keys;
mod medoids;
mod method;
mod mixture;
mod plan;
mod posterior;
mod slice;
mod sliced;
mod unmixed;

pub use columns::{ColumnChoice, ColumnPartitionError, ColumnsError, CorrelationBins, is_cover};
pub use designed::{SlicedDesign, WholeTableViolation};
pub use keys::IdentityKeys;
pub use method::plan;
pub use plan::{SlicingDiversity, SlicingPlan};
pub use sliced::{SlicedTable, SlicingError};

#[cfg(test)]
mod tests;
