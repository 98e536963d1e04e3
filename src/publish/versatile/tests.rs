//! The schema vectors, the worked example, and properties of UAD.

mod data;

use proptest::prelude::*;
use serde::Deserialize;

use super::*;
use crate::microdata::{Attr, AttributeCounts};
use crate::privacy::links::KnownDependencies;
use crate::publication::{Guarantee, Protected, Ratio, SubmittedRule};
use crate::spec::{Algorithm, AutoGoal, CorrelatedPolicy, DecompositionScore, UadColoring, UadSettings};

#[derive(Deserialize)]
struct Vectors {
    schema: Vec<SchemaVector>,
}

#[derive(Deserialize)]
struct SchemaVector {
    attrs: Vec<String>,
    rules: Vec<RuleVector>,
    uad: Vec<TableVector>,
    uad_saturate: Vec<TableVector>,
    gd_fixed: Vec<TableVector>,
    gd_final: Vec<TableVector>,
}

#[derive(Deserialize)]
struct RuleVector {
    lhs: Vec<String>,
    rhs: Vec<String>,
}

#[derive(Deserialize, Debug, PartialEq)]
struct TableVector {
    attrs: Vec<String>,
    sa: Option<String>,
    x: Vec<String>,
}

fn attr(name: &str) -> Attr {
    Attr(name.as_bytes()[0] - b'A')
}

fn names(set: AttrSet) -> Vec<String> {
    set.iter().map(|a| char::from(b'A' + a.0).to_string()).collect()
}

fn described(tables: &[SelectedTable]) -> Vec<TableVector> {
    let describe = |table: &SelectedTable| TableVector {
        attrs: names(table.attributes),
        sa: table.sensitive.map(|a| names(AttrSet::one(a)).remove(0)),
        x: names(table.known),
    };
    tables.iter().map(describe).collect()
}

/// Drafts as the vectors have them.
fn drafted(drafts: &[TableDraft]) -> Vec<TableVector> {
    let describe = |draft: &TableDraft| TableVector {
        attrs: names(draft.attributes),
        sa: names(draft.sensitive).pop(),
        x: if !draft.sensitive.is_empty() { names(draft.known()) } else { Vec::new() },
    };
    drafts.iter().map(describe).collect()
}

#[test]
fn the_algorithms_give_the_schemas_of_the_vectors() {
    let vectors: Vectors = serde_json::from_str(include_str!("../../../tests/vectors/gnf.json")).unwrap();
    assert_eq!(vectors.schema.len(), 60);
    for vector in vectors.schema {
        let rules: Vec<PrivacyRule> = vector
            .rules
            .iter()
            .map(|rule| PrivacyRule {
                known: rule.lhs.iter().map(|name| attr(name)).collect(),
                sensitive: attr(&rule.rhs[0]),
                guarantee: Guarantee::LDiversity { l: 2 },
            })
            .collect();
        let attributes = vector.attrs.iter().map(|name| attr(name)).collect();
        let paper = |saturate| UadSettings { saturate, coloring: UadColoring::Paper };
        assert_eq!(described(&decompose(attributes, &rules, paper(false))), vector.uad);
        assert_eq!(described(&decompose(attributes, &rules, paper(true))), vector.uad_saturate);
        let ground = DecompositionInput::new(attributes, rules, &[], &[]);
        let first = ground.rules[0].sensitive;
        let drafts = decompose_greedily(&ground, first, &Control::default()).unwrap();
        assert_eq!(drafted(&drafts), vector.gd_fixed);
        assert_eq!(drafted(&ground.released(&drafts)), vector.gd_final);
    }
}

/// A table of 100 rows in which no value is more frequent than once in ten.
struct Even(usize);

impl AttributeCounts for Even {
    fn rows(&self) -> u64 {
        100
    }
    fn attributes(&self) -> usize {
        self.0
    }
    fn largest(&self, _: Attr) -> u64 {
        10
    }
    fn distinct(&self, _: Attr) -> u64 {
        10
    }
    fn of_values(&self, _: Attr) -> Option<Vec<u64>> {
        Some(vec![10; 10])
    }
}

fn submitted(pointer: usize, known: &[u8], sensitive: u8, l: u64) -> SubmittedRule {
    SubmittedRule {
        pointer: format!("/method/rules/{pointer}"),
        known: known.iter().map(|&a| Attr(a)).collect(),
        protects: Protected::Attribute(Attr(sensitive)),
        guarantee: Guarantee::LDiversity { l },
    }
}

fn plan(attributes: usize, rules: Vec<SubmittedRule>, saturate: bool) -> Design {
    plan_colored(attributes, rules, UadSettings { saturate, coloring: UadColoring::FreeLast })
}

fn plan_colored(attributes: usize, rules: Vec<SubmittedRule>, uad: UadSettings) -> Design {
    plan_even(attributes, &VersatileSpec { uad, addback: false, ..spec(Algorithm::Uad, rules) })
}

/// The plan for a table whose rows are not known.
fn plan_even(attributes: usize, spec: &VersatileSpec) -> Design {
    let names: Vec<String> = (0..attributes).map(|i| i.to_string()).collect();
    let input = PlanInput {
        counts: &Even(attributes),
        published_names: &names,
        names: &names,
        earlier: &[],
        active_rules: &[],
        known: &KnownDependencies::default(),
        earlier_releases: None,
        rows: None,
    };
    super::plan(spec, &input, &Control::default()).unwrap()
}

