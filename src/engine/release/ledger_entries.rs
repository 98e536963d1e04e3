//! What the ledger records of a release.

use crate::engine::prepare::{PreparedRelease, standing_by_tables};
use crate::ledger;
use crate::ledger::{ActiveRule, Disclosure, RecordedProtection};
use crate::privacy::RuleStatus;
use crate::publication::{Protected, Publication};
use crate::publish::{Design, DesignedRule, DesignedTable};
use crate::spec::Specification;

/// The disclosures of the tables of a release, and its active rules.
pub(in crate::engine) fn ledger_entries(
    specification: &Specification,
    prepared: &PreparedRelease,
    publication: &Publication,
) -> (Vec<Disclosure>, Vec<ActiveRule>) {
    let (excludable, taxonomies) = (&specification.excludable, &specification.taxonomies);
    let names = [specification.names.as_slice(), &specification.dropped_names].concat();
    let mut disclosures = ledger::disclosures(publication, &names, excludable, taxonomies);
    if let Some(first) = disclosures.first_mut() {
        first.dependencies = prepared.union.recorded_dependencies();
        first.withdrawn = prepared.union.recorded_withdrawals();
    }
    let Some(reason) = &specification.unproven else {
        return (disclosures, active_rules(&prepared.design, specification));
    };
    // without proof, later releases neither rely on its guards and rules nor are held to them
    for disclosure in &mut disclosures {
        disclosure.protection = RecordedProtection::Exclusive;
        disclosure.unproven = Some(reason.clone());
    }
    (disclosures, Vec::new())
}

/// The rules that later releases are held to: for a combination, the attribute whose protection protects it, or its joint
/// value. An implied rule is active through the rule that implies it.
fn active_rules(design: &Design, specification: &Specification) -> Vec<ActiveRule> {
    let names = &specification.names;
    let excludable = |sensitive| {
        let declared = specification.excludable.iter().find(|declared| declared.attribute == sensitive);
        declared.map_or_else(Vec::new, |declared| declared.values.clone())
    };
    let kept = standing_by_tables(design).filter(|rule| rule.implied_by.is_none());
    let rules = kept.map(|designed| ActiveRule {
        pointer: designed.pointer.clone(),
        quasi_identifiers: designed.rule.known.iter().map(|attr| names[attr.index()].clone()).collect(),
        sensitive: names[designed.rule.sensitive.index()].clone(),
        combination: match designed.judged {
            Protected::Attribute(_) | Protected::Rows => Vec::new(),
            Protected::Joint(attrs) => attrs.iter().map(|attr| names[attr.index()].clone()).collect(),
        },
        guarantee: designed.rule.guarantee,
        excludable: excludable(designed.rule.sensitive),
        taxonomy: ledger::taxonomy_of(designed.rule.sensitive, designed.rule.guarantee, &specification.taxonomies),
        closes: closes(design, designed),
    });
    rules.collect()
}

/// Whether the table that guards a rule has buckets without a bound.
fn closes(design: &Design, rule: &DesignedRule) -> bool {
    let RuleStatus::Guardian { table, .. } = rule.status else { return false };
    let guards = design.tables.get(table).map_or(&[][..], DesignedTable::guards);
    guards.iter().any(|guard| guard.protects == rule.judged && guard.closes)
}
