//! The composition check of a job: the releases that it is judged with, and what the ledger holds of these.
//!
//! - **People.** Live coverages and statements say whether other releases speak of the people of the job. What is
//!   unknown is refused; so is an overlap.
//! - **Releases.** The releases of coverages with the same people and values stand together with the new one.
//! - **Attributes.** A column that says the same of everyone as a published one is that attribute, whatever it is
//!   called. Where the ledger names an attribute that the dataset has not, a column that was never seen together with it
//!   may be that attribute: the job is refused until a statement declares it an alias, or new.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use uuid::Uuid;

use super::chain::night_end;
use super::context::JobContext;
use super::earlier_coverages::cover_earlier_datasets;
use super::env::InputEnv;
use super::error::InputError;
use super::people::{JobPeople, JobPersons, announce, count_published};
use super::people_conflict::PeopleConflict;
use super::people_reading::{PeopleLedger, StandingCoverages, standing};
use crate::ledger::{ActiveRule, Disclosure, EarlierDisclosures};
use crate::people::{
    Admission, Basis, Coverage, CoverageId, Evidence, JudgedRows, LedgerView, LiveCoverage, Look, PeopleRefusal,
    PersonCounts, SeparationStatement, UnknownAttributesError, attribute_names, columns_of_names, look,
};
use crate::ports::{
    ActiveRuleRecord, AnnouncementEnd, DatasetRecord, DisclosureRecord, NewCoverage, Statement, StoreError,
};
use crate::problem::{Kind, Problem};
use crate::publication::CompositionVerdict;
use crate::spec::PeopleChoice;

/// The ledger as far as it concerns the people of a dataset.
pub(crate) struct CompositionContext {
    /// Disclosures about them.
    pub(crate) earlier: EarlierDisclosures,
    /// The versions of the series that it was read from.
    pub(crate) versions: BTreeMap<String, i64>,
    /// How the job stands to other releases; without proof, if there is a conflict.
    pub(crate) people: JudgedPeople,
    /// Why no job is accepted, whatever it publishes.
    pub(crate) clash: Option<CompositionConflict>,
    /// A dataset of each other content of the same people.
    pub(crate) others: BTreeMap<[u8; 32], Uuid>,
}

/// What is known of the people of a job.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct JudgedPeople {
    /// What it rests on.
    pub(crate) admission: Admission,
    /// The statements among that.
    pub(crate) statements: Vec<SeparationStatement>,
    /// The coverage that the release joins, or of the chain that it continues, if there is one.
    joins: Option<LiveCoverage>,
    /// Columns by their names in the ledger.
    names: BTreeMap<String, String>,
}

impl JudgedPeople {
    /// The coverage whose persons a night does not announce again: they stand in it already, and the night ends in it.
    pub(crate) fn continued(&self, job: &JobContext, is_held: bool) -> Option<CoverageId> {
        self.joins.as_ref().filter(|_| job.chain().is_some() && !is_held).map(|chain| chain.id)
    }

    /// How the announcement of a job ends whose release publishes these columns.
    pub(crate) fn end(
        &self,
        job: &JobContext,
        evidence: &Evidence,
        columns: &BTreeSet<String>,
        is_held: bool,
    ) -> AnnouncementEnd {
        if job.chain().is_some() {
            return night_end(self.joins.as_ref(), &job.coverage(evidence), columns, is_held);
        }
        let Some(LiveCoverage { id, coverage, published, .. }) = &self.joins else { return AnnouncementEnd::Live };
        let (mut coverage, mut published) = (coverage.clone(), published.clone());
        let DatasetRecord { id: dataset, population, .. } = &job.dataset;
        let learned = coverage.adopt(*dataset, population.as_deref(), evidence, &published);
        // also of a dataset whose names it does not take over: its releases are of the same rows
        coverage.absorb(Coverage { systems: BTreeMap::new(), ..Coverage::new(*dataset, None, evidence) }, &published);
        published.extend(columns.iter().map(|column| self.names.get(column).unwrap_or(column).clone()));
        AnnouncementEnd::Joined { target: *id, coverage: Box::new(coverage), published, learned }
    }
}

