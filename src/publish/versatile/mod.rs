//! Versatile publishing: many rules `Q -> S`, a set of tables in Guardian Normal Form.

mod addback;
mod correlated;
mod decide;
mod dsatur;
mod gd;
mod ground;
mod insiders;
mod joint;
mod multi;
mod score;
mod uad;

pub use addback::{AddBackLimits, add_back};
pub use gd::decompose as decompose_greedily;
pub use ground::{DecompositionInput, TableDraft};
pub use score::{EntropyScorer, threads};
pub use uad::{SelectedTable, decompose};

use self::correlated::CorrelatedAttributes;
use self::joint::CombinationContraction;
use super::design::{demand, dependency_fault};
use super::dispatch::Method;
use super::error::{PlanError, PlanRefusal};
use super::input::PlanInput;
use super::published::Published;
use super::{Bucketized, Decision, Design, DesignedRule, DesignedTable};
use crate::control::{Cancelled, Control};
use crate::microdata::{AttrSet, Table};
use crate::privacy::{self, Dependency, DerivedRule, PrivacyRule, RuleDemand, RuleStatus};
use crate::problem::{Fault, Kind};
use crate::random::RandomStreams;
use crate::spec::{Algorithm, VersatileSpec};

/// So many rules may follow from dependencies.
const MAX_DERIVED_RULES: usize = 10_000;

/// The method `versatile`.
pub struct Versatile;

impl Method for Versatile {
    type Spec = VersatileSpec;
    type Plan = Design;

    /// Adds the rules that follow from dependencies, reduces all, judges eligibility, decomposes and judges every submitted
    /// rule in the result.
    fn plan(spec: &VersatileSpec, input: &PlanInput<'_>, control: &Control) -> Result<Design, PlanError> {
        let (mut rules, used_dependencies) = designed_rules(spec, input)?;
        joint::settle(&mut rules, input, control)?;
        insiders::settle(&mut rules, input, control)?;
        if spec.algorithm != Algorithm::Uad || spec.addback {
            joint::refuse_combinations(&mut rules);
        }
        let mut design = Design { tables: Vec::new(), rules, used_dependencies, decision: Decision::ByRules };
        // tables are decided with one attribute in place of each combination that only its joint value protects
        let contraction = CombinationContraction::from_rules(&design.rules);
        let kept = design.rules.iter().filter(|rule| rule.implied_by.is_none() && rule.refused.is_none());
        let kept: Vec<PrivacyRule> = kept.map(|rule| contraction.rule(&rule.rule)).collect();
        let attributes = AttrSet::first(input.counts.attributes());
        match spec.algorithm {
            Algorithm::SingleAttribute => {
                let alone = |attr| DesignedTable::new(AttrSet::one(attr), None);
                design.tables = attributes.iter().map(alone).collect();
            }
            Algorithm::MultiSa => multi::decide(&mut design, input, control)?,
            Algorithm::Uad if !spec.addback => {
                let selected = decompose(contraction.contract(attributes), &kept, spec.saturate);
                let protection = input.active_rules.iter().filter(|rule| !contraction.holds(rule.sensitive));
                let protection: Vec<PrivacyRule> = protection.copied().collect();
                let tables = selected.iter().map(|table| designed_table(table, &kept, &protection));
                design.tables = tables.map(|table| contraction.table(table)).collect();
                release_idle(&mut design, input);
            }
            _ => decide_by_data(&mut design, kept, spec, input, control)?,
        }
        design.judge();
        Ok(design)
    }

    fn publish(
        plan: &Design,
        input: &PlanInput<'_>,
        table: &Table,
        streams: &RandomStreams,
        control: &Control,
    ) -> Result<Published, Cancelled> {
        plan.execute(input, false, table, streams, control)
    }
}

/// The rules as they are to hold: with those that follow from dependencies, each judged by itself, superfluous ones marked.
pub(super) fn designed_rules(
    spec: &VersatileSpec,
    input: &PlanInput<'_>,
) -> Result<(Vec<DesignedRule>, Vec<Dependency>), PlanRefusal> {
    let submitted: Vec<RuleDemand> = spec.rules.iter().map(demand).collect();
    let Ok(expansion) = privacy::expand(&submitted, input.dependencies, MAX_DERIVED_RULES) else {
        let detail = format!("more than {MAX_DERIVED_RULES} rules follow from the dependencies");
        return Err(PlanRefusal(vec![Fault::new("/method/rules", Kind::DependencyExpansionLimit, detail)]));
    };
    if !expansion.unsupported.is_empty() {
        let detail = "the guarantee says nothing of combinations, and so cannot be kept beside a dependency";
        let fault = |(index, dependency): &(usize, Dependency)| {
            let pointer = &spec.rules[*index].pointer;
            dependency_fault(pointer, Kind::GuaranteeUnsupported, *dependency, detail, input.published_names)
        };
        return Err(PlanRefusal(expansion.unsupported.iter().map(fault).collect()));
    }
    // what protects an attribute that is not published holds by itself
    let published = AttrSet::first(input.counts.attributes());
    let derived: Vec<DerivedRule> =
        expansion.derived.into_iter().filter(|derived| derived.demand.protects.is_subset(published)).collect();
    let all: Vec<RuleDemand> = submitted.iter().copied().chain(derived.iter().map(|derived| derived.demand)).collect();
    let implied_by = privacy::reduce(&all);
    let others: Vec<RuleDemand> =
        all.iter().zip(&implied_by).filter(|(_, implied)| implied.is_none()).map(|(demand, _)| *demand).collect();
    let mut rules: Vec<DesignedRule> = Vec::with_capacity(all.len());
    for (index, demand) in all.iter().enumerate() {
        let pointer = spec.rules.get(index).map(|rule| rule.pointer.clone());
        let mut rule = DesignedRule::new(pointer, demand, &others, input);
        rule.implied_by = implied_by[index];
        rule.follows_from = index.checked_sub(submitted.len()).map(|index| derived[index].because);
        rule.impossible = expansion.impossible.iter().find(|(at, _)| *at == index).map(|(_, by)| *by);
        rules.push(rule);
    }
    Ok((listed(rules), expansion.used))
}

