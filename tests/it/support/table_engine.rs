//! An engine with tables: files of CSV in a folder, which it copies, counts, assigns to buckets and writes as Parquet by itself.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use guardian::control::Control;
use guardian::engine::{
    CopiedTable, CountedGroups, CountedValue, CoveredCells, DistinctRows, InferredRows, PublishedRemoteColumn,
    RemoteAudit, RemoteBuckets, RemoteCheck, RemoteClasses, RemoteColumn, RemoteEngine, RemoteError, RemoteForm,
    RemoteMembers, RemotePart, RemoteSlices, RemoteTable, RemoteTablePlan, RowSample, WrittenRemotePart,
};
use guardian::microdata::AttributeType;
use guardian::privacy::ValueFrequency;
use guardian::publish::ranked::{BucketContent, encoded_cell};
use guardian::report::{PartFile, WritingEngine};
use parquet::arrow::ArrowWriter;
use sha2::{Digest, Sha256};

/// What the engine does wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum EngineFault {
    #[default]
    None,
    /// It cannot be reached.
    Unreachable,
    /// It is lost while it writes, once.
    LostOnce,
    /// It copies nothing.
    Failing,
    /// A row of a part is another one after the audit.
    ChangedAfterAudit,
    /// It waits before it copies a table, or before it writes a part.
    SlowCopy,
    SlowWriting,
    /// It waits so, until it has another fault or none.
    Waiting,
}

/// Waits if the engine has this fault.
fn wait_at(fault: &Mutex<EngineFault>, at: EngineFault) {
    let now = || fault.lock().unwrap_or_else(PoisonError::into_inner);
    if *now() == at {
        *now() = EngineFault::Waiting;
    }
    while *now() == EngineFault::Waiting {
        thread::sleep(Duration::from_millis(5));
    }
}

/// The engine. Tables are `NAME.csv` in its folder.
pub(crate) struct FileEngine {
    folder: PathBuf,
    fault: Arc<Mutex<EngineFault>>,
    /// Copies that are there.
    copies: Arc<AtomicUsize>,
}

impl FileEngine {
    pub(crate) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), fault: Arc::default(), copies: Arc::default() }
    }

    pub(crate) fn set(&self, fault: EngineFault) {
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = fault;
    }

    /// Does something while the engine waits, which then goes on.
    pub(crate) async fn meanwhile(&self, at: EngineFault, done: impl Future<Output = ()>) {
        self.set(at);
        while *self.fault.lock().unwrap_or_else(PoisonError::into_inner) != EngineFault::Waiting {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // also if a test ends there, which would else wait for the engine
        let _goes_on = GoesOn(self);
        done.await;
    }

    /// The copies that nothing has deleted yet.
    pub(crate) fn copies(&self) -> usize {
        self.copies.load(Ordering::SeqCst)
    }
}

/// Lets the engine go on.
struct GoesOn<'a>(&'a FileEngine);

impl Drop for GoesOn<'_> {
    fn drop(&mut self) {
        self.0.set(EngineFault::None);
    }
}

impl RemoteEngine for FileEngine {
    fn copy(&self, table: &str, _: &Control) -> Result<Box<dyn CopiedTable>, RemoteError> {
        wait_at(&self.fault, EngineFault::SlowCopy);
        match *self.fault.lock().unwrap_or_else(PoisonError::into_inner) {
            EngineFault::Unreachable => return Err(RemoteError::Unavailable("no route".to_owned())),
            EngineFault::Failing => return Err(RemoteError::Failed("a class of errors".to_owned())),
            _ => {}
        }
        let name = table.rsplit(['.', '/']).next().unwrap_or_default();
        let Ok(text) = fs::read_to_string(self.folder.join(format!("{name}.csv"))) else {
            return Err(RemoteError::Absent);
        };
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let names: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
        if names.iter().any(|name| name == "picture") {
            return Err(RemoteError::Unsupported("picture: name a view without it".to_owned()));
        }
        let rows: Vec<Vec<String>> =
            reader.records().map(|row| row.unwrap().iter().map(str::to_owned).collect()).collect();
        self.copies.fetch_add(1, Ordering::SeqCst);
        Ok(Box::new(FileCopy {
            table: CopiedRows::new(names, rows, Arc::clone(&self.fault)),
            engine: WritingEngine { engine: "files".to_owned(), version: "1".to_owned() },
            copies: Arc::clone(&self.copies),
        }))
    }
}

