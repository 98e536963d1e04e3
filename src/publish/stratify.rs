//! Strata: buckets that are constant in what ties the protected attributes to the known ones by dependencies.
//!
//! A method first designs its tables as if no adversary knew of dependencies. Here each guarded table gets its strata, an attribute
//! that no rule knows may join the protected part, and every rule is judged beside the links.
//!
//! See `docs/spec/dependencies.md#algorithm`.

use std::sync::Arc;

use super::design::Design;
use super::designed_rule::{DesignedRule, LinkedReason, RuleRejection};
use super::designed_table::{Bucketized, DesignedTable, TableDesign};
use super::input::{PlanInput, PlanRows};
use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, AttrSet, AttributeCounts};
use crate::privacy::links::{
    self, AttributeWeights, Element, Link, LinkContext, LinkedSchema, Placement, Strata, StrataTests,
    StratificationError, StratumDemand, TableSides, TableToPlace, Violation,
};
use crate::privacy::{self, Dependency, GnfViolation, PathStep, RuleDemand, RuleStatus};
use crate::publication::{Guarantee, Protected, TableGuard};

const MIXED_REFERENCES_DETAIL: &str = "guarantees that compare with the whole table and with strata cannot share buckets; give all rules on \
     the sensitive attribute the same reference";
const OTHER_REFERENCE_DETAIL: &str = "the known side does not say with which stratum the guarantee compares; add what determines it to \
     the known side, or compare with the whole table";

/// Gives every guarded bucketized table of a design its strata, and judges the rules beside the links.
///
/// Without rows the strata cannot be tested: the design stays as it is, and is judged when rows are read. With a reason
/// to publish `closed` strata, those that break a guarantee become one bucket each.
///
/// # Errors
/// [`Cancelled`] on cancellation.
pub(super) fn stratify(
    design: &mut Design,
    input: &PlanInput<'_>,
    closed: Option<&str>,
    control: &Control,
) -> Result<(), Cancelled> {
    let Some(rows) = input.rows else { return Ok(()) };
    let Some(links) = ActiveLinks::new(design, input) else { return Ok(()) };
    let stratifier = Stratifier { input, rows, links: &links, closes: closed.is_some(), control };
    let (mut tables, rules) = (design.tables.clone(), design.rules.clone());
    let (mut detached, mut cut) = (AttrSet::EMPTY, Vec::new());
    loop {
        control.check()?;
        design.tables.clone_from(&tables);
        // what another place of an attribute mends is no reason to reject a rule
        design.rules.clone_from(&rules);
        for at in 0..design.tables.len() {
            stratifier.place(design, at)?;
        }
        let statuses = stratifier.judge_tables(design)?;
        match stratifier.detachable(design, &statuses, detached) {
            Some(Detached { attribute, sensitive, because }) => {
                // each once: two protected attributes could pull one to and fro
                detached = detached.with(attribute);
                cut.push(because);
                detach(&mut tables, attribute, sensitive);
            }
            None => {
                stratifier.settle(design, statuses);
                design.cut_dependencies.extend(cut);
                return Ok(());
            }
        }
    }
}

/// An attribute that leaves its tables for the one of a protected attribute.
struct Detached {
    attribute: Attr,
    sensitive: Attr,
    /// The dependency that ties them.
    because: Dependency,
}

/// Moves an attribute to the table of the protected attribute that it is linked with.
///
/// It stands beside attributes that the rule knows, and so ties them to the protected one.
fn detach(tables: &mut Vec<DesignedTable>, attribute: Attr, sensitive: Attr) {
    for table in tables.iter_mut().filter(|table| !table.attributes.contains(sensitive)) {
        table.attributes = table.attributes.without(attribute);
        let protects =
            |guards: &[TableGuard]| guards.iter().any(|guard| guard.protects.attributes().contains(attribute));
        if protects(table.guards()) {
            table.design = TableDesign::Plain;
        }
        if let TableDesign::Bucketized(bucketized) = &mut table.design {
            bucketized.guards.iter_mut().for_each(|guard| guard.known = guard.known.without(attribute));
        }
    }
    tables.retain(|table| !table.attributes.is_empty());
    for table in tables.iter_mut().filter(|table| table.attributes.contains(sensitive)) {
        table.attributes = table.attributes.with(attribute);
        if let TableDesign::Bucketized(bucketized) = &mut table.design {
            let protected = bucketized.sensitive();
            let others = table.attributes.minus(protected);
            bucketized.guards.iter_mut().for_each(|guard| guard.known = guard.known.union(others));
        }
    }
}

