//! Remedies of the faults of documents, tried on a blocking thread.

use serde_json::Value;

use super::blocking::run_blocking;
use crate::control::Control;
use crate::engine::Inspection;
use crate::inputs::{ProfileCounts, column_facts};
use crate::microdata::formats::IngestLimits;
use crate::microdata::{ColumnProfile, Table};
use crate::ports::DatasetRecord;
use crate::problem::{Fault, Kind, Problem};
use crate::spec::{
    DatasetSchema, DocumentSource, ParsedDocument, PeopleChoice, Specification, in_whole_members, read, with_remedies,
};
use crate::{engine, problem};

/// A job document with faults, and what it is read against.
#[derive(Clone)]
pub(super) struct FaultyDocument {
    pub(super) sent: Value,
    /// Written out with its policy, taxonomies and releases; `None` if it is as it was sent.
    pub(super) expanded: Option<Value>,
    pub(super) origin: DocumentSource,
    pub(super) dataset: DatasetRecord,
    pub(super) profiles: Vec<ColumnProfile>,
    pub(super) limits: IngestLimits,
}

impl FaultyDocument {
    /// The problem with remedies; on a blocking thread. Values are looked up in `table`, where it is loaded.
    pub(super) fn with_remedies(&self, problem: Problem, table: Option<(&Table, &Control)>) -> Problem {
        let of_values = |specification: &Specification| {
            let (table, control) = table?;
            engine::faults_of_values(specification, table, Inspection::Allowed, control)
        };
        let first = self.reading(&self.sent).specification.as_ref().and_then(of_values).unwrap_or_default();
        // the engine knows the document written out
        let problem = match self.expanded.as_ref().filter(|_| !self.sent["policy"].is_null()) {
            Some(expanded) => in_whole_members(problem, expanded, Some(&self.sent)),
            None => problem,
        };
        with_remedies(problem, &self.sent, |patched| {
            let ParsedDocument { specification, mut faults } = self.reading(patched);
            if let Some(specification) = specification.filter(|of| of.people == PeopleChoice::All) {
                let (rows, used) = (self.dataset.rows, specification.used.as_slice());
                faults.extend(engine::check(&specification, &ProfileCounts { rows, profiles: &self.profiles, used }));
                faults.extend(of_values(&specification).unwrap_or_else(|| first.clone()));
            }
            faults
        })
    }

    /// A document as it is read in place of the one that was sent.
    fn reading(&self, patched: &Value) -> ParsedDocument {
        let Self { dataset, profiles, origin, limits, .. } = self;
        let facts = column_facts(dataset.rows, profiles, limits);
        let (keys, unit) = (dataset.key_columns(), dataset.unit());
        let schema = DatasetSchema { columns: &facts, keys: &keys, unit: &unit };
        read(self.expanded(patched).as_ref().unwrap_or(patched), &schema, *origin)
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

    /// The problems of a plan, with remedies of the faults that they list; on a blocking thread.
    pub(super) fn mended(&self, problems: Vec<Value>, table: Option<(&Table, &Control)>) -> Vec<Value> {
        let is_of_faults = |listed: &Value| listed["type"] == Kind::InvalidSpecification.uri();
        let mend = |listed: Value| match problem::faults_of(&listed).filter(|_| is_of_faults(&listed)) {
            Some(faults) => {
                let problem = self.with_remedies(Problem::of_faults(faults), table);
                // those that are not listed are counted all the same
                let unlisted = listed.get("others").cloned();
                unlisted
                    .into_iter()
                    .fold(problem, |problem, others| problem.with("others", others))
                    .to_json("about:blank")
            }
            None => listed,
        };
        problems.into_iter().map(mend).collect()
    }
}

/// The problem with remedies of its faults.
pub(super) async fn remedied(document: FaultyDocument, problem: Problem) -> Problem {
    if problem.errors.is_empty() {
        return problem;
    }
    let unmended = problem.clone();
    let work = move |_: &_| document.with_remedies(problem, None);
    run_blocking("the search for remedies", work).await.unwrap_or(unmended)
}

/// The problem of a document with remedies; `read` gives the faults of another document.
pub(super) async fn mended_by(
    problem: Problem,
    document: &Value,
    read: impl Fn(&Value) -> Vec<Fault> + Send + 'static,
) -> Problem {
    let (document, unmended) = (document.clone(), problem.clone());
    let work = move |_: &_| with_remedies(problem, &document, read);
    run_blocking("the search for remedies", work).await.unwrap_or(unmended)
}

/// What a request says, or the problem that it does not, with remedies of its faults.
///
/// # Errors
/// The problem of the faults that `read` finds.
pub(crate) async fn read_request<T>(
    document: &Value,
    read: impl Fn(&Value) -> Result<T, Vec<Fault>> + Send + 'static,
) -> Result<T, Problem> {
    match read(document) {
        Ok(request) => Ok(request),
        Err(faults) => {
            let faults_of = move |other: &Value| read(other).err().unwrap_or_default();
            Err(mended_by(Problem::of_faults(faults), document, faults_of).await)
        }
    }
}
