//! What the original says of a release: how far the readers' model is from it, how wrong their counts are, and how well a class can be
//! told. For the internal
//! report alone: every figure here is an equation on what the release keeps secret.

mod classification;
mod kl;
mod workload;

pub use classification::{Classified, Feature, classify};
pub use kl::{Divergence, divergence, divergence_of_boxes, divergence_of_columns};
pub use workload::{CountErrors, PredicateWidth, Workload, errors, errors_of_boxes, errors_of_decomposition};
