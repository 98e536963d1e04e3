//! Thresholds, by their definition: of a bucket of n rows, a value with threshold f may take at most f times n.

use crate::microdata::AttributeType;
use crate::publication::{DigestedThresholds, Ratio, RowMeaning, Thresholds, ThresholdsDigest};

/// What a value may take of a bucket: a fraction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct ThresholdFraction {
    numerator: u128,
    denominator: u128,
}

impl ThresholdFraction {
    fn admits(self, count: u64, size: u64) -> bool {
        let held = u128::from(count).checked_mul(self.denominator);
        let room = u128::from(size).checked_mul(self.numerator);
        held.zip(room).is_some_and(|(held, room)| held <= room)
    }
}

/// Thresholds of an attribute, for the values of a column by their codes.
pub(in crate::verifier) struct ThresholdBounds {
    thresholds: DigestedThresholds,
    /// The threshold that is stated of each code's value by itself.
    named: Vec<Option<Ratio>>,
}

impl ThresholdBounds {
    /// Thresholds for `values` in the order of their codes.
    pub(in crate::verifier) fn new<'v>(
        thresholds: &DigestedThresholds,
        kind: Option<AttributeType>,
        values: impl Iterator<Item = Option<&'v [u8]>>,
    ) -> Self {
        Self { thresholds: thresholds.clone(), named: named(thresholds.stated(), kind, values) }
    }

    /// The name that guarantees have for them.
    pub(in crate::verifier) const fn name(&self) -> ThresholdsDigest {
        self.thresholds.name()
    }

    /// What the value of a code may take of a bucket, in a column that has it in `count` of `rows`. A value without a threshold
    /// may take nothing.
    fn limit(&self, code: u32, count: u64, rows: u64) -> Option<ThresholdFraction> {
        let exact = |ratio: Ratio| ThresholdFraction {
            numerator: ratio.numerator().into(),
            denominator: ratio.denominator().into(),
        };
        if let Some(ratio) = self.named.get(code as usize).copied().flatten() {
            return Some(exact(ratio));
        }
        match self.thresholds.stated() {
            Thresholds::Uniform { l } => Some(ThresholdFraction { numerator: 1, denominator: (*l).into() }),
            Thresholds::Linear { theta, c, .. } => {
                // theta * count / rows + c
                let (a, b) = (u128::from(theta.numerator()), u128::from(theta.denominator()));
                let (p, q) = (u128::from(c.numerator()), u128::from(c.denominator()));
                let rows = u128::from(rows);
                let denominator = b.checked_mul(q)?.checked_mul(rows)?;
                let share = a.checked_mul(u128::from(count))?.checked_mul(q)?;
                let numerator = share.checked_add(p.checked_mul(rows)?.checked_mul(b)?)?;
                Some(ThresholdFraction { numerator: numerator.min(denominator), denominator })
            }
            Thresholds::Explicit { otherwise, .. } => otherwise.map(exact),
        }
    }

    /// Whether a value that occurs so often in a bucket of `size` stays within its threshold.
    pub(in crate::verifier) fn admits(
        &self,
        code: u32,
        (count, size): (u64, u64),
        (overall, rows): (u64, u64),
    ) -> bool {
        count == 0 || self.limit(code, overall, rows).is_some_and(|limit| limit.admits(count, size))
    }
}

/// The threshold that is stated of each code's value by itself.
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
        // one number may be spelled in several ways
        Some(kind @ AttributeType::Decimal) => {
            let same = |stated: &&str| {
                is_number(stated.as_bytes()) && kind.compare_by_value(stated.as_bytes(), value).is_eq()
                    || stated.as_bytes() == value
            };
            named.iter().find(|(stated, _)| same(&stated.as_str())).map(|(_, ratio)| *ratio)
        }
        _ => std::str::from_utf8(value).ok().and_then(|value| named.get(value)).copied(),
    };
    values.map(|value| value.and_then(find)).collect()
}

/// How many counterfeits stand in each bucket of a part.
pub(in crate::verifier) const fn counterfeits(rows: RowMeaning) -> u64 {
    match rows {
        RowMeaning::TuplesAndCounterfeits { per_bucket } => per_bucket as u64,
        RowMeaning::Tuples | RowMeaning::Values => 0,
    }
}
