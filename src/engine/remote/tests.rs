//! Releases of a table in memory that stands in for another engine.

use std::collections::BTreeMap;
use std::fs::File;

use serde_json::{Value, json};

use super::counted::RemoteOrder;
use super::distinct_rows::DistinctRows;
use super::plan::plan_remotely;
use super::port::{
    CountedGroups, CountedValue, RemoteAudit, RemoteCheck, RemoteColumn, RemoteError, RemotePart, RemoteTable,
    RemoteTablePlan, WrittenRemotePart,
};
use super::release::{RemoteOutput, RemoteParts, release_remotely};
use super::sample::RowSample;
use crate::control::Control;
use crate::engine::{DryRunInput, EngineError, Plan, TablePair, dry_run};
use crate::ledger::EarlierDisclosures;
use crate::microdata::AttributeType;
use crate::microdata::formats::IngestLimits;
use crate::microdata::formats::csv::{CsvOptions, CsvReader, read_table};
use crate::model::InferredRows;
use crate::privacy::ValueFrequency;
use crate::publication::{CompositionMode, Linkage, Unit};
use crate::publish::ranked::{BucketContent, contents, encoded_cell};
use crate::random::{RandomStreams, ReleaseKey};
use crate::report::{Manifest, PartFile, Provenance, WritingEngine};
use crate::spec::{self, ColumnFacts, DatasetSchema, DocumentSource, Specification};

mod chosen;
mod classes;
mod slices;

/// What the stand-in does wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum EngineFault {
    #[default]
    None,
    /// A check of the audit finds something.
    Broken(RemoteCheck),
    /// A check of the audit has no answer.
    Unanswered(RemoteCheck),
    /// The written sensitive part has all rows of a value in one bucket.
    OneBucket,
    /// Two buckets have exchanged a row, so that all rows of the first value that they had are in one; in a sliced one the rows that
    /// agree have one value.
    Gathered,
    /// A class shows the cell of another one, or one that is too wide.
    WrongCell,
    WideCell,
    /// One class or bucket has one row.
    SmallClass,
    /// What stands behind cells, or how many rows buckets have, is not looked at.
    Uncovered,
    /// What buckets hold is not counted.
    Uncounted,
    /// Distinct rows stand for more rows than were counted.
    Grown,
    /// A part lacks a row.
    LostRow,
    /// The assignment cannot be deleted.
    Kept,
}

/// A table in memory.
struct TableInMemory {
    columns: Vec<RemoteColumn>,
    rows: Vec<Vec<String>>,
    fault: EngineFault,
    cleared: bool,
    written: usize,
    /// How often distinct rows were asked for.
    distinct: usize,
    /// The columns that ranked the rows of each table with buckets.
    rankings: Vec<Vec<usize>>,
}

impl TableInMemory {
    fn new(names: &[&str], rows: Vec<Vec<String>>) -> Self {
        let column = |(at, name): (usize, &&str)| {
            let mut counts: BTreeMap<&String, u64> = BTreeMap::new();
            rows.iter().for_each(|row| *counts.entry(&row[at]).or_default() += 1);
            let mut frequencies: BTreeMap<u64, u64> = BTreeMap::new();
            counts.values().for_each(|rows| *frequencies.entry(*rows).or_default() += 1);
            let frequencies = frequencies.into_iter().rev().map(|(rows, values)| ValueFrequency { rows, values });
            RemoteColumn {
                name: (*name).to_owned(),
                kind: AttributeType::Text,
                missing: 0,
                frequencies: frequencies.collect(),
            }
        };
        let columns = names.iter().enumerate().map(column).collect();
        Self { columns, rows, fault: EngineFault::None, cleared: false, written: 0, distinct: 0, rankings: Vec::new() }
    }

    fn with(self, fault: EngineFault) -> Self {
        Self { fault, ..self }
    }
}

impl RemoteTable for TableInMemory {
    fn rows(&self) -> u64 {
        self.rows.len() as u64
    }

    fn columns(&self) -> &[RemoteColumn] {
        &self.columns
    }

