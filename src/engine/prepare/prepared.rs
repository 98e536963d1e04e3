use std::fmt::Write;
use std::sync::Arc;

use serde_json::Value;

use super::cross_dependencies::ExtendedTable;
use super::known::{JobDependencies, attribute_names};
use super::wording::feasible_bound;
use crate::control::Control;
use crate::engine::sequential::earlier;
use crate::ledger::{
    CandidateRelease, CompositionViolation, DependencyOrigin, EarlierDisclosures, ExclusiveTable, LedgerUnion, NewRule,
    ReleaseDependencies, RuleWeakening, TooManyAttributesError,
};
use crate::microdata::{Attr, AttrSet, AttributeCounts, Table};
use crate::privacy::{Dependency, PrivacyRule, RuleStatus, TableSchema};
use crate::problem::{Fault, Kind};
use crate::publication::{EarlierReleases, Guarantee, UnitGuarantees};
use crate::publish;
use crate::publish::{Design, DesignedRule, DesignedTable, PlanError, PlanInput, PlanRefusal, PlanRows};
use crate::random::RandomStreams;
use crate::spec::{MethodSpec, Specification, values_pointer};

/// A design with the ledger and the dependencies it was made for.
pub(in crate::engine) struct PreparedRelease {
    pub(in crate::engine) design: Design,
    pub(in crate::engine) union: LedgerUnion,
    pub(in crate::engine) dependencies: JobDependencies,
    /// The faults of withdrawals that name no known dependency, or one of the series.
    pub(in crate::engine) misnamed: Vec<Fault>,
}

/// The disclosures of the ledger by the attributes of a job, then those that its dependencies name.
pub(in crate::engine) fn ledger_union(
    specification: &Specification,
    earlier: &EarlierDisclosures,
) -> Result<LedgerUnion, PlanError> {
    let names = [specification.names.as_slice(), &specification.dropped_names].concat();
    let mut union = LedgerUnion::new(&names, earlier).map_err(|TooManyAttributesError(found)| {
        let limit = crate::microdata::MAX_ATTRIBUTES;
        let detail = "the job, the dropped columns that tie its attributes, and the earlier releases of the same data subjects \
                      together have too many attributes";
        PlanRefusal(vec![
            Fault::new("/attributes", Kind::TooManyAttributes, detail).with("limit", limit).with("found", found),
        ])
    })?;
    let closes = specification.method.closed_reason().is_some();
    union.set_exclusions(&specification.excludable, &specification.taxonomies, closes);
    Ok(union)
}

/// Everything besides the specification that a design is planned from.
pub(in crate::engine) struct PrepareInput<'a> {
    /// The counts of single columns.
    pub(in crate::engine) counts: &'a dyn AttributeCounts,
    /// The rows, where they are known.
    pub(in crate::engine) rows: Option<PlanRows<'a>>,
    /// The disclosures and active rules of the ledger.
    pub(in crate::engine) union: LedgerUnion,
    /// The earlier releases that a sequential release is joined with.
    pub(in crate::engine) joined: &'a EarlierReleases,
    /// The dependencies that the adversary is assumed to know.
    pub(in crate::engine) dependencies: JobDependencies,
    /// The columns of the job and of earlier releases, where rows are known.
    pub(in crate::engine) extended: Option<&'a ExtendedTable<'a>>,
    /// Attributes that a repair would drop; none in a release.
    pub(in crate::engine) dropped: AttrSet,
}

