//! The beginning that a record has in common with the one before.

use super::marks::BLOCK;

/// Fewest bytes of equal fields that are not looked for again.
pub(super) const MIN_REPEATED_BYTES: usize = 2 * BLOCK;

/// Number of bytes that are compared at once.
const COMPARED_BYTES: usize = 32;

/// The fields with which a record begins as the one before: their number, and their bytes up to that after the last delimiter.
#[derive(Clone, Copy, Default)]
pub(super) struct RepeatedFields {
    pub(super) number: usize,
    pub(super) bytes: usize,
}

/// Number of bytes with which two records begin alike; fewer than that if there are not [`MIN_REPEATED_BYTES`] of them.
#[inline]
pub(super) fn equal_bytes(record: &[u8], next: &[u8]) -> usize {
    let (pieces, next_pieces) = (record.as_chunks::<COMPARED_BYTES>().0, next.as_chunks::<COMPARED_BYTES>().0);
    let equal = pieces.iter().zip(next_pieces).take_while(|(a, b)| a == b).count() * COMPARED_BYTES;
    if equal < MIN_REPEATED_BYTES {
        return equal;
    }
    equal + record[equal..].iter().zip(&next[equal..]).take_while(|(a, b)| a == b).count()
}
