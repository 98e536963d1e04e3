//! Buckets by keyed rank: an assignment that is a function of the rows as a multiset, the plan and the key.
//!
//! Rows with one sensitive value are ordered by a keyed number, and the plan says where each range of ranks goes. So any engine that
//! counts and sorts makes the same buckets, in whatever order it reads rows and however often it repeats a task. The plan needs the
//! counts of the sensitive attribute alone.
//!
//! # Citations
//! - [Xiao and Tao 2006], anatomy.
//! - [Bellare, Canetti and Krawczyk 1996], the keyed number.
//! - `docs/spec/ranked.md`: definitions and proofs.

mod keys;
mod plan;
mod rows;
mod segments;

#[cfg(test)]
mod tests;

pub use keys::{LabelMap, UseKey, encoded_cell};
pub use plan::{RankedPlan, UnplannableError, place_filled, plan_buckets};
pub use rows::{RankedRows, RankingColumn, compare_rows};
pub use segments::{BucketContent, Segment, contents, deal};
