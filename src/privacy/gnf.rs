//! Guardian Normal Form of a set of published tables [Jin et al. 2010, Definitions 3 to 5].

use super::guarantee::implies;
use super::rule::{PrivacyRule, RuleDemand};
use crate::microdata::{Attr, AttrSet};
use crate::publication::{Guarantee, Protected};

/// A published table in the terms of Guardian Normal Form.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableSchema {
    /// All attributes of the table.
    pub attributes: AttrSet,
    /// The guards of the table; empty for a plain table.
    pub guards: Vec<Guard>,
}

/// A guarantee of a table by itself.
///
/// An adversary who knows `known` infers the protected side within `guarantee`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Guard {
    /// The attributes that may be known.
    pub known: AttrSet,
    /// The protected attribute or combination.
    pub protects: Protected,
    /// The bound on the inference.
    pub guarantee: Guarantee,
    /// Attributes in which every bucket is constant.
    pub constant: AttrSet,
    /// Whether buckets may break the guarantee that are all rows with their values of `constant`.
    pub closes: bool,
}

impl Guard {
    /// A guard whose buckets are constant in no attribute.
    #[must_use]
    pub const fn new(known: AttrSet, protects: Protected, guarantee: Guarantee) -> Self {
        Self { known, protects, guarantee, constant: AttrSet::EMPTY, closes: false }
    }
}

impl TableSchema {
    /// The table with the attribute `by` in place of all attributes of `joint`.
    fn contracted(&self, joint: AttrSet, by: Attr) -> Self {
        let contract = |set: AttrSet| if joint.is_subset(set) { set.minus(joint).with(by) } else { set.minus(joint) };
        let guard = |guard: &Guard| {
            let protects = match guard.protects {
                Protected::Joint(protected) if protected == joint => Protected::Attribute(by),
                // a guard of a single component does not protect the joint value
                other if other.attributes().meets(joint) => return None,
                other => other,
            };
            Some(Guard { known: contract(guard.known), protects, constant: contract(guard.constant), ..*guard })
        };
        Self { attributes: contract(self.attributes), guards: self.guards.iter().filter_map(guard).collect() }
    }
}

/// Status of a rule in a set of tables.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RuleStatus {
    /// No path leads from a known attribute to the sensitive one.
    Unreachable,
    /// The table is the guardian; `known` are its entry attributes `W` [Jin et al. 2010, Definition 4].
    Guardian {
        /// The index of the guardian among the tables.
        table: usize,
        /// The attributes of the guardian that are known or reached.
        known: AttrSet,
    },
    /// A path exists, and no table is a guardian.
    Violated(GnfViolation),
}

/// Reason why a rule is violated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GnfViolation {
    /// The known attributes with a path to the sensitive one.
    pub reaching: AttrSet,
    /// A shortest path to the sensitive attribute.
    pub path: Vec<PathStep>,
}

/// A table on a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathStep {
    /// Index of the table.
    pub table: usize,
    /// The attributes through which the path enters it.
    pub via: AttrSet,
}

/// The attributes that tables with common attributes connect to `start` [Jin et al. 2010, Definition 3].
///
/// Attributes of `start` without a table reach nothing and are not part of the answer.
fn reach(start: AttrSet, edges: &[AttrSet]) -> AttrSet {
    let occurring = edges.iter().fold(AttrSet::EMPTY, |all, edge| all.union(*edge));
    let mut reached = start.intersection(occurring);
    loop {
        let wider = edges.iter().filter(|edge| edge.meets(reached)).fold(reached, |all, edge| all.union(*edge));
        if wider == reached {
            return reached;
        }
        reached = wider;
    }
}

/// The status of `rule` in `tables`, without a check of eligibility.
#[must_use]
pub fn judge(tables: &[TableSchema], rule: &PrivacyRule) -> RuleStatus {
    let edges: Vec<AttrSet> = tables.iter().map(|table| table.attributes).collect();
    if !reach(rule.known, &edges).contains(rule.sensitive) {
        return RuleStatus::Unreachable;
    }
    if let Some(index) = only_entrance(&edges, rule)
        && let Some(known) = guards(index, &tables[index], &edges, rule)
    {
        return RuleStatus::Guardian { table: index, known };
    }
    let reaches = |attr: &Attr| reach(AttrSet::one(*attr), &edges).contains(rule.sensitive);
    let reaching = rule.known.iter().filter(reaches).collect();
    RuleStatus::Violated(GnfViolation { reaching, path: shortest_path(&edges, rule.known, rule.sensitive) })
}

