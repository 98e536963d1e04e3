//! Derived evidence is that of uploads, and planted faults are found.

mod claims;

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
    self, Evidence, EvidenceCollector, Fold, KeyLayout, KeyedHash, KeyedHasher, SystemColumns, SystemEvidence,
};
use crate::publication::CompositionMode;

const DATASET: Uuid = Uuid::from_u128(7);

fn hashed(bytes: &[u8]) -> u128 {
    Sha256::digest([b"tenant", bytes].concat()).iter().take(16).fold(0, |hash, byte| hash << 8 | u128::from(*byte))
}

struct Tenant;

impl KeyedHasher for Tenant {
    fn keyed_bytes(&self, bytes: &[u8]) -> KeyedHash {
        KeyedHash::from_bytes(hashed(bytes).to_be_bytes())
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
        continued: None,
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

/// Persons that a ledger lists, and those of a chain.
struct Listed<'a> {
    persons: &'a BTreeMap<String, Vec<u128>>,
    chain: &'a BTreeSet<u128>,
}

impl RecordedPersons for Listed<'_> {
    type Error = TestError;

    fn listed(&mut self, system: &str, after: Option<u128>) -> Result<Vec<u128>, TestError> {
        let of = self.persons.get(system).into_iter().flatten().copied();
        Ok(of.filter(|person| after.is_none_or(|after| *person > after)).take(7).collect())
    }

    fn continued(&mut self, _: &str, persons: &[u128]) -> Result<u64, TestError> {
        Ok(persons.iter().filter(|person| self.chain.contains(person)).count() as u64)
    }
}

fn audit(
    facts: &mut PeopleFacts,
    recorded: &RecordedRows,
    persons: &BTreeMap<String, Vec<u128>>,
) -> Result<(), PeopleClaimError> {
    audit_claimed(facts, recorded, &claim(), &mut Listed { persons, chain: &BTreeSet::new() })
}

fn audit_claimed(
    facts: &mut PeopleFacts,
    recorded: &RecordedRows,
    claim: &ClaimedPeople,
    persons: &mut Listed<'_>,
) -> Result<(), PeopleClaimError> {
    let columns = facts.contents.len();
    audit_recorded(facts, &names(columns), claim, recorded, persons).map_err(|error| match error {
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

#[test]
fn a_night_lists_the_persons_that_its_chain_has_not() {
    let mut rows = TextRows::new(table(600, 1, &[4, 30]));
    let (evidence, persons) = collected(&rows, &layout(3, &[], 1));
    let mut facts = derive(&mut rows, &layout(3, &[], 1)).unwrap();
    let all = &persons["k"];
    let night = ClaimedPeople { joined: BTreeSet::from([9]), chain: Some("p".to_owned()), ..claim() };
    let mut check = |listed: &[u128], chain: &[u128], night: &ClaimedPeople| {
        let chain: BTreeSet<u128> = chain.iter().copied().collect();
        let common = all.iter().filter(|person| chain.contains(person)).count() as u64;
        let continued = Some(ContinuedRows { id: 9, common: BTreeMap::from([("k".to_owned(), common)]) });
        let recorded = RecordedRows { chain: night.chain.clone(), continued, ..recorded(&evidence) };
        let persons = BTreeMap::from([("k".to_owned(), listed.to_vec())]);
        audit_claimed(&mut facts, &recorded, night, &mut Listed { persons: &persons, chain: &chain })
    };
    let of_others: Vec<u128> = (0..40).map(|number| u128::MAX / 41 * number).collect();
    let chain = [&all[..450], &of_others].concat();
    for listed in [&all[450..], &all[300..], &all[..]] {
        assert_eq!(check(listed, &chain, &night), Ok(()), "{} are listed", listed.len());
    }
    assert_eq!(check(&[], all, &night), Ok(()));
    let fault = Err(PeopleClaimError::Persons("k".to_owned()));
    assert_eq!(check(&all[451..], &chain, &night), fault, "one is nowhere");
    assert_eq!(check(&[&all[200..300], &all[451..]].concat(), &chain, &night), fault, "some are in both");
    assert_eq!(check(&[&all[450..], &[u128::MAX]].concat(), &chain, &night), fault, "one is of no row");
    assert_eq!(check(&[&[1], &all[450..]].concat(), &chain, &night), fault, "the first is of no row");
    let elsewhere = ClaimedPeople { joined: BTreeSet::from([8]), ..night.clone() };
    assert_eq!(check(&all[450..], &chain, &elsewhere), Err(PeopleClaimError::Chain), "another chain");
    let alone = ClaimedPeople { chain: None, ..night };
    assert_eq!(check(&all[450..], &chain, &alone), Err(PeopleClaimError::Chain), "of no chain");
}
