//! Every combination of facts about one coverage, against the table of outcomes.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use uuid::Uuid;

use crate::people::{
    Coverage, CoverageId, Evidence, JudgedRows, KeyedHash, LiveCoverage, PeopleClaim, PeopleRefusal, Place,
    Resemblance, Separation, SeparationStatement, SystemEvidence, UnrelatedPolicy, judge,
};

const PERSONS: u64 = 300;

/// What is known of a dataset, of a coverage, and of both.
#[derive(Clone, Copy, Debug)]
struct Facts {
    has_population: bool,
    has_keys: bool,
    /// `none`, `same` or `other`: the population of the coverage.
    place: &'static str,
    has_their_keys: bool,
    has_common_system: bool,
    is_declared_disjoint: bool,
    /// `none`, `some`, `all`, `changed` or `equal`: what exact evidence shows.
    exact: &'static str,
    is_alike: bool,
    is_declared_other: bool,
    policy: UnrelatedPolicy,
}

const FLAGS: [bool; 2] = [false, true];

fn all_facts() -> Vec<Facts> {
    let start = Facts {
        has_population: false,
        has_keys: false,
        place: "none",
        has_their_keys: false,
        has_common_system: false,
        is_declared_disjoint: false,
        exact: "none",
        is_alike: false,
        is_declared_other: false,
        policy: UnrelatedPolicy::Refuse,
    };
    let each =
        |facts: Vec<Facts>, set: &dyn Fn(Facts) -> Vec<Facts>| facts.into_iter().flat_map(set).collect::<Vec<_>>();
    let mut facts = vec![start];
    facts = each(facts, &|of| FLAGS.map(|flag| Facts { has_population: flag, ..of }).to_vec());
    facts = each(facts, &|of| FLAGS.map(|flag| Facts { has_keys: flag, ..of }).to_vec());
    facts = each(facts, &|of| ["none", "same", "other"].map(|place| Facts { place, ..of }).to_vec());
    facts = each(facts, &|of| FLAGS.map(|flag| Facts { has_their_keys: flag, ..of }).to_vec());
    facts = each(facts, &|of| FLAGS.map(|flag| Facts { has_common_system: flag, ..of }).to_vec());
    facts = each(facts, &|of| FLAGS.map(|flag| Facts { is_declared_disjoint: flag, ..of }).to_vec());
    facts = each(facts, &|of| ["none", "some", "all", "changed", "equal"].map(|exact| Facts { exact, ..of }).to_vec());
    facts = each(facts, &|of| FLAGS.map(|flag| Facts { is_alike: flag, ..of }).to_vec());
    facts = each(facts, &|of| FLAGS.map(|flag| Facts { is_declared_other: flag, ..of }).to_vec());
    let policies = [UnrelatedPolicy::Refuse, UnrelatedPolicy::Mark];
    facts = each(facts, &|of| policies.map(|policy| Facts { policy, ..of }).to_vec());
    facts.retain(can_be);
    facts
}

/// Whether tables can be made of which these facts hold.
fn can_be(facts: &Facts) -> bool {
    let keys = (!facts.has_keys || facts.has_population)
        && (facts.place != "none" || !facts.has_their_keys)
        && (!facts.has_common_system || facts.has_keys && facts.has_their_keys);
    let places = facts.place != "same" || facts.has_population && !facts.is_declared_disjoint;
    let persons = facts.has_common_system || !["some", "all", "changed"].contains(&facts.exact);
    let same_cells = facts.is_alike || !(facts.is_declared_other || ["all", "changed", "equal"].contains(&facts.exact));
    keys && places && persons && same_cells
}

/// What the table says.
fn expected(rules: &[Value], facts: &Facts) -> String {
    let known = json!({"d_pop": facts.has_population, "d_keys": facts.has_keys, "place": facts.place,
        "e_keys": facts.has_their_keys, "common": facts.has_common_system, "stated": facts.is_declared_disjoint,
        "exact": facts.exact, "alike": facts.is_alike, "others": facts.is_declared_other, "setting": facts.policy,
        "mode": "enforce"});
    let holds = |name: &String, wanted: &Value| match wanted {
        Value::Array(any) => any.contains(&known[name]),
        one => *one == known[name],
    };
    let rule =
        rules.iter().find(|rule| rule["when"].as_object().unwrap().iter().all(|(name, wanted)| holds(name, wanted)));
    rule.unwrap()["then"].as_str().unwrap().to_owned()
}

