use std::fmt::Write;

use serde_json::Value;

use super::cross_dependencies::ExtendedTable;
use super::known::{JobDependencies, attribute_names};
use crate::control::Control;
use crate::engine::sequential::earlier;
use crate::ledger::{
    CompositionViolation, EarlierDisclosures, ExclusiveTable, LedgerUnion, NewRelease, NewRule, ReleaseDependencies,
    TooManyAttributesError, WeakenedRule,
};
use crate::microdata::{AttrSet, AttributeCounts, Table};
use crate::privacy::{Dependency, PrivacyRule, RuleStatus, TableSchema};
use crate::problem::{Fault, Kind};
use crate::publication::{EarlierReleases, Unit};
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
        let detail = "the job and the earlier releases of the same data subjects together have too many attributes";
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
    let of_others = across.known.iter().map(|known| known.dependency);
    let all_dependencies: Vec<Dependency> = dependencies.all.iter().copied().chain(of_others).collect();
    if let MethodSpec::Sequential(spec) = &specification.method {
        let own = AttrSet::first(specification.names.len()).minus(dropped);
        earlier::joined_by_names(spec.generalized, own, joined, &union, &all_dependencies)?;
    }
    let (earlier, active_rules) = binding_disclosures(specification, &union);
    let input = PlanInput {
        counts,
        published_names: &specification.published_names,
        earlier,
        active_rules,
        known: &dependencies.known,
        earlier_releases: Some(joined),
        rows,
    };
    let design = match &specification.schema {
        Some(tables) => publish::check_proposed(&specification.method, tables, &input)?,
        None => publish::plan(&specification.method, &input, control)?,
    };
    if let Some(table) = extended {
        table.link(&mut union, specification, &design, &all_dependencies, control)?;
    }
    Ok(PreparedRelease { design, union, dependencies, misnamed })
}

/// The disclosures and active rules that a design must respect; none for a release without proof.
pub(in crate::engine) fn binding_disclosures<'a>(
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
    pub(in crate::engine) fn weakened(&self) -> Vec<WeakenedRule> {
        self.judge_with_ledger(LedgerUnion::newly_weakened)
    }

    fn judge_with_ledger<T>(&self, judge: impl FnOnce(&LedgerUnion, &NewRelease<'_>) -> T) -> T {
        let rules: Vec<NewRule> = standing_by_tables(&self.design)
            .map(|rule| NewRule { pointer: rule.pointer.clone(), demand: rule.demand() })
            .collect();
        let why = |table: &DesignedTable| match table.bucketized() {
            Some(bucketized) if bucketized.leaves_out() => Some("would lack some rows"),
            _ if table.stands_alone() => Some("would be exclusive"),
            _ => None,
        };
        let tables = self.design.tables.iter().enumerate();
        let exclusive: Vec<ExclusiveTable<'_>> =
            tables.filter_map(|(index, table)| Some(ExclusiveTable { table: index, property: why(table)? })).collect();
        judge(&self.union, &NewRelease { tables: &self.design.schemas(), exclusive: &exclusive, rules: &rules })
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
    if let Err(PlanRefusal(of_design)) = feasible_design(&prepared.design, specification) {
        faults.extend(of_design);
    }
    if faults.is_empty() { Ok(()) } else { Err(PlanRefusal(faults)) }
}

/// The faults of an infeasible design; faults of values point to the values of the dataset.
pub(super) fn feasible_design(design: &Design, specification: &Specification) -> Result<(), PlanRefusal> {
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

/// A fault on rows as a fault on data subjects with several rows.
fn guarantee_per_unit(fault: Fault, unit: &Unit) -> Fault {
    let rows = unit.rows();
    let Some(largest) = fault.members.get("largest_l").and_then(Value::as_u64).filter(|_| rows > 1) else {
        return fault;
    };
    let asked = fault.members.get("requested").and_then(Value::as_str).and_then(|asked| asked.parse::<u64>().ok());
    let largest = largest / rows;
    let mut fault = fault.with("largest_l", largest);
    let Some(asked) = asked.map(|asked| asked / rows) else {
        let _ = write!(fault.detail, ", counted so that all rows of one {unit} are one {unit}");
        return fault;
    };
    fault = fault.with("requested", asked.to_string());
    if fault.kind == Kind::RuleIneligible {
        fault.detail = match largest {
            0 | 1 => format!(
                "one value of the sensitive attribute is too frequent for any diversity of each {unit}; l = {asked} was asked for"
            ),
            _ => format!("the data allows l of at most {largest} for each {unit}; {asked} was asked for"),
        };
    }
    fault
}

/// The secret order in which every method sees the rows.
pub(in crate::engine) fn secret_order(table: &Table, streams: &RandomStreams) -> Vec<u32> {
    streams.stream("rows").permutation(table.rows() as u32)
}
