//! One release from start to end: plan, publish, write, audit, compose, seal. Used by jobs, plans and the command line.
//! Knows nothing of HTTP, SQL, clocks or the async runtime.

mod attack;
mod beyond;
mod concluding;
mod corruption;
mod crossing;
mod earlier;
mod entered;
mod entropy;
mod exposure;
mod internal;
mod linked;
mod measures;
mod membership;
mod need;
mod plan;
mod profile;
mod proposal;
mod query;
mod release;
mod terrain;
mod verification;
mod verify;
mod write;

use std::fmt::Write;

use serde_json::Value;

use crate::audit::VerifierError;
use crate::control::{Cancelled, Control};
use crate::ledger::{CompositionViolation, EarlierDisclosures, LedgerUnion, TooManyAttributesError};
use crate::microdata::{Attr, AttrSet, AttributeCounts, Table};
use crate::privacy::{self, Dependency, PrivacyRule, RuleDemand, RuleStatus, TableSchema};
use crate::problem::{Fault, Kind, Problem};
use crate::publication::{EarlierReleases, SlicedDiversity, Unit};
use crate::publish::{
    self, Decision, Design, DesignedRule, DesignedTable, PlanError, PlanInput, PlanRefusal, PlanRows,
};
use crate::random::RandomStreams;
use crate::report::{ManifestDependencies, SpecificationNotice};
use crate::spec::reader::child;
use crate::spec::{DeclaredDependency, MethodSpec, Specification, values_pointer};

use beyond::ExtendedTable;

pub use attack::{AttackFinding, AttackFindings, AttackReport};
pub use concluding::inference_attack;
pub use corruption::Corruption;
pub use crossing::negative_association;
pub use earlier::{JoinAttackMeasure, JoinAttackResult, JoinableRelease, against, earlier_of, entered, tuples_of};
pub use entered::{ExternalTableRows, JoinContext, entered_of};
pub use linked::{BucketJoiner, LinkedViewError, labels as bucket_labels, linked_part};
pub use measures::{AchievedMeasures, RecursiveC, TableMeasures};
pub use membership::{MembershipClass, MembershipSummary, TupleCount, membership};
pub use need::{ColumnSize, choice_memory, join_memory, measurement_memory, profile_memory, release_memory};
pub use plan::{ExposedTo, Plan, PlanComposition, PlanProxy, PlanRule, PlanTable};
pub use profile::{AttributeAssociation, DependencyProfile, ExactDependency, ProfiledColumn, SuggestedRole, profile};
pub use query::{ErrorModelName, QueryAnswer, QuerySet};
pub use release::{ReleaseInput, VerifiedRelease, release};
pub use terrain::{annotate, annotate_with_unknown};
pub use verification::{
    BrokenClass, BrokenClasses, ReadFile, ReserveMemory, Verification, VerificationMaterial, VerifiedRule,
    VerifiedTable, attack_tables, read_file, read_published, rules_of, stated_by, stated_with_counterfeits,
    verify_tables,
};
pub use verify::{VerificationInput, verify};
pub use write::PartStore;

