//! The ledger as it is carried from one store to another: what was published, without the parts; whom uploads speak of, without the
//! rows; and statements about series.
//!
//! What is carried here stands in the way of new releases as what was published here does. It is never served: the parts are where they
//! were made. Nothing that is here is changed or removed by what is carried here, except that a carried release goes on to the
//! status that it has got meanwhile. An upload is carried as one that was purged: nothing can be published of it, and its people are
//! known.

pub mod file;
mod hex;
pub(super) mod records;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use records::{
    LedgerContent, PortableDataset, PortableDisclosure, PortablePiece, PortableRelease, PortableRule,
    PortableStatement, PortableVersion,
};
use uuid::Uuid;

use super::error::StoreError;
use crate::ledger::{AttributeIdentities, IdentityError};

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
    /// Whom the uploads speak of.
    pub pieces: Vec<PortablePiece>,
    /// Every statement.
    pub statements: Vec<PortableStatement>,
}

/// The ledger of the store that something is carried to.
#[derive(Clone, Debug, Default)]
pub struct DestinationLedger {
    /// All that stands in it, but for the pieces.
    pub copy: LedgerCopy,
    /// The releases that were carried here before; the others were made here.
    pub imported: BTreeSet<Uuid>,
}

/// What is to be written.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ImportPlan<'a> {
    /// Releases to record.
    pub releases: Vec<&'a PortableRelease>,
    /// Releases that were carried here before, as they are now.
    pub advanced: Vec<PortableRelease>,
    /// Disclosures to record, each with its release.
    pub disclosures: Vec<(&'a PortableRelease, &'a PortableDisclosure)>,
    /// Rules to record, each with its release.
    pub rules: Vec<(&'a PortableRelease, &'a PortableRule)>,
    /// The versions that ledgers get.
    pub versions: Vec<(LedgerContent, i64)>,
    /// Uploads to record, as purged ones.
    pub datasets: Vec<&'a PortableDataset>,
    /// Whom they speak of.
    pub pieces: Vec<&'a PortablePiece>,
    /// Statements to record.
    pub statements: Vec<&'a PortableStatement>,
    /// Series that change, each with its tenant.
    pub series: BTreeSet<(String, String)>,
}

/// What an import did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ImportSummary {
    /// Number of recorded releases.
    pub releases: usize,
    /// Releases that were known and have another status now.
    pub advanced: usize,
    /// Number of recorded disclosures.
    pub disclosures: usize,
    /// Number of recorded rules.
    pub rules: usize,
    /// Uploads whose people are known now.
    pub datasets: usize,
    /// Number of recorded statements.
    pub statements: usize,
}

impl ImportPlan<'_> {
    /// The tenants that get uploads.
    #[must_use]
    pub fn uploaders(&self) -> BTreeSet<&str> {
        self.datasets.iter().map(|dataset| dataset.tenant.as_str()).collect()
    }

    /// How much is written.
    #[must_use]
    pub fn counts(&self) -> ImportSummary {
        ImportSummary {
            releases: self.releases.len(),
            advanced: self.advanced.len(),
            disclosures: self.disclosures.len(),
            rules: self.rules.len(),
            datasets: self.datasets.len(),
            statements: self.statements.len(),
        }
    }
}

/// Why nothing was imported: what is carried here speaks against what is here.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{what}")]
pub struct ImportConflict {
    what: String,
}

fn conflict(what: String) -> ImportConflict {
    ImportConflict { what }
}

/// Reads the ledger whole, and enters one that was read elsewhere.
#[async_trait]
pub trait LedgerTransferStore: Send + Sync {
    /// All that stands in the ledger of a tenant, or of all tenants, at one moment, but for the pieces of people: these are more than
    /// memory should hold, never change, and are read one after the other (`people_pieces`).
    async fn copy_ledger(&self, tenant: Option<&str>) -> Result<LedgerCopy, StoreError>;

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

impl LedgerCopy {
    /// The contents that it speaks of, in order.
    #[must_use]
    pub fn contents(&self) -> BTreeSet<LedgerContent> {
        let of_releases = self.releases.iter().map(PortableRelease::content);
        of_releases.chain(self.versions.iter().map(PortableVersion::content)).collect()
    }

