//! Why nothing can be published of the people of a dataset, as callers see it.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::context::JobContext;
use super::profiles::read_accepted;
use crate::microdata::formats::IngestLimits;
use crate::people::{Coverage, CoverageId, LiveCoverage, PeopleRefusal, PersonCounts, RefusalDocument, RefusedJob};
use crate::problem::{Kind, Problem};

/// A refusal because of people, with its words and remedies.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct PeopleConflict {
    kind: Kind,
    counts: PersonCounts,
    document: RefusalDocument,
}

impl PeopleConflict {
    pub(crate) fn new(
        refusal: PeopleRefusal,
        counts: PersonCounts,
        live: &[LiveCoverage],
        job: &JobContext,
        limits: &IngestLimits,
    ) -> Self {
        let (kind, met): (Kind, &[CoverageId]) = match &refusal {
            PeopleRefusal::StatementContradicted { coverages, .. } => (Kind::StatementContradicted, coverages),
            PeopleRefusal::PopulationUndeclared { coverages } => (Kind::PopulationUndeclared, coverages),
            PeopleRefusal::PeopleUnknown { coverages } => (Kind::PeopleUnknown, coverages),
            PeopleRefusal::OverlappingPeople { coverages, .. } => (Kind::OverlappingPeople, coverages),
            PeopleRefusal::PeopleAlike { coverages, .. } => (Kind::PeopleAlike, coverages),
            PeopleRefusal::EverybodyPublished => (Kind::NoNewPeople, &[]),
            PeopleRefusal::PublishedWithoutChain { coverages } => (Kind::RepublishNotStarted, coverages),
        };
        let met = live.iter().filter(|live| met.contains(&live.id));
        let coverages: Vec<(CoverageId, Coverage)> = met.map(|live| (live.id, live.coverage.clone())).collect();
        let mut submitted = job.specification.normalized.clone();
        submitted["dataset"] = job.dataset.id.to_string().into();
        let without = match &refusal {
            PeopleRefusal::OverlappingPeople { changed, .. } => without_columns(&submitted, changed, job, limits),
            _ => None,
        };
        let refused = RefusedJob {
            dataset: job.dataset.id,
            population: job.dataset.population.as_deref(),
            person: &job.dataset.person,
            job: &submitted,
            without_changed: without.as_ref(),
            coverages: &coverages,
            counts,
        };
        Self { kind, counts, document: refusal.document(&refused) }
    }

    /// Whether there is no one to publish, or it cannot be known who that is: a job of new people then has no rows, with or
    /// without proof.
    pub(crate) fn has_no_rows(&self) -> bool {
        match self.kind {
            Kind::NoNewPeople => true,
            Kind::PeopleUnknown => !self.document.members.contains_key("coverages"),
            _ => false,
        }
    }

    /// Whether it is because of persons that were published before.
    pub(crate) fn is_overlap(&self) -> bool {
        self.kind == Kind::OverlappingPeople
    }

    /// The persons that were published before, and others.
    pub(crate) fn overlap(&self) -> Option<PersonCounts> {
        self.is_overlap().then_some(self.counts)
    }

    /// What a job is refused with.
    pub(crate) fn problem(&self) -> Problem {
        let RefusalDocument { detail, members, remedies, .. } = &self.document;
        let mut problem = Problem::new(self.kind, detail.clone());
        problem.members.extend(members.clone());
        let remedies = remedies.iter().map(|remedy| serde_json::to_value(remedy).unwrap_or(Value::Null));
        problem.with("remedies", remedies.collect::<Vec<Value>>())
    }
}

/// The job without columns. `None` if its rules need one of them.
fn without_columns(
    submitted: &Value,
    columns: &BTreeSet<String>,
    job: &JobContext,
    limits: &IngestLimits,
) -> Option<Value> {
    let dropped = columns.iter().map(|column| (column.clone(), json!({"drop": true})));
    let mut attributes = submitted["attributes"].as_object().cloned().unwrap_or_default();
    attributes.extend(dropped);
    let mut document = submitted.clone();
    document["attributes"] = attributes.into();
    let is_other = !columns.is_empty();
    (is_other && read_accepted(&document, &job.dataset, &job.profiles, limits).is_ok()).then_some(document)
}