    fn values(&mut self, column: usize, most: u64) -> Result<Vec<CountedValue>, RemoteError> {
        let mut counts: BTreeMap<&String, u64> = BTreeMap::new();
        self.rows.iter().for_each(|row| *counts.entry(&row[column]).or_default() += 1);
        match counts.len() as u64 > most {
            true => Err(RemoteError::Unsupported("too many values".to_owned())),
            false => Ok(counts.into_iter().map(|(value, rows)| (Some(value.clone()), rows)).collect()),
        }
    }

    fn encoded_cell(&self, _: usize, value: Option<&str>) -> String {
        encoded_cell(value)
    }

    fn determined(&mut self, determinant: &[usize], dependents: &[usize]) -> Result<Vec<CountedGroups>, RemoteError> {
        let counted = |&dependent: &usize| {
            let mut groups: BTreeMap<Vec<&String>, BTreeMap<&String, u64>> = BTreeMap::new();
            for row in &self.rows {
                let group = determinant.iter().map(|&at| &row[at]).collect();
                *groups.entry(group).or_default().entry(&row[dependent]).or_default() += 1;
            }
            let right: u64 = groups.values().filter_map(|group| group.values().max()).sum();
            CountedGroups { groups: groups.len() as u64, errors: self.rows() - right }
        };
        Ok(dependents.iter().map(counted).collect())
    }

    fn sample(&mut self) -> Result<RowSample, RemoteError> {
        let mut sample = RowSample::default();
        self.rows.iter().for_each(|row| sample.push(row.iter().map(|cell| Some(cell.as_bytes()))));
        Ok(sample)
    }

    fn distinct_rows(&mut self, columns: &[usize], most: u64) -> Result<DistinctRows, RemoteError> {
        self.distinct += 1;
        let mut distinct: BTreeMap<Vec<&String>, u64> = BTreeMap::new();
        for row in &self.rows {
            *distinct.entry(columns.iter().map(|&at| &row[at]).collect()).or_default() += 1;
        }
        if distinct.len() as u64 > most {
            return Err(RemoteError::Unsupported("too many distinct rows".to_owned()));
        }
        let mut found = DistinctRows::default();
        let more = u64::from(self.fault == EngineFault::Grown);
        distinct.iter().for_each(|(row, rows)| found.push(rows + more, row.iter().map(|cell| Some(cell.as_bytes()))));
        Ok(found)
    }

    fn unique(&mut self, columns: &[usize]) -> Result<u64, RemoteError> {
        let mut groups: BTreeMap<Vec<&String>, u64> = BTreeMap::new();
        for row in &self.rows {
            *groups.entry(columns.iter().map(|&at| &row[at]).collect()).or_default() += 1;
        }
        Ok(groups.values().filter(|rows| **rows == 1).count() as u64)
    }

    fn inferred(&mut self, known: &[usize], column: usize) -> Result<InferredRows, RemoteError> {
        let mut groups: BTreeMap<Vec<&String>, BTreeMap<&String, u64>> = BTreeMap::new();
        for row in &self.rows {
            let group = known.iter().map(|&at| &row[at]).collect();
            *groups.entry(group).or_default().entry(&row[column]).or_default() += 1;
        }
        let mut inferred = InferredRows::default();
        for values in groups.values() {
            let (most, rows) = (values.values().max().copied().unwrap_or(0), values.values().sum::<u64>());
            inferred.fixed += if most == rows { rows } else { 0 };
            inferred.likely += if most * 2 > rows { rows } else { 0 };
        }
        Ok(inferred)
    }

    fn write(&mut self, table: &RemoteTablePlan) -> Result<Vec<WrittenRemotePart>, RemoteError> {
        self.written += 1;
        self.rankings.extend(table.buckets().map(|buckets| buckets.ranking.clone()));
        let rows = self.rows() - u64::from(self.fault == EngineFault::LostRow);
        let part = |RemotePart { name, .. }: RemotePart| WrittenRemotePart {
            files: vec![PartFile {
                file: format!("{}.{name}/00000.parquet", table.name),
                rows,
                bytes: 1,
                sha256: "00".repeat(32),
            }],
            name,
        };
        Ok(table.parts().into_iter().map(part).collect())
    }

