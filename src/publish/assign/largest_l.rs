//! Largest-l: buckets of at least l tuples with pairwise distinct sensitive values, in O(n).
//!
//! Repeatedly takes one tuple from each of the l largest lists of equal sensitive values. No assignment makes more buckets.
//! Counting keeps the order of values by list size, without a heap.
//!
//! # Citations
//! - [Xiao and Tao 2006, section 4], the algorithm.
//! - [Ye et al. 2009, Theorem 1 and Corollary 1], the number of buckets, and the residue.

use super::SensitiveCodes;
use crate::control::{Cancelled, Control};
use crate::random::RandomStream;
use crate::with_codes;

/// The bucket of each row.
pub struct BucketAssignment {
    /// Bucket of each row, from 0 in the order of making: secret, see [`super::Labels`]. [`Self::NOWHERE`] for a suppressed row.
    pub bucket_of: Vec<u32>,
    /// Number of buckets.
    pub buckets: u32,
}

impl BucketAssignment {
    /// Bucket number of a suppressed row.
    pub const NOWHERE: u32 = u32::MAX;
}

/// Assigns rows to buckets of at least `l` pairwise distinct values, so that none takes more than 1/l of a bucket.
///
/// `stream` decides which rows of a value are taken, which of equally frequent values, and which bucket a leftover row joins.
///
/// The caller has checked eligibility: the most frequent value times `l` is at most the number of rows.
///
/// # Errors
/// [`Cancelled`] on cancellation.
///
/// # Panics
/// If the values are not eligible, or `l` is 0.
pub fn largest_l<'a>(
    values: impl Into<SensitiveCodes<'a>>,
    l: u64,
    stream: &mut RandomStream,
    control: &Control,
) -> Result<BucketAssignment, Cancelled> {
    largest_l_by(values, l, stream, control, |_, list| list.len() - 1)
}

/// [`largest_l`] with a choice of rows: `choose` returns the position of the row that a bucket takes among the remaining rows of
/// a value.
pub(super) fn largest_l_by<'a>(
    values: impl Into<SensitiveCodes<'a>>,
    l: u64,
    stream: &mut RandomStream,
    control: &Control,
    mut choose: impl FnMut(u32, &[u32]) -> usize,
) -> Result<BucketAssignment, Cancelled> {
    let values = values.into();
    let rows = values.codes.len();
    let mut size: Vec<usize> = values.counts.iter().map(|&count| count as usize).collect();
    let most = size.iter().copied().max().unwrap_or(0);
    assert!(l > 0 && most as u128 * u128::from(l) <= rows as u128, "the values are not eligible");
    if rows == 0 {
        return Ok(BucketAssignment { bucket_of: Vec::new(), buckets: 0 });
    }
    let l = l as usize; // at most the number of rows, by eligibility

    let (mut lists, mut ends) = lists_of_equal_values(&values, &size, stream, control)?;
    let mut order: Vec<u32> = (0..size.len() as u32).collect();
    order.sort_by_key(|&value| std::cmp::Reverse(size[value as usize]));
    // ge[k]: number of values with at least k rows left; their positions in `order` are 0..ge[k]
    let mut ge = vec![0usize; most + 2];
    for &count in &size {
        ge[count] += 1;
    }
    for k in (0..most).rev() {
        ge[k] += ge[k + 1];
    }

    let mut bucket_of = vec![0u32; rows];
    let mut buckets = 0u32;
    let mut since_check = 0;
    while ge[1] >= l {
        // values with more rows than the l-th largest are all taken; of those with as many, a random choice is moved to the end
        // of their block, so that `order` stays sorted
        let tied = size[order[l - 1] as usize];
        let (block, end) = (ge[tied + 1], ge[tied]);
        let wanted = l - block;
        let mut tail = end;
        while end - tail < wanted {
            if tail - block > wanted - (end - tail) {
                let chosen = block + stream.below((tail - block) as u32) as usize;
                order.swap(chosen, tail - 1);
            }
            tail -= 1;
        }
        for &value in order[..block].iter().chain(&order[end - wanted..end]) {
            let value = value as usize;
            let list = &mut lists[ends[value] - size[value]..ends[value]];
            let last = list.len() - 1;
            list.swap(choose(buckets, list), last);
            ge[size[value]] -= 1;
            size[value] -= 1;
            ends[value] -= 1;
            bucket_of[lists[ends[value]] as usize] = buckets;
        }
        buckets += 1;
        since_check += l;
        if since_check >= Control::STRIDE {
            control.advance(since_check as u64)?;
            since_check = 0;
        }
    }
    place_residue(&size, &ends, &lists, &mut bucket_of, buckets, &values, stream);
    control.check()?;
    Ok(BucketAssignment { bucket_of, buckets })
}

