//! What the judge admits passes the audit, and nothing else.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use uuid::Uuid;

use super::super::{
    AuditedMark, AuditedSample, ClaimedPeople, KnownSystem, MarkKind, OtherCoverage, OtherCoverageError,
    PeopleClaimError, PeopleFacts, RecordedStatement, SortedHashes, SystemFacts, audit_claim,
};
use super::{DATASET, claim, names, number, places};
use crate::people::{
    Basis, Coverage, CoverageId, Evidence, JudgedRows, KeyedHash, LiveCoverage, PeopleClaim, Place, Resemblance,
    Separation, SeparationStatement, SystemEvidence, UnrelatedPolicy, judge,
};
use crate::publication::CompositionMode;

/// One way in which another coverage can stand to the rows of a job.
#[derive(Clone, Debug)]
struct Standing {
    keyed: bool,
    own_population: Option<&'static str>,
    population: Option<&'static str>,
    systems: Vec<(&'static str, u64)>,
    same_marks: bool,
    has_marks: bool,
    is_equal: bool,
    has_more_tables: bool,
    resemblance: Option<Resemblance>,
    statements: Vec<(bool, bool)>,
    policy: UnrelatedPolicy,
    /// Whether the coverage is a chain, and whether the job republishes.
    chain: (bool, bool),
}

fn standings() -> impl Strategy<Value = Standing> {
    let population = || prop::sample::select(vec![None, Some("p"), Some("q")]);
    let systems = prop::sample::subsequence(vec!["k", "other"], 0..=2);
    let resemblance = prop::sample::select(vec![None, Some(Resemblance::Blocks), Some(Resemblance::Rows)]);
    let statements = prop::collection::vec(any::<(bool, bool)>(), 0..3);
    let policy = prop::sample::select(vec![UnrelatedPolicy::Refuse, UnrelatedPolicy::Mark]);
    let counts = prop::sample::select(vec![0, 0, 1, 3]);
    (
        (any::<bool>(), any::<bool>(), population(), population(), systems, counts),
        (any::<bool>(), prop::bool::weighted(0.8), prop::bool::weighted(0.2), resemblance, statements, policy),
        (prop::bool::weighted(0.3), prop::bool::weighted(0.3)),
    )
        .prop_map(|((keyed, has_more_tables, own_population, population, systems, count), rest, chain)| {
            let (same_marks, has_marks, is_equal, resemblance, statements, policy) = rest;
            let systems = systems.into_iter().map(|name| (name, count)).collect();
            Standing {
                keyed,
                own_population,
                population,
                systems,
                same_marks,
                has_marks,
                is_equal,
                has_more_tables,
                resemblance,
                statements,
                policy,
                chain,
            }
        })
}

const OTHER: Uuid = Uuid::from_u128(8);

/// The rows of a job, another coverage and the statements, for the judge and for the audit.
struct Judged {
    evidence: Evidence,
    live: LiveCoverage,
    separations: Vec<SeparationStatement>,
    facts: PeopleFacts,
    other: OtherCoverage,
    statements: Vec<RecordedStatement>,
}

impl Standing {
    /// Whether the job republishes its population.
    const fn republishes(&self) -> bool {
        self.chain.1 && self.own_population.is_some()
    }

    fn system(&self, persons: u64, mark: u128) -> SystemEvidence {
        let mark = KeyedHash::from_bytes(mark.to_be_bytes());
        let columns = self.has_marks.then(|| ("c1".to_owned(), mark)).into_iter().collect();
        SystemEvidence { persons, columns }
    }

