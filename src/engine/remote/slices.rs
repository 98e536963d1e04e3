//! The buckets of a sliced table in another engine.

use super::members::RemoteMembers;
use super::published::ProtectedRemoteColumn;

/// The buckets of a sliced table: each part has the values of its columns in every bucket, in an order of its own.
pub struct RemoteSlices {
    /// The columns of each part, as places among those of the table. The last part has the protected one.
    pub parts: Vec<Vec<usize>>,
    /// The label of the bucket of each row, from 1.
    pub members: RemoteMembers,
    /// The number of buckets.
    pub buckets: u32,
    /// The protected column.
    pub sensitive: ProtectedRemoteColumn,
}