/// Rows grouped by sensitive value, in random order within a value, and the end of each group.
pub(super) fn lists_of_equal_values(
    values: &SensitiveCodes<'_>,
    size: &[usize],
    stream: &mut RandomStream,
    control: &Control,
) -> Result<(Vec<u32>, Vec<usize>), Cancelled> {
    let mut next = Vec::with_capacity(size.len());
    let mut start = 0;
    for &count in size {
        next.push(start);
        start += count;
    }
    let mut lists = vec![0u32; values.codes.len()];
    let mut row = 0;
    with_codes!(&*values.codes, codes => for codes in codes.chunks(Control::STRIDE) {
        control.check()?;
        for &code in codes {
            let slot = &mut next[code as usize];
            lists[*slot] = row;
            *slot += 1;
            row += 1;
        }
    });
    for (&end, &count) in next.iter().zip(size) {
        control.check()?;
        stream.shuffle(&mut lists[end - count..end]);
    }
    Ok((lists, next))
}

/// Puts each leftover row into a random bucket without its value. There are at most l - 1 of them, of distinct values.
fn place_residue(
    size: &[usize],
    ends: &[usize],
    lists: &[u32],
    bucket_of: &mut [u32],
    buckets: u32,
    values: &SensitiveCodes<'_>,
    stream: &mut RandomStream,
) {
    let mut starts = Vec::with_capacity(size.len());
    let mut start = 0;
    for &count in &values.counts {
        starts.push(start);
        start += count as usize;
    }
    let mut limits = starts.clone();
    limits.push(lists.len());
    for (value, &left) in size.iter().enumerate() {
        for rest in (0..left).rev() {
            let placed = &lists[starts[value] + rest + 1..limits[value + 1]];
            let mut holds_value = vec![false; buckets as usize];
            for &row in placed {
                holds_value[bucket_of[row as usize] as usize] = true;
            }
            let lacking: Vec<u32> = (0..buckets).filter(|&bucket| !holds_value[bucket as usize]).collect();
            debug_assert_eq!(ends[value], starts[value] + left);
            let chosen = lacking[stream.below(lacking.len() as u32) as usize];
            bucket_of[lists[starts[value] + rest] as usize] = chosen;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::microdata::{Arena, AttributeType, Codes, Column, Domain};
    use crate::random::{RandomStreams, ReleaseKey};

    fn column(sizes: &[usize]) -> Column {
        let mut arena = Arena::default();
        for value in 0..sizes.len() {
            arena.push(format!("v{value:03}").as_bytes());
        }
        let codes: Vec<u32> =
            sizes.iter().enumerate().flat_map(|(v, &count)| std::iter::repeat_n(v as u32, count)).collect();
        let domain = Arc::new(Domain::from_sorted(AttributeType::Text, false, arena));
        Column { domain, codes: Codes::collect(sizes.len(), codes.into_iter()) }
    }

    fn assign(sizes: &[usize], l: u64, key: u8) -> (Column, BucketAssignment) {
        let column = column(sizes);
        let mut stream = RandomStreams::Keyed(ReleaseKey::from_bytes([key; 32])).stream("test");
        let assignment = largest_l(&column, l, &mut stream, &Control::default()).expect("not cancelled");
        (column, assignment)
    }

    fn bucket_values(column: &Column, assignment: &BucketAssignment) -> Vec<Vec<u32>> {
        let mut values = vec![Vec::new(); assignment.buckets as usize];
        for (row, &bucket) in assignment.bucket_of.iter().enumerate() {
            values[bucket as usize].push(column.codes.get(row));
        }
        values
    }

    #[test]
    fn the_trace_of_the_specification() {
        let (column, assignment) = assign(&[3, 2, 2, 1], 2, 1);
        assert_eq!(assignment.buckets, 4);
        assert!(bucket_values(&column, &assignment).iter().all(|values| values.len() == 2));
        let (_, assignment) = assign(&[3, 2, 2], 2, 1);
        assert_eq!(assignment.buckets, 3);
    }

    /// `groups` vectors: how many buckets there are and how many rows are left when no l lists are.
    #[test]
    fn as_many_buckets_and_leftovers_as_the_vectors() {
        #[derive(serde::Deserialize)]
        struct Groups {
            sizes: std::collections::BTreeMap<String, usize>,
            l: usize,
            groups: usize,
            leftover_total: usize,
        }
        #[derive(serde::Deserialize)]
        struct Vectors {
            groups: Vec<Groups>,
        }
        let vectors: Vectors = serde_json::from_str(include_str!("../../../tests/vectors/gnf.json")).unwrap();
        assert_eq!(vectors.groups.len(), 40);
        let mut refused = 0;
        for (at, vector) in vectors.groups.iter().enumerate() {
            let sizes: Vec<usize> = vector.sizes.values().copied().collect();
            // some vectors leave rows that no bucket could take: a column that is not eligible, which is never assigned
            if sizes.iter().max().unwrap() * vector.l > sizes.iter().sum() {
                assert!(std::panic::catch_unwind(|| assign(&sizes, vector.l as u64, 0)).is_err(), "vector {at}");
                refused += 1;
                continue;
            }
            let (column, assignment) = assign(&sizes, vector.l as u64, at as u8);
            assert_eq!(assignment.buckets as usize, vector.groups, "vector {at}");
            let extra = bucket_values(&column, &assignment).iter().map(|values| values.len() - vector.l).sum::<usize>();
            assert_eq!(extra, vector.leftover_total, "vector {at}");
        }
        assert_eq!(refused, 7);
    }

    #[test]
    fn an_empty_column_has_no_buckets_and_l_1_one_a_row() {
        assert_eq!(assign(&[], 3, 1).1.buckets, 0);
        assert_eq!(assign(&[2, 1], 1, 1).1.buckets, 3);
    }

    #[test]
    fn a_cancelled_assignment_stops() {
        let control = Control::default();
        control.cancel();
        let mut stream = RandomStreams::Identity.stream("test");
        assert!(largest_l(&column(&[4, 4]), 2, &mut stream, &control).is_err());
    }

    proptest! {
        #[test]
        fn largest_l_makes_the_most_buckets_of_distinct_values(
            sizes in prop::collection::vec(0usize..40, 1..30), l in 1u64..8, key in any::<u8>()
        ) {
            let rows: usize = sizes.iter().sum();
            prop_assume!(sizes.iter().max().copied().unwrap_or(0) as u64 * l <= rows as u64);
            let (column, assignment) = assign(&sizes, l, key);
            let most = (1..=rows).rev().find(|&k| sizes.iter().map(|&n| n.min(k)).sum::<usize>() >= k * l as usize);
            prop_assert_eq!(assignment.buckets as usize, most.unwrap_or(0));
            for mut values in bucket_values(&column, &assignment) {
                let size = values.len();
                prop_assert!(size as u64 >= l && size < 2 * l as usize);
                values.sort_unstable();
                values.dedup();
                prop_assert_eq!(values.len(), size);
            }
        }
    }
}
