//! A table of the engine, as a release asks for it.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::path::Path;

use serde::Deserialize;

use super::audit::{WrittenForm, WrittenRelations, WrittenRows, contents, sizes};
use super::files::{SharedFolders, parquet_files};
use super::kinds::SqlKind;
use super::relation::SqlValue;
use super::session::SqlSession;
use super::source::{SparkSource, identifier, parquet};
use super::statements::{self, ClassStatements, column};
use super::write::{engine_cell, part_name};
use super::written;
use crate::engine::{
    CountedGroups, CountedValue, CoveredCells, DistinctRows, InferredRows, ProtectedRemoteColumn,
    PublishedRemoteColumn, RemoteAudit, RemoteBuckets, RemoteCheck, RemoteClasses, RemoteColumn, RemoteError,
    RemoteForm, RemotePart, RemoteSlices, RemoteTable, RemoteTablePlan, RowSample, WrittenRemotePart,
};
use crate::microdata::formats::parquet::ParquetFiles;
use crate::microdata::formats::{IngestLimits, TableReader};
use crate::privacy::ValueFrequency;
use crate::publish::ranked::BucketContent;
use crate::report::PartFile;

/// The most different numbers of rows of the values of a column.
const MOST_FREQUENCIES: usize = 1 << 20;
/// About how many rows are sampled.
const SAMPLE: u64 = 1 << 16;

/// The classes of the errors of a table that is not there, and of a folder without Parquet files.
const ABSENT: [&str; 6] = [
    "TABLE_OR_VIEW_NOT_FOUND",
    "PATH_NOT_FOUND",
    "UNABLE_TO_INFER_SCHEMA",
    "SCHEMA_NOT_FOUND",
    "CATALOG_NOT_FOUND",
    "REQUIRES_SINGLE_PART_NAMESPACE",
];

/// A table in Spark.
pub struct SparkTable<S> {
    pub(super) session: S,
    pub(super) folders: SharedFolders,
    columns: Vec<RemoteColumn>,
    pub(super) kinds: Vec<SqlKind>,
    pub(super) rows: u64,
    /// The columns that the release uses, by their names in statements; none before a table is written.
    pub(super) used: Vec<String>,
}

impl<S: SqlSession> SparkTable<S> {
    /// Reads the schema of a table and counts its columns.
    ///
    /// # Errors
    /// [`RemoteError`]
    pub fn open(mut session: S, source: &SparkSource, folders: SharedFolders) -> Result<Self, RemoteError> {
        let columns = columns_of(&mut session, source)?;
        let mut table = Self::uncounted(session, &columns, source, folders)?;
        table.count(columns)?;
        Ok(table)
    }

    /// A table with these columns, of which nothing is asked before it is counted.
    pub(super) fn uncounted(
        mut session: S,
        columns: &[(String, SqlKind)],
        source: &SparkSource,
        folders: SharedFolders,
    ) -> Result<Self, RemoteError> {
        let cast = |(place, (name, kind)): (usize, &(String, SqlKind))| {
            format!("cast({} as {}) as {}", identifier(name), kind.sql(), column(place))
        };
        let selected: Vec<String> = columns.iter().enumerate().map(cast).collect();
        session.view("src", &format!("select {} from {}", selected.join(", "), source.sql()))?;
        Ok(Self { session, folders, columns: Vec::new(), kinds: Vec::new(), rows: 0, used: Vec::new() })
    }

    pub(super) fn count(&mut self, columns: Vec<(String, SqlKind)>) -> Result<(), RemoteError> {
        let all = 0..columns.len();
        let missing = all.clone().map(|place| format!("count(*) - count({})", column(place)));
        let malformed =
            all.filter_map(|place| Some(format!("count_if({})", columns[place].1.malformed(&column(place))?)));
        let counts: Vec<String> = std::iter::once("count(*)".to_owned()).chain(missing).chain(malformed).collect();
        let counted = self.numbers(&format!("select {} from src", counts.join(", ")))?;
        let [rows, others @ ..] = &counted[..] else { return Err(unexpected()) };
        let (missing, malformed) = others.split_at_checked(columns.len()).ok_or_else(unexpected)?;
        if malformed.iter().any(|rows| *rows > 0) {
            return Err(RemoteError::Unsupported(
                "a text column holds what is not UTF-8, or a date is not of the years 0 to 9999: repair the column, or name a \
                 view without it"
                    .to_owned(),
            ));
        }
        if *rows == 0 {
            return Err(RemoteError::Unsupported("the table has no rows".to_owned()));
        }
        self.rows = *rows;
        for (place, ((name, kind), &missing)) in columns.into_iter().zip(missing).enumerate() {
            let frequencies = self.frequencies(place)?;
            self.columns.push(RemoteColumn { name, kind: kind.attribute_type(), missing, frequencies });
            self.kinds.push(kind);
        }
        Ok(())
    }

