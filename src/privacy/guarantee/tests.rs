use proptest::prelude::*;

use std::sync::Arc;

use super::*;
use crate::microdata::taxonomy::TaxonomyBuilder;
use crate::microdata::{Arena, AttributeType, BoundTaxonomy, Domain};
use crate::publication::PriorDistribution;

fn ratio(text: &str) -> Ratio {
    text.parse().unwrap()
}

/// The table of [Jin et al. 2010, Table 3(b)]: zip codes 71000 to 74000, and the bucket {72000, 74000}.
fn zip_codes() -> (OverallCounts, Vec<(u32, u64)>) {
    (OverallCounts::new(vec![2, 2, 1, 1]), vec![(1, 1), (3, 1)])
}

fn keeps(guarantee: Guarantee) -> bool {
    let (population, bucket) = zip_codes();
    holds(guarantee, &bucket, &population)
}

#[test]
fn holds_worked_example_matches_the_paper() {
    assert!(keeps(Guarantee::LDiversity { l: 2 }) && !keeps(Guarantee::LDiversity { l: 3 }));
    assert!(keeps(Guarantee::EntropyLDiversity { l: ratio("2") }), "ln 2 holds with equality");
    assert!(!keeps(Guarantee::EntropyLDiversity { l: ratio("2.000001") }));
    assert!(!keeps(Guarantee::RecursiveLDiversity { c: ratio("1"), l: 2 }));
    assert!(keeps(Guarantee::RecursiveLDiversity { c: ratio("1.5"), l: 2 }));
    assert!(
        keeps(Guarantee::AlphaK { alpha: ratio("0.5"), k: 2 })
            && !keeps(Guarantee::AlphaK { alpha: ratio("0.5"), k: 3 })
    );
    let close = |t, distance| keeps(Guarantee::TCloseness { t: ratio(t), distance, reference: Default::default() });
    assert!(close("1/2", ValueDistance::Equal) && !close("0.499999999", ValueDistance::Equal));
    assert!(close("5/18", ValueDistance::Ordered) && !close("0.277777777", ValueDistance::Ordered));
    // the event {74000} rises from 1/6 to 1/2
    for mode in [RhoMode::Single, RhoMode::Exact] {
        assert!(!keeps(Guarantee::Rho { rho1: ratio("0.2"), rho2: ratio("0.4"), mode, reference: Default::default() }));
        assert!(keeps(Guarantee::Rho { rho1: ratio("0.1"), rho2: ratio("0.4"), mode, reference: Default::default() }));
    }
    let delta = |distance, b| {
        keeps(Guarantee::Delta {
            distance,
            b: ratio(b),
            prior: PriorDistribution::Global,
            reference: Default::default(),
        })
    };
    assert!(delta(Divergence::TotalVariation, "0.5") && !delta(Divergence::TotalVariation, "0.4"));
    assert!(delta(Divergence::Max, "1/3") && !delta(Divergence::Max, "0.33"));
    assert!(!delta(Divergence::LogRatio, "1000"), "71000 is missing from the bucket");
    // 1/2 ln (1/2 / 2/6) + 1/2 ln (1/2 / 1/6) = 0.7520...
    assert!(delta(Divergence::Kl, "0.753") && !delta(Divergence::Kl, "0.752"));
}

fn guarantees() -> impl Strategy<Value = Guarantee> {
    let small = || (1u64..12, 1u64..12).prop_map(|(a, b)| Ratio::new(a, b).unwrap());
    let share = || (1u64..12, 0u64..12).prop_map(|(a, b)| Ratio::new(a, a + b).unwrap());
    let ground =
        prop_oneof![Just(ValueDistance::Equal), Just(ValueDistance::Ordered), Just(ValueDistance::Hierarchical)];
    let mode = prop_oneof![Just(RhoMode::Single), Just(RhoMode::Exact), Just(RhoMode::Amplification)];
    let divergence = prop_oneof![
        Just(Divergence::TotalVariation),
        Just(Divergence::Max),
        Just(Divergence::Kl),
        Just(Divergence::Emd),
        Just(Divergence::LogRatio)
    ];
    prop_oneof![
        (1u64..6).prop_map(|l| Guarantee::LDiversity { l }),
        (1u64..6).prop_map(|l| Guarantee::DistinctLDiversity { l }),
        small().prop_map(|l| Guarantee::EntropyLDiversity { l }),
        (small(), 1u64..6).prop_map(|(c, l)| Guarantee::RecursiveLDiversity { c, l }),
        (share(), 1u64..6).prop_map(|(alpha, k)| Guarantee::AlphaK { alpha, k }),
        (share(), ground).prop_map(|(t, distance)| Guarantee::TCloseness {
            t,
            distance,
            reference: Default::default()
        }),
        (share(), share(), mode).prop_map(|(rho1, rho2, mode)| Guarantee::Rho {
            rho1,
            rho2,
            mode,
            reference: Default::default()
        }),
        (divergence, share()).prop_map(|(distance, b)| Guarantee::Delta {
            distance,
            b,
            prior: PriorDistribution::Global,
            reference: Default::default()
        }),
    ]
}

