//! The reference vectors of tests/vectors/dependencies.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::super::*;
use super::data::{known, links, set, table};
use crate::control::Control;
use crate::microdata::{Attr, AttrSet, ColumnAnnotations, ExactFraction, Table};
use crate::privacy::gnf::{Guard, TableSchema};
use crate::privacy::rule::RuleDemand;
use crate::privacy::{Dependency, PrivacyRule};
use crate::publication::{
    Divergence, Guarantee, PriorDistribution, Protected, Ratio, Reference, RhoMode, Thresholds, ValueDistance,
};

#[derive(Deserialize)]
struct GivenDependency {
    determinant: Vec<u8>,
    dependent: u8,
}

fn dependencies(given: &[GivenDependency]) -> Vec<Dependency> {
    given.iter().map(|s| super::data::dependency(&s.determinant, s.dependent)).collect()
}

fn read<T: DeserializeOwned>(text: &str, count: usize) -> Vec<T> {
    let vectors: Vec<T> = serde_json::from_str(text).unwrap();
    assert_eq!(vectors.len(), count);
    vectors
}

#[test]
fn separators_match_reference_vectors() {
    #[derive(Deserialize)]
    struct Vector {
        distinct: Vec<u64>,
        known: Vec<u8>,
        sensitive: u8,
        dependencies: Vec<GivenDependency>,
        determined: Vec<u8>,
        design_side: Vec<u8>,
        cuts: Vec<Vec<u8>>,
    }
    let text = include_str!("../../../../tests/vectors/dependencies/known.json");
    for (at, vector) in read::<Vector>(text, 11).into_iter().enumerate() {
        let dependencies = dependencies(&vector.dependencies);
        let (side, protects) = (set(&vector.known), set(&[vector.sensitive]));
        let links = links(&dependencies);
        let elements: Vec<AttrSet> = links.iter().map(|link| link.attributes).collect();
        let weights = AttributeWeights::from_distinct(vector.distinct);
        let found = separators(&SeparatedSides { protected: protects, known: side, elements: &elements }, &weights);
        assert_eq!(found, vector.cuts.iter().map(|cut| set(cut)).collect::<Vec<_>>(), "{at}");
        assert_eq!(known(&dependencies, false).closure(side), set(&vector.determined), "{at}");
        assert_eq!(design_side(side, protects, &links), set(&vector.design_side), "{at}");
    }
}

fn ratio(value: &Value) -> Ratio {
    match value {
        Value::Number(number) => Ratio::new(number.as_u64().unwrap(), 1).unwrap(),
        text => text.as_str().unwrap().parse().unwrap(),
    }
}

/// A guarantee of a vector, and the table with its thresholds.
fn guarantee(given: &[Value], table: Table, sensitive: Attr) -> (Guarantee, Table) {
    let l = || given[1].as_u64().unwrap();
    let guarantee = match given[0].as_str().unwrap() {
        "l" if given[1].is_number() => Guarantee::LDiversity { l: l() },
        // a share of at most 1/l, where l is no integer
        "l" => {
            let l = ratio(&given[1]);
            Guarantee::AlphaK { alpha: Ratio::new(l.denominator(), l.numerator()).unwrap(), k: 1 }
        }
        "distinct" => Guarantee::DistinctLDiversity { l: l() },
        "entropy" => Guarantee::EntropyLDiversity { l: ratio(&given[1]) },
        "recursive" => Guarantee::RecursiveLDiversity { c: ratio(&given[1]), l: given[2].as_u64().unwrap() },
        "alpha_k" => Guarantee::AlphaK { alpha: ratio(&given[1]), k: given[2].as_u64().unwrap() },
        "t_equal" => {
            Guarantee::TCloseness { t: ratio(&given[1]), distance: ValueDistance::Equal, reference: Default::default() }
        }
        "rho_amplification" => Guarantee::Rho {
            rho1: ratio(&given[1]),
            rho2: ratio(&given[2]),
            mode: RhoMode::Amplification,
            reference: Default::default(),
        },
        "delta_max" => Guarantee::Delta {
            distance: Divergence::Max,
            b: ratio(&given[1]),
            prior: PriorDistribution::Global,
            reference: Default::default(),
        },
        "thresholds" => {
            let values: BTreeMap<String, Ratio> =
                given[1].as_object().unwrap().iter().map(|(value, share)| (value.clone(), ratio(share))).collect();
            let otherwise = ratio(&given[2]);
            let domain = &table.column(sensitive).domain;
            let limit = |code: u32| {
                let value = String::from_utf8(domain.value(code).unwrap().to_vec()).unwrap();
                let share = values.get(&value).copied().unwrap_or(otherwise);
                ExactFraction { numerator: share.numerator().into(), denominator: share.denominator().into() }
            };
            let limits = (0..domain.len() as u32).map(limit).collect();
            let thresholds = Thresholds::Explicit { values, otherwise: Some(otherwise) };
            let annotations = ColumnAnnotations::default().limited(*thresholds.name().bytes(), limits);
            return (thresholds.guarantee(), table.on(sensitive, annotations));
        }
        other => panic!("{other}"),
    };
    (guarantee, table)
}

