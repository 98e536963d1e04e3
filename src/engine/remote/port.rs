//! What a release asks of the engine that has the rows.

use std::collections::BTreeMap;
use std::fs::File;

use super::classes::{CoveredCells, RemoteClasses};
use super::distinct_rows::DistinctRows;
use super::published::{ProtectedRemoteColumn, PublishedRemoteColumn};
use super::sample::RowSample;
use super::slices::RemoteSlices;
use crate::control::Control;
use crate::microdata::AttributeType;
pub use crate::model::InferredRows;
use crate::privacy::ValueFrequency;
use crate::publish::ranked::{BucketContent, RankedPlan, UseKey};
use crate::report::{PartFile, WritingEngine};

/// A column of a table in another engine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RemoteColumn {
    /// Its name.
    pub name: String,
    /// The type of its values.
    pub kind: AttributeType,
    /// The rows without a value.
    pub missing: u64,
    /// How many values occur how often, most frequent first; a missing one counts as a value.
    pub frequencies: Vec<ValueFrequency>,
}

/// A value with its rows.
pub type CountedValue = (Option<String>, u64);

/// How often the values of one column follow from others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CountedGroups {
    /// The distinct values of the determining columns.
    pub groups: u64,
    /// The rows without the most frequent value of their group.
    pub errors: u64,
}

/// A table to write.
pub struct RemoteTablePlan {
    /// `t1`, `t2`, ...
    pub name: String,
    /// The columns in their order, with their published names; the sensitive one of a bucketized table is left out.
    pub known: Vec<PublishedRemoteColumn>,
    /// How its rows are published.
    pub form: RemoteForm,
}

/// How the rows of a table are published.
pub enum RemoteForm {
    /// As they are.
    Plain,
    /// In a part of known attributes and a sensitive one that buckets link.
    Bucketized(RemoteBuckets),
    /// In classes that show the same cells.
    Generalized(RemoteClasses),
    /// In parts that buckets link.
    Sliced(RemoteSlices),
}

impl RemoteTablePlan {
    /// The buckets, if it has some.
    #[must_use]
    pub const fn buckets(&self) -> Option<&RemoteBuckets> {
        match &self.form {
            RemoteForm::Bucketized(buckets) => Some(buckets),
            RemoteForm::Plain | RemoteForm::Generalized(_) | RemoteForm::Sliced(_) => None,
        }
    }

    /// Its parts, in their order.
    #[must_use]
    pub fn parts(&self) -> Vec<RemotePart> {
        let part = |name: &str, columns| RemotePart { name: name.to_owned(), columns };
        match &self.form {
            RemoteForm::Plain | RemoteForm::Generalized(_) => vec![part("rows", self.known.clone())],
            RemoteForm::Bucketized(buckets) => {
                vec![part("qi", self.known.clone()), part("sa", vec![buckets.sensitive.column.clone()])]
            }
            RemoteForm::Sliced(slices) => {
                let columns = |places: &Vec<usize>| places.iter().map(|&at| self.known[at].clone()).collect();
                let parts = slices.parts.iter().map(columns).zip(1..);
                parts.map(|(columns, number)| part(&format!("c{number}"), columns)).collect()
            }
        }
    }

    /// The buckets of a sliced table, if it is one.
    #[must_use]
    pub const fn slices(&self) -> Option<&RemoteSlices> {
        match &self.form {
            RemoteForm::Sliced(slices) => Some(slices),
            RemoteForm::Plain | RemoteForm::Bucketized(_) | RemoteForm::Generalized(_) => None,
        }
    }

    /// The classes, if it has some.
    #[must_use]
    pub const fn classes(&self) -> Option<&RemoteClasses> {
        match &self.form {
            RemoteForm::Generalized(classes) => Some(classes),
            RemoteForm::Plain | RemoteForm::Bucketized(_) | RemoteForm::Sliced(_) => None,
        }
    }
}

/// A part to write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RemotePart {
    /// `qi`, `sa`, `rows`, or `c1`, `c2`, ... of a sliced table.
    pub name: String,
    /// Its columns, in their order.
    pub columns: Vec<PublishedRemoteColumn>,
}

/// The buckets of a table.
pub struct RemoteBuckets {
    /// The sensitive column. The codes of the plan are positions among its values.
    pub sensitive: ProtectedRemoteColumn,
    /// Where the rows of each value go.
    pub plan: RankedPlan,
    /// The key of the ranks.
    pub key: UseKey,
    /// The positions of the columns that rank rows, rising: those of the table, or more.
    pub ranking: Vec<usize>,
}

/// A part that was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WrittenRemotePart {
    /// Its name, as [`RemotePart`] has it.
    pub name: String,
    /// Its files, in the order in which they are read.
    pub files: Vec<PartFile>,
}

/// A check of the written files, by statements that know neither plan nor key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum RemoteCheck {
    /// Each part holds the rows of the source, no more and no fewer.
    Content,
    /// The parts of a table have the same buckets, labelled from 1 on. Each class of the assignment shows other cells.
    Buckets,
    /// The parts belong together: by the assignment, which holds the rows of the source, each row is in the bucket that both say.
    Linkage,
    /// No bucket is in two files, and each part has just its files.
    Place,
    /// Files hold the columns of their part, and nothing that the source says of them.
    Columns,
    /// Rows stand in canonical order.
    Order,
}

