//! The manifest and the public report of a release.

mod manifest;
mod public;
mod rows;

pub use manifest::{
    Achieved, AuditSummary, BucketSizes, CheckResult, Dependencies, HeldByText, Manifest, ManifestPart, ManifestRule,
    ManifestSeal, ManifestTable, MethodName, Notice, Provenance, Ratio, Utility, WrittenPart, manifest, publication_of,
};
pub use public::{PublicReport, public_report};
pub use rows::PartRows;
