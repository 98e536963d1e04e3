//! Who releases speak of: populations, statements about them, and coverages.
//!
//! A job that is ready to commit announces a coverage, adds its persons and marks, draws a ticket, looks at what stands
//! with a lower one, and ends its announcement. The order of commits is the order of tickets.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::api_keys::AuditEntry;
use super::disclosures::StatementRecord;
use super::error::StoreError;
use super::queue::LeaseToken;
use crate::people::{
    Coverage, CoverageId, Evidence, KeyedHash, Place, Population, PopulationError, PopulationRegistry,
    SeparationStatement, Signature, SignatureSample,
};

/// Most hashes of one call. With fewer, most of the time goes into calls; with more, others wait longer to write.
pub const HASHES_PER_CALL: usize = 8192;

/// Most marks that are added or looked up at once: all of a table. A transaction for each thousand would write the same pages
/// again.
pub const MARKS_PER_CALL: usize = 16_384;

/// A mark by which tables are alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AlikeMark {
    /// The hash.
    pub hash: KeyedHash,
    /// What it is of.
    pub kind: AlikeKind,
    /// The surprise of a block in 1/256 bit, or the rows of a signature.
    pub weight: u64,
}

impl AlikeMark {
    /// Whether it says which coverages have it: that of a block, and of signatures those that find tables.
    #[must_use]
    pub const fn is_indexed(&self) -> bool {
        let Self { hash, kind, weight } = *self;
        match kind {
            AlikeKind::Block => true,
            AlikeKind::Signature(_) => Signature { hash, rows: weight }.finds_tables(),
        }
    }
}

/// What a mark is of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum AlikeKind {
    /// A block of two columns.
    Block,
    /// A signature of this sample.
    Signature(u16),
}

impl AlikeKind {
    /// How the store counts it.
    pub(crate) fn number(self) -> i64 {
        match self {
            Self::Block => 0,
            Self::Signature(sample) => i64::from(sample) + 1,
        }
    }

    /// Undoes [`AlikeKind::number`].
    pub(crate) fn from_number(number: i64) -> Result<Self, StoreError> {
        match number {
            0 => Ok(Self::Block),
            number => (number - 1).try_into().map(Self::Signature).map_err(StoreError::corrupt),
        }
    }
}

/// A coverage that is announced.
#[derive(Clone, PartialEq, Debug)]
pub struct NewCoverage {
    /// The tenant.
    pub tenant: String,
    /// The job that announces it.
    pub job: Uuid,
    /// What is known of its rows.
    pub coverage: Coverage,
    /// The attributes that its release publishes.
    pub published: BTreeSet<String>,
    /// For each sample of signatures, whether it is cut.
    pub cuts: Vec<bool>,
}

/// Whether a coverage stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CoverageState {
    /// Announced by a job that has not ended.
    Pending,
    /// Of a release that readers may have seen.
    Live,
    /// Of a job that ended otherwise.
    Void,
}

impl CoverageState {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Live => "live",
            Self::Void => "void",
        }
    }

    pub(crate) fn from_name(name: &str) -> Result<Self, StoreError> {
        let named = [Self::Pending, Self::Live, Self::Void].into_iter().find(|state| state.name() == name);
        named.ok_or_else(|| StoreError::corrupt(format!("no state of a coverage: {name:?}")))
    }
}

/// A coverage that others are judged by.
#[derive(Clone, PartialEq, Debug)]
pub struct CoverageRecord {
    /// Its number.
    pub id: CoverageId,
    /// The job that announced it.
    pub job: Uuid,
    /// Whether it stands.
    pub state: CoverageState,
    /// Its ticket, if it has drawn one.
    pub ticket: Option<i64>,
    /// What is known of its rows.
    pub coverage: Coverage,
    /// The attributes that its releases publish.
    pub published: BTreeSet<String>,
}

/// A sample of the signatures of a coverage.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SampleId {
    /// The coverage.
    pub coverage: CoverageId,
    /// The number of the sample among those of the coverage.
    pub sample: u16,
}

/// The live coverages that a job looks at by themselves.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CoverageSelection {
    /// Those that share people or cells with it.
    pub ids: BTreeSet<CoverageId>,
    /// The mark of its table: coverages of an equal one.
    pub table: Option<KeyedHash>,
    /// The datasets of which something is declared: coverages of their rows.
    pub datasets: BTreeSet<Uuid>,
    /// Samples of signatures that are read, too; few.
    pub sampled: BTreeSet<SampleId>,
}

/// A moment in the history of a tenant's coverages. Persons and marks that were read at one still hold at a later one of
/// equal changes, but for those of coverages that were announced with later tickets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LedgerMoment {
    /// The last ticket that was drawn.
    pub ticket: i64,
    /// How often persons or marks that stood went over to another coverage, came from another store, or ceased to stand.
    pub changes: i64,
}

/// Coverages as they stood at a moment.
#[derive(Clone, PartialEq, Debug)]
pub struct CoveragesAt {
    /// The moment, read after all else: if it is that of an earlier reading, nothing has changed since.
    pub moment: LedgerMoment,
    /// The coverages, by ticket and number.
    pub records: Vec<CoverageRecord>,
    /// The samples of signatures that were asked for, in order.
    pub samples: BTreeMap<CoverageId, Vec<SignatureSample>>,
}