    fn audit(&mut self, table: &RemoteTablePlan) -> Result<RemoteAudit, RemoteError> {
        use RemoteCheck::{Buckets, Columns, Content, Linkage, Order, Place};
        let mut audit = RemoteAudit::default();
        audit.broken.extend([Content, Buckets, Linkage, Place, Columns, Order].map(|check| (check, 0)));
        match self.fault {
            EngineFault::Broken(check) => _ = audit.broken.insert(check, 3),
            EngineFault::Unanswered(check) => _ = audit.broken.remove(&check),
            _ => {}
        }
        if let Some(classes) = table.classes() {
            self.count_classes(table, classes, &mut audit);
        }
        if let Some(slices) = table.slices() {
            self.count_slices(table, slices, &mut audit);
        }
        if let Some(buckets) = table.buckets() {
            let mut counted = contents(&buckets.plan.segments);
            if self.fault == EngineFault::Gathered {
                gather(&mut counted);
            }
            if self.fault == EngineFault::OneBucket {
                counted = BTreeMap::from([(vec![(0, 2)], 1)]);
            }
            audit.contents.push(counted);
        }
        if self.fault == EngineFault::Uncounted {
            audit.contents.clear();
        }
        Ok(audit)
    }

    fn files_of(&self, _: &WrittenRemotePart) -> Result<Vec<File>, RemoteError> {
        Ok(Vec::new())
    }

    fn clear(&mut self) -> Result<(), RemoteError> {
        self.cleared = true;
        match self.fault {
            EngineFault::Kept => Err(RemoteError::Failed("the folder is still there".to_owned())),
            _ => Ok(()),
        }
    }
}

/// Two buckets of the same content with a row of value 0 exchange it for another.
fn gather(contents: &mut BTreeMap<BucketContent, u64>) {
    let with_first = |content: &&BucketContent| content[0] == (0, 1) && content.len() > 1 && contents[*content] > 1;
    let content = contents.keys().find(with_first).cloned().unwrap();
    let (other, others) = *content.last().unwrap();
    let changed = |first: u64, last: u64| -> BucketContent {
        let rows = content.iter().map(|&(value, rows)| match value {
            0 => (0, first),
            value if value == other => (other, last),
            value => (value, rows),
        });
        rows.filter(|(_, rows)| *rows > 0).collect()
    };
    let (more, fewer) = (changed(2, others - 1), changed(0, others + 1));
    *contents.entry(content.clone()).or_default() -= 2;
    *contents.entry(more).or_default() += 1;
    *contents.entry(fewer).or_default() += 1;
    contents.retain(|_, buckets| *buckets > 0);
}

/// People whose ages and wards say nothing of their diseases.
fn patients(rows: usize) -> TableInMemory {
    let row = |at: usize| {
        let mixed = at.wrapping_mul(2_654_435_761) >> 7;
        let words = ["asthma", "flu", "gout", "measles", "mumps", "ulcer", "stroke"];
        vec![format!("{:02}", mixed % 60), format!("w{}", mixed / 64 % 9), words[mixed / 1024 % 7].to_owned()]
    };
    TableInMemory::new(&["age", "ward", "disease"], (0..rows).map(row).collect())
}

fn specification(document: &Value, table: &TableInMemory) -> Specification {
    let facts = table.columns.iter().map(|of| ColumnFacts::new(&of.profile(table.rows()), table.rows()));
    let facts: Vec<ColumnFacts> = facts.collect();
    let schema = DatasetSchema { columns: &facts, keys: &[], unit: &Unit::Row };
    let read = spec::read(document, &schema, DocumentSource::CommandLine);
    assert_eq!(read.faults, []);
    read.specification.unwrap()
}

fn released(document: &Value, table: &mut TableInMemory) -> Result<Manifest, EngineError> {
    released_after(document, table, &EarlierDisclosures::default())
}

fn released_after(
    document: &Value,
    table: &mut TableInMemory,
    earlier: &EarlierDisclosures,
) -> Result<Manifest, EngineError> {
    let provenance = Provenance {
        id: None,
        series: None,
        created_at: "2026-01-01T00:00:00Z".to_owned(),
        composition: CompositionMode::None,
        identity: None,
        reproducible: false,
    };
    let made_by = WritingEngine { engine: "memory".to_owned(), version: "1".to_owned() };
    ordered_after(document, table, earlier, |order, table, control| {
        let output = RemoteOutput { provenance: &provenance, made_by: made_by.clone(), parts: RemoteParts::Stay(None) };
        Ok(release_remotely(order, table, output, control)?.manifest)
    })
}

