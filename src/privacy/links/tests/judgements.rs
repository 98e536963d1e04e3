//! Judgements against the check without links, and against weaker knowledge.

use proptest::prelude::*;

use super::super::*;
use super::data::{bits, dependency, known, links, set};
use crate::microdata::{Attr, AttrSet};
use crate::privacy::Dependency;
use crate::privacy::gnf::{self, Guard, TableSchema};
use crate::privacy::rule::{PrivacyRule, RuleDemand};
use crate::publication::{Guarantee, Protected};

const GUARANTEE: Guarantee = Guarantee::LDiversity { l: 2 };

/// A table over the attributes that protects one of them, or none.
fn guarded(attributes: AttrSet, protects: Option<u8>) -> TableSchema {
    let protects = protects.map(Attr).filter(|protects| attributes.contains(*protects));
    let guard = |protects: Attr| Guard::new(attributes.without(protects), Protected::Attribute(protects), GUARANTEE);
    TableSchema { attributes, guards: protects.map(guard).into_iter().collect() }
}

fn status(tables: &[TableSchema], dependencies: &[Dependency], rule: RuleDemand) -> LinkedStatus {
    let (known, links, weights) = (known(dependencies, true), links(dependencies), AttributeWeights::equal());
    let context = LinkContext { dependencies: &known, links: &links, weights: &weights };
    judge(&LinkedSchema { tables, context }, &[rule], |_, _| false).remove(0)
}

/// Whether consecutive steps of a path share attributes, from the known to the protected side.
fn is_path(path: &[LinkedStep], tables: &[TableSchema], links: &[Link], rule: &RuleDemand) -> bool {
    let attributes = |step: &LinkedStep| match step.through {
        Element::Table(at) => {
            tables[at].guards.iter().fold(tables[at].attributes, |all, guard| all.union(guard.constant))
        }
        Element::Link(at) => links[at].attributes,
    };
    let (Some(first), Some(last)) = (path.first(), path.last()) else { return false };
    first.via.meets(rule.known)
        && path.iter().all(|step| !step.via.is_empty() && step.via.is_subset(attributes(step)))
        && path.windows(2).all(|pair| pair[1].via.meets(attributes(&pair[0])))
        && attributes(last).meets(rule.protects)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn rules_without_links_have_the_status_of_the_plain_check(
        tables in prop::collection::vec((1..64_u8, prop::option::of(0..6_u8)), 1..6),
        known in 1..64_u8,
        sensitive in 0..6_u8,
    ) {
        let tables: Vec<TableSchema> = tables.iter().map(|&(attrs, protects)| guarded(bits(attrs), protects)).collect();
        let sensitive = Attr(sensitive);
        let rule = PrivacyRule { known: bits(known).without(sensitive), sensitive, guarantee: GUARANTEE };
        let expected = gnf::judge(&tables, &rule);
        match (status(&tables, &[], rule.into()), expected) {
            (LinkedStatus::Unreachable, gnf::RuleStatus::Unreachable) => {}
            (LinkedStatus::Guardian { table, known, constant }, gnf::RuleStatus::Guardian { table: at, known: entry }) => {
                prop_assert_eq!((table, known, constant), (at, entry, AttrSet::EMPTY));
            }
            (LinkedStatus::Violated(found), gnf::RuleStatus::Violated(expected)) => {
                prop_assert_eq!(found.reaching, expected.reaching);
                prop_assert!(is_path(&found.path, &tables, &[], &rule.into()), "{:?}", found.path);
            }
            (found, expected) => prop_assert!(false, "{found:?} and {expected:?}"),
        }
    }

    /// Knowledge never helps: a rule that holds under links holds without one of them.
    #[test]
    fn another_link_never_makes_a_rule_hold(
        tables in prop::collection::vec((1..64_u8, prop::option::of(0..6_u8), 0..64_u8), 1..4),
        linked in prop::collection::vec((0..6_u8, 0..6_u8), 1..4),
        known in 1..64_u8,
        sensitive in 0..6_u8,
    ) {
        let tables: Vec<TableSchema> = tables
            .iter()
            .map(|&(attrs, protects, constant)| {
                let mut table = guarded(bits(attrs), protects);
                // in few attributes of the row side
                let constant = bits(attrs & constant & constant.rotate_left(1));
                table.guards.iter_mut().for_each(|guard| guard.constant = constant.intersection(guard.known));
                table
            })
            .collect();
        let linked: Vec<Dependency> =
            linked.into_iter().filter(|(z, a)| z != a).map(|(z, a)| dependency(&[z], a)).collect();
        let rule = RuleDemand { known: bits(known).without(Attr(sensitive)), protects: set(&[sensitive]), guarantee: GUARANTEE };
        let fewer = status(&tables, linked.get(1..).unwrap_or_default(), rule);
        let more = status(&tables, &linked, rule);
        if !matches!(more, LinkedStatus::Violated(_)) {
            prop_assert!(!matches!(fewer, LinkedStatus::Violated(_)), "{more:?} and {fewer:?}");
        }
        if let LinkedStatus::Violated(violation) = more {
            prop_assert!(is_path(&violation.path, &tables, &links(&linked), &rule), "{:?}", violation.path);
        }
    }
}

