//! Readers of written parts.

mod block;
pub(super) mod bucket_classes;
pub(super) mod cells;
pub(super) mod columns_by_bucket;
pub(super) mod csv;
pub(super) mod dictionary;
pub(super) mod interner;
pub(super) mod joint_column;
mod numbered_tuples;
pub(super) mod part;
pub(super) mod row_keys;
mod row_labels;
