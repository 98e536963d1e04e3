//! Multi-SA publishing: one table, all protected attributes in one part, each protected from an adversary who knows all others.
//!
//! # Citations
//! - [Jin et al. 2010, Algorithm 3]
//! - `docs/spec/guardian-normal-form.md#multiple-sensitive-attributes`

use std::collections::BTreeMap;

use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, AttrSet};
use crate::privacy::{self, RuleDemand};
use crate::publication::Guarantee;
use crate::publish::assign::{AttributeDiversity, SensitiveGrid};
use crate::publish::design::{Decision, Design};
use crate::publish::designed_rule::{DesignedRule, RuleRejection};
use crate::publish::designed_table::{Bucketized, DesignedTable};
use crate::publish::input::PlanInput;

const ONLY_L_DIVERSITY_DETAIL: &str = "multi_sa keeps l_diversity alone";
const NO_PUBLIC_ATTRIBUTE_DETAIL: &str = "multi_sa needs a published attribute that no rule protects";

/// Designs the table. If rows are known, the design is empty if all of them would be suppressed.
pub(super) fn decide(design: &mut Design, input: &PlanInput<'_>, control: &Control) -> Result<(), Cancelled> {
    let attributes = AttrSet::first(input.counts.attributes());
    let mut sensitive: BTreeMap<Attr, u64> = BTreeMap::new();
    let kept = |rule: &&mut DesignedRule| rule.implied_by.is_none() && !rule.is_unsupported();
    for rule in design.rules.iter_mut().filter(kept) {
        match rule.rule.guarantee {
            Guarantee::LDiversity { l } => {
                let most = sensitive.entry(rule.rule.sensitive).or_default();
                *most = l.max(*most);
            }
            _ => rule.reject(RuleRejection::Unsupported(ONLY_L_DIVERSITY_DETAIL)),
        }
    }
    let protected: AttrSet = sensitive.keys().copied().collect();
    // the adversary knows all other attributes: a dependency among them reveals the sensitive one
    for rule in design.rules.iter_mut().filter(|rule| protected.contains(rule.rule.sensitive)) {
        let known = attributes.without(rule.rule.sensitive);
        let demand = RuleDemand { known, ..RuleDemand::from(rule.rule) };
        if let Ok(expansion) = privacy::expand(&[demand], input.known.all(), usize::MAX) {
            let determined = rule.determined_by().or(expansion.impossible.first().map(|(_, by)| *by));
            determined.into_iter().for_each(|by| rule.reject(RuleRejection::Determined(by)));
        }
        if attributes == protected {
            rule.reject(RuleRejection::Unsupported(NO_PUBLIC_ATTRIBUTE_DETAIL));
        }
    }
    let sensitive: Vec<AttributeDiversity> =
        sensitive.into_iter().map(|(attr, l)| AttributeDiversity { attr, l }).collect();
    let bucketized = match sensitive[..] {
        [] => None,
        [AttributeDiversity { attr, l }] => Some(Bucketized::on(attributes, attr, vec![Guarantee::LDiversity { l }])),
        _ => Some(Bucketized::each_of(attributes, &sensitive)),
    };
    design.tables = vec![DesignedTable::new(attributes, bucketized)];
    if sensitive.len() < 2 {
        return Ok(());
    }
    design.decision = Decision::ByData(None);
    let refused = design.rules.iter().any(DesignedRule::is_refused);
    if let Some(rows) = input.rows.filter(|_| !refused) {
        let (grid, _) = SensitiveGrid::from_table(rows.table, &sensitive, control)?;
        if grid.largest_group().iter().all(|&rows| rows == 0) {
            design.decision = Decision::Empty;
        }
    }
    Ok(())
}
