//! Plan of the method `sequential`: the search for a cut, and one table of one part.

use std::sync::Arc;

use super::builder::ProblemBuilder;
use super::designed::{GeneralizedColumn, SequentialDesign};
use super::knowledge::UnnamedAttributes;
use super::share::MeasureValue;
use super::{SequentialError, SequentialSolution};
use crate::control::Control;
use crate::microdata::{Attr, AttrSet, Table};
use crate::privacy::links::Link;
use crate::privacy::{Dependency, links};
use crate::problem::{Fault, Kind};
use crate::publication::{
    EarlierReleases, JoinResult, MethodDetails, SequentialDetails, XyMeasure, XyRequirement, YElement,
};
use crate::publish::design::{Decision, Design};
use crate::publish::designed_rule::dependency_fault;
use crate::publish::designed_table::{DesignedTable, TableDesign};
use crate::publish::error::{PlanError, PlanRefusal};
use crate::publish::input::PlanInput;
use crate::spec::SequentialSpec;

const NOT_COMPUTED_DETAIL: &str = "a dependency ties what is counted to a generalized attribute, with exceptions in some rows: what an adversary \
     knows of it cannot be tested; leave that attribute out";
const UNNAMED_DETAIL: &str = "a dependency ties an attribute that x does not name to one by whose labels rows are grouped or matched, so that \
     who knows it finds fewer rows than x says";
const GENERALIZED_BEFORE_DETAIL: &str = "a dependency ties what is counted to an attribute that an earlier release generalizes, of which the \
     rows are not at hand; leave that attribute out";

/// Plans a sequential release. Without rows, nothing is decided.
///
/// # Errors
/// [`PlanError`] if no cut keeps the requirements, or on cancellation.
pub fn plan(spec: &SequentialSpec, input: &PlanInput<'_>, control: &Control) -> Result<Design, PlanError> {
    let Some(rows) = input.rows else {
        return Ok(Design { decision: Decision::Undecided, ..Design::new(Vec::new(), Vec::new()) });
    };
    let none = EarlierReleases::default();
    let earlier = input.earlier_releases.unwrap_or(&none);
    let mut builder = ProblemBuilder::new(spec, rows.table, earlier)?;
    let linked = linked(spec, &builder, input);
    for (requirement, known) in builder.requirements.iter_mut().zip(linked.known_exactly) {
        requirement.known_exactly = known;
    }
    let problem = builder.problem(control)?;
    let mut faults = builder.contradicted(&problem, earlier.excluded.as_deref(), control)?;
    faults.extend(builder.tied(control)?);
    faults.extend(linked.faults);
    if !faults.is_empty() {
        return Err(PlanRefusal(faults).into());
    }
    let solution = problem.release(control).map_err(|error| refused(error, &builder))?;
    let cuts: Vec<GeneralizedColumn> =
        solution.cuts.iter().filter_map(|cut| GeneralizedColumn::from_cut(cut, rows.table)).collect();
    let mut requirements = achieved(&builder, &solution)?;
    for (requirement, _) in &mut requirements {
        // what is published exactly is known anyway
        let is_cut = |name: &String| cuts.iter().any(|cut| rows.table.name(cut.attribute) == name);
        requirement.known_exactly.retain(is_cut);
    }
    let details = SequentialDetails {
        against: spec.against.iter().map(ToString::to_string).collect(),
        subsets: spec.subsets,
        requirements,
        exclusions: builder.exclusions.clone(),
        cuts: cuts.iter().map(|cut| published_cut(cut, rows.table)).collect(),
        external: builder.external(),
        other_rows: !builder.same_rows(),
        renamed: builder.renamed(input.published_names),
    };
    let designed =
        SequentialDesign { details: details.clone(), distortion: solution.distortion, changed: solution.changed, cuts };
    let attributes = AttrSet::first(input.counts.attributes());
    let table = DesignedTable::new(attributes, TableDesign::Sequential(Arc::new(designed)));
    // a step is refused if it would break a requirement, which depends on the data
    Ok(Design {
        decision: Decision::ByData(None),
        details: MethodDetails::Sequential(Box::new(details)),
        cut_dependencies: linked.used,
        ..Design::new(vec![table], Vec::new())
    })
}

/// What dependencies ask of requirements.
#[derive(Default)]
struct LinkedRequirements {
    /// For each requirement, the generalized attributes whose values an adversary may know.
    known_exactly: Vec<Vec<String>>,
    /// The dependencies that tie these to what is counted.
    used: Vec<Dependency>,
    faults: Vec<Fault>,
}