struct FileCopy {
    table: CopiedRows,
    engine: WritingEngine,
    copies: Arc<AtomicUsize>,
}

impl Drop for FileCopy {
    fn drop(&mut self) {
        self.copies.fetch_sub(1, Ordering::SeqCst);
    }
}

impl CopiedTable for FileCopy {
    fn files(&self) -> Result<Vec<File>, RemoteError> {
        // two files, as of two tasks
        let (table, half) = (&self.table, self.table.rows.len() / 2);
        let all: Vec<PartColumn> = (0..table.columns.len()).map(|at| table.own(at, &table.columns[at].name)).collect();
        let written = [&table.rows[..half], &table.rows[half..]].map(|rows| {
            let path = table.scratch.path().join(format!("copy-{}.parquet", rows.as_ptr().addr()));
            write_file(&path, &[], rows, &all);
            File::open(path).unwrap()
        });
        Ok(written.into())
    }

    fn engine(&self) -> &WritingEngine {
        &self.engine
    }

    fn counted(&mut self) -> Result<&mut dyn RemoteTable, RemoteError> {
        Ok(&mut self.table)
    }
}

/// A row among those of its value.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct RankedRow<'a> {
    number: u64,
    cells: Vec<&'a str>,
    copy: u64,
    /// Where it stands in the table.
    place: usize,
}

/// The rows of a copy.
struct CopiedRows {
    columns: Vec<RemoteColumn>,
    rows: Vec<Vec<String>>,
    scratch: tempfile::TempDir,
    fault: Arc<Mutex<EngineFault>>,
    /// The buckets of the rows of each table that was written.
    assigned: BTreeMap<String, Vec<(u64, u32)>>,
}

/// A column of a file.
pub(crate) struct PartColumn {
    pub(crate) place: usize,
    pub(crate) name: String,
    pub(crate) kind: AttributeType,
}

/// How many of some sets of rows have each content.
fn counted<K>(contents: BTreeMap<K, BTreeMap<u32, u64>>) -> BTreeMap<BucketContent, u64> {
    let mut counted = BTreeMap::new();
    contents.into_values().for_each(|of| *counted.entry(of.into_iter().collect()).or_default() += 1);
    counted
}

fn written(name: &str, files: Vec<PartFile>) -> WrittenRemotePart {
    WrittenRemotePart { name: name.to_owned(), files }
}

/// Writes columns of rows, after labels if there are any.
pub(crate) fn write_file(path: &Path, labels: &[u64], rows: &[Vec<String>], columns: &[PartColumn]) {
    let (mut fields, mut arrays): (Vec<Field>, Vec<ArrayRef>) = (Vec::new(), Vec::new());
    if !labels.is_empty() {
        fields.push(Field::new("bucket", DataType::Int32, true));
        arrays.push(Arc::new(labels.iter().map(|label| *label as i32).collect::<Int32Array>()));
    }
    for PartColumn { place, name, kind } in columns {
        let cells = rows.iter().map(|row| row[*place].as_str());
        let (kind, array): (DataType, ArrayRef) = match kind {
            AttributeType::Integer => {
                (DataType::Int64, Arc::new(cells.map(|cell| cell.parse::<i64>().unwrap()).collect::<Int64Array>()))
            }
            _ => (DataType::Utf8, Arc::new(cells.map(Some).collect::<StringArray>())),
        };
        fields.push(Field::new(name, kind, true));
        arrays.push(array);
    }
    let schema = Arc::new(Schema::new(fields));
    let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), schema.clone(), None).unwrap();
    writer.write(&RecordBatch::try_new(schema, arrays).unwrap()).unwrap();
    writer.close().unwrap();
}

