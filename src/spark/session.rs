//! What a session of the engine does: queries, views, relations, and Parquet files.

use crate::engine::RemoteError;
use crate::microdata::AttributeType;

/// A value that travels to the engine or from it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SqlValue {
    /// No value.
    Null,
    /// A whole number of 64 bits.
    Integer(i64),
    /// A text.
    Text(String),
}

/// The type of a column of a relation that is sent to the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SqlKind {
    /// `bigint`
    Integer,
    /// `string`
    Text,
    /// `date`, sent as its text
    Date,
    /// `boolean`, sent as its text
    Boolean,
}

impl From<AttributeType> for SqlKind {
    fn from(kind: AttributeType) -> Self {
        match kind {
            AttributeType::Integer => Self::Integer,
            AttributeType::Date => Self::Date,
            AttributeType::Boolean => Self::Boolean,
            _ => Self::Text,
        }
    }
}

/// A session of the engine.
pub trait SqlSession {
    /// The names and types of the columns of a query; no type where the engine has one that is not offered.
    ///
    /// # Errors
    /// [`RemoteError`], without the engine's message, which can quote values.
    fn schema(&mut self, sql: &str) -> Result<Vec<(String, Option<AttributeType>)>, RemoteError>;

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

    /// Sends rows under a name, as data of the request.
    ///
    /// # Errors
    /// As [`Self::schema`].
    fn relation(
        &mut self,
        name: &str,
        columns: &[(&str, SqlKind)],
        rows: Vec<Vec<SqlValue>>,
    ) -> Result<(), RemoteError>;

    /// Writes a query to a folder that does not exist, as Parquet; with `by_file` into a folder `p=N` for each value of its column `p`.
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
