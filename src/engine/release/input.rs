use crate::ledger::{ActiveRule, Disclosure, EarlierDisclosures};
use crate::microdata::Table;
use crate::random::RandomStreams;
use crate::report::{InternalReport, Manifest, Provenance};
use crate::spec::Specification;

/// Everything a release is made from.
pub struct ReleaseInput<'a> {
    /// What to publish and under which rules; free of faults.
    pub specification: &'a Specification,
    /// The columns the specification uses, rows in the order of the upload.
    pub table: &'a Table,
    /// The randomness of the release.
    pub streams: &'a RandomStreams,
    /// The columns that earlier releases have and the specification does not use, rows in the same order.
    pub further: Option<&'a Table>,
    /// What the ledger holds of the same people.
    pub earlier: &'a EarlierDisclosures,
    /// Name and time of the release.
    pub provenance: &'a Provenance,
}

/// A verified release, ready to be made visible.
pub struct VerifiedRelease {
    /// What is said of it.
    pub manifest: Manifest,
    /// What the ledger will keep of its tables.
    pub disclosures: Vec<Disclosure>,
    /// The rules that will stand.
    pub rules: Vec<ActiveRule>,
    /// What the original says of it, for its holder alone.
    pub internal: InternalReport,
}