/// Finds the attributes that requirements must also hold with where they are known exactly, and faults of those that cannot be tested.
///
/// A dependency that ties an attribute of Y to a generalized one says more of a group than its labels do: who knows its
/// function reads the value off Y. That none ties the joined releases to each other is checked before.
fn linked(spec: &SequentialSpec, builder: &ProblemBuilder<'_>, input: &PlanInput<'_>) -> LinkedRequirements {
    let names = input.names;
    let place = |name: &str| names.iter().position(|known| known == name).map(Attr::from);
    let published = AttrSet::first(input.counts.attributes()).minus(spec.left_out);
    let visible = builder.earlier_names().filter_map(place).fold(published, AttrSet::with);
    let links = input.known.links(visible);
    let elements: Vec<AttrSet> = links.iter().map(|link| link.attributes).collect();
    let mut linked = LinkedRequirements::default();
    for requirement in &builder.requirements {
        let named = requirement.y.iter().filter_map(|of| match of {
            YElement::Attribute(of) => place(&of.attribute),
            YElement::Key(_) => None,
        });
        let y: AttrSet = named.collect();
        let reached = links::connected(y, &elements);
        let tied = reached.minus(y);
        let is_named =
            |attr: &Attr, holds: &dyn Fn(&str) -> bool| names.get(attr.index()).is_some_and(|name| holds(name));
        let concerns = |name: &str| {
            let mut grouped = requirement.x.iter();
            grouped.any(|of| of.release == 0 && of.attribute == name) || builder.matches(0, name)
        };
        let generalized = tied.intersection(spec.generalized).iter().filter(|attr| is_named(attr, &concerns));
        let generalized: AttrSet = generalized.collect();
        // who knows the functions computes these from what is counted, in every row
        let computed = generalized.intersection(input.known.exact_closure(y));
        if !computed.is_empty() {
            let used = links.iter().filter(|link| link.attributes.is_subset(reached)).map(|link| link.because);
            linked.used.extend(used);
        }
        linked.known_exactly.push(computed.iter().filter_map(|attr| names.get(attr.index())).cloned().collect());
        let is_hidden = |name: &str| builder.is_generalized_before(requirement, name);
        let hidden: AttrSet = tied.iter().filter(|attr| is_named(attr, &is_hidden)).collect();
        for (unproved, detail) in
            [(generalized.minus(computed), NOT_COMPUTED_DETAIL), (hidden, GENERALIZED_BEFORE_DETAIL)]
        {
            let Some(link) = links.iter().find(|link| link.attributes.meets(unproved)) else { continue };
            let pointer = pointer_of(requirement);
            let fault = dependency_fault(&pointer, Kind::GuaranteeUnsupported, link.because, detail, names);
            let dropped = unproved.iter().filter_map(|attr| names.get(attr.index()));
            let repairs: Vec<serde_json::Value> = dropped.map(|name| serde_json::json!({ "drop": [name] })).collect();
            linked.faults.push(fault.with("repairs", repairs));
        }
        linked.faults.extend(unnamed(requirement, builder, &links, names));
    }
    linked
}

/// The fault of attributes that a requirement has to name in X, because dependencies tie them to others.
fn unnamed(
    requirement: &XyRequirement,
    builder: &ProblemBuilder<'_>,
    links: &[Link],
    names: &[String],
) -> Option<Fault> {
    let place = |name: &str| names.iter().position(|known| known == name).map(Attr::from);
    let UnnamedAttributes { attributes, because } = builder.unnamed(requirement, links, &place)?;
    let references: Vec<String> = attributes.iter().map(|of| builder.text(of)).collect();
    let own = requirement.of == 0;
    let remedy = if own { "name in x" } else { "do not publish" };
    let detail = format!("{UNNAMED_DETAIL}; {remedy} {}", references.join(" and "));
    let fault = dependency_fault(&pointer_of(requirement), Kind::GuaranteeUnsupported, because, &detail, names);
    let mut repairs = if own { vec![serde_json::json!({ "name_in_x": references })] } else { Vec::new() };
    let of_new = attributes.iter().filter(|of| of.release == 0);
    repairs.extend(of_new.map(|of| serde_json::json!({ "drop": [of.attribute] })));
    Some(fault.with("attributes", references).with("repairs", repairs))
}

/// The requirements with the measures that the release achieves on each join.
fn achieved(
    builder: &ProblemBuilder<'_>,
    solution: &SequentialSolution,
) -> Result<Vec<(XyRequirement, Vec<JoinResult>)>, PlanRefusal> {
    let mut requirements: Vec<(XyRequirement, Vec<JoinResult>)> =
        builder.requirements.iter().map(|requirement| (requirement.clone(), Vec::new())).collect();
    for achieved in &solution.achieved {
        let Some((requirement, on)) = requirements.get_mut(achieved.requirement) else { continue };
        let measure = lowest(achieved.measure).ok_or_else(|| {
            PlanRefusal(vec![Fault::new(pointer_of(requirement), Kind::JoinTooDense, "tuples are too many")])
        })?;
        on.extend(achieved.joins.iter().map(|join| JoinResult { releases: join.clone(), achieved: measure }));
    }
    for (_, on) in &mut requirements {
        on.sort_by(|a, b| a.releases.cmp(&b.releases));
    }
    Ok(requirements)
}

/// The dataset name of a generalized column, and its labels.
fn published_cut(cut: &GeneralizedColumn, table: &Table) -> (String, Vec<Option<String>>) {
    let text = |label: &Option<Vec<u8>>| label.as_ref().map(|label| String::from_utf8_lossy(label).into_owned());
    (table.name(cut.attribute).to_owned(), cut.labels.iter().map(text).collect())
}

