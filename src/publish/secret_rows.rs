//! The rows of a table in their secret order, in which buckets and classes are decided.

use zeroize::Zeroize;

use crate::microdata::Table;

/// The rows of a table in the secret order in which buckets and classes are decided, and as they were uploaded.
#[derive(Clone, Copy)]
pub struct SecretRows<'a> {
    /// The table as it was uploaded. Parts are made of it: their order depends on cells and labels alone.
    pub upload: &'a Table,
    /// The same rows in their secret order.
    pub permuted: &'a Table,
    /// The row of the upload that each permuted row is.
    pub order: &'a [u32],
}

impl SecretRows<'_> {
    /// What is said of each permuted row, for the rows as they were uploaded.
    pub(super) fn in_upload(&self, mut permuted: Vec<u32>) -> Vec<u32> {
        let mut upload = vec![0; permuted.len()];
        for (&place, &row) in permuted.iter().zip(self.order) {
            upload[row as usize] = place;
        }
        permuted.zeroize();
        upload
    }
}
