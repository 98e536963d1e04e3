//! Versatile publishing: many rules `Q -> S`, a set of tables in Guardian Normal Form.

mod dsatur;
mod uad;

pub use uad::{Selected, decompose};

use super::{Bucketized, Design, DesignedRule, DesignedTable, Input, Method, Published, Refusal};
use crate::control::{Cancelled, Control};
use crate::microdata::{AttrSet, Table};
use crate::privacy::{self, Rule, Status};
use crate::random::Streams;
use crate::spec::VersatileSpec;

/// The method `versatile`, algorithm `uad`.
pub struct Versatile;

impl Method for Versatile {
    type Spec = VersatileSpec;
    type Plan = Design;

    /// Reduces the rules, judges eligibility, decomposes by UAD and judges every submitted rule in the result. The schema
    /// depends on the rules alone.
    fn plan(spec: &VersatileSpec, input: &Input<'_>) -> Result<Design, Refusal> {
        let (mut rules, mut faults) = (Vec::new(), Vec::new());
        for submitted in &spec.rules {
            match DesignedRule::new(submitted, input) {
                Ok(rule) => rules.push(rule),
                Err(fault) => faults.push(fault),
            }
        }
        if !faults.is_empty() {
            return Err(Refusal(faults));
        }
        let all: Vec<Rule> = rules.iter().map(|designed: &DesignedRule| designed.rule).collect();
        for (designed, implied_by) in rules.iter_mut().zip(privacy::reduce(&all)) {
            designed.implied_by = implied_by;
        }
        let kept: Vec<Rule> = rules.iter().filter(|r| r.implied_by.is_none()).map(|r| r.rule).collect();
        let attributes = AttrSet::first(input.counts.attributes());
        let selected = decompose(attributes, &kept, spec.saturate);
        let tables = selected.iter().map(|table| designed_table(table, &kept, input.standing_rules)).collect();
        let mut design = Design { tables, rules };
        release_idle(&mut design, &kept, input);
        design.judge();
        Ok(design)
    }

    fn publish(
        plan: &Design,
        input: &Input<'_>,
        table: &Table,
        streams: &Streams,
        control: &Control,
    ) -> Result<Published, Cancelled> {
        plan.execute(input, false, table, streams, control)
    }
}

/// A selected table under the strongest guarantees of all rules, of this job or standing, into its sensitive attribute whose
/// known side meets the table.
fn designed_table(selected: &Selected, kept: &[Rule], standing: &[Rule]) -> DesignedTable {
    let bucketized = selected.sensitive.and_then(|sensitive| {
        let rest = selected.attributes.without(sensitive);
        let guarded = kept.iter().chain(standing).filter(|rule| rule.sensitive == sensitive && rule.known.meets(rest));
        let guarantees = privacy::strongest(guarded.map(|rule| rule.guarantee));
        (!guarantees.is_empty()).then_some(Bucketized { sensitive, guarantees })
    });
    DesignedTable { attributes: selected.attributes, bucketized }
}

/// Publishes raw what guards no rule, of this job or standing in the series: its buckets would protect nothing.
fn release_idle(design: &mut Design, kept: &[Rule], input: &Input<'_>) {
    let mut schemas = design.schemas();
    schemas.extend_from_slice(input.earlier);
    let mut active = vec![false; schemas.len()];
    for rule in kept.iter().chain(input.standing_rules) {
        if let Status::Guardian { table, .. } = privacy::judge(&schemas, rule) {
            active[table] = true;
        }
    }
    // beside tables that break a rule nothing is certain: keep every protection, the union check will refuse
    let violated = |rule: &Rule| matches!(privacy::judge(&schemas, rule), Status::Violated(_));
    if kept.iter().chain(input.standing_rules).any(violated) {
        return;
    }
    for (table, active) in design.tables.iter_mut().zip(active) {
        if !active {
            table.bucketized = None;
        }
    }
}

#[cfg(test)]
mod tests;