    /// The series that it speaks of, each with its tenant, in order.
    #[must_use]
    pub fn series(&self) -> BTreeSet<(String, String)> {
        let of_contents = self.contents().into_iter().map(|content| (content.tenant, content.series));
        let of_datasets = self.datasets.iter().map(|dataset| (dataset.tenant.clone(), dataset.series.clone()));
        let of_statements =
            self.statements.iter().map(|statement| (statement.tenant.clone(), statement.series.clone()));
        of_contents.chain(of_datasets).chain(of_statements).collect()
    }

    /// What is to be written so that a store has it too.
    ///
    /// # Errors
    /// Where the two contradict each other.
    pub fn plan_for<'a>(&'a self, here: &DestinationLedger) -> Result<ImportPlan<'a>, ImportConflict> {
        let mut plan = ImportPlan::default();
        let mut moved = BTreeSet::new();
        let known: HashMap<Uuid, &PortableRelease> =
            here.copy.releases.iter().map(|release| (release.id, release)).collect();
        let carried: HashMap<Uuid, &PortableRelease> =
            self.releases.iter().map(|release| (release.id, release)).collect();
        for release in &self.releases {
            let Some(known) = known.get(&release.id) else {
                plan.releases.push(release);
                moved.insert(release.content());
                continue;
            };
            if let Some(advanced) = check_known_release(known, release, here.imported.contains(&release.id))? {
                plan.advanced.push(advanced);
                moved.insert(release.content());
            }
        }

        let disclosed: HashMap<Uuid, &PortableDisclosure> =
            here.copy.disclosures.iter().map(|disclosure| (disclosure.id, disclosure)).collect();
        for disclosure in &self.disclosures {
            let release =
                *carried.get(&disclosure.release).ok_or_else(|| stray_conflict("disclosure", disclosure.release))?;
            match disclosed.get(&disclosure.id) {
                Some(known) if *known == disclosure => {}
                Some(_) => {
                    return Err(conflict(format!("the disclosure {} is here with another content", disclosure.id)));
                }
                None if self.enters(release, &known, here)? => {
                    plan.disclosures.push((release, disclosure));
                    moved.insert(release.content());
                }
                None => {}
            }
        }
        let promised: HashMap<(Uuid, u32), &PortableRule> =
            here.copy.rules.iter().map(|rule| ((rule.release, rule.number), rule)).collect();
        for rule in &self.rules {
            let release = *carried.get(&rule.release).ok_or_else(|| stray_conflict("rule", rule.release))?;
            match promised.get(&(rule.release, rule.number)) {
                Some(known) if *known == rule => {}
                Some(_) => {
                    let what =
                        format!("rule {} of the release {} is here with another content", rule.number, rule.release);
                    return Err(conflict(what));
                }
                None if self.enters(release, &known, here)? => {
                    plan.rules.push((release, rule));
                    moved.insert(release.content());
                }
                None => {}
            }
        }

