//! One release from start to end: plan, publish, write, audit, compose, seal. Used by jobs, plans and the command line.
//! Knows nothing of HTTP, SQL, clocks or the async runtime.

mod need;
mod plan;
mod release;
mod verify;
mod write;

use serde_json::Value;

use crate::control::{Cancelled, Control};
use crate::ledger::{Earlier, TooManyAttributes, Union, Violation};
use crate::microdata::{AttrSet, Counts, Table};
use crate::privacy::{self, Effect, Rule};
use crate::problem::{Fault, Kind, Problem};
use crate::publish::{self, Design, DesignedRule, Input, Refusal};
use crate::report::Notice;
use crate::spec::{MethodSpec, Specification};

pub use need::{ColumnSize, memory};
pub use plan::{Composition, Plan, PlanRule, PlanTable};
pub use release::{Order, Released, release};
pub use verify::{Claim, verify};
pub use write::PartStore;

/// Why a release did not come about.
#[derive(Debug)]
pub enum Stopped {
    /// It was told to stop.
    Cancelled,
    /// The caller's answer.
    Refused(Problem),
    /// A bug or a failing disk: nothing was released. The cause is for the log.
    Failed {
        /// What the caller sees.
        problem: Problem,
        /// What the operator sees; no value of the data.
        cause: String,
    },
}

impl From<Cancelled> for Stopped {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

impl From<Refusal> for Stopped {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(Problem::of_faults(refusal.0))
    }
}

impl From<std::io::Error> for Stopped {
    fn from(error: std::io::Error) -> Self {
        let problem = match error.kind() {
            std::io::ErrorKind::StorageFull => Problem::new(Kind::StorageFull, "the parts could not be written"),
            _ => Problem::new(Kind::Internal, "the parts could not be written or read back; nothing was released"),
        };
        Self::Failed { problem, cause: error.to_string() }
    }
}

impl Stopped {
    fn bug(cause: impl Into<String>) -> Self {
        let problem = Problem::new(Kind::Internal, "a check of the service's own work failed; nothing was released");
        Self::Failed { problem, cause: cause.into() }
    }
}

/// A design together with what the ledger holds.
struct Prepared {
    design: Design,
    union: Union,
}

/// Plans a specification against counts and the ledger. The design may be infeasible.
fn prepare(specification: &Specification, counts: &dyn Counts, earlier: &Earlier) -> Result<Prepared, Refusal> {
    let union = Union::new(&specification.names, earlier).map_err(|TooManyAttributes(found)| {
        let limit = crate::microdata::MAX_ATTRIBUTES;
        let detail = "the job and the earlier releases of the same dataset together have too many attributes";
        Refusal(vec![
            Fault::new("/attributes", Kind::TooManyAttributes, detail).with("limit", limit).with("found", found),
        ])
    })?;
    let input = Input {
        counts,
        published_names: &specification.published_names,
        earlier: &union.schemas,
        standing_rules: &union.rules,
    };
    let design = publish::plan(&specification.method, &input)?;
    Ok(Prepared { design, union })
}

impl Prepared {
    /// Judges the design beside earlier releases.
    fn compose(&self) -> Result<(), Vec<Violation>> {
        let rules: Vec<(String, Rule)> =
            self.design.rules.iter().map(|rule| (rule.submitted.pointer.clone(), rule.rule)).collect();
        self.union.check(&self.design.schemas(), &rules)
    }
}

/// The faults that counts alone can show: rules that the data cannot satisfy.
#[must_use]
pub fn check(specification: &Specification, counts: &dyn Counts) -> Vec<Fault> {
    match prepare(specification, counts, &Earlier::default()) {
        Err(Refusal(faults)) => faults,
        Ok(prepared) => prepared.design.feasible().err().map_or_else(Vec::new, |Refusal(faults)| faults),
    }
}

/// The faults that dependencies in the data make of rules. What they would add to the rules is not enforced by this version,
/// so a release that needs it is refused.
fn dependency_faults(
    design: &Design,
    names: &[String],
    table: &Table,
    control: &Control,
) -> Result<Vec<Fault>, Cancelled> {
    let dependencies = privacy::discover_dependencies(table, control)?;
    let rules: Vec<Rule> = design.rules.iter().map(|rule| rule.rule).collect();
    let fault = |designed: &DesignedRule| {
        let effect = privacy::effect_of_dependencies(&designed.rule, &rules, &dependencies)?;
        let (Effect::Impossible(dependency) | Effect::Unprotected(dependency)) = effect;
        let named = |set: AttrSet| set.iter().map(|attr| names[attr.index()].as_str()).collect::<Vec<_>>();
        let (determinant, dependent) = (named(dependency.determinant), named(AttrSet::one(dependency.dependent)));
        let (kind, detail) = match effect {
            Effect::Impossible(_) => {
                (Kind::RuleImpossible, "the known attributes determine the sensitive one in the data".to_owned())
            }
            Effect::Unprotected(_) => (
                Kind::GuaranteeUnsupported,
                format!(
                    "in the data {} determines {}; drop one side, or protect the determinant by a rule of its own",
                    determinant.join(", "),
                    dependent.join(", ")
                ),
            ),
        };
        let member = serde_json::json!({ "determinant": determinant, "dependent": dependent });
        Some(Fault::new(&designed.submitted.pointer, kind, detail).with("dependency", member))
    };
    Ok(design.rules.iter().filter_map(fault).collect())
}