impl CopiedRows {
    fn new(names: Vec<String>, rows: Vec<Vec<String>>, fault: Arc<Mutex<EngineFault>>) -> Self {
        let column = |(at, name): (usize, String)| {
            let is_number = rows.iter().all(|row| row[at].parse::<i64>().is_ok_and(|n| n.to_string() == row[at]));
            let mut counts: BTreeMap<&String, u64> = BTreeMap::new();
            rows.iter().for_each(|row| *counts.entry(&row[at]).or_default() += 1);
            let mut frequencies: BTreeMap<u64, u64> = BTreeMap::new();
            counts.values().for_each(|rows| *frequencies.entry(*rows).or_default() += 1);
            let frequencies = frequencies.into_iter().rev().map(|(rows, values)| ValueFrequency { rows, values });
            let kind = if is_number { AttributeType::Integer } else { AttributeType::Text };
            RemoteColumn { name, kind, missing: 0, frequencies: frequencies.collect() }
        };
        let columns = names.into_iter().enumerate().map(column).collect();
        Self { columns, rows, scratch: tempfile::tempdir().unwrap(), fault, assigned: BTreeMap::new() }
    }

    /// A column as it is.
    fn own(&self, place: usize, name: &str) -> PartColumn {
        PartColumn { place, name: name.to_owned(), kind: self.columns[place].kind }
    }

    /// Writes a part in two files: by label, or of tuples by their hash.
    fn write_part(
        &self,
        name: &str,
        labels: &[u64],
        mut rows: Vec<Vec<String>>,
        columns: &[PartColumn],
    ) -> Vec<PartFile> {
        let mut labelled: Vec<(u64, Vec<String>)> = match labels.is_empty() {
            true => rows.drain(..).map(|row| (0, row)).collect(),
            false => labels.iter().copied().zip(rows.drain(..)).collect(),
        };
        labelled.sort_by(|(a, one), (b, other)| {
            let compared =
                |of: &PartColumn| of.kind.compare(Some(one[of.place].as_bytes()), Some(other[of.place].as_bytes()));
            let cells = columns.iter().map(compared);
            a.cmp(b).then_with(|| cells.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then))
        });
        let most = labelled.last().map_or(0, |(label, _)| *label);
        let second = |(label, row): &(u64, Vec<String>)| match labels.is_empty() {
            true => columns.iter().map(|of| row[of.place].len()).sum::<usize>() % 2 == 1,
            false => *label > most / 2,
        };
        let (late, early): (Vec<_>, Vec<_>) = labelled.into_iter().partition(second);
        let write = |(number, rows): (usize, Vec<(u64, Vec<String>)>)| {
            let file = format!("{name}/{number:05}.parquet");
            let path = self.scratch.path().join(&file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let (mut of_rows, rows): (Vec<u64>, Vec<Vec<String>>) = rows.into_iter().unzip();
            of_rows.retain(|_| !labels.is_empty());
            write_file(&path, &of_rows, &rows, columns);
            let bytes = fs::read(&path).unwrap();
            let sha256 = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
            PartFile { file, rows: rows.len() as u64, bytes: bytes.len() as u64, sha256 }
        };
        [early, late].into_iter().filter(|rows| !rows.is_empty()).enumerate().map(write).collect()
    }

