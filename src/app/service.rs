//! Submissions. A job is checked completely before it is queued.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use tokio::runtime::Handle;
use uuid::Uuid;

use super::people::check_population_of_key;
use super::remedies::{FaultyDocument, mended_by, remedied};
use super::republication::{republication_faults, with_terms};
use super::unknown_names::{UnknownNames, unknown_dataset_of};
use crate::clock::Clock;
use crate::engine::Plan;
use crate::identity::{Actor, Caller, Scope, Token, TokenHash};
use crate::inputs::{
    ChainPlace, CompositionConflict, CompositionContext, Engines, InputEnv, InputError, JobContext, JudgedPeople,
    KeptReadings, LoadedChain, MemoryBudget, ProfileCounts, column_facts, job_memory,
};
use crate::microdata::ColumnProfile;
use crate::microdata::formats::IngestLimits;
use crate::people::PopulationRegistry;
use crate::ports::{
    AuditAction, AuditEntry, CancelOutcome, DatasetRecord, JobRecord, JobStatus, KeyedReleases, NewJob, Notifier,
    ReleaseRecord, Store, StoreError,
};
use crate::problem::{Fault, Kind, Problem};
use crate::report::InternalReport;
use crate::spec::{DatasetSchema, DocumentSource, ParsedDocument, PeopleChoice};
use crate::vault::{CiphertextContext, Purpose, Secret, Vault, VaultError};
use crate::{engine, meter, spec};

/// Draws release keys.
pub type ReleaseKeySource = Arc<dyn Fn() -> Result<Secret, VaultError> + Send + Sync>;

/// Serves callers. Cloning gives another handle.
#[derive(Clone)]
pub struct AppService {
    /// Everything that lasts.
    pub store: Arc<dyn Store>,
    /// Keys at rest.
    pub vault: Arc<Vault>,
    /// The time.
    pub clock: Clock,
    /// Wakes workers and waiting callers.
    pub signals: Arc<Notifier>,
    /// Draws release keys.
    pub keys: ReleaseKeySource,
    /// The most jobs of a tenant that may wait.
    pub max_queued_jobs: u64,
    /// What columns may hold.
    pub limits: IngestLimits,
    /// What jobs and plans may take together.
    pub budget: MemoryBudget,
    /// What was read of the people of the ledger.
    pub readings: KeptReadings,
    /// The folder of files without names for what memory cannot hold.
    pub spool: PathBuf,
    /// The engines that have the rows of some datasets.
    pub engines: Engines,
}

/// A document and the dataset that it names.
pub(super) struct ResolvedDocument {
    pub(super) dataset: DatasetRecord,
    pub(super) profiles: Vec<ColumnProfile>,
    pub(super) reading: ParsedDocument,
    /// The document written out with its policy, taxonomies and releases; `None` if it is as it was sent.
    pub(super) expanded: Option<Value>,
}

impl ResolvedDocument {
    /// The context of the job of a document without faults, or the faults of the document.
    fn into_context(
        self,
        sent: &Value,
        limits: &IngestLimits,
    ) -> Result<JobContext, (Box<FaultyDocument>, Vec<Fault>)> {
        let faults = self.counted();
        match self {
            Self { dataset, profiles, reading: ParsedDocument { specification: Some(specification), .. }, .. }
                if faults.is_empty() =>
            {
                Ok(JobContext::new(dataset, profiles, specification))
            }
            faulty => Err((Box::new(faulty.faulty(sent, DocumentSource::Http, limits)), faults)),
        }
    }

    /// The faults of the document, with those that the counts of columns show: they are of all persons.
    fn counted(&self) -> Vec<Fault> {
        let Self { dataset, profiles, reading: ParsedDocument { specification, faults }, .. } = self;
        let mut faults = faults.clone();
        if let Some(specification) = specification.as_ref().filter(|of| of.people == PeopleChoice::All) {
            let counts = ProfileCounts { rows: dataset.rows, profiles, used: &specification.used };
            faults.extend(engine::check_and_repair(specification, &counts));
        }
        faults
    }

    /// What remedies are tried with.
    pub(super) fn faulty(&self, sent: &Value, origin: DocumentSource, limits: &IngestLimits) -> FaultyDocument {
        FaultyDocument {
            sent: sent.clone(),
            expanded: self.expanded.clone(),
            origin,
            dataset: self.dataset.clone(),
            profiles: self.profiles.clone(),
            limits: limits.clone(),
        }
    }
}

