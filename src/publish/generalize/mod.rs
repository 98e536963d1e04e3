//! Generalization: rows in classes with equal quasi-identifier cells.
//!
//! Median splits make the classes, each half keeping k-anonymity and every guarantee by itself. A split that is refused by sensitive
//! values reveals something of them: the guarantees assume an adversary without minimality.
//!
//! A table is guarding if each class keeps the guarantee and every other column is generalized. Equal cells of several classes
//! merge these, which breaks nothing: their union keeps what each of them keeps.
//!
//! # Citations
//! - [LeFevre et al. 2006], median splits.
//! - [Sweeney 2002], [Samarati 2001]: k-anonymity.
//! - `docs/spec/generalize.md`: definitions and proofs.

mod cells;
mod classes;
mod counted;
mod counted_rows;
mod made;
mod method;
mod shared;

pub use cells::{ClassInterval, ValueTree, intervals, nodes, sets};
pub use classes::{GeneralizationInput, GeneralizeError};
pub use counted_rows::{CountedRows, SharedColumn};
pub use method::plan;
pub(in crate::publish) use shared::interval_cells;

#[cfg(test)]
mod tests;