    fn frequencies(&mut self, place: usize) -> Result<Vec<ValueFrequency>, RemoteError> {
        let found = self.session.query(&statements::frequencies(&column(place)))?;
        if found.len() > MOST_FREQUENCIES {
            return Err(RemoteError::Unsupported("a column has too many values: drop it from the view".to_owned()));
        }
        let frequency = |row: Vec<SqlValue>| match &row[..] {
            [SqlValue::Integer(rows), SqlValue::Integer(values)] => {
                Ok(ValueFrequency { rows: *rows as u64, values: *values as u64 })
            }
            _ => Err(unexpected()),
        };
        let mut found: Vec<ValueFrequency> = found.into_iter().map(frequency).collect::<Result<_, _>>()?;
        found.sort_unstable_by_key(|of| std::cmp::Reverse(of.rows));
        Ok(found)
    }

    /// The numbers of the only row of a query.
    fn numbers(&mut self, sql: &str) -> Result<Vec<u64>, RemoteError> {
        let rows = self.session.query(sql)?;
        let [row] = &rows[..] else { return Err(unexpected()) };
        row.iter().map(number).collect()
    }

    /// The columns that the statements of a table use: its own, or all that rank its rows.
    fn use_columns(&mut self, table: &RemoteTablePlan) {
        let places = match table.buckets() {
            Some(buckets) => buckets.ranking.clone(),
            None => {
                let mut places: Vec<usize> = table.known.iter().map(|of| of.column).collect();
                places.sort_unstable();
                places
            }
        };
        self.used = places.into_iter().map(column).collect();
    }

    /// The values of a protected column as statements encode them, with their positions.
    fn codes(&self, ProtectedRemoteColumn { column, values }: &ProtectedRemoteColumn) -> HashMap<String, u32> {
        let kind = self.kinds[column.column];
        values.iter().map(|value| engine_cell(kind, value.as_deref())).zip(0..).collect()
    }

    /// Adds what buckets or classes hold of a protected column.
    fn count_contents(
        &mut self,
        sql: &str,
        codes: &HashMap<String, u32>,
        audit: &mut RemoteAudit,
    ) -> Result<(), RemoteError> {
        let mut contents: BTreeMap<BucketContent, u64> = BTreeMap::new();
        for row in self.session.query(sql)? {
            let [SqlValue::Text(content), number_of] = &row[..] else { return Err(unexpected()) };
            let listed: Vec<ListedValue> = serde_json::from_str(content).map_err(|_| unexpected())?;
            // a value that the plan does not know is one that the source does not have
            let code = |of: ListedValue| Some((codes.get(&of.v).copied()?, of.n));
            let content: Option<Vec<(u32, u64)>> = listed.into_iter().map(code).collect();
            let Some(mut content) = content else {
                *audit.broken.entry(RemoteCheck::Content).or_default() += 1;
                continue;
            };
            content.sort_unstable();
            *contents.entry(content).or_default() += number(number_of)?;
        }
        audit.contents.push(contents);
        Ok(())
    }

    /// The parts of a table as they were written, and the assignment.
    fn relations(&self, table: &RemoteTablePlan) -> WrittenRelations {
        let written = |RemotePart { name, columns }: RemotePart| {
            let relation = parquet(&self.folders.part(&part_name(table, &name)));
            WrittenRows { columns, relation }
        };
        WrittenRelations {
            columns: self.used.clone(),
            parts: table.parts().into_iter().map(written).collect(),
            assignment: parquet(&self.folders.staged(&format!("{}.w", table.name))),
            form: match &table.form {
                RemoteForm::Plain => WrittenForm::Plain,
                RemoteForm::Bucketized(_) | RemoteForm::Sliced(_) => WrittenForm::Bucketed,
                RemoteForm::Generalized(classes) => WrittenForm::Generalized(classes.generalized().to_vec()),
            },
        }
    }

