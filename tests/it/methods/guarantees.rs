//! Every guarantee on a real table: published by anatomy, then judged from the sensitive part by definitions of this test's own.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use flate2::read::GzDecoder;
use guardian::ledger::EarlierDisclosures;
use guardian::random::{RandomStreams, ReleaseKey};
use serde_json::{Value, json};

use crate::support::independent_check::Files;
use crate::support::library::{Original, release, some_rows, table};

const SENSITIVE: &str = "education";

fn adult() -> GzDecoder<File> {
    GzDecoder::new(File::open(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/adult-7.csv.gz")).unwrap())
}

/// Per bucket, how often each value occurs; and over all of them.
struct Buckets {
    each: Vec<BTreeMap<String, f64>>,
    all: BTreeMap<String, f64>,
}

impl Buckets {
    fn read(files: &Files) -> Self {
        let mut each: BTreeMap<u32, BTreeMap<String, f64>> = BTreeMap::new();
        let mut all: BTreeMap<String, f64> = BTreeMap::new();
        let mut reader = csv::Reader::from_reader(files["t1.sa.csv"].as_slice());
        for row in reader.records() {
            let row = row.unwrap();
            *each.entry(row[0].parse().unwrap()).or_default().entry(row[1].to_owned()).or_default() += 1.0;
            *all.entry(row[1].to_owned()).or_default() += 1.0;
        }
        Self { each: each.into_values().collect(), all }
    }

    /// The worst of a measure over the buckets; each sees the shares of all values in the bucket and in the table.
    fn worst(&self, measure: impl Fn(&[(f64, f64)], f64) -> f64) -> f64 {
        let rows: f64 = self.all.values().sum();
        let of = |bucket: &BTreeMap<String, f64>| {
            let size: f64 = bucket.values().sum();
            let share =
                |(value, overall): (&String, &f64)| (bucket.get(value).copied().unwrap_or(0.0) / size, overall / rows);
            let shares: Vec<(f64, f64)> = self.all.iter().map(share).collect();
            measure(&shares, size)
        };
        self.each.iter().map(of).fold(f64::NEG_INFINITY, f64::max)
    }
}

/// The member of the manifest that states a measure, and how it follows from it.
type ReportedFigure = (&'static str, fn(f64) -> f64);

/// A guarantee, the measure that must not exceed the bound in any bucket, and where the manifest states it, or its inverse.
struct Case {
    guarantee: Value,
    measure: fn(&[(f64, f64)], f64) -> f64,
    bound: f64,
    reported: Option<ReportedFigure>,
    /// Minimal number of buckets: fewer would be of no use.
    buckets: usize,
}

fn most(shares: &[(f64, f64)]) -> f64 {
    shares.iter().map(|(share, _)| *share).fold(0.0, f64::max)
}

fn entropy(shares: &[(f64, f64)]) -> f64 {
    shares.iter().filter(|(share, _)| *share > 0.0).map(|(share, _)| -share * share.ln()).sum()
}

fn variation(shares: &[(f64, f64)], _: f64) -> f64 {
    shares.iter().map(|(share, prior)| (share - prior).abs()).sum::<f64>() / 2.0
}

/// Earth mover's distance over the order of values: what has to be carried past each step.
fn ordered(shares: &[(f64, f64)], _: f64) -> f64 {
    let steps = 1..shares.len();
    let carried = |step: usize| shares[..step].iter().map(|(share, prior)| share - prior).sum::<f64>().abs();
    steps.map(carried).sum::<f64>() / (shares.len() - 1) as f64
}

/// The likeliest event in the bucket of those that are at most 1/10 likely in the table, set by set.
fn rare_event(shares: &[(f64, f64)], _: f64) -> f64 {
    let event = |set: u32| {
        let members = shares.iter().enumerate().filter(|(index, _)| set >> index & 1 == 1);
        members.fold((0.0, 0.0), |(share, prior), (_, (s, p))| (share + s, prior + p))
    };
    let rare = (0u32..1 << shares.len()).map(event).filter(|(_, prior)| *prior <= 0.1 + 1e-12);
    rare.map(|(share, _)| share).fold(0.0, f64::max)
}

fn cases() -> Vec<Case> {
    let same: fn(f64) -> f64 = |x| x;
    vec![
        Case {
            guarantee: json!({"type": "distinct_l_diversity", "l": 3}),
            measure: |shares, _| -(shares.iter().filter(|(share, _)| *share > 0.0).count() as f64),
            bound: -3.0,
            reported: Some(("distinct_values", |x| -x)),
            buckets: 125,
        },
        Case {
            guarantee: json!({"type": "entropy_l_diversity", "l": "2.5"}),
            measure: |shares, _| -entropy(shares).exp(),
            bound: -2.5,
            reported: Some(("entropy_l", |x| -x)),
            buckets: 125,
        },
        Case {
            guarantee: json!({"type": "recursive_l_diversity", "c": "2", "l": 2}),
            measure: |shares, _| {
                let mut falling: Vec<f64> = shares.iter().map(|(share, _)| *share).collect();
                falling.sort_by(|a, b| b.total_cmp(a));
                falling[0] / falling[1..].iter().sum::<f64>()
            },
            bound: 2.0 - 1e-9,
            reported: Some(("recursive_c", same)),
            buckets: 125,
        },
        Case {
            guarantee: json!({"type": "alpha_k", "alpha": "0.6", "k": 25}),
            measure: |shares, size| f64::max(most(shares) / 0.6, 25.0 / size),
            bound: 1.0,
            reported: None,
            buckets: 25,
        },
        Case {
            guarantee: json!({"type": "t_closeness", "t": "0.15"}),
            measure: variation,
            bound: 0.15,
            reported: Some(("distance", same)),
            buckets: 125,
        },
        Case {
            guarantee: json!({"type": "t_closeness", "t": "1/9", "distance": "ordered"}),
            measure: ordered,
            bound: 1.0 / 9.0,
            reported: Some(("distance", same)),
            buckets: 125,
        },
        Case {
            guarantee: json!({"type": "rho", "rho1": "0.1", "rho2": "0.4", "mode": "exact"}),
            measure: rare_event,
            bound: 0.4,
            reported: None,
            buckets: 125,
        },
        Case {
            guarantee: json!({"type": "rho", "rho1": "0.1", "rho2": "0.4"}),
            measure: rare_event,
            bound: 0.4,
            reported: None,
            buckets: 5,
        },
        Case {
            guarantee: json!({"type": "delta", "distance": "total_variation", "b": "0.15"}),
            measure: variation,
            bound: 0.15,
            reported: Some(("distance", same)),
            buckets: 125,
        },
        Case {
            guarantee: json!({"type": "delta", "distance": "max", "b": "0.1"}),
            measure: |shares, _| shares.iter().map(|(share, prior)| (share - prior).abs()).fold(0.0, f64::max),
            bound: 0.1,
            reported: Some(("distance", same)),
            buckets: 125,
        },
        Case {
            guarantee: json!({"type": "delta", "distance": "emd", "b": "0.1"}),
            measure: ordered,
            bound: 0.1,
            reported: Some(("distance", same)),
            buckets: 125,
        },
        Case {
            guarantee: json!({"type": "delta", "distance": "kl", "b": "0.1"}),
            measure: |shares, _| {
                let present = shares.iter().filter(|(share, _)| *share > 0.0);
                present.map(|(share, prior)| share * (share / prior).ln()).sum()
            },
            bound: 0.1,
            reported: Some(("distance", same)),
            buckets: 125,
        },
        Case {
            guarantee: json!({"type": "delta", "distance": "log_ratio", "b": "0.5"}),
            measure: |shares, _| shares.iter().map(|(share, prior)| (share / prior).ln().abs()).fold(0.0, f64::max),
            bound: 0.5,
            reported: Some(("distance", same)),
            buckets: 5,
        },
    ]
}

#[test]
fn guarantees_hold_in_all_buckets_with_exact_figures() {
    let input = Original::new(table(&some_rows(adult(), 4)[..]));
    for (number, Case { guarantee, measure, bound, reported, buckets }) in (1u8..).zip(cases()) {
        let document = json!({
            "attributes": {"age": {"publish": true}, "sex": {"publish": true}}, "unlisted": "drop",
            "method": {"type": "anatomy", "sensitive": SENSITIVE, "guarantee": guarantee},
        });
        let job = input.job(&document).unwrap_or_else(|problem| panic!("{guarantee}: {problem:?}"));
        let streams = RandomStreams::Keyed(ReleaseKey::from_bytes([number; 32]));
        let (released, files) = release(&job, &EarlierDisclosures::default(), &streams).unwrap();
        let read = Buckets::read(&files.0);
        let worst = read.worst(measure);
        println!("{guarantee}: {} buckets, worst {worst}", read.each.len());
        assert!(worst <= bound + 1e-9, "{guarantee}: {worst} in some bucket");
        assert!(read.each.len() >= buckets, "{guarantee}: only {} buckets", read.each.len());
        let manifest = serde_json::to_value(&released.manifest).unwrap();
        let achieved = &manifest["rules"][0]["achieved"];
        let smallest = read.each.iter().map(|bucket| bucket.values().sum::<f64>()).fold(f64::INFINITY, f64::min);
        assert_eq!(achieved["smallest_bucket"].as_f64(), Some(smallest), "{guarantee}");
        let posterior = read.worst(|shares, _| most(shares));
        let share = &achieved["worst_posterior"];
        let share = share["count"].as_f64().unwrap() / share["of"].as_f64().unwrap();
        assert!((share - posterior).abs() < 1e-12, "{guarantee}: {share} {posterior}");
        if let Some((name, inverse)) = reported {
            let figure = achieved[name].as_f64().unwrap_or_else(|| panic!("{guarantee}: {achieved}"));
            assert!((figure - inverse(worst)).abs() < 1e-9, "{guarantee}: {figure} is reported, {worst} found");
        }
    }
}