/// A mark that a coverage has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CommonMark {
    /// The coverage.
    pub coverage: CoverageId,
    /// The hash.
    pub hash: KeyedHash,
    /// What it is of there.
    pub kind: AlikeKind,
}

/// How an announcement ends.
#[derive(Clone, PartialEq, Debug)]
pub enum AnnouncementEnd {
    /// Its release is the first of these rows.
    Live,
    /// Its release joins a live coverage of the same rows, which then is known as described. The persons of the key
    /// systems that the other did not know go over to it.
    Joined {
        /// The live coverage.
        target: CoverageId,
        /// What is known of it from now on.
        coverage: Box<Coverage>,
        /// The attributes that its releases publish from now on.
        published: BTreeSet<String>,
        /// Key systems whose persons go over.
        learned: Vec<String>,
    },
    /// There is no release.
    Void,
}

/// A population with its name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedPopulation {
    /// The name.
    pub name: String,
    /// The population.
    pub population: Population,
}

/// A statement about the attributes of a series.
#[derive(Clone, PartialEq, Debug)]
pub struct SeriesStatement {
    /// The series.
    pub series: String,
    /// The statement.
    pub statement: StatementRecord,
}

/// A statement about places, as it is kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SeparationRecord {
    /// The statement.
    pub statement: SeparationStatement,
    /// When it was recorded.
    pub recorded_at: DateTime<Utc>,
}

/// What is entered at once: all of it or nothing, in the place of a ticket of its own.
#[derive(Clone, PartialEq, Debug)]
pub struct PeopleEntry {
    /// The tenant.
    pub tenant: String,
    /// A population that is defined, or defined again.
    pub population: Option<NamedPopulation>,
    /// Statements about places. What was declared before of two places is not entered again.
    pub separations: Vec<SeparationStatement>,
    /// A statement about attributes.
    pub attributes: Option<SeriesStatement>,
    /// The time.
    pub at: DateTime<Utc>,
    /// The line of the audit log, which is written if anything changes.
    pub audit_entry: AuditEntry,
}

/// Whether something was entered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PeopleEntryOutcome {
    /// All of it.
    Recorded {
        /// Whether there was no population of the name before.
        is_new: bool,
    },
    /// Nothing: the population cannot be as it is asked for.
    Refused(PopulationError),
    /// Nothing: live coverages show that these statements are wrong.
    Contradicted(Vec<Uuid>),
    /// Nothing yet: this announced coverage might show a statement to be wrong, and has to end first.
    Waits(CoverageId),
}

/// An announced coverage, and how its announcement ends.
#[derive(Clone, PartialEq, Debug)]
pub struct AnnouncedCoverage {
    /// The coverage.
    pub id: CoverageId,
    /// Its end.
    pub end: AnnouncementEnd,
}

/// Keeps who releases speak of, for ever.
#[async_trait]
pub trait PeopleStore: Send + Sync {
    /// The populations and key systems of a tenant.
    async fn people_registry(&self, tenant: &str) -> Result<PopulationRegistry, StoreError>;

    /// Enters a population and statements, all or nothing.
    async fn enter_people(&self, entry: &PeopleEntry) -> Result<PeopleEntryOutcome, StoreError>;

    /// The statements of a tenant about places, in the order of their ids.
    async fn separations(&self, tenant: &str) -> Result<Vec<SeparationStatement>, StoreError> {
        let records = self.separation_records(tenant).await?;
        Ok(records.into_iter().map(|record| record.statement).collect())
    }

    /// The same with their times.
    async fn separation_records(&self, tenant: &str) -> Result<Vec<SeparationRecord>, StoreError>;

    /// Keeps a piece of the persons of a dataset, or of an upload that has begun. A piece that is there is replaced.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when the evidence of the dataset is there already, or it has no key (any more).
    async fn put_person_piece(
        &self,
        dataset: Uuid,
        system: &str,
        piece: u32,
        persons: &[KeyedHash],
    ) -> Result<(), StoreError>;

    /// Keeps the evidence of a dataset, or of an upload that has begun, after its persons. Both never change again.
    ///
    /// # Errors
    /// As of [`PeopleStore::put_person_piece`].
    async fn put_evidence(&self, dataset: Uuid, evidence: &Evidence) -> Result<(), StoreError>;

    /// The datasets of all tenants that have rows and no evidence: those of earlier versions, oldest first.
    async fn datasets_without_evidence(&self) -> Result<Vec<(String, Uuid)>, StoreError>;

    /// The evidence of a tenant's dataset; none of one that is not visible, or is purged.
    async fn evidence(&self, tenant: &str, dataset: Uuid) -> Result<Option<Evidence>, StoreError>;

    /// A piece of the persons of a tenant's dataset, sorted; none behind the last one.
    async fn person_piece(
        &self,
        tenant: &str,
        dataset: Uuid,
        system: &str,
        piece: u32,
    ) -> Result<Option<Vec<KeyedHash>>, StoreError>;

