//! PAM, partitioning around medoids, with the tie-breaks of the specification.
//!
//! The tie-breaks decide the published columns. The first medoid has the smallest sum of distances, and each next one costs
//! least. Then the best of all swaps is made while it gains anything. The lowest index wins every tie. The `kmedoids` crate
//! breaks ties by its search order, and its licence is the GPL.
//!
//! # Citations
//! - [Kaufman and Rousseeuw 1990]

/// Smallest gain of a swap.
const MIN_SWAP_GAIN: f64 = 1e-12;

/// Clusters `0..distances.len()` around `medoids` members, medoids rising. Sums follow the order of members.
///
/// The caller has checked that there is at least one medoid and not more than members.
pub(super) fn cluster(distances: &[Vec<f64>], medoids: usize) -> Vec<Vec<usize>> {
    let members = distances.len();
    let mut chosen = build(distances, medoids);
    let cost = |chosen: &[usize]| -> f64 { (0..members).map(|i| nearest(distances, chosen, i).1).sum() };
    let mut current = cost(&chosen);
    while let Some((cost, out, into)) =
        best_swap(distances, &chosen).filter(|(cost, ..)| *cost < current - MIN_SWAP_GAIN)
    {
        current = cost;
        chosen[out] = into;
        chosen.sort_unstable();
    }
    chosen.sort_unstable();
    let mut clusters = vec![Vec::new(); chosen.len()];
    for member in 0..members {
        let at = chosen.binary_search(&member).unwrap_or_else(|_| nearest(distances, &chosen, member).0);
        clusters[at].push(member);
    }
    clusters
}

/// Position of the first nearest medoid, and its distance.
fn nearest(distances: &[Vec<f64>], chosen: &[usize], member: usize) -> (usize, f64) {
    let of = chosen.iter().map(|&medoid| distances[member][medoid]).enumerate();
    of.fold((0, f64::INFINITY), |best, next| if next.1 < best.1 { next } else { best })
}

fn build(distances: &[Vec<f64>], medoids: usize) -> Vec<usize> {
    let members = distances.len();
    let mut chosen = Vec::with_capacity(medoids);
    let mut reach = vec![f64::INFINITY; members];
    while chosen.len() < medoids {
        let cost = |new: usize| -> f64 { (0..members).map(|i| reach[i].min(distances[i][new])).sum() };
        let candidates = (0..members).filter(|new| !chosen.contains(new)).map(|new| (cost(new), new));
        let Some((_, new)) = candidates.reduce(|best, next| if next.0 < best.0 { next } else { best }) else { break };
        chosen.push(new);
        (0..members).for_each(|i| reach[i] = reach[i].min(distances[i][new]));
    }
    chosen.sort_unstable();
    chosen
}

/// The cheapest swap: `(cost, position of the old medoid, new member)`.
fn best_swap(distances: &[Vec<f64>], chosen: &[usize]) -> Option<(f64, usize, usize)> {
    let members = distances.len();
    let mut best: Option<(f64, usize, usize)> = None;
    for out in 0..chosen.len() {
        // distances of members from the remaining medoids
        let others: Vec<usize> = chosen.iter().copied().filter(|medoid| *medoid != chosen[out]).collect();
        let reach: Vec<f64> = (0..members).map(|i| nearest(distances, &others, i).1).collect();
        for into in (0..members).filter(|into| !chosen.contains(into)) {
            let cost = (0..members).map(|i| reach[i].min(distances[i][into])).sum();
            if best.is_none_or(|(least, ..)| cost < least) {
                best = Some((cost, out, into));
            }
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reference implementation: costs are recomputed, and tuples compared.
    fn naive(distances: &[Vec<f64>], medoids: usize) -> Vec<Vec<usize>> {
        let n = distances.len();
        let cost = |of: &[usize]| -> f64 {
            (0..n).map(|i| of.iter().map(|&m| distances[i][m]).fold(f64::INFINITY, f64::min)).sum()
        };
        let order = |a: &(f64, Vec<usize>), b: &(f64, Vec<usize>)| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1));
        let mut chosen: Vec<usize> = Vec::new();
        while chosen.len() < medoids {
            let grown = |j| [&chosen[..], &[j]].concat();
            let next = (0..n).filter(|j| !chosen.contains(j)).map(|j| (cost(&grown(j)), vec![j])).min_by(order);
            chosen.push(next.unwrap().1[0]);
        }
        let mut current = cost(&chosen);
        loop {
            chosen.sort_unstable();
            let swapped = |m: usize, h: usize| {
                let mut swapped: Vec<usize> = chosen.iter().copied().filter(|&x| x != m).collect();
                swapped.push(h);
                swapped
            };
            let all = chosen.iter().flat_map(|&m| (0..n).map(move |h| (m, h))).filter(|(_, h)| !chosen.contains(h));
            let best = all.map(|(m, h)| (cost(&swapped(m, h)), vec![m, h])).min_by(order);
            match best {
                Some((cost, swap)) if cost < current - MIN_SWAP_GAIN => {
                    current = cost;
                    chosen = swapped(swap[0], swap[1]);
                }
                _ => break,
            }
        }
        let mut clusters = vec![Vec::new(); medoids];
        for (i, from) in distances.iter().enumerate() {
            let rank = |&at: &usize| (chosen[at] != i, from[chosen[at]]);
            let at = (0..medoids).min_by(|a, b| rank(a).0.cmp(&rank(b).0).then(rank(a).1.total_cmp(&rank(b).1)));
            clusters[at.unwrap()].push(i);
        }
        clusters
    }

    proptest! {
        #[test]
        fn it_is_the_oracle(
            upper in prop::collection::vec(0u32..6, 36),
            (members, medoids) in (1usize..9).prop_flat_map(|members| (Just(members), 1..=members)),
        ) {
            // eighths are exact, so that equal costs are equal
            let at = |a: usize, b: usize| if a == b { 0.0 } else { f64::from(upper[a.min(b) * 4 + a.max(b) / 2]) / 8.0 };
            let distances: Vec<Vec<f64>> = (0..members).map(|a| (0..members).map(|b| at(a, b)).collect()).collect();
            prop_assert_eq!(cluster(&distances, medoids), naive(&distances, medoids));
        }
    }
}
