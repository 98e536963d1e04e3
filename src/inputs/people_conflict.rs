//! Why nothing can be published of the people of a dataset, as callers see it.

use serde_json::Value;

use super::context::JobContext;
use crate::people::{
    Coverage, CoverageId, JudgedRows, LiveCoverage, PeopleRefusal, PersonCounts, RefusalDocument, RefusedJob,
};
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
        rows: &JudgedRows<'_>,
        live: &[LiveCoverage],
        job: &JobContext,
    ) -> Self {
        let (kind, met): (Kind, &[CoverageId]) = match &refusal {
            PeopleRefusal::StatementContradicted { coverages, .. } => (Kind::StatementContradicted, coverages),
            PeopleRefusal::PopulationUndeclared { coverages } => (Kind::PopulationUndeclared, coverages),
            PeopleRefusal::PeopleUnknown { coverages } => (Kind::PeopleUnknown, coverages),
            PeopleRefusal::OverlappingPeople { coverages, .. } => (Kind::OverlappingPeople, coverages),
            PeopleRefusal::PeopleAlike { coverages, .. } => (Kind::PeopleAlike, coverages),
            PeopleRefusal::EverybodyPublished => (Kind::NoNewPeople, &[]),
        };
        let met = live.iter().filter(|live| met.contains(&live.id));
        let coverages: Vec<(CoverageId, Coverage)> = met.map(|live| (live.id, live.coverage.clone())).collect();
        let mut submitted = job.specification.normalized.clone();
        submitted["dataset"] = job.dataset.id.to_string().into();
        let refused = RefusedJob {
            dataset: rows.dataset,
            population: rows.population,
            job: &submitted,
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