/// Why a release did not come about.
#[derive(Debug)]
pub enum EngineError {
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

impl From<Cancelled> for EngineError {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

impl From<PlanRefusal> for EngineError {
    fn from(refusal: PlanRefusal) -> Self {
        Self::Refused(problem_of_faults(refusal.0))
    }
}

impl From<PlanError> for EngineError {
    fn from(unplanned: PlanError) -> Self {
        match unplanned {
            PlanError::Refused(refusal) => refusal.into(),
            PlanError::Cancelled(cancelled) => cancelled.into(),
        }
    }
}

impl From<VerifierError> for EngineError {
    fn from(stopped: VerifierError) -> Self {
        match stopped {
            VerifierError::Cancelled(_) => Self::Cancelled,
            VerifierError::Io(error) => error.into(),
            // what cannot be checked is not published
            VerifierError::TooDense => {
                let detail = "there is too much to be told apart on the join";
                let fault = Fault::new("/method/requirements", Kind::JoinTooDense, detail);
                Self::Refused(Problem::of_faults(vec![fault]))
            }
        }
    }
}

impl From<std::io::Error> for EngineError {
    fn from(error: std::io::Error) -> Self {
        let problem = match error.kind() {
            std::io::ErrorKind::StorageFull => Problem::new(Kind::StorageFull, "the parts could not be written"),
            std::io::ErrorKind::ResourceBusy => {
                Problem::new(Kind::Unavailable, "the parts could not be written or read back now; nothing was released")
            }
            _ => Problem::new(Kind::Internal, "the parts could not be written or read back; nothing was released"),
        };
        Self::Failed { problem, cause: error.to_string() }
    }
}

impl EngineError {
    fn bug(cause: impl Into<String>) -> Self {
        let problem = Problem::new(Kind::Internal, "a check of the service's own work failed; nothing was released");
        Self::Failed { problem, cause: cause.into() }
    }
}

/// The problem of faults. What earlier releases break is no fault of the specification, and stands by itself.
fn problem_of_faults(faults: Vec<Fault>) -> Problem {
    match &faults[..] {
        [Fault { kind: kind @ Kind::PriorReleaseViolates, pointer, detail, .. }] => {
            Problem::new(*kind, detail.clone()).with("pointer", pointer.as_str())
        }
        _ => Problem::of_faults(faults),
    }
}

/// A design together with what the ledger holds.
struct PreparedRelease {
    design: Design,
    union: LedgerUnion,
    dependencies: KnownDependencies,
}

/// What the ledger holds in the attributes of a job, and behind them those that its dependencies name.
fn ledger_union(specification: &Specification, earlier: &EarlierDisclosures) -> Result<LedgerUnion, PlanError> {
    let names = [specification.names.as_slice(), &specification.dropped_names].concat();
    let mut union = LedgerUnion::new(&names, earlier).map_err(|TooManyAttributesError(found)| {
        let limit = crate::microdata::MAX_ATTRIBUTES;
        let detail = "the job and the earlier releases of the same people together have too many attributes";
        PlanRefusal(vec![
            Fault::new("/attributes", Kind::TooManyAttributes, detail).with("limit", limit).with("found", found),
        ])
    })?;
    union.set_aside(&specification.uninformative, &specification.taxonomies);
    Ok(union)
}

/// Plans a specification against counts, rows where they are known, and the ledger. The design may be infeasible. What is to be
/// published without proof is planned as if nothing were published yet.
fn prepare(
    specification: &Specification,
    (counts, rows): (&dyn AttributeCounts, Option<PlanRows<'_>>),
    (mut union, joined): (LedgerUnion, &EarlierReleases),
    dependencies: KnownDependencies,
    wide: Option<&ExtendedTable<'_>>,
    control: &Control,
) -> Result<PreparedRelease, PlanError> {
    let beyond = wide.map_or(Ok(Vec::new()), |wide| wide.dependencies(specification, &dependencies, control))?;
    union.assume(&dependencies.all, &beyond);
    if let MethodSpec::Sequential(spec) = &specification.method {
        let (own, known) = (AttrSet::first(specification.names.len()), [dependencies.all.as_slice(), &beyond].concat());
        earlier::joined_by_names(spec.generalized, own, joined, &union, &known)?;
    }
    let (earlier, standing_rules) = disclosures_beside(specification, &union);
    let input = PlanInput {
        counts,
        published_names: &specification.published_names,
        earlier,
        standing_rules,
        dependencies: &dependencies.all,
        beside: Some(joined),
        rows,
    };
    let design = match &specification.schema {
        Some(tables) => publish::judge_proposed(&specification.method, tables, &input)?,
        None => publish::plan(&specification.method, &input, control)?,
    };
    if let Some(wide) = wide {
        let known = [dependencies.all.as_slice(), &beyond].concat();
        wide.link(&mut union, specification, &design, &known, control)?;
    }
    Ok(PreparedRelease { design, union, dependencies })
}

/// What a design is made beside.
fn disclosures_beside<'a>(
    specification: &Specification,
    union: &'a LedgerUnion,
) -> (&'a [TableSchema], &'a [PrivacyRule]) {
    match specification.unproven {
        Some(_) => (&[], &[]),
        None => (&union.schemas, &union.rules),
    }
}

impl PreparedRelease {
    /// Judges the design beside earlier releases.
    fn compose(&self) -> Result<(), Vec<CompositionViolation>> {
        let rules: Vec<(Option<String>, RuleDemand)> =
            standing_by_tables(&self.design).map(|rule| (rule.pointer.clone(), rule.demand())).collect();
        let why = |table: &DesignedTable| match &table.bucketized {
            Some(bucketized) if bucketized.leaves_out() => Some("would lack some rows"),
            _ if table.stands_alone() => Some("would be unsealed"),
            _ => None,
        };
        let tables = self.design.tables.iter().enumerate();
        let alone: Vec<(usize, &str)> = tables.filter_map(|(index, table)| Some((index, why(table)?))).collect();
        self.union.check(&self.design.schemas(), &alone, &rules)
    }
}

/// The rules that hold by the tables that are published and their seals. What an unsealed table holds, it holds as long as nothing
/// stands beside it: no other table that shares an attribute is admitted, and so none can break it.
fn standing_by_tables(design: &Design) -> impl Iterator<Item = &DesignedRule> {
    design.rules.iter().filter(|rule| match rule.status {
        RuleStatus::Guardian { table, .. } => !design.tables.get(table).is_some_and(DesignedTable::stands_alone),
        RuleStatus::Unreachable | RuleStatus::Violated(_) => true,
    })
}

/// The faults that counts alone can show: rules that the data cannot satisfy.
#[must_use]
pub fn check(specification: &Specification, counts: &dyn AttributeCounts) -> Vec<Fault> {
    let dependencies = KnownDependencies::declared(specification);
    let nothing = EarlierDisclosures::default();
    let prepared = ledger_union(specification, &nothing).and_then(|union| {
        prepare(specification, (counts, None), (union, &nothing.beside), dependencies, None, &Control::default())
    });
    match prepared {
        Err(PlanError::Refused(PlanRefusal(faults))) => faults,
        Err(PlanError::Cancelled(_)) => Vec::new(),
        Ok(prepared) => {
            let feasible = feasible(&prepared.design, specification);
            feasible.err().map_or_else(Vec::new, |PlanRefusal(faults)| faults)
        }
    }
}

/// The faults for which nothing is published; where values have to be looked at, they say where.
fn feasible(design: &Design, specification: &Specification) -> Result<(), PlanRefusal> {
    let Err(PlanRefusal(faults)) = design.feasible(&attribute_names(specification)) else { return Ok(()) };
    let faults = faults.into_iter().map(|fault| guarantee_per_unit(fault, &specification.unit)).collect();
    let MethodSpec::Bucketize(spec) = &specification.method else { return Err(PlanRefusal(faults)) };
    let Some(attr) = spec.rule.protects.attributes().iter().next() else { return Err(PlanRefusal(faults)) };
    let dataset = specification.normalized.get("dataset").and_then(Value::as_str);
    let shown = |fault: Fault| match fault.kind {
        Kind::ThresholdMissing | Kind::RuleIneligible => {
            values_pointer(fault, &specification.names[attr.index()], dataset)
        }
        _ => fault,
    };
    Err(PlanRefusal(faults.into_iter().map(shown).collect()))
}

/// A fault of rows as one of persons, of whom a table has several.
fn guarantee_per_unit(fault: Fault, unit: &Unit) -> Fault {
    let rows = unit.rows();
    let Some(largest) = fault.members.get("largest_l").and_then(Value::as_u64).filter(|_| rows > 1) else {
        return fault;
    };
    let asked = fault.members.get("requested").and_then(Value::as_str).and_then(|asked| asked.parse::<u64>().ok());
    let mut fault = fault.with("largest_l", largest / rows);
    if let Some(asked) = asked {
        fault = fault.with("requested", (asked / rows).to_string());
    }
    let _ = write!(fault.detail, "; this is of rows, of which one {unit} counts as one");
    fault
}

/// The published names of the attributes, and behind them the names of dropped ones that dependencies name.
fn attribute_names(specification: &Specification) -> Vec<String> {
    specification.published_names.iter().chain(&specification.dropped_names).cloned().collect()
}

/// The dependencies that the adversary is taken to know.
#[derive(Clone, Default)]
struct KnownDependencies {
    /// Declared ones first.
    all: Vec<Dependency>,
    /// How many of them are declared.
    declared: usize,
}

impl KnownDependencies {
    fn declared(specification: &Specification) -> Self {
        let single = |stated: &DeclaredDependency| {
            let DeclaredDependency { determinant, dependent } = *stated;
            dependent.iter().map(move |dependent| Dependency { determinant, dependent }).collect::<Vec<_>>()
        };
        let all: Vec<Dependency> = specification.method.declared().iter().flat_map(single).collect();
        Self { declared: all.len(), all }
    }