        let versions: BTreeMap<LedgerContent, i64> =
            here.copy.versions.iter().map(|entry| (entry.content(), entry.version)).collect();
        let mut targets: BTreeMap<LedgerContent, i64> =
            self.versions.iter().map(|entry| (entry.content(), entry.version)).collect();
        for content in moved {
            // releases in progress are checked again
            let next = versions.get(&content).copied().unwrap_or(0) + 1;
            let target = targets.entry(content).or_insert(next);
            *target = next.max(*target);
        }
        targets.retain(|content, target| versions.get(content).copied().unwrap_or(0) < *target);
        plan.versions = targets.into_iter().collect();
        self.plan_people(here, &mut plan)?;
        self.plan_statements(here, &mut plan)?;
        plan.series.extend(plan.versions.iter().map(|(content, _)| (content.tenant.clone(), content.series.clone())));
        Ok(plan)
    }

    /// An upload never changes: both stores have it alike, or this one records it.
    fn plan_people<'a>(&'a self, here: &DestinationLedger, plan: &mut ImportPlan<'a>) -> Result<(), ImportConflict> {
        let known: HashMap<Uuid, &PortableDataset> =
            here.copy.datasets.iter().map(|dataset| (dataset.id, dataset)).collect();
        let mut recorded = BTreeSet::new();
        for dataset in &self.datasets {
            match known.get(&dataset.id) {
                Some(known) if *known == dataset => {}
                Some(_) => return Err(conflict(format!("the dataset {} is here with another content", dataset.id))),
                None => {
                    recorded.insert(dataset.id);
                    plan.datasets.push(dataset);
                    plan.series.insert((dataset.tenant.clone(), dataset.series.clone()));
                }
            }
        }
        plan.pieces.extend(self.pieces.iter().filter(|piece| recorded.contains(&piece.dataset)));
        Ok(())
    }

    /// Statements of one store must not contradict those of the other.
    fn plan_statements<'a>(
        &'a self,
        here: &DestinationLedger,
        plan: &mut ImportPlan<'a>,
    ) -> Result<(), ImportConflict> {
        let known: HashMap<Uuid, &PortableStatement> =
            here.copy.statements.iter().map(|statement| (statement.id, statement)).collect();
        for statement in &self.statements {
            match known.get(&statement.id) {
                Some(known) if *known == statement => {}
                Some(_) => {
                    return Err(conflict(format!("the statement {} is here with another content", statement.id)));
                }
                None => {
                    plan.statements.push(statement);
                    plan.series.insert((statement.tenant.clone(), statement.series.clone()));
                }
            }
        }
        // of two at once the first one counts, so that each side may have some that contradict what came before
        let excused: BTreeSet<(Uuid, IdentityError)> = statement_contradiction(here.copy.statements.iter())?
            .into_iter()
            .chain(statement_contradiction(self.statements.iter())?)
            .collect();
        let together = here.copy.statements.iter().chain(plan.statements.iter().copied());
        match statement_contradiction(together)?.difference(&excused).next() {
            Some((id, _)) => Err(conflict(format!("the statement {id} is contradicted by one of the other store"))),
            None => Ok(()),
        }
    }

    /// Whether an entry that is missing here is to be recorded.
    fn enters(
        &self,
        release: &PortableRelease,
        known: &HashMap<Uuid, &PortableRelease>,
        here: &DestinationLedger,
    ) -> Result<bool, ImportConflict> {
        match known.get(&release.id) {
            None => Ok(true),
            // lifted here since it was exported there
            Some(known) if known.is_lifted() => Ok(false),
            Some(_) if here.imported.contains(&release.id) => Ok(true),
            Some(_) => Err(conflict(format!("the release {} was made here, and disclosed something else", release.id))),
        }
    }
}

/// Statements that contradict earlier ones of their series, with the contradiction.
fn statement_contradiction<'a>(
    statements: impl Iterator<Item = &'a PortableStatement>,
) -> Result<BTreeSet<(Uuid, IdentityError)>, ImportConflict> {
    let in_order: BTreeMap<Uuid, &PortableStatement> = statements.map(|statement| (statement.id, statement)).collect();
    let mut series: HashMap<(&str, &str), AttributeIdentities> = HashMap::new();
    let mut contradicted = BTreeSet::new();
    for (id, portable) in in_order {
        let statement = portable.read().ok_or_else(|| conflict(format!("the statement {id} cannot be read")))?;
        let identities = series.entry((&portable.tenant, &portable.series)).or_default();
        contradicted.extend(statement.identify(identities).into_iter().map(|contradiction| (id, contradiction)));
    }
    Ok(contradicted)
}

fn stray_conflict(what: &str, release: Uuid) -> ImportConflict {
    conflict(format!("a {what} speaks of the release {release}, which is not there"))
}

/// Two accounts of one release; `Some` when the one that is here has to go on.
fn check_known_release(
    here: &PortableRelease,
    there: &PortableRelease,
    imported: bool,
) -> Result<Option<PortableRelease>, ImportConflict> {
    let id = here.id;
    if here.identity() != there.identity() {
        return Err(conflict(format!("the release {id} is here with another content")));
    }
    let goes_on = here.status.may_become(there.status);
    if !goes_on && here.status != there.status && !there.status.may_become(here.status) {
        return Err(conflict(format!("the release {id} is {} here and {} there", here.status, there.status)));
    }
    if !imported {
        return if goes_on {
            let what = format!(
                "the release {id} was made here and is {}, but {} there: bring it to that status here first",
                here.status, there.status
            );
            Err(conflict(what))
        } else {
            Ok(None)
        };
    }
    let status = if goes_on { there.status } else { here.status };
    let next = PortableRelease { status, was_read: here.was_read || there.was_read, ..here.clone() };
    Ok((next != *here).then_some(next))
}