// age 0, chapter 1, diagnosis 2, band 3
fn rule(known: &[u8]) -> RuleDemand {
    RuleDemand { known: set(known), protects: set(&[2]), guarantee: GUARANTEE }
}

#[test]
fn constant_buckets_guard_a_rule_that_a_link_enters() {
    let diagnosis_determines_chapter = [dependency(&[2], 1)];
    let mut tables = [guarded(set(&[0, 1, 2]), Some(2))];
    let LinkedStatus::Violated(violation) = status(&tables, &diagnosis_determines_chapter, rule(&[0, 1])) else {
        panic!("the link leads around the buckets")
    };
    assert_eq!(violation.path, [LinkedStep { through: Element::Link(0), via: set(&[1]) }]);
    tables[0].guards[0].constant = set(&[1]);
    let guardian = LinkedStatus::Guardian { table: 0, known: set(&[0, 1]), constant: set(&[1]) };
    assert_eq!(status(&tables, &diagnosis_determines_chapter, rule(&[0, 1])), guardian);
    // the chapter joins the diagnosis
    let known = set(&[0]);
    let guard = Guard::new(known, Protected::Attribute(Attr(2)), GUARANTEE);
    let moved = [TableSchema { attributes: set(&[0, 1, 2]), guards: vec![guard] }];
    let guardian = LinkedStatus::Guardian { table: 0, known, constant: AttrSet::EMPTY };
    assert_eq!(status(&moved, &diagnosis_determines_chapter, rule(&[0])), guardian);
    assert!(matches!(status(&moved, &diagnosis_determines_chapter, rule(&[0, 1])), LinkedStatus::Violated(_)));
}

#[test]
fn a_link_makes_a_separate_table_reachable() {
    let tables = [guarded(set(&[2, 3]), None), guarded(set(&[0]), None)];
    assert_eq!(status(&tables, &[], rule(&[0])), LinkedStatus::Unreachable);
    let LinkedStatus::Violated(violation) = status(&tables, &[dependency(&[0], 3)], rule(&[0])) else {
        panic!("the band leads to the diagnosis")
    };
    let step = |through, via: &[u8]| LinkedStep { through, via: set(via) };
    assert_eq!(violation.path, [step(Element::Link(0), &[0]), step(Element::Table(0), &[3])]);
}

#[test]
fn strata_need_counts_that_readers_know() {
    let context = |dependencies: &[Dependency], is_exact| (known(dependencies, is_exact), links(dependencies));
    let weights = AttributeWeights::equal();
    let judged = |tables: &[TableSchema], dependencies: &[Dependency], is_exact, holds: bool| {
        let (known, links) = context(dependencies, is_exact);
        let context = LinkContext { dependencies: &known, links: &links, weights: &weights };
        judge(&LinkedSchema { tables, context }, &[rule(&[0])], |_, _| holds).remove(0)
    };
    let single = [guarded(set(&[2]), None)];
    let held = LinkedStatus::HeldByStrata { attributes: set(&[0]) };
    assert_eq!(judged(&single, &[dependency(&[2], 0)], true, true), held);
    assert_eq!(judged(&single, &[dependency(&[2], 0)], false, true), held, "the link has the counts");
    assert!(matches!(judged(&single, &[dependency(&[2], 0)], true, false), LinkedStatus::Violated(_)));
    // single columns B 3 and tables (A 1, C) and (A, S): the counts of C 0 and S 2 are in no table
    let apart = [guarded(set(&[1, 2]), None), guarded(set(&[3]), None)];
    let chain = [dependency(&[0], 3), dependency(&[3], 1)];
    let strata = judged(&apart, &chain, false, true);
    assert_eq!(strata, LinkedStatus::HeldByStrata { attributes: set(&[1]) }, "nearest to the diagnosis");
}

#[test]
fn joint_values_need_one_table_alone() {
    let joint = RuleDemand { known: set(&[0]), protects: set(&[1, 2]), guarantee: GUARANTEE };
    let guard = Guard::new(set(&[0]), Protected::Joint(set(&[1, 2])), GUARANTEE);
    let table = TableSchema { attributes: set(&[0, 1, 2]), guards: vec![guard] };
    let inside = [dependency(&[1], 2)];
    let guardian = LinkedStatus::Guardian { table: 0, known: set(&[0]), constant: AttrSet::EMPTY };
    assert_eq!(status(std::slice::from_ref(&table), &inside, joint), guardian);
    let apart = [table, guarded(set(&[1]), None)];
    assert!(matches!(status(&apart, &inside, joint), LinkedStatus::Violated(_)));
}
