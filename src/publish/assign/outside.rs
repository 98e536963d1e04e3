//! Buckets with excluded values: the other values are assigned first, and then each excluded one is dealt round robin.
//!
//! See `docs/spec/anatomy.md#excluded-values`.

use std::borrow::Cow;
use std::cmp::Reverse;

use super::{BucketAssignment, SensitiveCodes, largest_l};
use crate::control::{Cancelled, Control};
use crate::microdata::{Codes, ColumnAnnotations};
use crate::privacy::{self, OverallCounts};
use crate::publication::Guarantee;
use crate::random::RandomStream;

/// Assigns rows to buckets with at least `l` distinct values that are not excluded, and an equal share of each excluded value.
///
/// Larger buckets take the remainders. `None` if the other values do not allow it, or if an excluded one is too frequent in some
/// bucket.
///
/// # Errors
/// [`Cancelled`] on cancellation.
pub(super) fn insider_proof(
    values: &SensitiveCodes<'_>,
    guarantees: &[Guarantee],
    l: u64,
    stream: &mut RandomStream,
    control: &Control,
) -> Result<Option<BucketAssignment>, Cancelled> {
    let (codes, annotations) = (&*values.codes, &values.annotations);
    let mut informative: Vec<u32> = Vec::new();
    let mut excluded_value: Vec<Vec<u32>> = vec![Vec::new(); annotations.excludable().len()];
    for (row, code) in (0..).zip(codes.iter()) {
        if (row as usize).is_multiple_of(Control::STRIDE) {
            control.check()?;
        }
        match annotations.excludable().binary_search(&code) {
            Ok(at) => excluded_value[at].push(row),
            Err(_) => informative.push(row),
        }
    }
    let left = |(&count, code): (&u64, u32)| if annotations.is_excludable(code) { 0 } else { count };
    let inner = SensitiveCodes {
        codes: Cow::Owned(codes.gather(&informative)),
        counts: values.counts.iter().zip(0..).map(left).collect(),
        annotations: ColumnAnnotations::default(),
        reference: None,
    };
    let most = inner.counts.iter().copied().max().unwrap_or(0);
    if informative.is_empty() || u128::from(most) * u128::from(l) > informative.len() as u128 {
        return Ok(None);
    }
    let dealt = largest_l(inner, l, stream, control)?;
    let mut bucket_of = vec![0; codes.len()];
    let mut sizes = vec![0_u64; dealt.buckets as usize];
    for (&row, &bucket) in informative.iter().zip(&dealt.bucket_of) {
        bucket_of[row as usize] = bucket;
        sizes[bucket as usize] += 1;
    }
    excluded_value.sort_by_key(|rows| Reverse(rows.len()));
    let mut order: Vec<u32> = (0..dealt.buckets).collect();
    for rows in &mut excluded_value {
        control.check()?;
        stream.shuffle(rows);
        // the sort is stable: the order of equally large buckets is drawn
        stream.shuffle(&mut order);
        order.sort_by_key(|&bucket| Reverse(sizes[bucket as usize]));
        for (&row, &bucket) in rows.iter().zip(order.iter().cycle()) {
            bucket_of[row as usize] = bucket;
            sizes[bucket as usize] += 1;
        }
    }
    let assignment = BucketAssignment { bucket_of, buckets: dealt.buckets };
    let population = OverallCounts::new(values.counts.clone()).on(annotations.clone());
    Ok(keeps(&assignment, codes, guarantees, &population, control)?.then_some(assignment))
}

