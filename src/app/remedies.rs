//! Remedies of the faults of job documents, tried on a blocking thread.

use serde_json::Value;

use super::blocking::run_blocking;
use crate::inputs::{ProfileCounts, column_facts};
use crate::microdata::ColumnProfile;
use crate::microdata::formats::IngestLimits;
use crate::ports::DatasetRecord;
use crate::problem::{Kind, Problem};
use crate::spec::{DatasetSchema, DocumentSource, ParsedDocument, PeopleChoice, read, with_remedies};
use crate::{engine, problem};

/// A document with faults, and what it is read against.
pub(super) struct FaultyDocument {
    pub(super) sent: Value,
    /// Written out with its policy, taxonomies and releases; `None` if it is as it was sent.
    pub(super) expanded: Option<Value>,
    pub(super) origin: DocumentSource,
    pub(super) dataset: DatasetRecord,
    pub(super) profiles: Vec<ColumnProfile>,
}

impl FaultyDocument {
    /// The problem with remedies; on a blocking thread.
    fn with_remedies(&self, problem: Problem, limits: &IngestLimits) -> Problem {
        let Self { dataset, profiles, origin, .. } = self;
        let facts = column_facts(dataset.rows, profiles, limits);
        let (keys, unit) = (dataset.key_columns(), dataset.unit());
        let schema = DatasetSchema { columns: &facts, keys: &keys, unit: &unit };
        with_remedies(problem, &self.sent, |patched| {
            let expanded = self.expanded(patched);
            let reading = read(expanded.as_ref().unwrap_or(patched), &schema, *origin);
            let ParsedDocument { specification, mut faults } = reading;
            if let Some(specification) = specification.filter(|of| of.people == PeopleChoice::All) {
                let counts = ProfileCounts { rows: dataset.rows, profiles, used: &specification.used };
                faults.extend(engine::check(&specification, &counts));
            }
            faults
        })
    }

    /// The document as it is read once it is sent with changes: a member that was changed stands for what it was written
    /// out to.
    fn expanded(&self, patched: &Value) -> Option<Value> {
        let mut expanded = self.expanded.clone()?;
        let (Some(members), Some(sent)) = (patched.as_object(), self.sent.as_object()) else { return Some(expanded) };
        for (name, value) in members.iter().filter(|(name, value)| sent.get(*name) != Some(*value)) {
            expanded[name] = value.clone();
        }
        let removed = sent.keys().filter(|name| !members.contains_key(*name));
        removed.for_each(|name| drop(expanded.as_object_mut().and_then(|written| written.remove(name))));
        Some(expanded)
    }
}

/// The problem with remedies of its faults.
pub(super) async fn remedied(document: FaultyDocument, problem: Problem, limits: &IngestLimits) -> Problem {
    if problem.errors.is_empty() {
        return problem;
    }
    let (limits, unmended) = (limits.clone(), problem.clone());
    let work = move |_: &_| document.with_remedies(problem, &limits);
    run_blocking("the search for remedies", work).await.unwrap_or(unmended)
}

/// The problems of a plan, with remedies of the faults that they list.
pub(super) async fn mended(document: FaultyDocument, problems: Vec<Value>, limits: &IngestLimits) -> Vec<Value> {
    let is_of_faults = |listed: &Value| listed["type"] == Kind::InvalidSpecification.uri();
    if !problems.iter().any(is_of_faults) {
        return problems;
    }
    let (limits, unmended) = (limits.clone(), problems.clone());
    let work = move |_: &_| {
        let mend = |listed: Value| match problem::faults_of(&listed).filter(|_| is_of_faults(&listed)) {
            Some(faults) => document.with_remedies(Problem::of_faults(faults), &limits).to_json("about:blank"),
            None => listed,
        };
        problems.into_iter().map(mend).collect()
    };
    run_blocking("the search for remedies", work).await.unwrap_or(unmended)
}