/// Without rules that follow from a dependency and are implied: they are nobody's.
fn listed(rules: Vec<DesignedRule>) -> Vec<DesignedRule> {
    let drop = |rule: &DesignedRule| rule.follows_from.is_some() && rule.implied_by.is_some();
    let mut next = 0;
    let place = |rule: &DesignedRule| {
        next += usize::from(!drop(rule));
        next - usize::from(!drop(rule))
    };
    let places: Vec<usize> = rules.iter().map(place).collect();
    let mut listed: Vec<DesignedRule> = rules.into_iter().filter(|rule| !drop(rule)).collect();
    for rule in &mut listed {
        // the implying rule is a kept one
        rule.implied_by = rule.implied_by.map(|by| places[by]);
    }
    listed
}

/// Chooses tables by what the data makes of them; none where there are no rows to look at, or nothing can be published anyway.
fn decide_by_data(
    design: &mut Design,
    kept: Vec<PrivacyRule>,
    spec: &VersatileSpec,
    input: &PlanInput<'_>,
    control: &Control,
) -> Result<(), Cancelled> {
    let Some(rows) = input.rows.filter(|_| design.feasible(input.published_names).is_ok()) else {
        design.decision = Decision::Undecided;
        return Ok(());
    };
    let mut rules = kept;
    rules.sort_by_key(|rule| (rule.sensitive, rule.known.iter().collect::<Vec<_>>()));
    let ground =
        DecompositionInput::new(AttrSet::first(input.counts.attributes()), rules, input.active_rules, input.earlier);
    let mut scorer = EntropyScorer::draw(&ground, rows, spec.score, control)?;
    let mut links = CorrelatedAttributes::new(rows, input.dependencies, spec.correlated, control);
    let (drafts, choice) = decide::decide(spec, &ground, &mut scorer, &mut links, control)?;
    links.mark(&mut design.rules, &drafts)?;
    design.tables = drafts.iter().map(|draft| ground.designed(draft)).collect();
    design.decision = Decision::ByData(choice);
    Ok(())
}

/// A selected table under the strongest guarantees of all rules, of this job or protection, into its sensitive attribute whose
/// known side meets the table.
fn designed_table(selected: &SelectedTable, kept: &[PrivacyRule], protection: &[PrivacyRule]) -> DesignedTable {
    let bucketized = selected.sensitive.and_then(|sensitive| {
        let rest = selected.attributes.without(sensitive);
        let guarded =
            kept.iter().chain(protection).filter(|rule| rule.sensitive == sensitive && rule.known.meets(rest));
        let guarantees = privacy::strongest(guarded.map(|rule| rule.guarantee));
        (!guarantees.is_empty()).then(|| Bucketized::on(selected.attributes, sensitive, guarantees))
    });
    DesignedTable::new(selected.attributes, bucketized)
}

/// Publishes raw what guards no rule, of this job or protection in the series: its buckets would protect nothing.
fn release_idle(design: &mut Design, input: &PlanInput<'_>) {
    let mut schemas = design.schemas();
    schemas.extend_from_slice(input.earlier);
    let mut active = vec![false; schemas.len()];
    let kept = design.rules.iter().filter(|rule| rule.implied_by.is_none()).map(DesignedRule::demand);
    let protection = input.active_rules.iter().map(|&rule| RuleDemand::from(rule));
    for demand in kept.chain(protection) {
        match privacy::judge_demand(&schemas, &demand) {
            RuleStatus::Guardian { table, .. } => active[table] = true,
            // beside tables that break a rule nothing is certain: keep every protection, the union check will refuse
            RuleStatus::Violated(_) => return,
            RuleStatus::Unreachable => {}
        }
    }
    for (table, active) in design.tables.iter_mut().zip(active) {
        if !active {
            table.bucketized = None;
        }
    }
}

#[cfg(test)]
mod tests;
