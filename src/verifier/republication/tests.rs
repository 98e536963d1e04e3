//! The audits against vectors and planted faults.

mod vectors;