    /// The label of the bucket of each row: by the number of the row among equal ones, its keyed number, and its rank among the rows
    /// of its value.
    fn labels(&self, buckets: &RemoteBuckets) -> Vec<(u64, u32)> {
        let codes: BTreeMap<&str, u32> =
            buckets.sensitive.values.iter().zip(0..).map(|(value, code)| (value.as_deref().unwrap(), code)).collect();
        let mut copies: BTreeMap<Vec<&str>, u64> = BTreeMap::new();
        let mut ranked: BTreeMap<u32, Vec<RankedRow<'_>>> = BTreeMap::new();
        for (place, row) in self.rows.iter().enumerate() {
            let cells: Vec<&str> = buckets.ranking.iter().map(|&at| row[at].as_str()).collect();
            let copy = copies.entry(cells.clone()).or_default();
            *copy += 1;
            let encoded: String = cells.iter().map(|cell| encoded_cell(Some(*cell))).collect();
            let text = format!("{}{encoded}{}", buckets.key.digits(), encoded_cell(Some(&copy.to_string())));
            let first: [u8; 8] = Sha256::digest(text)[..8].try_into().unwrap();
            let value = codes[row[buckets.sensitive.column.column].as_str()];
            let number = u64::from_be_bytes(first) >> 4;
            ranked.entry(value).or_default().push(RankedRow { number, cells, copy: *copy, place });
        }
        let mut labels = vec![(0, 0); self.rows.len()];
        for (value, mut ranked) in ranked {
            ranked.sort();
            for (rank, RankedRow { place, .. }) in (0..).zip(ranked) {
                let is_its =
                    |of: &&guardian::publish::ranked::Segment| of.value == value && (of.first..of.end).contains(&rank);
                let of = buckets.plan.segments.iter().find(is_its).unwrap();
                let bucket = of.base + (of.position + rank - of.first) % of.buckets;
                labels[place] = (buckets.plan.labels.label(bucket), value);
            }
        }
        labels
    }

    /// The class or bucket of each row.
    fn sets(&self, table: &RemoteTablePlan, members: &RemoteMembers) -> Vec<u32> {
        let text = |value: Option<&[u8]>| String::from_utf8(value.unwrap().to_vec()).unwrap();
        let sets: BTreeMap<Vec<String>, u32> =
            members.iter().map(|(set, values)| (values.into_iter().map(text).collect(), set)).collect();
        let known = |row: &Vec<String>| -> Vec<String> {
            members.places.iter().map(|&at| row[table.known[at].column].clone()).collect()
        };
        self.rows.iter().map(|row| sets[&known(row)]).collect()
    }

    /// Writes the parts of a sliced table.
    fn write_slices(&self, table: &RemoteTablePlan, slices: &RemoteSlices) -> Vec<WrittenRemotePart> {
        let labels: Vec<u64> = self.sets(table, &slices.members).into_iter().map(u64::from).collect();
        let part = |RemotePart { name, columns }: RemotePart| {
            let columns: Vec<PartColumn> = columns.iter().map(|of| self.own(of.column, &of.name)).collect();
            written(&name, self.write_part(&format!("{}.{name}", table.name), &labels, self.rows.clone(), &columns))
        };
        table.parts().into_iter().map(part).collect()
    }

    /// What the buckets of a sliced table hold, and their sizes.
    fn count_slices(&self, table: &RemoteTablePlan, slices: &RemoteSlices, audit: &mut RemoteAudit) {
        let RemoteSlices { parts, members, sensitive, .. } = slices;
        let protected = sensitive.column.column;
        let last = parts.last().unwrap().iter().map(|&at| table.known[at].column);
        let others: Vec<usize> = last.filter(|place| *place != protected).collect();
        let mut contents: BTreeMap<(u32, Vec<&str>), BTreeMap<u32, u64>> = BTreeMap::new();
        let mut sizes: BTreeMap<u32, u64> = BTreeMap::new();
        for (row, label) in self.rows.iter().zip(self.sets(table, members)) {
            let code = sensitive.values.iter().position(|value| value.as_ref() == Some(&row[protected])).unwrap();
            let agreeing = others.iter().map(|&at| row[at].as_str()).collect();
            *contents.entry((label, agreeing)).or_default().entry(code as u32).or_default() += 1;
            *sizes.entry(label).or_default() += 1;
        }
        audit.contents.push(counted(contents));
        sizes.into_values().for_each(|rows| *audit.sizes.entry(rows).or_default() += 1);
    }