/// The links that constrain a design.
pub(super) struct ActiveLinks {
    pub(super) links: Vec<Link>,
    pub(super) weights: AttributeWeights,
}

impl ActiveLinks {
    /// The links of the known dependencies among published and known attributes; `None` where there are none.
    fn new(design: &Design, input: &PlanInput<'_>) -> Option<Self> {
        let known = design.rules.iter().fold(AttrSet::EMPTY, |all, rule| all.union(rule.rule.known));
        Self::among(known, input)
    }

    /// The links of the known dependencies among published attributes and those of `known`; `None` where there are none.
    pub(super) fn among(known: AttrSet, input: &PlanInput<'_>) -> Option<Self> {
        let published = AttrSet::first(input.counts.attributes());
        let visible = input.earlier.iter().fold(published.union(known), |all, table| all.union(table.attributes));
        let counts: &dyn AttributeCounts = input.rows.map_or(input.counts, |rows| rows.strata);
        let links = without_rows(input.known.links(visible), AttrSet::first(counts.attributes()));
        (!links.is_empty()).then(|| Self { links, weights: AttributeWeights::from_counts(counts) })
    }
}

/// The links among attributes with rows: those that meet in an attribute without rows become one.
///
/// No strata of such an attribute can be made, so nothing can be cut there.
fn without_rows(mut links: Vec<Link>, with_rows: AttrSet) -> Vec<Link> {
    let hidden = links.iter().fold(AttrSet::EMPTY, |all, link| all.union(link.attributes)).minus(with_rows);
    for attr in hidden.iter() {
        let (meeting, mut others): (Vec<Link>, Vec<Link>) =
            links.into_iter().partition(|link| link.attributes.contains(attr));
        let attributes = meeting.iter().fold(AttrSet::EMPTY, |all, link| all.union(link.attributes)).without(attr);
        others.extend(meeting.first().map(|link| Link { attributes, because: link.because }));
        links = others;
    }
    links.retain(|link| link.attributes.len() > 1);
    links
}

struct Stratifier<'a> {
    input: &'a PlanInput<'a>,
    rows: PlanRows<'a>,
    links: &'a ActiveLinks,
    /// Whether strata that break a guarantee are published as one bucket each.
    closes: bool,
    control: &'a Control,
}

impl<'a> Stratifier<'a> {
    /// The attributes that the release publishes; others can only make strata.
    fn published(&self) -> AttrSet {
        AttrSet::first(self.input.counts.attributes())
    }