    /// Some datasets of which something is published, and whose rows no coverage has: these releases are from before
    /// coverages existed, or from another store.
    async fn uncovered_datasets(&self, tenant: &str) -> Result<Vec<Uuid>, StoreError>;

    /// Removes a dataset from these.
    async fn mark_covered(&self, tenant: &str, dataset: Uuid) -> Result<(), StoreError>;

    /// Announces a coverage, pending and without a ticket.
    async fn announce_coverage(&self, new: &NewCoverage) -> Result<CoverageId, StoreError>;

    /// Adds persons to a coverage without a ticket, at most [`HASHES_PER_CALL`]; what is there already stays. Those of the
    /// coverage that it continues are left out.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when it has a ticket or an end; [`StoreError::NotFound`] when the tenant has no such
    /// key system.
    async fn cover_persons(
        &self,
        tenant: &str,
        coverage: CoverageId,
        system: &str,
        persons: &[KeyedHash],
    ) -> Result<(), StoreError>;

    /// Adds marks to a coverage without a ticket, at most [`MARKS_PER_CALL`]; what is there already stays.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when it has a ticket or an end.
    async fn add_alike_marks(&self, tenant: &str, coverage: CoverageId, marks: &[AlikeMark]) -> Result<(), StoreError>;

    /// Draws the next ticket of the tenant for an announced coverage. A second draw gives the first ticket.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when the announcement has ended.
    async fn draw_ticket(&self, tenant: &str, coverage: CoverageId) -> Result<i64, StoreError>;

    /// The live coverages, and the pending ones with a lower ticket, by ticket and number.
    async fn standing_coverages(&self, tenant: &str, ticket: i64) -> Result<Vec<CoverageRecord>, StoreError>;

    /// The populations of which something is published, and of each published table without one a dataset.
    async fn published_places(&self, tenant: &str) -> Result<BTreeSet<Place>, StoreError>;

    /// The present moment of a tenant's coverages.
    async fn ledger_moment(&self, tenant: &str) -> Result<LedgerMoment, StoreError>;

    /// The pending coverages with a lower ticket, and of the live ones those that are selected, those without a group, and the
    /// first of each [`Coverage::group`].
    async fn select_coverages(
        &self,
        tenant: &str,
        ticket: i64,
        selection: &CoverageSelection,
    ) -> Result<CoveragesAt, StoreError>;

    /// How many of these persons stand in which pending or live coverage but `except`, at most [`HASHES_PER_CALL`] persons.
    async fn common_persons(
        &self,
        tenant: &str,
        system: &str,
        persons: &[KeyedHash],
        except: Option<CoverageId>,
    ) -> Result<BTreeMap<CoverageId, u64>, StoreError>;

    /// Which of these persons stand in a live coverage, at most [`HASHES_PER_CALL`] persons.
    async fn published_persons(
        &self,
        tenant: &str,
        system: &str,
        persons: &[KeyedHash],
    ) -> Result<BTreeSet<KeyedHash>, StoreError>;

    /// Which of these persons stand in a live coverage that a job announced, at most [`HASHES_PER_CALL`] persons.
    async fn persons_of_job(
        &self,
        tenant: &str,
        job: Uuid,
        system: &str,
        persons: &[KeyedHash],
    ) -> Result<BTreeSet<KeyedHash>, StoreError>;

    /// Which of these marks stand in which pending or live coverage, at most [`MARKS_PER_CALL`] hashes, by coverage, kind and hash.
    /// Only those that are indexed ([`AlikeMark::is_indexed`]) are found. Of a hash that more than five live ones have,
    /// these are left out: it says nothing of any. `except` is not named.
    async fn common_marks(
        &self,
        tenant: &str,
        hashes: &[KeyedHash],
        except: Option<CoverageId>,
    ) -> Result<Vec<CommonMark>, StoreError>;

    /// For each sample of signatures of a coverage, whether it is cut.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when the tenant has no such coverage.
    async fn sample_cuts(&self, tenant: &str, coverage: CoverageId) -> Result<Vec<bool>, StoreError>;

    /// Ends an announcement. One that is to be void is void also a second time.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when it has ended otherwise, has no ticket to become live, its target is not live, or it
    /// continues another coverage than its target.
    async fn end_announcement(
        &self,
        tenant: &str,
        coverage: CoverageId,
        end: &AnnouncementEnd,
    ) -> Result<(), StoreError>;

    /// Makes all announcements of a job void, and says how many: those of earlier attempts, for the attempt that holds the
    /// lease; without a lease only those of a job that does not run. Else an attempt that has lost its lease, or who waits
    /// for one, could make that of a later attempt void.
    async fn void_announcements(&self, tenant: &str, job: Uuid, held: Option<LeaseToken>) -> Result<u64, StoreError>;

    /// Makes announcements of jobs that do not run void, removes the persons and marks of void coverages, and says how many
    /// rows went. Others write meanwhile.
    async fn sweep_void_coverages(&self) -> Result<u64, StoreError>;
}
