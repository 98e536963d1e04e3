//! One release: plan, publish, write, verify, describe.

pub(super) mod input;
pub(super) mod internal_report;
pub(super) mod run;
pub(super) mod write;

use input::{ReleaseInput, VerifiedRelease};
use write::{PartStore, write_part};

use super::error::EngineError;
use super::prepare::cross_dependencies::ExtendedTable;
use super::prepare::known::KnownDependencies;
use super::prepare::wording::{composition_problem, method_name};
use super::prepare::{PreparedRelease, disclosures_beside, prepare, standing_by_tables};
use super::read_back::figures::{bucket_sizes, summary};
use crate::control::{Control, Phase};
use crate::engine::read_back::figures::achieved;
use crate::ledger::{ActiveRule, RecordedProtection};
use crate::microdata::{AttrSet, Table};
use crate::privacy::RuleStatus;
use crate::publication::{Protected, Publication, Witness};
use crate::publish::{Decision, Design, DesignedTable, PlanInput, PlanRefusal, PlanRows};
use crate::report::{Generalization, SpecificationNotice, manifest};
use crate::spec::Specification;
use crate::verifier::{Evidence, Linkage};
use crate::{ledger, publish, verifier};

/// Plans, publishes, writes and audits. Nothing is made visible here; what is returned has passed the verifier.
///
/// # Errors
/// [`EngineError`]: cancelled, refused, or failed. The parts written so far are then worthless.
pub fn release(
    order: &ReleaseInput<'_>,
    store: &mut dyn PartStore,
    control: &Control,
) -> Result<VerifiedRelease, EngineError> {
    let ReleaseInput { specification, table, .. } = order;
    control.begin(Phase::Plan, 1)?;
    let dependencies = KnownDependencies::new(specification, table, control)?;
    let secret_order = super::prepare::secret_order(table, order.streams);
    let (permuted, unknown) = super::prepare::annotations::annotate(specification, table.reordered(&secret_order));
    if !unknown.is_empty() {
        return Err(PlanRefusal(unknown).into());
    }
    let rows = Some(PlanRows { table: &permuted, streams: order.streams });
    let union = super::prepare::ledger_union(specification, order.earlier)?;
    let wide = ExtendedTable::new(specification, table, order.further, &union);
    let prepared = prepare(
        specification,
        (&permuted, rows),
        (union, &order.earlier.releases),
        dependencies,
        Some(&wide),
        control,
    )?;
    drop(wide);
    super::prepare::feasible(&prepared.design, specification)?;
    if prepared.design.decision == Decision::Undecided {
        return Err(EngineError::bug("no tables were chosen though the rows are known"));
    }
    // the decomposition promises normal form; a design that breaks it is a bug, not an answer
    if prepared.design.rules.iter().any(|rule| matches!(rule.status, RuleStatus::Violated(_))) {
        return Err(EngineError::bug("the designed tables are not in Guardian Normal Form"));
    }
    if specification.unproven.is_none() {
        prepared.compose().map_err(|violations| EngineError::Refused(composition_problem(&violations)))?;
    }

    let (publication, witness, written) = publish_and_write(order, &prepared, &permuted, store, control)?;
    drop(permuted);
    let witness = witness.unpermuted(&secret_order);

    control.begin(Phase::Verify, publication.tables.iter().flat_map(|t| &t.parts).map(|p| p.len).sum())?;
    let known: Vec<(AttrSet, AttrSet)> =
        prepared.dependencies.all.iter().map(|d| (d.determinant, AttrSet::one(d.dependent))).collect();
    let evidence = Evidence {
        publication: &publication,
        submitted: specification.method.rules(),
        dependencies: &known,
        parts: &*store,
        original: Some(table),
        witness: Some(&witness),
        names: &specification.published_names,
        kinds: &[],
        accounted: AttrSet::first(specification.names.len()),
        excludable: &specification.excludable,
        taxonomies: &specification.taxonomies,
        earlier_releases: Some(&order.earlier.releases),
        thresholds: &specification.thresholds,
    };
    let verification = verifier::verify(&evidence, control)?;
    if !verification.verified() || verification.linkage != Linkage::Checked {
        let failed: Vec<String> = summary(&verification)
            .checks
            .into_iter()
            .filter(|check| !check.passed)
            .map(|check| format!("{}: {}", check.check, check.detail.unwrap_or_default()))
            .collect();
        return Err(EngineError::bug(format!("the audit of the written parts failed: {}", failed.join("; "))));
    }

    let mut warnings = stated_choices(specification);
    warnings.extend(prepared.dependencies.notices(&prepared.design.used_dependencies));
    warnings.extend(super::prepare::wording::describe_unbounded(&prepared.design, &specification.published_names));
    warnings.extend(super::prepare::wording::choice_for_readers(&prepared.design.decision));
    let achieved = |rule: usize| achieved(&verification, &publication, rule);
    let mut manifest = manifest(
        order.provenance,
        method_name(&specification.method, &prepared.design.decision),
        &publication,
        &specification.published_names,
        &written,
        summary(&verification),
        bucket_sizes(&verification, &publication),
        &achieved,
        prepared.dependencies.in_json(&prepared.design.used_dependencies, specification),
        (&specification.excludable, &specification.taxonomies, &specification.thresholds, &specification.unit),
        warnings,
    );
    if specification.entropy {
        let kinds: Vec<_> = table.attributes().iter().map(|attr| Some(table.column(attr).domain.kind())).collect();
        let (nats, method) = super::read_back::entropy::of_parts(&publication, &kinds, &*store, control)?;
        manifest.utility.model_entropy_nats = Some(nats);
        manifest.utility.entropy_method = Some(method.to_owned());
    }
    let mut internal = internal_report::report(order, &publication, &*store, control)?;
    internal.generalization = prepared.design.tables.iter().find_map(|designed| {
        let (cut, rows) = (designed.cut.as_ref()?, table.rows().max(1) as f64);
        let (levels, values) = (cut.distortion as f64 / rows, cut.changed as f64 / rows);
        Some(Generalization { levels_per_row: levels, values_per_row: values })
    });
    internal.classification = internal_report::classification(order, &prepared.design, control)?;
    internal.warnings.extend(prepared.design.planned().filter_map(super::prepare::wording::describe_inference));
    let mut disclosures =
        ledger::disclosures(&publication, &specification.names, (&specification.excludable, &specification.taxonomies));
    let mut rules = active_rules(&prepared.design, specification);
    if let Some(reason) = &specification.unproven {
        // nobody has shown that its guards and rules hold beside the others: later releases neither rely on them nor are held to them
        for disclosure in &mut disclosures {
            disclosure.protection = RecordedProtection::Exclusive;
            disclosure.unproven = Some(reason.clone());
        }
        rules.clear();
    }
    Ok(VerifiedRelease { internal, manifest, disclosures, rules })
}

