//! Columns of a table in another engine, as a release shows them.

/// A column that is published.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PublishedRemoteColumn {
    /// Its position in the table.
    pub column: usize,
    /// Its published name.
    pub name: String,
}

/// The protected column of classes or of a sliced table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProtectedRemoteColumn {
    /// The column.
    pub column: PublishedRemoteColumn,
    /// Its values in canonical order, of which contents hold the positions.
    pub values: Vec<Option<String>>,
}
