//! The writing of a table: what the engine is sent for it, and its parts.

use std::collections::BTreeMap;
use std::path::Path;

use super::kinds::SqlKind;
use super::relation::{self, SqlValue};
use super::session::SqlSession;
use super::source::parquet;
use super::statements::{self, BucketStatements, ClassStatements, SliceStatements, list};
use super::table::{SparkTable, unexpected};
use super::written;
use crate::engine::{
    ProtectedRemoteColumn, RemoteBuckets, RemoteClasses, RemoteError, RemoteForm, RemoteMembers, RemotePart,
    RemoteSlices, RemoteTablePlan, WrittenRemotePart,
};
use crate::publish::ranked::encoded_cell;

/// The rows of one piece of a segment: one task makes them.
const PIECE: u64 = 1 << 20;

impl<S: SqlSession> SparkTable<S> {
    /// Writes the parts of a table.
    pub(super) fn write_parts(&mut self, table: &RemoteTablePlan) -> Result<Vec<WrittenRemotePart>, RemoteError> {
        match &table.form {
            RemoteForm::Bucketized(buckets) => self.write_buckets(table, buckets),
            RemoteForm::Generalized(classes) => self.write_classes(table, classes),
            RemoteForm::Sliced(slices) => self.write_slices(table, slices),
            RemoteForm::Plain => self.write_plain(table),
        }
    }

    /// Gives the engine rows under a name, through the scratch folder.
    fn send(
        &mut self,
        name: &str,
        columns: &[(&str, SqlKind)],
        rows: impl IntoIterator<Item = Vec<SqlValue>>,
    ) -> Result<(), RemoteError> {
        let folder = self.folders.staged(name);
        let failed = |error: std::io::Error| RemoteError::Failed(format!("the scratch folder: {error}"));
        relation::write(Path::new(&folder), columns, rows).map_err(failed)?;
        self.session.view(name, &format!("select * from {}", parquet(&folder)))
    }