/// A table of buckets over six values.
fn buckets() -> impl Strategy<Value = Vec<Vec<u64>>> {
    proptest::collection::vec(proptest::collection::vec(0u64..5, 6), 1..4)
}

fn as_bucket(counts: &[u64]) -> Vec<(u32, u64)> {
    OverallCounts::new(counts.to_vec()).as_bucket()
}

/// The union of all buckets, and its six values as leaves at three depths.
fn population(counts: Vec<u64>) -> OverallCounts {
    OverallCounts::new(counts).on(ColumnAnnotations::default().along(tree(&[0, 2, 2])))
}

fn total(buckets: &[Vec<u64>]) -> Vec<u64> {
    (0..6).map(|value| buckets.iter().map(|bucket| bucket[value]).sum()).collect()
}

/// A taxonomy below `Any` of single leaves and of branches, and a column of all its leaves.
fn tree(branches: &[u32]) -> BoundTaxonomy {
    let mut growing = TaxonomyBuilder::from_root("Any");
    let mut last = 0;
    for (index, kind) in branches.iter().enumerate() {
        let node = if kind % 3 == 0 { 0 } else { last };
        // a branch below the root or below the last branch, with two leaves; or a leaf
        let label = format!("n{index:02}");
        let added = growing.add(node, Some(&label)).unwrap();
        if kind % 2 == 0 {
            growing.add(added, Some(&format!("{label}a"))).unwrap();
            growing.add(added, Some(&format!("{label}b"))).unwrap();
            last = added;
        }
    }
    let tree = Arc::new(growing.finish().unwrap());
    let mut leaves: Vec<&str> = tree.leaves().iter().filter_map(|leaf| tree.label(*leaf)).collect();
    leaves.sort_unstable();
    let mut arena = Arena::default();
    leaves.iter().for_each(|leaf| arena.push(leaf.as_bytes()));
    tree.bind(&Domain::from_sorted(AttributeType::Text, false, arena)).unwrap()
}

/// The minimal transport cost from values with excess to values with deficit, by successive cheapest paths.
///
/// A path may reverse an earlier transport where that is cheaper.
fn least_cost(gaps: &[i128], cost: impl Fn(usize, usize) -> i128) -> i128 {
    let n = gaps.len();
    let (mut supply, mut demand): (Vec<i128>, Vec<i128>) = gaps.iter().map(|gap| (*gap.max(&0), (-gap).max(0))).unzip();
    let (mut flow, mut total) = (vec![vec![0; n]; n], 0);
    while supply.iter().any(|left| *left > 0) {
        // sources are 0 to n - 1, sinks n to 2n - 1
        let mut far: Vec<Option<i128>> = supply.iter().map(|left| (*left > 0).then_some(0)).collect();
        far.resize(2 * n, None);
        let mut from = vec![usize::MAX; 2 * n];
        for _ in 0..2 * n {
            for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
                if let Some(way) =
                    far[i].map(|far| far + cost(i, j)).filter(|way| far[n + j].is_none_or(|far| *way < far))
                {
                    (far[n + j], from[n + j]) = (Some(way), i);
                }
                let back = far[n + j].map(|far| far - cost(i, j)).filter(|_| flow[i][j] > 0);
                if let Some(way) = back.filter(|way| far[i].is_none_or(|far| *way < far)) {
                    (far[i], from[i]) = (Some(way), n + j);
                }
            }
        }
        let taker = (0..n).filter(|j| demand[*j] > 0).min_by_key(|j| far[n + j].unwrap()).unwrap();
        let mut way = vec![n + taker];
        while from[way[way.len() - 1]] != usize::MAX {
            way.push(from[way[way.len() - 1]]);
        }
        let steps: Vec<(usize, usize)> = way.windows(2).map(|step| (step[1], step[0])).collect();
        let room = |(a, b): &(usize, usize)| if *a < n { i128::MAX } else { flow[*b][a - n] };
        let giver = way[way.len() - 1];
        let carried = steps.iter().map(room).min().unwrap().min(demand[taker]).min(supply[giver]);
        for (a, b) in steps {
            if a < n {
                flow[a][b - n] += carried;
                total += carried * cost(a, b - n);
            } else {
                flow[b][a - n] -= carried;
                total -= carried * cost(b, a - n);
            }
        }
        supply[giver] -= carried;
        demand[taker] -= carried;
    }
    total
}