/// Plans a specification. The design may be infeasible; a release without proof is planned as the first of its series.
pub(in crate::engine) fn prepare(
    specification: &Specification,
    input: PrepareInput<'_>,
    control: &Control,
) -> Result<PreparedRelease, PlanError> {
    let PrepareInput { counts, rows, mut union, joined, mut dependencies, extended, dropped } = input;
    let recorded = union.series_dependencies(attribute_names(specification).len());
    dependencies.add_recorded(&recorded, rows.map(|rows| rows.table));
    let across = extended.map(|table| table.dependencies(specification, &dependencies));
    let misnamed = across.as_ref().map(|across| dependencies.misnamed(specification, &across.withdrawn));
    let mut misnamed = misnamed.unwrap_or_default();
    misnamed.extend(dependencies.known_to_series(specification, &recorded));
    let mut across = across.unwrap_or_default();
    across.known.retain(|known| !known.dependency.determinant.with(known.dependency.dependent).meets(dropped));
    let own = dependencies.of_job();
    let withdrawn = [dependencies.withdrawn.as_slice(), &across.withdrawn].concat();
    union.assume(ReleaseDependencies { own: &own, across: &across.known, withdrawn: &withdrawn });
    if specification.unproven.is_none() {
        // the verifier knows them, and so must the design
        let attributes = attribute_names(specification).len();
        let is_join = matches!(specification.method, MethodSpec::Sequential(_));
        let hidden = union.hidden_dependencies(attributes, is_join);
        dependencies.add_hidden(&hidden, union.attribute_names().get(attributes..).unwrap_or_default());
    }
    let of_others = across.known.iter().map(|known| known.dependency);
    let all_dependencies: Vec<Dependency> = dependencies.all.iter().copied().chain(of_others).collect();
    let input = DesignInput { specification, counts, rows, joined, union: &union, dependencies: &dependencies };
    let own = AttrSet::first(specification.names.len()).minus(dropped);
    let mut design = input.design(own, &all_dependencies, control).map_err(|error| input.with_origins(error))?;
    if specification.republish.is_some() {
        design.persist().map_err(|fault| PlanRefusal(vec![fault]))?;
    }
    if let Some(table) = extended {
        table.link(&mut union, specification, &design, &all_dependencies, control)?;
    }
    Ok(PreparedRelease { design, union, dependencies, misnamed })
}

/// Everything that a design is made from, once the dependencies are known.
#[derive(Clone, Copy)]
struct DesignInput<'a> {
    specification: &'a Specification,
    counts: &'a dyn AttributeCounts,
    rows: Option<PlanRows<'a>>,
    joined: &'a EarlierReleases,
    union: &'a LedgerUnion,
    dependencies: &'a JobDependencies,
}

impl DesignInput<'_> {
    /// The design; `own` are the attributes that it publishes, `known` all dependencies between these and others.
    fn design(&self, own: AttrSet, known: &[Dependency], control: &Control) -> Result<Design, PlanError> {
        let Self { specification, counts, rows, joined, union, dependencies } = *self;
        if let MethodSpec::Sequential(spec) = &specification.method {
            earlier::joined_by_names(spec.generalized, own, joined, union, known)?;
        }
        let (earlier, active_rules) = binding_disclosures(specification, union);
        let input = PlanInput {
            counts,
            published_names: &specification.published_names,
            names: union.attribute_names(),
            earlier,
            active_rules,
            known: &dependencies.known,
            earlier_releases: Some(joined),
            rows,
        };
        match &specification.schema {
            Some(tables) => Ok(publish::check_proposed(&specification.method, tables, &input)?),
            None => publish::plan(&specification.method, &input, control),
        }
    }

    /// A refusal that says of each dependency by what the series knows it.
    fn with_origins(&self, error: PlanError) -> PlanError {
        match error {
            PlanError::Refused(PlanRefusal(faults)) => {
                let names = self.dependencies.names(self.specification);
                let said = |fault| with_unpublished(with_origin(fault, self.union, &names), self.specification);
                let said = |fault| feasible_bound(said(fault), &self.specification.unit);
                PlanRefusal(faults.into_iter().map(said).collect()).into()
            }
            cancelled @ PlanError::Cancelled(_) => cancelled,
        }
    }
}

