//! The table that is published: a name in a catalog, or a folder of Parquet files.

/// A table of the engine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SparkSource(String);

/// The reason why a text names no table.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{0:?} names no table: write NAME, DATABASE.NAME or CATALOG.DATABASE.NAME, or the path of a folder of Parquet files"
)]
pub struct SparkSourceError(String);

/// The longest name of a table.
const MAX_LENGTH: usize = 1024;

impl SparkSource {
    /// Reads a name of one to three identifiers, or a path, which has a slash.
    ///
    /// Nothing but these is accepted: the text of a caller becomes no statement.
    ///
    /// # Errors
    /// [`SparkSourceError`]
    pub fn parse(text: &str) -> Result<Self, SparkSourceError> {
        let refused = || SparkSourceError(text.to_owned());
        if text.is_empty() || text.len() > MAX_LENGTH || text.chars().any(char::is_control) {
            return Err(refused());
        }
        if text.contains('/') {
            let is_odd = |c: char| matches!(c, '`' | '*' | '?' | '[' | ']' | '{' | '}' | '\\');
            if text.contains(is_odd) || text.split('/').any(|step| step == "..") {
                return Err(refused());
            }
            return Ok(Self(parquet(text)));
        }
        let names: Vec<&str> = text.split('.').collect();
        let is_name =
            |name: &&str| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-');
        if names.len() > 3 || !names.iter().all(is_name) {
            return Err(refused());
        }
        Ok(Self(names.into_iter().map(identifier).collect::<Vec<_>>().join(".")))
    }

    /// Parquet files in a folder of this program.
    pub(super) fn of_folder(path: &str) -> Self {
        Self(parquet(path))
    }

    /// The table in a statement.
    pub(super) fn sql(&self) -> &str {
        &self.0
    }
}

/// A quoted identifier.
pub(super) fn identifier(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// Parquet files in a folder, as a table.
pub(super) fn parquet(folder: &str) -> String {
    format!("parquet.{}", identifier(folder))
}
