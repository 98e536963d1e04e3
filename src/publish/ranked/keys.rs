//! Keys of single uses, the encoding of rows, and the map of bucket labels.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::random::ReleaseKey;

/// The key of one use: 64 hexadecimal digits, which fill one block of SHA-256.
///
/// Never shown or logged. It travels to an engine as a row of data, not in the text of a statement.
#[derive(Clone)]
pub struct UseKey(Zeroizing<String>);

impl UseKey {
    /// The key of the ranks of one table.
    #[must_use]
    pub fn of_ranks(key: &ReleaseKey, table: &str) -> Self {
        Self::derived(key, &format!("rank/{table}"))
    }

    /// The key of the ranks by which one attribute is bucketized, whichever table it will stand in.
    #[must_use]
    pub fn of_attribute(key: &ReleaseKey, attribute: &str) -> Self {
        Self::derived(key, &format!("rank of attribute/{attribute}"))
    }

    fn derived(key: &ReleaseKey, label: &str) -> Self {
        Self(Zeroizing::new(hex::encode(*derive(key, label))))
    }

    /// The digits.
    #[must_use]
    pub fn digits(&self) -> &str {
        &self.0
    }
}

fn derive(key: &ReleaseKey, label: &str) -> Zeroizing<[u8; 32]> {
    // Unwrap safety: HMAC takes keys of any length.
    #[expect(clippy::unwrap_used)]
    let mut derive = Hmac::<Sha256>::new_from_slice(key.bytes()).unwrap();
    derive.update(b"guardian engine 1\0");
    derive.update(label.as_bytes());
    Zeroizing::new(derive.finalize().into_bytes().into())
}

/// The text of a cell in the encoding of rows: `-` for a missing value, else its length in bytes, a colon and the value.
///
/// No code word is the beginning of another, so that the cells of a row are distinguished.
#[must_use]
pub fn encoded_cell(value: Option<&str>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{}:{value}", value.len()))
}

/// The labels of the buckets of a table: bucket `b`, from 0, has the label `1 + (factor * b + shift) mod buckets`.
///
/// Given the labels, the sensitive part is a function of the counts alone, so that the map needs no secrecy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LabelMap {
    /// Prime to the number of buckets.
    pub factor: u64,
    /// Below the number of buckets.
    pub shift: u64,
    /// The number of buckets, at least 1.
    pub buckets: u64,
}

impl LabelMap {
    /// The map of one table with this number of buckets, at least 1.
    #[must_use]
    pub fn draw(key: &ReleaseKey, table: &str, buckets: u64) -> Self {
        let drawn = derive(key, &format!("labels/{table}"));
        let buckets = buckets.max(1);
        let below = |bytes: &[u8]| {
            let number = bytes.iter().fold(0_u128, |number, byte| number << 8 | u128::from(*byte));
            (number % u128::from(buckets)) as u64
        };
        let (shift, mut factor) = (below(&drawn[..16]), 1 + below(&drawn[16..]));
        while greatest_common_divisor(factor, buckets) != 1 {
            factor = factor % buckets + 1;
        }
        Self { factor, shift, buckets }
    }

    /// The label of a bucket.
    #[must_use]
    pub fn label(&self, bucket: u64) -> u64 {
        let place = u128::from(self.factor) * u128::from(bucket) + u128::from(self.shift);
        1 + (place % u128::from(self.buckets)) as u64
    }
}

const fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}
