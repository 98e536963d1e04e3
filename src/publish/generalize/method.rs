//! Plan of the method `generalize`: one table of one part, with shared quasi-identifier cells.

use std::sync::Arc;

use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, AttrSet};
use crate::privacy::links::Strata;
use crate::privacy::{self, RuleDemand, RuleStatus};
use crate::publication::{Guarantee, Protected, TableGuard};
use crate::publish::design::{Decision, Design};
use crate::publish::designed_rule::{DesignedRule, LinkedReason, RuleRejection};
use crate::publish::designed_table::{DesignedTable, Generalized, TableDesign};
use crate::publish::input::PlanInput;
use crate::publish::linked::{ConstantAttributes, LinkedSides, demands, reject_all};
use crate::publish::partition::MedianSplit;
use crate::spec::{ClassSplit, GeneralizeSpec};

/// Largest number of rules that follow from one; the verifier refuses more.
const MAX_DERIVED_RULES: usize = 10_000;

const TOO_MANY_DERIVED: &str =
    "more rules follow from the dependencies of the data than can be checked: generalize fewer attributes";

const OTHER_REFERENCE: &str = "classes are compared with the whole table alone; leave reference out";

/// Plans one generalized table.
///
/// # Errors
/// [`Cancelled`] on cancellation.
pub fn plan(spec: &GeneralizeSpec, input: &PlanInput<'_>, control: &Control) -> Result<Design, Cancelled> {
    let mut rules = designed_rules(spec, input);
    let constant = constant_attributes(spec, &mut rules, input, control)?;
    let strata = input.rows.filter(|_| !constant.attributes.is_empty());
    let strata = strata.map(|rows| Arc::new(Strata::new(rows.strata, constant.attributes)));
    let guard = |attr: Attr| TableGuard {
        constant: constant.attributes,
        ..TableGuard::new(
            spec.quasi_identifiers,
            Protected::Attribute(attr),
            rules.iter().filter(|r| r.rule.sensitive == attr).map(|r| r.rule.guarantee).collect(),
        )
    };
    let protected: AttrSet = rules.iter().map(|rule| rule.rule.sensitive).collect();
    let generalized = Generalized {
        quasi_identifiers: spec.quasi_identifiers,
        cells: spec.cells,
        sets: spec.sets,
        split: match spec.split {
            ClassSplit::Strict => MedianSplit::Strict,
            ClassSplit::Relaxed => MedianSplit::Relaxed,
        },
        k: anonymity(spec),
        rows: input.counts.rows(),
        keeps: protected.iter().map(guard).collect(),
        // an adversary who knows a second exact attribute knows more of the first
        guarding: protected.len() == 1 && protected == spec.sensitive,
        strata,
    };
    let attributes = spec.quasi_identifiers.union(spec.sensitive);
    let table = DesignedTable::new(attributes, TableDesign::Generalized(generalized));
    // a split is refused if a half would break a guarantee, which depends on the data
    let used_dependencies = constant.because;
    Ok(Design { decision: Decision::ByData(None), used_dependencies, ..Design::new(vec![table], rules) })
}

/// The k of k-anonymity, if the specification asks for it.
fn anonymity(spec: &GeneralizeSpec) -> Option<u64> {
    spec.rules.iter().find_map(|rule| match rule.guarantee {
        Guarantee::KAnonymity { k } => Some(k),
        _ => None,
    })
}

/// The attributes in which every class has to be constant; the rules are rejected where no strata keep them.
///
/// k-anonymity speaks of no sensitive value, so that links ask for nothing where it stands alone.
fn constant_attributes(
    spec: &GeneralizeSpec,
    rules: &mut [DesignedRule],
    input: &PlanInput<'_>,
    control: &Control,
) -> Result<ConstantAttributes, Cancelled> {
    if rules.is_empty() {
        return Ok(ConstantAttributes::default());
    }
    let sides = LinkedSides {
        protected: spec.sensitive,
        row_side: spec.quasi_identifiers,
        constant: AttrSet::EMPTY,
        demands: demands(rules.iter()),
    };
    let constant = match sides.constant(rules, input, control)? {
        Ok(constant) => constant,
        Err(reason) => {
            reject_all(rules, reason);
            return Ok(ConstantAttributes::default());
        }
    };
    let k = anonymity(spec).unwrap_or(1);
    let is_small = |table: &_| Strata::new(table, constant.attributes).sizes().iter().any(|size| u64::from(*size) < k);
    if !constant.attributes.is_empty() && input.rows.is_some_and(|rows| is_small(rows.strata)) {
        let dependency = constant.because.first().copied();
        let reason =
            LinkedReason { dependency, strata: constant.attributes, is_fixed: true, ..LinkedReason::default() };
        reject_all(rules, reason);
        return Ok(ConstantAttributes::default());
    }
    Ok(constant)
}

/// The rules of the specification without k-anonymity, judged in the one table.
fn designed_rules(spec: &GeneralizeSpec, input: &PlanInput<'_>) -> Vec<DesignedRule> {
    let protecting = spec.rules.iter().filter(|rule| rule.protects != Protected::Rows);
    let mut rules: Vec<DesignedRule> = protecting.map(|rule| DesignedRule::submitted(rule, input)).collect();
    let demands: Vec<RuleDemand> = rules.iter().map(DesignedRule::demand).collect();
    let published = AttrSet::first(input.counts.attributes());
    for rule in &mut rules {
        rule.status = RuleStatus::Guardian { table: 0, known: rule.rule.known };
        if !rule.rule.guarantee.reference().is_table() {
            rule.reject(RuleRejection::Unsupported(OTHER_REFERENCE));
        }
        let Ok(expansion) = privacy::expand(&[rule.demand()], input.known.all(), MAX_DERIVED_RULES) else {
            rule.reject(RuleRejection::Unsupported(TOO_MANY_DERIVED));
            continue;
        };
        // a derived rule is kept if another rule implies it
        // and where it protects an attribute that is not published
        let kept = |demand: &RuleDemand| {
            !demand.protects.is_subset(published) || demands.iter().any(|other| other.implies(demand))
        };
        let broken = expansion.derived.iter().find(|derived| !kept(&derived.demand)).map(|derived| derived.because);
        let by_itself = expansion.impossible.first().or(expansion.unsupported.first());
        let dependency = by_itself.map(|(_, dependency)| *dependency).or(broken);
        if let Some(dependency) = dependency {
            rule.reject(RuleRejection::Determined(dependency));
        }
    }
    rules
}