    const fn context(&self) -> LinkContext<'a> {
        LinkContext { dependencies: self.input.known, links: self.links.links.as_slice(), weights: &self.links.weights }
    }

    /// Places the attributes of a bucketized table and makes its strata, or rejects the rules that it guards.
    fn place(&self, design: &mut Design, at: usize) -> Result<(), Cancelled> {
        let Some(bucketized) = design.tables[at].bucketized() else { return Ok(()) };
        let guards = bucketized.guards.clone();
        let known = guarded(&design.rules, &guards).fold(AttrSet::EMPTY, |all, rule| all.union(rule.rule.known));
        let others = self.other_tables(design, at);
        let within = self.reference_within(&design.rules, &guards);
        let mut tests = StrataTests::new(self.rows.strata, &demands(&guards), self.control);
        let placed = match bucketized.leaves_out() {
            true => self.constant_for_each(&guards, &others, known, &mut tests),
            false => {
                let protects = bucketized.protects();
                let row_side = design.tables[at].attributes.minus(protects);
                let (other_tables, published, closes) = (&others[..], self.published(), self.closes);
                let table = TableToPlace { row_side, protects, known, other_tables, published, closes, within };
                let placed = links::place(&table, &self.context(), &mut tests);
                match placed {
                    Err(error) if within.is_some() => {
                        // strata of other attributes may hold, but are no reference
                        let anywhere = TableToPlace { within: None, ..table };
                        let because = links::place(&anywhere, &self.context(), &mut tests).ok().and(linked_by(&error));
                        return self.reject_reference(design, &guards, because, &error);
                    }
                    placed => placed,
                }
            }
        };
        if let Some(detail) = placed.as_ref().ok().and_then(|placement| mixed_references(placement, &guards)) {
            for rule in design.rules.iter_mut().filter(|rule| is_guarded_by(rule, &guards)) {
                rule.reject(RuleRejection::Unsupported(detail));
            }
        }
        match placed {
            Ok(placement) => {
                apply(&mut design.tables[at], placement, &self.links.links);
                separate_parts_without_rows(&mut design.tables, at);
                Ok(())
            }
            Err(error) => self.reject_reference(design, &guards, None, &error),
        }
    }

    /// Rejects the rules of a table without strata: those for which a dependency ties the reference, or all.
    fn reject_reference(
        &self,
        design: &mut Design,
        guards: &[TableGuard],
        of_reference: Option<Dependency>,
        error: &StratificationError,
    ) -> Result<(), Cancelled> {
        if *error == StratificationError::Cancelled {
            return Err(Cancelled);
        }
        let reason = reason_of(error);
        for rule in design.rules.iter_mut().filter(|rule| is_guarded_by(rule, guards)) {
            match of_reference.filter(|_| !rule.rule.guarantee.reference().is_table()) {
                Some(dependency) => rule.reject(RuleRejection::Unproved(dependency, OTHER_REFERENCE_DETAIL)),
                None => reject(rule, reason),
            }
        }
        Ok(())
    }

    /// What every rule determines that a table guards with a guarantee that compares with strata; `None` without one.
    fn reference_within(&self, rules: &[DesignedRule], guards: &[TableGuard]) -> Option<AttrSet> {
        let compares = |guarantee: &Guarantee| !guarantee.reference().is_table();
        guards.iter().flat_map(|guard| &guard.guarantees).any(compares).then(|| {
            let relative = guarded(rules, guards).filter(|rule| compares(&rule.rule.guarantee));
            relative.fold(self.published(), |all, rule| all.intersection(self.input.known.closure(rule.rule.known)))
        })
    }

    /// Strata for a table of which each guard takes the other sensitive attributes as known: nothing moves.
    fn constant_for_each(
        &self,
        guards: &[TableGuard],
        others: &[AttrSet],
        known: AttrSet,
        tests: &mut StrataTests<'_>,
    ) -> Result<Placement, StratificationError> {
        let mut constant = AttrSet::EMPTY;
        let mut kept = AttrSet::EMPTY;
        for guard in guards {
            let protected = guard.protects.attributes();
            let sides = TableSides {
                row_side: guard.known,
                protected,
                known: known.minus(protected),
                other_tables: others,
                published: self.published(),
                within: None,
            };
            constant = constant.union(links::stratify(&sides, &self.context(), tests)?);
            kept = kept.union(guard.known);
        }
        let eligibility = tests.test(constant)?;
        if !eligibility.is_eligible() {
            let link = self.links.links.iter().find(|link| link.attributes.meets(constant)).copied();
            return Err(StratificationError::Ineligible { link, strata: Box::new(eligibility.clone()) });
        }
        let pools = Strata::new(self.rows.strata, constant);
        Ok(Placement { kept, moved: AttrSet::EMPTY, constant, pools, closed: Vec::new() })
    }

    /// What readers learn from each other table of the design together, constant attributes included.
    fn other_tables(&self, design: &Design, at: usize) -> Vec<AttrSet> {
        let others = design.tables.iter().enumerate().filter(|(index, _)| *index != at);
        others.map(|(_, table)| table.attributes.union(constant_in(table))).collect()
    }

    /// The status of every rule beside the links, with strata published where they hold a rule.
    fn judge_tables(&self, design: &mut Design) -> Result<Vec<links::LinkedStatus>, Cancelled> {
        let demands: Vec<RuleDemand> = design.rules.iter().map(DesignedRule::demand).collect();
        let statuses = self.judge(design, &demands)?;
        match self.publish_strata(design, &demands, &statuses) {
            Ok(true) => self.judge(design, &demands),
            Ok(false) => Ok(statuses),
            Err(cancelled) => Err(cancelled),
        }
    }

    /// An attribute of the path of a violated rule that a table of its own side ties to what the rule knows.
    ///
    /// It is in no rule, so that it may stand anywhere, and not among those `detached` before. `None` where no attribute helps.
    fn detachable(&self, design: &Design, statuses: &[links::LinkedStatus], detached: AttrSet) -> Option<Detached> {
        let asked = |rule: &&DesignedRule| rule.follows_from.is_none();
        let named = design
            .rules
            .iter()
            .filter(asked)
            .fold(detached, |all, rule| all.union(rule.rule.known).union(rule.judged.attributes()));
        design.rules.iter().zip(statuses).filter(|(rule, _)| asked(rule)).find_map(|(rule, status)| {
            let links::LinkedStatus::Violated(violation) = status else { return None };
            let sensitive = rule.rule.sensitive;
            let mut ties = violation.path.iter().rev().filter_map(|step| match step.through {
                Element::Link(at) if self.links.links[at].attributes.contains(sensitive) => {
                    Some((step.via.minus(named), self.links.links[at].because))
                }
                Element::Link(_) | Element::Table(_) => None,
            });
            let is_elsewhere = |attr: &Attr| {
                let mut holding = design.tables.iter().filter(|table| table.attributes.contains(*attr));
                holding.any(|table| !table.attributes.contains(sensitive) && table.attributes.len() > 1)
            };
            let (attribute, because) =
                ties.find_map(|(via, because)| Some((via.iter().find(is_elsewhere)?, because)))?;
            let shown = design.tables.iter().any(|table| table.attributes.contains(sensitive));
            shown.then_some(Detached { attribute, sensitive, because })
        })
    }

    /// Gives every rule its status, and rejects those that nothing holds.
    fn settle(&self, design: &mut Design, statuses: Vec<links::LinkedStatus>) {
        let schemas = design.schemas();
        let mut is_dropped = vec![false; design.rules.len()];
        for ((rule, status), dropped) in design.rules.iter_mut().zip(statuses).zip(&mut is_dropped) {
            let by_tables = privacy::judge_demand(&schemas, &rule.demand());
            let holds_by_tables = !matches!(by_tables, RuleStatus::Violated(_));
            match status {
                links::LinkedStatus::Unreachable | links::LinkedStatus::Guardian { .. } if holds_by_tables => {
                    rule.status = by_tables;
                }
                // it only steered the design: the rule it follows from decides
                _ if rule.follows_from.is_some() => *dropped = true,
                links::LinkedStatus::Unreachable | links::LinkedStatus::Guardian { .. } => {
                    rule.status = by_tables;
                    reject(rule, self.reason_of_path(&[]));
                }
                links::LinkedStatus::HeldByStrata { attributes } => {
                    let reason = LinkedReason { strata: attributes, ..self.reason_of_path(&[]) };
                    rule.status = RuleStatus::Violated(GnfViolation { reaching: attributes, path: Vec::new() });
                    reject(rule, reason);
                }
                links::LinkedStatus::Violated(Violation { reaching, path }) => {
                    let tables = path.iter().filter_map(|step| match step.through {
                        Element::Table(table) => Some(PathStep { table, via: step.via }),
                        Element::Link(_) => None,
                    });
                    rule.status = RuleStatus::Violated(GnfViolation { reaching, path: tables.collect() });
                    reject(rule, self.reason_of_path(&path));
                }
            }
        }
        design.drop_rules(&is_dropped);
        design.used_dependencies.extend(self.used(design));
        design.used_dependencies.dedup();
    }

    /// The dependencies whose links made strata or moved an attribute.
    fn used(&self, design: &Design) -> Vec<Dependency> {
        let bucketized = || design.tables.iter().filter_map(DesignedTable::bucketized);
        let uses = |link: &&Link| {
            bucketized().any(|table| {
                let moved = table.sensitive().minus(table.protects());
                let constant = table.guards.first().map(|guard| guard.constant).unwrap_or_default();
                link.attributes.meets(table.protects()) && link.attributes.meets(moved.union(constant))
            })
        };
        let links = self.links.links.iter().filter(uses).map(|link| link.because);
        links.filter(|dependency| !design.used_dependencies.contains(dependency)).collect()
    }

    fn judge(&self, design: &Design, demands: &[RuleDemand]) -> Result<Vec<links::LinkedStatus>, Cancelled> {
        let tables = design.schemas();
        let schema = LinkedSchema { tables: &tables, context: self.context() };
        let mut cancelled = None;
        let statuses = links::judge(&schema, demands, |strata, rule| {
            if !rule.guarantee.reference().is_table() && !strata.is_subset(self.input.known.closure(rule.known)) {
                return false;
            }
            let demand = StratumDemand {
                protects: rule.protects,
                guarantee: rule.guarantee,
                reference: rule.guarantee.reference(),
            };
            let mut tests = StrataTests::new(self.rows.strata, &[demand], self.control);
            tests.test(strata).map_or_else(
                |error| {
                    cancelled = Some(error);
                    false
                },
                |eligibility| eligibility.is_eligible() || (self.closes && !strata.is_empty()),
            )
        });
        cancelled.map_or(Ok(statuses), Err)
    }

    /// Publishes the strata that hold a rule beside its sensitive attribute, in place of a table of that attribute alone.
    ///
    /// Who knows less than the counts could otherwise believe what is not so (`docs/spec/dependencies.md`, T4).
    fn publish_strata(
        &self,
        design: &mut Design,
        demands: &[RuleDemand],
        statuses: &[links::LinkedStatus],
    ) -> Result<bool, Cancelled> {
        let mut changed = false;
        for (demand, status) in demands.iter().zip(statuses) {
            let links::LinkedStatus::HeldByStrata { attributes } = *status else { continue };
            let alone = |table: &&mut DesignedTable| table.is_plain() && table.attributes == demand.protects;
            let Some(table) = design.tables.iter_mut().find(alone).filter(|_| attributes.is_subset(self.published()))
            else {
                continue;
            };
            let protects = match demand.protects.iter().next() {
                Some(only) if demand.protects.len() == 1 => Protected::Attribute(only),
                _ => Protected::Joint(demand.protects),
            };
            let all = attributes.union(demand.protects);
            let mut bucketized = Bucketized::new(all, protects, vec![demand.guarantee]);
            let of_guards = self::demands(&bucketized.guards);
            let tested = StrataTests::new(self.rows.strata, &of_guards, self.control).test(attributes)?.clone();
            bucketized.guards[0].constant = attributes;
            bucketized.guards[0].closes = !tested.is_eligible();
            bucketized.closed = tested.ineligible;
            bucketized.strata = Some(Arc::new(Strata::new(self.rows.strata, attributes)));
            *table = DesignedTable::new(all, TableDesign::Bucketized(bucketized));
            changed = true;
        }
        Ok(changed)
    }

    /// The reason of a rule whose path nothing cuts.
    fn reason_of_path(&self, path: &[links::LinkedStep]) -> LinkedReason {
        let link = path.iter().rev().find_map(|step| match step.through {
            Element::Link(at) => self.links.links.get(at),
            Element::Table(_) => None,
        });
        LinkedReason { dependency: link.map(|link| link.because), ..LinkedReason::default() }
    }
}

