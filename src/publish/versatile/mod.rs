//! Versatile publishing: many rules `Q -> S`, a set of tables in Guardian Normal Form.
//!
//! # Citations
//! - [Jin et al. 2010], Guardian Normal Form, UAD, GD and multi-SA publishing.
//! - `docs/spec/guardian-normal-form.md`: definitions and proofs.
//! - `docs/spec/errata.md#versatile-publishing`: corrections.

mod active;
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

use self::active::claimable;
use self::correlated::CorrelatedAttributes;
use self::decide::DecompositionSearch;
use self::joint::CombinationContraction;
use super::design::{Decision, Design, Enforcement};
use super::designed_rule::{DesignedRule, RuleRejection, demand};
use super::designed_table::{Bucketized, DesignedTable, TableDesign};
use super::error::{PlanError, PlanRefusal};
use super::input::PlanInput;
use super::stratify::stratify;
use crate::control::Control;
use crate::microdata::AttrSet;
use crate::privacy::links;
use crate::privacy::{self, Dependency, DerivedRule, PrivacyRule, RuleDemand, RuleStatus};
use crate::problem::{Fault, Kind};
use crate::spec::{Algorithm, VersatileSpec};

/// Largest number of rules that follow from dependencies.
const MAX_DERIVED_RULES: usize = 10_000;

/// Plans tables in Guardian Normal Form, and judges every rule in them.
///
/// Rules that follow from dependencies are added first, and implied rules are left out.
///
/// # Errors
/// [`PlanError`] if the rules cannot be combined with the dependencies, or on cancellation.
pub fn plan(spec: &VersatileSpec, input: &PlanInput<'_>, control: &Control) -> Result<Design, PlanError> {
    let (mut rules, used_dependencies) = designed_rules(spec, input)?;
    joint::settle(&mut rules, input, control)?;
    joint::follow_implying(&mut rules);
    insiders::settle(&mut rules, input, control)?;
    if spec.algorithm != Algorithm::Uad || spec.addback {
        joint::refuse_combinations(&mut rules);
    }
    let enforcement = Enforcement::NormalForm;
    let mut design = Design { used_dependencies, enforcement, ..Design::new(Vec::new(), rules) };
    // one attribute represents each combination that only its joint value protects
    let contraction = CombinationContraction::from_rules(&design.rules);
    let attributes = AttrSet::first(input.counts.attributes());
    let contracted = contraction.contract(attributes);
    // a refused rule may protect an attribute that another one represents
    let is_kept = |rule: &&DesignedRule| {
        rule.implied_by.is_none() && !rule.is_unsupported() && contracted.contains(rule.rule.sensitive)
    };
    let visible = design.rules.iter().fold(attributes, |all, rule| all.union(rule.rule.known));
    let links = input.known.links(visible);
    // the links steer the choice; beside the tables they decide
    let side_of = |rule: &DesignedRule| {
        links::design_side(rule.rule.known, rule.judged.attributes(), &links)
            .intersection(attributes)
            .minus(rule.rule.known)
    };
    let steered = |rule: &DesignedRule| {
        contraction.rule(&PrivacyRule { known: rule.rule.known.union(side_of(rule)), ..rule.rule })
    };
    let unsteered = |rule: &DesignedRule| contraction.rule(&rule.rule);
    let kept: Vec<PrivacyRule> = design.rules.iter().filter(is_kept).map(steered).collect();
    match spec.algorithm {
        Algorithm::SingleAttribute => {
            design.tables = attributes.iter().map(|attr| DesignedTable::plain(AttrSet::one(attr))).collect();
        }
        Algorithm::MultiSa => multi::decide(&mut design, input, control)?,
        Algorithm::Uad if !spec.addback => {
            let selected = decompose(contracted, &kept, spec.uad);
            let active = claimable(input).into_iter().filter(|rule| !contraction.holds(rule.sensitive));
            let active: Vec<PrivacyRule> = active.collect();
            let tables =
                selected.iter().map(|table| contraction.table(table.attributes, bucketized(table, &kept, &active)));
            design.tables = tables.collect();
            release_redundant(&mut design, input);
            let of_rules: Vec<PrivacyRule> = design.rules.iter().filter(is_kept).map(unsteered).collect();
            let others = decompose(contracted, &of_rules, spec.uad);
            if !others.iter().map(|table| table.attributes).eq(selected.iter().map(|table| table.attributes)) {
                let sides = design.rules.iter().filter(is_kept).map(side_of);
                let side = sides.fold(AttrSet::EMPTY, AttrSet::union);
                let cut = links.iter().filter(|link| link.attributes.meets(side)).map(|link| link.because);
                design.cut_dependencies = cut.collect();
            }
        }
        Algorithm::Uad | Algorithm::Gd | Algorithm::Auto => decide_by_data(&mut design, kept, spec, input, control)?,
    }
    design.judge();
    stratify(&mut design, input, spec.closed.as_deref(), control)?;
    Ok(design)
}

