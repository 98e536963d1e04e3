//! The methods of the member `method`.

pub(super) mod anatomy;
pub(super) mod bucketize;
pub(super) mod common;
pub(super) mod decompose;
pub(super) mod draft;
pub(super) mod generalize;
pub(super) mod join_requirements;
pub(super) mod method;
pub(super) mod sequential;
pub(super) mod sliced_columns;
pub(super) mod slicing;
pub(super) mod types;
pub(super) mod versatile;
