//! `count_errors TABLE.csv[.gz] SPECIFICATION.json SENSITIVE`: publishes a table in memory and prints how wrong the counts are that a
//! reader makes of the parts.
//!
//! A query asks for three tenths of the values of the sensitive attribute and of two others; those of at least 30 rows count. The
//! same queries every time, so that methods can be compared.
#![expect(clippy::print_stdout, reason = "it is a program")]

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs::{self, File};
use std::io::{self, Read};

use flate2::read::MultiGzDecoder;
use guardian::control::Control;
use guardian::engine::{self, PartStore, QuerySet, ReleaseInput};
use guardian::ledger::EarlierDisclosures;
use guardian::microdata::formats::IngestLimits;
use guardian::microdata::formats::csv::{CsvOptions, CsvReader, read_table};
use guardian::microdata::{ColumnProfile, Table};
use guardian::publication::{CompositionMode, PublishedBytes};
use guardian::random::{RandomStreams, ReleaseKey};
use guardian::report::Provenance;
use guardian::spec::{self, ColumnFacts, DatasetSchema, DocumentSource};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;
use serde_json::{Value, json};

const QUERIES: usize = 400;
const FEWEST_ROWS: usize = 30;
const SHARE: f64 = 0.3;

/// The files of a release.
#[derive(Default)]
struct Memory(BTreeMap<String, Vec<u8>>);

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

/// A column of the original, as text.
struct Column {
    name: String,
    cells: Vec<String>,
}

impl Column {
    /// A condition on some of the values, and which rows meet it: a range of integers, or a set of anything else.
    fn draw(&self, rng: &mut ChaCha20Rng) -> (Value, Vec<bool>) {
        let integers: Result<Vec<i64>, _> = self.cells.iter().map(|cell| cell.parse()).collect();
        if let Ok(integers) = integers {
            let low = integers.iter().copied().min().unwrap_or(0);
            let high = integers.iter().copied().max().unwrap_or(0);
            let width = ((high - low) as f64 * SHARE) as i64;
            let from = low + rng.random_range(0..=high - low - width);
            let hits = integers.iter().map(|value| (from..=from + width).contains(value)).collect();
            return (json!({"attribute": self.name, "from": from, "to": from + width}), hits);
        }
        let values: BTreeSet<&str> = self.cells.iter().map(String::as_str).collect();
        let mut values: Vec<&str> = values.into_iter().collect();
        values.shuffle(rng);
        values.truncate((values.len() as f64 * SHARE).round().max(1.0) as usize);
        let hits = self.cells.iter().map(|cell| values.contains(&cell.as_str())).collect();
        (json!({"attribute": self.name, "in": values}), hits)
    }
}

/// Queries, and how many rows of the original meet each.
fn queries(known: &[Column], sensitive: &Column) -> (Vec<Value>, Vec<f64>) {
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    let (mut queries, mut truths) = (Vec::new(), Vec::new());
    for number in 0..QUERIES {
        let first = number % known.len();
        let second = (first + 1 + number / known.len() % (known.len() - 1)) % known.len();
        let drawn = [&known[first], &known[second], sensitive].map(|column| column.draw(&mut rng));
        let rows = (0..sensitive.cells.len()).filter(|&row| drawn.iter().all(|(_, hits)| hits[row])).count();
        if rows >= FEWEST_ROWS {
            let conditions: Vec<&Value> = drawn.iter().map(|(condition, _)| condition).collect();
            queries.push(json!({"where": conditions}));
            truths.push(rows as f64);
        }
    }
    (queries, truths)
}

fn read(path: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut bytes = Vec::new();
    if path.ends_with(".gz") {
        MultiGzDecoder::new(File::open(path)?).read_to_end(&mut bytes)?;
    } else {
        File::open(path)?.read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, document, sensitive] = &arguments[..] else {
        return Err("usage: count_errors TABLE.csv[.gz] SPECIFICATION.json SENSITIVE".into());
    };
    let csv = read(path)?;
    let limits = IngestLimits::default();
    let mut reader = CsvReader::open(&csv[..], CsvOptions::default(), &limits).map_err(|e| format!("{e:?}"))?;
    let table = read_table(&mut reader, None, &limits).map_err(|e| format!("{e:?}"))?;
    let facts = |attr| ColumnFacts::from(&ColumnProfile::new(table.name(attr), table.column(attr)));
    let facts: Vec<ColumnFacts> = table.attributes().iter().map(facts).collect();
    let document = serde_json::from_slice(&fs::read(document)?)?;
    let reading = spec::read(
        &document,
        &DatasetSchema { columns: &facts, keys: &[], unit: &guardian::publication::Unit::Row },
        DocumentSource::CommandLine,
    );
    let Some(specification) = reading.specification.filter(|_| reading.faults.is_empty()) else {
        return Err(format!("{:?}", reading.faults).into());
    };
    let used = specification.used.iter().map(|&at| table.column(at.into()).clone()).collect();
    let table = Table::new(specification.names.clone(), used);

    let mut lines = csv::Reader::from_reader(&csv[..]);
    let places: Vec<usize> = specification
        .names
        .iter()
        .map(|name| lines.headers().map(|header| header.iter().position(|column| column == name).unwrap_or(0)))
        .collect::<Result<_, _>>()?;
    let mut known: Vec<Column> =
        specification.names.iter().map(|name| Column { name: name.clone(), cells: Vec::new() }).collect();
    for record in lines.records() {
        let record = record?;
        known.iter_mut().zip(&places).for_each(|(column, &at)| column.cells.push(record[at].to_owned()));
    }
    let at = specification.names.iter().position(|name| name == sensitive).ok_or("no such sensitive attribute")?;
    let sensitive = known.remove(at);
    if known.len() < 2 {
        return Err("queries need two more attributes".into());
    }
    let (queries, truths) = queries(&known, &sensitive);

    let provenance = Provenance {
        id: None,
        series: None,
        created_at: "2026-01-01T00:00:00Z".to_owned(),
        composition: CompositionMode::None,
        identity: None,
        reproducible: true,
    };
    let streams = RandomStreams::Keyed(ReleaseKey::from_bytes([9; 32]));
    let earlier = EarlierDisclosures::default();
    let order = ReleaseInput {
        specification: &specification,
        table: &table,
        streams: &streams,
        extra: None,
        dropped: &[],
        earlier: &earlier,
        provenance: &provenance,
        contributions: None,
        republish: None,
    };
    let mut parts = Memory::default();
    let control = Control::default();
    let released = engine::release(&order, &mut parts, &control).map_err(|stopped| format!("{stopped:?}"))?;
    let asked =
        QuerySet::new(&released.manifest, &json!({"queries": queries})).map_err(|fault| format!("{fault:?}"))?;
    let answers = asked.answer(&parts, &control).map_err(|stopped| format!("{stopped:?}"))?;
    let mut errors: Vec<f64> =
        answers.iter().zip(&truths).map(|(answer, truth)| (answer.estimate - truth).abs() / truth).collect();
    errors.sort_by(f64::total_cmp);
    let Some(median) = errors.get(errors.len() / 2) else { return Err("no query has enough rows".into()) };
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    println!("{} queries: mean relative error {mean:.3}, median {median:.3}", errors.len());
    Ok(())
}
