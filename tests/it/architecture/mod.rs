//! The code base itself: arrows, catalogues, documents, examples.

pub(crate) mod containers;
pub(crate) mod dependencies;
pub(crate) mod examples;
pub(crate) mod golden;
pub(crate) mod openapi;
pub(crate) mod problem_catalogue;
pub(crate) mod readme;
pub(crate) mod reference_pages;
