//! Numbers and hashes of records as stores keep them.

use crate::ports::StoreError;

/// A stored number in the type of its record.
pub(in crate::store) fn number<T: TryFrom<i64>>(stored: i64) -> Result<T, StoreError> {
    T::try_from(stored).map_err(|_| StoreError::corrupt("a number out of range"))
}

/// A record's number as it is stored.
pub(in crate::store) fn stored(number: u64) -> Result<i64, StoreError> {
    i64::try_from(number).map_err(|_| StoreError::Backend("a number too large to store".into()))
}

/// A stored hash of 32 bytes.
pub(in crate::store) fn hash(bytes: &[u8]) -> Result<[u8; 32], StoreError> {
    bytes.try_into().map_err(|_| StoreError::corrupt("a hash of another length"))
}
