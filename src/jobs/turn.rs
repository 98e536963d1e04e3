//! The turn of a job in the order of commits: it announces its rows, draws a ticket, and waits for lower ones.

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use serde_json::Value;
use uuid::Uuid;

use super::runner::{JobAssignment, RunCompletion, RunError};
use crate::control::Control;
use crate::inputs::{
    AuditedEntry, CompositionContext, InputEnv, JobContext, JobPeople, JudgedAt, JudgedPeople, LedgerLook, PeopleAudit,
    PeopleAuditError, announce, read_earlier_releases,
};
use crate::people::CoverageId;
use crate::ports::{AnnouncedCoverage, AnnouncementEnd, JobRecord, JobStatus, StoreError, release_ended_problem};
use crate::problem::{Kind, Problem};
use crate::spec::PeopleChoice;

/// The first and the longest pause before a job looks again.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// A job on its way to the commit. What it has announced is void when it is dropped without a release.
pub(super) struct Turn<'a> {
    assignment: &'a JobAssignment,
    env: &'a InputEnv,
    context: &'a JobContext,
    people: &'a JobPeople,
    /// The ledger as it was seen before, for the first design.
    seen: Option<Box<CompositionContext>>,
    announced: Option<Announcement>,
    /// Whether this attempt has announced anything.
    has_announced: bool,
    audit: Option<PeopleAudit<'a>>,
    /// Whether the audit found a fault, once.
    is_doubted: bool,
}

struct Announcement {
    id: CoverageId,
    ticket: i64,
    columns: BTreeSet<String>,
    continues: Option<CoverageId>,
}

impl Announcement {
    /// Whether it says what is to be announced; one that lists all persons does so whatever they continue.
    fn is_of(&self, columns: &BTreeSet<String>, continues: Option<CoverageId>) -> bool {
        self.columns == *columns && (self.continues.is_none() || self.continues == continues)
    }
}

impl<'a> Turn<'a> {
    pub(super) const fn new(
        assignment: &'a JobAssignment,
        env: &'a InputEnv,
        context: &'a JobContext,
        people: &'a JobPeople,
    ) -> Self {
        Self {
            assignment,
            env,
            context,
            people,
            seen: None,
            announced: None,
            has_announced: false,
            audit: None,
            is_doubted: false,
        }
    }

    /// With a ledger seen a moment ago. One that would refuse the job is read once more.
    pub(super) fn seeing(mut self, seen: Option<Box<CompositionContext>>) -> Self {
        self.seen = seen.filter(|seen| seen.clash.is_none());
        self
    }

    /// What the ledger holds about the people of the job: now, or at its ticket, once all lower ones are decided that
    /// would change it.
    fn look(&self, control: &Control) -> Result<CompositionContext, RunError> {
        let at = self.announced.as_ref().map_or(JudgedAt::Now, |announced| JudgedAt::Ticket(announced.ticket));
        let mut pause = FIRST_PAUSE;
        loop {
            control.check()?;
            match self.env.handle.block_on(self.context.look(self.env, self.people, at))? {
                LedgerLook::Decided(found) => return Ok(*found),
                LedgerLook::Wait(job) => self.void_unless_running(job)?,
            }
            thread::sleep(pause);
            pause = LONGEST_PAUSE.min(pause * 2);
        }
    }

    /// What the release is judged with, and the earlier releases that it is joined with. `None` if others came first, with
    /// persons that a job of new people would publish again.
    ///
    /// # Errors
    /// Why the job is refused.
    pub(super) fn admitted(&mut self, control: &Control) -> Result<Option<CompositionContext>, RunError> {
        let (job, specification) = (&self.assignment.job, &self.context.specification);
        let mut found = match self.seen.take() {
            Some(seen) => *seen,
            None => self.look(control)?,
        };
        if let Some(clash) = found.clash.take() {
            if specification.people == PeopleChoice::Unpublished && clash.overlap().is_some() {
                return Ok(None);
            }
            if clash.binds(specification.unproven.is_some()) {
                return Err(RunError::Refused(clash.problem()));
            }
        }
        // looked at after the ledger, whose version rises with every end: one that comes later is seen by the commit
        let of_key = self.env.handle.block_on(self.env.store.releases_of_key(&job.tenant, &job.reuse_key))?;
        if let Some((release, status)) = of_key.ended {
            return Err(RunError::Refused(release_ended_problem(&status, release)));
        }
        found.earlier.releases = read_earlier_releases(self.env, self.context, &found.earlier, control)?;
        Ok(Some(found))
    }

    /// A job that lost its worker is nothing to wait for.
    fn void_unless_running(&self, job: Uuid) -> Result<(), RunError> {
        let tenant = &self.assignment.job.tenant;
        let found = self.env.handle.block_on(self.env.store.job(tenant, job))?;
        if found.is_none_or(|job| job.status != JobStatus::Running) {
            // unless it was taken up since
            self.env.handle.block_on(self.env.store.void_announcements(tenant, job, None))?;
        }
        Ok(())
    }