/// Why nothing can be published of a dataset.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum CompositionConflict {
    /// Of its people.
    People(Box<PeopleConflict>),
    /// It is unknown which attributes these columns are.
    Undecidable(String, Vec<String>),
}

impl CompositionConflict {
    /// What a plan calls it.
    pub(crate) fn verdict(&self) -> CompositionVerdict {
        match self {
            Self::People(conflict) if conflict.is_overlap() => CompositionVerdict::Overlapping,
            Self::People(_) | Self::Undecidable(..) => CompositionVerdict::Undecidable,
        }
    }

    /// Whether a job is refused although it asks to be published without proof.
    pub(crate) fn binds(&self, is_unproven: bool) -> bool {
        !is_unproven || self.has_no_rows()
    }

    /// Whether the job has no rows that could be published.
    pub(crate) fn has_no_rows(&self) -> bool {
        matches!(self, Self::People(conflict) if conflict.has_no_rows())
    }

    /// The persons that the dataset shares with earlier ones.
    pub(crate) fn overlap(&self) -> Option<PersonCounts> {
        match self {
            Self::People(conflict) => conflict.overlap(),
            Self::Undecidable(..) => None,
        }
    }

    /// What a job is refused with.
    pub(crate) fn problem(&self) -> Problem {
        match self {
            Self::People(conflict) => conflict.problem(),
            Self::Undecidable(detail, attributes) => {
                let problem = Problem::new(Kind::CompositionUndecidable, detail.clone());
                if attributes.is_empty() { problem } else { problem.with("attributes", attributes.clone()) }
            }
        }
    }
}

/// How often the adoption of a dataset is announced again.
const MAX_ADOPTIONS: u32 = 5;

/// At which moment a job is judged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum JudgedAt {
    /// Now, by what is live.
    Now,
    /// At its ticket.
    Ticket(i64),
}

/// What a job finds that looks at the ledger.
pub(crate) enum LedgerLook {
    /// It has to look again, when this job has ended.
    Wait(Uuid),
    /// The ledger has decided.
    Decided(Box<CompositionContext>),
}

impl JobContext {
    /// The evidence of the rows of the dataset.
    ///
    /// # Errors
    /// [`InputError::Purged`], or the store's.
    pub(crate) async fn people(&self, env: &InputEnv) -> Result<JobPeople, InputError> {
        match env.readings.evidence.read(env.store.as_ref(), &self.dataset).await? {
            Some(evidence) => Ok(JobPeople { evidence, persons: JobPersons::OfDataset(self.dataset.id) }),
            None => Err(self.without_evidence(env).await?),
        }
    }

    /// Why there is no evidence of the dataset.
    async fn without_evidence(&self, env: &InputEnv) -> Result<InputError, StoreError> {
        let dataset = env.store.dataset(&self.dataset.tenant, self.dataset.id).await?;
        Ok(match dataset {
            Some(dataset) if dataset.purged_at.is_some() => InputError::Purged,
            _ => StoreError::corrupt("a dataset has no evidence of its rows").into(),
        })
    }

    /// What the ledger holds about the people of the dataset now.
    ///
    /// # Errors
    /// [`InputError::Purged`]; the store's; [`StoreError::Corrupt`] when an entry cannot be read: a ledger that is not
    /// understood is not an empty one.
    pub(crate) async fn composition(&self, env: &InputEnv) -> Result<CompositionContext, InputError> {
        // by whose terms goes before whose persons
        self.republished(env).await?;
        let people = self.chosen_people(env).await?;
        match self.look(env, &people, JudgedAt::Now).await? {
            LedgerLook::Decided(found) => Ok(*found),
            LedgerLook::Wait(_) => Err(StoreError::corrupt("a job without a ticket waits for none").into()),
        }
    }