/// Whether every bucket keeps the guarantees.
fn keeps(
    assignment: &BucketAssignment,
    codes: &Codes,
    guarantees: &[Guarantee],
    population: &OverallCounts,
    control: &Control,
) -> Result<bool, Cancelled> {
    let mut cells: Vec<(u32, u32)> = assignment.bucket_of.iter().copied().zip(codes.iter()).collect();
    cells.sort_unstable();
    let (mut bucket, mut seen) = (Vec::new(), 0);
    for cells in cells.chunk_by(|a, b| a.0 == b.0) {
        seen += cells.len();
        if seen > Control::STRIDE {
            control.check()?;
            seen = 0;
        }
        bucket.clear();
        bucket.extend(cells.chunk_by(|a, b| a == b).map(|alike| (alike[0].1, alike.len() as u64)));
        if !guarantees.iter().all(|&guarantee| privacy::holds(guarantee, &bucket, population)) {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::super::assign;
    use super::*;
    use crate::microdata::{Arena, AttributeType, Column, Domain};
    use crate::publication::Ratio;
    use crate::random::{RandomStreams, ReleaseKey};

    fn column(sizes: &[usize]) -> Column {
        let mut arena = Arena::default();
        (0..sizes.len()).for_each(|value| arena.push(format!("v{value:03}").as_bytes()));
        let codes: Vec<u32> =
            sizes.iter().zip(0..).flat_map(|(&count, value)| std::iter::repeat_n(value, count)).collect();
        let domain = Arc::new(Domain::from_sorted(AttributeType::Text, false, arena));
        Column { domain, codes: Codes::collect(sizes.len(), codes.into_iter()) }
    }

    /// Number of rows of each value, by bucket.
    fn counts(column: &Column, assignment: &BucketAssignment) -> Vec<Vec<u64>> {
        let mut counts = vec![vec![0; column.domain.len()]; assignment.buckets as usize];
        for (&bucket, code) in assignment.bucket_of.iter().zip(column.codes.iter()) {
            counts[bucket as usize][code as usize] += 1;
        }
        counts
    }

    fn assigned(sizes: &[usize], excluded_value: &[u32], guarantee: Guarantee, key: u8) -> Vec<Vec<u64>> {
        let column = column(sizes);
        let mut stream = RandomStreams::Keyed(ReleaseKey::from_bytes([key; 32])).stream("test");
        let annotations = ColumnAnnotations::without(excluded_value.to_vec());
        let values = SensitiveCodes::from(&column).on(&annotations);
        let assignment = assign(values, &[guarantee], &mut stream, &Control::default()).unwrap();
        counts(&column, &assignment)
    }

    #[test]
    fn excluded_values_are_spread_over_all_buckets() {
        let buckets = assigned(&[10, 4, 4, 4, 4, 4], &[0], Guarantee::LDiversity { l: 2 }, 1);
        assert_eq!(buckets.len(), 10);
        assert!(buckets.iter().all(|bucket| bucket[0] == 1 && bucket[1..].iter().sum::<u64>() == 2));
        // without the statement every pair is a bucket, and who rules the first value out is certain of ten
        assert_eq!(assigned(&[10, 4, 4, 4, 4, 4], &[], Guarantee::LDiversity { l: 2 }, 1).len(), 15);
    }

    proptest! {
        /// Whatever is eligible is assigned, and by the words of the definition.
        #[test]
        fn every_bucket_keeps_what_was_asked_for(
            sizes in prop::collection::vec(1usize..30, 2..9), excluded_value in prop::collection::vec(0u32..9, 1..4), l in 2u64..5, key: u8
        ) {
            let excluded_value: Vec<u32> = excluded_value.into_iter().filter(|&code| (code as usize) < sizes.len()).collect();
            let out = |code: usize| excluded_value.contains(&(code as u32));
            let rows: usize = sizes.iter().sum();
            let informative: usize = (0..sizes.len()).filter(|&code| !out(code)).map(|code| sizes[code]).sum();
            prop_assume!(!excluded_value.is_empty() && informative > 0);
            let eligible = |l: u64| (0..sizes.len()).all(|code| sizes[code] as u64 * l <= if out(code) { rows } else { informative } as u64);
            prop_assume!(eligible(l));
            for guarantee in [
                Guarantee::LDiversity { l },
                Guarantee::DistinctLDiversity { l },
                Guarantee::EntropyLDiversity { l: Ratio::new(l, 1).unwrap() },
                Guarantee::AlphaK { alpha: Ratio::new(1, l).unwrap(), k: l },
            ] {
                let buckets = assigned(&sizes, &excluded_value, guarantee, key);
                prop_assert!(!buckets.is_empty());
                for bucket in buckets {
                    let size: u64 = bucket.iter().sum();
                    let rest: Vec<u64> = (0..bucket.len()).filter(|&code| !out(code)).map(|code| bucket[code]).collect();
                    let others: u64 = rest.iter().sum();
                    prop_assert!((0..bucket.len()).all(|code| !out(code) || bucket[code] * l <= size));
                    match guarantee {
                        Guarantee::DistinctLDiversity { .. } => prop_assert!(rest.iter().filter(|n| **n > 0).count() as u64 >= l),
                        Guarantee::EntropyLDiversity { .. } => {
                            let share = |n: &u64| *n as f64 / others as f64;
                            let entropy: f64 = rest.iter().filter(|n| **n > 0).map(|n| -share(n) * share(n).ln()).sum();
                            prop_assert!(entropy >= (l as f64).ln() - 1e-9);
                        }
                        _ => prop_assert!(others >= l && rest.iter().all(|n| n * l <= others)),
                    }
                }
            }
        }
    }
}
