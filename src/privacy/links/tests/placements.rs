//! Placements pass the judgement, and their pools satisfy the demands.

use proptest::prelude::*;

use super::super::*;
use super::data::{bits, dependency, known, set, table};
use crate::control::Control;
use crate::microdata::{Attr, AttrSet};
use crate::privacy::Dependency;
use crate::privacy::gnf::{Guard, TableSchema};
use crate::privacy::guarantee::{OverallCounts, holds};
use crate::privacy::rule::RuleDemand;
use crate::publication::{Guarantee, Protected, Reference};

const GUARANTEE: Guarantee = Guarantee::LDiversity { l: 2 };

/// Rows of x 0, a 1, s 2, b 3, c 4 with s -> a, x -> b, a -> c.
fn planted(rows: &[(u32, u32)], seed: u32) -> Vec<Vec<u32>> {
    let a = |s: u32| (s * 7 + seed) % 5 % 2;
    let b = |x: u32| (x + seed / 3) % 2;
    let c = |a: u32| (a + seed / 5) % 2;
    rows.iter().map(|&(x, s)| vec![x, a(s), s, b(x), c(a(s))]).collect()
}

fn planted_dependencies(chosen: u8) -> Vec<Dependency> {
    let all = [
        dependency(&[2], 1),
        dependency(&[0], 3),
        dependency(&[1], 4),
        dependency(&[2], 4),
        dependency(&[0, 2], 4),
        dependency(&[3], 1),
    ];
    (0..6).filter(|bit| chosen >> bit & 1 == 1).map(|bit| all[bit]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn placed_tables_keep_their_rules_and_pools(
        rows in prop::collection::vec((0..4_u32, 0..7_u32), 2..40),
        seed in 0..30_u32,
        chosen in 0..64_u8,
        sides in (0..32_u8, 0..32_u8),
        elsewhere in prop::collection::vec(0..32_u8, 0..2),
    ) {
        let rows = planted(&rows, seed);
        let table = table(&rows);
        // 3 -> 1 does not hold: approximate ones count as links only
        let dependencies: Vec<KnownDependency> = planted_dependencies(chosen)
            .into_iter()
            .map(|dependency| KnownDependency { is_exact: dependency.determinant != set(&[3]), dependency })
            .collect();
        let dependencies = KnownDependencies::new(&dependencies, &[]);
        let sensitive = set(&[2]);
        let row_side = bits(sides.0).minus(sensitive).with(Attr(0));
        let rule = RuleDemand { known: bits(sides.1).minus(sensitive).intersection(row_side).with(Attr(0)), protects: sensitive, guarantee: GUARANTEE };
        let other_tables: Vec<AttrSet> = elsewhere.into_iter().map(|attrs| bits(attrs & attrs.rotate_left(2)).minus(sensitive)).collect();
        let links = dependencies.links(AttrSet::first(5));
        let weights = AttributeWeights::from_counts(&table);
        let context = LinkContext { dependencies: &dependencies, links: &links, weights: &weights };
        let control = Control::default();
        let demand = StratumDemand { protects: sensitive, guarantee: GUARANTEE, reference: Reference::Table };
        let mut tests = StrataTests::new(&table, &[demand], &control);
        let to_place = TableToPlace { row_side, protects: sensitive, known: rule.known, other_tables: &other_tables, published: AttrSet::first(100), closes: false, within: None };
        let placed = match place(&to_place, &context, &mut tests) {
            Ok(placed) => placed,
            Err(StratificationError::Ineligible { strata, .. }) => {
                prop_assert!(!strata.ineligible.is_empty() && strata.largest_l < Some(2));
                return Ok(());
            }
            Err(error) => {
                prop_assert!(matches!(error, StratificationError::Hidden { .. }), "{error:?}");
                return Ok(());
            }
        };
        prop_assert!(row_side.is_subset(placed.kept.union(placed.moved)) && !placed.kept.meets(placed.moved));
        prop_assert!(rule.known.is_subset(placed.kept));

        let guard = Guard { known: placed.kept, protects: Protected::Attribute(Attr(2)), guarantee: GUARANTEE, constant: placed.constant, closes: false };
        let attributes = placed.kept.union(placed.moved).union(sensitive);
        let mut tables = vec![TableSchema { attributes, guards: vec![guard] }];
        let plain = |&attributes: &AttrSet| TableSchema { attributes, guards: vec![] };
        tables.extend(other_tables.iter().map(plain));
        let status = judge(&LinkedSchema { tables: &tables, context }, &[rule], |_, _| false).remove(0);
        prop_assert!(matches!(status, LinkedStatus::Unreachable | LinkedStatus::Guardian { table: 0, .. }), "{status:?} {placed:?}");

        let strata = Strata::new(&table, placed.constant);
        let population = OverallCounts::new(table.column(Attr(2)).counts());
        let mut placed_rows = 0;
        for pool in placed.pools.split().iter() {
            placed_rows += pool.len();
            prop_assert!(pool.iter().all(|&row| strata.of_row()[row as usize] == strata.of_row()[pool[0] as usize]));
            let mut counts = std::collections::BTreeMap::new();
            pool.iter().for_each(|&row| *counts.entry(table.column(Attr(2)).codes.get(row as usize)).or_insert(0) += 1);
            prop_assert!(holds(GUARANTEE, &counts.into_iter().collect::<Vec<_>>(), &population));
        }
        prop_assert_eq!(placed_rows, rows.len());
    }
}

#[test]
fn a_refused_rule_names_the_dependency_and_the_strata() {
    // diagnosis 1 determines chapter 0; chapter 1 has one diagnosis
    let table = table(&[vec![0, 0], vec![0, 1], vec![0, 2], vec![1, 3], vec![1, 3], vec![2, 4], vec![2, 5]]);
    let dependencies = [dependency(&[1], 0)];
    let (exact, links) = (known(&dependencies, true), super::data::links(&dependencies));
    let weights = AttributeWeights::from_counts(&table);
    let context = LinkContext { dependencies: &exact, links: &links, weights: &weights };
    let control = Control::default();
    let demand = StratumDemand { protects: set(&[1]), guarantee: GUARANTEE, reference: Reference::Table };
    let mut tests = StrataTests::new(&table, &[demand], &control);
    let rule = RuleDemand { known: set(&[0]), protects: set(&[1]), guarantee: GUARANTEE };
    let Err(StratificationError::Ineligible { link, strata }) = stratify_rule(&rule, &context, &mut tests) else {
        panic!("a chapter has one diagnosis")
    };
    assert_eq!(link.map(|link| link.because), Some(dependencies[0]));
    assert_eq!((strata.attributes, strata.ineligible, strata.of), (set(&[0]), vec![1], 3));
    assert_eq!((strata.largest_l, strata.worst), (Some(1), Some(StratumCount { count: 2, of: 2 })));

    let determined = RuleDemand { known: set(&[1]), protects: set(&[0]), guarantee: GUARANTEE };
    let error = stratify_rule(&determined, &context, &mut tests).unwrap_err();
    assert_eq!(error, StratificationError::Determined { dependency: dependencies[0] });
    // without the chapter the rule is possible
    let smaller = RuleDemand { known: AttrSet::EMPTY, ..rule };
    assert_eq!(stratify_rule(&smaller, &context, &mut tests), Ok(AttrSet::EMPTY));
}
