//! Row to bucket: the assignments that methods share, and the one place where bucket labels are made.

mod labels;
mod largest_l;

pub use labels::Labels;
pub use largest_l::{Assignment, largest_l};
