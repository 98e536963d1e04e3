//! Derived evidence is that of uploads; planted faults are found; what the judge admits passes, and nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use proptest::prelude::*;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::*;
use crate::control::{Cancelled, Control};
use crate::microdata::{Chunk, ChunkColumn, Interner};
use crate::people::{
    self, Basis, Coverage, CoverageId, Evidence, EvidenceCollector, Fold, JudgedRows, KeyLayout, KeyedHash,
    KeyedHasher, LiveCoverage, PeopleClaim, Place, Resemblance, Separation, SeparationStatement, SystemColumns,
    SystemEvidence, UnrelatedPolicy, judge,
};
use crate::publication::CompositionMode;

const DATASET: Uuid = Uuid::from_u128(7);

fn hashed(bytes: &[u8]) -> u128 {
    Sha256::digest([b"tenant", bytes].concat()).iter().take(16).fold(0, |hash, byte| hash << 8 | u128::from(*byte))
}

struct Tenant;

impl KeyedHasher for Tenant {
    fn keyed(&self, label: &str, texts: &[&[u8]]) -> KeyedHash {
        KeyedHash::from_bytes(hashed(&people::labelled(label, texts)).to_be_bytes())
    }
}

#[derive(Debug)]
enum TestError {
    Fault(PeopleClaimError),
    Other,
}

impl From<PeopleClaimError> for TestError {
    fn from(fault: PeopleClaimError) -> Self {
        Self::Fault(fault)
    }
}

impl From<io::Error> for TestError {
    fn from(_: io::Error) -> Self {
        Self::Other
    }
}

impl From<Cancelled> for TestError {
    fn from(_: Cancelled) -> Self {
        Self::Other
    }
}

/// Rows of texts, some of them published.
#[derive(Clone, Debug)]
struct TextRows {
    chunks: Vec<Vec<Vec<String>>>,
    left_out: BTreeSet<(u32, usize)>,
    published: BTreeSet<u128>,
}

impl TextRows {
    fn new(rows: Vec<Vec<String>>) -> Self {
        let half = rows.len() / 2;
        let chunks = vec![rows[..half].to_vec(), rows[half..].to_vec()];
        Self { chunks, left_out: BTreeSet::new(), published: BTreeSet::new() }
    }

    fn chunk_of(rows: &[Vec<String>], columns: usize) -> Chunk {
        let column = |column: usize| {
            let mut interner = Interner::default();
            let code = |row: &Vec<String>| interner.intern(row[column].as_bytes()) as u16 + 1;
            let codes: Vec<u16> = rows.iter().map(code).collect();
            ChunkColumn::new(interner.take(), &codes)
        };
        Chunk { rows: rows.len() as u32, columns: (0..columns).map(column).collect() }
    }

    fn columns(&self) -> usize {
        self.chunks.iter().flatten().next().map_or(0, Vec::len)
    }
}

impl AuditedRows for TextRows {
    type Error = TestError;

    fn chunks(&self) -> u32 {
        self.chunks.len() as u32
    }

    fn chunk(&mut self, number: u32) -> Result<Arc<Chunk>, TestError> {
        Ok(Arc::new(Self::chunk_of(&self.chunks[number as usize], self.columns())))
    }

    fn is_kept(&self, chunk: u32, row: usize) -> bool {
        !self.left_out.contains(&(chunk, row))
    }

    fn hash(&self, bytes: &[u8]) -> u128 {
        hashed(bytes)
    }

    fn published(&mut self, _: &str, persons: &[u128]) -> Result<BTreeSet<u128>, TestError> {
        Ok(persons.iter().copied().filter(|person| self.published.contains(person)).collect())
    }
}

fn names(columns: usize) -> Vec<String> {
    (0..columns).map(|column| format!("c{column}")).collect()
}

fn derive(rows: &mut TextRows, layout: &RowsLayout) -> Result<PeopleFacts, PeopleClaimError> {
    let folder = tempfile::tempdir().unwrap();
    derive_facts(rows, layout, folder.path(), &Control::default()).map_err(|error| match error {
        TestError::Fault(fault) => fault,
        TestError::Other => panic!("no fault"),
    })
}

/// What an upload keeps of the same rows, with its persons.
fn collected(rows: &TextRows, layout: &RowsLayout) -> (Evidence, BTreeMap<String, Vec<u128>>) {
    let folder = tempfile::tempdir().unwrap();
    let system = |of: &AuditedSystem| SystemColumns {
        system: of.name.clone(),
        fold: Fold::Standard,
        columns: of.columns.clone(),
    };
    let key_layout = KeyLayout {
        names: names(layout.columns),
        systems: layout.systems.iter().map(system).collect(),
        record_key: layout.record_key.clone(),
        max_rows_per_person: layout.max_rows_per_person,
    };
    let mut collector = EvidenceCollector::new(Tenant, key_layout, folder.path());
    for (number, chunk) in rows.chunks.iter().enumerate() {
        let kept = |row| rows.is_kept(number as u32, row);
        collector.add(&TextRows::chunk_of(chunk, layout.columns), kept).unwrap();
    }
    let mut persons: BTreeMap<String, Vec<u128>> = BTreeMap::new();
    let put = |system: &str, some: &[KeyedHash]| {
        persons.entry(system.to_owned()).or_default().extend(some.iter().map(number));
        Ok(())
    };
    let evidence = collector.finish(&Control::default(), put).unwrap();
    (evidence, persons)
}