/// Why the references of guarantees cannot be kept in the same buckets; `None` where they can.
fn mixed_references(placement: &Placement, guards: &[TableGuard]) -> Option<&'static str> {
    let compared: Vec<bool> = guards
        .iter()
        .flat_map(|guard| &guard.guarantees)
        .filter(|guarantee| guarantee.compares())
        .map(|guarantee| guarantee.reference().is_table())
        .collect();
    let is_mixed = compared.contains(&false) && (compared.contains(&true) || guards.len() > 1);
    (is_mixed && !placement.constant.is_empty()).then_some(MIXED_REFERENCES_DETAIL)
}

/// The dependency by which the protected part of a table without strata is tied.
fn linked_by(error: &StratificationError) -> Option<Dependency> {
    match error {
        StratificationError::Hidden { link, .. } | StratificationError::Ineligible { link, .. } => {
            link.map(|link| link.because)
        }
        StratificationError::Determined { dependency } => Some(*dependency),
        StratificationError::Cancelled => None,
    }
}

/// Rejects a rule, unless a reason of dependencies is known already.
fn reject(rule: &mut DesignedRule, reason: LinkedReason) {
    let is_said = |said: &RuleRejection| {
        matches!(
            said,
            RuleRejection::Linked(_)
                | RuleRejection::Determined(_)
                | RuleRejection::Unproved(..)
                | RuleRejection::Unsupported(_)
        )
    };
    if !rule.rejections.iter().any(is_said) {
        rule.reject(RuleRejection::Linked(reason));
    }
}

