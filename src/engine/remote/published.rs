//! Columns of a table in another engine, as a release shows them.

/// A column that is published.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PublishedRemoteColumn {
    /// Its position in the table.
    pub column: usize,
    /// Its published name.
    pub name: String,
}

/// A column that a table protects.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProtectedRemoteColumn {
    /// The column.
    pub column: PublishedRemoteColumn,
    /// Its values in canonical order, of which contents hold the positions.
    pub values: Vec<Option<String>>,
}
