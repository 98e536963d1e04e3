//! Links in a release of one table: the attributes in which its buckets or classes have to be constant.
//!
//! See `docs/spec/dependencies.md#algorithm`.

use super::designed_rule::{DesignedRule, LinkedReason, RuleRejection};
use super::input::PlanInput;
use super::stratify::{ActiveLinks, reason_of};
use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, AttrSet};
use crate::privacy::Dependency;
use crate::privacy::links::{self, Link, LinkContext, StrataTests, StratificationError, StratumDemand, TableSides};

/// The sides of a release of one table.
pub(super) struct LinkedSides {
    /// The attributes that readers cannot tie to a row.
    pub(super) protected: AttrSet,
    /// The published attributes that they can.
    pub(super) row_side: AttrSet,
    /// Attributes of the row side in which the rows that have to satisfy the demands agree, whatever buckets there are.
    pub(super) constant: AttrSet,
    /// What the rows of a bucket that agree in `constant` have to satisfy.
    pub(super) demands: Vec<StratumDemand>,
}

/// The attributes in which buckets are constant, and the dependencies for which they are.
#[derive(Default)]
pub(super) struct ConstantAttributes {
    /// The attributes; empty where links ask for nothing.
    pub(super) attributes: AttrSet,
    /// Those of [`LinkedSides::constant`] that links tie to the protected ones.
    pub(super) passed: AttrSet,
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
        let Self { protected, row_side, constant, .. } = *self;
        let elements: Vec<AttrSet> = active.links.iter().map(|link| link.attributes).collect();
        if !links::connected(protected, &elements).meets(known) {
            return none();
        }
        // paths through what is constant anyway are cut
        let cut = |link: &Link| Link { attributes: link.attributes.minus(constant), because: link.because };
        let cut: Vec<Link> = active.links.iter().map(cut).collect();
        let context = LinkContext { dependencies: input.known, links: cut.as_slice(), weights: &active.weights };
        let (row_side, known) = (row_side.minus(constant), known.minus(constant));
        let sides =
            TableSides { row_side, protected, known, other_tables: &[], published: AttrSet::EMPTY, within: None };
        match links::stratify(&sides, &context, &mut StrataTests::new(rows.strata, &self.demands, control)) {
            Ok(attributes) => {
                let leads_out =
                    |link: &&Link| link.attributes.meets(protected) && link.attributes.meets(known.union(constant));
                let because = active.links.iter().filter(leads_out).map(|link| link.because).collect();
                let uncut: Vec<AttrSet> = cut.iter().map(|link| link.attributes.minus(attributes)).collect();
                let reached = links::connected(protected, &uncut);
                let passing = active.links.iter().filter(|link| link.attributes.meets(reached));
                let passed =
                    passing.fold(AttrSet::EMPTY, |all, link| all.union(link.attributes.intersection(constant)));
                Ok(Ok(ConstantAttributes { attributes, passed, because }))
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

/// The attributes that links tie to one, each by a link of its own.
pub(super) fn linked_with(attr: Attr, attributes: AttrSet, input: &PlanInput<'_>) -> AttrSet {
    let active = ActiveLinks::among(attributes, input);
    let links = active.iter().flat_map(|active| &active.links).filter(|link| link.attributes.contains(attr));
    links.fold(AttrSet::EMPTY, |all, link| all.union(link.attributes)).without(attr).intersection(attributes)
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