fn evidence(system: Option<&str>, marks: [u128; 3], table: u128) -> Evidence {
    let columns = ["age", "ward", "sex"].iter().zip(marks).map(|(name, mark)| ((*name).to_owned(), KeyedHash(mark)));
    let system_evidence = SystemEvidence { persons: PERSONS, columns: columns.collect() };
    Evidence {
        systems: system.into_iter().map(|name| (name.to_owned(), system_evidence.clone())).collect(),
        table: Some(KeyedHash(table)),
        names: ["age", "ward", "sex"].map(str::to_owned).to_vec(),
        ..Evidence::default()
    }
}

fn found(facts: &Facts) -> String {
    let (own, theirs) = (Uuid::from_u128(1), Uuid::from_u128(2));
    let rows = evidence(facts.has_keys.then_some("k"), [1, 2, 3], 1);
    let system = if facts.has_common_system { "k" } else { "other" };
    let (ward, table) = (if facts.exact == "changed" { 20 } else { 2 }, if facts.exact == "equal" { 1 } else { 2 });
    let other = evidence(facts.has_their_keys.then_some(system), [1, ward, 30], table);
    let their_population = match facts.place {
        "same" => Some("P"),
        "other" => Some("Q"),
        _ => None,
    };
    let met = match facts.exact {
        "none" => 0,
        "some" => 10,
        _ => PERSONS,
    };
    let live = LiveCoverage {
        id: CoverageId(1),
        coverage: Coverage::new(theirs, their_population, &other),
        published: ["age", "ward"].map(str::to_owned).into(),
        common: facts.has_common_system.then(|| ("k".to_owned(), met)).into_iter().collect::<BTreeMap<_, _>>(),
        resemblance: facts.is_alike.then_some(Resemblance::Rows),
    };
    let place = |population: Option<&str>, dataset| match population {
        Some(name) => Place::Population(name.to_owned()),
        None => Place::Dataset(dataset),
    };
    let population = facts.has_population.then_some("P");
    let mut statements = Vec::new();
    let mut declare =
        |kind, places| statements.extend(SeparationStatement::new(Uuid::nil(), kind, places, String::new()));
    if facts.is_declared_disjoint {
        declare(Separation::Disjoint, [place(population, own), place(their_population, theirs)]);
    }
    if facts.is_declared_other {
        declare(Separation::Others, [Place::Dataset(own), Place::Dataset(theirs)]);
    }
    let publishes: BTreeSet<String> = ["ward", "sex"].map(str::to_owned).into();
    let judged =
        JudgedRows { dataset: own, population, evidence: &rows, publishes: &publishes, is_republication: false };
    let outcome = match judge(&judged, &[live], &statements, facts.policy) {
        Ok(admission) => match admission.claim {
            PeopleClaim::Enforced => "published enforced",
            PeopleClaim::WithinPopulation => "published within_population",
            PeopleClaim::SameDatasetOnly => "published same_dataset_only",
            PeopleClaim::Unproven => "published unproven",
        },
        Err(PeopleRefusal::StatementContradicted { .. }) => "statement-contradicted",
        Err(PeopleRefusal::PopulationUndeclared { .. }) => "population-undeclared",
        Err(PeopleRefusal::PeopleUnknown { .. }) => "people-unknown",
        Err(PeopleRefusal::OverlappingPeople { .. }) => "overlapping-people",
        Err(PeopleRefusal::PeopleAlike { .. }) => "people-alike",
        Err(PeopleRefusal::EverybodyPublished) => "nobody-new",
        Err(PeopleRefusal::PublishedWithoutChain { .. }) => "republish-not-started",
    };
    outcome.to_owned()
}

#[test]
fn every_combination_of_facts_is_decided_by_the_table() {
    let vectors = include_str!("../../../tests/vectors/identity/scenarios.json");
    let vectors: Value = serde_json::from_str(vectors).unwrap();
    let rules = vectors["decision_table"].as_array().unwrap();
    assert_eq!(rules.len(), 15);
    let facts = all_facts();
    assert_eq!(facts.len(), 292);
    let mut outcomes = BTreeSet::new();
    for facts in facts {
        let expected = expected(rules, &facts);
        assert_eq!(found(&facts), expected, "{facts:?}");
        outcomes.insert(expected);
    }
    assert_eq!(outcomes.len(), 8, "{outcomes:?}");
}