/// The attributes in which every bucket of a table is constant.
fn constant_in(table: &DesignedTable) -> AttrSet {
    let mut guards = table.guards().iter().map(|guard| guard.constant);
    let first = guards.next().unwrap_or_default();
    guards.fold(first, AttrSet::intersection)
}

/// What every bucket of a table with these guards has to satisfy.
fn demands(guards: &[TableGuard]) -> Vec<StratumDemand> {
    let of_guard = |guard: &TableGuard| {
        let protects = guard.protects.attributes();
        let demand =
            move |&guarantee: &Guarantee| StratumDemand { protects, guarantee, reference: guarantee.reference() };
        guard.guarantees.iter().map(demand).collect::<Vec<_>>()
    };
    guards.iter().flat_map(of_guard).collect()
}

fn is_guarded_by(rule: &DesignedRule, guards: &[TableGuard]) -> bool {
    guards.iter().any(|guard| guard.protects == rule.judged)
}

fn guarded<'a>(rules: &'a [DesignedRule], guards: &'a [TableGuard]) -> impl Iterator<Item = &'a DesignedRule> {
    rules.iter().filter(|rule| is_guarded_by(rule, guards))
}

/// Lays a placement over a bucketized table.
fn apply(table: &mut DesignedTable, placement: Placement, links: &[Link]) {
    let Placement { kept, moved, constant, pools, closed } = placement;
    let TableDesign::Bucketized(bucketized) = &mut table.design else { return };
    let leaves_out = bucketized.leaves_out();
    for attr in moved.iter() {
        // beside the sensitive attribute that it is linked with
        let is_linked =
            |part: &AttrSet| links.iter().any(|link| link.attributes.contains(attr) && link.attributes.meets(*part));
        let part = bucketized.parts.iter().position(is_linked).unwrap_or_default();
        bucketized.parts[part] = bucketized.parts[part].with(attr);
    }
    let protected = bucketized.sensitive();
    table.attributes = kept.union(protected);
    for guard in &mut bucketized.guards {
        if !leaves_out {
            guard.known = kept;
        }
        guard.constant = constant;
        guard.closes = !closed.is_empty();
    }
    bucketized.closed = closed;
    bucketized.strata = (pools.len() > 1).then(|| Arc::new(pools));
}

