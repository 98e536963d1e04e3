//! Reads tables and specifications from files.

use std::fs::File;
use std::io::{Cursor, Read};
use std::path::Path;

use ahash::AHashMap;
use serde_json::Value;

use super::exit::CommandOutcome;
use crate::control::{Control, Phase};
use crate::engine::annotate_with_unknown;
use crate::microdata::formats::compression::{decoder, sniff};
use crate::microdata::formats::csv::CsvOptions;
use crate::microdata::formats::{self, IngestError, IngestLimits, InputFormat, TableReader};
use crate::microdata::{Chunk, ColumnBuilder, ColumnProfile, Table};
use crate::problem::{Fault, Kind, Problem};
use crate::publication::Unit;
use crate::spec::{self, ColumnFacts, DatasetSchema, DocumentSource, Specification};

/// A table and its checked specification.
pub(super) struct InputJob {
    pub(super) specification: Specification,
    pub(super) table: Table,
    /// The reason why the rows contradict the unit of protection.
    pub(super) persons: Option<Problem>,
}

/// Reads a JSON document.
pub(super) fn document(path: &Path) -> Result<Value, CommandOutcome> {
    let bytes = std::fs::read(path).map_err(|error| CommandOutcome::io(path, &error))?;
    spec::parse_json(&bytes).map_err(|problem| CommandOutcome::Refused(Box::new(problem)))
}

/// Opens a table in the declared or detected format.
pub(super) fn opened(
    path: &Path,
    format: Option<InputFormat>,
    limits: &IngestLimits,
    control: &Control,
) -> Result<Box<dyn TableReader>, CommandOutcome> {
    let file = File::open(path).map_err(|error| CommandOutcome::io(path, &error))?;
    let size = file.metadata().map(|metadata| metadata.len()).unwrap_or(0);
    control.begin(Phase::Load, size).map_err(|_| CommandOutcome::interrupted())?;
    let counted = ProgressReader { file, control: control.clone() };
    let (encoding, sniffed) = sniff(counted).map_err(|error| CommandOutcome::io(path, &error))?;
    let mut decoded = decoder(sniffed, encoding, limits).map_err(|error| CommandOutcome::io(path, &error))?;
    let ingest = |error| unread(path, control, error);
    let mut beginning = Vec::new();
    decoded.by_ref().take(8).read_to_end(&mut beginning).map_err(|error| ingest(error.into()))?;
    let format = format.unwrap_or_else(|| InputFormat::of_beginning(&beginning));
    let whole = Cursor::new(beginning).chain(decoded);
    formats::open(format, whole, CsvOptions::default(), limits, &std::env::temp_dir()).map_err(ingest)
}

/// The outcome after an unreadable table.
fn unread(path: &Path, control: &Control, error: IngestError) -> CommandOutcome {
    match error {
        IngestError::Io(_) if control.check().is_err() => CommandOutcome::interrupted(),
        IngestError::Io(error) => CommandOutcome::io(path, &error),
        IngestError::Spool(error) => CommandOutcome::io(&std::env::temp_dir(), &error),
        other => CommandOutcome::Refused(Box::new(other.into())),
    }
}