/// The status of a demand in `tables`; the joint value of a combination counts as one attribute.
///
/// This is sound while one table alone holds any of the combination, and holds all of it. Otherwise the demand counts
/// as violated.
#[must_use]
pub fn judge_demand(tables: &[TableSchema], demand: &RuleDemand) -> RuleStatus {
    let Some(sensitive) = demand.protects.iter().next() else { return RuleStatus::Unreachable };
    let contracted = PrivacyRule { known: demand.known, sensitive, guarantee: demand.guarantee };
    if demand.protects.len() == 1 {
        return judge(tables, &contracted);
    }
    let joint = demand.protects;
    let mut showing = tables.iter().enumerate().filter(|(_, table)| table.attributes.meets(joint));
    let (first, second) = (showing.next(), showing.next());
    if let Some((at, table)) = second.or_else(|| first.filter(|(_, table)| !joint.is_subset(table.attributes))) {
        let via = table.attributes.intersection(joint.union(demand.known));
        return RuleStatus::Violated(GnfViolation { reaching: demand.known, path: vec![PathStep { table: at, via }] });
    }
    let schemas: Vec<TableSchema> = tables.iter().map(|table| table.contracted(joint, sensitive)).collect();
    judge(&schemas, &contracted)
}

/// The status of each of `rules` in `tables`.
#[must_use]
pub fn judge_all(tables: &[TableSchema], rules: &[PrivacyRule]) -> Vec<RuleStatus> {
    rules.iter().map(|rule| judge(tables, rule)).collect()
}

/// A shortest chain of tables from `from` to the sensitive attribute of a violated rule.
///
/// The chain avoids a table that protects the attribute where possible, since other chains do not violate the rule.
#[must_use]
pub fn leak(tables: &[TableSchema], rule: &PrivacyRule, from: Attr) -> Vec<usize> {
    let edges: Vec<AttrSet> = tables.iter().map(|table| table.attributes).collect();
    let path = |edges: &[AttrSet]| shortest_path(edges, AttrSet::one(from), rule.sensitive);
    let protects =
        |index: &usize| tables[*index].guards.iter().any(|guard| guard.protects.attributes().contains(rule.sensitive));
    let mut guarding: Vec<usize> = (0..tables.len()).filter(protects).collect();
    // the guardian that the publisher designed has most of the known side
    guarding.sort_by_key(|&index| std::cmp::Reverse(edges[index].intersection(rule.known).len()));
    let around = guarding.into_iter().find_map(|index| {
        let mut cut = edges.clone();
        cut[index] = cut[index].without(rule.sensitive);
        Some(path(&cut)).filter(|path| !path.is_empty())
    });
    around.unwrap_or_else(|| path(&edges)).into_iter().map(|step| step.table).collect()
}

/// The only table through which paths enter the sensitive attribute; `None` where there are several.
///
/// Several such tables lead around each other, so none is a guardian.
fn only_entrance(edges: &[AttrSet], rule: &PrivacyRule) -> Option<usize> {
    let cut: Vec<AttrSet> = edges.iter().map(|edge| edge.without(rule.sensitive)).collect();
    let reached = reach(rule.known, &cut).union(rule.known);
    let mut entrances = (0..edges.len()).filter(|&at| edges[at].contains(rule.sensitive) && edges[at].meets(reached));
    entrances.next().filter(|_| entrances.next().is_none())
}

/// The entry attributes `W` of table `index`, if it is the guardian of a rule with a path.
fn guards(index: usize, table: &TableSchema, edges: &[AttrSet], rule: &PrivacyRule) -> Option<AttrSet> {
    if !table.attributes.contains(rule.sensitive) {
        return None;
    }
    // (iii) without the sensitive column of this table, no path may reach the sensitive attribute
    let mut cut = edges.to_vec();
    cut[index] = table.attributes.without(rule.sensitive);
    if reach(rule.known, &cut).contains(rule.sensitive) {
        return None;
    }
    // (ii) `W`: the attributes of this table that are known, or reached through the others
    cut[index] = AttrSet::EMPTY;
    let known = table.attributes.without(rule.sensitive).intersection(rule.known.union(reach(rule.known, &cut)));
    let holds = |guard: &Guard| {
        guard.protects == Protected::Attribute(rule.sensitive)
            && known.is_subset(guard.known)
            && implies(guard.guarantee, rule.guarantee)
    };
    (known.is_empty() || table.guards.iter().any(holds)).then_some(known)
}

