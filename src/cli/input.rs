//! Reads tables and specifications from files.

use std::path::Path;

use ahash::AHashMap;
use rayon::prelude::*;
use serde_json::Value;

use super::contributions::{self, OpenedTable};
use super::exit::CommandOutcome;
use super::population::{PersonHashing, PersonReader};
use super::table_file::TableFile;
use crate::control::Control;
use crate::engine;
use crate::engine::{Inspection, annotate_with_unknown};
use crate::microdata::formats::IngestLimits;
use crate::microdata::{AttributeType, Chunk, Column, ColumnBuilder, ColumnProfile, Table};
use crate::problem::{Fault, Kind, Problem};
use crate::publication::Unit;
use crate::random::RandomStreams;
use crate::report::{LeftOutContributions, SpecificationNotice};
use crate::spec::{self, ColumnFacts, DatasetSchema, DocumentSource, ParsedDocument, Specification};

/// A table and its checked specification.
pub(super) struct InputJob {
    pub(super) specification: Specification,
    pub(super) table: Table,
    /// The columns that the document does not use, without those that exceed a limit.
    pub(super) dropped: Table,
    /// The reason why the rows contradict the unit of protection.
    pub(super) persons: Option<Problem>,
    /// What was left out, where a bounded number of rows of each person is kept.
    pub(super) contributions: Option<LeftOutContributions>,
    /// The person of each row, where the table is published night after night; otherwise none.
    pub(super) republished: Vec<[u8; 16]>,
    /// That persons seem to have several rows, and nothing is said of persons.
    pub(super) undeclared: Option<SpecificationNotice>,
}

/// Reads a JSON document.
pub(super) fn document(path: &Path) -> Result<Value, CommandOutcome> {
    let bytes = std::fs::read(path).map_err(|error| CommandOutcome::io(path, &error))?;
    spec::parse_json(&bytes).map_err(|problem| CommandOutcome::Refused(Box::new(problem)))
}

/// A table and a document that is to be read against it.
pub(super) struct JobSource<'a> {
    pub(super) table: TableFile<'a>,
    pub(super) document: &'a Value,
    pub(super) unit: &'a Unit,
    /// The key by which rows are drawn, where the unit keeps a bounded number of a person.
    pub(super) streams: &'a RandomStreams,
    /// How persons are distinguished, where the table is one of several nights.
    pub(super) persons: Option<PersonHashing<'a>>,
    pub(super) origin: DocumentSource,
}

/// A table and its document before the document is checked.
pub(super) struct ReadJob<'a> {
    pub(super) context: DocumentContext<'a>,
    pub(super) rows: u64,
    /// The columns that the document uses, without those that exceed a limit.
    pub(super) columns: Vec<Column>,
    /// The other ones, without those that exceed a limit.
    pub(super) dropped: Table,
    pub(super) profiles: Vec<ColumnProfile>,
    pub(super) reading: ParsedDocument,
    /// The reason why the rows contradict the unit of protection.
    pub(super) persons: Option<Problem>,
    /// What was left out, where a bounded number of rows of each person is kept.
    pub(super) contributions: Option<LeftOutContributions>,
    /// The person of each row, where the table is published night after night; otherwise none.
    pub(super) republished: Vec<[u8; 16]>,
}

