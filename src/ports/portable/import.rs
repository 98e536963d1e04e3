use std::collections::{BTreeMap, BTreeSet, HashMap};

use uuid::Uuid;

use super::copy::{DestinationLedger, LedgerCopy};
use super::records::{
    LedgerContent, PortableChain, PortableChainPiece, PortableCoverage, PortableDataset, PortableDisclosure,
    PortableHashes, PortableKeySystem, PortablePopulation, PortableRelease, PortableRule, PortableSeparation,
    PortableStatement, PortableVersion, SeriesName,
};
use crate::ledger::{AttributeIdentities, IdentityError};
use crate::people::CoverageId;

/// The records that an import writes.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ImportPlan<'a> {
    /// Releases to record.
    pub releases: Vec<&'a PortableRelease>,
    /// Releases that were carried here before, as they are now.
    pub advanced: Vec<PortableRelease>,
    /// Disclosures to record.
    pub disclosures: Vec<ReleaseEntry<'a, PortableDisclosure>>,
    /// Rules to record.
    pub rules: Vec<ReleaseEntry<'a, PortableRule>>,
    /// The versions that ledgers get.
    pub versions: Vec<PortableVersion>,
    /// Uploads to record, as purged ones.
    pub datasets: Vec<&'a PortableDataset>,
    /// Statements to record.
    pub statements: Vec<&'a PortableStatement>,
    /// Key systems to record.
    pub systems: Vec<&'a PortableKeySystem>,
    /// Populations to record.
    pub populations: Vec<&'a PortablePopulation>,
    /// Statements about people to record.
    pub separations: Vec<&'a PortableSeparation>,
    /// Coverages to record.
    pub coverages: Vec<CarriedCoverage<'a>>,
    /// Chains to record.
    pub chains: Vec<CarriedChain<'a>>,
    /// Series that change.
    pub series: BTreeSet<SeriesName>,
}

/// A chain to record.
#[derive(Clone, PartialEq, Debug)]
pub struct CarriedChain<'a> {
    /// What was carried.
    pub chain: &'a PortableChain,
    /// Whether it is here, at an earlier version.
    pub is_known: bool,
    /// The pieces of its state.
    pub pieces: Vec<&'a PortableChainPiece>,
}

/// A coverage to record.
#[derive(Clone, PartialEq, Debug)]
pub struct CarriedCoverage<'a> {
    /// What was carried.
    pub coverage: &'a PortableCoverage,
    /// The live coverage of one of its datasets, which takes it up.
    pub target: Option<CoverageId>,
    /// Its persons and marks.
    pub hashes: Vec<&'a PortableHashes>,
}

/// An entry of the ledger with its release.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ReleaseEntry<'a, T> {
    /// The release.
    pub release: &'a PortableRelease,
    /// The entry.
    pub entry: &'a T,
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
    /// Uploads whose data subjects are known now.
    pub datasets: usize,
    /// Number of recorded statements.
    pub statements: usize,
    /// Number of recorded populations.
    pub populations: usize,
    /// Coverages that were recorded, or that took up others.
    pub coverages: usize,
    /// Chains that were recorded, or that went on.
    pub chains: usize,
}

impl ImportPlan<'_> {
    /// The numbers of records.
    #[must_use]
    pub fn counts(&self) -> ImportSummary {
        ImportSummary {
            releases: self.releases.len(),
            advanced: self.advanced.len(),
            disclosures: self.disclosures.len(),
            rules: self.rules.len(),
            datasets: self.datasets.len(),
            statements: self.statements.len() + self.separations.len(),
            populations: self.populations.len(),
            coverages: self.coverages.len(),
            chains: self.chains.len(),
        }
    }
}

/// Why nothing was imported: what is carried here speaks against what is here.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{what}")]
pub struct ImportConflict {
    what: String,
}

impl ImportConflict {
    fn new(what: String) -> Self {
        Self { what }
    }

    /// A record of one id that differs in the two stores.
    fn differs(what: &str, id: Uuid) -> Self {
        Self::new(format!("the {what} {id} is here with another content"))
    }

    fn stray(what: &str, release: Uuid) -> Self {
        Self::new(format!("a {what} speaks of the release {release}, which is not there"))
    }
}

