use crate::ledger::{ActiveRule, Disclosure, EarlierDisclosures};
use crate::microdata::Table;
use crate::random::RandomStreams;
use crate::report::{InternalReport, LeftOutContributions, Manifest, Provenance};
use crate::spec::Specification;

/// The input of a release.
pub struct ReleaseInput<'a> {
    /// The specification, free of faults.
    pub specification: &'a Specification,
    /// The columns the specification uses, rows in the order of the upload.
    pub table: &'a Table,
    /// The randomness of the release.
    pub streams: &'a RandomStreams,
    /// The columns of earlier releases that the specification does not use, rows in the same order.
    pub extra: Option<&'a Table>,
    /// The disclosures of the same series.
    pub earlier: &'a EarlierDisclosures,
    /// Identity and time of the release.
    pub provenance: &'a Provenance,
    /// What was left out of the table, where a bounded number of rows of each person is kept.
    pub contributions: Option<LeftOutContributions>,
}

/// A verified release, ready to be made visible.
pub struct VerifiedRelease {
    /// Its manifest.
    pub manifest: Manifest,
    /// The disclosures that the ledger records.
    pub disclosures: Vec<Disclosure>,
    /// The rules that later releases must satisfy.
    pub rules: Vec<ActiveRule>,
    /// Its internal report, for the holder of the original alone.
    pub internal: InternalReport,
}