fn number(hash: &KeyedHash) -> u128 {
    u128::from_be_bytes(hash.to_bytes())
}

/// The coverage of these rows, as a job announces it.
fn recorded(evidence: &Evidence) -> RecordedRows {
    let column = |(name, mark): (&String, &KeyedHash)| (name.clone(), number(mark));
    let system =
        |of: &SystemEvidence| KnownSystem { persons: of.persons, columns: of.columns.iter().map(column).collect() };
    let block = evidence.blocks.iter().map(|block| AuditedMark {
        hash: number(&block.mark),
        kind: MarkKind::Block(0),
        weight: block.surprise.into(),
    });
    let signatures = evidence.signatures.iter().enumerate().flat_map(|(sample, of)| {
        of.lowest.iter().map(move |signature| AuditedMark {
            hash: number(&signature.hash),
            kind: MarkKind::Signature(sample as u16),
            weight: signature.rows,
        })
    });
    RecordedRows {
        places: places(Some("p")),
        tables: evidence.table.iter().map(number).collect(),
        contents: evidence.contents.iter().map(|(name, mark)| (name.clone(), BTreeSet::from([number(mark)]))).collect(),
        systems: evidence.systems.iter().map(|(name, of)| (name.clone(), system(of))).collect(),
        marks: block.chain(signatures).collect(),
        cuts: evidence.signatures.iter().map(|of| of.is_cut).collect(),
        published: BTreeSet::from(["c1".to_owned()]),
        chain: None,
    }
}

fn places(population: Option<&str>) -> BTreeSet<String> {
    population.map(|name| format!("population:{name}")).into_iter().chain([format!("dataset:{DATASET}")]).collect()
}

fn claim() -> ClaimedPeople {
    ClaimedPeople {
        mode: CompositionMode::Enforced,
        key_systems: BTreeSet::from(["k".to_owned()]),
        statements: BTreeSet::new(),
        unrelated: BTreeSet::new(),
        places: places(Some("p")),
        publishes: BTreeSet::from(["c1".to_owned()]),
        joined: BTreeSet::new(),
        chain: None,
    }
}

fn audit(
    facts: &mut PeopleFacts,
    recorded: &RecordedRows,
    persons: &BTreeMap<String, Vec<u128>>,
) -> Result<(), PeopleClaimError> {
    let page = |system: &str, after: Option<u128>| -> Result<Vec<u128>, TestError> {
        let of = persons.get(system).into_iter().flatten().copied();
        Ok(of.filter(|person| after.is_none_or(|after| *person > after)).take(7).collect())
    };
    let columns = facts.contents.len();
    audit_recorded(facts, &names(columns), &claim(), recorded, page).map_err(|error| match error {
        TestError::Fault(fault) => fault,
        TestError::Other => panic!("no fault"),
    })
}

fn layout(columns: usize, record_key: &[usize], max_rows_per_person: u64) -> RowsLayout {
    let system = AuditedSystem { name: "k".to_owned(), fold: KeyFold::Standard, columns: vec![0] };
    RowsLayout { columns, systems: vec![system], record_key: record_key.to_vec(), max_rows_per_person }
}

