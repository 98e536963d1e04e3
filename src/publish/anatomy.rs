//! Anatomy: one table, its sensitive attribute in a part of its own, tied to the rest by bucket.

use super::dispatch::Method;
use super::error::PlanError;
use super::input::PlanInput;
use super::published::Published;
use super::{Bucketized, Decision, Design, DesignedRule, DesignedTable};
use crate::control::{Cancelled, Control};
use crate::microdata::{AttrSet, Table};
use crate::privacy::{self, Dependency, RuleDemand};
use crate::publication::SubmittedRule;
use crate::random::RandomStreams;
use crate::spec::AnatomySpec;

/// The method `anatomy`.
pub struct Anatomy;

impl Method for Anatomy {
    type Spec = AnatomySpec;
    type Plan = Design;

    fn plan(spec: &AnatomySpec, input: &PlanInput<'_>, _: &Control) -> Result<Design, PlanError> {
        let rule = designed_rule(&spec.rule, input);
        // further published attributes stand on the side of the quasi-identifiers, where the buckets protect beside them too
        let attributes = AttrSet::first(input.counts.attributes());
        let bucketized = Bucketized::on(attributes, rule.rule.sensitive, vec![rule.rule.guarantee]);
        let table = DesignedTable::new(attributes, Some(bucketized));
        let (used_dependencies, decision) = (Vec::new(), Decision::ByRules);
        let mut design = Design { tables: vec![table], rules: vec![rule], used_dependencies, decision };
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
        plan.execute(input, true, table, streams, control)
    }
}

/// The rule as it is to hold.
pub(super) fn designed_rule(submitted: &SubmittedRule, input: &PlanInput<'_>) -> DesignedRule {
    let mut rule = DesignedRule::submitted(submitted, input);
    rule.impossible = tells(&rule, input);
    rule
}

/// A dependency by which the published attributes tell the sensitive one: what follows from it could hold only if what
/// determines it were not published.
fn tells(rule: &DesignedRule, input: &PlanInput<'_>) -> Option<Dependency> {
    let published = AttrSet::first(input.counts.attributes()).without(rule.rule.sensitive);
    let demand =
        RuleDemand { known: published, protects: AttrSet::one(rule.rule.sensitive), guarantee: rule.rule.guarantee };
    let expansion = privacy::expand(&[demand], input.dependencies, usize::MAX).ok()?;
    expansion.impossible.first().map(|(_, dependency)| *dependency)
}
