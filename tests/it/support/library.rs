//! The engine called as a library: a table from CSV, a specification from JSON, parts kept in memory and read back.

use std::collections::BTreeMap;
use std::io;
use std::io::Read;

use guardian::control::Control;
use guardian::engine::{EngineError, PartStore, ReleaseInput, VerificationInput, VerifiedRelease, verify};
use guardian::ledger::EarlierDisclosures;
use guardian::microdata::formats::IngestLimits;
use guardian::microdata::formats::csv::{CsvOptions, CsvReader, read_table};
use guardian::microdata::{Attr, ColumnProfile, Table};
use guardian::problem::Fault;
use guardian::publication::{CompositionMode, PublishedBytes, Unit};
use guardian::random::{RandomStreams, ReleaseKey};
use guardian::report::{Manifest, Provenance, VerificationSummary};
use guardian::spec::{ColumnFacts, DatasetSchema, DocumentSource, Specification};
use guardian::{engine, spec};
use serde_json::Value;

/// The files of a release, in memory.
#[derive(Default)]
pub(crate) struct Memory(pub(crate) BTreeMap<String, Vec<u8>>);

impl PublishedBytes for Memory {
    fn open(&self, file: &str) -> io::Result<Box<dyn Read + '_>> {
        self.0.get(file).map(|bytes| Box::new(&bytes[..]) as _).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl PartStore for Memory {
    fn put(&mut self, file: &str, _: u32, _: u64, _: u32, csv: &[u8]) -> io::Result<()> {
        self.0.entry(file.to_owned()).or_default().extend_from_slice(csv);
        Ok(())
    }
}

/// All columns of a CSV file.
pub(crate) fn table(csv: impl Read) -> Table {
    let limits = IngestLimits::default();
    let mut reader = CsvReader::open(csv, CsvOptions::default(), &limits).unwrap();
    read_table(&mut reader, None, &limits).unwrap()
}

/// A table, and what a specification is judged against.
pub(crate) struct Original {
    pub(crate) table: Table,
    facts: Vec<ColumnFacts>,
}

/// A specification with the columns that it uses, and the others.
pub(crate) struct Job {
    pub(crate) specification: Specification,
    pub(crate) table: Table,
    pub(crate) dropped: Table,
}

impl Original {
    pub(crate) fn new(table: Table) -> Self {
        let rows = table.rows() as u64;
        let facts = |attr| ColumnFacts::new(&ColumnProfile::new(table.name(attr), table.column(attr)), rows);
        Self { facts: table.attributes().iter().map(facts).collect(), table }
    }

