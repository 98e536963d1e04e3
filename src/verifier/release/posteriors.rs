use ahash::AHashMap;

use crate::verifier::contract::checks::PosteriorSummary;
use crate::verifier::contract::claim::ValueCounts;
use crate::verifier::read::part::ParsedColumn;
use crate::with_codes;

pub(in crate::verifier) fn count(column: &ParsedColumn) -> ValueCounts {
    let mut counts = vec![0_u64; column.size];
    with_codes!(&column.codes, codes => for &code in codes {
        counts[code as usize] += 1;
    });
    counts
}

/// Number of classes by the count of the most frequent value and the size.
pub(in crate::verifier) type PosteriorTally = AHashMap<(u64, u64), u64>;

/// The largest share of a value in a class of rows with rising values, as a count and a number of rows.
///
/// An excluded value is compared with all rows, another one with the rows without excluded values.
pub(in crate::verifier) fn posterior(class: &[u32], excluded: &[u32]) -> (u64, u64) {
    let size = class.len() as u64;
    let (mut excluded_rows, mut most_excluded, mut most) = (0, 0, 0);
    for run in class.chunk_by(|a, b| a == b) {
        let count = run.len() as u64;
        if excluded.contains(&run[0]) {
            excluded_rows += count;
            most_excluded = count.max(most_excluded);
        } else {
            most = count.max(most);
        }
    }
    let left = size - excluded_rows;
    if u128::from(most) * u128::from(size) >= u128::from(most_excluded) * u128::from(left) && left > 0 {
        (most, left)
    } else {
        (most_excluded, size)
    }
}

/// The summary of the classes in `tallies`, where the smallest bucket has `smallest_bucket` rows.
pub(in crate::verifier) fn posteriors(tallies: PosteriorTally, smallest_bucket: u64) -> Option<PosteriorSummary> {
    let mut rising: Vec<((u64, u64), u64)> = tallies.into_iter().collect();
    // by share; of equal shares the smaller bucket is the worse one
    rising.sort_unstable_by(|&((a, of_a), _), &((b, of_b), _)| {
        let (left, right) = (u128::from(a) * u128::from(of_b), u128::from(b) * u128::from(of_a));
        left.cmp(&right).then(of_b.cmp(&of_a))
    });
    let buckets: u64 = rising.iter().map(|(_, buckets)| buckets).sum();
    let mut before = 0;
    let median = rising.iter().find(|(_, buckets_here)| {
        before += buckets_here;
        before > buckets / 2
    })?;
    Some(PosteriorSummary { worst: rising.last()?.0, median: median.0, smallest_bucket })
}
