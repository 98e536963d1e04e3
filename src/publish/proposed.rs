//! Check of proposed tables under the rules of a specification. They are never published.

use super::design::Design;
use super::designed_table::{Bucketized, DesignedTable};
use super::error::PlanRefusal;
use super::input::PlanInput;
use super::{anatomy, versatile};
use crate::privacy::{self, PrivacyRule, RuleStatus, TableSchema};
use crate::problem::{Fault, Kind};
use crate::spec::{AnatomySpec, MethodSpec, ProposedTable, SlicingSpec};

/// Judges the rules of `method` in proposed tables.
///
/// A bucketized table keeps the strongest guarantees of all rules into its sensitive attribute, those of this job and active ones.
///
/// # Errors
/// [`PlanRefusal`] if the method or its rules do not apply to proposed tables.
pub fn check_proposed(
    method: &MethodSpec,
    tables: &[ProposedTable],
    input: &PlanInput<'_>,
) -> Result<Design, PlanRefusal> {
    let (rules, used_dependencies) = match method {
        MethodSpec::Versatile(spec) => versatile::designed_rules(spec, input)?,
        MethodSpec::Anatomy(AnatomySpec { rule, .. }) | MethodSpec::Slicing(SlicingSpec { rule, .. }) => {
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
    let mut design = Design { used_dependencies, ..Design::new(tables, rules) };
    design.judge();
    Ok(design)
}

/// Indexes of the bucketized tables of `design` that guard no rule, next to the `earlier` tables.
///
/// Their buckets protect nothing: no rule of this job and no active rule needs them.
#[must_use]
pub fn redundant(design: &Design, earlier: &[TableSchema], active_rules: &[PrivacyRule]) -> Vec<usize> {
    let mut schemas = design.schemas();
    schemas.extend_from_slice(earlier);
    let mut guards = vec![false; schemas.len()];
    let kept = design.rules.iter().filter(|rule| rule.implied_by.is_none()).map(|rule| rule.rule);
    for rule in kept.chain(active_rules.iter().copied()) {
        if let RuleStatus::Guardian { table, .. } = privacy::judge(&schemas, &rule) {
            guards[table] = true;
        }
    }
    let bucketized = design.tables.iter().enumerate().filter(|(_, table)| table.bucketized().is_some());
    bucketized.map(|(index, _)| index).filter(|&index| !guards[index]).collect()
}
