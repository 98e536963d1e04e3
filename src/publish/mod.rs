//! Publishing methods: one module per method, all returning the shape of `publication`.
//!
//! A plan turns a specification into a [`Design`]; [`execute`] makes the tables of the design.

pub mod anatomy;
mod arrange;
pub mod assign;
pub mod bucketize;
pub mod decompose;
mod design;
mod designed_rule;
mod designed_table;
mod dispatch;
mod error;
mod execute;
pub mod generalize;
mod input;
mod linked;
mod made_table;
mod make;
pub mod partition;
mod persistent;
mod proposed;
mod published;
pub mod ranked;
mod secret_rows;
pub mod sequential;
mod single;
pub mod slicing;
mod stratify;
pub mod versatile;

pub use design::{CandidateScores, Decision, Design, DesignRemark, Enforcement};
pub use designed_rule::{DesignedRule, RuleRejection};
pub use designed_table::{BucketPlan, Bucketized, DesignedTable, Generalized, TableDesign};
pub use dispatch::plan;
pub use error::{PlanError, PlanRefusal, PublishError};
pub use execute::execute;
pub use input::{AttributeBuckets, BucketSource, PlanInput, PlanRows};
pub use persistent::PersistentBuckets;
pub use proposed::{check_proposed, redundant};
pub use published::Published;
pub use secret_rows::SecretRows;
