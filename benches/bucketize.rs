//! Buckets by thresholds: `cargo bench --bench bucketize`. Half a million rows of fifty values, as frequent as in Zipf's law, with a
//! threshold of eight times the share and 0.02. Prints what the searches lose; times are those of the machine.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a program that measures")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use guardian::control::Control;
use guardian::microdata::{Arena, AttributeType, Codes, Domain};
use guardian::publication::{Ratio, Thresholds};
use guardian::publish::bucketize::{
    FilledBuckets, MoveOrder, MultiSizeSearch, Pruning, ValueThreshold, kinds, loss, place, shares, two_sizes,
};
use guardian::random::{RandomStreams, ReleaseKey};

const ROWS: u64 = 500_000;
const VALUES: usize = 50;
const SIZES: (u64, u64) = (2, 50);

/// The instance of the paper's largest experiment, restored.
fn zipf() -> (Vec<u64>, Vec<ValueThreshold>) {
    let weight: f64 = (1..=VALUES).map(|rank| 1.0 / rank as f64).sum();
    let mut counts: Vec<u64> =
        (1..=VALUES).map(|rank| ((ROWS as f64 / rank as f64 / weight) as u64).max(900)).collect();
    let others: u64 = counts[1..].iter().sum();
    counts[0] = ROWS - others;
    let mut arena = Arena::default();
    (0..VALUES).for_each(|value| arena.push(format!("v{value:02}").as_bytes()));
    let domain = Domain::from_sorted(AttributeType::Text, false, arena);
    let ratio = |text: &str| text.parse::<Ratio>().unwrap();
    let linear = Thresholds::Linear { theta: ratio("8"), c: ratio("0.02"), overrides: Default::default() };
    let shares = shares(&linear, &domain, &counts).unwrap();
    (counts, shares)
}

fn searches(c: &mut Criterion) {
    let (counts, shares) = zipf();
    let kinds = kinds(&counts, &shares);
    let control = Control::default();
    let two = |pruning| two_sizes(&kinds, SIZES.0, SIZES.1, pruning, &control).unwrap().unwrap();
    println!("two sizes lose {}", loss(&two(Pruning::Full).setting()));
    let mut group = c.benchmark_group("two_sizes_500k_50_values_2_to_50");
    group.sample_size(10).measurement_time(Duration::from_secs(5));
    group.bench_function("full_pruning", |b| b.iter(|| black_box(two(Pruning::Full))));
    group.bench_function("loss_pruning", |b| b.iter(|| black_box(two(Pruning::Loss))));
    group.bench_function("no_pruning", |b| b.iter(|| black_box(two(Pruning::None))));
    group.finish();

    let multi =
        MultiSizeSearch { shares: &shares, m: SIZES.0, most: SIZES.1, order: MoveOrder::Index, control: &control };
    let filled = multi.search(counts.clone()).unwrap().unwrap();
    println!("many sizes by halves lose {}", FilledBuckets::loss(&filled));
    let (best, bound) = multi.best(&counts).unwrap();
    println!("many sizes lose {}, and none less than {bound:?}", FilledBuckets::loss(&best.unwrap()));
    let mut group = c.benchmark_group("multi_500k_50_values_2_to_50");
    group.sample_size(10);
    group.bench_function("search", |b| b.iter(|| black_box(multi.search(counts.clone()).unwrap())));
    group.bench_function("best", |b| b.iter(|| black_box(multi.best(&counts).unwrap())));
    group.finish();
}

fn assignment(c: &mut Criterion) {
    let (counts, shares) = zipf();
    let control = Control::default();
    let multi =
        MultiSizeSearch { shares: &shares, m: SIZES.0, most: SIZES.1, order: MoveOrder::Falling, control: &control };
    let filled: Vec<FilledBuckets> = multi.search(counts.clone()).unwrap().unwrap();
    let rows: Vec<u32> =
        (0..).zip(&counts).flat_map(|(code, &count)| std::iter::repeat_n(code, count as usize)).collect();
    let codes = Arc::new(Codes::collect(VALUES, rows.into_iter()));
    let streams = RandomStreams::Keyed(ReleaseKey::from_bytes([7; 32]));
    let mut group = c.benchmark_group("assignment");
    group.sample_size(10).throughput(Throughput::Elements(ROWS));
    group.bench_function("rows", |b| {
        b.iter(|| black_box(place(&codes, VALUES, &filled, &mut streams.stream("bench"), &control).unwrap()));
    });
    group.finish();
}

criterion_group!(benches, searches, assignment);
criterion_main!(benches);
