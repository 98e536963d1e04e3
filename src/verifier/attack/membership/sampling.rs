use ahash::AHashMap;

use super::join::{NONE, PartJoin};
use super::part_tuples::PartTuples;
use super::report::{MembershipError, TupleEstimate, class};
use crate::control::Control;
use crate::microdata::AttrSet;
use crate::verifier::definition::join_tree::tree;

/// Number of sampled tuples.
const SAMPLED_TUPLES: u32 = 20_000;

/// The tuples of a part in one bucket, by their values of the attributes shared with earlier parts.
struct DrawnTuples {
    /// Tuples with cumulated weights; the weight of a tuple is its number of rows in the join.
    of_shared: AHashMap<Vec<u32>, Vec<(u32, f64)>>,
}

/// Estimates the number of tuples in the union of all buckets, by class of matching buckets.
///
/// The estimator of Karp and Luby draws a bucket by its number of joined combinations, then one combination of it. It
/// counts the reciprocal of the number of combinations, over all buckets, that show the same values. Messages along
/// the join tree of the parts, from its leaves, give the numbers of combinations.
pub(in crate::verifier) fn drawn(
    joined: &PartJoin,
    buckets: usize,
    control: &Control,
) -> Result<[TupleEstimate; 3], MembershipError> {
    let sets: Vec<AttrSet> = joined.parts.iter().map(PartTuples::set).collect();
    let apart = (0..sets.len()).all(|a| (0..a).all(|b| !sets[a].meets(sets[b])));
    // parts without shared attributes keep their order
    let order = match apart {
        true => (0..sets.len()).map(|at| (at, AttrSet::EMPTY)).collect(),
        false => tree(&sets).ok_or(MembershipError::Circle)?,
    };
    let mut all_drawn: Vec<Vec<DrawnTuples>> = Vec::with_capacity(buckets);
    let mut before = 0.0;
    let mut sums: Vec<f64> = Vec::with_capacity(buckets);
    for bucket in 0..buckets {
        control.check()?;
        let (of_parts, size) = combinations(joined, &order, bucket);
        before += size;
        sums.push(before);
        all_drawn.push(of_parts);
    }
    let all = before;
    let mut random = SplitMix(0x5eed);
    let (mut sum, mut squares) = ([0.0; 3], [0.0; 3]);
    for draw in 0..SAMPLED_TUPLES {
        if draw % 256 == 0 {
            control.check()?;
        }
        let point = random.share() * all;
        let bucket = sums.partition_point(|sum| *sum <= point).min(buckets.saturating_sub(1));
        let mut values = vec![NONE; joined.width];
        for (&(at, shared), drawn) in order.iter().zip(&all_drawn[bucket]) {
            let wanted: Vec<u32> = shared.iter().map(|attr| values[attr.index()]).collect();
            // the values drawn so far agree with at least one tuple
            let Some(tuples) = drawn.of_shared.get(&wanted) else { continue };
            let point = random.share() * tuples.last().map_or(0.0, |(_, sum)| *sum);
            let chosen = tuples.partition_point(|(_, sum)| *sum <= point).min(tuples.len() - 1);
            let part = &joined.parts[at];
            for (attr, value) in part.attributes.iter().zip(&part.tuples[tuples[chosen].0 as usize]) {
                values[attr.index()] = *value;
            }
        }
        let states = joined.states(&values);
        let found: u32 = states.iter().flat_map(|(_, left)| left).map(|word| word.count_ones()).sum();
        let share = 1.0 / f64::from(found.max(1));
        let class = class(joined.buckets(&states));
        sum[class] += share;
        squares[class] += share * share;
    }
    let draws = f64::from(SAMPLED_TUPLES);
    Ok([0, 1, 2].map(|class| {
        let mean: f64 = sum[class] / draws;
        let variance: f64 = (squares[class] / draws - mean * mean).max(0.0);
        TupleEstimate { value: all * mean, standard_error: all * (variance / draws).sqrt(), exact: false }
    }))
}

/// The tuples of a bucket, part by part in join order, and the number of joined combinations.
fn combinations(joined: &PartJoin, order: &[(usize, AttrSet)], bucket: usize) -> (Vec<DrawnTuples>, f64) {
    // messages to the part at each index of the order: combinations of the subtree, by the shared values
    let mut messages: Vec<(usize, AttrSet, AHashMap<Vec<u32>, f64>)> = Vec::new();
    let mut of_parts: Vec<DrawnTuples> = Vec::new();
    let mut size = 1.0;
    for (place, &(at, shared)) in order.iter().enumerate().rev() {
        let part = &joined.parts[at];
        let (mut of_shared, mut sums) = (AHashMap::<Vec<u32>, Vec<(u32, f64)>>::new(), AHashMap::new());
        for &tuple in &part.of_bucket[bucket] {
            let incoming = messages.iter().filter(|(on, ..)| *on == place);
            let weight: f64 =
                incoming.map(|(_, of, sums)| sums.get(&part.within(tuple, *of)).copied().unwrap_or(0.0)).product();
            let key = part.within(tuple, shared);
            let sum = sums.entry(key.clone()).or_insert(0.0);
            *sum += weight;
            of_shared.entry(key).or_default().push((tuple, *sum));
        }
        of_parts.push(DrawnTuples { of_shared });
        // the part sends its message to the first part that holds its shared attributes; without any it is
        // independent
        let on = order[..place].iter().position(|(before, _)| shared.is_subset(joined.parts[*before].set()));
        match on.filter(|_| !shared.is_empty()) {
            Some(on) => messages.push((on, shared, sums)),
            None => size *= sums.values().sum::<f64>(),
        }
    }
    of_parts.reverse();
    (of_parts, size)
}

/// Deterministic generator, so that equal inputs give equal answers.
struct SplitMix(u64);

impl SplitMix {
    /// The next number, at least 0 and below 1.
    fn share(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}