/// Each value with its count.
type ValueCounts = Vec<(u32, u64)>;

#[test]
fn strata_match_reference_vectors() {
    #[derive(Deserialize)]
    struct Vector {
        rows: Vec<Vec<u32>>,
        sensitive: u8,
        strata_attributes: Vec<u8>,
        guarantee: Vec<Value>,
        reference: String,
        strata: Vec<(Vec<u32>, ValueCounts)>,
        ineligible: Vec<u32>,
        largest_l: u64,
        worst: Worst,
    }
    #[derive(Deserialize)]
    struct Worst {
        count: u64,
        of: u64,
    }
    let text = include_str!("../../../../tests/vectors/dependencies/strata.json");
    for (at, vector) in read::<Vector>(text, 14).into_iter().enumerate() {
        let sensitive = Attr(vector.sensitive);
        let (guarantee, table) = guarantee(&vector.guarantee, table(&vector.rows), sensitive);
        let attributes = set(&vector.strata_attributes);
        let groups = Strata::new(&table, attributes).split();
        let found: Vec<_> = groups
            .iter()
            .map(|rows| {
                let first = &vector.rows[rows[0] as usize];
                let mut counts = BTreeMap::new();
                rows.iter().for_each(|&row| {
                    *counts.entry(vector.rows[row as usize][sensitive.index()]).or_insert(0) += 1;
                });
                let values = attributes.iter().map(|attr| first[attr.index()]).collect::<Vec<_>>();
                (values, counts.into_iter().collect::<Vec<_>>())
            })
            .collect();
        assert_eq!(found, vector.strata, "{at}");
        let reference = if vector.reference == "stratum" { Reference::Stratum } else { Reference::Table };
        let demand = StratumDemand { protects: AttrSet::one(sensitive), guarantee, reference };
        let control = Control::default();
        let mut tests = StrataTests::new(&table, &[demand], &control);
        let tested = tests.test(attributes).unwrap();
        assert_eq!(tested.ineligible, vector.ineligible, "{at}");
        assert_eq!((tested.of, tested.largest_l), (vector.strata.len(), Some(vector.largest_l)), "{at}");
        assert_eq!(tested.worst, Some(StratumCount { count: vector.worst.count, of: vector.worst.of }), "{at}");
    }
}

#[derive(Deserialize)]
struct Sides {
    row_side: Vec<u8>,
    protected: Vec<u8>,
}

fn stratified(sides: &Sides, sensitive: u8, constant: &[u8]) -> TableSchema {
    let (known, constant) = (set(&sides.row_side), set(constant));
    let protects = Protected::Attribute(Attr(sensitive));
    let guard = Guard { known, protects, guarantee: Guarantee::LDiversity { l: 2 }, constant, closes: false };
    let guards = if sides.protected.contains(&sensitive) { vec![guard] } else { Vec::new() };
    TableSchema { attributes: known.union(set(&sides.protected)), guards }
}

fn describe(status: &LinkedStatus) -> String {
    match status {
        LinkedStatus::Unreachable => "unreachable".into(),
        LinkedStatus::Guardian { table, .. } => format!("guardian {table}"),
        LinkedStatus::HeldByStrata { .. } => "strata".into(),
        LinkedStatus::Violated(_) => "violated".into(),
    }
}

