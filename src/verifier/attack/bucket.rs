//! Buckets in the codes of the original, and what attacks on their rows find.

use std::collections::{BTreeMap, BTreeSet};

use ahash::AHashMap;

use super::error::AttackError;
use crate::control::Control;
use crate::microdata::{Attr, AttrSet, Column};
use crate::publication::{Guarantee, SubmittedRule};
use crate::verifier::definition::fraction::is_above;
use crate::verifier::definition::share::ShareOfRows;
use crate::verifier::definition::thresholds::{ThresholdBounds, counterfeits};
use crate::verifier::external::submission::Submission;
use crate::verifier::external::table::{CellText, ExternalPart, ExternalTable};

/// Maximal number of reported findings.
const MAX_REPORTED_FINDINGS: usize = 10;

/// Maximal number of examined pairs of a row and a value of its bucket.
const MAX_PAIR_STEPS: u64 = 1 << 26;

/// Number of pairs of a row and a value of its bucket that an attack examines.
#[derive(Default)]
pub(super) struct PairSteps(u64);

impl PairSteps {
    /// Adds the pairs of a table.
    pub(super) fn add(&mut self, buckets: &CodedBuckets) {
        let pairs = buckets.all.values().map(|bucket| (bucket.rows.len() * bucket.values.len()) as u64);
        self.0 = pairs.fold(self.0, u64::saturating_add);
    }

    /// Refuses an attack that would examine too many.
    pub(super) fn check(&self) -> Result<(), AttackError> {
        let what = "rows and values of their buckets";
        match self.0 > MAX_PAIR_STEPS {
            true => Err(AttackError::TooMany { what, limit: MAX_PAIR_STEPS, found: self.0 }),
            false => Ok(()),
        }
    }
}

/// Result of an attack on the rows of buckets.
#[derive(Clone, Default, Debug)]
pub struct BucketAttackReport {
    /// The largest posterior among rows with an excluded value in their bucket, in lowest terms.
    pub worst: Option<ShareOfRows>,
    /// Number of buckets and distinct rows with a posterior that exceeds the rule.
    pub total: u64,
    /// At most ten findings, the most certain first.
    pub first: Vec<BucketAttackFinding>,
}

/// A row of a bucket whose posterior exceeds the rule.
#[derive(Clone, Debug)]
pub struct BucketAttackFinding {
    /// The index of the table.
    pub table: usize,
    /// The index of the rule.
    pub rule: usize,
    /// The label of the bucket.
    pub bucket: CellText,
    /// The known values of the row.
    pub known: Vec<(Attr, CellText)>,
    /// The most probable value among those that exceed the rule.
    pub sensitive: CellText,
    /// The posterior of this value, in lowest terms.
    pub posterior: ShareOfRows,
}

impl BucketAttackReport {
    /// Takes the posterior of a row into account.
    pub(super) fn look_at(&mut self, posterior: ShareOfRows) {
        if self.worst.is_none_or(|worst| posterior.exceeds(worst)) {
            self.worst = Some(posterior);
        }
    }

    pub(super) fn add(&mut self, finding: BucketAttackFinding) {
        self.total += 1;
        self.first.push(finding);
        // bounds the memory for findings
        if self.first.len() > 64 * MAX_REPORTED_FINDINGS {
            self.keep_most_certain();
        }
    }

    /// Keeps the most certain findings; of equal ones the first.
    pub(super) fn keep_most_certain(&mut self) {
        self.first.sort_by(|a, b| b.posterior.compare(a.posterior));
        self.first.truncate(MAX_REPORTED_FINDINGS);
    }
}

pub(super) fn cell(column: &Column, code: u32) -> CellText {
    CellText { kind: column.domain.kind(), value: column.domain.value(code).map(<[u8]>::to_vec) }
}

/// Buckets of a table, in the codes of the original.
pub(super) struct CodedBuckets {
    pub(super) labels: Vec<CellText>,
    /// The known attributes of the rows.
    pub(super) attributes: Vec<Attr>,
    pub(super) all: BTreeMap<u32, CodedBucket>,
    /// Number of counterfeits in each bucket.
    pub(super) counterfeits: u64,
}

#[derive(Default)]
pub(super) struct CodedBucket {
    /// The distinct rows, by their known values.
    pub(super) rows: BTreeSet<Vec<u32>>,
    /// The sensitive values with their counts.
    pub(super) values: BTreeMap<u32, u64>,
}