/// Rows of `rows / visits` persons with keys in column 0, and cells of as many values as asked for.
fn table(rows: u64, visits: u64, values: &[u64]) -> Vec<Vec<String>> {
    let cell = |row: u64, column: u64, values: u64| {
        let drawn = hashed(&[row.to_be_bytes(), column.to_be_bytes()].concat()) % u128::from(values);
        format!("{}{drawn}", if row.is_multiple_of(3) { " V" } else { "v" })
    };
    let row = |row: u64| {
        let cells = values.iter().enumerate().map(|(column, values)| cell(row, column as u64, *values));
        [format!("P-{}", row / visits)].into_iter().chain(cells).collect()
    };
    (0..rows).map(row).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn derived_evidence_is_that_of_uploads(
        rows in 1..500_u64,
        visits in 1..4_u64,
        values in prop::collection::vec(prop::sample::select(vec![1, 2, 7, 40, 1_000_000]), 1..20),
        has_records in any::<bool>(),
        skipped in 1..9_usize,
    ) {
        let columns = values.len() + 1;
        let mut rows = TextRows::new(table(rows, visits, &values));
        rows.published = (0..500).map(|person| {
            hashed(&people::labelled("person", &[b"k", format!("p-{person}").as_bytes()]))
        }).collect();
        rows.left_out = (0..500).filter(|row| row % skipped == 1).map(|row| (1, row)).collect();
        let record_key: &[usize] = if has_records { &[1] } else { &[] };
        let layout = layout(columns, record_key, visits);
        let (evidence, persons) = collected(&rows, &layout);
        let mut facts = derive(&mut rows, &layout).unwrap();
        prop_assert_eq!(facts.rows, evidence.rows);
        let pairs = |marks: Vec<(u128, u64, u16)>| marks.into_iter().collect::<BTreeSet<_>>();
        let blocks = facts.marks.iter().filter_map(|mark| match mark.kind {
            MarkKind::Block(pair) => Some((mark.hash, mark.weight, pair)),
            MarkKind::Signature(_) => None,
        });
        let expected = evidence.blocks.iter().map(|block| (number(&block.mark), block.surprise.into(), block.pair));
        prop_assert_eq!(pairs(blocks.collect()), pairs(expected.collect()));
        audit(&mut facts, &recorded(&evidence), &persons).unwrap();
    }
}

#[test]
fn rows_that_break_their_promises_are_found() {
    let two_visits = || TextRows::new(table(40, 2, &[5, 5, 5]));
    assert!(derive(&mut two_visits(), &layout(4, &[], 2)).is_ok());
    let fault = derive(&mut two_visits(), &layout(4, &[], 1)).err();
    assert_eq!(fault, Some(PeopleClaimError::TooManyRows("k".to_owned())));
    let mut keyless = two_visits();
    keyless.chunks[1][3][0] = " ".to_owned();
    assert_eq!(derive(&mut keyless, &layout(4, &[], 2)).err(), Some(PeopleClaimError::NoKey("k".to_owned())));
    let mut left_out = two_visits();
    left_out.left_out.insert((0, 4));
    assert_eq!(derive(&mut left_out, &layout(4, &[], 2)).err(), Some(PeopleClaimError::LeftOut));
    left_out.published.insert(hashed(&people::labelled("person", &[b"k", b"p-2"])));
    assert!(derive(&mut left_out, &layout(4, &[], 2)).is_ok());
}

#[test]
fn planted_faults_of_coverages_are_found() {
    let mut rows = TextRows::new(table(600, 1, &[4, 30, 30, 6]));
    let layout = layout(5, &[], 1);
    let (evidence, persons) = collected(&rows, &layout);
    let mut facts = derive(&mut rows, &layout).unwrap();
    let whole = recorded(&evidence);
    assert!(whole.marks.iter().any(|mark| mark.kind == MarkKind::Block(0)), "the table has blocks");
    audit(&mut facts, &whole, &persons).unwrap();

    let persons_fault = Err(PeopleClaimError::Persons("k".to_owned()));
    let mut without = persons.clone();
    without.get_mut("k").unwrap().remove(300);
    assert_eq!(audit(&mut facts, &whole, &without), persons_fault);
    let mut more = persons.clone();
    more.get_mut("k").unwrap().push(u128::MAX);
    assert_eq!(audit(&mut facts, &whole, &more), persons_fault);
    let elsewhere = BTreeMap::from([("other".to_owned(), persons["k"].clone())]);
    assert_eq!(audit(&mut facts, &whole, &elsewhere), persons_fault);

    let mut fails = |change: &dyn Fn(&mut RecordedRows)| {
        let mut changed = whole.clone();
        change(&mut changed);
        audit(&mut facts, &changed, &persons).is_err()
    };
    assert!(fails(&|of| _ = of.marks.pop_first()), "a block is missing");
    assert!(fails(&|of| _ = of.marks.pop_last()), "a signature is missing");
    assert!(fails(&|of| _ = of.marks.insert(AuditedMark { hash: 1, kind: MarkKind::Block(0), weight: 1 })));
    assert!(fails(&|of| of.cuts[0] = !of.cuts[0]));
    assert!(fails(&|of| of.tables = BTreeSet::from([1])));
    assert!(fails(&|of| _ = of.contents.insert("c2".to_owned(), BTreeSet::from([1]))));
    assert!(fails(&|of| _ = of.contents.remove("c2")));
    assert!(fails(&|of| of.systems.get_mut("k").unwrap().persons -= 1));
    assert!(fails(&|of| _ = of.systems.get_mut("k").unwrap().columns.remove("c2")));
    assert!(fails(&|of| of.systems = BTreeMap::from([("other".to_owned(), of.systems["k"].clone())])));
    assert!(fails(&|of| of.published.clear()));
    assert!(fails(&|of| of.places = places(None)));
    assert!(fails(&|of| of.chain = Some("p".to_owned())));
}

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
