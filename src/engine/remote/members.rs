//! Which rows of a table in another engine belong together: a function of some of its columns.

use crate::microdata::Column;

/// The set of each row, a class or a bucket, by its values in some columns.
pub struct RemoteMembers {
    /// The places of these columns among those of the table, in the order of attributes.
    pub places: Vec<usize>,
    /// The distinct rows of these columns, and the number of the set of each.
    pub(super) distinct: Vec<Column>,
    pub(super) set_of: Vec<u32>,
}

/// The texts of a row in some columns, in their order.
pub type RowTexts<'a> = Vec<Option<&'a [u8]>>;

impl RemoteMembers {
    /// The distinct rows of these columns, each with the number of its set.
    pub fn iter(&self) -> impl Iterator<Item = (u32, RowTexts<'_>)> {
        self.set_of.iter().enumerate().map(|(at, set)| (*set, texts(&self.distinct, at)))
    }

    /// The number of distinct rows.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.set_of.len()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The texts of a row of columns.
pub(super) fn texts(columns: &[Column], at: usize) -> RowTexts<'_> {
    columns.iter().map(|column| column.domain.value(column.codes.get(at))).collect()
}