fn spec(algorithm: Algorithm, rules: Vec<SubmittedRule>) -> VersatileSpec {
    VersatileSpec {
        rules,
        algorithm,
        uad: UadSettings { saturate: false, coloring: UadColoring::FreeLast },
        addback: true,
        try_all: false,
        fill: false,
        score: DecompositionScore::Entropy,
        goal: AutoGoal::Entropy,
        correlated: CorrelatedPolicy::Together,
        closed: None,
        no_rules_reason: None,
    }
}

#[test]
fn the_hospital_rules_give_the_schema_of_section_9() {
    // hospital 0, age 1, gender 2, zipcode 3, race 4, icd9 5
    let rules = vec![submitted(0, &[1, 5], 4, 2), submitted(1, &[2, 5], 3, 2), submitted(2, &[0, 4], 3, 2)];
    let design = plan(6, rules, false);
    let set = |attrs: &[u8]| attrs.iter().map(|&a| Attr(a)).collect::<AttrSet>();
    let bucketized = Bucketized::on(set(&[0, 2, 3, 4]), Attr(3), vec![Guarantee::LDiversity { l: 2 }]);
    assert_eq!(
        design.tables,
        [DesignedTable::new(set(&[0, 2, 3, 4]), Some(bucketized)), DesignedTable::plain(set(&[1, 5])),]
    );
    let statuses: Vec<&RuleStatus> = design.rules.iter().map(|rule| &rule.status).collect();
    assert_eq!(statuses[0], &RuleStatus::Unreachable);
    assert_eq!(statuses[1], &RuleStatus::Guardian { table: 0, known: set(&[2]) });
    assert_eq!(statuses[2], &RuleStatus::Guardian { table: 0, known: set(&[0, 4]) });
}

#[test]
fn free_attributes_join_the_class_that_guards() {
    let rule = |known: &[u8], sensitive| PrivacyRule {
        known: known.iter().map(|&a| Attr(a)).collect(),
        sensitive: Attr(sensitive),
        guarantee: Guarantee::LDiversity { l: 2 },
    };
    let tables = |coloring| {
        let selected = decompose(AttrSet::first(6), &[rule(&[0, 1], 2)], UadSettings { saturate: false, coloring });
        selected.iter().map(|table| (names(table.attributes).concat(), table.sensitive)).collect::<Vec<_>>()
    };
    assert_eq!(tables(UadColoring::FreeLast), [("ABCDEF".to_owned(), Some(Attr(2)))]);
    // the free attributes share the color of C, which thereby guards nothing
    assert_eq!(tables(UadColoring::Paper), [("CDEF".to_owned(), None), ("AB".to_owned(), None)]);
}

#[test]
fn table_keeps_the_strongest_guarantee_of_its_rules() {
    let design = plan(3, vec![submitted(0, &[0], 2, 2), submitted(1, &[1], 2, 5)], false);
    assert_eq!(guarantees(&design), [Guarantee::LDiversity { l: 5 }]);
    let share = |alpha: &str, k| Guarantee::AlphaK { alpha: alpha.parse::<Ratio>().unwrap(), k };
    let with = |rule: SubmittedRule, guarantee| SubmittedRule { guarantee, ..rule };
    // neither implies the other: every bucket keeps both
    let design = plan(3, vec![submitted(0, &[0], 2, 4), with(submitted(1, &[1], 2, 2), share("0.5", 6))], false);
    assert_eq!(guarantees(&design), [Guarantee::LDiversity { l: 4 }, share("0.5", 6)]);
    let design = plan(3, vec![submitted(0, &[0], 2, 4), with(submitted(1, &[1], 2, 2), share("0.5", 3))], false);
    assert_eq!(guarantees(&design), [Guarantee::LDiversity { l: 4 }]);
}

fn guarantees(design: &Design) -> Vec<Guarantee> {
    design.tables[0].bucketized().map(|b| b.single().unwrap().1.to_vec()).unwrap_or_default()
}

#[test]
fn an_implied_rule_is_listed_with_the_rule_that_implies_it() {
    let design = plan(3, vec![submitted(0, &[0], 2, 2), submitted(1, &[0, 1], 2, 2)], false);
    assert_eq!(design.rules[0].implied_by, Some(1));
    assert!(matches!(design.rules[0].status, RuleStatus::Guardian { .. }));
}

#[test]
fn no_rules_give_one_raw_table() {
    let design = plan(4, vec![], false);
    assert_eq!(design.tables, [DesignedTable::plain(AttrSet::first(4))]);
}

proptest! {
    #[test]
    fn uad_partitions_the_attributes_into_guardian_normal_form(
        attributes in 2usize..10,
        raw in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..4), any::<u8>(), 2u64..10), 1..7),
        saturate in any::<bool>(), paper in any::<bool>(),
    ) {
        let rules: Vec<SubmittedRule> = raw.iter().enumerate().map(|(i, (known, sensitive, l))| {
            let sensitive = sensitive % attributes as u8;
            let known: Vec<u8> = known.iter().map(|a| a % attributes as u8).filter(|&a| a != sensitive).collect();
            submitted(i, &known, sensitive, *l)
        }).collect();
        let coloring = if paper { UadColoring::Paper } else { UadColoring::FreeLast };
        let design = plan_colored(attributes, rules, UadSettings { saturate, coloring });
        let all = design.tables.iter().fold(AttrSet::EMPTY, |all, table| all.union(table.attributes));
        prop_assert_eq!(all, AttrSet::first(attributes));
        prop_assert_eq!(design.tables.iter().map(|table| table.attributes.len()).sum::<usize>(), attributes);
        for rule in &design.rules {
            prop_assert!(!matches!(rule.status, RuleStatus::Violated(_)), "{:?}", rule);
        }
    }
}
