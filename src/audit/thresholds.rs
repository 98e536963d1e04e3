//! Thresholds, by their definition: of a bucket of n rows, a value with threshold f may take at most f times n.

use std::collections::HashSet;

use super::{CheckLog, CheckName, Evidence, TableFigures};
use crate::microdata::{Attr, AttributeType};
use crate::publication::{
    DigestedThresholds, Guarantee, MethodDetails, Protected, Ratio, RowMeaning, TableProtection, Thresholds,
    ThresholdsDigest,
};

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
pub(super) struct ThresholdBounds {
    thresholds: DigestedThresholds,
    /// The threshold that is stated of each code's value by itself.
    named: Vec<Option<Ratio>>,
}

impl ThresholdBounds {
    /// Thresholds for `values` in the order of their codes.
    pub(super) fn of<'v>(
        thresholds: &DigestedThresholds,
        kind: Option<AttributeType>,
        values: impl Iterator<Item = Option<&'v [u8]>>,
    ) -> Self {
        Self { thresholds: thresholds.clone(), named: named(thresholds.stated(), kind, values) }
    }

    /// The name that guarantees have for them.
    pub(super) const fn name(&self) -> ThresholdsDigest {
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
    pub(super) fn admits(&self, code: u32, (count, size): (u64, u64), (overall, rows): (u64, u64)) -> bool {
        count == 0 || self.limit(code, overall, rows).is_some_and(|limit| limit.admits(count, size))
    }
}

/// All thresholds that a release states of an attribute.
pub(super) fn declared_for(evidence: &Evidence<'_>, attr: Attr) -> Vec<DigestedThresholds> {
    let stated = evidence.thresholds.iter().filter(|stated| stated.attribute == attr);
    let mut found: Vec<DigestedThresholds> = stated.map(|stated| stated.thresholds.clone()).collect();
    if let MethodDetails::Bucketize { thresholds, .. } = &evidence.publication.particulars {
        let tables = evidence.publication.tables.iter();
        let mut seals = tables.flat_map(|table| match &table.standing {
            TableProtection::Sealed(seals) => &seals[..],
            _ => &[],
        });
        found.extend(seals.any(|seal| seal.protects == Protected::Attribute(attr)).then(|| thresholds.clone().into()));
    }
    found
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
pub(super) const fn counterfeits(rows: RowMeaning) -> u64 {
    match rows {
        RowMeaning::TuplesAndCounterfeits { per_bucket } => per_bucket as u64,
        RowMeaning::Tuples | RowMeaning::Values => 0,
    }
}

/// What is said of buckets by size: the thresholds are those that were submitted, the setting is the one that the parts show, and
/// so is the loss.
pub(super) fn check_thresholds(evidence: &Evidence<'_>, figures: &[TableFigures], findings: &mut CheckLog) {
    let MethodDetails::Bucketize { thresholds, setting, loss, lower_bound } = &evidence.publication.particulars else {
        let known: HashSet<(Attr, Guarantee)> =
            evidence.thresholds.iter().map(|stated| (stated.attribute, stated.thresholds.guarantee())).collect();
        let stated = |protects: Protected, guarantee: Guarantee| match (guarantee, protects) {
            (Guarantee::Thresholds { .. }, Protected::Attribute(attr)) => known.contains(&(attr, guarantee)),
            (guarantee, _) => !matches!(guarantee, Guarantee::Thresholds { .. }),
        };
        let rules = evidence.publication.rules.iter().map(|rule| (rule.protects, rule.guarantee));
        let seals = evidence.publication.tables.iter().flat_map(|table| match &table.standing {
            TableProtection::Sealed(seals) => &seals[..],
            _ => &[],
        });
        let seals = seals.flat_map(|seal| seal.guarantees.iter().map(|guarantee| (seal.protects, *guarantee)));
        if !rules.chain(seals).all(|(protects, guarantee)| stated(protects, guarantee)) {
            findings.fail(CheckName::Guarantee, "thresholds are spoken of that are not stated");
        }
        return;
    };
    let [rule] = evidence.submitted else {
        return findings.fail(CheckName::Gnf, "thresholds belong to one rule");
    };
    let meant = match (thresholds, rule.guarantee) {
        (Thresholds::Uniform { l }, Guarantee::LDiversity { l: asked }) => *l == asked,
        (_, Guarantee::Thresholds { stated, .. }) => thresholds.name() == stated,
        _ => false,
    };
    if !meant {
        findings.fail(CheckName::Guarantee, "the stated thresholds are not those of the rule");
    }
    let [figures] = figures else {
        return findings.fail(CheckName::Buckets, "buckets by size stand in one table");
    };
    if !figures.sizes.iter().map(|(size, buckets)| (*size, *buckets)).eq(setting.iter().copied()) {
        findings.fail(CheckName::Buckets, "the buckets have not the sizes that are stated");
    }
    let lost: u128 = figures.sizes.iter().map(|(&s, &b)| u128::from(b) * u128::from(s - 1) * u128::from(s - 1)).sum();
    if lost != u128::from(*loss) {
        findings.fail(CheckName::Buckets, "the stated loss is not that of the buckets");
    }
    if lower_bound.is_some_and(|bound| bound > *loss) {
        findings.fail(CheckName::Buckets, "no buckets are said to lose as little as these do");
    }
}