/// A shortest chain of tables from the known side to the sensitive attribute, by breadth-first search.
fn shortest_path(edges: &[AttrSet], known: AttrSet, sensitive: Attr) -> Vec<PathStep> {
    let mut cameby: Vec<Option<(Option<usize>, AttrSet)>> = vec![None; edges.len()];
    let mut queue: Vec<usize> = Vec::new();
    for (index, edge) in edges.iter().enumerate() {
        if edge.meets(known) {
            cameby[index] = Some((None, edge.intersection(known)));
            queue.push(index);
        }
    }
    let mut next = 0;
    while next < queue.len() {
        let at = queue[next];
        next += 1;
        if edges[at].contains(sensitive) {
            let mut path = Vec::new();
            let mut step = Some(at);
            while let Some((table, (previous, via))) = step.and_then(|table| Some((table, cameby[table]?))) {
                path.push(PathStep { table, via });
                step = previous;
            }
            path.reverse();
            return path;
        }
        for (index, edge) in edges.iter().enumerate() {
            if cameby[index].is_none() && edge.meets(edges[at]) {
                cameby[index] = Some((Some(at), edge.intersection(edges[at])));
                queue.push(index);
            }
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    // hospital 0, age 1, gender 2, zipcode 3, race 4, icd9 5
    fn set(attrs: &[u8]) -> AttrSet {
        attrs.iter().map(|&a| Attr(a)).collect()
    }
    fn rule(known: &[u8], sensitive: u8) -> PrivacyRule {
        PrivacyRule { known: set(known), sensitive: Attr(sensitive), guarantee: Guarantee::LDiversity { l: 2 } }
    }
    fn raw(attrs: &[u8]) -> TableSchema {
        TableSchema { attributes: set(attrs), guards: vec![] }
    }
    fn guarding(known: &[u8], sensitive: u8) -> TableSchema {
        let PrivacyRule { known, sensitive, guarantee } = rule(known, sensitive);
        let protects = Protected::Attribute(sensitive);
        TableSchema { attributes: known.with(sensitive), guards: vec![Guard::new(known, protects, guarantee)] }
    }
    fn joint(attrs: &[u8], known: &[u8], protects: &[u8]) -> TableSchema {
        let guarantee = Guarantee::LDiversity { l: 2 };
        let guard = Guard::new(set(known), Protected::Joint(set(protects)), guarantee);
        TableSchema { attributes: set(attrs), guards: vec![guard] }
    }
    fn hospital_rules() -> [PrivacyRule; 3] {
        [rule(&[1, 5], 4), rule(&[2, 5], 3), rule(&[0, 4], 3)]
    }

    proptest! {
        /// By definition: every table is tried.
        #[test]
        fn the_one_entrance_is_the_only_guardian(
            tables in prop::collection::vec((1..64_u8, prop::option::of(0..6_u8)), 1..6),
            known in 1..64_u8,
            sensitive in 0..6_u8,
        ) {
            let bits = |bits: u8| (0..6).filter(|bit| bits >> bit & 1 == 1).map(Attr).collect::<AttrSet>();
            let guarantee = Guarantee::LDiversity { l: 2 };
            let table = |&(attributes, protects): &(u8, Option<u8>)| {
                let attributes = bits(attributes);
                let guard = |protects: u8| {
                    Guard::new(attributes.without(Attr(protects)), Protected::Attribute(Attr(protects)), guarantee)
                };
                TableSchema { attributes, guards: protects.filter(|p| attributes.contains(Attr(*p))).map(guard).into_iter().collect() }
            };
            let tables: Vec<TableSchema> = tables.iter().map(table).collect();
            let rule = PrivacyRule { known: bits(known).without(Attr(sensitive)), sensitive: Attr(sensitive), guarantee };
            let edges: Vec<AttrSet> = tables.iter().map(|table| table.attributes).collect();
            let all = tables.iter().enumerate();
            let literal = all.filter_map(|(at, table)| Some((at, guards(at, table, &edges, &rule)?))).next();
            match judge(&tables, &rule) {
                RuleStatus::Unreachable => prop_assert!(!reach(rule.known, &edges).contains(rule.sensitive)),
                RuleStatus::Guardian { table, known } => prop_assert_eq!(literal, Some((table, known))),
                RuleStatus::Violated(_) => prop_assert_eq!(literal, None),
            }
        }
    }

    #[test]
    fn table_3_of_the_paper_is_in_normal_form() {
        let tables = [raw(&[0, 1, 2, 5]), guarding(&[4], 3)];
        let expected =
            [RuleStatus::Unreachable, RuleStatus::Unreachable, RuleStatus::Guardian { table: 1, known: set(&[4]) }];
        assert_eq!(judge_all(&tables, &hospital_rules()), expected);
    }

    #[test]
    fn table_2_of_the_paper_violates_every_rule() {
        let tables = [guarding(&[1, 5], 4), guarding(&[2, 5], 3), guarding(&[0, 4], 3)];
        for status in judge_all(&tables, &hospital_rules()) {
            assert!(matches!(status, RuleStatus::Violated(_)), "{status:?}");
        }
    }

    #[test]
    fn judge_violation_names_a_shortest_path() {
        let tables = [raw(&[0, 1]), raw(&[1, 2]), raw(&[2, 3])];
        let RuleStatus::Violated(violation) = judge(&tables, &rule(&[0], 3)) else { panic!("not violated") };
        assert_eq!(violation.reaching, set(&[0]));
        let steps: Vec<_> = violation.path.iter().map(|step| (step.table, step.via)).collect();
        assert_eq!(steps, [(0, set(&[0])), (1, set(&[1])), (2, set(&[2]))]);
    }

    #[test]
    fn judge_violating_path_avoids_a_protecting_table() {
        // both 1 and 2 lead to 3: 1 by a table that protects it, and 2 by one that does not
        let tables = [guarding(&[0, 1], 3), raw(&[1, 2]), raw(&[2, 3])];
        let rule = rule(&[0], 3);
        assert!(matches!(judge(&tables, &rule), RuleStatus::Violated(_)));
        assert_eq!(leak(&tables, &rule, Attr(0)), [0, 1, 2]);
        assert_eq!(leak(&tables[1..], &rule, Attr(1)), [0, 1]);
    }

    #[test]
    fn judge_weaker_guard_is_no_guardian() {
        let mut strict = rule(&[4], 3);
        strict.guarantee = Guarantee::LDiversity { l: 3 };
        assert!(matches!(judge(&[guarding(&[4], 3)], &strict), RuleStatus::Violated(_)));
    }

    #[test]
    fn judge_combination_in_one_table_counts_as_one_attribute() {
        let demand = |known: &[u8], protects: &[u8]| RuleDemand {
            known: set(known),
            protects: set(protects),
            guarantee: Guarantee::LDiversity { l: 2 },
        };
        let violated =
            |tables: &[TableSchema]| matches!(judge_demand(tables, &demand(&[0], &[3, 4])), RuleStatus::Violated(_));
        let guarded = joint(&[0, 1, 3, 4], &[0, 1], &[3, 4]);
        let held = RuleStatus::Guardian { table: 0, known: set(&[0]) };
        assert_eq!(judge_demand(&[guarded.clone(), raw(&[2])], &demand(&[0], &[3, 4])), held);
        assert_eq!(judge_demand(&[raw(&[3, 4]), raw(&[0, 1])], &demand(&[0], &[3, 4])), RuleStatus::Unreachable);
        // the guard protects another combination, or has a smaller known side
        assert!(violated(&[joint(&[0, 1, 3, 4], &[0, 1], &[3, 1])]));
        assert!(violated(&[joint(&[0, 1, 3, 4], &[1], &[3, 4])]));
        // half of the combination, or all of it twice, even without a path
        assert!(violated(&[raw(&[3]), raw(&[4]), raw(&[0])]));
        assert!(violated(&[guarded.clone(), raw(&[3])]));
        assert!(violated(&[guarded, raw(&[3, 4])]));
        // a guard of one component is no guard of the joint value
        assert!(violated(&[guarding(&[0], 3)]));
    }
}
