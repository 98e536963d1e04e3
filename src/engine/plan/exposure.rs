//! What a plan tells of attributes that give sensitive ones away though no rule is broken.

use super::types::{ExposedTo, Plan, PlanProxy};
use crate::control::{Cancelled, Control};
use crate::microdata::{AttrSet, Table};
use crate::privacy;
use crate::privacy::WorkBudget;
use crate::publication::NoticeKind;
use crate::publish::Design;
use crate::report::SpecificationNotice;

/// Adds the proxies of the attributes that the submitted rules protect, and what exposes them, to a plan.
pub(in crate::engine) fn add_exposure(
    plan: &mut Plan,
    design: &Design,
    table: &Table,
    names: &[String],
    control: &Control,
) -> Result<(), Cancelled> {
    let submitted = design.rules.iter().filter(|rule| rule.pointer.is_some());
    let sensitive = submitted.fold(AttrSet::EMPTY, |all, rule| all.union(rule.protects.attributes()));
    let mut effort = WorkBudget::default();
    for proxy in privacy::proxies(table, sensitive, &mut effort, control)? {
        let (right, wrong) = proxy.lambda;
        plan.proxies.push(PlanProxy {
            sensitive: names[proxy.sensitive.index()].clone(),
            attribute: names[proxy.attribute.index()].clone(),
            lambda: right as f64 / wrong as f64,
        });
    }
    let plain: Vec<AttrSet> =
        design.tables.iter().filter(|table| table.is_plain()).map(|table| table.attributes).collect();
    for attr in sensitive.iter() {
        let mut told: Vec<AttrSet> = Vec::new();
        for beside in plain.iter().filter(|attributes| attributes.contains(attr)) {
            for choice in privacy::singling_out(table, beside.without(attr), &mut effort, control)? {
                if !told.contains(&choice) {
                    told.push(choice);
                }
            }
        }
        plan.exposed_to.extend(told.into_iter().map(|choice| ExposedTo {
            sensitive: names[attr.index()].clone(),
            attributes: choice.iter().map(|attr| names[attr.index()].clone()).collect(),
        }));
    }
    if effort.is_spent() {
        plan.warnings.push(SpecificationNotice {
            r#type: NoticeKind::ExposureNotComplete,
            pointer: None,
            detail: "the table has too many rows and attributes to look for all that predicts sensitive attributes or \
                     singles rows out beside them"
                .to_owned(),
        });
    }
    Ok(())
}
