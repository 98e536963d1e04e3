//! What a job is about, and what it commits: the release with its documents, and what the ledger records of it.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, SecondsFormat, Utc};
use uuid::Uuid;

use super::runner::{JobAssignment, RunError};
use super::turn::is_held;
use crate::clock::Clock;
use crate::engine::AuditedRelease;
use crate::inputs::{JudgedPeople, PartStorage};
use crate::ledger::Disclosure;
use crate::people::{PeopleClaim, Separation, SeparationStatement};
use crate::ports::{DatasetRecord, NewDisclosure, NewRelease, ReleaseCommit, StoreError};
use crate::publication::{CompositionMode, IdentityScope, PersonsKnown, PublishedPeople, ReleaseStatus, StatementKind};
use crate::random::RandomStreams;
use crate::report::{ManifestIdentity, ManifestStatement, Provenance, public_report};
use crate::spec::{PeopleChoice, Specification};

/// What a job is about.
pub(super) struct PublishRun<'a> {
    pub(super) assignment: &'a JobAssignment,
    pub(super) dataset: &'a DatasetRecord,
    pub(super) specification: &'a Specification,
    pub(super) streams: &'a RandomStreams,
    pub(super) clock: &'a Clock,
}

impl PublishRun<'_> {
    /// The parts of the attempt.
    pub(super) fn storage(&self) -> PartStorage {
        let JobAssignment { handle, store, job, attempt, .. } = self.assignment;
        PartStorage::new(handle.clone(), store.clone(), job.tenant.clone(), job.id, *attempt)
    }

    /// The identity of the release.
    pub(super) fn provenance(&self, id: Uuid, people: &JudgedPeople) -> Provenance {
        Provenance {
            id: Some(id),
            series: Some(self.assignment.job.series.clone()),
            created_at: self.clock.now().to_rfc3339_opts(SecondsFormat::Secs, true),
            composition: self.composition(people),
            identity: Some(self.identity(people)),
            reproducible: false,
        }
    }

    /// What the release claims of its people.
    fn composition(&self, people: &JudgedPeople) -> CompositionMode {
        match people.admission.claim {
            _ if self.specification.unproven.is_some() => CompositionMode::Unproven,
            PeopleClaim::Enforced => CompositionMode::Enforced,
            PeopleClaim::WithinPopulation => CompositionMode::WithinPopulation,
            PeopleClaim::SameDatasetOnly => CompositionMode::SameDatasetOnly,
            PeopleClaim::Unproven => CompositionMode::Unproven,
        }
    }

    /// What is established of its people, how, and by whose word.
    fn identity(&self, people: &JudgedPeople) -> ManifestIdentity {
        let key_systems: Vec<String> = self.dataset.person.keys().cloned().collect();
        let persons = if key_systems.is_empty() { PersonsKnown::ContentOnly } else { PersonsKnown::Identified };
        ManifestIdentity {
            population: self.dataset.population.clone(),
            persons,
            key_systems,
            people: match self.specification.people {
                PeopleChoice::All => PublishedPeople::All,
                PeopleChoice::Unpublished => PublishedPeople::Unpublished,
            },
            scope: IdentityScope::Tenant,
            statements: people.statements.iter().map(manifest_statement).collect(),
            unrelated: people.admission.unrelated.iter().cloned().collect(),
        }
    }

    /// A release that passed its audit, ready to be committed.
    pub(super) fn made(&self, id: Uuid, released: AuditedRelease) -> Result<MadeCommit, RunError> {
        let columns = released.disclosures.iter().flat_map(|of| of.attributes.iter().cloned()).collect();
        Ok(MadeCommit { commit: self.commit(id, released)?, columns })
    }

    fn commit(&self, id: Uuid, released: AuditedRelease) -> Result<ReleaseCommit, RunError> {
        let job = &self.assignment.job;
        let json = |value: Result<serde_json::Value, serde_json::Error>| {
            value.map_err(|error| RunError::from(StoreError::corrupt(error)))
        };
        let now = self.clock.now();
        let disclosure = |disclosure: &Disclosure| {
            Ok(NewDisclosure {
                id: Uuid::now_v7(),
                table: disclosure.table.clone(),
                body: json(serde_json::to_value(disclosure))?,
            })
        };
        Ok(ReleaseCommit {
            job: job.id,
            token: self.assignment.lease_token,
            disclosures: released.disclosures.iter().map(disclosure).collect::<Result<_, RunError>>()?,
            rules: released.rules.iter().map(|rule| json(serde_json::to_value(rule))).collect::<Result<_, _>>()?,
            release: NewRelease {
                id,
                job: job.id,
                attempt: self.assignment.attempt,
                tenant: job.tenant.clone(),
                series: job.series.clone(),
                dataset: self.dataset.id,
                content_hash: self.dataset.content_hash,
                reuse_key: job.reuse_key,
                method: self.specification.method.name().to_owned(),
                created_at: now,
                report: json(serde_json::to_value(public_report(&released.manifest)))?,
                manifest: json(serde_json::to_value(&released.manifest))?,
                status: if is_held(job) { ReleaseStatus::Held } else { ReleaseStatus::Published },
            },
            internal_report: None,
            ledger_version: 0,
            series_versions: BTreeMap::new(),
            announcement: None,
            chain: None,
            now,
        })
    }
}

/// A statement, dated by its id, which is drawn when it is recorded.
fn manifest_statement(statement: &SeparationStatement) -> ManifestStatement {
    let (seconds, nanoseconds) = statement.id.get_timestamp().map_or((0, 0), |at| at.to_unix());
    let at = DateTime::<Utc>::from_timestamp(seconds as i64, nanoseconds).unwrap_or_default();
    ManifestStatement {
        id: statement.id,
        kind: match statement.kind {
            Separation::Disjoint => StatementKind::Disjoint,
            Separation::Others => StatementKind::Others,
        },
        of: statement.of.iter().map(ToString::to_string).collect(),
        reason: statement.reason.clone(),
        recorded_at: at.to_rfc3339_opts(SecondsFormat::Secs, true),
    }
}

/// A release that is ready to be committed.
pub(super) struct MadeCommit {
    pub(super) commit: ReleaseCommit,
    /// The columns that it publishes.
    pub(super) columns: BTreeSet<String>,
}
