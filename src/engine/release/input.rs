use uuid::Uuid;

use crate::ledger::{ActiveRule, Disclosure, EarlierDisclosures};
use crate::microdata::{Table, UploadedColumn};
use crate::random::RandomStreams;
use crate::report::{InternalReport, LeftOutContributions, Manifest, Provenance};
use crate::spec::Specification;

/// The input of a release.
#[derive(Clone)]
pub struct ReleaseInput<'a> {
    /// The specification, free of faults.
    pub specification: &'a Specification,
    /// The columns the specification uses, rows in the order of the upload.
    pub table: &'a Table,
    /// The randomness of the release.
    pub streams: &'a RandomStreams,
    /// The columns of earlier releases that the specification does not use, rows in the same order.
    pub extra: Option<&'a Table>,
    /// The columns of the upload that no release publishes, rows in the same order.
    pub dropped: &'a [UploadedColumn<'a>],
    /// The disclosures of the same series.
    pub earlier: &'a EarlierDisclosures,
    /// Identity and time of the release.
    pub provenance: &'a Provenance,
    /// What was left out of the table, where a bounded number of rows of each person is kept.
    pub contributions: Option<LeftOutContributions>,
    /// The population, where the specification republishes it; with a specification that does not, nothing is released.
    pub republish: Option<RepublishInput<'a>>,
}

/// A population that is published night after night.
///
/// Who calls is sure that no person of the table was published outside of the population, and that no other night goes on from the
/// same state.
#[derive(Clone, Copy)]
pub struct RepublishInput<'a> {
    /// The state that the last release left behind; `None` before the first, and of that alone.
    pub state: Option<&'a [u8]>,
    /// That release, where it has an id.
    pub previous: Option<Uuid>,
    /// The keyed hash of the person of each row of the table, in the order of its rows.
    pub persons: &'a [[u8; 16]],
    /// What the hashes are made of: a text that is the same on all nights, such as the columns of the key. Another one is refused.
    pub key: &'a str,
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
    /// The state that a night leaves behind, in place of the one that it went on from. It becomes current with the release, or not at
    /// all.
    pub state: Option<Vec<u8>>,
}
