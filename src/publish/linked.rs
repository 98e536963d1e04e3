//! Links in a release of one table: the attributes in which its buckets or classes have to be constant.
//!
//! See `docs/spec/dependencies.md#algorithm`.

use super::designed_rule::{DesignedRule, LinkedReason, RuleRejection};
use super::input::PlanInput;
use super::stratify::{ActiveLinks, reason_of};
use crate::control::{Cancelled, Control};
use crate::microdata::AttrSet;
use crate::privacy::Dependency;
use crate::privacy::links::{self, Link, LinkContext, StrataTests, StratificationError, StratumDemand, TableSides};

/// The sides of a release of one table.
pub(super) struct LinkedSides {
    /// The attributes that readers cannot tie to a row.
    pub(super) protected: AttrSet,
    /// The published attributes that they can.
    pub(super) row_side: AttrSet,
    /// What every bucket has to satisfy.
    pub(super) demands: Vec<StratumDemand>,
}

/// The attributes in which buckets are constant, and the dependencies for which they are.
#[derive(Default)]
pub(super) struct ConstantAttributes {
    /// The attributes; empty where links ask for nothing.
    pub(super) attributes: AttrSet,
    /// The dependencies.
    pub(super) because: Vec<Dependency>,
}

impl LinkedSides {
    /// The attributes in which the buckets have to be constant, or why no strata keep the demands.
    ///
    /// Without rows nothing is decided: the design is judged when rows are read.
    pub(super) fn constant(
        &self,
        rules: &[DesignedRule],
        input: &PlanInput<'_>,
        control: &Control,
    ) -> Result<Result<ConstantAttributes, LinkedReason>, Cancelled> {
        let known = rules.iter().fold(self.row_side, |all, rule| all.union(rule.rule.known)).minus(self.protected);
        let none = || Ok(Ok(ConstantAttributes::default()));
        let Some(rows) = input.rows else { return none() };
        let Some(active) = ActiveLinks::among(known.union(self.protected), input) else { return none() };
        let elements: Vec<AttrSet> = active.links.iter().map(|link| link.attributes).collect();
        if !links::connected(self.protected, &elements).meets(known) {
            return none();
        }
        let context =
            LinkContext { dependencies: input.known, links: active.links.as_slice(), weights: &active.weights };
        let Self { protected, row_side, .. } = *self;
        let sides = TableSides { row_side, protected, known, other_tables: &[], within: None };
        match links::stratify(&sides, &context, &mut StrataTests::new(rows.table, &self.demands, control)) {
            Ok(attributes) => {
                let leads_out = |link: &&Link| link.attributes.meets(protected) && link.attributes.meets(known);
                let because = active.links.iter().filter(leads_out).map(|link| link.because).collect();
                Ok(Ok(ConstantAttributes { attributes, because }))
            }
            Err(StratificationError::Cancelled) => Err(Cancelled),
            Err(error) => Ok(Err(LinkedReason { is_fixed: true, ..reason_of(&error) })),
        }
    }
}

/// The demands of rules on every bucket.
pub(super) fn demands<'a>(rules: impl IntoIterator<Item = &'a DesignedRule>) -> Vec<StratumDemand> {
    let demand = |rule: &DesignedRule| StratumDemand {
        protects: AttrSet::one(rule.rule.sensitive),
        guarantee: rule.rule.guarantee,
        reference: rule.rule.guarantee.reference(),
    };
    rules.into_iter().map(demand).collect()
}

/// The first active link whose attributes stand in none of `columns` together.
pub(super) fn link_across(columns: &[AttrSet], input: &PlanInput<'_>) -> Option<Link> {
    let all = columns.iter().fold(AttrSet::EMPTY, |all, column| all.union(*column));
    let links = ActiveLinks::among(all, input)?.links;
    links.into_iter().find(|link| !columns.iter().any(|column| link.attributes.is_subset(*column)))
}

/// Rejects every rule for the same reason.
pub(super) fn reject_all(rules: &mut [DesignedRule], reason: LinkedReason) {
    rules.iter_mut().for_each(|rule| rule.reject(RuleRejection::Linked(reason)));
}