impl AppService {
    /// The services that inputs are read with; call it in the runtime.
    pub(super) fn env(&self) -> InputEnv {
        InputEnv {
            handle: Handle::current(),
            store: Arc::clone(&self.store),
            vault: Arc::clone(&self.vault),
            limits: self.limits.clone(),
            readings: self.readings.clone(),
            spool: self.spool.clone(),
            engines: self.engines.clone(),
        }
    }

    /// The caller who sends a token; `None` when its key is unknown, expired or revoked.
    ///
    /// # Errors
    /// The store's problem.
    pub async fn caller(&self, token: &Token) -> Result<Option<Caller>, Problem> {
        let key = self.store.key(token.id()).await?;
        Ok(match key {
            Some(key) if key.admits(token, self.clock.now()) => Some(Caller::from_key(&key)),
            Some(_) => None,
            None => {
                // whether there is such a key does not show in the time of the answer
                let _ = TokenHash::matches_unknown_key(token);
                None
            }
        })
    }

    /// Whether a caller that was let in before would be let in still: for answers that go on for long.
    ///
    /// # Errors
    /// `unauthenticated` when its key was revoked or its token has ended, or the store's problem.
    pub async fn check_still_valid(&self, caller: &Caller) -> Result<(), Problem> {
        let now = self.clock.now();
        let works = match &caller.actor {
            Actor::Unnamed => true,
            Actor::Key(id) => {
                let key = self.store.key(*id).await?;
                key.is_some_and(|key| key.works(now))
            }
            Actor::Subject { until, .. } => now < *until,
        };
        works.then_some(()).ok_or_else(unauthenticated)
    }

    /// The entry of the audit log for an act of a caller now.
    pub fn audit_entry(&self, caller: &Caller, action: AuditAction, object: impl Into<String>) -> AuditEntry {
        AuditEntry::new(caller, action, object, self.clock.now())
    }

    /// Records in the audit log what a caller is about to read, where nothing else is written.
    ///
    /// # Errors
    /// The store's problem: what cannot be recorded is not answered.
    pub async fn record(&self, caller: &Caller, action: AuditAction, object: Uuid) -> Result<(), Problem> {
        self.store.append_audit(&self.audit_entry(caller, action, object)).await.map_err(Problem::from)
    }

    /// Destroys the rows of a dataset.
    ///
    /// # Errors
    /// `not-found`, `gone` when it was purged before, or the store's problem.
    pub async fn purge(&self, caller: &Caller, id: Uuid) -> Result<DatasetRecord, Problem> {
        self.dataset(caller, id).await?;
        let audit_entry = self.audit_entry(caller, AuditAction::Purge, id);
        let purged = self.store.purge_dataset(&caller.tenant, id, audit_entry.at, &audit_entry).await;
        self.readings.evidence.forget(id);
        purged.map_err(|error| match error {
            StoreError::NotFound => no_such_dataset(),
            other => other.into(),
        })
    }

    /// Asks a job to stop.
    ///
    /// # Errors
    /// `not-found`, `conflict` when it has ended, or the store's problem.
    pub async fn cancel(&self, caller: &Caller, id: Uuid) -> Result<(), Problem> {
        let audit_entry = self.audit_entry(caller, AuditAction::Cancel, id);
        let outcome = self.store.request_cancel(&caller.tenant, id, audit_entry.at, &audit_entry).await;
        match outcome? {
            CancelOutcome::NotFound => Err(Problem::new(Kind::NotFound, "there is no such job")),
            CancelOutcome::Terminal(status) => {
                Err(Problem::new(Kind::Conflict, format!("the job has already ended: {status}")))
            }
            CancelOutcome::Requested | CancelOutcome::CancelledAtOnce => {
                self.signals.cancel_requested();
                Ok(())
            }
        }
    }

    /// A dataset that is there.
    ///
    /// # Errors
    /// `not-found`, `gone` when it was purged, or the store's problem.
    pub async fn dataset(&self, caller: &Caller, id: Uuid) -> Result<DatasetRecord, Problem> {
        let dataset = self.store.dataset(&caller.tenant, id).await?;
        let dataset = dataset.ok_or_else(no_such_dataset)?;
        if dataset.purged_at.is_some() {
            return Err(Problem::new(
                Kind::Gone,
                "the dataset was purged; its releases and its place in the ledger remain",
            ));
        }
        Ok(dataset)
    }

