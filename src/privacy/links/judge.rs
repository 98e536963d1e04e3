//! The judgement of rules in published tables under links.

use super::super::gnf::{Guard, TableSchema};
use super::super::guarantee::implies;
use super::super::rule::RuleDemand;
use super::link::Link;
use super::path::{Element, LinkedStep, PathElement, shortest_path};
use super::separation::{connected, separates};
use super::separators::{SeparatedSides, separators};
use super::stratify::LinkContext;
use crate::microdata::AttrSet;
use crate::publication::Protected;

/// Tables and links, in which rules are judged.
#[derive(Clone, Copy, Debug)]
pub struct LinkedSchema<'a> {
    /// All tables that readers have.
    pub tables: &'a [TableSchema],
    /// What the adversary knows of their attributes.
    pub context: LinkContext<'a>,
}

/// Status of a rule in tables and links.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LinkedStatus {
    /// No path leads from a known attribute to the protected side.
    Unreachable,
    /// A table is the guardian.
    Guardian {
        /// The index of the guardian among the tables.
        table: usize,
        /// The attributes of its row side that are known or reached.
        known: AttrSet,
        /// The attributes in which its buckets are constant.
        constant: AttrSet,
    },
    /// Every stratum of attributes that separate the sides satisfies the rule, and readers know its counts.
    HeldByStrata {
        /// The attributes of the strata.
        attributes: AttrSet,
    },
    /// A path exists, and nothing holds the rule.
    Violated(Violation),
}

/// Reason why a rule is violated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// The known attributes with a path to the protected side.
    pub reaching: AttrSet,
    /// A path to the protected side, which leads around a guarding table where there is such a path.
    pub path: Vec<LinkedStep>,
}

/// The status of each rule, without a check of eligibility of the whole table.
///
/// `strata_hold` says whether every stratum of some attributes satisfies a rule by itself.
///
/// # Citations
/// docs/spec/dependencies.md#guardians-and-links; without links, [Jin et al. 2010, Definitions 4 and 5]
pub fn judge(
    schema: &LinkedSchema<'_>,
    rules: &[RuleDemand],
    mut strata_hold: impl FnMut(AttrSet, &RuleDemand) -> bool,
) -> Vec<LinkedStatus> {
    rules.iter().map(|rule| schema.judge(rule, &mut strata_hold)).collect()
}

