//! How it is made to hold: one module per method, all returning the shape of `publication`.

pub mod anatomy;
mod arrange;
pub mod assign;
pub mod bucketize;
pub mod decompose;
mod design;
mod dispatch;
mod error;
pub mod generalize;
mod input;
mod make;
pub mod partition;
mod proposed;
mod published;
pub mod sequential;
mod single;
pub mod slicing;
pub mod versatile;

pub use design::{Bucketized, CandidateScores, Decision, Design, DesignedRule, DesignedTable, Generalized};
pub use dispatch::{Method, plan, publish};
pub use error::{PlanError, PlanRefusal};
pub use input::{PlanInput, PlanRows};
pub use proposed::{check_proposed as judge_proposed, redundant};
pub use published::Published;