    /// Whether the caller may see counts of a dataset: with the scope, or as the one who uploaded it. What cannot be found out is
    /// hidden.
    pub async fn sees_counts(&self, caller: &Caller, dataset: Uuid) -> bool {
        if caller.may_inspect(None) {
            return true;
        }
        let found = self.store.dataset(&caller.tenant, dataset).await;
        found.is_ok_and(|found| found.is_some_and(|found| caller.may_inspect(found.uploaded_by.as_deref())))
    }

    /// A dataset whose table the caller may see.
    ///
    /// # Errors
    /// As [`AppService::dataset`], or `forbidden`.
    pub(super) async fn inspected_dataset(&self, caller: &Caller, id: Uuid) -> Result<DatasetRecord, Problem> {
        let dataset = self.dataset(caller, id).await?;
        check_inspection(caller, &dataset)?;
        Ok(dataset)
    }

    /// What is known of the columns of a dataset; nothing once it is purged.
    ///
    /// # Errors
    /// The store's problem.
    pub fn profiles(&self, dataset: &DatasetRecord) -> Result<Vec<ColumnProfile>, Problem> {
        if dataset.purged_at.is_some() { Ok(Vec::new()) } else { dataset.profiles(&self.vault).map_err(Problem::from) }
    }

    /// What the original says of a release that is served.
    ///
    /// # Errors
    /// `gone` when the original was purged or the release has ended, `not-found` when it is of a time before reports, or the
    /// store's problem: what cannot be recorded is not answered.
    pub async fn internal_report(&self, caller: &Caller, release: &ReleaseRecord) -> Result<InternalReport, Problem> {
        let dataset = self.store.dataset(&caller.tenant, release.dataset).await?;
        let dataset = dataset.ok_or_else(no_such_dataset)?;
        if dataset.purged_at.is_some() {
            return Err(Problem::new(Kind::Gone, "the original was purged, and what it said of the release with it"));
        }
        let ciphertext = self.store.internal_report(&caller.tenant, release.id).await?;
        let absent = || Problem::new(Kind::NotFound, "the release has no internal report");
        let ciphertext = ciphertext.ok_or_else(absent)?;
        let key = dataset.data_key(&self.vault)?;
        let report = key.decrypt(CiphertextContext::InternalReport { release: release.id }, &ciphertext);
        let report = report.map_err(StoreError::from)?;
        let report = serde_json::from_slice(&report).map_err(StoreError::corrupt)?;
        self.record(caller, AuditAction::ReadInternal, release.id).await?;
        Ok(report)
    }

    pub(super) async fn resolve(
        &self,
        caller: &Caller,
        document: &Value,
        origin: DocumentSource,
    ) -> Result<ResolvedDocument, Problem> {
        let sent = document;
        // no fault hides another: what a name stands for that nothing has is left open
        let mut unknown = UnknownNames::default();
        let with_policy = self.expand_policy(caller, document, &mut unknown).await?;
        let document = with_policy.as_ref().unwrap_or(document);
        let with_taxonomies = self.expand_taxonomies(caller, document, &mut unknown).await?;
        let document = with_taxonomies.as_ref().unwrap_or(document);
        let id = match spec::dataset_of(document) {
            Ok(id) => id,
            Err(_) => return Err(faults_without_table(unknown, document, sent, origin).await),
        };
        let dataset = match self.dataset(caller, id).await {
            Ok(dataset) => dataset,
            Err(problem) if problem.kind == Kind::NotFound => {
                let is_only_fault = unknown.is_empty() && spec::faults_on_any_table(document, origin).is_empty();
                let fault = unknown_dataset_of(self.store.as_ref(), caller, "/dataset", id).await?;
                if is_only_fault {
                    return Err(Problem { errors: vec![fault], ..problem });
                }
                unknown.add(fault);
                return Err(faults_without_table(unknown, document, sent, origin).await);
            }
            Err(problem) => return Err(problem),
        };
        check_population_of_key(caller, dataset.population.as_deref())?;
        let with_releases = self.expand_releases(&dataset, document, &mut unknown).await?;
        let document = with_releases.as_ref().unwrap_or(document);
        let registry = match document["republish"] {
            Value::Null => None,
            _ => Some(self.store.people_registry(&caller.tenant).await?),
        };
        let with_terms = registry.as_ref().and_then(|registry| with_terms(document, &dataset, registry));
        let document = with_terms.as_ref().unwrap_or(document);
        let profiles = dataset.profiles(&self.vault)?;
        let facts = column_facts(dataset.rows, &profiles, &self.limits);
        let (keys, unit) = (dataset.key_columns(), dataset.unit());
        let schema = DatasetSchema { columns: &facts, keys: &keys, unit: &unit };
        let mut reading = spec::read(document, &schema, origin);
        reading.faults.extend(faults_of_dataset(&dataset, &reading, registry.as_ref()));
        let expanded = with_terms.or(with_releases).or(with_taxonomies).or(with_policy);
        let resolved = ResolvedDocument { dataset, profiles, reading, expanded };
        if unknown.is_empty() {
            return Ok(resolved);
        }
        let faults = unknown.among(resolved.counted(), sent);
        Err(remedied(resolved.faulty(sent, origin, &self.limits), Problem::of_faults(faults)).await)
    }