    /// Adds what the dataset knows of its people to the coverage of the same rows, where an equal job gets a release of
    /// these: the coverage then has the keys of both.
    ///
    /// # Errors
    /// As of [`JobContext::composition`].
    pub(crate) async fn adopt(&self, env: &InputEnv, job: Uuid, found: &JudgedPeople) -> Result<(), InputError> {
        // of a chain, the persons are there, and nothing else is known of its rows
        if self.chain().is_some() {
            return Ok(());
        }
        let people = self.people(env).await?;
        let end = found.end(self, &people.evidence, &BTreeSet::new(), false);
        let (Some(joins), AnnouncementEnd::Joined { coverage, .. }) = (&found.joins, &end) else { return Ok(()) };
        if joins.coverage == **coverage {
            return Ok(());
        }
        let tenant = &self.dataset.tenant;
        for _ in 0..MAX_ADOPTIONS {
            let id = announce(env.store.as_ref(), &self.announcement(job, &people, BTreeSet::new()), &people).await?;
            env.store.draw_ticket(tenant, id).await?;
            match env.store.end_announcement(tenant, id, &end).await {
                // the job does not run: who met the announcement has made it void
                Err(StoreError::Conflict) => {}
                ended => return Ok(ended?),
            }
        }
        Err(StoreError::Unavailable("other jobs about the same people kept coming first".into()).into())
    }

    /// The coverage of the rows of the dataset, as a job announces it whose release publishes these columns.
    pub(crate) fn announcement(&self, job: Uuid, people: &JobPeople, published: BTreeSet<String>) -> NewCoverage {
        NewCoverage {
            tenant: self.dataset.tenant.clone(),
            job,
            coverage: self.coverage(&people.evidence),
            published,
            cuts: people.evidence.signatures.iter().map(|sample| sample.is_cut).collect(),
        }
    }

    /// The population that the job publishes night after night.
    pub(crate) fn chain(&self) -> Option<&str> {
        self.dataset.population.as_deref().filter(|_| self.specification.republish.is_some())
    }

    /// What is known of rows of the dataset with this evidence, which the job publishes.
    fn coverage(&self, evidence: &Evidence) -> Coverage {
        let DatasetRecord { id, population, .. } = &self.dataset;
        let coverage = Coverage::new(*id, population.as_deref(), evidence);
        Coverage { chain: self.chain().map(str::to_owned), ..coverage }
    }

    /// What the ledger holds about these people at a moment.
    ///
    /// # Errors
    /// As of [`JobContext::composition`].
    pub(crate) async fn look(
        &self,
        env: &InputEnv,
        people: &JobPeople,
        at: JudgedAt,
    ) -> Result<LedgerLook, InputError> {
        PeopleCheck { env, job: self, people }.look(at).await
    }
}

/// A job and the evidence of its rows.
struct PeopleCheck<'a> {
    env: &'a InputEnv,
    job: &'a JobContext,
    people: &'a JobPeople,
}