/// The submitted rules and those that follow from dependencies, each judged by itself, and the dependencies that were used.
///
/// Implied rules name the rule that implies them.
pub(super) fn designed_rules(
    spec: &VersatileSpec,
    input: &PlanInput<'_>,
) -> Result<(Vec<DesignedRule>, Vec<Dependency>), PlanRefusal> {
    let submitted: Vec<RuleDemand> = spec.rules.iter().map(demand).collect();
    let Ok(expansion) = privacy::expand(&submitted, input.known.all(), MAX_DERIVED_RULES) else {
        let detail = format!("more than {MAX_DERIVED_RULES} rules follow from the dependencies");
        return Err(PlanRefusal(vec![Fault::new("/method/rules", Kind::DependencyExpansionLimit, detail)]));
    };
    // what follows for guarantees that say nothing of combinations is decided by the judgement beside the links
    // a rule that protects an attribute that is not published holds by itself
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
        if let Some((_, dependency)) = expansion.impossible.iter().find(|(at, _)| *at == index) {
            rule.reject(RuleRejection::Determined(*dependency));
        }
        rules.push(rule);
    }
    Ok((listed(rules), expansion.used))
}

/// The rules without those that follow from a dependency and are implied: no caller asked for them.
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

/// Chooses tables by their scores on the data. Leaves the design undecided if rows are unknown or the design is infeasible.
fn decide_by_data(
    design: &mut Design,
    kept: Vec<PrivacyRule>,
    spec: &VersatileSpec,
    input: &PlanInput<'_>,
    control: &Control,
) -> Result<(), PlanError> {
    let Some(rows) = input.rows.filter(|_| design.feasible(input.published_names).is_ok()) else {
        design.decision = Decision::Undecided;
        return Ok(());
    };
    let mut rules = kept;
    rules.sort_by_key(|rule| (rule.sensitive, rule.known.iter().collect::<Vec<_>>()));
    let active = claimable(input);
    let ground = DecompositionInput::new(AttrSet::first(input.counts.attributes()), rules, &active, input.earlier);
    let mut scorer = EntropyScorer::draw(&ground, rows, spec.score, control)?;
    let mut links = CorrelatedAttributes::new(rows, input.known.all(), spec.correlated, control);
    let (drafts, choice) =
        DecompositionSearch { ground: &ground, scorer: &mut scorer, links: &mut links, control }.decide(spec)?;
    links.mark(&mut design.rules, &drafts)?;
    design.tables = drafts.iter().map(|draft| ground.designed(draft)).collect();
    design.decision = Decision::ByData(choice);
    Ok(())
}

/// The buckets of a selected table; `None` for a plain one.
///
/// They keep the strongest guarantees of all rules into the sensitive attribute whose known side meets the table, active rules included.
fn bucketized(selected: &SelectedTable, kept: &[PrivacyRule], active: &[PrivacyRule]) -> Option<Bucketized> {
    let sensitive = selected.sensitive?;
    let rest = selected.attributes.without(sensitive);
    let into = kept.iter().chain(active).filter(|rule| rule.sensitive == sensitive && rule.known.meets(rest));
    let guarantees = privacy::strongest(into.map(|rule| rule.guarantee));
    (!guarantees.is_empty()).then(|| Bucketized::on(selected.attributes, sensitive, guarantees))
}

/// Makes the tables plain that guard no rule: their buckets would protect nothing.
fn release_redundant(design: &mut Design, input: &PlanInput<'_>) {
    let mut schemas = design.schemas();
    schemas.extend_from_slice(input.earlier);
    let mut guards = vec![false; schemas.len()];
    let kept = design.rules.iter().filter(|rule| rule.implied_by.is_none()).map(DesignedRule::demand);
    let active = input.active_rules.iter().map(|&rule| RuleDemand::from(rule));
    for demand in kept.chain(active) {
        match privacy::judge_demand(&schemas, &demand) {
            RuleStatus::Guardian { table, .. } => guards[table] = true,
            // with a violated rule all buckets stay: the composition check refuses the release
            RuleStatus::Violated(_) => return,
            RuleStatus::Unreachable => {}
        }
    }
    for (table, guards) in design.tables.iter_mut().zip(guards) {
        if !guards {
            table.design = TableDesign::Plain;
        }
    }
}

#[cfg(test)]
mod tests;