/// A measure in lowest terms; `None` if these exceed 64 bits.
fn lowest(MeasureValue { count, of }: MeasureValue) -> Option<(u64, u64)> {
    let (mut a, mut b) = (count, of);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    let a = a.max(1);
    Some((u64::try_from(count / a).ok()?, u64::try_from(of / a).ok()?))
}

/// JSON pointer of a requirement, or of the earlier release that promised it.
fn pointer_of(requirement: &XyRequirement) -> String {
    match requirement.of.checked_sub(1) {
        None => requirement.pointer.clone(),
        Some(earlier) => format!("/method/against/{earlier}"),
    }
}

/// A fault with the bound that the root keeps: the largest k or the smallest h.
fn with_bound(fault: Fault, measure: Option<&XyMeasure>, root: MeasureValue) -> Fault {
    match (measure, lowest(root)) {
        (Some(XyMeasure::Anonymity { .. }), Some((k, 1))) => fault.with("largest_k", k),
        (Some(XyMeasure::Linkability { .. }), Some((count, of))) => fault.with("smallest_h", format!("{count}/{of}")),
        _ => fault,
    }
}

/// What an adversary knows where a requirement with a number of the problem does not hold; empty for labels alone.
fn condition(builder: &ProblemBuilder<'_>, number: usize) -> String {
    let Some((at, true)) = builder.requirement(number) else { return String::new() };
    let (known, missing) = (builder.requirements[at].known_exactly.join(" and "), &builder.missing[at]);
    let missing: Vec<String> = missing.iter().map(|of| builder.text(of)).collect();
    let exactly = format!(" for who knows {known} exactly, as a dependency ties it to what is counted");
    let elsewhere = format!(" for who knows the attributes of x and finds them in {} too", missing.join(" and "));
    match (known.is_empty(), missing.is_empty()) {
        (true, _) => elsewhere,
        (false, true) => exactly,
        (false, false) => format!("{exactly}, and{elsewhere}"),
    }
}

/// The refusal of a problem without a solution, at the pointer of its cause.
fn refused(error: SequentialError, builder: &ProblemBuilder<'_>) -> PlanError {
    let of = |number: usize| builder.requirement(number).and_then(|(at, _)| builder.requirements.get(at));
    let at = |requirement: usize| of(requirement).map_or_else(|| "/method/requirements".to_owned(), pointer_of);
    let condition = |number: usize| condition(builder, number);
    let promised = |requirement: usize| match of(requirement).map(|requirement| requirement.of) {
        None | Some(0) => "the requirement",
        Some(_) => "a requirement that the earlier release keeps",
    };
    let detail = error.to_string();
    let fault = match error {
        SequentialError::Cancelled(cancelled) => return cancelled.into(),
        SequentialError::EmptyTable => Fault::new("/dataset", Kind::EmptyTable, detail),
        SequentialError::UnknownReference { requirement } => {
            Fault::new(at(requirement), Kind::UnknownAttribute, detail)
        }
        SequentialError::UnknownExclusion { exclusion } => {
            Fault::new(format!("/method/exclusions/{exclusion}"), Kind::UnknownAttribute, detail)
        }
        SequentialError::Overlap { requirement } => Fault::new(at(requirement), Kind::RuleMalformed, detail),
        SequentialError::Threshold { requirement } => Fault::new(at(requirement), Kind::ParameterRange, detail),
        SequentialError::NothingToGeneralize | SequentialError::NoScale { .. } | SequentialError::ClassMissing => {
            Fault::new("/method/requirements", Kind::BadColumns, detail)
        }
        SequentialError::InfeasibleRoot { requirement, proof, root } => {
            let detail = format!(
                "not even with everything generalized {} holds{}",
                promised(requirement),
                condition(requirement)
            );
            let fault = Fault::new(at(requirement), Kind::InfeasibleRoot, detail).with("proof", proof);
            with_bound(fault, of(requirement).map(|requirement| &requirement.measure), root)
        }
        SequentialError::PriorReleaseViolates { requirement } => {
            let detail = format!(
                "earlier releases break {}{}, whatever is published now",
                promised(requirement),
                condition(requirement)
            );
            Fault::new(at(requirement), Kind::PriorReleaseViolates, detail)
        }
        SequentialError::EmptyJoin { requirement } => {
            let detail = format!(
                "no row of one release matches any of the others, for {}{}",
                promised(requirement),
                condition(requirement)
            );
            Fault::new(at(requirement), Kind::BadColumns, detail)
        }
        SequentialError::TooDense { requirement } => {
            Fault::new(at(requirement), Kind::JoinTooDense, "there are too many distinct tuples")
        }
        SequentialError::TooManyJoins { .. } => {
            let allowed = "default, or fewer releases";
            Fault::new("/method/subsets", Kind::ParameterRange, format!("there are too many joins: expected {allowed}"))
                .with("allowed", allowed)
        }
    };
    PlanRefusal(vec![fault]).into()
}