fn planned(document: &Value, table: &mut TableInMemory) -> Result<Plan, EngineError> {
    ordered(document, table, plan_remotely)
}

fn ordered<T>(
    document: &Value,
    table: &mut TableInMemory,
    run: impl Fn(&RemoteOrder<'_>, &mut dyn RemoteTable, &Control) -> Result<T, EngineError>,
) -> Result<T, EngineError> {
    ordered_after(document, table, &EarlierDisclosures::default(), run)
}

fn ordered_after<T>(
    document: &Value,
    table: &mut TableInMemory,
    earlier: &EarlierDisclosures,
    run: impl Fn(&RemoteOrder<'_>, &mut dyn RemoteTable, &Control) -> Result<T, EngineError>,
) -> Result<T, EngineError> {
    let specification = specification(document, table);
    let key = ReleaseKey::from_bytes([3; 32]);
    run(&RemoteOrder { specification: &specification, key: &key, earlier }, table, &Control::default())
}

fn anatomy(l: u64) -> Value {
    json!({"method": {"type": "anatomy", "quasi_identifiers": ["age", "ward"], "sensitive": "disease",
                      "guarantee": {"type": "l_diversity", "l": l}}})
}

fn decompose() -> Value {
    json!({"method": {"type": "decompose", "quasi_identifiers": ["age"], "sensitive": ["ward", "disease"],
                      "l": {"ward": 2, "disease": 2}}})
}

/// The details of all faults of a refusal.
fn refused<T: std::fmt::Debug>(result: Result<T, EngineError>) -> String {
    match result {
        Err(EngineError::Refused(problem)) => problem.errors.into_iter().map(|fault| fault.detail).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_release_says_what_its_buckets_hold() {
    let mut table = patients(600);
    let manifest = released(&anatomy(4), &mut table).unwrap();
    assert!(table.cleared);
    assert!(manifest.verification.verified);
    assert_eq!(manifest.verification.linkage, Linkage::Checked);
    let achieved = manifest.rules[0].achieved.unwrap();
    let worst = achieved.worst_posterior.unwrap();
    assert!(worst.count * 4 <= worst.of, "{worst:?}");
    assert_eq!(achieved.smallest_bucket, 4);
    let sizes: u64 = manifest.utility.bucket_sizes.iter().map(|of| of.size * of.buckets).sum();
    assert_eq!(sizes, 600);
    let [part, _] = &manifest.tables[0].parts[..] else { panic!("{:?}", manifest.tables) };
    assert_eq!((part.file.clone(), part.sha256.clone(), part.csv()), (None, None, "t1.qi.csv".to_owned()));
    assert_eq!(manifest.made_by.map(|of| of.engine).as_deref(), Some("memory"));
    // nothing was read of what nothing protects, and the release says so
    assert_eq!(manifest.exposures, None);
    assert!(manifest.warnings.iter().any(|of| of.detail.contains("was not counted:")), "{:?}", manifest.warnings);
}

#[test]
fn other_guarantees_are_judged_on_contents() {
    let guarantee = json!({"type": "t_closeness", "t": 0.3});
    let document = json!({"method": {"type": "anatomy", "quasi_identifiers": ["age", "ward"], "sensitive": "disease",
                                     "guarantee": guarantee}});
    let manifest = released(&document, &mut patients(600)).unwrap();
    let distance = manifest.rules[0].achieved.unwrap().distance.unwrap();
    assert!(distance > 0.0 && distance <= 0.3, "{distance}");
}

/// One row in fifty is of a rare disease, which may be a tenth of a bucket.
fn rare(rows: usize) -> TableInMemory {
    let mut table = patients(rows);
    table.rows.iter_mut().step_by(50).for_each(|row| row[2] = "HIV".to_owned());
    TableInMemory::new(&["age", "ward", "disease"], table.rows)
}

fn bucketize(sizes: &str) -> Value {
    json!({"method": {"type": "bucketize", "quasi_identifiers": ["age", "ward"], "sensitive": "disease", "sizes": sizes,
                      "thresholds": {"explicit": {"HIV": 0.1}, "otherwise": 0.5}}})
}

#[test]
fn buckets_by_thresholds_have_the_planned_sizes() {
    for sizes in ["one", "two", "multi", "optimal"] {
        let mut table = rare(600);
        let manifest = released(&bucketize(sizes), &mut table).unwrap();
        assert!(manifest.verification.verified && table.cleared);
        let details = serde_json::to_value(&manifest.method_details).unwrap();
        let found: Vec<(u64, u64)> = manifest.utility.bucket_sizes.iter().map(|of| (of.size, of.buckets)).collect();
        let setting = |&(size, buckets): &(u64, u64)| json!({"size": size, "buckets": buckets});
        assert_eq!(details["setting"], found.iter().map(setting).collect::<Value>(), "{sizes}");
        assert_eq!(found.iter().map(|(size, buckets)| size * buckets).sum::<u64>(), 600);
    }
}

/// The engine swaps a rare value into a bucket where it is too likely; the sizes stay.
#[test]
fn a_threshold_of_one_value_is_held_against_what_was_written() {
    let result = released(&bucketize("two"), &mut rare(600).with(EngineFault::Gathered));
    assert!(matches!(&result, Err(EngineError::Failed { .. })), "{result:?}");
}

#[test]
fn what_thresholds_cannot_have_is_said_before_writing() {
    let mut counterfeits = bucketize("two");
    counterfeits["method"]["thresholds"] = json!({"uniform": {"l": 2}});
    counterfeits["method"]["counterfeits"] = json!({"per_bucket": 1});
    let mut narrow = bucketize("one");
    narrow["method"]["max_size"] = json!(3);
    let mut frequent = bucketize("two");
    frequent["method"]["thresholds"] = json!({"explicit": {"HIV": 0.01}, "otherwise": 0.5});
    let by_rule = json!({"method": {"type": "anatomy", "quasi_identifiers": ["age", "ward"], "sensitive": "disease",
        "guarantee": {"type": "thresholds", "explicit": {"HIV": 0.1}, "otherwise": 0.5}}});
    let cases = [
        (counterfeits, "counterfeits depends on its rows"),
        (narrow, "no buckets of 2 to 3 rows"),
        (frequent, "more frequent in the table than their thresholds"),
        (by_rule, "by the method bucketize alone"),
    ];
    for (document, said) in cases {
        let mut table = rare(600);
        let detail = refused(released(&document, &mut table));
        assert!(detail.contains(said), "{detail}");
        assert_eq!(table.written, 0);
    }
}

#[test]
fn every_fault_of_the_engine_keeps_the_release_back() {
    use RemoteCheck::{Buckets, Columns, Content, Linkage, Order, Place};
    let checks = [Content, Buckets, Linkage, Place, Columns, Order];
    let broken = checks.map(EngineFault::Broken).into_iter().chain(checks.map(EngineFault::Unanswered));
    for fault in broken.chain([EngineFault::OneBucket, EngineFault::Uncounted, EngineFault::LostRow, EngineFault::Kept])
    {
        let mut table = patients(600).with(fault);
        let result = released(&anatomy(4), &mut table);
        assert!(matches!(result, Err(EngineError::Failed { .. })), "{fault:?}: {result:?}");
        assert!(table.cleared, "{fault:?}");
    }
}

/// The attack: of a disease its chapter is known, and the chapter is published as a known attribute.
#[test]
fn a_diagnosis_that_names_its_chapter_is_refused() {
    let mut table = patients(600);
    table.rows.iter_mut().for_each(|row| row[1] = format!("chapter of {}", &row[2][..1]));
    let mut table = TableInMemory::new(&["age", "ward", "disease"], table.rows);
    let detail = refused(released(&anatomy(2), &mut table));
    assert!(detail.contains("known dependencies tie disease to ward"), "{detail}");
    assert_eq!(table.written, 0);
}

/// The attack: the ledger says that the disease is computed from an attribute that is published, which no row shows.
#[test]
fn a_tie_that_only_the_ledger_knows_is_refused() {
    let mut earlier = EarlierDisclosures::default();
    earlier.identities.function("disease", &["ward".to_owned()]).unwrap();
    let mut table = patients(600);
    let detail = refused(released_after(&anatomy(4), &mut table, &earlier));
    assert!(detail.contains("disease") && detail.contains("ward"), "{detail}");
    assert_eq!(table.written, 0);
}

/// The attack through a column that is not published: ward says the team, and the team the disease.
#[test]
fn a_dropped_column_that_ties_is_refused() {
    let patients = patients(600);
    let team = |row: &Vec<String>| format!("team {}", &row[2][..1]);
    let ward = |row: &Vec<String>, at: usize| format!("{} {}", team(row), at % 5);
    let rows = patients.rows.iter().enumerate();
    let rows = rows.map(|(at, row)| vec![row[0].clone(), ward(row, at), row[2].clone(), team(row)]).collect();
    let mut table = TableInMemory::new(&["age", "ward", "disease", "team"], rows);
    let mut document = anatomy(2);
    document["attributes"] = json!({"team": {"drop": true}});
    let detail = refused(released(&document, &mut table));
    assert!(detail.contains("known dependencies tie disease to"), "{detail}");
}

#[test]
fn what_needs_rows_is_refused_before_anything_is_written() {
    let versatile = |algorithm: &str| {
        json!({"method": {"type": "versatile", "algorithm": algorithm, "rules": ["age, ward -> disease"],
                          "default_guarantee": {"type": "l_diversity", "l": 2}}})
    };
    for (document, said) in
        [(decompose(), "does not run decompose"), (versatile("multi_sa"), "buckets of one attribute")]
    {
        let mut table = patients(600);
        let detail = refused(released(&document, &mut table));
        assert!(detail.contains(said), "{detail}");
        assert_eq!(table.written, 0);
    }
    let manifest = released(&versatile("uad"), &mut patients(600)).unwrap();
    assert!(manifest.verification.verified);
}

#[test]
fn a_plan_says_what_would_be_published_and_writes_nothing() {
    let mut table = rare(600);
    let plan = planned(&bucketize("two"), &mut table).unwrap();
    assert!(plan.feasible && plan.problems.is_empty(), "{:?}", plan.problems);
    assert_eq!((table.written, table.cleared), (0, true));
    let manifest = serde_json::to_value(released(&bucketize("two"), &mut table).unwrap()).unwrap();
    assert_eq!(serde_json::to_value(&plan.method_details).unwrap(), manifest["method_details"]);
    let attributes = plan.tables.iter().map(|of| of.attributes.clone()).collect::<Vec<_>>();
    assert_eq!(attributes, [["age", "ward", "disease"]]);
}

/// What no rule prevents is what a plan counts with the rows at hand.
#[test]
fn a_plan_counts_what_no_rule_prevents() {
    let mut table = rare(600);
    let plan = planned(&anatomy(2), &mut table).unwrap();
    let rows = table.rows.iter().map(|row| row.join(",") + "\n");
    let csv = "age,ward,disease\n".to_owned() + &rows.collect::<String>();
    let limits = IngestLimits::default();
    let mut reader = CsvReader::open(csv.as_bytes(), CsvOptions::default(), &limits).unwrap();
    let at_hand = read_table(&mut reader, None, &limits).unwrap();
    let (specification, earlier) = (specification(&anatomy(2), &table), EarlierDisclosures::default());
    let input = DryRunInput { specification: &specification, earlier: &earlier, faults: Vec::new(), republish: None };
    let pair = TablePair { published: &at_hand, extra: None, dropped: &[] };
    let with_rows = dry_run(input, pair, &RandomStreams::Identity, &Control::default()).unwrap();
    let exposures = plan.exposures.unwrap();
    assert!(exposures.rows[0].unique.count > 0 && exposures.practitioner.values[2].likely.count > 0, "{exposures:?}");
    assert_eq!(Some(exposures), with_rows.exposures);
    assert!(plan.warnings.iter().any(|of| of.detail.contains("were not searched")), "{:?}", plan.warnings);
}

#[test]
fn a_plan_lists_why_nothing_would_be_published() {
    let mut table = patients(600);
    table.rows.iter_mut().for_each(|row| row[1] = format!("chapter of {}", &row[2][..1]));
    let mut table = TableInMemory::new(&["age", "ward", "disease"], table.rows);
    let plan = planned(&anatomy(2), &mut table).unwrap();
    let problems = serde_json::to_string(&plan.problems).unwrap();
    assert!(!plan.feasible && problems.contains("known dependencies tie disease to ward"), "{problems}");
    assert_eq!((table.written, table.cleared), (0, true));
    // what the engine cannot do is refused before there are tables
    let detail = refused(planned(&decompose(), &mut table));
    assert!(detail.contains("does not run decompose"), "{detail}");
}
