//! Reads tables and specifications from files.

use std::fs::File;
use std::io::{Cursor, Read};
use std::path::Path;

use ahash::AHashMap;
use serde_json::Value;

use super::exit::CommandOutcome;
use crate::control::{Control, Phase};
use crate::engine;
use crate::engine::{Inspection, annotate_with_unknown};
use crate::microdata::formats::compression::{decoder, sniff};
use crate::microdata::formats::csv::CsvOptions;
use crate::microdata::formats::{self, IngestError, IngestLimits, InputFormat, TableReader};
use crate::microdata::{AttributeType, Chunk, Column, ColumnBuilder, ColumnProfile, Table};
use crate::problem::{Fault, Kind, Problem};
use crate::publication::Unit;
use crate::spec::{self, ColumnFacts, DatasetSchema, DocumentSource, ParsedDocument, Specification};

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
    let schema = DatasetSchema { columns: &unseen, keys: &[], unit };
    let first = spec::read(document, &schema, origin);
    let used = first.specification.map_or_else(|| (0..names.len()).collect(), |specification| specification.used);
    let mut columns: Vec<UsedColumn> =
        used.iter().map(|&index| UsedColumn { index, builder: Some(ColumnBuilder::new(&limits)) }).collect();
    let mut rows = 0u64;
    while let Some(chunk) = reader.next_chunk().map_err(ingest)? {
        rows += u64::from(chunk.rows);
        persons.add(&chunk);
        columns.iter_mut().for_each(|column| column.push(&chunk));
    }
    if rows == 0 {
        return Err(CommandOutcome::Refused(Box::new(Problem::new(Kind::EmptyTable, "the table has no rows"))));
    }

    let kinds = reader.kinds();
    let mut facts = unseen;
    let mut built = Vec::new();
    for UsedColumn { index, builder } in columns {
        match builder.map(|builder| builder.finish(kinds[index])) {
            None => facts[index].overflow = true,
            Some(column) => {
                facts[index] = ColumnFacts::new(&ColumnProfile::new(&names[index], &column), rows);
                built.push(column);
            }
        }
    }
    let schema = DatasetSchema { columns: &facts, keys: &[], unit };
    let (specification, table) = checked(spec::read(document, &schema, origin), built).map_err(|faults| {
        let read = |patched: &Value| spec::read(patched, &schema, origin).faults;
        let problem = spec::with_remedies(Problem::of_faults(faults), document, read);
        CommandOutcome::Refused(Box::new(problem))
    })?;
    Ok(InputJob { specification, table, persons: persons.fault })
}

/// All columns of a table with their profiles.
pub(super) struct ProfiledTable {
    pub(super) profiles: Vec<ColumnProfile>,
    pub(super) rows: u64,
    /// None for a column that exceeds a limit.
    columns: Vec<Option<Column>>,
}

impl ProfiledTable {
    /// The columns at these positions; none of them exceeds a limit.
    pub(super) fn table(&self, positions: &[usize]) -> Table {
        let columns =
            positions.iter().filter_map(|&at| Some((self.profiles[at].name.clone(), self.columns[at].clone()?)));
        let (names, columns) = columns.unzip();
        Table::new(names, columns)
    }
}

/// Reads and profiles all columns of a table.
pub(super) fn profiled(path: &Path, limits: &IngestLimits, control: &Control) -> Result<ProfiledTable, CommandOutcome> {
    let mut reader = opened(path, None, limits, control)?;
    let ingest = |error| unread(path, control, error);
    let names = reader.names().to_vec();
    let mut columns: Vec<UsedColumn> =
        (0..names.len()).map(|index| UsedColumn { index, builder: Some(ColumnBuilder::new(limits)) }).collect();
    let mut rows = 0;
    while let Some(chunk) = reader.next_chunk().map_err(ingest)? {
        rows += u64::from(chunk.rows);
        columns.iter_mut().for_each(|column| column.push(&chunk));
    }
    if rows == 0 {
        return Err(CommandOutcome::Refused(Box::new(Problem::new(Kind::EmptyTable, "the table has no rows"))));
    }
    let kinds = reader.kinds();
    let columns: Vec<Option<Column>> =
        columns.into_iter().map(|column| Some(column.builder?.finish(kinds[column.index]))).collect();
    let profile = |(name, column): (&String, &Option<Column>)| match column {
        Some(column) => ColumnProfile::new(name, column),
        None => ColumnProfile {
            name: name.clone(),
            kind: AttributeType::Text,
            distinct: None,
            missing: 0,
            top: 0,
            identifier: false,
            mostly_distinct: true,
            bytes: None,
        },
    };
    Ok(ProfiledTable { profiles: names.iter().zip(&columns).map(profile).collect(), rows, columns })
}

/// A column that the document uses.
struct UsedColumn {
    index: usize,
    /// None once the column exceeds a limit.
    builder: Option<ColumnBuilder>,
}

impl UsedColumn {
    fn push(&mut self, chunk: &Chunk) {
        if self.builder.as_mut().is_some_and(|builder| builder.push(&chunk.columns[self.index]).is_err()) {
            self.builder = None;
        }
    }
}

/// The specification and its table, or every fault of the document.
fn checked(reading: ParsedDocument, columns: Vec<Column>) -> Result<(Specification, Table), Vec<Fault>> {
    match reading.specification {
        Some(specification) if specification.used.len() == columns.len() => {
            let table = Table::new(specification.names.clone(), columns);
            let (table, unknown) = engine::annotate(&specification, table, Inspection::Allowed);
            let faults = annotate_with_unknown(reading.faults, unknown);
            let faults = [faults, engine::check(&specification, &table)].concat();
            if faults.is_empty() { Ok((specification, table)) } else { Err(faults) }
        }
        _ => Err(reading.faults),
    }
}

/// The column of data subjects.
#[derive(Clone, Copy)]
struct SubjectColumn<'a> {
    index: usize,
    name: &'a str,
    /// The most rows of one subject.
    max_rows: u64,
}

/// Counts the rows of each data subject.
struct SubjectCounter<'a> {
    by: Option<SubjectColumn<'a>>,
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
                Some(SubjectColumn { index: column, name: attribute, max_rows: *max_rows })
            }
        };
        Ok(Self { by, rows: AHashMap::new(), fault: None })
    }

    fn add(&mut self, chunk: &Chunk) {
        let Some(SubjectColumn { index, name, max_rows }) = self.by.filter(|_| self.fault.is_none()) else { return };
        let malformed = |detail: String| Some(Problem::new(Kind::UploadMalformed, detail).with("column", name));
        for row in 0..chunk.rows as usize {
            let Some(person) = chunk.columns[index].value(row) else {
                self.fault = malformed("a row has no subject".to_owned());
                return;
            };
            let rows = match self.rows.get_mut(person) {
                Some(rows) => rows,
                None => self.rows.entry(person.to_vec()).or_default(),
            };
            *rows += 1;
            if *rows > max_rows {
                self.fault = malformed(format!("a subject has more than {max_rows} rows"));
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