    /// Writes the part of a generalized table.
    fn write_classes(&self, table: &RemoteTablePlan, classes: &RemoteClasses) -> Vec<PartFile> {
        let mut rows = self.rows.clone();
        for (row, class) in rows.iter_mut().zip(self.sets(table, &classes.members)) {
            for (&at, cell) in classes.generalized().iter().zip(classes.cells(class)) {
                row[table.known[at].column] = String::from_utf8(cell.unwrap().to_vec()).unwrap();
            }
        }
        let column = |(at, of): (usize, &PublishedRemoteColumn)| match classes.generalized().contains(&at) {
            true => PartColumn { place: of.column, name: of.name.clone(), kind: AttributeType::Text },
            false => self.own(of.column, &of.name),
        };
        let columns: Vec<PartColumn> = table.known.iter().enumerate().map(column).collect();
        self.write_part(&format!("{}.rows", table.name), &[], rows, &columns)
    }

    /// What the classes hold, and what stands behind their cells.
    fn count_classes(&self, table: &RemoteTablePlan, classes: &RemoteClasses, audit: &mut RemoteAudit) {
        let mut contents: Vec<BTreeMap<u32, BTreeMap<u32, u64>>> =
            vec![BTreeMap::new(); classes.sensitive.len().max(1)];
        let mut covered = CoveredCells::new(classes.generalized().len());
        for (row, class) in self.rows.iter().zip(self.sets(table, &classes.members)) {
            for (at, contents) in contents.iter_mut().enumerate() {
                let code = classes.sensitive.get(at).map_or(0, |of| {
                    of.values.iter().position(|value| value.as_ref() == Some(&row[of.column.column])).unwrap() as u32
                });
                *contents.entry(class).or_default().entry(code).or_default() += 1;
            }
            for (place, (&at, cell)) in classes.generalized().iter().zip(classes.cells(class)).enumerate() {
                covered.push(place, class, Some(row[table.known[at].column].as_bytes()), cell).unwrap();
            }
        }
        audit.contents.extend(contents.into_iter().map(counted));
        audit.covered = covered;
    }

    fn groups<'a>(&'a self, columns: &[usize], of: usize) -> BTreeMap<Vec<&'a str>, BTreeMap<&'a str, u64>> {
        let mut groups: BTreeMap<Vec<&str>, BTreeMap<&str, u64>> = BTreeMap::new();
        for row in &self.rows {
            let group = columns.iter().map(|&at| row[at].as_str()).collect();
            *groups.entry(group).or_default().entry(row[of].as_str()).or_default() += 1;
        }
        groups
    }

    /// Whether the engine has this fault; it then is gone, if it comes once.
    fn takes(&self, fault: EngineFault) -> bool {
        let mut now = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        let has = *now == fault;
        if has && fault == EngineFault::LostOnce {
            *now = EngineFault::None;
        }
        has
    }
}

impl RemoteTable for CopiedRows {
    fn rows(&self) -> u64 {
        self.rows.len() as u64
    }

    fn columns(&self) -> &[RemoteColumn] {
        &self.columns
    }

    fn values(&mut self, column: usize, most: u64) -> Result<Vec<CountedValue>, RemoteError> {
        let counts = self.groups(&[], column).remove(&Vec::new()).unwrap_or_default();
        if counts.len() as u64 > most {
            return Err(RemoteError::Unsupported("too many values".to_owned()));
        }
        let mut values: Vec<CountedValue> =
            counts.into_iter().map(|(value, rows)| (Some(value.to_owned()), rows)).collect();
        let kind = self.columns[column].kind;
        let bytes = |of: &CountedValue| of.0.as_ref().map(|value| value.as_bytes().to_vec());
        values.sort_by(|one, other| kind.compare(bytes(one).as_deref(), bytes(other).as_deref()));
        Ok(values)
    }

    fn encoded_cell(&self, _: usize, value: Option<&str>) -> String {
        encoded_cell(value)
    }

