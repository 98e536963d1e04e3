//! Tables of persons that change from night to night, and who intersects all nights.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;

use flate2::read::GzDecoder;
use guardian::control::Control;
use guardian::engine::{self, EngineError, ReleaseInput, RepublishInput, VerifiedRelease};
use guardian::ledger::EarlierDisclosures;
use guardian::microdata::ColumnProfile;
use guardian::publication::{CompositionMode, Unit};
use guardian::random::{RandomStreams, ReleaseKey};
use guardian::report::{Manifest, Provenance};
use guardian::spec::{self, ColumnFacts, DatasetSchema, DocumentSource};
use serde_json::{Value, json};

use super::library::{Job, Memory, Random, parts, table};

/// A person of a table: the key is the position among all persons.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Person {
    pub(crate) age: String,
    pub(crate) value: String,
}

/// The table of a night: persons by key.
pub(crate) type Night = BTreeMap<usize, Person>;

/// The document of a night: everybody is known by `no`, as the strongest adversary knows everybody.
pub(crate) fn document(l: u64, republish: Value) -> Value {
    json!({
        "attributes": {"pid": {"drop": true}, "no": {"publish": true, "identifier": false},
            "age": {"publish": true, "identifier": false}},
        "republish": republish,
        "method": {"type": "anatomy", "sensitive": "occupation", "guarantee": {"type": "l_diversity", "l": l},
            "dependencies": {"discover": "none"},
            "assume_unknown": [{"determinant": [], "dependent": [], "reason": "everybody is known by a number"}]},
    })
}

/// A table as CSV, persons in an order that says nothing.
pub(crate) fn csv(night: &Night) -> String {
    let mut rows: Vec<String> =
        night.iter().map(|(key, Person { age, value })| format!("p{key},n{key},{age},{value}\n")).collect();
    rows.sort_by_key(|row| row.bytes().fold(7_u32, |hash, byte| hash.wrapping_mul(31).wrapping_add(u32::from(byte))));
    format!("pid,no,age,occupation\n{}", rows.concat())
}

/// Persons of the Adult table.
pub(crate) fn adult() -> Vec<Person> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data/adult.csv.gz");
    let mut reader = csv::Reader::from_reader(GzDecoder::new(File::open(path).unwrap()));
    let rows = reader.records().map(|row| {
        let row = row.unwrap();
        Person { age: row[0].to_owned(), value: row[6].to_owned() }
    });
    rows.filter(|person| !person.value.is_empty() && person.value != "?").collect()
}

/// A table of which a share of the persons leaves every night, and as many enter.
pub(crate) struct Churn {
    pub(crate) persons: Vec<Person>,
    pub(crate) random: Random,
    pub(crate) here: Vec<usize>,
    pub(crate) next: usize,
}

impl Churn {
    pub(crate) fn new(persons: Vec<Person>, size: usize, seed: u64) -> Self {
        Self { persons, random: Random(seed), here: (0..size).collect(), next: size }
    }

    pub(crate) fn table(&self) -> Night {
        self.here.iter().map(|&key| (key, self.persons[key % self.persons.len()].clone())).collect()
    }

    /// The next night, with as many leaving and entering.
    pub(crate) fn turn(&mut self, number: usize) {
        for _ in 0..number {
            let place = self.random.below(self.here.len());
            self.here[place] = self.next;
            self.next += 1;
        }
    }
}

/// The keyed hash that stands for a key in tests.
fn hash(key: &str) -> [u8; 16] {
    let mut hash = [0; 16];
    for (at, byte) in key.bytes().chain([1]).enumerate() {
        hash[at % 16] ^= byte.rotate_left((at / 16) as u32);
    }
    // spread over the whole range, as hashes are
    let word = u128::from_le_bytes(hash).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
    (word ^ (word >> 61)).to_be_bytes()
}

/// A published night.
pub(crate) struct Published {
    pub(crate) manifest: Manifest,
    pub(crate) files: Memory,
    pub(crate) released: VerifiedRelease,
    pub(crate) job: Job,
}

