//! The reader's model of a publication: the one distribution over all attributes that says what the published tables say, and
//! nothing more. Of all distributions with the published marginals it has the largest entropy.
//!
//! Everything here is computed from published data alone, except where the docs name the original.

mod boxes;
mod cells;
mod columns;
mod corruption;
mod counted_tuples;
mod decomposed;
mod differential;
mod entropy;
mod exposures;
mod fitting;
mod groups;
mod inference;
mod inferred_rows;
mod information;
mod messages;
mod part_source;
mod parted;
mod row_parts;
mod shape;
mod surprise;
mod tree;
mod tuples;

#[cfg(test)]
mod tests;

pub use boxes::{BoxMeaning, Boxes};
pub use cells::{ModelError, PublishedRows};
pub use columns::ColumnCells;
pub use corruption::corrupted;
pub use decomposed::DecompositionModel;
pub use differential::NoisyRatio;
pub use entropy::model_entropy;
pub use exposures::{CombinationBudget, ExposedColumn, ProtectedColumns, TableExposures, UniqueRows};
pub use fitting::{Fitted, MAX_FITTED_CELLS};
pub use groups::RowGroups;
pub use inference::{AttributeColumn, InferredByOthers, RowKnowledge, row_knowledge};
pub use inferred_rows::InferredRows;
pub use information::{BucketedColumn, ValueShare, entropy};
pub use messages::{ErrorModel, Estimate, Estimator, Predicates};
pub use parted::{parted, shares};
pub use shape::{Factor, FactorSubtree, ModelShape, QueryPath};
pub use surprise::{cross_entropy, cross_entropy_of_columns};
pub use tree::{JoinTree, TableView, TreeEdge, maximal, mixed_separator};