    fn judged(&self) -> Judged {
        let of = |number: u128| KeyedHash::from_bytes(number.to_be_bytes());
        let own: BTreeMap<String, SystemEvidence> =
            self.keyed.then(|| ("k".to_owned(), self.system(3, 5))).into_iter().collect();
        let evidence = Evidence { rows: 3, names: names(2), table: Some(of(1)), systems: own, ..Evidence::default() };
        let theirs = if self.same_marks { 5 } else { 6 };
        let live = LiveCoverage {
            id: CoverageId(9),
            coverage: Coverage {
                populations: self.population.into_iter().map(str::to_owned).collect(),
                datasets: BTreeSet::from([OTHER]),
                tables: [of(if self.is_equal { 1 } else { 2 })]
                    .into_iter()
                    .chain(self.has_more_tables.then(|| of(3)))
                    .collect(),
                systems: self.systems.iter().map(|(name, _)| ((*name).to_owned(), self.system(3, theirs))).collect(),
                chain: self.population.filter(|_| self.chain.0).map(str::to_owned),
                ..Coverage::default()
            },
            published: BTreeSet::from(["c1".to_owned(), "gone".to_owned()]),
            common: self.systems.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect(),
            resemblance: self.resemblance,
        };
        let dataset = |id| Place::Dataset(id);
        let named = |name: Option<&str>, id| name.map_or(Place::Dataset(id), |name| Place::Population(name.to_owned()));
        let separation = |(number, (disjoint, by_tables)): (usize, &(bool, bool))| {
            let kind = if *disjoint { Separation::Disjoint } else { Separation::Others };
            let places = if *by_tables {
                [dataset(DATASET), dataset(OTHER)]
            } else {
                [named(self.own_population, DATASET), named(self.population, OTHER)]
            };
            SeparationStatement::new(Uuid::from_u128(100 + number as u128), kind, places, "for a test".to_owned())
        };
        let separations: Vec<SeparationStatement> = self.statements.iter().enumerate().filter_map(separation).collect();
        let statements = separations.iter().map(|of| RecordedStatement {
            id: of.id.to_string(),
            is_disjoint: of.kind == Separation::Disjoint,
            of: of.of.clone().map(|place| place.to_string()),
        });
        Judged {
            facts: self.facts(),
            other: self.other(&live),
            statements: statements.collect(),
            evidence,
            live,
            separations,
        }
    }

    fn facts(&self) -> PeopleFacts {
        let folder = tempfile::tempdir().unwrap();
        let mut persons = SortedHashes::new(folder.path());
        (0..3).for_each(|person| persons.push(person).unwrap());
        let system = SystemFacts { name: "k".to_owned(), persons, columns: self.has_marks.then(|| vec![4, 5]) };
        let block = AuditedMark { hash: 77, kind: MarkKind::Block(0), weight: 160 * 256 };
        let signature = |hash| AuditedMark { hash, kind: MarkKind::Signature(0), weight: 1 };
        PeopleFacts {
            rows: 3,
            table: 1,
            contents: vec![0, 0],
            systems: if self.keyed { vec![system] } else { Vec::new() },
            marks: [block].into_iter().chain((1000..1100).map(signature)).collect(),
            cuts: vec![false],
        }
    }

