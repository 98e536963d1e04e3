//! The code base itself: arrows, catalogues, documents, examples.

mod containers;
mod dependencies;
mod examples;
mod golden;
mod language;
mod openapi;
mod problem_catalogue;
mod pages;
mod reference_pages;