    pub(crate) fn job(&self, document: &Value) -> Result<Job, Vec<Fault>> {
        let schema = DatasetSchema { columns: &self.facts, keys: &[], unit: &Unit::Row };
        let reading = spec::read(document, &schema, DocumentSource::CommandLine);
        let Some(specification) = reading.specification.filter(|_| reading.faults.is_empty()) else {
            return Err(reading.faults);
        };
        Ok(Job::new(&self.table, specification))
    }
}

impl Job {
    /// The columns of a specification over a table.
    pub(crate) fn new(table: &Table, specification: Specification) -> Self {
        let is_used = |attr: &Attr| specification.used.contains(&attr.index());
        let (used, others): (Vec<Attr>, Vec<Attr>) = table.attributes().iter().partition(is_used);
        let columns = |of: Vec<Attr>| of.into_iter().map(|attr| table.column(attr).clone()).collect();
        let names = others.iter().map(|attr| table.name(*attr).to_owned()).collect();
        let (table, dropped) =
            (Table::new(specification.names.clone(), columns(used)), Table::new(names, columns(others)));
        Self { specification, table, dropped }
    }
}

/// Publishes in memory.
pub(crate) fn release(
    job: &Job,
    earlier: &EarlierDisclosures,
    streams: &RandomStreams,
) -> Result<(VerifiedRelease, Memory), EngineError> {
    let provenance = Provenance {
        id: None,
        series: None,
        created_at: "2026-01-01T00:00:00Z".to_owned(),
        composition: CompositionMode::None,
        identity: None,
        reproducible: true,
    };
    let order = ReleaseInput {
        specification: &job.specification,
        table: &job.table,
        streams,
        extra: None,
        dropped: &job.dropped.uploaded().collect::<Vec<_>>(),
        earlier,
        provenance: &provenance,
        contributions: None,
        republish: None,
    };
    let mut memory = Memory::default();
    let released = engine::release(&order, &mut memory, &Control::default())?;
    Ok((released, memory))
}

/// Publishes a document under a fixed key and verifies the release against its original, or gives the faults.
pub(crate) fn publish(original: &Original, document: &Value) -> Result<(Manifest, Memory), Vec<Fault>> {
    let job = original.job(document).unwrap_or_else(|faults| panic!("{document}: {faults:#?}"));
    let streams = RandomStreams::Keyed(ReleaseKey::from_bytes([1; 32]));
    match release(&job, &EarlierDisclosures::default(), &streams) {
        Ok((released, files)) => {
            let manifest = released.manifest;
            verified(&job, &manifest, &files, true);
            Ok((manifest, files))
        }
        Err(EngineError::Refused(problem)) => Err(problem.errors),
        Err(error) => panic!("{error:?}"),
    }
}

/// Verifies a release from its manifest, with the rows of the original or without.
pub(crate) fn verified(job: &Job, manifest: &Manifest, files: &Memory, with_rows: bool) -> VerificationSummary {
    let summary = verify_against(job, manifest, files, with_rows);
    assert!(summary.verified, "{:#?}", summary.checks);
    summary
}

/// Whether a release passes against its original and a specification.
pub(crate) fn is_verified(job: &Job, manifest: &Manifest, files: &Memory) -> bool {
    verify_against(job, manifest, files, true).verified
}

/// What the verifier finds of a release, its original and a specification.
pub(crate) fn verify_against(job: &Job, manifest: &Manifest, files: &Memory, with_rows: bool) -> VerificationSummary {
    let dropped: Vec<_> = job.dropped.uploaded().collect();
    let claim = VerificationInput {
        dropped: &dropped,
        requirements: None,
        manifest,
        names: &job.specification.published_names,
        rules: Some(job.specification.method.rules()),
        excludable: None,
        taxonomies: None,
        thresholds: None,
        closes: Some(job.specification.method.closed_reason().is_some()),
        original: with_rows.then_some(&job.table),
    };
    verify(&claim, files, &Control::default()).unwrap()
}

/// The cells of a CSV file: the header, then rows.
pub(crate) fn cells(csv: &[u8]) -> (Vec<String>, Vec<Vec<String>>) {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(csv);
    let mut rows = reader.records().map(|row| row.unwrap().iter().map(str::to_owned).collect());
    (rows.next().unwrap(), rows.collect())
}

/// A part that a manifest lists, as a reader of the release sees it.
pub(crate) struct ReadPart {
    pub(crate) attributes: Vec<String>,
    /// The bucket of each row, where there are buckets.
    pub(crate) buckets: Option<Vec<u32>>,
    pub(crate) rows: Vec<Vec<String>>,
}

/// The parts of every table, read from their bytes.
pub(crate) fn parts(manifest: &Manifest, files: &Memory) -> Vec<Vec<ReadPart>> {
    let tables = manifest.tables.iter().map(|table| {
        let parts = table.parts.iter().map(|part| {
            let (mut attributes, mut rows) = cells(&files.0[&part.csv()]);
            let buckets = part.bucketed.then(|| {
                assert_eq!(attributes.remove(0), "bucket");
                rows.iter_mut().map(|row| row.remove(0).parse().unwrap()).collect()
            });
            ReadPart { attributes, buckets, rows }
        });
        parts.collect()
    });
    tables.collect()
}

/// How many times as many random cases as usual are wanted.
pub(crate) fn seeds() -> u64 {
    std::env::var("GUARDIAN_TEST_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(1)
}

/// The header and every `one_in`-th row of a real table without line breaks in its cells; all rows in the longer runs.
pub(crate) fn some_rows(mut table: impl Read, one_in: usize) -> Vec<u8> {
    let mut csv = String::new();
    table.read_to_string(&mut csv).unwrap();
    if seeds() > 1 {
        return csv.into_bytes();
    }
    let (header, rows) = csv.split_once('\n').unwrap();
    let rows = rows.split_inclusive('\n').step_by(one_in).collect::<String>();
    format!("{header}\n{rows}").into_bytes()
}

/// A small generator for test cases (splitmix64), so that a printed seed says everything.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// `count` different indices below `bound`.
    pub(crate) fn pick(&mut self, count: usize, bound: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..bound).collect();
        (0..count).map(|_| all.swap_remove(self.below(all.len()))).collect()
    }

    pub(crate) fn key(&mut self) -> [u8; 32] {
        let mut key = [0; 32];
        key.chunks_mut(8).for_each(|chunk| chunk.copy_from_slice(&self.next().to_le_bytes()));
        key
    }
}
