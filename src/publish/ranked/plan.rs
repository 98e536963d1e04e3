//! The plan of a table: the number of its buckets, and the segments of its values.

use super::keys::LabelMap;
use super::segments::{Segment, contents, deal};
use crate::privacy::{self, OverallCounts};
use crate::publication::Guarantee;
use crate::publish::bucketize::FilledBuckets;
use crate::random::ReleaseKey;

/// The largest number of buckets: labels are 32-bit integers.
const MOST_BUCKETS: u64 = i32::MAX as u64;

/// The plan of one bucketized table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RankedPlan {
    /// Where the rows of each value go, values in canonical order.
    pub segments: Vec<Segment>,
    /// The labels of the buckets.
    pub labels: LabelMap,
}

/// Not even the whole table as one bucket keeps the guarantees.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the whole table as one bucket does not keep the guarantees")]
pub struct UnplannableError;

/// Plans the buckets of a table from the number of rows of each value, values in canonical order.
///
/// For l-diversity there are as many buckets as rows divided by l: no value then has more rows than there are buckets. For other
/// guarantees the number is searched; each content that occurs is held against every guarantee.
///
/// # Errors
/// [`UnplannableError`] where the rule is not eligible.
pub fn plan_buckets(
    counts: &[u64],
    guarantees: &[Guarantee],
    key: &ReleaseKey,
    table: &str,
) -> Result<RankedPlan, UnplannableError> {
    let population = OverallCounts::new(counts.to_vec());
    let dealt: Vec<(u32, u64)> = (0..).zip(counts).filter(|(_, rows)| **rows > 0).map(|(v, &rows)| (v, rows)).collect();
    let keeps = |buckets: u64| {
        let holds = |content: &[(u32, u64)]| guarantees.iter().all(|&g| privacy::holds(g, content, &population));
        contents(&deal(&dealt, buckets)).keys().all(|content| holds(content))
    };
    let fewest = guarantees.iter().map(|&guarantee| privacy::fewest_rows(guarantee)).max().unwrap_or(1).max(1);
    let most = (population.rows() / fewest).min(MOST_BUCKETS);
    if most == 0 || !keeps(1) {
        return Err(UnplannableError);
    }
    let mut buckets = most;
    if !keeps(most) {
        // the predicate is not monotone: the search finds a good number of buckets, not the best
        let mut broken = most;
        buckets = 1;
        while broken - buckets > 1 {
            let middle = buckets + (broken - buckets) / 2;
            if keeps(middle) { buckets = middle } else { broken = middle }
        }
    }
    Ok(RankedPlan { segments: deal(&dealt, buckets), labels: LabelMap::draw(key, table, buckets) })
}

/// Plans buckets whose sizes and values are decided: those of each size form a class, and the first ranks of a value go to the first
/// class that holds it.
#[must_use]
pub fn place_filled(filled: &[FilledBuckets], key: &ReleaseKey, table: &str) -> RankedPlan {
    let values = filled.iter().map(|of| of.counts.len()).max().unwrap_or(0);
    let (mut segments, mut base, mut placed) = (Vec::new(), 0, vec![0; values]);
    for FilledBuckets { class, counts } in filled.iter().filter(|of| of.class.buckets > 0) {
        let mut position = 0;
        for (value, &rows) in (0..).zip(counts).filter(|(_, rows)| **rows > 0) {
            let first = placed[value as usize];
            let end = first + rows;
            segments.push(Segment { value, first, end, position, base, buckets: class.buckets });
            placed[value as usize] = end;
            position += rows;
        }
        base += class.buckets;
    }
    RankedPlan { segments, labels: LabelMap::draw(key, table, base) }
}

impl RankedPlan {
    /// The number of buckets.
    #[must_use]
    pub const fn buckets(&self) -> u64 {
        self.labels.buckets
    }
}