#[test]
fn judgements_match_reference_vectors() {
    #[derive(Deserialize)]
    struct Vector {
        tables: Vec<Sides>,
        dependencies: Vec<GivenDependency>,
        known: Vec<u8>,
        sensitive: u8,
        strata_hold: bool,
        strata: Vec<Vec<u8>>,
        without_dependencies: String,
        without_strata: String,
        status: String,
    }
    let text = include_str!("../../../../tests/vectors/dependencies/check.json");
    let weights = AttributeWeights::equal();
    for (at, vector) in read::<Vector>(text, 24).into_iter().enumerate() {
        let exact = dependencies(&vector.dependencies);
        let (exact, links) = (known(&exact, true), links(&exact));
        let nothing = KnownDependencies::default();
        let guarantee = Guarantee::LDiversity { l: 2 };
        let rule = RuleDemand { known: set(&vector.known), protects: set(&[vector.sensitive]), guarantee };
        let make = |constant: &dyn Fn(usize) -> Vec<u8>| -> Vec<TableSchema> {
            let sides = vector.tables.iter().enumerate();
            sides.map(|(index, sides)| stratified(sides, vector.sensitive, &constant(index))).collect()
        };
        let status = |tables: &[TableSchema], context: LinkContext<'_>, strata_hold: bool| {
            let found = judge(&LinkedSchema { tables, context }, &[rule], |_, _| strata_hold);
            describe(&found[0])
        };
        let plain = make(&|_| Vec::new());
        let context = LinkContext { dependencies: &exact, links: &links, weights: &weights };
        let alone = LinkContext { dependencies: &nothing, links: &[], weights: &weights };
        assert_eq!(status(&plain, alone, false), vector.without_dependencies, "{at}");
        assert_eq!(status(&plain, context, vector.strata_hold), vector.without_strata, "{at}");
        for (index, sides) in vector.tables.iter().enumerate().filter(|(_, sides)| !sides.protected.is_empty()) {
            let others = plain.iter().enumerate().filter(|(other, _)| *other != index);
            let mut elements: Vec<AttrSet> = others.map(|(_, table)| table.attributes).collect();
            elements.extend(links.iter().map(|link| link.attributes));
            let known = set(&vector.known).union(set(&sides.row_side));
            let sides = SeparatedSides { protected: set(&sides.protected), known, elements: &elements };
            let first = separators(&sides, &weights).first().copied().unwrap_or_default();
            assert_eq!(first, set(&vector.strata[index]), "{at}");
        }
        let stratified = make(&|index| vector.strata[index].clone());
        assert_eq!(status(&stratified, context, vector.strata_hold), vector.status, "{at}");
        if vector.tables.iter().all(|sides| !sides.row_side.contains(&vector.sensitive)) {
            let rule = PrivacyRule { known: rule.known, sensitive: Attr(vector.sensitive), guarantee };
            let without = match crate::privacy::judge(&plain, &rule) {
                crate::privacy::RuleStatus::Unreachable => "unreachable".into(),
                crate::privacy::RuleStatus::Guardian { table, .. } => format!("guardian {table}"),
                crate::privacy::RuleStatus::Violated(_) => "violated".into(),
            };
            assert_eq!(without, vector.without_dependencies, "{at}");
        }
    }
}

#[test]
fn placements_match_reference_vectors() {
    #[derive(Deserialize)]
    struct Vector {
        rows: Vec<Vec<u32>>,
        row_side: Vec<u8>,
        sensitive: u8,
        known: Vec<u8>,
        dependencies: Vec<GivenDependency>,
        guarantee: Vec<Value>,
        placed: Option<Placed>,
    }
    #[derive(Deserialize)]
    struct Placed {
        strata: Vec<u8>,
        protected: Vec<u8>,
        pools: Vec<Vec<u32>>,
    }
    let text = include_str!("../../../../tests/vectors/dependencies/place.json");
    let mut refused = 0;
    for (at, vector) in read::<Vector>(text, 12).into_iter().enumerate() {
        let (guarantee, table) = guarantee(&vector.guarantee, table(&vector.rows), Attr(vector.sensitive));
        let exact = dependencies(&vector.dependencies);
        let (exact, links) = (known(&exact, true), links(&exact));
        let weights = AttributeWeights::from_counts(&table);
        let context = LinkContext { dependencies: &exact, links: &links, weights: &weights };
        let protects = set(&[vector.sensitive]);
        let control = Control::default();
        let demand = StratumDemand { protects, guarantee, reference: Reference::Table };
        let mut tests = StrataTests::new(&table, &[demand], &control);
        let (row_side, side) = (set(&vector.row_side), set(&vector.known));
        let to_place = TableToPlace {
            row_side,
            protects,
            known: side,
            other_tables: &[],
            published: AttrSet::first(100),
            closes: false,
            within: None,
        };
        let found = place(&to_place, &context, &mut tests);
        let Some(placed) = vector.placed else {
            let Err(StratificationError::Ineligible { strata, .. }) = found else { panic!("{at}: {found:?}") };
            assert!(strata.ineligible.len() <= strata.of && strata.largest_l < Some(2), "{at}: {strata:?}");
            refused += 1;
            continue;
        };
        let found = found.unwrap();
        assert_eq!((found.constant, found.moved), (set(&placed.strata), set(&placed.protected)), "{at}");
        assert_eq!(found.kept, row_side.minus(found.moved), "{at}");
        let pools: Vec<Vec<u32>> = found.pools.split().iter().map(<[u32]>::to_vec).collect();
        assert_eq!(pools, placed.pools, "{at}");
    }
    assert_eq!(refused, 2);
}