    /// What the buckets of a part hold of its protected column, for the rows that agree in the other ones.
    fn count_buckets(
        &mut self,
        sensitive: &ProtectedRemoteColumn,
        part: &WrittenRows,
        audit: &mut RemoteAudit,
    ) -> Result<(), RemoteError> {
        let others = part.columns.iter().filter(|of| of.column != sensitive.column.column);
        let others = others.map(|of| identifier(&of.name));
        let agreeing: Vec<String> = std::iter::once("bucket".to_owned()).chain(others).collect();
        let sql = contents(&part.relation, &agreeing, Some(&identifier(&sensitive.column.name)));
        self.count_contents(&sql, &self.codes(sensitive), audit)
    }

    /// What stands behind the cells of classes, by the rows with their classes.
    fn covered(
        &mut self,
        table: &RemoteTablePlan,
        classes: &RemoteClasses,
        assignment: &str,
    ) -> Result<CoveredCells, RemoteError> {
        let generalized = classes.generalized();
        let made = ClassStatements { table: &table.name, columns: &self.used, known: &table.known, generalized };
        let (sql, staged) = (made.covered(assignment), self.folders.staged(&format!("{}.covered", table.name)));
        self.session.write(&sql, &staged, false)?;
        let kinds: Vec<SqlKind> = generalized.iter().map(|&at| self.kinds[table.known[at].column]).collect();
        let mut covered = CoveredCells::new(generalized.len());
        each_staged_row(&staged, |row| {
            let [at, class, value, cell] = row else { return None };
            let number = |text: &Option<&[u8]>| std::str::from_utf8((*text)?).ok()?.parse::<u32>().ok();
            let (at, class) = (number(at)? as usize, number(class)?);
            let kind = *kinds.get(at)?;
            let canonical = |value: &[u8]| Some(kind.canonical(std::str::from_utf8(value).ok()?.to_owned()));
            let value = match value {
                None => None,
                Some(value) => Some(canonical(value)?),
            };
            covered.push(at, class, value.as_deref().map(str::as_bytes), *cell)
        })?;
        Ok(covered)
    }

    /// What the files themselves say: their columns, what else stands in them, and the order of their rows.
    fn read_files(&self, table: &RemoteTablePlan, audit: &mut RemoteAudit) -> Result<(), RemoteError> {
        let is_shared = |at: usize| table.classes().is_some_and(|classes| classes.generalized().contains(&at));
        let shown = |(at, of): (usize, &PublishedRemoteColumn)| {
            (of.name.clone(), if is_shared(at) { SqlKind::Text } else { self.kinds[of.column] })
        };
        let bucketed = table.buckets().is_some() || table.slices().is_some();
        let (mut columns, mut order, mut places) = (0, 0, 0);
        for part in table.parts() {
            let attributes: Vec<_> = part.columns.iter().enumerate().map(shown).collect();
            let name = part_name(table, &part.name);
            let failed = |error: std::io::Error| RemoteError::Failed(format!("files of {name}: {error}"));
            let expected = statements::files(self.rows);
            let mut found = 0;
            for entry in std::fs::read_dir(self.folders.path(&name)).map_err(failed)? {
                let path = entry.map_err(failed)?.path();
                let read = written::check(&path, &attributes, bucketed).map_err(failed)?;
                columns += u64::from(!read.has_columns);
                order += u64::from(!read.is_ordered);
                found += 1;
            }
            places += u64::from(found == 0 || found > expected);
        }
        audit.broken.insert(RemoteCheck::Columns, columns);
        audit.broken.insert(RemoteCheck::Order, order);
        *audit.broken.entry(RemoteCheck::Place).or_default() += places;
        Ok(())
    }
}

/// Reads the rows that were written to a folder, one by one; `take` says whether a row is as was asked for.
fn each_staged_row(folder: &str, mut take: impl FnMut(&[Option<&[u8]>]) -> Option<()>) -> Result<(), RemoteError> {
    let failed = |error: String| RemoteError::Failed(format!("rows in the scratch folder: {error}"));
    for file in parquet_files(Path::new(folder)).map_err(|error| failed(error.to_string()))? {
        let read = ParquetFiles::new(vec![file], &IngestLimits::of_own_parts());
        let mut rows = read.map_err(|error| failed(error.to_string()))?;
        while let Some(chunk) = rows.next_chunk().map_err(|error| failed(error.to_string()))? {
            for row in 0..chunk.rows as usize {
                let cells: Vec<Option<&[u8]>> = chunk.columns.iter().map(|of| of.value(row)).collect();
                take(&cells).ok_or_else(unexpected)?;
            }
        }
    }
    Ok(())
}