impl LedgerCopy {
    /// The records that a store lacks.
    ///
    /// # Errors
    /// Where the two contradict each other.
    pub fn plan_for<'a>(&'a self, here: &'a DestinationLedger) -> Result<ImportPlan<'a>, ImportConflict> {
        let mut planner = ImportPlanner {
            copy: self,
            here,
            known: here.copy.releases.iter().map(|release| (release.id, release)).collect(),
            carried: self.releases.iter().map(|release| (release.id, release)).collect(),
            moved: BTreeSet::new(),
            plan: ImportPlan::default(),
        };
        planner.add_releases()?;
        planner.add_disclosures()?;
        planner.add_rules()?;
        planner.add_versions();
        planner.add_datasets()?;
        planner.add_statements()?;
        planner.add_populations()?;
        planner.add_separations()?;
        planner.add_coverages();
        planner.add_chains()?;
        Ok(planner.plan)
    }
}

/// An import while it is planned.
struct ImportPlanner<'a> {
    copy: &'a LedgerCopy,
    here: &'a DestinationLedger,
    /// The releases of the store.
    known: HashMap<Uuid, &'a PortableRelease>,
    /// The releases of the copy.
    carried: HashMap<Uuid, &'a PortableRelease>,
    /// Contents with new entries.
    moved: BTreeSet<LedgerContent>,
    plan: ImportPlan<'a>,
}

impl<'a> ImportPlanner<'a> {
    fn add_releases(&mut self) -> Result<(), ImportConflict> {
        for release in &self.copy.releases {
            match self.known.get(&release.id) {
                None => self.plan.releases.push(release),
                Some(known) => {
                    let imported = self.here.imported.contains(&release.id);
                    let Some(advanced) = check_known_release(known, release, imported)? else { continue };
                    self.plan.advanced.push(advanced);
                }
            }
            self.moved.insert(release.content());
        }
        Ok(())
    }

    fn add_disclosures(&mut self) -> Result<(), ImportConflict> {
        let known: HashMap<Uuid, &PortableDisclosure> =
            self.here.copy.disclosures.iter().map(|disclosure| (disclosure.id, disclosure)).collect();
        for disclosure in &self.copy.disclosures {
            let carried = self.carried.get(&disclosure.release).copied();
            let release = carried.ok_or_else(|| ImportConflict::stray("disclosure", disclosure.release))?;
            match known.get(&disclosure.id) {
                Some(known) if *known == disclosure => {}
                Some(_) => return Err(ImportConflict::differs("disclosure", disclosure.id)),
                None if self.lacks_entries_of(release)? => {
                    self.plan.disclosures.push(ReleaseEntry { release, entry: disclosure });
                    self.moved.insert(release.content());
                }
                None => {}
            }
        }
        Ok(())
    }

    fn add_rules(&mut self) -> Result<(), ImportConflict> {
        let known: HashMap<(Uuid, u32), &PortableRule> =
            self.here.copy.rules.iter().map(|rule| ((rule.release, rule.number), rule)).collect();
        for rule in &self.copy.rules {
            let carried = self.carried.get(&rule.release).copied();
            let release = carried.ok_or_else(|| ImportConflict::stray("rule", rule.release))?;
            match known.get(&(rule.release, rule.number)) {
                Some(known) if *known == rule => {}
                Some(_) => {
                    let PortableRule { number, release, .. } = rule;
                    let what = format!("rule {number} of the release {release} is here with another content");
                    return Err(ImportConflict::new(what));
                }
                None if self.lacks_entries_of(release)? => {
                    self.plan.rules.push(ReleaseEntry { release, entry: rule });
                    self.moved.insert(release.content());
                }
                None => {}
            }
        }
        Ok(())
    }

    /// Raises the version of each content with new entries, so that releases in progress are checked again.
    fn add_versions(&mut self) {
        let versions: BTreeMap<LedgerContent, i64> =
            self.here.copy.versions.iter().map(|entry| (entry.content(), entry.version)).collect();
        let mut targets: BTreeMap<LedgerContent, i64> =
            self.copy.versions.iter().map(|entry| (entry.content(), entry.version)).collect();
        for content in std::mem::take(&mut self.moved) {
            let next = versions.get(&content).copied().unwrap_or(0) + 1;
            let target = targets.entry(content).or_insert(next);
            *target = next.max(*target);
        }
        targets.retain(|content, target| versions.get(content).copied().unwrap_or(0) < *target);
        for (LedgerContent { tenant, series, hash }, version) in targets {
            self.plan.series.insert(SeriesName::new(&tenant, &series));
            self.plan.versions.push(PortableVersion { tenant, series, content_hash: hash, version });
        }
    }

    /// An upload never changes: both stores have it alike, or this one records it.
    fn add_datasets(&mut self) -> Result<(), ImportConflict> {
        let known: HashMap<Uuid, &PortableDataset> =
            self.here.copy.datasets.iter().map(|dataset| (dataset.id, dataset)).collect();
        for dataset in &self.copy.datasets {
            match known.get(&dataset.id) {
                Some(known) if *known == dataset => {}
                Some(_) => return Err(ImportConflict::differs("dataset", dataset.id)),
                None => {
                    self.plan.datasets.push(dataset);
                    self.plan.series.insert(SeriesName::new(&dataset.tenant, &dataset.series));
                }
            }
        }
        Ok(())
    }