impl LinkedSchema<'_> {
    fn judge(&self, rule: &RuleDemand, strata_hold: &mut dyn FnMut(AttrSet, &RuleDemand) -> bool) -> LinkedStatus {
        if let Some(shown) = self.shown_apart(rule) {
            return LinkedStatus::Violated(Violation { reaching: rule.known, path: vec![shown] });
        }
        let elements = attributes_of(&self.elements());
        if !connected(rule.known, &elements).meets(rule.protects) {
            return LinkedStatus::Unreachable;
        }
        if let Some(guardian) = (0..self.tables.len()).find_map(|at| self.guardian(at, rule)) {
            return guardian;
        }
        let sides = SeparatedSides { protected: rule.protects, known: rule.known, elements: &elements };
        let mut tried = separators(&sides, self.context.weights).into_iter();
        let held = tried.find(|strata| self.shows_counts(*strata, rule.protects) && strata_hold(*strata, rule));
        if let Some(attributes) = held {
            return LinkedStatus::HeldByStrata { attributes };
        }
        let reaches = |attr: &_| connected(AttrSet::one(*attr), &elements).meets(rule.protects);
        let reaching = rule.known.iter().filter(reaches).collect();
        LinkedStatus::Violated(Violation { reaching, path: self.violating_path(rule) })
    }

    /// A table that shows part of a joint value, where no table alone shows all of it.
    ///
    /// Posteriors of joint values are bounded only where one table alone has them.
    fn shown_apart(&self, rule: &RuleDemand) -> Option<LinkedStep> {
        if rule.protects.len() < 2 {
            return None;
        }
        let mut showing = (0..).zip(self.tables).filter(|(_, table)| learned_of(table).meets(rule.protects));
        let first = showing.next()?;
        let incomplete = || Some(first).filter(|(_, table)| !rule.protects.is_subset(learned_of(table)));
        let (at, table) = showing.next().or_else(incomplete)?;
        let via = learned_of(table).intersection(rule.protects.union(rule.known));
        Some(LinkedStep { through: Element::Table(at), via })
    }

    /// The status that table `at` gives the rule, if it is a guardian.
    fn guardian(&self, at: usize, rule: &RuleDemand) -> Option<LinkedStatus> {
        let table = &self.tables[at];
        let mut bounding = table.guards.iter().filter(|guard| bounds(guard, rule)).peekable();
        bounding.peek()?;
        let others = attributes_of(&self.others(at));
        let guard = bounding.find(|guard| {
            let (row_side, protected) = sides_of(table, guard);
            !rule.known.meets(protected)
                && self.determines_reference(guard, rule)
                && self.is_visible(guard.constant, row_side, protected)
                && separates(guard.constant, protected, rule.known.union(row_side), &others)
        })?;
        let known = sides_of(table, guard).0.intersection(connected(rule.known, &others));
        Some(LinkedStatus::Guardian { table: at, known, constant: guard.constant })
    }

    /// Whether the known side of a rule says with which stratum a guard compares its buckets.
    ///
    /// Otherwise rows of several references would mix.
    fn determines_reference(&self, guard: &Guard, rule: &RuleDemand) -> bool {
        guard.guarantee.reference().is_table()
            || guard.constant.is_subset(self.context.dependencies.closure(rule.known))
    }

    /// Whether readers see that every bucket of a table is constant in `constant`.
    fn is_visible(&self, constant: AttrSet, row_side: AttrSet, protected: AttrSet) -> bool {
        let seen = constant.intersection(row_side).union(protected);
        constant.is_subset(self.context.dependencies.exact_closure(seen))
    }

    /// Whether readers know how many rows have each combination of values of `strata` and `protects`.
    fn shows_counts(&self, strata: AttrSet, protects: AttrSet) -> bool {
        let both = strata.union(protects);
        let row_sides = self.tables.iter().map(row_side_of);
        let links = self.context.links.iter().map(|link| link.attributes);
        row_sides.chain(links).any(|element| both.is_subset(element))
            || strata.is_subset(self.context.dependencies.exact_closure(protects))
    }

    /// Tables, with their constant attributes, and links.
    fn elements(&self) -> Vec<PathElement> {
        let table = |(at, table): (usize, &TableSchema)| PathElement {
            element: Element::Table(at),
            attributes: learned_of(table),
        };
        let link = |(at, link): (usize, &Link)| PathElement { element: Element::Link(at), attributes: link.attributes };
        self.tables.iter().enumerate().map(table).chain(self.context.links.iter().enumerate().map(link)).collect()
    }

    /// The elements without table `at`.
    fn others(&self, at: usize) -> Vec<PathElement> {
        self.elements().into_iter().filter(|other| other.element != Element::Table(at)).collect()
    }

    /// A path of a violated rule: around a table that would guard it, or else the shortest one.
    fn violating_path(&self, rule: &RuleDemand) -> Vec<LinkedStep> {
        let around = (0..self.tables.len()).find_map(|at| self.path_around(at, rule));
        around.or_else(|| shortest_path(rule.known, rule.protects, &self.elements())).unwrap_or_default()
    }

    /// A path to the protected side of table `at` that its buckets do not cut.
    fn path_around(&self, at: usize, rule: &RuleDemand) -> Option<Vec<LinkedStep>> {
        let table = &self.tables[at];
        let guard = table.guards.iter().find(|guard| bounds(guard, rule))?;
        let (row_side, protected) = sides_of(table, guard);
        let rest = |mut element: PathElement| {
            element.attributes = element.attributes.minus(guard.constant);
            element
        };
        let others: Vec<PathElement> = self.others(at).into_iter().map(rest).collect();
        if let Some(path) = shortest_path(rule.known.minus(guard.constant), protected, &others) {
            return Some(path);
        }
        // into the row side of the table, and from there around its buckets
        let row_side = row_side.minus(guard.constant);
        let outside = shortest_path(row_side, protected, &others)?;
        let mut path = shortest_path(rule.known, row_side, &self.others(at))?;
        let reached = connected(rule.known, &attributes_of(&self.others(at)));
        let via = table.attributes.intersection(reached);
        path.push(LinkedStep { through: Element::Table(at), via });
        path.extend(outside);
        Some(path)
    }
}

/// What a reader learns of together: the attributes of a table, and those in which its buckets are constant.
fn learned_of(table: &TableSchema) -> AttrSet {
    table.guards.iter().fold(table.attributes, |learned, guard| learned.union(guard.constant))
}

/// The attributes that stand beside each other row by row: those on the row side of every guard.
fn row_side_of(table: &TableSchema) -> AttrSet {
    table.guards.iter().fold(table.attributes, |side, guard| side.intersection(guard.known))
}

/// The row side and the protected part of a table in the terms of one of its guards.
fn sides_of(table: &TableSchema, guard: &Guard) -> (AttrSet, AttrSet) {
    (table.attributes.intersection(guard.known), table.attributes.minus(guard.known))
}

/// Whether a guard bounds what a rule protects, and strongly enough.
fn bounds(guard: &Guard, rule: &RuleDemand) -> bool {
    let protects_rows = guard.protects == Protected::Rows;
    !protects_rows && guard.protects.attributes() == rule.protects && implies(guard.guarantee, rule.guarantee)
}

fn attributes_of(elements: &[PathElement]) -> Vec<AttrSet> {
    elements.iter().map(|element| element.attributes).collect()
}
