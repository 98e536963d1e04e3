//! Remedies of the faults that a job meets when it runs.

use super::context::JobContext;
use super::profiles::{ProfileCounts, read_accepted};
use crate::control::Control;
use crate::engine;
use crate::engine::Inspection;
use crate::microdata::Table;
use crate::microdata::formats::IngestLimits;
use crate::ports::JobRecord;
use crate::problem::Problem;
use crate::spec;
use crate::spec::{PeopleChoice, Specification};

impl JobContext {
    /// The problem of a job, with remedies as patches of the document that was submitted. Values are looked up in `table`, which has
    /// the columns of the specification.
    pub(crate) fn with_remedies(
        &self,
        problem: Problem,
        job: &JobRecord,
        table: &Table,
        limits: &IngestLimits,
        control: &Control,
    ) -> Problem {
        let document = &job.specification;
        // the problem is stored, and shows no values
        let of_values = |of: &Specification| engine::faults_of_values(of, table, Inspection::Denied, control);
        let first = of_values(&self.specification).unwrap_or_default();
        let problem = spec::with_remedies(problem, document, |patched| {
            let specification = match read_accepted(patched, &self.dataset, &self.profiles, limits) {
                Ok(specification) => specification,
                Err(faults) => return faults,
            };
            let mut faults = of_values(&specification).unwrap_or_else(|| first.clone());
            if specification.people == PeopleChoice::All {
                let (rows, used) = (self.dataset.rows, specification.used.as_slice());
                faults.extend(engine::check(&specification, &ProfileCounts { rows, profiles: &self.profiles, used }));
            }
            faults
        });
        // whether the method was the document's own or a policy's is not recorded
        spec::in_whole_members(problem, document, None)
    }
}