    /// Statements of one store must not contradict those of the other.
    fn add_statements(&mut self) -> Result<(), ImportConflict> {
        let of_store = &self.here.copy.statements;
        let known: HashMap<Uuid, &PortableStatement> =
            of_store.iter().map(|statement| (statement.id, statement)).collect();
        for statement in &self.copy.statements {
            match known.get(&statement.id) {
                Some(known) if *known == statement => {}
                Some(_) => return Err(ImportConflict::differs("statement", statement.id)),
                None => {
                    self.plan.statements.push(statement);
                    self.plan.series.insert(SeriesName::new(&statement.tenant, &statement.series));
                }
            }
        }
        // of two at once the first one counts, so that each side may have some that contradict what came before
        let mut excused = statement_contradiction(of_store.iter())?;
        excused.extend(statement_contradiction(self.copy.statements.iter())?);
        let together = of_store.iter().chain(self.plan.statements.iter().copied());
        match statement_contradiction(together)?.difference(&excused).next() {
            Some((id, _)) => {
                Err(ImportConflict::new(format!("the statement {id} is contradicted by one of the other store")))
            }
            None => Ok(()),
        }
    }

    /// Key systems never change, and identify persons alike in both stores.
    fn add_populations(&mut self) -> Result<(), ImportConflict> {
        for carried in &self.copy.systems {
            let PortableKeySystem { tenant, name, system } = carried;
            match self.here.copy.systems.iter().find(|of| (&of.tenant, &of.name) == (tenant, name)) {
                None => self.plan.systems.push(carried),
                Some(known) if known.system == *system => {}
                Some(_) => return Err(ImportConflict::new(format!("the key system {name} is another one here"))),
            }
        }
        for carried in &self.copy.populations {
            let PortablePopulation { tenant, name, population } = carried;
            match self.here.copy.populations.iter().find(|of| (&of.tenant, &of.name) == (tenant, name)) {
                None => {
                    self.plan.populations.push(carried);
                    self.plan.series.insert(SeriesName::new(tenant, name));
                }
                Some(known) if known.population.person == population.person => {
                    let terms = &population.republication;
                    if terms.is_some() && *terms != known.population.republication {
                        let what = format!("the population {name} is republished by other terms here, or not at all");
                        return Err(ImportConflict::new(what));
                    }
                }
                Some(_) => return Err(ImportConflict::new(format!("the population {name} has other keys here"))),
            }
        }
        Ok(())
    }

    fn add_separations(&mut self) -> Result<(), ImportConflict> {
        let known: HashMap<Uuid, &PortableSeparation> =
            self.here.copy.separations.iter().map(|of| (of.statement.id, of)).collect();
        for carried in &self.copy.separations {
            match known.get(&carried.statement.id) {
                Some(known) if *known == carried => {}
                Some(_) => return Err(ImportConflict::differs("statement", carried.statement.id)),
                None => self.plan.separations.push(carried),
            }
        }
        Ok(())
    }

    /// Adds the coverages of which the store does not know everything.
    fn add_coverages(&mut self) {
        let mut hashes: HashMap<CoverageId, Vec<&PortableHashes>> = HashMap::new();
        for piece in &self.copy.hashes {
            hashes.entry(piece.coverage).or_default().push(piece);
        }
        for carried in &self.copy.coverages {
            let has_dataset = |known: &&PortableCoverage| {
                known.tenant == carried.tenant && !known.coverage.datasets.is_disjoint(&carried.coverage.datasets)
            };
            let target = self.here.copy.coverages.iter().find(has_dataset);
            let is_known = target.is_some_and(|target| {
                let mut joined = target.coverage.clone();
                joined.absorb(carried.coverage.clone(), &target.published);
                joined == target.coverage && carried.published.is_subset(&target.published)
            });
            if !is_known {
                let hashes = hashes.get(&carried.id).cloned().unwrap_or_default();
                self.plan.coverages.push(CarriedCoverage { coverage: carried, target: target.map(|of| of.id), hashes });
            }
        }
    }