/// The fault of a dependency that the job itself does not name, with what knows it and what to do.
fn with_origin(mut fault: Fault, union: &LedgerUnion, names: &[String]) -> Fault {
    let among =
        |all: &[String], name: &Value| all.iter().position(|known| name.as_str() == Some(known)).map(Attr::from);
    let place = |name: &Value| among(names, name).or_else(|| among(union.attribute_names(), name));
    let side = |name: &str| -> Option<AttrSet> {
        fault.members.get("dependency")?.get(name)?.as_array()?.iter().map(place).collect()
    };
    let Some((determinant, dependent)) = side("determinant").zip(side("dependent")) else { return fault };
    let origin = dependent.iter().find_map(|dependent| union.origin_of(&Dependency { determinant, dependent }));
    let (because, release) = match origin {
        None => return fault,
        Some(DependencyOrigin::Recorded(release)) => {
            (format!("release {release} recorded this dependency, and no later release can withdraw it"), Some(release))
        }
        Some(DependencyOrigin::Published(release)) => {
            (format!("release {release} publishes an attribute of this dependency"), Some(release))
        }
        Some(DependencyOrigin::Statement) => ("a statement of the series declares this dependency".to_owned(), None),
    };
    let remedy = match fault.kind {
        // the detail of a join says what to publish
        Kind::BadColumns => "",
        _ => ": leave an attribute that it ties out of the release",
    };
    let _ = write!(fault.detail, "; {because}{remedy}");
    match release {
        Some(release) if !fault.members.contains_key("release") => fault.with("release", release.to_string()),
        _ => fault,
    }
}

/// The fault of a dependency on a column that is not published, which readers do not find among the tables.
fn with_unpublished(mut fault: Fault, specification: &Specification) -> Fault {
    let dependent = fault.members.get("dependency").and_then(|of| of.get("dependent")?.get(0)?.as_str());
    if let Some(name) = dependent.filter(|name| specification.dropped_names.iter().any(|dropped| dropped == name)) {
        let said = format!("; {name} is a column of the dataset that is not published");
        fault.detail.push_str(&said);
    }
    fault
}

/// The disclosures and active rules that a design must respect; none for a release without proof.
fn binding_disclosures<'a>(
    specification: &Specification,
    union: &'a LedgerUnion,
) -> (&'a [TableSchema], &'a [PrivacyRule]) {
    match specification.unproven {
        Some(_) => (&[], &[]),
        None => (&union.schemas, &union.rules),
    }
}

impl PreparedRelease {
    /// Checks the composition of the design with earlier releases.
    pub(in crate::engine) fn compose(&self) -> Result<(), Vec<CompositionViolation>> {
        self.judge_with_ledger(LedgerUnion::check)
    }

    /// The rules of earlier releases that what this one knows breaks, whatever it publishes.
    pub(in crate::engine) fn weakened(&self) -> Vec<RuleWeakening> {
        self.judge_with_ledger(LedgerUnion::newly_weakened)
    }