    /// Announces the rows and draws a ticket, unless this was done for the same columns and chain; says whether it did. The
    /// job then has to look again.
    pub(super) fn announce(
        &mut self,
        columns: &BTreeSet<String>,
        people: &JudgedPeople,
        control: &Control,
    ) -> Result<bool, RunError> {
        let continues = people.continued(self.context, is_held(&self.assignment.job));
        if self.announced.as_ref().is_some_and(|announced| announced.is_of(columns, continues)) {
            return Ok(false);
        }
        // before the ticket, for which others may wait
        if self.audit.is_none() {
            self.audit = Some(PeopleAudit::derive(self.env, self.context, control).map_err(audit_error)?);
        }
        self.give_up();
        let InputEnv { handle, store, .. } = self.env;
        let JobAssignment { job, lease_token, attempt, .. } = self.assignment;
        // of an attempt whose worker vanished, or of this one if it could not be given up
        if *attempt > 1 || self.has_announced {
            handle.block_on(store.void_announcements(&job.tenant, job.id, Some(*lease_token)))?;
        }
        self.has_announced = true;
        let mut new = self.context.announcement(job.id, self.people, columns.clone());
        new.coverage.continues = continues;
        let id = handle.block_on(announce(store.as_ref(), &new, self.people))?;
        self.announced = Some(Announcement { id, ticket: 0, columns: columns.clone(), continues });
        let ticket = handle.block_on(store.draw_ticket(&job.tenant, id))?;
        self.announced = Some(Announcement { id, ticket, columns: columns.clone(), continues });
        Ok(true)
    }

    /// Audits who the release speaks of, against what is announced and what stands before its ticket; says whether it may be
    /// committed. The job has to look again at the first fault, as what stands may have changed since its look.
    ///
    /// # Errors
    /// The second fault, and what the audit fails with.
    pub(super) fn audit(&mut self, rows: u64, people: &JudgedPeople, manifest: &Value) -> Result<bool, RunError> {
        let ending = self.end(people);
        let (Some(announced), Some(ending), Some(audit)) = (&self.announced, ending, &mut self.audit) else {
            return Err(StoreError::corrupt("a release is not announced").into());
        };
        let joined: Vec<CoverageId> = people.admission.same.iter().copied().chain(people.admission.chain).collect();
        let audited = audit.check(&AuditedEntry {
            id: announced.id,
            ticket: announced.ticket,
            rows,
            columns: &announced.columns,
            joined: &joined,
            chain: self.context.chain(),
            is_held: is_held(&self.assignment.job),
            end: &ending.end,
            manifest,
        });
        match audited {
            Ok(()) => {
                self.is_doubted = false;
                Ok(true)
            }
            Err(PeopleAuditError::Claim(_)) if !self.is_doubted => {
                self.is_doubted = true;
                Ok(false)
            }
            Err(error) => Err(audit_error(error)),
        }
    }

    /// How the announcement ends with the release.
    pub(super) fn end(&self, people: &JudgedPeople) -> Option<AnnouncedCoverage> {
        let Announcement { id, columns, .. } = self.announced.as_ref()?;
        let is_held = is_held(&self.assignment.job);
        Some(AnnouncedCoverage { id: *id, end: people.end(self.context, &self.people.evidence, columns, is_held) })
    }

    /// How a job ends whose commit has ended what it announced.
    pub(super) fn committed(&mut self, release: Uuid) -> RunCompletion {
        self.announced = None;
        RunCompletion::Committed(release)
    }

    /// Makes void what was announced.
    fn give_up(&mut self) {
        let Some(announced) = self.announced.take() else { return };
        let InputEnv { handle, store, .. } = self.env;
        let (tenant, end) = (&self.assignment.job.tenant, AnnouncementEnd::Void);
        match handle.block_on(store.end_announcement(tenant, announced.id, &end)) {
            Ok(()) | Err(StoreError::Conflict) => {}
            // who waits for it finds that its job does not run
            Err(error) => tracing::warn!(error = %error, "an announcement stays until its job has ended"),
        }
    }
}

/// Whether the release is to wait for an approval.
pub(super) fn is_held(job: &JobRecord) -> bool {
    job.specification["hold"] == true
}

/// Nothing is released that the audit has not verified.
fn audit_error(error: PeopleAuditError) -> RunError {
    match error {
        PeopleAuditError::Input(error) => error.into(),
        PeopleAuditError::Claim(fault) => {
            tracing::error!(%fault, "the audit of the people of a release failed");
            let detail = "a check of the service's own work failed; nothing was released";
            RunError::Failed(Problem::new(Kind::Internal, detail))
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.give_up();
    }
}
