//! The code base itself: arrows, catalogues, documents, examples.

mod circles;
mod citations;
mod containers;
mod dependencies;
mod examples;
mod golden;
mod language;
mod openapi;
mod openapi_requests;
mod pages;
mod problem_catalogue;
mod reference_pages;
mod structure;
