//! Dealing: buckets that resemble the whole table, for guarantees that no bucket of distinct values keeps.
//!
//! Rows are sorted by sensitive value and dealt like cards: row i goes to bucket i mod K. So the counts of a value differ by at
//! most one between buckets. For distances along a taxonomy, values are sorted by its leaves, so that each bucket has its share
//! of every branch.
//!
//! See `docs/spec/anatomy.md#deal`.

use super::value_lists::ValueLists;
use super::{BucketAssignment, SensitiveCodes};
use crate::control::{Cancelled, Control};
use crate::privacy::{self, OverallCounts};
use crate::publication::{Guarantee, ValueDistance};
use crate::random::RandomStream;

/// Deals the rows into as many buckets as a search finds to keep all of `guarantees`, at most one per `fewest` rows.
///
/// `stream` decides which of the rows with equal value goes where. The number of buckets depends on the counts of values alone.
///
/// The caller has checked eligibility: the whole table as one bucket keeps the guarantees.
///
/// # Errors
/// [`Cancelled`] on cancellation.
pub(super) fn deal(
    values: &SensitiveCodes<'_>,
    guarantees: &[Guarantee],
    fewest: u64,
    stream: &mut RandomStream,
    control: &Control,
) -> Result<BucketAssignment, Cancelled> {
    let rows = values.codes.len();
    let lists = ValueLists::draw(values, stream, control)?;
    let order = order(values, guarantees);
    let of_value = |&code: &u32| std::iter::repeat_n(code, lists.sizes[code as usize]);
    let sorted: Vec<u32> = order.iter().flat_map(of_value).collect();
    let lists: Vec<u32> = order.iter().flat_map(|&code| lists.left(code as usize)).copied().collect();
    let population =
        OverallCounts::new(values.reference.as_ref().unwrap_or(&values.counts).clone()).on(values.annotations.clone());
    let trial = DealTrial { sorted: &sorted, guarantees, population: &population, control };

    // the predicate is not monotone: the search finds a good number of buckets, not the best
    let (mut kept, mut broken) = (1, rows / usize::try_from(fewest.max(2)).unwrap_or(usize::MAX) + 1);
    while broken - kept.min(broken) > 1 {
        let middle = kept + (broken - kept) / 2;
        if trial.keeps(middle)? { kept = middle } else { broken = middle }
    }
    let mut bucket_of = vec![0; rows];
    for (chunk, first) in lists.chunks(Control::STRIDE).zip((0..).step_by(Control::STRIDE)) {
        control.advance(chunk.len() as u64)?;
        for (&row, position) in chunk.iter().zip(first..) {
            bucket_of[row as usize] = (position % kept) as u32;
        }
    }
    Ok(BucketAssignment { bucket_of, buckets: if rows == 0 { 0 } else { kept as u32 } })
}

/// Codes in the order of dealing.
fn order(values: &SensitiveCodes<'_>, guarantees: &[Guarantee]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..values.counts.len() as u32).collect();
    let along = |g: &Guarantee| matches!(g, Guarantee::TCloseness { distance: ValueDistance::Hierarchical, .. });
    if let Some(taxonomy) = values.annotations.taxonomy().filter(|_| guarantees.iter().any(along)) {
        order.sort_by_key(|code| taxonomy.leaf(*code));
    }
    order
}

struct DealTrial<'a> {
    sorted: &'a [u32],
    guarantees: &'a [Guarantee],
    population: &'a OverallCounts,
    control: &'a Control,
}

impl DealTrial<'_> {
    /// Whether all buckets keep the guarantees if there are this many.
    fn keeps(&self, buckets: usize) -> Result<bool, Cancelled> {
        let (mut bucket, mut previous) = (Vec::new(), Vec::new());
        for first in 0..buckets {
            if first % (Control::STRIDE >> 6) == 0 {
                self.control.check()?;
            }
            bucket.clear();
            for &code in self.sorted.iter().skip(first).step_by(buckets) {
                match bucket.last_mut() {
                    Some((last, count)) if *last == code => *count += 1,
                    _ => bucket.push((code, 1)),
                }
            }
            // a value is at one place of the order
            bucket.sort_unstable();
            // neighbours are often equal
            if bucket != previous {
                if !self.guarantees.iter().all(|&g| privacy::holds(g, &bucket, self.population)) {
                    return Ok(false);
                }
                std::mem::swap(&mut bucket, &mut previous);
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::microdata::{Arena, AttributeType, Codes, Column, Domain};
    use crate::publication::{Ratio, ValueDistance};
    use crate::random::{RandomStreams, ReleaseKey};

    fn column(codes: &[u32]) -> Column {
        let mut arena = Arena::default();
        (0..6).for_each(|code| arena.push(format!("v{code}").as_bytes()));
        let domain = Arc::new(Domain::from_sorted(AttributeType::Text, false, arena));
        Column { domain, codes: Codes::collect(6, codes.iter().copied()) }
    }

    proptest! {
        #[test]
        fn every_bucket_keeps_the_guarantees(mut codes in proptest::collection::vec(0u32..6, 1..60), t in 1u64..9, seed: u8) {
            // every code below the largest occurs
            codes.extend(0..6);
            let column = column(&codes);
            let guarantees =
                [Guarantee::TCloseness { t: Ratio::new(t, 10).unwrap(), distance: ValueDistance::Equal, reference: Default::default() }];
            let streams = RandomStreams::Keyed(ReleaseKey::from_bytes([seed; 32]));
            let dealt = deal(&SensitiveCodes::from(&column), &guarantees, 2, &mut streams.stream("test"), &Control::default()).unwrap();
            let population = OverallCounts::new(column.counts());
            let mut counts = vec![vec![0u64; 6]; dealt.buckets as usize];
            for (&bucket, &code) in dealt.bucket_of.iter().zip(&codes) {
                counts[bucket as usize][code as usize] += 1;
            }
            for counts in &counts {
                let bucket = OverallCounts::new(counts.clone()).as_bucket();
                prop_assert!(privacy::holds(guarantees[0], &bucket, &population));
                for (&here, &overall) in counts.iter().zip(population.counts()) {
                    let even = overall / u64::from(dealt.buckets);
                    prop_assert!(here == even || here == even + 1);
                }
            }
            prop_assert!(t < 8 || dealt.buckets > 1, "a loose bound needs no single bucket");
        }
    }
}
