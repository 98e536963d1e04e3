use proptest::prelude::*;

use super::*;
use crate::publication::Prior;

fn ratio(text: &str) -> Ratio {
    text.parse().unwrap()
}

/// Table 3(b) of versatile publishing: zip codes 71000 to 74000, and the bucket {72000, 74000}.
fn zip_codes() -> (Population, Vec<(u32, u64)>) {
    (Population::new(vec![2, 2, 1, 1]), vec![(1, 1), (3, 1)])
}

fn keeps(guarantee: Guarantee) -> bool {
    let (population, bucket) = zip_codes();
    holds(guarantee, &bucket, &population)
}

#[test]
fn the_worked_example_comes_out() {
    assert!(keeps(Guarantee::LDiversity { l: 2 }) && !keeps(Guarantee::LDiversity { l: 3 }));
    assert!(keeps(Guarantee::EntropyLDiversity { l: ratio("2") }), "ln 2 holds with equality");
    assert!(!keeps(Guarantee::EntropyLDiversity { l: ratio("2.000001") }));
    assert!(!keeps(Guarantee::RecursiveLDiversity { c: ratio("1"), l: 2 }));
    assert!(keeps(Guarantee::RecursiveLDiversity { c: ratio("1.5"), l: 2 }));
    assert!(
        keeps(Guarantee::AlphaK { alpha: ratio("0.5"), k: 2 })
            && !keeps(Guarantee::AlphaK { alpha: ratio("0.5"), k: 3 })
    );
    let close = |t, distance| keeps(Guarantee::TCloseness { t: ratio(t), distance });
    assert!(close("1/2", Ground::Equal) && !close("0.499999999", Ground::Equal));
    assert!(close("5/18", Ground::Ordered) && !close("0.277777777", Ground::Ordered));
    // the event {74000} goes from 1/6 to 1/2
    for mode in [RhoMode::Single, RhoMode::Exact] {
        assert!(!keeps(Guarantee::Rho { rho1: ratio("0.2"), rho2: ratio("0.4"), mode }));
        assert!(keeps(Guarantee::Rho { rho1: ratio("0.1"), rho2: ratio("0.4"), mode }));
    }
    let delta = |distance, b| keeps(Guarantee::Delta { distance, b: ratio(b), prior: Prior::Global });
    assert!(delta(Divergence::TotalVariation, "0.5") && !delta(Divergence::TotalVariation, "0.4"));
    assert!(delta(Divergence::Max, "1/3") && !delta(Divergence::Max, "0.33"));
    assert!(!delta(Divergence::LogRatio, "1000"), "71000 is missing from the bucket");
    // 1/2 ln (1/2 / 2/6) + 1/2 ln (1/2 / 1/6) = 0.7520...
    assert!(delta(Divergence::Kl, "0.753") && !delta(Divergence::Kl, "0.752"));
}

fn guarantees() -> impl Strategy<Value = Guarantee> {
    let small = || (1u64..12, 1u64..12).prop_map(|(a, b)| Ratio::new(a, b).unwrap());
    let share = || (1u64..12, 0u64..12).prop_map(|(a, b)| Ratio::new(a, a + b).unwrap());
    let ground = prop_oneof![Just(Ground::Equal), Just(Ground::Ordered)];
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
        (share(), ground).prop_map(|(t, distance)| Guarantee::TCloseness { t, distance }),
        (share(), share(), mode).prop_map(|(rho1, rho2, mode)| Guarantee::Rho { rho1, rho2, mode }),
        (divergence, share()).prop_map(|(distance, b)| Guarantee::Delta { distance, b, prior: Prior::Global }),
    ]
}

/// A table of buckets over six values.
fn buckets() -> impl Strategy<Value = Vec<Vec<u64>>> {
    proptest::collection::vec(proptest::collection::vec(0u64..5, 6), 1..4)
}

fn as_bucket(counts: &[u64]) -> Vec<(u32, u64)> {
    Population::new(counts.to_vec()).as_bucket()
}

fn total(buckets: &[Vec<u64>]) -> Vec<u64> {
    (0..6).map(|value| buckets.iter().map(|bucket| bucket[value]).sum()).collect()
}

proptest! {
    #[test]
    fn what_is_stronger_implies_what_is_weaker(a in guarantees(), b in guarantees(), buckets in buckets()) {
        let population = Population::new(total(&buckets));
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

    /// Versatile publishing needs it: what every bucket keeps, every mixture of buckets keeps.
    #[test]
    fn a_mixture_keeps_what_its_buckets_keep(guarantee in guarantees(), buckets in buckets()) {
        let population = Population::new(total(&buckets));
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
            prop_assert!(holds(guarantee, &bucket, &Population::new(counts)), "{guarantee:?} {rows}");
        }
    }

    /// Amplification is sufficient for every event, and every event for single values.
    #[test]
    fn modes_are_ordered(rho1 in (1u64..9, 9u64..12), rho2 in (1u64..9, 9u64..12), buckets in buckets()) {
        let of = |(a, b)| Ratio::new(a, b).unwrap();
        let (rho1, rho2) = (of(rho1), of(rho2));
        let population = Population::new(total(&buckets));
        for bucket in buckets.iter().map(|bucket| as_bucket(bucket)).filter(|bucket| !bucket.is_empty()) {
            let keeps = |mode| holds(Guarantee::Rho { rho1, rho2, mode }, &bucket, &population);
            prop_assert!(!keeps(RhoMode::Amplification) || keeps(RhoMode::Exact));
            prop_assert!(!keeps(RhoMode::Exact) || keeps(RhoMode::Single));
        }
    }
}