    /// Accepts a job under an id that nothing has, or says everything that is wrong with it.
    ///
    /// # Errors
    /// `invalid-specification` with every fault, `not-found`, `gone`, `quota`, or the store's problem. Nothing is
    /// queued then.
    pub async fn submit(&self, caller: &Caller, document: &Value, id: Uuid) -> Result<JobRecord, Problem> {
        let policy = spec::policy_of(document).ok().flatten().map(|policy| policy.name);
        let resolved = self.resolve(caller, document, DocumentSource::Http).await?;
        let context = match resolved.into_context(document, &self.limits) {
            Ok(context) => context,
            Err((faulty, faults)) => {
                let dataset = faulty.dataset.id;
                let problem = remedied(*faulty, Problem::of_faults(faults)).await;
                return Err(self.tried_on_rows(caller, dataset, document, problem).await);
            }
        };
        let JobContext { dataset, specification, .. } = &context;
        let overrides = [
            (specification.unproven.is_some(), "to publish without proof"),
            (specification.method.closed_reason().is_some(), "to publish strata without a bound"),
            (!specification.assumed_unknown().is_empty(), "to assume that a dependency of the data is unknown"),
        ];
        if let Some((_, what)) =
            overrides.iter().find(|(is_given, _)| *is_given && !caller.has_scope(Scope::LedgerOverride))
        {
            let scope = Scope::LedgerOverride.name();
            return Err(Problem::new(Kind::Forbidden, format!("{what} needs the scope {scope}")).with("scope", scope));
        }
        let composition = context.composition(&self.env()).await?;
        let reuse = self.reuse_key(&context, &composition).await?;
        let people = self.check_job(&context, composition, reuse.releases).await?;
        self.must_have_room(&dataset.tenant).await?;
        let now = self.clock.now();
        let wrapped_key =
            (self.keys)().and_then(|key| self.vault.wrap(Purpose::Release, id, &key)).map_err(|error| {
                tracing::error!(error = %error, "no release key can be drawn");
                Problem::new(Kind::Internal, "no release key can be drawn")
            })?;
        let deadline_at = specification.deadline.and_then(|deadline| chrono::Duration::from_std(deadline).ok());
        let job = self.store.enqueue(NewJob {
            id,
            tenant: dataset.tenant.clone(),
            dataset: dataset.id,
            series: dataset.series.clone(),
            method: specification.method.name().to_owned(),
            reuse_key: reuse.key,
            specification: specification.normalized.clone(),
            priority: specification.priority,
            reason: specification.reason.clone(),
            policy,
            submitted_at: now,
            deadline_at: deadline_at.map(|deadline| now + deadline),
            wrapped_key,
            audit_entry: self.audit_entry(caller, AuditAction::Submit, id),
        });
        let job = job.await?;
        if let Some(people) = people.filter(|_| job.status == JobStatus::Succeeded) {
            context.adopt(&self.env(), job.id, &people).await?;
        }
        meter::submitted(&job.method, job.status == JobStatus::Succeeded);
        self.signals.job_queued();
        Ok(job)
    }

