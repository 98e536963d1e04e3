//! Properties of what is decided by the data.

use crate::privacy;
use crate::privacy::links::{KnownDependencies, KnownDependency};
use crate::publish::versatile::decide::DecompositionSearch;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;
use crate::microdata::{Arena, AttributeType, Codes, Column, Domain, Table};
use crate::privacy::TableSchema;
use crate::publish::assign::{BucketAssignment, assign};
use crate::publish::input::PlanRows;
use crate::random::{RandomStreams, ReleaseKey};

/// A table of columns, given the number of values of each; not all need occur.
fn table(values: usize, rows: &[Vec<u8>]) -> Table {
    let attributes = rows.first().map_or(0, Vec::len);
    let column = |at: usize| {
        let mut arena = Arena::default();
        (0..values).for_each(|value| arena.push(format!("{value:03}").as_bytes()));
        let codes: Vec<u32> = rows.iter().map(|row| u32::from(row[at]) % values as u32).collect();
        let domain = Arc::new(Domain::from_sorted(AttributeType::Text, false, arena));
        Column { domain, codes: Codes::collect(values, codes.into_iter()) }
    };
    Table::new((0..attributes).map(|at| format!("a{at}")).collect(), (0..attributes).map(column).collect())
}

fn rules_of(raw: &[(Vec<u8>, u8, u64)], attributes: usize) -> Vec<SubmittedRule> {
    let rule = |(at, (known, sensitive, l)): (usize, &(Vec<u8>, u8, u64))| {
        let sensitive = sensitive % attributes as u8;
        let known: Vec<u8> = known.iter().map(|a| a % attributes as u8).filter(|&a| a != sensitive).collect();
        submitted(at, &known, sensitive, *l)
    };
    raw.iter().enumerate().map(rule).collect()
}

fn planned(spec: &VersatileSpec, table: &Table, earlier: &[TableSchema], protection: &[PrivacyRule]) -> Design {
    planned_among(spec, table, (earlier, protection), &[])
}

fn planned_among(
    spec: &VersatileSpec,
    table: &Table,
    (earlier, protection): (&[TableSchema], &[PrivacyRule]),
    dependencies: &[Dependency],
) -> Design {
    let streams = RandomStreams::Keyed(ReleaseKey::from_bytes([7; 32]));
    let known = dependencies.iter().map(|&dependency| KnownDependency { dependency, is_exact: true });
    let known = KnownDependencies::new(&known.collect::<Vec<_>>(), &[]);
    let input = PlanInput {
        counts: table,
        published_names: table.names(),
        names: table.names(),
        earlier,
        active_rules: protection,
        known: &known,
        earlier_releases: None,
        rows: Some(PlanRows::new(table, table, &streams)),
    };
    super::super::plan(spec, &input, &Control::default()).unwrap()
}

/// What hangs together with `start` in sets of attributes, once those of `cut` are taken away.
fn connected(start: AttrSet, sets: impl Iterator<Item = AttrSet> + Clone, cut: AttrSet) -> AttrSet {
    let mut reached = start;
    loop {
        let met = sets.clone().map(|set| set.minus(cut)).filter(|set| set.meets(reached));
        let wider = met.fold(reached, AttrSet::union);
        if wider == reached {
            return reached;
        }
        reached = wider;
    }
}

/// Whether nothing leads to the sensitive attribute of a rule, or a table guards it beside the links.
fn holds_with_links(design: &Design, rule: &PrivacyRule, links: &[AttrSet]) -> bool {
    let constant = |table: &DesignedTable| table.guards().first().map_or(AttrSet::EMPTY, |guard| guard.constant);
    let element = |(_, table): (usize, &DesignedTable)| table.attributes.union(constant(table));
    let all = design.tables.iter().enumerate().map(element).chain(links.iter().copied());
    if !connected(rule.known, all, AttrSet::EMPTY).contains(rule.sensitive) {
        return true;
    }
    design.tables.iter().enumerate().any(|(at, table)| {
        let Some(bucketized) = table.bucketized() else { return false };
        let (protected, cut) = (bucketized.sensitive(), constant(table));
        let others = design.tables.iter().enumerate().filter(|(other, _)| *other != at).map(element);
        let near = rule.known.union(table.attributes.minus(protected)).minus(cut);
        bucketized.protects().contains(rule.sensitive)
            && !protected.meets(rule.known)
            && !connected(protected, others.chain(links.iter().copied()), cut).meets(near)
    })
}

