use std::collections::BTreeSet;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::import::{ImportConflict, ImportSummary};
use super::records::{
    LedgerContent, PortableChain, PortableChainPiece, PortableCoverage, PortableDataset, PortableDisclosure,
    PortableHashes, PortableKeySystem, PortablePopulation, PortableRelease, PortableRule, PortableSeparation,
    PortableStatement, PortableVersion, SeriesName,
};
use crate::people::{CoverageId, KeyedHash};
use crate::ports::error::StoreError;
use crate::ports::people::AlikeMark;

/// Most persons that are read at once.
pub const CARRIED_HASHES: usize = 1 << 14;

/// The ledger of one moment.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LedgerCopy {
    /// Every release.
    pub releases: Vec<PortableRelease>,
    /// Every disclosure.
    pub disclosures: Vec<PortableDisclosure>,
    /// Every rule that stands.
    pub rules: Vec<PortableRule>,
    /// The versions of the contents.
    pub versions: Vec<PortableVersion>,
    /// Every upload.
    pub datasets: Vec<PortableDataset>,
    /// Every statement about attributes.
    pub statements: Vec<PortableStatement>,
    /// Every key system.
    pub systems: Vec<PortableKeySystem>,
    /// Every population.
    pub populations: Vec<PortablePopulation>,
    /// Every statement about people.
    pub separations: Vec<PortableSeparation>,
    /// Every live coverage.
    pub coverages: Vec<PortableCoverage>,
    /// Their persons and marks.
    pub hashes: Vec<PortableHashes>,
    /// Every chain that has begun.
    pub chains: Vec<PortableChain>,
    /// The pieces of their states.
    pub pieces: Vec<PortableChainPiece>,
}

/// The ledger of the store that something is carried to.
#[derive(Clone, Debug, Default)]
pub struct DestinationLedger {
    /// All that stands in it, but for the hashes and the pieces of states.
    pub copy: LedgerCopy,
    /// The releases that were carried here before; the others were made here.
    pub imported: BTreeSet<Uuid>,
}

impl LedgerCopy {
    /// The contents that it speaks of, in order.
    #[must_use]
    pub fn contents(&self) -> BTreeSet<LedgerContent> {
        let of_releases = self.releases.iter().map(PortableRelease::content);
        of_releases.chain(self.versions.iter().map(PortableVersion::content)).collect()
    }

    /// The series that it speaks of, each with its tenant, in order.
    #[must_use]
    pub fn series(&self) -> BTreeSet<SeriesName> {
        let of_contents =
            self.contents().into_iter().map(|LedgerContent { tenant, series, .. }| SeriesName { tenant, series });
        let of_datasets = self.datasets.iter().map(|dataset| SeriesName::new(&dataset.tenant, &dataset.series));
        let of_statements = self.statements.iter().map(|of| SeriesName::new(&of.tenant, &of.series));
        let of_populations = self.populations.iter().map(|of| SeriesName::new(&of.tenant, &of.name));
        of_contents.chain(of_datasets).chain(of_statements).chain(of_populations).collect()
    }
}

/// Reads the ledger whole, and enters one that was read elsewhere.
#[async_trait]
pub trait LedgerTransferStore: Send + Sync {
    /// All that stands in the ledger of a tenant, or of all tenants, at one moment, but for the hashes and the pieces of
    /// states: these are more than memory should hold, and are read one after the other.
    async fn copy_ledger(&self, tenant: Option<&str>) -> Result<LedgerCopy, StoreError>;

    /// Persons of a live coverage by a key system, from the lowest hash or behind one, at most [`CARRIED_HASHES`].
    async fn coverage_persons(
        &self,
        tenant: &str,
        coverage: CoverageId,
        system: &str,
        after: Option<KeyedHash>,
    ) -> Result<Vec<KeyedHash>, StoreError>;

    /// The marks of a live coverage.
    async fn coverage_marks(&self, tenant: &str, coverage: CoverageId) -> Result<Vec<AlikeMark>, StoreError>;

    /// Enters what stands in the ledger of another store, in one transaction: all of it, or nothing. What is there already is
    /// passed over, so that a second time changes nothing.
    async fn import_ledger(
        &self,
        copy: &LedgerCopy,
        at: DateTime<Utc>,
    ) -> Result<Result<ImportSummary, ImportConflict>, StoreError>;

    /// Whether a release was made elsewhere, and carried here as one of a tenant's.
    async fn is_imported(&self, tenant: &str, release: Uuid) -> Result<bool, StoreError>;
}