    /// Sends segments, pieces and offsets of a table.
    fn send_plan(
        &mut self,
        table: &str,
        buckets: &RemoteBuckets,
        counts: Vec<Vec<SqlValue>>,
    ) -> Result<(), RemoteError> {
        let labels = buckets.plan.labels;
        let whole = |number: u64| SqlValue::Integer(number as i64);
        let ProtectedRemoteColumn { column, values } = &buckets.sensitive;
        let kind = self.kinds[column.column];
        let texts: Vec<String> = values.iter().map(|value| engine_cell(kind, value.as_deref())).collect();
        let map = [labels.factor, labels.shift, labels.buckets].map(whole);
        let (mut segments, mut pieces) = (Vec::new(), Vec::new());
        for of in &buckets.plan.segments {
            let value = of.value as usize;
            let places = [of.position, of.base, of.buckets].map(whole);
            let row = [SqlValue::Text(texts[value].clone()), whole(of.first), whole(of.end)];
            segments.push([row.as_slice(), &places, &map].concat());
            let shown = values[value].clone().map_or(SqlValue::Null, SqlValue::Text);
            for first in (of.first..of.end).step_by(PIECE as usize) {
                let end = of.end.min(first + PIECE);
                let row = [shown.clone(), whole(first - of.first), whole(end - of.first)];
                pieces.push([row.as_slice(), &places, &map].concat());
            }
        }
        let numbers = ["lo", "hi", "pos", "base", "nb", "a", "b", "total"].map(|name| (name, SqlKind::Integer));
        let columns = |first: (&'static str, SqlKind)| std::iter::once(first).chain(numbers).collect::<Vec<_>>();
        self.send(&format!("segment_{table}"), &columns(("v", SqlKind::Text)), segments)?;
        self.send(&format!("piece_{table}"), &columns(("s", kind)), pieces)?;
        let offsets = offsets(counts)?;
        let columns = [("v", SqlKind::Text), ("j", SqlKind::Integer), ("skip", SqlKind::Integer)];
        self.send(&format!("offset_{table}"), &columns, offsets)
    }

    fn write_buckets(
        &mut self,
        table: &RemoteTablePlan,
        buckets: &RemoteBuckets,
    ) -> Result<Vec<WrittenRemotePart>, RemoteError> {
        let name = table.name.as_str();
        let key = vec![vec![SqlValue::Text(buckets.key.digits().to_owned())]];
        self.send(&format!("key_{name}"), &[("k", SqlKind::Text)], key)?;
        let used = self.used.clone();
        let made = BucketStatements { table: name, columns: &used, rows: self.rows, buckets };
        let keyed = self.folders.staged(&format!("{name}.k"));
        self.session.write(&made.keyed(), &keyed, false)?;
        self.session.view(&format!("keyed_{name}"), &format!("select * from {}", parquet(&keyed)))?;
        let counts = self.session.query(&made.counted())?;
        self.send_plan(name, buckets, counts)?;
        let assigned = self.folders.staged(&format!("{name}.w"));
        self.session.write(&made.assigned(), &assigned, false)?;
        let known = self.write_part(table, "qi", &made.known_part(&table.known, &assigned))?;
        Ok(vec![known, self.write_part(table, "sa", &made.sensitive_part())?])
    }

    fn write_classes(
        &mut self,
        table: &RemoteTablePlan,
        classes: &RemoteClasses,
    ) -> Result<Vec<WrittenRemotePart>, RemoteError> {
        let (name, generalized) = (table.name.as_str(), classes.generalized());
        let shared: Vec<String> = (0..generalized.len()).map(ClassStatements::shared).collect();
        let of_shared = shared.iter().map(|name| (name.as_str(), SqlKind::Text));
        let columns: Vec<(&str, SqlKind)> =
            [("k", SqlKind::Text), ("class", SqlKind::Integer)].into_iter().chain(of_shared).collect();
        let keys = self.keys(table, &classes.members);
        let rows = keys.map(|(class, key)| {
            let shown = classes.cells(class).into_iter().map(|cell| text(cell).map_or(SqlValue::Null, SqlValue::Text));
            [SqlValue::Text(key), SqlValue::Integer(class.into())].into_iter().chain(shown).collect()
        });
        self.send(&format!("member_{name}"), &columns, rows)?;
        let used = self.used.clone();
        let made = ClassStatements { table: name, columns: &used, known: &table.known, generalized };
        let assigned = self.folders.staged(&format!("{name}.w"));
        self.session.write(&made.classed(classes.members.len()), &assigned, false)?;
        Ok(vec![self.write_part(table, "rows", &made.part(self.rows, &assigned))?])
    }

    fn write_slices(
        &mut self,
        table: &RemoteTablePlan,
        slices: &RemoteSlices,
    ) -> Result<Vec<WrittenRemotePart>, RemoteError> {
        let name = table.name.as_str();
        let columns = [("k", SqlKind::Text), ("bucket", SqlKind::Integer)];
        let rows = self.keys(table, &slices.members);
        let rows = rows.map(|(label, key)| vec![SqlValue::Text(key), SqlValue::Integer(label.into())]);
        self.send(&format!("member_{name}"), &columns, rows)?;
        let used = self.used.clone();
        let RemoteSlices { members, buckets, .. } = slices;
        let (members, number, buckets) = (&members.places, members.len(), *buckets);
        let made = SliceStatements { table: name, columns: &used, known: &table.known, members, buckets };
        let assigned = self.folders.staged(&format!("{name}.w"));
        self.session.write(&made.assigned(number), &assigned, false)?;
        let written = |part: RemotePart| {
            let sql = made.part(&part.columns, self.rows, &assigned);
            self.write_part(table, &part.name, &sql)
        };
        table.parts().into_iter().map(written).collect()
    }

    fn write_plain(&mut self, table: &RemoteTablePlan) -> Result<Vec<WrittenRemotePart>, RemoteError> {
        let staged = self.folders.staged(&format!("{}.rows", table.name));
        // what the source says of its columns stays behind
        self.session.write(&format!("select {} from src", list("", &self.used)), &staged, false)?;
        let sql = statements::plain_part(&table.known, self.rows, &staged);
        Ok(vec![self.write_part(table, "rows", &sql)?])
    }

    /// Writes a part, and gives its files the names of their places.
    fn write_part(&mut self, table: &RemoteTablePlan, part: &str, sql: &str) -> Result<WrittenRemotePart, RemoteError> {
        let name = part_name(table, part);
        self.session.write(sql, &self.folders.part(&name), true)?;
        let failed = |error: std::io::Error| RemoteError::Failed(format!("files of {name}: {error}"));
        let mut files = self.folders.settle(&name).map_err(failed)?;
        for file in &mut files {
            file.rows = written::rows(&self.folders.path(&file.file)).map_err(failed)?;
        }
        Ok(WrittenRemotePart { name: part.to_owned(), files })
    }

    /// The encoded columns that say the set of a row, and the number of the set.
    fn keys<'m>(
        &self,
        table: &RemoteTablePlan,
        members: &'m RemoteMembers,
    ) -> impl Iterator<Item = (u32, String)> + use<'m, S> {
        let kinds: Vec<SqlKind> = members.places.iter().map(|&at| self.kinds[table.known[at].column]).collect();
        members.iter().map(move |(set, values)| {
            let cell = |(kind, value): (&SqlKind, Option<&[u8]>)| engine_cell(*kind, text(value).as_deref());
            (set, kinds.iter().zip(values).map(cell).collect())
        })
    }
}

/// The folder of a part of a table.
pub(super) fn part_name(table: &RemoteTablePlan, part: &str) -> String {
    format!("{}.{part}", table.name)
}

fn text(bytes: Option<&[u8]>) -> Option<String> {
    bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned())
}

/// The rows of earlier slices of each value, from the rows of each value and slice.
fn offsets(counts: Vec<Vec<SqlValue>>) -> Result<Vec<Vec<SqlValue>>, RemoteError> {
    let mut by_value: BTreeMap<String, BTreeMap<i64, i64>> = BTreeMap::new();
    for row in counts {
        let [SqlValue::Text(value), SqlValue::Integer(slice), SqlValue::Integer(rows)] = &row[..] else {
            return Err(unexpected());
        };
        by_value.entry(value.clone()).or_default().insert(*slice, *rows);
    }
    let mut offsets = Vec::new();
    for (value, slices) in by_value {
        let mut before = 0;
        for (slice, rows) in slices {
            offsets.push(vec![SqlValue::Text(value.clone()), SqlValue::Integer(slice), SqlValue::Integer(before)]);
            before += rows;
        }
    }
    Ok(offsets)
}

/// The encoding of a value as statements make it.
pub(super) fn engine_cell(kind: SqlKind, value: Option<&str>) -> String {
    encoded_cell(value.map(|value| kind.of_engine(value)).as_deref())
}
