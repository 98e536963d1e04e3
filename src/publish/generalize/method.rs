//! Plan of the method `generalize`: one table of one part, with shared quasi-identifier cells.

use crate::microdata::{Attr, AttrSet};
use crate::privacy::{self, RuleDemand, RuleStatus};
use crate::publication::{Guarantee, Protected, TableGuard};
use crate::publish::design::{Decision, Design};
use crate::publish::designed_rule::{DesignedRule, RuleRejection};
use crate::publish::designed_table::{DesignedTable, Generalized, TableDesign};
use crate::publish::input::PlanInput;
use crate::publish::partition::MedianSplit;
use crate::spec::{ClassSplit, GeneralizeSpec};

/// Largest number of rules that follow from one; the verifier refuses more.
const MAX_DERIVED_RULES: usize = 10_000;

/// Plans one generalized table.
#[must_use]
pub fn plan(spec: &GeneralizeSpec, input: &PlanInput<'_>) -> Design {
    let rules = designed_rules(spec, input);
    let guard = |attr: Attr| TableGuard {
        known: spec.quasi_identifiers,
        protects: Protected::Attribute(attr),
        guarantees: rules.iter().filter(|r| r.rule.sensitive == attr).map(|r| r.rule.guarantee).collect(),
    };
    let protected: AttrSet = rules.iter().map(|rule| rule.rule.sensitive).collect();
    let k = spec.rules.iter().find_map(|rule| match rule.guarantee {
        Guarantee::KAnonymity { k } => Some(k),
        _ => None,
    });
    let generalized = Generalized {
        quasi_identifiers: spec.quasi_identifiers,
        cells: spec.cells,
        split: match spec.split {
            ClassSplit::Strict => MedianSplit::Strict,
            ClassSplit::Relaxed => MedianSplit::Relaxed,
        },
        k,
        rows: input.counts.rows(),
        keeps: protected.iter().map(guard).collect(),
        // an adversary who knows a second exact attribute knows more of the first
        guarding: protected.len() == 1 && protected == spec.sensitive,
    };
    let attributes = spec.quasi_identifiers.union(spec.sensitive);
    let table = DesignedTable::new(attributes, TableDesign::Generalized(generalized));
    // a split is refused if a half would break a guarantee, which depends on the data
    Design { decision: Decision::ByData(None), ..Design::new(vec![table], rules) }
}

/// The rules of the specification without k-anonymity, judged in the one table.
fn designed_rules(spec: &GeneralizeSpec, input: &PlanInput<'_>) -> Vec<DesignedRule> {
    let protecting = spec.rules.iter().filter(|rule| rule.protects != Protected::Rows);
    let mut rules: Vec<DesignedRule> = protecting.map(|rule| DesignedRule::submitted(rule, input)).collect();
    let demands: Vec<RuleDemand> = rules.iter().map(DesignedRule::demand).collect();
    for rule in &mut rules {
        rule.status = RuleStatus::Guardian { table: 0, known: rule.rule.known };
        let Ok(expansion) = privacy::expand(&[rule.demand()], input.dependencies, MAX_DERIVED_RULES) else { continue };
        // a derived rule is kept if another rule implies it
        let kept = |demand: &RuleDemand| demands.iter().any(|other| other.implies(demand));
        let broken = expansion.derived.iter().find(|derived| !kept(&derived.demand)).map(|derived| derived.because);
        let by_itself = expansion.impossible.first().or(expansion.unsupported.first());
        let dependency = by_itself.map(|(_, dependency)| *dependency).or(broken);
        if let Some(dependency) = dependency {
            rule.reject(RuleRejection::Determined(dependency));
        }
    }
    rules
}
