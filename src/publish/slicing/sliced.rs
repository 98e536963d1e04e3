//! A sliced table before it is published, and why there is none.

use super::columns::{ColumnPartitionError, ColumnsError};
use crate::control::Cancelled;
use crate::microdata::AttrSet;
use crate::publish::assign::BucketAssignment;

/// A table in columns and buckets.
pub struct SlicedTable {
    /// Attributes of each column, those with the sensitive attribute last.
    pub columns: Vec<AttrSet>,
    /// Boxes of each column; `None` for a column without generalized values.
    pub boxes: Vec<Option<BucketAssignment>>,
    /// Bucket of each row; secret, to be published under [`crate::publish::assign::Labels`].
    pub buckets: BucketAssignment,
}

/// Why a table was not sliced.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SlicingError {
    /// The columns cannot be made.
    #[error(transparent)]
    Columns(#[from] ColumnsError),
    /// The table has no rows.
    #[error("the table has no rows")]
    Empty,
    /// A diversity below 1.
    #[error("l is below 1")]
    BelowOne,
    /// Fewer rows than each value of a generalized column needs.
    #[error("the table has {rows} rows, fewer than values of a column are to occur")]
    TooFewRows {
        /// Number of rows of the table.
        rows: u64,
    },
    /// The whole table as one bucket violates the diversity. Without excluded values, no l above `of / most` can hold.
    #[error("in the whole table a sensitive value takes {most} of {of} rows with equal other attributes of its column")]
    NotDiverse {
        /// Number of rows with the most frequent value, where its share is largest.
        most: u64,
        /// Number of all these rows.
        of: u64,
    },
    /// The whole table as one bucket violates the diversity, by the join of columns that share attributes.
    ///
    /// An adversary who knows `known` gives a sensitive value the posterior `most / of`, rounded if the numbers are too long.
    #[error("in the whole table a sensitive value has the posterior {most} of {of} after a join of the columns")]
    NotDiverseTogether {
        /// The known attributes.
        known: AttrSet,
        /// Numerator of the posterior.
        most: u64,
        /// Denominator of the posterior.
        of: u64,
    },
    /// Columns that share attributes have too many combinations of rows.
    #[error("the columns have too many combinations of rows that agree on what they share")]
    TooDense,
    /// Columns that share attributes support bounds on the shares of single values alone.
    #[error("columns that share attributes hold no other guarantee than a bound on single values")]
    NotOfShares,
    /// The job was cancelled.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

impl From<ColumnPartitionError> for SlicingError {
    fn from(error: ColumnPartitionError) -> Self {
        match error {
            ColumnPartitionError::Refused(error) => Self::Columns(error),
            ColumnPartitionError::Cancelled(cancelled) => Self::Cancelled(cancelled),
        }
    }
}
