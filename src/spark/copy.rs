//! A copy of a table in the scratch folder, which stays as it is while the table changes.

use std::fs::File;
use std::path::PathBuf;

use super::files::{SharedFolders, parquet_files};
use super::kinds::SqlKind;
use super::session::SqlSession;
use super::source::SparkSource;
use super::statements;
use super::table::{SparkTable, columns_of};
use crate::engine::{CopiedTable, RemoteError, RemoteTable};
use crate::report::WritingEngine;

/// The folder of the copy.
const COPY: &str = "copy";

/// A copy, with the session that releases are made from it in.
pub struct SparkCopy<S> {
    table: SparkTable<S>,
    /// The columns, until they are counted.
    uncounted: Option<Vec<(String, SqlKind)>>,
    folder: PathBuf,
    engine: WritingEngine,
}

impl<S: SqlSession> SparkCopy<S> {
    /// Copies a table. What the source says of its columns stays behind.
    ///
    /// # Errors
    /// [`RemoteError`]
    pub fn begin(mut session: S, source: &SparkSource, folders: SharedFolders) -> Result<Self, RemoteError> {
        let columns = columns_of(&mut session, source)?;
        let folder = folders.staged(COPY);
        session.write(&statements::copy(&columns, source.sql()), &folder, false)?;
        let engine = WritingEngine { engine: "spark".to_owned(), version: session.version()? };
        let copied = SparkSource::of_folder(&folder);
        let table = SparkTable::uncounted(session, &columns, &copied, folders)?;
        Ok(Self { table, uncounted: Some(columns), folder: folder.into(), engine })
    }
}

impl<S: SqlSession> CopiedTable for SparkCopy<S> {
    fn files(&self) -> Result<Vec<File>, RemoteError> {
        parquet_files(&self.folder).map_err(|error| RemoteError::Failed(format!("the copy of the table: {error}")))
    }

    fn engine(&self) -> &WritingEngine {
        &self.engine
    }

    fn counted(&mut self) -> Result<&mut dyn RemoteTable, RemoteError> {
        if let Some(columns) = self.uncounted.take() {
            self.table.count(columns)?;
        }
        Ok(&mut self.table)
    }
}
