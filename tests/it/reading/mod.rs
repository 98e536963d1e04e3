//! What is read of a release.

pub(crate) mod compression;
pub(crate) mod internal_report;
pub(crate) mod linked_view;
pub(crate) mod output_formats;
pub(crate) mod profiles;
pub(crate) mod queries;
pub(crate) mod ranges;
pub(crate) mod report_pages;
pub(crate) mod spreadsheets;