/// The columns of a table that is there, as [`offered`].
pub(super) fn columns_of(
    session: &mut impl SqlSession,
    source: &SparkSource,
) -> Result<Vec<(String, SqlKind)>, RemoteError> {
    let schema = session.schema(&format!("select * from {}", source.sql())).map_err(|error| match error {
        RemoteError::Failed(class) if ABSENT.iter().any(|of| class.starts_with(of)) => RemoteError::Absent,
        other => other,
    });
    offered(schema?)
}

/// The columns of a table, if all of them can be published and searched for dependencies, and none has a name of our own.
pub(super) fn offered(schema: Vec<(String, Option<SqlKind>)>) -> Result<Vec<(String, SqlKind)>, RemoteError> {
    let untyped: Vec<&str> = schema.iter().filter(|(_, kind)| kind.is_none()).map(|(name, _)| name.as_str()).collect();
    if !untyped.is_empty() {
        let untyped = untyped.join(", ");
        let detail = format!(
            "{untyped}: equality and text of these types differ between engines, so that nothing can be searched for what they give \
             away; name a view that casts or lacks them"
        );
        return Err(RemoteError::Unsupported(detail));
    }
    let is_reserved = |name: &&str| name.starts_with(statements::RESERVED) || *name == "_metadata";
    let reserved: Vec<&str> = schema.iter().map(|(name, _)| name.as_str()).filter(is_reserved).collect();
    if !reserved.is_empty() {
        let reserved = reserved.join(", ");
        let detail =
            format!("{reserved}: the engine or the release has columns of this name; name a view that renames them");
        return Err(RemoteError::Unsupported(detail));
    }
    Ok(schema.into_iter().filter_map(|(name, kind)| Some((name, kind?))).collect())
}

pub(super) fn unexpected() -> RemoteError {
    RemoteError::Failed("an answer of another form than was asked for".to_owned())
}

fn number(value: &SqlValue) -> Result<u64, RemoteError> {
    match value {
        SqlValue::Integer(number) => u64::try_from(*number).map_err(|_| unexpected()),
        SqlValue::Null => Ok(0),
        SqlValue::Text(_) => Err(unexpected()),
    }
}

/// A value of a bucket with its rows, as the audit lists them.
#[derive(Deserialize)]
struct ListedValue {
    v: String,
    n: u64,
}

impl<S: SqlSession> RemoteTable for SparkTable<S> {
    fn rows(&self) -> u64 {
        self.rows
    }

    fn columns(&self) -> &[RemoteColumn] {
        &self.columns
    }

    fn values(&mut self, place: usize, most: u64) -> Result<Vec<CountedValue>, RemoteError> {
        let RemoteColumn { kind, name, .. } = &self.columns[place];
        let sql_kind = self.kinds[place];
        if self.columns[place].distinct() > most {
            let detail = format!("{name} has more than {most} values: a protected attribute is planned value by value");
            return Err(RemoteError::Unsupported(detail));
        }
        let counted = |row: Vec<SqlValue>| match &row[..] {
            [SqlValue::Null, rows] => Ok((None, number(rows)?)),
            [SqlValue::Text(value), rows] => Ok((Some(sql_kind.canonical(value.clone())), number(rows)?)),
            _ => Err(unexpected()),
        };
        let found = self.session.query(&statements::values(&column(place)))?;
        let mut values: Vec<CountedValue> = found.into_iter().map(counted).collect::<Result<_, _>>()?;
        let bytes = |of: &CountedValue| of.0.as_ref().map(|value| value.as_bytes().to_vec());
        values.sort_by(|one, other| kind.compare(bytes(one).as_deref(), bytes(other).as_deref()));
        Ok(values)
    }

    fn encoded_cell(&self, column: usize, value: Option<&str>) -> String {
        engine_cell(self.kinds[column], value)
    }

    fn determined(&mut self, determinant: &[usize], dependents: &[usize]) -> Result<Vec<CountedGroups>, RemoteError> {
        let columns = |places: &[usize]| places.iter().map(|&place| column(place)).collect::<Vec<String>>();
        let found = self.session.query(&statements::determined(&columns(determinant), &columns(dependents)))?;
        let mut counted = vec![None; dependents.len()];
        for row in found {
            let [at, groups, right] = &row[..] else { return Err(unexpected()) };
            let place = counted.get_mut(number(at)? as usize).ok_or_else(unexpected)?;
            *place = Some(CountedGroups { groups: number(groups)?, errors: self.rows.saturating_sub(number(right)?) });
        }
        counted.into_iter().map(|counted| counted.ok_or_else(unexpected)).collect()
    }