impl PeopleCheck<'_> {
    fn tenant(&self) -> &str {
        &self.job.dataset.tenant
    }

    async fn look(&self, at: JudgedAt) -> Result<LedgerLook, InputError> {
        let ticket = match at {
            JudgedAt::Now => 0,
            JudgedAt::Ticket(ticket) => ticket,
        };
        cover_earlier_datasets(self.env.store.as_ref(), self.tenant()).await?;
        let statements = self.env.store.separations(self.tenant()).await?;
        let InputEnv { store, readings, .. } = self.env;
        let ledger = PeopleLedger { store: store.as_ref(), tenant: self.tenant(), kept: readings };
        let mut standing = standing(ledger, ticket, self.people, &statements).await?;
        self.recognize_content(&mut standing.live).await?;
        let publishes: BTreeSet<String> = self.job.specification.names.iter().cloned().collect();
        let rows = JudgedRows {
            dataset: self.job.dataset.id,
            population: self.job.dataset.population.as_deref(),
            evidence: &self.people.evidence,
            publishes: &publishes,
            is_republication: self.job.chain().is_some(),
        };
        let policy = self.env.store.tenant_settings(self.tenant()).await?.unrelated;
        let view = LedgerView { live: &standing.live, pending: &standing.pending, statements: &statements, policy };
        let judged = match self.impossible().map_or_else(|| look(&rows, &view), |refusal| Look::Decided(Err(refusal))) {
            Look::Wait(id) => {
                let job = standing.jobs.get(&id).copied();
                return Ok(LedgerLook::Wait(job.ok_or_else(|| StoreError::corrupt("a job waits for no other"))?));
            }
            Look::Decided(judged) => judged,
        };
        let found = match judged {
            Ok(admission) => self.admitted(admission, &standing, &statements).await?,
            Err(refusal) => self.refused(refusal, &standing).await?,
        };
        Ok(LedgerLook::Decided(Box::new(found)))
    }

    fn unproven(&self, standing: &StandingCoverages) -> Admission {
        Admission::unproven(&self.people.evidence, &standing.live)
    }

    /// Why no person is left to be published, or who was published cannot be known.
    fn impossible(&self) -> Option<PeopleRefusal> {
        if self.job.specification.people == PeopleChoice::All {
            return None;
        }
        let systems = &self.people.evidence.systems;
        if systems.is_empty() {
            return Some(PeopleRefusal::PeopleUnknown { coverages: Vec::new() });
        }
        systems.values().any(|of| of.persons == 0).then_some(PeopleRefusal::EverybodyPublished)
    }

    /// A coverage of which no evidence is left is of the same rows if its dataset has the same content.
    async fn recognize_content(&self, live: &mut [LiveCoverage]) -> Result<(), StoreError> {
        let Some(table) = self.people.evidence.table else { return Ok(()) };
        for LiveCoverage { coverage, .. } in live.iter_mut().filter(|live| live.coverage.tables.is_empty()) {
            for dataset in coverage.datasets.clone() {
                let dataset = self.env.store.dataset(self.tenant(), dataset).await?;
                if dataset.is_some_and(|dataset| dataset.content_hash == self.job.dataset.content_hash) {
                    coverage.tables.insert(table);
                }
            }
        }
        Ok(())
    }

    /// The ledger of an admitted job.
    async fn admitted(
        &self,
        admission: Admission,
        standing: &StandingCoverages,
        statements: &[SeparationStatement],
    ) -> Result<CompositionContext, StoreError> {
        let by_statement = |of: &&SeparationStatement| admission.basis.contains(&Basis::Statement(of.id));
        let statements = statements.iter().filter(by_statement).cloned().collect();
        let same = same_of(&admission, standing);
        let chain = || standing.live.iter().find(|live| admission.chain == Some(live.id));
        let people = JudgedPeople {
            statements,
            joins: same.first().copied().or_else(chain).cloned(),
            names: BTreeMap::new(),
            admission,
        };
        let mut found = self.ledger(&same, people).await?;
        for live in &same {
            for (name, column) in columns_of_names(&self.people.evidence, &live.coverage, found.earlier.names()) {
                // a statement that says otherwise stays
                let _ = found.earlier.identities.alias(&name, &column);
            }
            let is_declared = |name: &str| found.earlier.identities.knows(name);
            let publishes = self.job.specification.names.iter().cloned().collect();
            let published = known_here(live, &found.earlier, &self.people.evidence);
            match attribute_names(&self.people.evidence, &live.coverage, &published, &publishes, is_declared) {
                Ok(names) => {
                    for (name, of) in names.into_iter().filter(|(name, of)| name != of) {
                        // a statement that says otherwise stays
                        let _ = found.earlier.identities.alias(&name, &of);
                        found.people.names.insert(name, of);
                    }
                }
                Err(UnknownAttributesError(columns)) => found.clash = Some(undecidable(&columns, &published)),
            }
        }
        found.clash = found.clash.or_else(|| self.unnamed(&found.earlier, &same));
        Ok(found)
    }

    /// The columns of the job that may be attributes of external tables under other names.
    fn unnamed(&self, earlier: &EarlierDisclosures, same: &[&LiveCoverage]) -> Option<CompositionConflict> {
        let identities = &earlier.identities;
        let external = earlier.disclosures.iter().filter(|(id, _)| earlier.external.contains_key(id));
        let external = external.flat_map(|(_, table)| &table.attributes);
        let named: BTreeSet<&str> = external.map(|name| identities.canonical(name)).collect();
        let here: BTreeSet<&str> = self.job.columns.iter().map(|name| identities.canonical(name)).collect();
        let missing: BTreeSet<String> = named.difference(&here).map(|name| (*name).to_owned()).collect();
        if missing.is_empty() {
            return None;
        }
        // both were columns of a table of these rows: they are two
        let is_apart = |name: &String| {
            same.iter().any(|of| [name].into_iter().chain(&missing).all(|name| of.coverage.contents.contains_key(name)))
        };
        let is_unknown =
            |name: &&String| !named.contains(identities.canonical(name)) && !identities.knows(name) && !is_apart(name);
        let unknown: BTreeSet<String> = self.job.specification.names.iter().filter(is_unknown).cloned().collect();
        (!unknown.is_empty()).then(|| undecidable(&unknown, &missing))
    }

    /// The ledger of a job that is refused because of its people, as if it were published without proof: a plan can say
    /// what else stands in its way.
    async fn refused(
        &self,
        refusal: PeopleRefusal,
        standing: &StandingCoverages,
    ) -> Result<CompositionContext, InputError> {
        let admission = self.unproven(standing);
        let same = same_of(&admission, standing);
        let joins = same.first().map(|live| (*live).clone());
        let people = JudgedPeople { admission, statements: Vec::new(), joins, names: BTreeMap::new() };
        let counts = match &refusal {
            PeopleRefusal::OverlappingPeople { coverages, system: Some(system), .. } => {
                let met: Vec<&LiveCoverage> =
                    standing.live.iter().filter(|live| coverages.contains(&live.id)).collect();
                self.counts(system, &met).await?
            }
            _ => PersonCounts::default(),
        };
        let conflict = PeopleConflict::new(refusal, counts, &standing.live, self.job, &self.env.limits);
        let clash = Some(CompositionConflict::People(Box::new(conflict)));
        Ok(CompositionContext { clash, ..self.ledger(&same, people).await? })
    }

    /// How many persons are in the job, in coverages that it meets, and in both.
    async fn counts(&self, system: &str, met: &[&LiveCoverage]) -> Result<PersonCounts, InputError> {
        let in_system = |live: &&LiveCoverage| live.coverage.systems.get(system).map_or(0, |of| of.persons);
        let own = self.people.evidence.systems.get(system).map_or(0, |of| of.persons);
        let theirs: u64 = met.iter().map(in_system).sum();
        let shared: u64 = met.iter().map(|live| live.common.get(system).copied().unwrap_or(0)).sum();
        let common = count_published(self.env.store.as_ref(), self.tenant(), system, self.people).await?;
        Ok(PersonCounts { common, added: own.saturating_sub(common), removed: theirs.saturating_sub(shared) })
    }

    /// What was declared of the names of a dataset and of coverages of the same rows, and what is published of these.
    async fn ledger(&self, same: &[&LiveCoverage], people: JudgedPeople) -> Result<CompositionContext, StoreError> {
        let store = &self.env.store;
        let mut names = BTreeSet::from([self.job.dataset.series.clone()]);
        let mut contents: BTreeSet<(String, [u8; 32])> = BTreeSet::new();
        let mut others = BTreeMap::new();
        for live in same {
            names.extend(live.coverage.populations.iter().cloned());
            for dataset in &live.coverage.datasets {
                let dataset = store.dataset(self.tenant(), *dataset).await?;
                let dataset = dataset.ok_or_else(|| StoreError::corrupt("a coverage is of an unknown dataset"))?;
                names.insert(dataset.series.clone());
                others.insert(dataset.content_hash, dataset.id);
                contents.insert((dataset.series, dataset.content_hash));
            }
        }
        let (mut earlier, mut versions) = (EarlierDisclosures::default(), BTreeMap::new());
        others.remove(&self.job.dataset.content_hash);
        for name in names {
            let declared = store.series_statements(self.tenant(), &name).await?;
            for record in &declared.statements {
                Statement::read(record)?.enter(&mut earlier);
            }
            versions.insert(name, declared.version);
        }
        let mut recorded = Vec::new();
        for (series, content) in contents {
            recorded.push(store.disclosures(self.tenant(), &series, &content).await?);
        }
        let mut entries: Vec<&DisclosureRecord> = recorded.iter().flat_map(|of| &of.entries).collect();
        let mut rules: Vec<&ActiveRuleRecord> = recorded.iter().flat_map(|of| &of.rules).collect();
        entries.sort_by_key(|entry| entry.id);
        rules.sort_by_key(|rule| rule.release);
        let published = earlier_of(entries.into_iter(), rules.into_iter())?;
        earlier.disclosures.extend(published.disclosures);
        earlier.rules.extend(published.rules);
        Ok(CompositionContext { earlier, versions, people, clash: None, others })
    }
}

