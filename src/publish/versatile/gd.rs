//! GD, guardian decomposition, decided by the rules alone; `addback` adds attributes afterwards.
//!
//! Lines 1 to 4 of the published algorithm may loop. Here every step leaves fewer rules broken.
//!
//! # Citations
//! - [Jin et al. 2010, Algorithm 1]
//! - `docs/spec/errata.md#versatile-publishing`

use super::ground::{DecompositionInput, TableDraft, stripped, without_redundant};
use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, AttrSet};

/// Tables in Guardian Normal Form, starting with one table of all attributes that protects `first`.
///
/// Rules may stay broken if earlier tables conflict with them.
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

/// Moves the sensitive attribute of a broken rule to a table of its own, with as many known attributes of the rule as possible.
/// `None` if no fewer rules are broken then, because earlier tables break them.
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