    fn judge_with_ledger<T>(&self, judge: impl FnOnce(&LedgerUnion, &CandidateRelease<'_>) -> T) -> T {
        let rules: Vec<NewRule> = standing_by_tables(&self.design)
            .map(|rule| NewRule { pointer: rule.pointer.clone(), demand: rule.demand() })
            .collect();
        let why = |table: &DesignedTable| match table.bucketized() {
            Some(bucketized) if bucketized.leaves_out() => Some("would lack some rows"),
            _ if table.stands_alone() => Some(ExclusiveTable::EXCLUSIVE),
            _ => None,
        };
        let tables = self.design.tables.iter().enumerate();
        let exclusive: Vec<ExclusiveTable<'_>> =
            tables.filter_map(|(index, table)| Some(ExclusiveTable { table: index, property: why(table)? })).collect();
        judge(&self.union, &CandidateRelease { tables: &self.design.schemas(), exclusive: &exclusive, rules: &rules })
    }
}

/// The rules that later releases could violate: those that exclusive tables enforce are left out.
///
/// No later table that shares an attribute with an exclusive table is admitted, so none can violate its rules.
pub(in crate::engine) fn standing_by_tables(design: &Design) -> impl Iterator<Item = &DesignedRule> {
    design.rules.iter().filter(|rule| match rule.status {
        RuleStatus::Guardian { table, .. } => !design.tables.get(table).is_some_and(DesignedTable::stands_alone),
        RuleStatus::Unreachable | RuleStatus::Violated(_) => true,
    })
}

/// The faults of a release that cannot be made: those of its withdrawals, then those of its design.
pub(in crate::engine) fn feasible(
    prepared: &PreparedRelease,
    specification: &Specification,
) -> Result<(), PlanRefusal> {
    let mut faults = prepared.misnamed.clone();
    if let Err(PlanRefusal(of_design)) = feasible_design(prepared, specification) {
        faults.extend(of_design);
    }
    if faults.is_empty() { Ok(()) } else { Err(PlanRefusal(faults)) }
}

/// The faults of an infeasible design; faults of values point to the values of the dataset.
pub(super) fn feasible_design(
    PreparedRelease { design, union, dependencies, .. }: &PreparedRelease,
    specification: &Specification,
) -> Result<(), PlanRefusal> {
    let names = dependencies.names(specification);
    let Err(PlanRefusal(faults)) = design.feasible(&names) else { return Ok(()) };
    let faults = faults.into_iter().map(|fault| with_unpublished(with_origin(fault, union, &names), specification));
    let faults = faults.map(|fault| guarantee_per_unit(fault, specification)).collect();
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

/// A fault on rows as a fault on data subjects with several rows.
fn guarantee_per_unit(mut fault: Fault, specification: &Specification) -> Fault {
    let Specification { unit, method, .. } = specification;
    let proven = fault.members.get("proof").and_then(|proof| proof["largest_l"].as_u64());
    if let Some(largest) = proven.filter(|_| unit.rows() > 1) {
        // writing to a text cannot fail
        let _ = write!(fault.detail, "; for each {unit}, l is at most {}", largest / unit.rows());
        return fault;
    }
    let Some(largest) = fault.members.get("largest_l").and_then(Value::as_u64).filter(|_| unit.rows() > 1) else {
        return fault;
    };
    let requested = fault.members.get("requested").and_then(Value::as_str);
    let number = requested.and_then(|requested| requested.parse::<u64>().ok());
    let is_requested = |asked: &Guarantee| match *asked {
        Guarantee::LDiversity { l: bound } | Guarantee::KAnonymity { k: bound } => Some(bound) == number,
        _ => false,
    };
    let rows_asked = method.rules().iter().map(|rule| rule.guarantee).find(is_requested);
    match rows_asked.map(|asked| unit.unit_guarantee(asked, &UnitGuarantees::new())) {
        Some(Guarantee::LDiversity { l }) => {
            let largest = largest / unit.rows();
            let mut fault = fault.with("largest_l", largest).with("requested", l.to_string());
            if fault.kind == Kind::RuleIneligible {
                fault.detail = match largest {
                    0 | 1 => format!(
                        "one value of the sensitive attribute is too frequent for any diversity of each {unit}; l = {l} was asked for"
                    ),
                    _ => format!("the data allows l of at most {largest} for each {unit}; {l} was asked for"),
                };
            }
            fault
        }
        Some(Guarantee::KAnonymity { k }) => {
            let subjects = if largest == 0 { 0 } else { (largest - 1) / unit.rows() + 1 };
            let mut fault = fault.with("largest_l", subjects).with("requested", k.to_string());
            fault.detail =
                format!("the table has {largest} rows, fewer than a class of {k} needs where each is one {unit}");
            fault
        }
        _ => {
            let mut fault = fault.with("largest_l", largest / unit.rows());
            let _ = write!(fault.detail, ", where all rows of one {unit} count as one row");
            fault
        }
    }
}

/// The secret order in which every method sees the rows.
pub(in crate::engine) fn secret_order(table: &Table, streams: &RandomStreams) -> Arc<[u32]> {
    streams.stream("rows").permutation(table.rows() as u32).into()
}