proptest! {
    /// The hierarchical distance equals the minimal transport cost exactly.
    #[test]
    fn distances_along_a_tree_are_least_costs(
        branches in proptest::collection::vec(0u32..6, 1..6), counts in proptest::collection::vec((0u64..4, 0u64..4), 16),
    ) {
        let bound = tree(&branches);
        let tree = bound.tree();
        let values = tree.leaves().len();
        let bucket: Vec<u64> = counts[..values].iter().map(|(count, _)| *count).collect();
        let overall: Vec<u64> = counts[..values].iter().map(|(count, more)| count + more).collect();
        let population = OverallCounts::new(overall.clone()).on(ColumnAnnotations::default().along(bound.clone()));
        let (size, rows) = (bucket.iter().sum::<u64>(), population.rows());
        prop_assume!(size > 0);
        let gaps: Vec<i128> =
            bucket.iter().zip(&overall).map(|(c, o)| i128::from(c * rows) - i128::from(o * size)).collect();
        let height = |a: usize, b: usize| tree.height(tree.lowest_above(bound.leaf(a as u32), bound.leaf(b as u32)));
        let least = least_cost(&gaps, |a, b| height(a, b) as i128) as u64;
        let unit = size * rows * tree.height(0) as u64;
        let close = |t: Ratio| {
            holds(Guarantee::TCloseness { t, distance: ValueDistance::Hierarchical, reference: Default::default() }, &as_bucket(&bucket), &population)
        };
        prop_assert!(close(Ratio::new(least, unit).unwrap()));
        prop_assert!(least == 0 || !close(Ratio::new(least - 1, unit).unwrap()));
 // without a taxonomy the distance is maximal
        let bare = OverallCounts::new(overall);
        let whole = bare.as_bucket();
        let all = Guarantee::TCloseness { t: Ratio::ONE, distance: ValueDistance::Hierarchical, reference: Default::default() };
        prop_assert!(!holds(all, &whole, &bare));
    }

    #[test]
    fn what_is_stronger_implies_what_is_weaker(a in guarantees(), b in guarantees(), buckets in buckets()) {
        let population = population(total(&buckets));
        prop_assume!(population.rows() > 0);
        for bucket in buckets.iter().map(|bucket| as_bucket(bucket)).filter(|bucket| !bucket.is_empty()) {
            if implies(a, b) && holds(a, &bucket, &population) {
                prop_assert!(holds(b, &bucket, &population), "{a:?} {b:?} {bucket:?}");
            }
        }
    }

    #[test]
    fn strength_is_an_order(a in guarantees(), b in guarantees(), c in guarantees()) {
        prop_assert!(implies(a, a));
        if implies(a, b) && implies(b, c) {
            prop_assert!(implies(a, c), "{a:?} {b:?} {c:?}");
        }
    }

    /// Mixtures of buckets satisfy what every bucket satisfies, as [Jin et al. 2010] needs it.
    #[test]
    fn a_mixture_keeps_what_its_buckets_keep(guarantee in guarantees(), buckets in buckets()) {
        let population = population(total(&buckets));
        prop_assume!(population.rows() > 0);
        let filled: Vec<_> = buckets.iter().filter(|bucket| bucket.iter().any(|count| *count > 0)).collect();
        if filled.iter().all(|bucket| holds(guarantee, &as_bucket(bucket), &population)) {
            let mixture: Vec<u64> = (0..6).map(|value| filled.iter().map(|bucket| bucket[value]).sum()).collect();
            prop_assert!(holds(guarantee, &as_bucket(&mixture), &population), "{guarantee:?}");
        }
    }

    #[test]
    fn so_many_distinct_rows_suffice(guarantee in guarantees(), more in 0usize..3, counts in proptest::collection::vec(1u64..9, 24)) {
        if let Some(rows) = distinct_rows(guarantee).filter(|rows| *rows < 20) {
            let bucket: Vec<(u32, u64)> = (0..rows as u32 + more as u32).map(|code| (code, 1)).collect();
            prop_assert!(holds(guarantee, &bucket, &OverallCounts::new(counts)), "{guarantee:?} {rows}");
        }
    }

    /// Amplification implies the bound for every event, and every event implies it for single values.
    #[test]
    fn modes_are_ordered(rho1 in (1u64..9, 9u64..12), rho2 in (1u64..9, 9u64..12), buckets in buckets()) {
        let of = |(a, b)| Ratio::new(a, b).unwrap();
        let (rho1, rho2) = (of(rho1), of(rho2));
        let population = OverallCounts::new(total(&buckets));
        for bucket in buckets.iter().map(|bucket| as_bucket(bucket)).filter(|bucket| !bucket.is_empty()) {
            let keeps = |mode| holds(Guarantee::Rho { rho1, rho2, mode, reference: Default::default() }, &bucket, &population);
            prop_assert!(!keeps(RhoMode::Amplification) || keeps(RhoMode::Exact));
            prop_assert!(!keeps(RhoMode::Exact) || keeps(RhoMode::Single));
        }
    }
}