/// The coverages of the same rows.
fn same_of<'s>(admission: &Admission, standing: &'s StandingCoverages) -> Vec<&'s LiveCoverage> {
    standing.live.iter().filter(|live| admission.same.contains(&live.id)).collect()
}

/// The published attributes of a coverage, each by the name of the column that is declared to be it, if there is one.
fn known_here(live: &LiveCoverage, earlier: &EarlierDisclosures, evidence: &Evidence) -> BTreeSet<String> {
    let identities = &earlier.identities;
    let here = |name: &String| {
        let is_it = |column: &&String| identities.canonical(column) == identities.canonical(name);
        let column = if evidence.names.contains(name) { None } else { evidence.names.iter().find(is_it) };
        column.unwrap_or(name).clone()
    };
    live.published.iter().map(here).collect()
}

fn undecidable(columns: &BTreeSet<String>, published: &BTreeSet<String>) -> CompositionConflict {
    let listed = |names: &BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>().join(", ");
    let detail = format!(
        "releases or statements about the same people name {}, which the dataset has not all, and nothing is known of {}: \
         declare for each of the latter whether it is an alias of one of the former, or new",
        listed(published),
        listed(columns)
    );
    CompositionConflict::Undecidable(detail, columns.iter().cloned().collect())
}

/// What the ledger holds, understood.
///
/// # Errors
/// [`StoreError::Corrupt`] when an entry cannot be read: a ledger that is not understood is not an empty one.
pub(crate) fn earlier_of<'a>(
    entries: impl Iterator<Item = &'a DisclosureRecord>,
    rules: impl Iterator<Item = &'a ActiveRuleRecord>,
) -> Result<EarlierDisclosures, StoreError> {
    let mut earlier = EarlierDisclosures::default();
    for entry in entries {
        earlier.disclosures.push((entry.release, Disclosure::deserialize(&entry.body).map_err(StoreError::corrupt)?));
    }
    for rule in rules {
        earlier.rules.push((rule.release, ActiveRule::deserialize(&rule.body).map_err(StoreError::corrupt)?));
    }
    Ok(earlier)
}