/// Makes plain tables of the sensitive parts of a table whose other attributes all moved: buckets have nothing to hide.
fn separate_parts_without_rows(tables: &mut Vec<DesignedTable>, at: usize) {
    let Some(bucketized) = tables[at].bucketized() else { return };
    if tables[at].attributes.minus(bucketized.sensitive()).is_empty() {
        let mut parts = bucketized.parts.clone().into_iter().map(DesignedTable::plain);
        let first = parts.next();
        tables.extend(parts);
        tables.splice(at..=at, first);
    }
}

/// What a refusal says of strata that do not hold.
pub(super) fn reason_of(error: &StratificationError) -> LinkedReason {
    match error {
        StratificationError::Determined { dependency } => {
            LinkedReason { dependency: Some(*dependency), ..LinkedReason::default() }
        }
        StratificationError::Ineligible { link, strata } => LinkedReason {
            dependency: link.map(|link| link.because),
            strata: strata.attributes,
            largest_l: strata.largest_l,
            ineligible: Some((strata.ineligible.len(), strata.of)),
            is_fixed: false,
        },
        StratificationError::Hidden { link, separator } => LinkedReason {
            dependency: link.map(|link| link.because),
            strata: separator.unwrap_or_default(),
            ..LinkedReason::default()
        },
        StratificationError::Cancelled => LinkedReason::default(),
    }
}