/// Reads the columns that the document uses, and the others.
pub(super) fn read<'a>(source: JobSource<'a>, control: &Control) -> Result<ReadJob<'a>, CommandOutcome> {
    let limits = IngestLimits::default();
    let OpenedTable { mut reader, contributions, chose_rows } =
        contributions::open(&source.table, source.unit, source.streams, &limits, control)?;
    let ingest = |error| source.table.unread(control, error);
    let names = reader.names().to_vec();
    let mut persons = SubjectCounter::new(source.unit, &names)?;
    let mut republished = source.persons.map(|keys| PersonReader::new(keys, &names)).transpose()?;
    let keys = source.persons.map_or(&[][..], |keys| keys.columns);

    let mut facts: Vec<ColumnFacts> = names.iter().map(|name| ColumnFacts::unseen(name)).collect();
    let schema = DatasetSchema { columns: &facts, keys, unit: source.unit };
    let first = spec::read(source.document, &schema, source.origin);
    let used = first.specification.map_or_else(|| (0..names.len()).collect(), |specification| specification.used);
    let others = unused(&names, &used, keys);
    let mut building: Vec<UsedColumn> =
        used.iter().copied().chain(others).map(|index| UsedColumn::new(index, &limits)).collect();
    let mut rows = 0u64;
    while let Some(chunk) = reader.next_chunk().map_err(ingest)? {
        rows += u64::from(chunk.rows);
        persons.add(&chunk);
        republished.iter_mut().for_each(|reader| reader.add(&chunk));
        building.par_iter_mut().for_each(|column| column.push(&chunk));
    }
    if rows == 0 {
        return Err(CommandOutcome::Refused(Box::new(Problem::new(Kind::EmptyTable, "the table has no rows"))));
    }
    let kinds = reader.kinds();
    let (mut columns, mut profiles) = (Vec::new(), Vec::new());
    let finish = |UsedColumn { index, builder }| (index, builder.map(|builder| builder.finish(kinds[index])));
    let mut finished: Vec<(usize, Option<Column>)> = building.into_par_iter().map(finish).collect();
    let dropped =
        finished.split_off(used.len()).into_iter().filter_map(|(index, column)| Some((names[index].clone(), column?)));
    let (dropped_names, dropped_columns) = dropped.unzip();
    for (index, column) in finished {
        match column {
            None => facts[index].overflow = true,
            Some(column) => {
                let profile = ColumnProfile::new(&names[index], &column);
                facts[index] = ColumnFacts { chose_rows: chose_rows[index], ..ColumnFacts::new(&profile, rows) };
                profiles.push(profile);
                columns.push(column);
            }
        }
    }
    let schema = DatasetSchema { columns: &facts, keys, unit: source.unit };
    let reading = spec::read(source.document, &schema, source.origin);
    let JobSource { document, unit, origin, .. } = source;
    Ok(ReadJob {
        context: DocumentContext { document, unit, origin, facts, keys },
        rows,
        columns,
        dropped: Table::new(dropped_names, dropped_columns),
        profiles,
        reading,
        persons: persons.fault,
        contributions,
        republished: republished.map(PersonReader::finish).transpose()?.unwrap_or_default(),
    })
}

/// The columns that the document does not use.
///
/// A person of a night has one row, so that a column that identifies persons by itself differs in each row. Such a column ties
/// nothing (docs/spec/dependencies.md#dropped-columns), and is left out.
fn unused(names: &[String], used: &[usize], keys: &[String]) -> impl Iterator<Item = usize> {
    let is_key = move |name: &String| matches!(keys, [key] if key == name);
    names.iter().enumerate().filter(move |(at, name)| !used.contains(at) && !is_key(name)).map(|(at, _)| at)
}

impl ReadJob<'_> {
    /// That persons seem to have several rows, by all columns of a table of which nothing is said of persons.
    pub(super) fn undeclared_subject(&self) -> Option<SpecificationNotice> {
        if *self.context.unit != Unit::Row || !self.context.keys.is_empty() {
            return None;
        }
        let others = self.dropped.uploaded().map(|other| ColumnProfile::new(other.name, other.column));
        let profiles: Vec<ColumnProfile> = self.profiles.iter().cloned().chain(others).collect();
        engine::undeclared_subject(&profiles, self.rows)
    }
}

/// A document with what it is read against.
pub(super) struct DocumentContext<'a> {
    document: &'a Value,
    unit: &'a Unit,
    origin: DocumentSource,
    facts: Vec<ColumnFacts>,
    /// The columns that identify persons.
    keys: &'a [String],
}

