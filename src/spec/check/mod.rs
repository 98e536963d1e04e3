//! Checks of a document against the columns of its dataset: each column is accounted for, and none is published by oversight.

pub(super) mod attributes;
pub(super) mod normal_form;
mod republish;
pub(super) mod resolve;
pub(super) mod specification;
pub(super) mod unit;
pub(super) mod values;