    fn sample(&mut self) -> Result<RowSample, RemoteError> {
        let all: Vec<String> = (0..self.columns.len()).map(column).collect();
        let staged = self.folders.staged("sample");
        self.session.write(&statements::sample(&all, self.rows.div_ceil(SAMPLE)), &staged, false)?;
        let mut sample = RowSample::default();
        each_staged_row(&staged, |row| {
            sample.push(row.iter().copied());
            Some(())
        })?;
        Ok(sample)
    }

    fn distinct_rows(&mut self, columns: &[usize], most: u64) -> Result<DistinctRows, RemoteError> {
        let columns: Vec<String> = columns.iter().copied().map(column).collect();
        let number = self.numbers(&statements::number_of_distinct_rows(&columns))?;
        if number.first().is_none_or(|number| *number > most) {
            let detail = format!(
                "the columns that this release is planned from have more than {most} distinct rows: name a view with coarser values, or \
                 publish fewer columns"
            );
            return Err(RemoteError::Unsupported(detail));
        }
        let staged = self.folders.staged("distinct");
        self.session.write(&statements::distinct_rows(&columns), &staged, false)?;
        let mut found = DistinctRows::default();
        each_staged_row(&staged, |row| {
            let (rows, row) = row.split_last()?;
            found.push(std::str::from_utf8((*rows)?).ok()?.parse().ok()?, row.iter().copied());
            Some(())
        })?;
        Ok(found)
    }

    fn unique(&mut self, columns: &[usize]) -> Result<u64, RemoteError> {
        let columns: Vec<String> = columns.iter().copied().map(column).collect();
        let found = self.numbers(&statements::unique(&columns))?;
        found.first().copied().ok_or_else(unexpected)
    }

    fn inferred(&mut self, known: &[usize], place: usize) -> Result<InferredRows, RemoteError> {
        let known: Vec<String> = known.iter().copied().map(column).collect();
        match self.numbers(&statements::inferred(&known, &column(place)))?[..] {
            [fixed, likely] => Ok(InferredRows { fixed, likely }),
            _ => Err(unexpected()),
        }
    }

    fn write(&mut self, table: &RemoteTablePlan) -> Result<Vec<WrittenRemotePart>, RemoteError> {
        self.use_columns(table);
        self.write_parts(table)
    }

    fn audit(&mut self, table: &RemoteTablePlan) -> Result<RemoteAudit, RemoteError> {
        self.use_columns(table);
        let relations = self.relations(table);
        let mut audit = RemoteAudit::default();
        for (check, sql) in relations.checks() {
            let broken = self.numbers(&sql)?;
            *audit.broken.entry(check).or_default() += broken.first().copied().unwrap_or(1);
        }
        let part = relations.parts.last().ok_or_else(unexpected)?;
        match &table.form {
            RemoteForm::Plain => {}
            RemoteForm::Bucketized(RemoteBuckets { sensitive, .. }) => {
                self.count_buckets(sensitive, part, &mut audit)?
            }
            RemoteForm::Sliced(RemoteSlices { sensitive, .. }) => {
                self.count_buckets(sensitive, part, &mut audit)?;
                for row in self.session.query(&sizes(&part.relation))? {
                    let [rows, buckets] = &row[..] else { return Err(unexpected()) };
                    audit.sizes.insert(number(rows)?, number(buckets)?);
                }
            }
            RemoteForm::Generalized(classes) => {
                let agreeing = classes.generalized().iter().map(|&at| identifier(&table.known[at].name));
                let agreeing: Vec<String> = agreeing.collect();
                for of in &classes.sensitive {
                    let sql = contents(&part.relation, &agreeing, Some(&identifier(&of.column.name)));
                    self.count_contents(&sql, &self.codes(of), &mut audit)?;
                }
                if classes.sensitive.is_empty() {
                    let codes = HashMap::from([(String::new(), 0)]);
                    self.count_contents(&contents(&part.relation, &agreeing, None), &codes, &mut audit)?;
                }
                audit.covered = self.covered(table, classes, &relations.assignment)?;
            }
        }
        self.read_files(table, &mut audit)?;
        Ok(audit)
    }

    fn files_of(&self, part: &WrittenRemotePart) -> Result<Vec<File>, RemoteError> {
        let open = |file: &PartFile| File::open(self.folders.path(&file.file));
        let opened = part.files.iter().map(open).collect::<std::io::Result<_>>();
        opened.map_err(|error| RemoteError::Failed(format!("files of {}: {error}", part.name)))
    }

    fn clear(&mut self) -> Result<(), RemoteError> {
        self.folders.clear().map_err(|error| RemoteError::Failed(format!("the scratch folder: {error}")))
    }
}
