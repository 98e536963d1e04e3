//! Attributes that reveal sensitive ones although no rule is violated, for a plan.

use super::types::{ExposedTo, Plan, PlanExposures, PlanProxy, PlanUniqueRows};
use crate::control::{Cancelled, Control};
use crate::engine::error::EngineError;
use crate::engine::practitioner::PublishedAttributes;
use crate::microdata::{AttrSet, Table};
use crate::privacy;
use crate::privacy::WorkBudget;
use crate::privacy::links::Strata;
use crate::publication::{NoticeKind, TableName};
use crate::publish::{Design, DesignedTable};
use crate::report::{ManifestRatio, SpecificationNotice};
use crate::utility;
use crate::utility::PractitionerKnowledge;

/// Adds proxies and exposures of the protected attributes to a plan.
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
        plan.proxies.push(PlanProxy {
            sensitive: names[proxy.sensitive.index()].clone(),
            attribute: names[proxy.attribute.index()].clone(),
            lambda: proxy.corrected as f64 / proxy.wrong as f64,
        });
    }
    let plain: Vec<AttrSet> =
        design.tables.iter().filter(|table| table.is_plain()).map(|table| table.attributes).collect();
    for attr in sensitive.iter() {
        let mut choices: Vec<AttrSet> = Vec::new();
        for attributes in plain.iter().filter(|attributes| attributes.contains(attr)) {
            for choice in privacy::singling_out(table, attributes.without(attr), &mut effort, control)? {
                if !choices.contains(&choice) {
                    choices.push(choice);
                }
            }
        }
        plan.exposed_to.extend(choices.into_iter().map(|choice| ExposedTo {
            sensitive: names[attr.index()].clone(),
            attributes: choice.iter().map(|attr| names[attr.index()].clone()).collect(),
        }));
    }
    if effort.is_spent() {
        plan.warnings.push(SpecificationNotice {
            r#type: NoticeKind::ExposureNotComplete,
            pointer: None,
            detail: "the table has too many rows and attributes to search for every attribute that predicts sensitive ones or \
                     singles out rows with them"
                .to_owned(),
        });
    }
    Ok(())
}

/// The rows of an original, as exposures count them.
pub(in crate::engine) trait RowFigures {
    /// The number of rows.
    fn rows(&self) -> u64;

    /// The rows that no other row equals in these attributes.
    fn unique(&mut self, known: AttrSet) -> Result<u64, EngineError>;

    /// What follows of each of these attributes from all others.
    fn practitioner(&mut self, published: AttrSet) -> Result<PractitionerKnowledge, EngineError>;
}

/// The rows of a table at hand.
pub(in crate::engine) struct RowsAtHand<'a> {
    /// The table.
    pub(in crate::engine) table: &'a Table,
    /// Cancels the count.
    pub(in crate::engine) control: &'a Control,
}

impl RowFigures for RowsAtHand<'_> {
    fn rows(&self) -> u64 {
        self.table.rows() as u64
    }

    fn unique(&mut self, known: AttrSet) -> Result<u64, EngineError> {
        self.control.check()?;
        Ok(Strata::new(self.table, known).sizes().iter().filter(|size| **size == 1).count() as u64)
    }

    fn practitioner(&mut self, published: AttrSet) -> Result<PractitionerKnowledge, EngineError> {
        Ok(utility::practitioner(self.table, published, self.control)?)
    }
}

/// What no rule of a design would prevent.
pub(in crate::engine) fn exposures(
    design: &Design,
    names: &[String],
    figures: &mut dyn RowFigures,
) -> Result<PlanExposures, EngineError> {
    let published = design.tables.iter().fold(AttrSet::EMPTY, |all, table| all.union(table.attributes));
    let required = design.details.required(names);
    let protected = design.rules.iter().fold(required, |all, rule| all.union(rule.protects.attributes()));
    let named = |set: AttrSet| set.iter().map(|attr| names[attr.index()].clone()).collect();
    let mut rows = Vec::new();
    for (at, designed) in design.tables.iter().enumerate() {
        let Some(known) = row_side(designed).filter(|known| !known.is_empty()) else { continue };
        let unique = ManifestRatio::new(figures.unique(known)?, figures.rows());
        rows.push(PlanUniqueRows { table: TableName::at(at).0, attributes: named(known), unique });
    }
    let attributes = PublishedAttributes { published, protected, names };
    let practitioner = attributes.described(figures.practitioner(published)?, figures.rows());
    Ok(PlanExposures { rows, unprotected: named(published.minus(protected)), practitioner })
}

/// The attributes by which rows of a table are known; `None` where its cells are no values of the original.
fn row_side(table: &DesignedTable) -> Option<AttrSet> {
    match table.bucketized() {
        Some(bucketized) => Some(table.attributes.minus(bucketized.sensitive())),
        None => table.is_plain().then_some(table.attributes),
    }
}
