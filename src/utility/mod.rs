//! Utility of a release: divergence of the model, errors of counts, and accuracy of a class prediction.
//!
//! For the internal report alone: every figure is an equation on the secret original.

mod classification;
mod kl;
mod practitioner;
mod workload;

pub use classification::{Classified, Feature, classify};
pub use kl::{DivergenceReport, divergence, divergence_of_boxes, divergence_of_columns};
pub use practitioner::{PractitionerKnowledge, practitioner};
pub use workload::{CountErrors, PredicateWidth, Workload, WorkloadRun};