/// So few rules that a table of 40 rows and 8 values keeps them, or is refused.
fn rules() -> impl Strategy<Value = Vec<(Vec<u8>, u8, u64)>> {
    prop::collection::vec((prop::collection::vec(any::<u8>(), 0..4), any::<u8>(), 2u64..4), 1..6)
}

fn rows() -> impl Strategy<Value = Vec<Vec<u8>>> {
    (2usize..7).prop_flat_map(|attributes| prop::collection::vec(prop::collection::vec(0u8..8, attributes), 40))
}

fn algorithms() -> impl Strategy<Value = Algorithm> {
    prop::sample::select(vec![Algorithm::Uad, Algorithm::Gd, Algorithm::Auto, Algorithm::SingleAttribute])
}

proptest! {
    #[test]
    fn every_choice_keeps_every_rule_and_publishes_every_attribute(
        raw in rules(), rows in rows(), algorithm in algorithms(), try_all: bool, fill: bool, kl: bool,
    ) {
        let table = table(8, &rows);
        let mut spec = spec(algorithm, rules_of(&raw, rows[0].len()));
        (spec.try_all, spec.fill) = (try_all, fill);
        spec.score = if kl { DecompositionScore::Kl } else { DecompositionScore::Entropy };
        let design = planned(&spec, &table, &[], &[]);
        if design.feasible(table.names()).is_err() {
            prop_assert!(algorithm == Algorithm::SingleAttribute || design.decision == Decision::Undecided);
            return Ok(());
        }
        let schemas = design.schemas();
        for rule in &design.rules {
            prop_assert_eq!(&privacy::judge(&schemas, &rule.rule), &rule.status);
            prop_assert!(!matches!(rule.status, RuleStatus::Violated(_)), "{:?}", design);
        }
        let all = design.tables.iter().fold(AttrSet::EMPTY, |all, table| all.union(table.attributes));
        prop_assert_eq!(all, table.attributes());
        for (at, t) in design.tables.iter().enumerate() {
            prop_assert!(design.tables[..at].iter().all(|other| other.attributes != t.attributes), "{:?}", design);
        }
        prop_assert_eq!(matches!(design.decision, Decision::ByData(_)), algorithm != Algorithm::SingleAttribute);
        // the same again, whatever the processors did
        prop_assert_eq!(&planned(&spec, &table, &[], &[]), &design);
    }

    /// In tiny tables many combinations have no attribute that is rare enough, and other rules lead into them.
    #[test]
    fn combinations_among_any_rules_are_kept_or_refused(
        raw in prop::collection::vec(
            (prop::collection::vec(any::<u8>(), 0..3), prop::collection::vec(any::<u8>(), 1..4), 2u64..4), 1..6),
        rows in (2usize..6, 4usize..14)
            .prop_flat_map(|(attributes, rows)| prop::collection::vec(prop::collection::vec(0u8..4, attributes), rows)),
        algorithm in algorithms(), addback: bool, saturate: bool,
    ) {
        let attributes = rows[0].len() as u8;
        let table = table(4, &rows);
        let set = |of: &[u8]| of.iter().map(|attr| Attr(attr % attributes)).collect::<AttrSet>();
        let rule = |(at, (known, protected, l)): (usize, &(Vec<u8>, Vec<u8>, u64))| {
            let (known, joint) = (set(known), set(protected));
            let protects = match joint.iter().next() {
                Some(attr) if joint.len() == 1 => Protected::Attribute(attr),
                _ => Protected::Joint(joint),
            };
            SubmittedRule { known: known.minus(joint), protects, ..submitted(at, &[], 0, *l) }
        };
        let mut spec = spec(algorithm, raw.iter().enumerate().map(rule).collect());
        (spec.addback, spec.uad.saturate) = (addback, saturate);
        let design = planned(&spec, &table, &[], &[]);
        if design.feasible(table.names()).is_ok() {
            let all = design.tables.iter().fold(AttrSet::EMPTY, |all, table| all.union(table.attributes));
            prop_assert_eq!(all, table.attributes());
            for rule in &design.rules {
                prop_assert!(!matches!(rule.status, RuleStatus::Violated(_)), "{:?}", design);
            }
        }
    }

    /// Every rule holds beside the dependencies by the definition of a guardian, spelled out once more.
    #[test]
    fn rules_hold_under_planted_dependencies(
        raw in rules(), rows in rows(), algorithm in algorithms(), links in prop::collection::vec((any::<u8>(), any::<u8>()), 1..3),
    ) {
        let table = table(8, &rows);
        let attributes = rows[0].len();
        let spec = spec(algorithm, rules_of(&raw, attributes));
        let link = |(a, b): &(u8, u8)| (Attr(a % attributes as u8), Attr(b % attributes as u8));
        let links: Vec<(Attr, Attr)> = links.iter().map(link).filter(|(a, b)| a != b).collect();
        let dependencies: Vec<Dependency> = links
            .iter()
            .map(|&(a, b)| Dependency { determinant: AttrSet::one(a), dependent: b })
            .collect();
        let design = planned_among(&spec, &table, (&[], &[]), &dependencies);
        if design.feasible(table.names()).is_err() || algorithm == Algorithm::SingleAttribute {
            return Ok(());
        }
        let schemas = design.schemas();
        let links: Vec<AttrSet> = links.iter().map(|&(a, b)| AttrSet::one(a).with(b)).collect();
        for rule in design.rules.iter().filter(|rule| rule.implied_by.is_none()) {
            prop_assert!(!matches!(privacy::judge(&schemas, &rule.rule), RuleStatus::Violated(_)), "{:?}", design);
            prop_assert!(holds_with_links(&design, &rule.rule, &links), "{:?} in {:?}", rule, design);
        }
        let all = design.tables.iter().fold(AttrSet::EMPTY, |all, table| all.union(table.attributes));
        prop_assert_eq!(all, table.attributes());
        for one in design.tables.iter().filter_map(|one| one.bucketized().map(|table| one.attributes.minus(table.sensitive()))) {
            prop_assert!(!one.is_empty(), "{:?}", design);
        }
    }

    #[test]
    fn every_step_of_gd_leaves_fewer_rules_broken(raw in rules(), attributes in 2usize..9) {
        let rules: Vec<PrivacyRule> = rules_of(&raw, attributes).iter().filter_map(|rule| match rule.protects {
            Protected::Attribute(sensitive) => Some(PrivacyRule { known: rule.known, sensitive, guarantee: rule.guarantee }),
            Protected::Joint(_) | Protected::Rows => None,
        }).collect();
        let count = rules.len();
        let ground = DecompositionInput::new(AttrSet::first(attributes), rules, &[], &[]);
        let drafts = decompose_greedily(&ground, ground.rules[0].sensitive, &Control::default()).unwrap();
        prop_assert!(ground.holds(&drafts));
        // every step makes one table, and none is made but by a step
        prop_assert!(drafts.len() <= 1 + count);
    }

    /// Beside tables that are published already the new ones keep all rules, or the union is refused.
    #[test]
    fn earlier_tables_are_thought_of(raw in rules(), rows in rows(), earlier in prop::collection::vec(any::<u8>(), 1..4)) {
        let table = table(8, &rows);
        let attributes = rows[0].len();
        let spec = spec(Algorithm::Gd, rules_of(&raw, attributes));
        let set: AttrSet = earlier.iter().map(|a| Attr(a % (attributes + 2) as u8)).collect();
        let earlier = [TableSchema { attributes: set, guards: Vec::new() }];
        let protection = [PrivacyRule { known: AttrSet::one(Attr(0)), sensitive: Attr(1), guarantee: Guarantee::LDiversity { l: 2 } }];
        let design = planned(&spec, &table, &earlier, &protection);
        if design.decision == Decision::Undecided {
            return Ok(());
        }
        let rules: Vec<PrivacyRule> = design.rules.iter().map(|rule| rule.rule).chain(protection).collect();
        let broken = |schemas: &[TableSchema]| rules.iter().filter(|rule| matches!(privacy::judge(schemas, rule), RuleStatus::Violated(_))).count();
        prop_assert!(design.rules.iter().all(|rule| !matches!(rule.status, RuleStatus::Violated(_))));
        let alone: Vec<TableSchema> = table.attributes().iter().map(|attr| TableSchema { attributes: AttrSet::one(attr), guards: Vec::new() }).collect();
        let nearby = |mut schemas: Vec<TableSchema>| { schemas.extend_from_slice(&earlier); schemas };
        // where single columns can stand beside what is published, so can what GD chooses
        if broken(&nearby(alone)) == 0 {
            prop_assert_eq!(broken(&nearby(design.schemas())), 0, "{:?}", design);
        }
    }

    /// Which row of a bucket has which sensitive value has no part in any choice.
    #[test]
    fn the_choice_does_not_depend_on_what_buckets_hide(
        raw in rules(), rows in rows(), algorithm in algorithms(), try_all: bool, fill: bool, predicts: bool,
        turns in prop::collection::vec(any::<u8>(), 8),
    ) {
        let attributes = rows[0].len();
        let table = table(8, &rows);
        let mut spec = spec(algorithm, rules_of(&raw, attributes));
        (spec.try_all, spec.fill) = (try_all, fill);
        if predicts && algorithm == Algorithm::Auto {
            spec.goal = AutoGoal::Classification;
        }
        let design = planned(&spec, &table, &[], &[]);
        if !matches!(design.decision, Decision::ByData(_)) {
            return Ok(());
        }
        let kept: Vec<PrivacyRule> = design.rules.iter().filter(|rule| rule.implied_by.is_none()).map(|rule| rule.rule).collect();
        let ground = DecompositionInput::new(AttrSet::first(attributes), kept, &[], &[]);
        let streams = RandomStreams::Keyed(ReleaseKey::from_bytes([9; 32]));
        let drawn = || -> BTreeMap<Attr, BucketAssignment> {
            let draw = |attr: Attr| {
                let mut stream = streams.stream(&format!("assign/{}", attr.0));
                (attr, assign(table.column(attr), ground.guarantees(attr), &mut stream, &Control::default()).unwrap())
            };
            ground.protected().iter().map(draw).collect()
        };
        let control = Control::default();
        let choose = |table: &Table| {
            let mut scorer = EntropyScorer::with(drawn(), table, spec.score, &control).unwrap();
            let rows = PlanRows::new(table, table, &streams);
            let mut links = CorrelatedAttributes::new(rows, &[], CorrelatedPolicy::Separate, &control);
            DecompositionSearch { ground: &ground, scorer: &mut scorer, links: &mut links, control: &control }.decide(&spec).unwrap()
        };
        // every protected column turned round inside its own buckets
        let mut permuted = rows.clone();
        for (attr, assignment) in drawn() {
            for bucket in 0..assignment.buckets {
                let inside: Vec<usize> = (0..rows.len()).filter(|&row| assignment.bucket_of[row] == bucket).collect();
                let turn = usize::from(turns[(bucket as usize + attr.index()) % turns.len()]);
                inside.iter().enumerate().for_each(|(i, &row)| {
                    permuted[row][attr.index()] = rows[inside[(i + turn) % inside.len()]][attr.index()];
                });
            }
        }
        prop_assert_eq!(choose(&self::table(8, &permuted)), choose(&table));
    }
}

