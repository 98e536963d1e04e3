//! Largest-l: buckets of at least l tuples with pairwise distinct sensitive values, in O(n).
//!
//! Repeatedly takes one tuple from each of the l largest lists of equal sensitive values. No assignment makes more buckets.
//! Counting keeps the order of values by list size, without a heap.
//!
//! # Citations
//! - [Xiao and Tao 2006, section 4], the algorithm.
//! - [Ye et al. 2009, Theorem 1 and Corollary 1], the number of buckets, and the residue.

use std::ops::Range;

use super::SensitiveCodes;
use super::value_lists::ValueLists;
use crate::control::{Cancelled, Control};
use crate::random::RandomStream;

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
    let most = values.counts.iter().copied().max().unwrap_or(0);
    assert!(l > 0 && u128::from(most) * u128::from(l) <= rows as u128, "the values are not eligible");
    let mut assignment = BucketAssignment { bucket_of: vec![0; rows], buckets: 0 };
    if rows == 0 {
        return Ok(assignment);
    }
    let l = l as usize; // at most the number of rows, by eligibility
    let mut lists = ValueLists::draw(&values, stream, control)?;
    let mut order = SizeOrder::new(&lists.sizes, most as usize);
    let mut since_check = 0;
    while order.left() >= l {
        let chosen = order.draw_largest(l, &lists.sizes, stream);
        for place in (0..chosen.larger).chain(chosen.tied) {
            let value = order.values[place] as usize;
            order.at_least[lists.sizes[value]] -= 1;
            let row = lists.take(value, |left| choose(assignment.buckets, left));
            assignment.bucket_of[row as usize] = assignment.buckets;
        }
        assignment.buckets += 1;
        since_check += l;
        if since_check >= Control::STRIDE {
            control.advance(since_check as u64)?;
            since_check = 0;
        }
    }
    place_residue(&lists, &mut assignment, stream);
    control.check()?;
    Ok(assignment)
}

/// Values by the number of their rows that are left.
struct SizeOrder {
    /// Values, those with most rows first.
    values: Vec<u32>,
    /// Number of values with at least k rows, for each k: their positions in `values` are `0..at_least[k]`.
    at_least: Vec<usize>,
}

/// Positions of the values that give a row to the next bucket.
struct LargestValues {
    /// Values with more rows than the last one that is chosen: the positions up to here.
    larger: usize,
    /// Values with as many rows as the last one.
    tied: Range<usize>,
}

impl SizeOrder {
    fn new(sizes: &[usize], most: usize) -> Self {
        let mut values: Vec<u32> = (0..sizes.len() as u32).collect();
        values.sort_by_key(|&value| std::cmp::Reverse(sizes[value as usize]));
        let mut at_least = vec![0; most + 2];
        for &count in sizes {
            at_least[count] += 1;
        }
        for k in (0..most).rev() {
            at_least[k] += at_least[k + 1];
        }
        Self { values, at_least }
    }

    /// Number of values with rows.
    fn left(&self) -> usize {
        self.at_least[1]
    }

    /// The `l` values with most rows; `stream` chooses among equally frequent ones.
    ///
    /// The chosen ones of these move to the end of their block, so that the values stay sorted when each gives a row.
    fn draw_largest(&mut self, l: usize, sizes: &[usize], stream: &mut RandomStream) -> LargestValues {
        let least = sizes[self.values[l - 1] as usize];
        let (block, end) = (self.at_least[least + 1], self.at_least[least]);
        let wanted = l - block;
        let mut tail = end;
        while end - tail < wanted {
            if tail - block > wanted - (end - tail) {
                let chosen = block + stream.below((tail - block) as u32) as usize;
                self.values.swap(chosen, tail - 1);
            }
            tail -= 1;
        }
        LargestValues { larger: block, tied: tail..end }
    }
}

/// Puts each leftover row into a random bucket without its value. There are at most l - 1 of them, of distinct values.
fn place_residue(lists: &ValueLists, assignment: &mut BucketAssignment, stream: &mut RandomStream) {
    for value in 0..lists.sizes.len() {
        let limit = if value + 1 < lists.sizes.len() { lists.start(value + 1) } else { lists.rows.len() };
        for rest in (lists.start(value)..lists.ends[value]).rev() {
            let mut holds_value = vec![false; assignment.buckets as usize];
            for &row in &lists.rows[rest + 1..limit] {
                holds_value[assignment.bucket_of[row as usize] as usize] = true;
            }
            let lacking: Vec<u32> = (0..assignment.buckets).filter(|&bucket| !holds_value[bucket as usize]).collect();
            let chosen = lacking[stream.below(lacking.len() as u32) as usize];
            assignment.bucket_of[lists.rows[rest] as usize] = chosen;
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