    fn other(&self, live: &LiveCoverage) -> OtherCoverage {
        let known = |of: &SystemEvidence| KnownSystem {
            persons: of.persons,
            columns: of.columns.iter().map(|(name, mark)| (name.clone(), number(mark))).collect(),
        };
        let rows = (1000..1100).map(|signature| (signature, 1)).collect();
        OtherCoverage {
            chain: live.coverage.chain.clone(),
            id: live.id.0,
            places: live.coverage.places().iter().map(ToString::to_string).collect(),
            tables: live.coverage.tables.iter().map(number).collect(),
            systems: live.coverage.systems.iter().map(|(name, of)| (name.clone(), known(of))).collect(),
            published: live.published.clone(),
            common: live.common.clone(),
            blocks: (self.resemblance == Some(Resemblance::Blocks)).then_some(77).into_iter().collect(),
            samples: match self.resemblance {
                Some(Resemblance::Rows) => vec![AuditedSample { rows, is_cut: false }],
                _ => Vec::new(),
            },
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn the_audit_passes_what_the_judge_admits_and_nothing_else(standing in standings()) {
        let Judged { evidence, live, separations, facts, other, statements } = standing.judged();
        let publishes = BTreeSet::from(["c1".to_owned()]);
        let rows = JudgedRows {
            dataset: DATASET,
            population: standing.own_population,
            evidence: &evidence,
            publishes: &publishes,
            is_republication: standing.republishes(),
        };
        let judged = judge(&rows, std::slice::from_ref(&live), &separations, standing.policy);
        let mut claimed = ClaimedPeople {
            mode: CompositionMode::SameDatasetOnly,
            key_systems: evidence.systems.keys().cloned().collect(),
            statements: BTreeSet::new(),
            unrelated: BTreeSet::new(),
            places: places(standing.own_population),
            publishes,
            joined: BTreeSet::new(),
            chain: standing.own_population.filter(|_| standing.republishes()).map(str::to_owned),
        };
        let audited = |claimed: &ClaimedPeople| {
            audit_claim(&facts, &evidence.names, claimed, std::slice::from_ref(&other), &statements)
        };
        match judged {
            Ok(admission) => {
                claimed.mode = match admission.claim {
                    PeopleClaim::Enforced => CompositionMode::Enforced,
                    PeopleClaim::WithinPopulation => CompositionMode::WithinPopulation,
                    PeopleClaim::SameDatasetOnly | PeopleClaim::Unproven => CompositionMode::SameDatasetOnly,
                };
                claimed.joined = admission.same.iter().chain(&admission.chain).map(|id| id.0).collect();
                claimed.unrelated = admission.unrelated;
                let named = admission.basis.iter().filter_map(|of| match of {
                    Basis::Statement(id) => Some(id.to_string()),
                    _ => None,
                });
                claimed.statements = named.collect();
                prop_assert_eq!(audited(&claimed), Ok(()));
                // with less said or done than the judge did, it fails
                for statement in claimed.statements.clone() {
                    let mut silent = claimed.clone();
                    silent.statements.remove(&statement);
                    prop_assert!(audited(&silent).is_err());
                }
                if !claimed.joined.is_empty() || !claimed.unrelated.is_empty() {
                    let (joined, unrelated) = (BTreeSet::new(), BTreeSet::new());
                    let apart = ClaimedPeople { joined, unrelated, ..claimed.clone() };
                    prop_assert!(audited(&apart).is_err());
                }
                if claimed.mode != CompositionMode::Enforced {
                    let more = ClaimedPeople { mode: CompositionMode::Enforced, ..claimed };
                    prop_assert!(audited(&more).is_err());
                }
            }
            Err(refusal) => {
                let all: BTreeSet<String> = statements.iter().map(|of| of.id.clone()).collect();
                for joined in [BTreeSet::new(), BTreeSet::from([9])] {
                    for statements in [BTreeSet::new(), all.clone()] {
                        let tried = ClaimedPeople { joined: joined.clone(), statements, ..claimed.clone() };
                        prop_assert!(audited(&tried).is_err(), "{:?}", refusal);
                    }
                }
            }
        }
    }
}

#[test]
fn claims_rest_on_what_is_recorded() {
    let standing = Standing {
        keyed: true,
        own_population: Some("p"),
        population: Some("q"),
        systems: vec![("other", 0)],
        same_marks: false,
        has_marks: true,
        is_equal: false,
        has_more_tables: false,
        resemblance: None,
        statements: vec![(true, false)],
        policy: UnrelatedPolicy::Refuse,
        chain: (false, false),
    };
    let Judged { facts, other, statements, .. } = standing.judged();
    let audited =
        |claim: &ClaimedPeople, others: &[OtherCoverage]| audit_claim(&facts, &names(2), claim, others, &statements);
    let id = statements[0].id.clone();
    let honest = ClaimedPeople { statements: BTreeSet::from([id.clone()]), ..claim() };
    assert_eq!(audited(&honest, std::slice::from_ref(&other)), Ok(()));
    let unrecorded = ClaimedPeople { statements: BTreeSet::from([id.clone(), "made up".to_owned()]), ..claim() };
    let fault = PeopleClaimError::Statement("made up".to_owned());
    assert_eq!(audited(&unrecorded, std::slice::from_ref(&other)), Err(fault));
    assert_eq!(audited(&honest, &[]), Err(PeopleClaimError::Statement(id)), "it is about none that stands");
    let silent = PeopleClaimError::Other { id: 9, how: OtherCoverageError::Unnamed };
    assert_eq!(audited(&claim(), std::slice::from_ref(&other)), Err(silent));
    let keyless = ClaimedPeople { key_systems: BTreeSet::new(), ..claim() };
    assert_eq!(audited(&keyless, &[]), Err(PeopleClaimError::Claim("other key systems")));
    let unproven = ClaimedPeople { mode: CompositionMode::Unproven, joined: BTreeSet::from([9]), ..claim() };
    let fault = PeopleClaimError::Other { id: 9, how: OtherCoverageError::NotSame };
    assert_eq!(audited(&unproven, std::slice::from_ref(&other)), Err(fault));
}