/// What an audit found in the written files of a table.
#[derive(Default)]
pub struct RemoteAudit {
    /// How much broke each check; all are listed.
    pub broken: BTreeMap<RemoteCheck, u64>,
    /// How many buckets of the sensitive part, or classes of the part, have each content, for each protected column; none of a plain
    /// table. Of a sliced table the rows of a bucket are counted by themselves that agree in the other columns of the last part. Where
    /// classes only have to be large, their rows count as rows of one value.
    pub contents: Vec<BTreeMap<BucketContent, u64>>,
    /// How many buckets of a sliced table have how many rows; none of other tables.
    pub sizes: BTreeMap<u64, u64>,
    /// What stands behind the cells of a generalized table, by the assignment.
    pub covered: CoveredCells,
}

/// The reason why another engine has no answer. It names no value of the data.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RemoteError {
    /// The caller cancelled the release.
    #[error("cancelled")]
    Cancelled,
    /// The engine has no such table.
    #[error("the engine has no such table")]
    Absent,
    /// The engine cannot be reached, or was lost.
    #[error("the engine cannot be reached: {0}")]
    Unavailable(String),
    /// The engine refused a statement; the class of its error.
    #[error("the engine failed: {0}")]
    Failed(String),
    /// The table cannot be published so; a sentence that says why and what to do.
    #[error("{0}")]
    Unsupported(String),
}

/// An engine that has tables.
pub trait RemoteEngine: Send + Sync {
    /// Copies a table to files that stay as they are, and reads the schema of the copy.
    ///
    /// # Errors
    /// [`RemoteError`]
    fn copy(&self, table: &str, control: &Control) -> Result<Box<dyn CopiedTable>, RemoteError>;
}

/// A copy of a table. Nothing is left of it once it is dropped.
pub trait CopiedTable {
    /// Its Parquet files.
    ///
    /// # Errors
    /// [`RemoteError`]
    fn files(&self) -> Result<Vec<File>, RemoteError>;

    /// The engine.
    fn engine(&self) -> &WritingEngine;

    /// Counts its columns: what a release is planned from.
    ///
    /// # Errors
    /// [`RemoteError`]
    fn counted(&mut self) -> Result<&mut dyn RemoteTable, RemoteError>;
}

/// A table whose rows stay in another engine.
pub trait RemoteTable {
    /// The number of rows.
    fn rows(&self) -> u64;

    /// The columns.
    fn columns(&self) -> &[RemoteColumn];

    /// The values of a column in canonical order, with their rows.
    ///
    /// # Errors
    /// [`RemoteError`], also where there are more than `most`.
    fn values(&mut self, column: usize, most: u64) -> Result<Vec<CountedValue>, RemoteError>;

    /// A value of a column as statements encode it for ranks: `-` for a missing one, else the number of bytes of its text there, a
    /// colon and the text.
    fn encoded_cell(&self, column: usize, value: Option<&str>) -> String;

    /// How often each of `dependents` follows from the columns `determinant`, in all rows.
    ///
    /// # Errors
    /// [`RemoteError`]
    fn determined(&mut self, determinant: &[usize], dependents: &[usize]) -> Result<Vec<CountedGroups>, RemoteError>;

    /// Some rows, the same whatever the order of all: about 65,536, or all of a smaller table.
    ///
    /// # Errors
    /// [`RemoteError`]
    fn sample(&mut self) -> Result<RowSample, RemoteError>;

    /// The distinct rows of some columns, in any order.
    ///
    /// # Errors
    /// [`RemoteError`], also where there are more than `most`.
    fn distinct_rows(&mut self, columns: &[usize], most: u64) -> Result<DistinctRows, RemoteError>;

    /// The rows that no other row equals in these columns.
    ///
    /// # Errors
    /// [`RemoteError`]
    fn unique(&mut self, columns: &[usize]) -> Result<u64, RemoteError>;

    /// The rows whose value of a column follows from the columns `known`.
    ///
    /// # Errors
    /// [`RemoteError`]
    fn inferred(&mut self, known: &[usize], column: usize) -> Result<InferredRows, RemoteError>;

    /// Writes the parts of a table.
    ///
    /// # Errors
    /// [`RemoteError`]
    fn write(&mut self, table: &RemoteTablePlan) -> Result<Vec<WrittenRemotePart>, RemoteError>;

    /// Audits the parts of a table as they were written.
    ///
    /// # Errors
    /// [`RemoteError`]
    fn audit(&mut self, table: &RemoteTablePlan) -> Result<RemoteAudit, RemoteError>;

    /// The files of a part as it was written, in the order in which they are read.
    ///
    /// # Errors
    /// [`RemoteError`]
    fn files_of(&self, part: &WrittenRemotePart) -> Result<Vec<File>, RemoteError>;

    /// Deletes what must not outlive the release, and makes sure that it is gone: a row's bucket is a secret.
    ///
    /// # Errors
    /// [`RemoteError`] where something is left.
    fn clear(&mut self) -> Result<(), RemoteError>;
}