/// Runs the method on the secretly permuted rows, of which the witness speaks, and writes every part.
fn publish_and_write(
    order: &ReleaseInput<'_>,
    prepared: &PreparedRelease,
    permuted: &Table,
    store: &mut dyn PartStore,
    control: &Control,
) -> Result<(Publication, Witness, Vec<Vec<crate::report::WrittenPart>>), EngineError> {
    let ReleaseInput { specification, streams, .. } = order;
    let cells_of_work = prepared.design.tables.iter().map(DesignedTable::passes);
    control.begin(Phase::Publish, cells_of_work.sum::<u64>() * permuted.rows() as u64)?;
    let (earlier, active_rules) = disclosures_beside(specification, &prepared.union);
    let input = PlanInput {
        counts: permuted,
        published_names: &specification.published_names,
        earlier,
        active_rules,
        dependencies: &prepared.dependencies.all,
        beside: Some(&order.earlier.releases),
        rows: Some(PlanRows { table: permuted, streams }),
    };
    let published = publish::publish(&specification.method, &prepared.design, &input, permuted, streams, control)?;

    let parts = || published.publication.tables.iter().flat_map(|table| &table.parts);
    control.begin(Phase::Write, parts().map(|part| part.len).sum())?;
    let (mut written, mut csv) = (Vec::new(), Vec::new());
    for (table, cells) in published.publication.tables.iter().zip(&published.contents.tables) {
        let mut parts = Vec::new();
        for (part, cells) in table.parts.iter().zip(cells) {
            parts.push(write_part(&table.name, part, cells, permuted, &mut csv, store, control)?);
        }
        written.push(parts);
    }
    Ok((published.publication, published.witness, written))
}

/// The rules that will stand once the release is published, as they were judged: of a combination, the attribute whose
/// protection protects it, or its joint value. What is implied stands with what implies it.
fn active_rules(design: &Design, specification: &Specification) -> Vec<ActiveRule> {
    let names = &specification.names;
    let aside = |sensitive| {
        let stated = specification.excludable.iter().find(|stated| stated.attribute == sensitive);
        stated.map_or_else(Vec::new, |stated| stated.values.clone())
    };
    let kept = standing_by_tables(design).filter(|rule| rule.implied_by.is_none());
    let protection = kept.map(|designed| ActiveRule {
        pointer: designed.pointer.clone(),
        quasi_identifiers: designed.rule.known.iter().map(|attr| names[attr.index()].clone()).collect(),
        sensitive: names[designed.rule.sensitive.index()].clone(),
        combination: match designed.judged {
            Protected::Attribute(_) | Protected::Rows => Vec::new(),
            Protected::Joint(attrs) => attrs.iter().map(|attr| names[attr.index()].clone()).collect(),
        },
        guarantee: designed.rule.guarantee,
        excludable: aside(designed.rule.sensitive),
        taxonomy: ledger::taxonomy_of(designed.rule.sensitive, designed.rule.guarantee, &specification.taxonomies),
    });
    protection.collect()
}

/// What a reader of the release should know of the choices of its specification: statements of the caller, nothing of the
/// data.
fn stated_choices(specification: &Specification) -> Vec<SpecificationNotice> {
    let stated = specification.overridden_identifiers.iter().map(|attr| SpecificationNotice {
        r#type: "identifier-overridden".to_owned(),
        pointer: None,
        detail: format!(
            "{} is published on the statement that it identifies nobody",
            specification.published_names[attr.index()]
        ),
    });
    stated.chain(super::prepare::wording::exclusive_by_choice(specification)).collect()
}