    /// A chain goes on in one store alone: of two states that both went on from one, none is the right one.
    fn add_chains(&mut self) -> Result<(), ImportConflict> {
        for carried in &self.copy.chains {
            let PortableChain { tenant, population, id, .. } = carried;
            if let Some(release) = carried.pending {
                return Err(ImportConflict::new(format!(
                    "the release {release} of the population {population} is held there: approve or reject it, and \
                     export the ledger again"
                )));
            }
            let known = self.here.copy.chains.iter().find(|of| (&of.tenant, &of.population) == (tenant, population));
            if known.is_some_and(|known| known.id != *id) {
                let what = format!("the population {population} was republished in both stores");
                return Err(ImportConflict::new(what));
            }
            if known.is_none_or(|known| self.is_behind(known, carried)) {
                let pieces = self.copy.pieces.iter().filter(|piece| piece.chain == *id).collect();
                self.plan.chains.push(CarriedChain { chain: carried, is_known: known.is_some(), pieces });
                self.plan.series.insert(SeriesName::new(tenant, population));
            } else if known.is_some_and(|known| !self.is_ahead(known, carried)) {
                let what =
                    format!("the population {population} was republished in both stores since they had one state");
                return Err(ImportConflict::new(what));
            }
        }
        Ok(())
    }

    /// Whether the chain of this store is an earlier state of the carried one, whose ledger knows its release.
    fn is_behind(&self, known: &PortableChain, carried: &PortableChain) -> bool {
        let is_carried = |release: Uuid| self.carried.contains_key(&release);
        let goes_on = match (known.state, carried.state) {
            (Some(here), Some(there)) => here.version < there.version && is_carried(here.release),
            (None, Some(_)) => true,
            (_, None) => false,
        };
        known.ended_at.is_none() && known.pending.is_none() && (goes_on || carried.ended_at.is_some())
    }

    /// Whether the chain of this store has ended, is at the carried state, or went on from it.
    fn is_ahead(&self, known: &PortableChain, carried: &PortableChain) -> bool {
        let is_known = |release: Uuid| self.known.contains_key(&release);
        let went_on = match (known.state, carried.state) {
            (Some(here), Some(there)) => here == there || there.version < here.version && is_known(there.release),
            (_, None) => true,
            (None, Some(_)) => false,
        };
        known.ended_at.is_some() || went_on
    }

    /// Whether the store lacks entries of a release that the copy has.
    fn lacks_entries_of(&self, release: &PortableRelease) -> Result<bool, ImportConflict> {
        match self.known.get(&release.id) {
            None => Ok(true),
            // lifted here since it was exported there
            Some(known) if known.is_lifted() => Ok(false),
            Some(_) if self.here.imported.contains(&release.id) => Ok(true),
            Some(_) => {
                let what = format!("the release {} was made here, and disclosed something else", release.id);
                Err(ImportConflict::new(what))
            }
        }
    }
}

/// Statements that contradict earlier ones of their series, with the contradiction.
fn statement_contradiction<'a>(
    statements: impl Iterator<Item = &'a PortableStatement>,
) -> Result<BTreeSet<(Uuid, IdentityError)>, ImportConflict> {
    let in_order: BTreeMap<Uuid, &PortableStatement> = statements.map(|statement| (statement.id, statement)).collect();
    let mut series: HashMap<SeriesName, AttributeIdentities> = HashMap::new();
    let mut contradicted = BTreeSet::new();
    for (id, portable) in in_order {
        let statement =
            portable.read().ok_or_else(|| ImportConflict::new(format!("the statement {id} cannot be read")))?;
        let identities = series.entry(SeriesName::new(&portable.tenant, &portable.series)).or_default();
        contradicted.extend(statement.identify(identities).into_iter().map(|contradiction| (id, contradiction)));
    }
    Ok(contradicted)
}

/// Two accounts of one release; `Some` when the one that is here has to go on.
fn check_known_release(
    here: &PortableRelease,
    there: &PortableRelease,
    imported: bool,
) -> Result<Option<PortableRelease>, ImportConflict> {
    let id = here.id;
    if here.identity() != there.identity() {
        return Err(ImportConflict::differs("release", id));
    }
    let goes_on = here.status.may_become(there.status);
    if !goes_on && here.status != there.status && !there.status.may_become(here.status) {
        return Err(ImportConflict::new(format!(
            "the release {id} is {} here and {} there",
            here.status, there.status
        )));
    }
    if !imported {
        return if goes_on {
            let what = format!(
                "the release {id} was made here and is {}, but {} there: bring it to that status here first",
                here.status, there.status
            );
            Err(ImportConflict::new(what))
        } else {
            Ok(None)
        };
    }
    let status = if goes_on { there.status } else { here.status };
    let next = PortableRelease { status, was_read: here.was_read || there.was_read, ..here.clone() };
    Ok((next != *here).then_some(next))
}