/// A population that the engine publishes.
#[derive(Default, Clone)]
pub(crate) struct Population {
    pub(crate) state: Option<Vec<u8>>,
}

impl Population {
    /// Publishes a table under a fixed key; the population goes on only if it is released.
    pub(crate) fn publish(&mut self, csv: &str, document: &Value, key: u8) -> Result<Published, EngineError> {
        let table = table(csv.as_bytes());
        let rows = table.rows() as u64;
        let facts: Vec<ColumnFacts> = table
            .attributes()
            .iter()
            .map(|attr| ColumnFacts::new(&ColumnProfile::new(table.name(attr), table.column(attr)), rows))
            .collect();
        let keys = ["pid".to_owned()];
        let schema = DatasetSchema { columns: &facts, keys: &keys, unit: &Unit::Row };
        let read = spec::read(document, &schema, DocumentSource::CommandLine);
        assert_eq!(read.faults, [], "{document}");
        let specification = read.specification.unwrap();
        let pid = table.attributes().iter().find(|attr| table.name(*attr) == "pid").unwrap();
        let key_of = |row| std::str::from_utf8(table.column(pid).value(row).unwrap()).unwrap();
        let persons: Vec<[u8; 16]> = (0..table.rows()).map(|row| hash(key_of(row))).collect();
        let job = Job::new(&table, specification);
        let provenance = Provenance {
            id: None,
            series: None,
            created_at: "2026-01-01T00:00:00Z".to_owned(),
            composition: CompositionMode::None,
            identity: None,
            reproducible: true,
        };
        let mut files = Memory::default();
        let order = ReleaseInput {
            specification: &job.specification,
            table: &job.table,
            streams: &RandomStreams::Keyed(ReleaseKey::from_bytes([key; 32])),
            extra: None,
            dropped: &[],
            earlier: &EarlierDisclosures::default(),
            provenance: &provenance,
            contributions: None,
            republish: Some(RepublishInput {
                state: self.state.as_deref(),
                previous: None,
                persons: &persons,
                key: "pid",
            }),
        };
        let released = engine::release(&order, &mut files, &Control::default())?;
        self.state.clone_from(&released.state);
        Ok(Published { manifest: released.manifest.clone(), files, released, job })
    }
}

/// For each person that a release shows, the sensitive values of the bucket.
pub(crate) fn shown(manifest: &Manifest, files: &Memory) -> BTreeMap<String, Vec<String>> {
    let read = parts(manifest, files);
    let [known, sensitive] = &read[0][..] else { panic!("a night has two parts") };
    let mut values: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for (bucket, row) in sensitive.buckets.as_ref().unwrap().iter().zip(&sensitive.rows) {
        values.entry(*bucket).or_default().push(row[0].clone());
    }
    let no = known.attributes.iter().position(|name| name == "no").unwrap();
    let rows = known.buckets.as_ref().unwrap().iter().zip(&known.rows);
    rows.map(|(bucket, row)| (row[no].clone(), values[bucket].clone())).collect()
}

/// Who intersects what all releases show of each person, and takes what is left to be equally likely.
#[derive(Default)]
pub(crate) struct Intersection {
    left: BTreeMap<String, Vec<String>>,
}

impl Intersection {
    pub(crate) fn add(&mut self, shown: &BTreeMap<String, Vec<String>>) {
        for (person, values) in shown {
            let Some(left) = self.left.get_mut(person) else {
                self.left.insert(person.clone(), values.clone());
                continue;
            };
            let mut others = values.clone();
            left.retain(|value| {
                let at = others.iter().position(|other| other == value);
                at.map(|at| others.swap_remove(at)).is_some()
            });
        }
    }

    /// The number of persons of whom a value is likelier than 1/l.
    pub(crate) fn above(&self, l: usize) -> usize {
        let largest = |values: &Vec<String>| {
            let distinct: BTreeSet<&String> = values.iter().collect();
            distinct.iter().map(|value| values.iter().filter(|other| *other == *value).count()).max().unwrap_or(0)
        };
        self.left.values().filter(|values| largest(values) * l > values.len()).count()
    }

    pub(crate) fn persons(&self) -> usize {
        self.left.len()
    }
}
