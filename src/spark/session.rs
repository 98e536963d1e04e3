//! What a session of the engine does: queries, views, and Parquet files.

use super::kinds::SqlKind;
use super::relation::SqlValue;
use crate::engine::RemoteError;

/// A session of the engine.
pub trait SqlSession {
    /// The names and types of the columns of a query; no type where the engine has one that is not offered.
    ///
    /// # Errors
    /// [`RemoteError`], without the engine's message, which can quote values.
    fn schema(&mut self, sql: &str) -> Result<Vec<(String, Option<SqlKind>)>, RemoteError>;

    /// The rows of a query whose columns are integers and texts.
    ///
    /// # Errors
    /// As [`Self::schema`].
    fn query(&mut self, sql: &str) -> Result<Vec<Vec<SqlValue>>, RemoteError>;

    /// Gives a query a name in this session.
    ///
    /// # Errors
    /// As [`Self::schema`].
    fn view(&mut self, name: &str, sql: &str) -> Result<(), RemoteError>;

    /// Writes a query to a folder that does not exist, as Parquet; with `by_file` into a folder for each value of
    /// the column of files.
    ///
    /// # Errors
    /// As [`Self::schema`].
    fn write(&mut self, sql: &str, folder: &str, by_file: bool) -> Result<(), RemoteError>;

    /// The version of the engine.
    ///
    /// # Errors
    /// As [`Self::schema`].
    fn version(&mut self) -> Result<String, RemoteError>;
}