/// Two people in every group of equal age and sex; purchases predict incomes.
#[test]
fn gd_reveals_more_than_uad_for_correlated_attributes() {
    let rows: Vec<Vec<u8>> = (0u8..48).map(|i| vec![i % 6, i / 6 % 8, (i % 6) / 2, i * 5 % 8]).collect();
    let table = table(8, &rows);
    let rules = || vec![submitted(0, &[0, 1], 3, 2)];
    let spec_of = |algorithm, addback| VersatileSpec { addback, ..spec(algorithm, rules()) };
    let uad = planned(&spec_of(Algorithm::Uad, false), &table, &[], &[]);
    let auto = planned(&spec_of(Algorithm::Auto, false), &table, &[], &[]);
    let Decision::ByData(Some(choice)) = &auto.decision else { panic!("{:?}", auto.decision) };
    let lowest = choice.considered.iter().map(|(_, score)| *score).fold(f64::INFINITY, f64::min);
    let winner = choice.considered.iter().find(|(name, _)| *name == choice.winner).unwrap();
    assert!(winner.1 - lowest < 1e-9, "{choice:?}");
    assert_eq!(choice.considered.len(), 5);
    assert_eq!(uad.decision, Decision::ByRules);
    let gd = planned(&spec_of(Algorithm::Gd, false), &table, &[], &[]);
    assert_eq!(gd.tables.len(), 1, "one table holds all, bucketized: {gd:?}");
}