    /// Declared ones, and those that hold in the data, but for those that are assumed unknown.
    fn of(specification: &Specification, table: &Table, control: &Control) -> Result<Self, Cancelled> {
        let mut known = Self::declared(specification);
        let unknown = |found: &Dependency| {
            let stated = specification.method.assumed_unknown();
            stated.iter().any(|(d, _)| d.determinant == found.determinant && d.dependent.contains(found.dependent))
        };
        for found in privacy::discover_dependencies(table, control)? {
            if !known.all.contains(&found) && !unknown(&found) {
                known.all.push(found);
            }
        }
        Ok(known)
    }

    /// As they stand in plans and manifests: of those that were discovered only the ones that changed a rule.
    fn in_json(&self, relied_on: &[Dependency], specification: &Specification) -> ManifestDependencies {
        let names = attribute_names(specification);
        let named = |set: AttrSet| set.iter().map(|attr| names[attr.index()].as_str()).collect::<Vec<_>>();
        let stated = |d: &DeclaredDependency| serde_json::json!({ "determinant": named(d.determinant), "dependent": named(d.dependent) });
        let found = |d: &Dependency| serde_json::json!({ "determinant": named(d.determinant), "dependent": named(AttrSet::one(d.dependent)) });
        ManifestDependencies {
            declared: specification.method.declared().iter().map(stated).collect(),
            discovered: self.all[self.declared..].iter().filter(|d| relied_on.contains(d)).map(found).collect(),
            assumed_unknown: specification
                .method
                .assumed_unknown()
                .iter()
                .map(|(dependency, reason)| {
                    let mut written = stated(dependency);
                    written["reason"] = reason.as_str().into();
                    written
                })
                .collect(),
        }
    }

