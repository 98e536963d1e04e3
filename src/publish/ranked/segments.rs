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
/// A content changes only where a segment begins or ends, so that a class of m values has at most 2m + 1.
#[must_use]
pub fn contents(segments: &[Segment]) -> BTreeMap<BucketContent, u64> {
    let mut found = BTreeMap::new();
    for class in segments.chunk_by(|one, other| one.base == other.base) {
        let buckets = class.first().map_or(0, |segment| segment.buckets);
        let ends = |segment: &Segment| {
            [segment.position % buckets, (segment.position + segment.end - segment.first) % buckets]
        };
        let mut cuts: Vec<u64> = class.iter().flat_map(ends).chain([0, buckets]).collect();
        cuts.sort_unstable();
        cuts.dedup();
        for range in cuts.windows(2) {
            let mut content: BTreeMap<u32, u64> = BTreeMap::new();
            for segment in class {
                let rows = held(segment, range[0]);
                if rows > 0 {
                    *content.entry(segment.value).or_default() += rows;
                }
            }
            *found.entry(content.into_iter().collect()).or_default() += range[1] - range[0];
        }
    }
    found
}

/// The rows of a segment in a bucket of its class, buckets from 0.
const fn held(segment: &Segment, bucket: u64) -> u64 {
    let rows = segment.end - segment.first;
    let first = (bucket + segment.buckets - segment.position % segment.buckets) % segment.buckets;
    if first < rows { 1 + (rows - 1 - first) / segment.buckets } else { 0 }
}