/// The first attribute predicts the two protected ones: with the goal classification both stay next to it.
#[test]
fn classification_keeps_what_predicts_each_protected_attribute() {
    let rows: Vec<Vec<u8>> =
        (0u8..96).map(|i| vec![i % 8, i % 8 / 2 * 2 + i / 8 % 2, (i % 8 / 4 + i / 16) % 8]).collect();
    let table = table(8, &rows);
    let mut spec = spec(Algorithm::Auto, vec![submitted(0, &[0], 1, 2), submitted(1, &[0], 2, 2)]);
    spec.goal = AutoGoal::Classification;
    let design = planned(&spec, &table, &[], &[]);
    let Decision::ByData(Some(choice)) = &design.decision else { panic!("{:?}", design.decision) };
    let winner = choice.considered.iter().find(|(name, _)| *name == choice.winner).unwrap();
    assert!(choice.considered.iter().all(|(_, score)| winner.1 <= score + 1e-9), "{choice:?}");
    // the information is that of the tables, above nothing and at most the entropy of the protected attributes
    assert!(winner.1 < 0.0 && winner.1 >= -2.0 * 8.0_f64.ln(), "{choice:?}");
    let next_to = |protected: u8| {
        design.tables.iter().any(|table| {
            let guards = table.guards().iter().any(|guard| guard.protects.attributes().contains(Attr(protected)));
            guards && table.attributes.contains(Attr(0))
        })
    };
    assert!(next_to(1) && next_to(2), "{design:?}");
}

