//! A schema that somebody proposes, judged under the rules of a specification. Never executed.

use super::error::PlanRefusal;
use super::input::PlanInput;
use super::{Bucketized, Decision, Design, DesignedTable, anatomy, versatile};
use crate::privacy::{self, PrivacyRule, RuleStatus, TableSchema};
use crate::problem::{Fault, Kind};
use crate::spec::{AnatomySpec, MethodSpec, ProposedTable, SlicingSpec};

/// The rules of `method` in the tables that are proposed in place of its own. A table that is to be bucketized keeps the
/// strongest guarantees of all rules, of this job or protection, into its sensitive attribute; of none where there are none.
///
/// # Errors
/// [`PlanRefusal`] when the rules cannot even be stated.
pub fn check_proposed(
    method: &MethodSpec,
    tables: &[ProposedTable],
    input: &PlanInput<'_>,
) -> Result<Design, PlanRefusal> {
    let (rules, used_dependencies) = match method {
        MethodSpec::Versatile(spec) => versatile::designed_rules(spec, input)?,
        MethodSpec::Anatomy(AnatomySpec { rule }) | MethodSpec::Slicing(SlicingSpec { rule, .. }) => {
            (vec![anatomy::designed_rule(rule, input)], Vec::new())
        }
        MethodSpec::Bucketize(spec) => (vec![anatomy::designed_rule(&spec.rule, input)], Vec::new()),
        MethodSpec::Generalize(_) | MethodSpec::Decompose(_) | MethodSpec::Sequential(_) => {
            let detail = "tables are proposed of exact values; those of this method are not judged as such";
            return Err(PlanRefusal(vec![Fault::new("/schema", Kind::GuaranteeUnsupported, detail)]));
        }
    };
    let kept = rules.iter().filter(|rule| rule.implied_by.is_none()).map(|rule| rule.rule);
    let all: Vec<PrivacyRule> = kept.chain(input.active_rules.iter().copied()).collect();
    let designed = |table: &ProposedTable| {
        let bucketized = table.sensitive.map(|sensitive| {
            let into = all.iter().filter(|rule| rule.sensitive == sensitive);
            let guarantees = privacy::strongest(into.map(|rule| rule.guarantee));
            Bucketized::on(table.attributes, sensitive, guarantees)
        });
        DesignedTable::new(table.attributes, bucketized)
    };
    let tables = tables.iter().map(designed).collect();
    let mut design = Design { tables, rules, used_dependencies, decision: Decision::ByRules };
    design.judge();
    Ok(design)
}

/// The bucketized tables of `design`, by index, that guard no rule, of this job or protection, beside the `earlier` tables: their
/// buckets protect nothing.
#[must_use]
pub fn redundant(design: &Design, earlier: &[TableSchema], protection: &[PrivacyRule]) -> Vec<usize> {
    let mut schemas = design.schemas();
    schemas.extend_from_slice(earlier);
    let mut active = vec![false; schemas.len()];
    let kept = design.rules.iter().filter(|rule| rule.implied_by.is_none()).map(|rule| rule.rule);
    for rule in kept.chain(protection.iter().copied()) {
        if let RuleStatus::Guardian { table, .. } = privacy::judge(&schemas, &rule) {
            active[table] = true;
        }
    }
    let bucketized = design.tables.iter().enumerate().filter(|(_, table)| table.bucketized.is_some());
    bucketized.map(|(index, _)| index).filter(|&index| !active[index]).collect()
}