    /// What a reader should know where rules hold in spite of dependencies.
    fn notices(&self, relied_on: &[Dependency]) -> Option<SpecificationNotice> {
        (self.declared > 0 || !relied_on.is_empty()).then(|| SpecificationNotice {
            r#type: "dependency-necessary-only".to_owned(),
            pointer: None,
            detail:
                "what determines a protected attribute is protected too; that is necessary, and no proof that nothing \
                     else follows from the dependencies"
                    .to_owned(),
        })
    }
}

/// The dry run of a table; `further` are the columns that earlier releases have and it has not. `faults` are those of the specification itself;
/// with any of them a job is refused. What looks at the data sees
/// buckets drawn from `streams`, which are not those of any job.
///
/// # Errors
/// [`EngineError::Refused`] when the specification cannot even be planned.
pub fn dry_run(
    specification: &Specification,
    (table, further): (&Table, Option<&Table>),
    streams: &RandomStreams,
    earlier: &EarlierDisclosures,
    faults: Vec<Fault>,
    control: &Control,
) -> Result<Plan, EngineError> {
    let dependencies = KnownDependencies::of(specification, table, control)?;
    let permuted = table.reordered(&secret_order(table, streams));
    let (permuted, strange) = annotate(specification, permuted);
    let mut faults = annotate_with_unknown(faults, strange);
    let rows = Some(PlanRows { table: &permuted, streams });
    let union = ledger_union(specification, earlier).map_err(EngineError::from)?;
    let wide = ExtendedTable::of(specification, table, further, &union);
    let prepared =
        prepare(specification, (&permuted, rows), (union, &earlier.beside), dependencies, Some(&wide), control);
    let prepared = plan_or_refuse(prepared, &mut faults)?;
    let mut plan = assess(specification, earlier, &prepared, faults, Vec::new());
    plan.warnings.extend(undeclared(specification, &permuted));
    plan.warnings.extend(plan::unknown_values_of_rules(specification, &permuted));
    exposure::add_exposure(&mut plan, &prepared.design, &permuted, &specification.published_names, control)?;
    Ok(plan)
}

/// The same from the counts of single columns, for a job that is refused with `problem` before its table is looked at.
///
/// # Errors
/// As [`dry_run`].
pub fn dry_run_from_counts(
    specification: &Specification,
    counts: &dyn AttributeCounts,
    earlier: &EarlierDisclosures,
    mut faults: Vec<Fault>,
    problem: &Problem,
) -> Result<Plan, EngineError> {
    let (dependencies, control) = (KnownDependencies::declared(specification), Control::default());
    let union = ledger_union(specification, earlier).map_err(EngineError::from)?;
    let prepared = prepare(specification, (counts, None), (union, &earlier.beside), dependencies, None, &control);
    let prepared = plan_or_refuse(prepared, &mut faults)?;
    Ok(assess(specification, earlier, &prepared, faults, vec![problem.to_json("about:blank")]))
}

fn plan_or_refuse(
    prepared: Result<PreparedRelease, PlanError>,
    faults: &mut Vec<Fault>,
) -> Result<PreparedRelease, EngineError> {
    prepared.map_err(|unplanned| match unplanned {
        PlanError::Refused(PlanRefusal(more)) => {
            // of a document that was read in part, what is missing for the method may be what could not be read
            let is_read = faults.is_empty();
            let missing = |fault: &Fault| matches!(fault.kind, Kind::BadColumns | Kind::EmptyTable);
            faults.extend(more.into_iter().filter(|fault| is_read || !missing(fault)));
            PlanRefusal(std::mem::take(faults)).into()
        }
        PlanError::Cancelled(cancelled) => cancelled.into(),
    })
}

/// The secret order of the rows in which every method sees them.
fn secret_order(table: &Table, streams: &RandomStreams) -> Vec<u32> {
    streams.stream("rows").permutation(table.rows() as u32)
}

/// The plan of a design with everything that stands in its way.
fn assess(
    specification: &Specification,
    earlier: &EarlierDisclosures,
    prepared: &PreparedRelease,
    mut faults: Vec<Fault>,
    mut problems: Vec<Value>,
) -> Plan {
    if let Err(PlanRefusal(ineligible)) = feasible(&prepared.design, specification) {
        faults.extend(ineligible);
    }
    faults.extend(proposal::violations(&prepared.design, &attribute_names(specification)));
    if !faults.is_empty() {
        problems.push(Problem::of_faults(faults).to_json("about:blank"));
    }
    let mut against: Vec<uuid::Uuid> = earlier.disclosures.iter().map(|(release, _)| *release).collect();
    against.dedup();
    let mut composition = PlanComposition { verdict: "safe".to_owned(), against, ..PlanComposition::default() };
    if prepared.design.tables.is_empty() && prepared.design.decision != Decision::ByRules {
        composition.verdict = "undecidable".to_owned();
    } else if let Err(violations) = prepared.compose() {
        composition.verdict = "violated".to_owned();
        composition.violations = violations.iter().map(violation_in_json).collect();
        if specification.unproven.is_none() {
            problems.push(composition_problem(&violations).to_json("about:blank"));
        }
    }
    let relied_on = &prepared.design.relied_on;
    let mut warnings = notices_of(specification);
    warnings.extend(prepared.dependencies.notices(relied_on));
    warnings.extend(proposal::redundant_tables(specification, &prepared.design, &prepared.union));
    warnings.extend(plan::describe_unbounded(&prepared.design, &specification.published_names));
    warnings.extend(plan::describe_choice(&specification.method, &prepared.design.decision));
    warnings.extend(prepared.design.planned().filter_map(plan::describe_unknown_values));
    warnings.extend(prepared.design.planned().filter_map(plan::describe_inference));
    Plan {
        dependencies: prepared.dependencies.in_json(relied_on, specification),
        ..plan::to_report(&prepared.design, specification, composition, problems, warnings)
    }
}

/// The remarks of a specification, for the one who plans.
fn notices_of(specification: &Specification) -> Vec<SpecificationNotice> {
    let warning = |warning: &crate::spec::SpecWarning| SpecificationNotice {
        r#type: warning.type_.to_owned(),
        pointer: warning.pointer.clone(),
        detail: warning.detail.clone(),
    };
    specification.warnings.iter().map(warning).chain(exclusive_by_choice(specification)).collect()
}

/// What the choice of a mixture, or of columns that share attributes, means: for the one who plans, and for readers.
fn exclusive_by_choice(specification: &Specification) -> Option<SpecificationNotice> {
    let MethodSpec::Slicing(spec) = &specification.method else { return None };
    let notice = |name: &str, pointer: &str, detail: &str| {
        Some(SpecificationNotice {
            r#type: name.to_owned(),
            pointer: Some(pointer.to_owned()),
            detail: detail.to_owned(),
        })
    };
    if spec.diversity != SlicedDiversity::Bucket {
        let detail = "the guarantee holds over all buckets that a row may stand in: a bucket by itself may show more, and nothing else may be \
                      published of the same people that shares an attribute";
        return notice("diversity-by-mixture", "/method/diversity", detail);
    }
    let detail = "columns share attributes: what they say together is bounded as long as nothing else ties their rows, so that nothing else \
                  may be published of the same people that shares an attribute";
    spec.overlaps().then(|| notice("columns-share-attributes", "/method/columns/explicit", detail)).flatten()
}

fn violation_in_json(violation: &CompositionViolation) -> Value {
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
fn composition_problem(violations: &[CompositionViolation]) -> Problem {
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

/// The method's name and algorithm, and what the adversary is taken not to do, as a manifest states them.
fn method_name(method: &MethodSpec, decision: &Decision) -> crate::report::MethodName {
    let (name, algorithm) = match method {
        MethodSpec::Versatile(spec) => ("versatile", Some(spec.algorithm.word().to_owned())),
        MethodSpec::Anatomy(_) => ("anatomy", None),
        MethodSpec::Bucketize(_) => ("bucketize", None),
        MethodSpec::Decompose(_) => ("decompose", None),
        MethodSpec::Generalize(_) => ("generalize", None),
        MethodSpec::Sequential(_) => ("sequential", None),
        MethodSpec::Slicing(_) => ("slicing", None),
    };
    let adversary = matches!(decision, Decision::ByData(_)).then(|| "without minimality".to_owned());
    crate::report::MethodName { r#type: name.to_owned(), algorithm, adversary }
}

/// What the one who plans should know of values that may tell nothing: a missing value of a protected attribute protects its rows
/// from nobody who knows that there is one.
fn undeclared(specification: &Specification, table: &Table) -> Vec<SpecificationNotice> {
    // thresholds reckon with nobody who rules values out
    if matches!(specification.method, MethodSpec::Bucketize(_)) {
        return Vec::new();
    }
    let rules = specification.method.rules();
    let protected = rules.iter().fold(AttrSet::EMPTY, |all, rule| all.union(rule.protects.attributes()));
    let declared = |attr| {
        let stated = specification.uninformative.iter().find(|stated| stated.attribute == attr);
        stated.is_some_and(|stated| stated.values.contains(&None))
    };
    let missing = protected.iter().filter(|&attr| table.column(attr).domain.has_missing() && !declared(attr));
    let notice = |attr: Attr| {
        let name = &specification.names[attr.index()];
        SpecificationNotice {
            r#type: "undeclared-missing".to_owned(),
            pointer: Some(child("/attributes", name)),
            detail: format!(
                "missing values of {name} count like any other: where insiders can rule them out, state them as uninformative, as null"
            ),
        }
    };
    missing.map(notice).collect()
}
