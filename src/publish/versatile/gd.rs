//! GD, guardian decomposition (versatile publishing, Algorithm 1), corrected: the lines 1 to 4 of the paper may go round in
//! circles; here every step leaves fewer rules broken. Decided by the rules alone; what is told best is added in
//! `addback`.

use super::ground::{DecompositionInput, TableDraft, stripped, without_redundant};
use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, AttrSet};

/// Tables in Guardian Normal Form, begun with one that holds all attributes and protects `first`. When tables that are
/// published already stand in the way, rules may stay broken.
///
/// # Errors
/// [`Cancelled`] on cancellation.
pub fn decompose(
    ground: &DecompositionInput<'_>,
    first: Attr,
    control: &Control,
) -> Result<Vec<TableDraft>, Cancelled> {
    let mut drafts = vec![TableDraft::on(ground.attributes, first)];
    let mut violated = ground.violated(&drafts);
    while !violated.is_empty() {
        let mut next = None;
        for &rule in &violated {
            control.check()?;
            next = isolated(ground, &drafts, rule, &violated, control)?;
            if next.is_some() {
                break;
            }
        }
        let Some(next) = next else { break };
        drafts = next;
        violated = ground.violated(&drafts);
    }
    Ok(drafts)
}

/// The drafts with what a broken rule protects in a table of its own, beside as much of what the rule says is known as breaks
/// no rule; `None` when that leaves as many rules broken, for what is published already breaks them.
fn isolated(
    ground: &DecompositionInput<'_>,
    drafts: &[TableDraft],
    rule: usize,
    violated: &[usize],
    control: &Control,
) -> Result<Option<Vec<TableDraft>>, Cancelled> {
    let Some(rule) = ground.all_rules().nth(rule).filter(|rule| ground.attributes.contains(rule.sensitive)) else {
        return Ok(None);
    };
    let mut drafts = stripped(drafts, rule.sensitive);
    drafts.push(TableDraft::on(AttrSet::one(rule.sensitive), rule.sensitive));
    let last = drafts.len() - 1;
    let allowed = ground.violated(&drafts);
    let fewer = allowed.len() < violated.len() && allowed.iter().all(|rule| violated.contains(rule));
    if !fewer {
        return Ok(None);
    }
    for attr in rule.known.intersection(ground.attributes).iter() {
        control.check()?;
        let alone = drafts[last];
        drafts[last] = alone.with(attr);
        if !ground.violated(&drafts).iter().all(|rule| allowed.contains(rule)) {
            drafts[last] = alone;
        }
    }
    Ok(Some(without_redundant(&drafts)))
}