/// Reads the columns that the document uses and checks the document against them.
pub(super) fn job(
    path: &Path,
    document: &Value,
    unit: &Unit,
    origin: DocumentSource,
    control: &Control,
) -> Result<InputJob, CommandOutcome> {
    let limits = IngestLimits::default();
    let mut reader = opened(path, None, &limits, control)?;
    let ingest = |error| unread(path, control, error);
    let names = reader.names().to_vec();

    let mut persons = SubjectCounter::new(unit, &names)?;

    // the used columns do not depend on the values, so only these are built
    let unseen: Vec<ColumnFacts> = names.iter().map(|name| ColumnFacts::unseen(name)).collect();
    let schema = DatasetSchema { columns: &unseen, record_key: &[], unit };
    let first = spec::read(document, &schema, origin);
    let used = first.specification.map_or_else(|| (0..names.len()).collect(), |specification| specification.used);
    let mut columns: Vec<(usize, Option<ColumnBuilder>)> =
        used.iter().map(|&at| (at, Some(ColumnBuilder::new(&limits)))).collect();
    let mut rows = 0u64;
    while let Some(chunk) = reader.next_chunk().map_err(ingest)? {
        rows += u64::from(chunk.rows);
        persons.add(&chunk);
        for (at, builder) in &mut columns {
            if builder.as_mut().is_some_and(|builder| builder.push(&chunk.columns[*at]).is_err()) {
                *builder = None;
            }
        }
    }
    if rows == 0 {
        return Err(CommandOutcome::Refused(Box::new(Problem::new(Kind::EmptyTable, "the table has no rows"))));
    }

    let kinds = reader.kinds();
    let mut facts = unseen;
    let mut built = Vec::new();
    for (at, builder) in columns {
        match builder.map(|builder| builder.finish(kinds[at])) {
            None => facts[at].overflow = true,
            Some(column) => {
                facts[at] = ColumnFacts::new(&ColumnProfile::new(&names[at], &column), rows);
                built.push((at, column));
            }
        }
    }
    let schema = DatasetSchema { columns: &facts, record_key: &[], unit };
    let reading = spec::read(document, &schema, origin);
    let faults: Vec<Fault> = reading.faults;
    match reading.specification {
        Some(specification) if specification.used.len() == built.len() => {
            let names = specification.names.clone();
            let table = Table::new(names, built.into_iter().map(|(_, column)| column).collect());
            let (table, unknown) = crate::engine::annotate(&specification, table);
            let faults =
                [annotate_with_unknown(faults, unknown), crate::engine::check(&specification, &table)].concat();
            if faults.is_empty() {
                return Ok(InputJob { specification, table, persons: persons.fault });
            }
            Err(CommandOutcome::Refused(Box::new(Problem::of_faults(faults))))
        }
        _ => Err(CommandOutcome::Refused(Box::new(Problem::of_faults(faults)))),
    }
}

/// Counts the rows of each data subject.
struct SubjectCounter<'a> {
    /// The subject column, its name and the maximum number of rows per subject.
    by: Option<(usize, &'a str, u64)>,
    rows: AHashMap<Vec<u8>, u64>,
    /// The first violation.
    fault: Option<Problem>,
}

impl<'a> SubjectCounter<'a> {
    fn new(unit: &'a Unit, names: &[String]) -> Result<Self, CommandOutcome> {
        let by = match unit {
            Unit::Row => None,
            Unit::Subject { attribute, max_rows } => {
                let unknown = || CommandOutcome::Usage(format!("the table has no subject column {attribute:?}"));
                let column = names.iter().position(|name| name == attribute).ok_or_else(unknown)?;
                Some((column, attribute.as_str(), *max_rows))
            }
        };
        Ok(Self { by, rows: AHashMap::new(), fault: None })
    }

    fn add(&mut self, chunk: &Chunk) {
        let Some((column, name, most)) = self.by.filter(|_| self.fault.is_none()) else { return };
        let malformed = |detail: String| Some(Problem::new(Kind::UploadMalformed, detail).with("column", name));
        for row in 0..chunk.rows as usize {
            let Some(person) = chunk.columns[column].value(row) else {
                self.fault = malformed("a row has no subject".to_owned());
                return;
            };
            let rows = match self.rows.get_mut(person) {
                Some(rows) => rows,
                None => self.rows.entry(person.to_vec()).or_default(),
            };
            *rows += 1;
            if *rows > most {
                self.fault = malformed(format!("a subject has more than {most} rows"));
                return;
            }
        }
    }
}

/// Reports the read bytes as progress.
struct ProgressReader {
    file: File,
    control: Control,
}

impl Read for ProgressReader {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.control.advance(read as u64).map_err(std::io::Error::other)?;
        Ok(read)
    }
}