/// The dry run. `faults` are those of the specification itself; with any of them a job is refused.
///
/// # Errors
/// [`Stopped::Refused`] when the specification cannot even be planned.
pub fn dry_run(
    specification: &Specification,
    table: &Table,
    earlier: &Earlier,
    mut faults: Vec<Fault>,
    control: &Control,
) -> Result<Plan, Stopped> {
    let prepared = plan_or_refuse(specification, table, earlier, &mut faults)?;
    faults.extend(dependency_faults(&prepared.design, &specification.published_names, table, control)?);
    Ok(judged(specification, earlier, &prepared, faults, Vec::new()))
}

/// The same from the counts of single columns, for a job that is refused with `problem` before its table is looked at.
///
/// # Errors
/// As [`dry_run`].
pub fn dry_run_from_counts(
    specification: &Specification,
    counts: &dyn Counts,
    earlier: &Earlier,
    mut faults: Vec<Fault>,
    problem: &Problem,
) -> Result<Plan, Stopped> {
    let prepared = plan_or_refuse(specification, counts, earlier, &mut faults)?;
    Ok(judged(specification, earlier, &prepared, faults, vec![problem.to_json("about:blank")]))
}

fn plan_or_refuse(
    specification: &Specification,
    counts: &dyn Counts,
    earlier: &Earlier,
    faults: &mut Vec<Fault>,
) -> Result<Prepared, Stopped> {
    prepare(specification, counts, earlier).map_err(|Refusal(more)| {
        faults.extend(more);
        Refusal(std::mem::take(faults)).into()
    })
}

/// The plan of a design with everything that stands in its way.
fn judged(
    specification: &Specification,
    earlier: &Earlier,
    prepared: &Prepared,
    mut faults: Vec<Fault>,
    mut problems: Vec<Value>,
) -> Plan {
    if let Err(Refusal(ineligible)) = prepared.design.feasible() {
        faults.extend(ineligible);
    }
    if !faults.is_empty() {
        problems.push(Problem::of_faults(faults).to_json("about:blank"));
    }
    let mut against: Vec<uuid::Uuid> = earlier.disclosures.iter().map(|(release, _)| *release).collect();
    against.dedup();
    let mut composition = Composition { verdict: "safe".to_owned(), against, ..Composition::default() };
    if let Err(violations) = prepared.compose() {
        composition.verdict = "violated".to_owned();
        composition.violations = violations.iter().map(violation_in_json).collect();
        problems.push(composition_problem(&violations).to_json("about:blank"));
    }
    plan::in_words(&prepared.design, &specification.published_names, composition, problems, notices_of(specification))
}

/// The remarks of a specification, for the one who plans.
fn notices_of(specification: &Specification) -> Vec<Notice> {
    let warning = |warning: &crate::spec::SpecWarning| Notice {
        r#type: warning.type_.to_owned(),
        pointer: warning.pointer.clone(),
        detail: warning.detail.clone(),
    };
    specification.warnings.iter().map(warning).collect()
}

fn violation_in_json(violation: &Violation) -> Value {
    let step = |(release, table, via): &(Option<uuid::Uuid>, String, Vec<String>)| serde_json::json!({ "release": release, "table": table, "via": via });
    serde_json::json!({
        "rule": { "release": violation.rule.0, "pointer": violation.rule.1 },
        "release": violation.release,
        "path": violation.path.iter().map(step).collect::<Vec<_>>(),
        "detail": violation.detail,
    })
}

/// The refusal of a release that breaks a rule together with earlier ones. Names the first violation, as the contract has
/// it, and lists all.
fn composition_problem(violations: &[Violation]) -> Problem {
    let all: Vec<Value> = violations.iter().map(violation_in_json).collect();
    let detail = violations.first().map_or_else(String::new, |violation| violation.detail.clone());
    let mut problem = Problem::new(Kind::CompositionViolated, detail);
    if let Some(Value::Object(first)) = all.first() {
        for member in ["rule", "release", "path"] {
            problem = problem.with(member, first.get(member).cloned().unwrap_or(Value::Null));
        }
    }
    problem.with("violations", all)
}

/// The method's name and algorithm, as a manifest states them.
fn method_name(method: &MethodSpec) -> crate::report::MethodName {
    let (name, algorithm) = match method {
        MethodSpec::Versatile(_) => ("versatile", Some("uad".to_owned())),
        MethodSpec::Anatomy(_) => ("anatomy", None),
    };
    crate::report::MethodName { r#type: name.to_owned(), algorithm }
}
