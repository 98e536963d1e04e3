//! Composition, data subjects, the life of releases.

pub(crate) mod approval;
pub(crate) mod at_once;
pub(crate) mod audit_of_people;
pub(crate) mod composition;
pub(crate) mod data_subjects;
pub(crate) mod intersections;
pub(crate) mod lifecycle;
pub(crate) mod links;
pub(crate) mod many_releases;
pub(crate) mod nights;
pub(crate) mod population_pages;
pub(crate) mod populations;
mod remedies;
pub(crate) mod republished;
pub(crate) mod scenarios;
pub(crate) mod transfer;
pub(crate) mod undeclared;
pub(crate) mod unrelated;
pub(crate) mod uploads_of_people;
