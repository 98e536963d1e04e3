//! Thresholds by their definition.
//!
//! In a bucket of n rows, a value with threshold f takes at most f * n rows.
//!
//! # Citations
//! docs/spec/bucketize.md#definitions

use super::share::ShareOfRows;
use crate::microdata::AttributeType;
use crate::publication::{DigestedThresholds, Ratio, RowMeaning, Thresholds, ThresholdsDigest};

/// The largest share of a bucket that a value may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct ThresholdFraction {
    numerator: u128,
    denominator: u128,
}

impl ThresholdFraction {
    fn admits(self, share: ShareOfRows) -> bool {
        let held = u128::from(share.count).checked_mul(self.denominator);
        let room = u128::from(share.of).checked_mul(self.numerator);
        held.zip(room).is_some_and(|(held, room)| held <= room)
    }
}

/// Thresholds of an attribute, for the values of a column by their codes.
pub(in crate::verifier) struct ThresholdBounds {
    thresholds: DigestedThresholds,
    /// For each code, the threshold that is declared for its value alone.
    named: Vec<Option<Ratio>>,
}

impl ThresholdBounds {
    /// Thresholds for `values` in the order of their codes.
    pub(in crate::verifier) fn new<'v>(
        thresholds: &DigestedThresholds,
        kind: Option<AttributeType>,
        values: impl Iterator<Item = Option<&'v [u8]>>,
    ) -> Self {
        Self { thresholds: thresholds.clone(), named: named(thresholds.declared(), kind, values) }
    }

    /// The digest by which guarantees name these thresholds.
    pub(in crate::verifier) const fn name(&self) -> ThresholdsDigest {
        self.thresholds.name()
    }

    /// The threshold of a code whose value has the share `overall` of the column.
    ///
    /// `None` without a threshold.
    fn limit(&self, code: u32, overall: ShareOfRows) -> Option<ThresholdFraction> {
        let exact = |ratio: Ratio| ThresholdFraction {
            numerator: ratio.numerator().into(),
            denominator: ratio.denominator().into(),
        };
        if let Some(ratio) = self.named.get(code as usize).copied().flatten() {
            return Some(exact(ratio));
        }
        match self.thresholds.declared() {
            Thresholds::Uniform { l } => Some(ThresholdFraction { numerator: 1, denominator: (*l).into() }),
            Thresholds::Linear { theta, c, .. } => {
                // theta * count / rows + c
                let (a, b) = (u128::from(theta.numerator()), u128::from(theta.denominator()));
                let (p, q) = (u128::from(c.numerator()), u128::from(c.denominator()));
                let rows = u128::from(overall.of);
                let denominator = b.checked_mul(q)?.checked_mul(rows)?;
                let share = a.checked_mul(u128::from(overall.count))?.checked_mul(q)?;
                let numerator = share.checked_add(p.checked_mul(rows)?.checked_mul(b)?)?;
                Some(ThresholdFraction { numerator: numerator.min(denominator), denominator })
            }
            Thresholds::Explicit { otherwise, .. } => otherwise.map(exact),
        }
    }

    /// Whether a value may have the share `in_bucket` of a bucket; without a threshold, no rows.
    pub(in crate::verifier) fn admits(&self, code: u32, in_bucket: ShareOfRows, overall: ShareOfRows) -> bool {
        in_bucket.count == 0 || self.limit(code, overall).is_some_and(|limit| limit.admits(in_bucket))
    }
}

/// For each code, the threshold that is declared for its value alone.
fn named<'v>(
    thresholds: &Thresholds,
    kind: Option<AttributeType>,
    values: impl Iterator<Item = Option<&'v [u8]>>,
) -> Vec<Option<Ratio>> {
    let named = match thresholds {
        Thresholds::Uniform { .. } => return values.map(|_| None).collect(),
        Thresholds::Linear { overrides, .. } => overrides,
        Thresholds::Explicit { values, .. } => values,
    };
    let is_number = |text: &[u8]| AttributeType::infer(std::iter::once(text)).is_number();
    let find = |value: &[u8]| match kind {
        // a number can have several spellings
        Some(kind) if kind.has_spellings() => {
            let same = |declared: &&str| {
                is_number(declared.as_bytes()) && kind.compare_by_value(declared.as_bytes(), value).is_eq()
                    || declared.as_bytes() == value
            };
            named.iter().find(|(declared, _)| same(&declared.as_str())).map(|(_, ratio)| *ratio)
        }
        _ => std::str::from_utf8(value).ok().and_then(|value| named.get(value)).copied(),
    };
    values.map(|value| value.and_then(find)).collect()
}

/// Number of counterfeits in each bucket of a part, where all buckets have the same number.
pub(in crate::verifier) const fn counterfeits(rows: RowMeaning) -> u64 {
    match rows {
        RowMeaning::TuplesAndCounterfeits { per_bucket } => per_bucket as u64,
        // the members of a persistent bucket are any of its slots: each slot counts
        RowMeaning::Tuples | RowMeaning::TuplesAndVaryingCounterfeits | RowMeaning::Values => 0,
    }
}
