//! Plan of the method `anatomy`: one table, its sensitive attribute in a part of its own, linked by bucket.
//!
//! # Citations
//! - [Xiao and Tao 2006], anatomy.
//! - `docs/spec/anatomy.md`: definitions and proofs.

use super::design::Design;
use super::designed_rule::{DesignedRule, RuleRejection};
use super::designed_table::{Bucketized, DesignedTable, TableDesign};
use super::input::PlanInput;
use super::stratify::stratify;
use crate::control::{Cancelled, Control};
use crate::microdata::AttrSet;
use crate::privacy::Dependency;
use crate::publication::SubmittedRule;
use crate::spec::AnatomySpec;

/// Plans one bucketized table of all published attributes.
///
/// # Errors
/// [`Cancelled`] on cancellation.
pub fn plan(spec: &AnatomySpec, input: &PlanInput<'_>, control: &Control) -> Result<Design, Cancelled> {
    let rule = designed_rule(&spec.rule, input);
    // attributes that the rule does not name are published as known ones: buckets protect from them, too
    let attributes = AttrSet::first(input.counts.attributes());
    let bucketized = Bucketized::on(attributes, rule.rule.sensitive, vec![rule.rule.guarantee]);
    let table = DesignedTable::new(attributes, TableDesign::Bucketized(bucketized));
    let mut design = Design::new(vec![table], vec![rule]);
    design.judge();
    stratify(&mut design, input, spec.closed.as_deref(), control)?;
    Ok(design)
}

/// The rule of a method that publishes one table, rejected if known attributes determine the sensitive one.
pub(super) fn designed_rule(submitted: &SubmittedRule, input: &PlanInput<'_>) -> DesignedRule {
    let mut rule = DesignedRule::submitted(submitted, input);
    let determined = input.known.closure(rule.rule.known);
    let leads_in = |dependency: &&Dependency| {
        dependency.dependent == rule.rule.sensitive && dependency.determinant.is_subset(determined)
    };
    if let Some(&dependency) = input.known.all().iter().find(leads_in) {
        rule.reject(RuleRejection::Determined(dependency));
    }
    rule
}