    fn determined(&mut self, determinant: &[usize], dependents: &[usize]) -> Result<Vec<CountedGroups>, RemoteError> {
        let counted = |&dependent: &usize| {
            let groups = self.groups(determinant, dependent);
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
        let groups = self.groups(columns, 0);
        if groups.len() as u64 > most {
            return Err(RemoteError::Unsupported("too many distinct rows".to_owned()));
        }
        let mut found = DistinctRows::default();
        for (row, rows) in &groups {
            found.push(rows.values().sum(), row.iter().map(|cell| Some(cell.as_bytes())));
        }
        Ok(found)
    }

    fn unique(&mut self, columns: &[usize]) -> Result<u64, RemoteError> {
        let groups = self.groups(columns, 0);
        Ok(groups.values().filter(|of| of.values().sum::<u64>() == 1).count() as u64)
    }

    fn inferred(&mut self, known: &[usize], column: usize) -> Result<InferredRows, RemoteError> {
        let mut inferred = InferredRows::default();
        for values in self.groups(known, column).values() {
            let (most, rows) = (values.values().max().copied().unwrap_or(0), values.values().sum::<u64>());
            inferred.fixed += if most == rows { rows } else { 0 };
            inferred.likely += if most * 2 > rows { rows } else { 0 };
        }
        Ok(inferred)
    }

    fn write(&mut self, table: &RemoteTablePlan) -> Result<Vec<WrittenRemotePart>, RemoteError> {
        wait_at(&self.fault, EngineFault::SlowWriting);
        if self.takes(EngineFault::LostOnce) {
            return Err(RemoteError::Unavailable("an executor is gone".to_owned()));
        }
        let columns: Vec<PartColumn> = table.known.iter().map(|of| self.own(of.column, &of.name)).collect();
        let name = |part: &str| format!("{}.{part}", table.name);
        let buckets = match &table.form {
            RemoteForm::Bucketized(buckets) => buckets,
            RemoteForm::Generalized(classes) => {
                return Ok(vec![written("rows", self.write_classes(table, classes))]);
            }
            RemoteForm::Sliced(slices) => return Ok(self.write_slices(table, slices)),
            RemoteForm::Plain => {
                return Ok(vec![written("rows", self.write_part(&name("rows"), &[], self.rows.clone(), &columns))]);
            }
        };
        let assigned = self.labels(buckets);
        let labels: Vec<u64> = assigned.iter().map(|(label, _)| *label).collect();
        let sensitive = [self.own(buckets.sensitive.column.column, &buckets.sensitive.column.name)];
        let known = self.write_part(&name("qi"), &labels, self.rows.clone(), &columns);
        let sensitive = self.write_part(&name("sa"), &labels, self.rows.clone(), &sensitive);
        self.assigned.insert(table.name.clone(), assigned);
        Ok(vec![written("qi", known), written("sa", sensitive)])
    }

    fn audit(&mut self, table: &RemoteTablePlan) -> Result<RemoteAudit, RemoteError> {
        use RemoteCheck::{Buckets, Columns, Content, Linkage, Order, Place};
        let mut audit = RemoteAudit::default();
        audit.broken.extend([Content, Buckets, Linkage, Place, Columns, Order].map(|check| (check, 0)));
        if let Some(assigned) = self.assigned.get(&table.name) {
            let mut contents: BTreeMap<u64, BTreeMap<u32, u64>> = BTreeMap::new();
            for (label, value) in assigned {
                *contents.entry(*label).or_default().entry(*value).or_default() += 1;
            }
            audit.contents.push(counted(contents));
        }
        if let Some(classes) = table.classes() {
            self.count_classes(table, classes, &mut audit);
        }
        if let Some(slices) = table.slices() {
            self.count_slices(table, slices, &mut audit);
        }
        if self.takes(EngineFault::ChangedAfterAudit) {
            let path = self.scratch.path().join(format!("{}.qi/00000.parquet", table.name));
            let columns: Vec<PartColumn> = table.known.iter().map(|of| self.own(of.column, &of.name)).collect();
            write_file(&path, &[1], &self.rows[..1], &columns);
        }
        Ok(audit)
    }

    fn files_of(&self, part: &WrittenRemotePart) -> Result<Vec<File>, RemoteError> {
        Ok(part.files.iter().map(|of| File::open(self.scratch.path().join(&of.file)).unwrap()).collect())
    }

    fn clear(&mut self) -> Result<(), RemoteError> {
        Ok(())
    }
}