#[test]
fn unknown_rows_or_rejected_rules_leave_the_plan_undecided() {
    for algorithm in [Algorithm::Gd, Algorithm::Auto, Algorithm::Uad] {
        let design = plan_even(3, &spec(algorithm, vec![submitted(0, &[0], 2, 2)]));
        assert_eq!((design.decision, design.tables.len(), design.rules.len()), (Decision::Undecided, 0, 1));
    }
    let rows: Vec<Vec<u8>> = (0u8..40).map(|i| vec![i % 4, u8::from(i == 0), 0]).collect();
    let design = planned(&spec(Algorithm::Gd, vec![submitted(0, &[0], 1, 2)]), &table(8, &rows), &[], &[]);
    assert_eq!((design.decision, design.tables.len()), (Decision::Undecided, 0));
    assert!(design.rules[0].ineligibility().is_some());
}

#[test]
fn a_plan_that_is_cancelled_stops() {
    let rows: Vec<Vec<u8>> = (0u8..40).map(|i| vec![i % 4, i % 5, i % 8]).collect();
    let table = table(8, &rows);
    let streams = RandomStreams::Identity;
    let input = PlanInput {
        counts: &table,
        published_names: table.names(),
        names: table.names(),
        earlier: &[],
        active_rules: &[],
        known: &KnownDependencies::default(),
        earlier_releases: None,
        rows: Some(PlanRows::new(&table, &table, &streams)),
    };
    let control = Control::default();
    control.cancel();
    let stopped = super::super::plan(&spec(Algorithm::Gd, vec![submitted(0, &[0], 2, 2)]), &input, &control);
    assert!(matches!(stopped, Err(PlanError::Cancelled(_))));
}
