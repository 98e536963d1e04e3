//! Segments of a plan, and the contents of buckets that follow from them.

use std::collections::BTreeMap;

/// Where a range of ranks of one sensitive value goes: rank `r` with `first <= r < end` to the bucket
/// `base + (position + r - first) mod buckets`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// The code of the value, in canonical order of values.
    pub value: u32,
    /// The first rank.
    pub first: u64,
    /// The rank after the last one.
    pub end: u64,
    /// The number of rows of the class before these.
    pub position: u64,
    /// The number of buckets of earlier classes.
    pub base: u64,
    /// The number of buckets of the class.
    pub buckets: u64,
}

/// The content of equal buckets: how many rows have each value, values rising.
pub type BucketContent = Vec<(u32, u64)>;

/// All rows dealt to one class of buckets: values in the order of `counts`, one segment each.
#[must_use]
pub fn deal(counts: &[(u32, u64)], buckets: u64) -> Vec<Segment> {
    let mut position = 0;
    let segment = |&(value, rows): &(u32, u64)| {
        let segment = Segment { value, first: 0, end: rows, position, base: 0, buckets };
        position += rows;
        segment
    };
    counts.iter().map(segment).collect()
}

/// The distinct contents of the buckets, with the number of buckets of each.
///
/// A content changes only where a segment begins or ends, so that a class of m segments has at most 2m + 1.
#[must_use]
pub fn contents(segments: &[Segment]) -> BTreeMap<BucketContent, u64> {
    let mut found = BTreeMap::new();
    for class in segments.chunk_by(|one, other| one.base == other.base) {
        let Some(buckets) = class.first().map(|segment| segment.buckets).filter(|buckets| *buckets > 0) else {
            continue;
        };
        let mut held: BTreeMap<u32, u64> = BTreeMap::new();
        let mut changes = Vec::new();
        for segment in class {
            let rows = segment.end - segment.first;
            let (start, more) = (segment.position % buckets, rows % buckets);
            let end = (start + more) % buckets;
            // buckets from `start` to `end`, past the last one to the first, hold a row more than the others
            let first_holds_more = more > 0 && (start == 0 || (end < start && end > 0));
            let in_first = rows / buckets + u64::from(first_holds_more);
            if in_first > 0 {
                *held.entry(segment.value).or_default() += in_first;
            }
            let turns = [(start, true), (end, false)].into_iter().filter(|(at, _)| more > 0 && *at > 0);
            changes.extend(turns.map(|(at, adds)| Change { at, value: segment.value, adds }));
        }
        // where a value ends and begins anew, it leaves first
        changes.sort_unstable_by_key(|change| (change.at, change.value, change.adds));
        let mut from = 0;
        for together in changes.chunk_by(|one, other| one.at == other.at) {
            count(&held, together[0].at - from, &mut found);
            from = together[0].at;
            for change in together {
                let rows = held.entry(change.value).or_default();
                *rows = if change.adds { *rows + 1 } else { *rows - 1 };
                // a content is as long as a bucket, and not as the list of values
                if *rows == 0 {
                    held.remove(&change.value);
                }
            }
        }
        count(&held, buckets - from, &mut found);
    }
    found
}

/// A bucket from which on a value has a row more or less.
#[derive(Clone, Copy)]
struct Change {
    at: u64,
    value: u32,
    adds: bool,
}

fn count(held: &BTreeMap<u32, u64>, buckets: u64, found: &mut BTreeMap<BucketContent, u64>) {
    *found.entry(held.iter().map(|(value, rows)| (*value, *rows)).collect()).or_default() += buckets;
}