impl DocumentContext<'_> {
    /// The problem of these faults, with remedies. Values are looked up in `table`, which has the columns that the document uses.
    pub(super) fn problem(&self, faults: Vec<Fault>, table: Option<&Table>) -> Problem {
        let of_table = |specification: &Specification| {
            let table = table?;
            let of_values = engine::faults_of_values(specification, table, Inspection::Allowed, &Control::default())?;
            Some([of_values, engine::check(specification, table)].concat())
        };
        let first = self.reading(self.document).specification.as_ref().and_then(of_table).unwrap_or_default();
        spec::with_remedies(Problem::of_faults(faults), self.document, |patched| {
            let ParsedDocument { specification, mut faults } = self.reading(patched);
            // of other columns nothing is known
            let of_table = |of| of_table(of).unwrap_or_else(|| first.clone());
            faults.extend(specification.as_ref().map(of_table).unwrap_or_default());
            faults
        })
    }

    fn reading(&self, document: &Value) -> ParsedDocument {
        let schema = DatasetSchema { columns: &self.facts, keys: self.keys, unit: self.unit };
        spec::read(document, &schema, self.origin)
    }

    /// The outcome of a document with these faults.
    pub(super) fn refusal(&self, faults: Vec<Fault>, table: Option<&Table>) -> CommandOutcome {
        CommandOutcome::Refused(Box::new(self.problem(faults, table)))
    }
}

/// Reads the columns that the document uses and checks the document against them.
pub(super) fn job(source: JobSource<'_>, control: &Control) -> Result<InputJob, CommandOutcome> {
    let read = read(source, control)?;
    let undeclared = read.undeclared_subject();
    let ReadJob { context, columns, dropped, reading, persons, contributions, republished, .. } = read;
    let ParsedDocument { specification, faults } = reading;
    let Some(specification) = specification.filter(|of| of.used.len() == columns.len()) else {
        return Err(context.refusal(faults, None));
    };
    let table = Table::new(specification.names.clone(), columns);
    let (table, unknown) = engine::annotate(&specification, table, Inspection::Allowed);
    let faults = annotate_with_unknown(faults, unknown);
    let faults = [faults, engine::check_and_repair(&specification, &table)].concat();
    match faults.is_empty() {
        true => Ok(InputJob { specification, table, dropped, persons, contributions, republished, undeclared }),
        false => Err(context.refusal(faults, Some(&table))),
    }
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
pub(super) fn profiled(
    table: &TableFile<'_>,
    unit: &Unit,
    limits: &IngestLimits,
    control: &Control,
) -> Result<ProfiledTable, CommandOutcome> {
    // a suggestion publishes nothing: any key will do, and the same gives the same suggestion
    let OpenedTable { mut reader, chose_rows, .. } =
        contributions::open(table, unit, &RandomStreams::Identity, limits, control)?;
    let ingest = |error| table.unread(control, error);
    let names = reader.names().to_vec();
    let mut columns: Vec<UsedColumn> = (0..names.len()).map(|index| UsedColumn::new(index, limits)).collect();
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
    let profile = |((name, column), chose_rows): ((&String, &Option<Column>), bool)| match column {
        Some(column) => ColumnProfile { chose_rows, ..ColumnProfile::new(name, column) },
        None => ColumnProfile {
            name: name.clone(),
            kind: AttributeType::Text,
            distinct: None,
            missing: 0,
            top: 0,
            identifier: false,
            mostly_distinct: true,
            bytes: None,
            chose_rows,
        },
    };
    Ok(ProfiledTable { profiles: names.iter().zip(&columns).zip(chose_rows).map(profile).collect(), rows, columns })
}

/// A column that the document uses.
struct UsedColumn {
    index: usize,
    /// None once the column exceeds a limit.
    builder: Option<ColumnBuilder>,
}

impl UsedColumn {
    fn new(index: usize, limits: &IngestLimits) -> Self {
        Self { index, builder: Some(ColumnBuilder::new(limits)) }
    }

    fn push(&mut self, chunk: &Chunk) {
        if self.builder.as_mut().is_some_and(|builder| builder.push(&chunk.columns[self.index]).is_err()) {
            self.builder = None;
        }
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
            Unit::Subject { attribute, max_rows, .. } => {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_that_is_a_key_by_itself_is_left_out() {
        let names = ["first", "last", "age"].map(String::from);
        let unused = |keys: &[&str]| {
            let keys: Vec<String> = keys.iter().map(ToString::to_string).collect();
            unused(&names, &[2], &keys).collect::<Vec<usize>>()
        };
        assert_eq!(unused(&["last"]), [0]);
        // each of several may have the same value in many rows
        assert_eq!(unused(&["first", "last"]), [0, 1]);
        assert_eq!(unused(&[]), [0, 1]);
        // what the document uses is used
        assert_eq!(unused(&["age"]), [0, 1]);
    }
}
