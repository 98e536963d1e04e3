//! The audits against vectors and planted faults.

mod planted;
mod vectors;