impl CodedBuckets {
    pub(super) fn new(
        table: &ExternalTable,
        known: AttrSet,
        sensitive: Attr,
        original: &ExternalPart,
        control: &Control,
    ) -> Result<Self, AttackError> {
        let shown = |part: &ExternalPart| part.attributes().minus(part.opaque()).intersection(known).without(sensitive);
        let holder = table.holder(sensitive).filter(|part| !part.opaque().contains(sensitive));
        let of_rows = table.parts.iter().filter(|part| !part.attributes().contains(sensitive));
        // the part with most known attributes; of equal ones the first
        let of_rows = of_rows.rev().max_by_key(|part| shown(part).len());
        let holder = holder.ok_or(AttackError::NotExact)?;
        let counterfeits = counterfeits(holder.meaning);
        let Some(of_rows) = of_rows else {
            // a table of the sensitive attribute alone reveals nothing about a row
            return Ok(Self { labels: Vec::new(), attributes: Vec::new(), all: BTreeMap::new(), counterfeits });
        };
        let (Some(labels), Some(of_row)) = (&holder.bucket, &of_rows.bucket) else { return Err(AttackError::NotExact) };
        let numbers: AHashMap<Option<&[u8]>, u32> = labels.domain.iter().zip(0..).collect();
        let here: Option<Vec<u32>> = of_row.domain.iter().map(|label| numbers.get(&label).copied()).collect();
        let here = here.ok_or(AttackError::NotExact)?;
        let mut all: BTreeMap<u32, CodedBucket> = BTreeMap::new();
        let values = translated(holder, sensitive, original)?;
        let column = holder.column(sensitive).ok_or(AttackError::NotExact)?;
        for row in 0..holder.rows {
            if row % Control::STRIDE == 0 {
                control.check()?;
            }
            let value = values[column.codes.get(row) as usize];
            *all.entry(labels.codes.get(row)).or_default().values.entry(value).or_default() += 1;
        }
        let attributes: Vec<Attr> = shown(of_rows).iter().collect();
        let mut columns = Vec::with_capacity(attributes.len());
        for attr in &attributes {
            let column = of_rows.column(*attr).ok_or(AttackError::NotExact)?;
            columns.push((column, translated(of_rows, *attr, original)?));
        }
        for row in 0..of_rows.rows {
            if row % Control::STRIDE == 0 {
                control.check()?;
            }
            let known = columns.iter().map(|(column, codes)| codes[column.codes.get(row) as usize]).collect();
            all.entry(here[of_row.codes.get(row) as usize]).or_default().rows.insert(known);
        }
        let labels = (0..labels.domain.len() as u32).map(|label| cell(labels, label)).collect();
        Ok(Self { labels, attributes, all, counterfeits })
    }
}

/// For each code of a part's column, the code of the same value in the original.
fn translated(part: &ExternalPart, attr: Attr, original: &ExternalPart) -> Result<Vec<u32>, AttackError> {
    let (Some(column), Some(of)) = (part.column(attr), original.column(attr)) else {
        return Err(AttackError::NotExact);
    };
    let codes: AHashMap<Option<&[u8]>, u32> = of.domain.iter().zip(0..).collect();
    let known = column.domain.iter().map(|value| codes.get(&value).copied());
    known.collect::<Option<_>>().ok_or(AttackError::NotExact)
}

/// Largest posterior that a rule allows for each value.
pub(super) enum RuleLimit {
    /// One share for all values.
    Share(u64, u64),
    /// Thresholds with the counts of the values in the original and its number of rows.
    Thresholds(Option<ThresholdBounds>, Vec<u64>, u64),
    /// The guarantee bounds no share.
    None,
}

impl RuleLimit {
    pub(super) fn new(submission: &Submission<'_>, rule: &SubmittedRule, sensitive: Attr, column: &Column) -> Self {
        match rule.guarantee {
            Guarantee::LDiversity { l } => Self::Share(1, l),
            Guarantee::AlphaK { alpha, .. } => Self::Share(alpha.numerator(), alpha.denominator()),
            Guarantee::Thresholds { digest, .. } => {
                let of = submission.thresholds.iter().filter(|of| of.attribute == sensitive);
                let mut bounds =
                    of.map(|of| ThresholdBounds::new(&of.thresholds, Some(column.domain.kind()), column.domain.iter()));
                let mut overall = vec![0; column.domain.len()];
                column.codes.iter().for_each(|code| overall[code as usize] += 1);
                Self::Thresholds(bounds.find(|bound| bound.name() == digest), overall, column.codes.len() as u64)
            }
            _ => Self::None,
        }
    }

    pub(super) fn is_exceeded(&self, value: u32, weight: u128, all: u128) -> bool {
        match self {
            Self::Share(numerator, denominator) => is_above(weight, all, *numerator, *denominator),
            Self::Thresholds(bound, overall, rows) => {
                let in_bucket = ShareOfRows::lowest(weight, all);
                let overall = ShareOfRows::new(overall[value as usize], *rows);
                // a rule without declared thresholds allows no value
                !bound.as_ref().is_some_and(|bound| bound.admits(value, in_bucket, overall))
            }
            Self::None => false,
        }
    }
}
