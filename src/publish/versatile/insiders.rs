//! Insiders and dependencies.
//!
//! An insider who rules out values of an attribute also rules out the values of its determinant that occur with these alone. Such
//! values must be declared as excludable, too. Then the buckets of the determinant take them into account, and the manifest names
//! them. They are never added silently: a manifest that named them would reveal what no part reveals.

use crate::control::{Cancelled, Control};
use crate::microdata::{AttrSet, Table};
use crate::privacy::Dependency;
use crate::publish::designed_rule::{DesignedRule, RuleRejection};
use crate::publish::input::PlanInput;

const MISSING_EXCLUSIONS_DETAIL: &str = "values of the sensitive attribute are declared_policy as excludable, and another attribute determines it, which has \
                        values that occur with these alone: an adversary who rules out the former rules out the latter, which must be \
                        declared_policy as excludable too";
const SEVERAL_DETERMINANTS_DETAIL: &str = "values of the sensitive attribute are declared_policy as excludable, and several attributes together determine it: \
                       what is ruled out of each of them is not reckoned with; state the dependency under assume_unknown, or \
                       nothing as excludable";

/// Rejects rules under which an insider can rule out more values than are declared.
///
/// # Errors
/// [`Cancelled`] on cancellation.
pub(super) fn settle(rules: &mut [DesignedRule], input: &PlanInput<'_>, control: &Control) -> Result<(), Cancelled> {
    let published = AttrSet::first(input.counts.attributes());
    for rule in rules.iter_mut().filter(|rule| rule.determined_by().is_none()) {
        let sensitive = rule.rule.sensitive;
        if rule.protects.attributes().len() > 1 || input.counts.annotations(sensitive).excludable().is_empty() {
            continue;
        }
        for &dependency in input.known.all() {
            let Dependency { determinant, dependent } = dependency;
            // an attribute that is not published needs no protection
            if dependent != sensitive || !determinant.is_subset(published) {
                continue;
            }
            let why = match (determinant.len(), input.rows) {
                (1, Some(rows)) if states_what_follows(rows.table, dependency, control)? => continue,
                (1, Some(_)) => MISSING_EXCLUSIONS_DETAIL,
                (1, None) => continue,
                _ => SEVERAL_DETERMINANTS_DETAIL,
            };
            rule.reject(RuleRejection::InsiderKnows(dependency, why));
        }
    }
    Ok(())
}

/// Whether every value of the determinant that occurs only with excludable values of the dependent is excludable itself.
fn states_what_follows(table: &Table, dependency: Dependency, control: &Control) -> Result<bool, Cancelled> {
    let Some(determinant) = dependency.determinant.iter().next() else { return Ok(true) };
    let (from, to) = (table.column(determinant), table.column(dependency.dependent));
    let annotations = table.annotations(dependency.dependent);
    let mut informs = vec![false; from.domain.len()];
    for (row, (value, revealed)) in from.codes.iter().zip(to.codes.iter()).enumerate() {
        if row.is_multiple_of(Control::STRIDE) {
            control.check()?;
        }
        informs[value as usize] |= !annotations.is_excludable(revealed);
    }
    let declared_policy = |code: u32| table.annotations(determinant).is_excludable(code);
    Ok((0..)
        .zip(from.counts())
        .zip(informs)
        .all(|((code, rows), informs)| informs || rows == 0 || declared_policy(code)))
}
