use ahash::AHashMap;

use crate::verifier::contract::checks::PosteriorSummary;
use crate::verifier::contract::claim::ValueCounts;
use crate::verifier::definition::share::ShareOfRows;
use crate::verifier::read::part::ParsedColumn;
use crate::with_codes;

pub(in crate::verifier) fn count(column: &ParsedColumn) -> ValueCounts {
    let mut counts = vec![0_u64; column.size];
    with_codes!(&column.codes, codes => for &code in codes {
        counts[code as usize] += 1;
    });
    counts
}

/// Number of classes by the share of the most frequent value.
pub(in crate::verifier) type PosteriorTally = AHashMap<ShareOfRows, u64>;

/// The largest share of a value in a class of rows with rising values.
///
/// An excluded value is compared with all rows, another one with the rows without excluded values.
pub(in crate::verifier) fn posterior(class: &[u32], excluded: &[u32]) -> ShareOfRows {
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
    let (of_excluded, of_others) = (ShareOfRows::new(most_excluded, size), ShareOfRows::new(most, left));
    if left == 0 || of_excluded.exceeds(of_others) { of_excluded } else { of_others }
}

/// The largest share of a value among all rows, from the number of rows of each value; see [`posterior`].
pub(in crate::verifier) fn prior(counts: &[u64], excluded: &[u32]) -> ShareOfRows {
    let largest = |among: &mut dyn Iterator<Item = u64>| among.max().unwrap_or(0);
    let is_excluded = |value: usize| excluded.iter().any(|&code| code as usize == value);
    let of = |wanted: bool| counts.iter().enumerate().filter(move |(value, _)| is_excluded(*value) == wanted);
    let rows: u64 = counts.iter().sum();
    let left: u64 = of(false).map(|(_, count)| count).sum();
    let of_excluded = ShareOfRows::new(largest(&mut of(true).map(|(_, count)| *count)), rows);
    let of_others = ShareOfRows::new(largest(&mut of(false).map(|(_, count)| *count)), left);
    if left == 0 || of_excluded.exceeds(of_others) { of_excluded } else { of_others }
}

/// The summary of the classes in `tallies`, where the smallest bucket has `smallest_bucket` rows.
///
/// `prior` is the share among all rows, where these are tuples.
pub(in crate::verifier) fn posteriors(
    tallies: PosteriorTally,
    smallest_bucket: u64,
    prior: Option<ShareOfRows>,
) -> Option<PosteriorSummary> {
    let mut rising: Vec<(ShareOfRows, u64)> = tallies.into_iter().collect();
    rising.sort_unstable_by(|(a, _), (b, _)| a.compare_harm(*b));
    let buckets: u64 = rising.iter().map(|(_, buckets)| buckets).sum();
    let mut before = 0;
    let median = rising.iter().find(|(_, buckets_here)| {
        before += buckets_here;
        before > buckets / 2
    })?;
    Some(PosteriorSummary { worst: rising.last()?.0, median: median.0, smallest_bucket, prior })
}
