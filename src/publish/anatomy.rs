//! Plan of the method `anatomy`: one table, its sensitive attribute in a part of its own, linked by bucket.
//!
//! # Citations
//! - [Xiao and Tao 2006], anatomy.
//! - `docs/spec/anatomy.md`: definitions and proofs.

use super::design::Design;
use super::designed_rule::{DesignedRule, RuleRejection};
use super::designed_table::{Bucketized, DesignedTable, TableDesign};
use super::input::PlanInput;
use crate::microdata::AttrSet;
use crate::privacy::{self, Dependency, RuleDemand};
use crate::publication::SubmittedRule;
use crate::spec::AnatomySpec;

/// Plans one bucketized table of all published attributes.
#[must_use]
pub fn plan(spec: &AnatomySpec, input: &PlanInput<'_>) -> Design {
    let rule = designed_rule(&spec.rule, input);
    // attributes that the rule does not name are published as known ones: buckets protect from them, too
    let attributes = AttrSet::first(input.counts.attributes());
    let bucketized = Bucketized::on(attributes, rule.rule.sensitive, vec![rule.rule.guarantee]);
    let table = DesignedTable::new(attributes, TableDesign::Bucketized(bucketized));
    let mut design = Design::new(vec![table], vec![rule]);
    design.judge();
    design
}

/// The rule of a method that publishes one table, rejected if published attributes determine the sensitive one.
pub(super) fn designed_rule(submitted: &SubmittedRule, input: &PlanInput<'_>) -> DesignedRule {
    let mut rule = DesignedRule::submitted(submitted, input);
    if let Some(dependency) = determining(&rule, input) {
        rule.reject(RuleRejection::Determined(dependency));
    }
    rule
}

/// A dependency by which the other published attributes determine the sensitive one.
///
/// The rules that follow from it cannot hold, as the determining attributes are published, too.
fn determining(rule: &DesignedRule, input: &PlanInput<'_>) -> Option<Dependency> {
    let published = AttrSet::first(input.counts.attributes()).without(rule.rule.sensitive);
    let demand =
        RuleDemand { known: published, protects: AttrSet::one(rule.rule.sensitive), guarantee: rule.rule.guarantee };
    let expansion = privacy::expand(&[demand], input.dependencies, usize::MAX).ok()?;
    expansion.impossible.first().map(|(_, dependency)| *dependency)
}