    /// Checks that a job fits into memory, that no release of its key has ended and that nothing earlier conflicts with it. Gives
    /// how its people stand to other releases, unless that conflicts.
    async fn check_job(
        &self,
        context: &JobContext,
        composition: CompositionContext,
        releases: KeyedReleases,
    ) -> Result<Option<JudgedPeople>, Problem> {
        let JobContext { dataset, profiles, specification, .. } = context;
        if dataset.place.is_none() {
            self.budget.check(job_memory(dataset, profiles, specification))?;
        }
        if let Some((release, status)) = releases.ended {
            return Err(crate::ports::release_ended_problem(&status, release));
        }
        let env = self.env();
        let is_reused = self.reused_release(context, &composition, releases.standing).await?.is_some();
        let CompositionContext { earlier, people, clash, .. } = composition;
        let is_admitted = clash.is_none();
        if let Some(population) = context.chain().filter(|_| is_admitted && !is_reused) {
            let place = ChainPlace { tenant: &dataset.tenant, population, is_begun: people.admission.chain.is_some() };
            LoadedChain::check(self.store.as_ref(), &self.vault, place).await.map_err(InputError::from)?;
        }
        if let Some(clash) = clash.filter(|clash| clash.binds(specification.unproven.is_some()) && !is_reused) {
            return Err(clash.problem());
        }
        if !(is_reused || dataset.is_readable_here())
            && let Some(problem) = engine::remote_conflict(specification, &earlier)
        {
            return Err(problem);
        }
        let inputs = context.inputs(&env, &earlier).await?;
        self.budget.check(inputs.least_bytes())?;
        Ok(is_admitted.then_some(people))
    }

    /// Submissions at the very same moment may together exceed the limit by their number.
    async fn must_have_room(&self, tenant: &str) -> Result<(), Problem> {
        let (limit, found) = (self.max_queued_jobs, self.store.queued_jobs(tenant).await);
        let found = found?;
        if found < limit {
            return Ok(());
        }
        let detail = format!("{found} jobs wait already; {limit} may wait at the same time");
        Err(Problem::new(Kind::Quota, detail).with("limit", limit).with("found", found).retry_after(10))
    }
}

/// Adds to a plan the composition conflict of the dataset.
pub(super) fn add_composition(plan: &mut Plan, clash: Option<&CompositionConflict>, is_unproven: bool) {
    if let Some(clash) = clash {
        plan.composition.verdict = clash.verdict();
        plan.composition.counts = clash.overlap().map(|overlap| engine::CompositionCounts {
            common: overlap.common,
            added: overlap.added,
            removed: overlap.removed,
        });
        if clash.binds(is_unproven) {
            plan.problems.push(clash.problem().to_json("about:blank"));
            plan.feasible = false;
        }
    }
}

/// The faults of a specification that the dataset does not allow, without those that are named already.
fn faults_of_dataset(
    dataset: &DatasetRecord,
    reading: &ParsedDocument,
    registry: Option<&PopulationRegistry>,
) -> Vec<Fault> {
    let Some(specification) = &reading.specification else { return Vec::new() };
    let mut faults =
        registry.map(|registry| republication_faults(dataset, specification, registry)).unwrap_or_default();
    if !dataset.is_readable_here() {
        faults.extend(engine::remote_faults(specification, dataset.rows));
    }
    let is_named = |fault: &Fault| reading.faults.iter().any(|of| of.pointer == fault.pointer && of.kind == fault.kind);
    faults.retain(|fault| !is_named(fault));
    faults
}

/// The one answer for whatever is wrong with a key or a token.
#[must_use]
pub fn unauthenticated() -> Problem {
    Problem::new(Kind::Unauthenticated, "the key is unknown, expired or revoked")
}

/// Checks that the caller may see what the table of a dataset says.
pub(super) fn check_inspection(caller: &Caller, dataset: &DatasetRecord) -> Result<(), Problem> {
    if caller.may_inspect(dataset.uploaded_by.as_deref()) {
        return Ok(());
    }
    let scope = Scope::DatasetsInspect.name();
    let detail = format!("another key uploaded the dataset: what its table says needs the scope {scope}");
    Err(Problem::new(Kind::Forbidden, detail).with("scope", scope))
}

/// The faults of a document whose table is unknown; the rest is read as one for any table.
async fn faults_without_table(
    unknown: UnknownNames,
    document: &Value,
    sent: &Value,
    origin: DocumentSource,
) -> Problem {
    let faults = unknown.among(spec::faults_on_any_table(document, origin), sent);
    let read = move |other: &Value| spec::faults_on_any_table(other, origin);
    mended_by(Problem::of_faults(faults), sent, read).await
}

fn no_such_dataset() -> Problem {
    Problem::new(Kind::NotFound, "there is no such dataset")
}
