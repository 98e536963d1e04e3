//! Discovery of dependencies: `cargo bench --bench discovery`. On a table with planted dependencies, made here, the same every time.
#![expect(clippy::unwrap_used, reason = "a program that measures")]

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use guardian::control::Control;
use guardian::microdata::{Arena, AttributeType, Codes, Column, Domain, Table};
use guardian::privacy::{DiscoveryOptions, DiscoveryScope, discover_dependencies};

/// Domain sizes of the random columns.
const VALUES: [u32; 11] = [2, 3, 5, 10, 30, 100, 300, 1_000, 10_000, 100_000, 1_000_000];
/// Inverse frequencies of rare values.
const RARE: [u32; 3] = [50, 1_000, 20_000];
/// Columns and rows of the measured tables; 18 and 151,551 are those of NHDS 2010.
const TABLES: [(usize, usize); 4] = [(18, 151_551), (50, 150_000), (50, 1_000_000), (128, 1_000_000)];

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % u64::from(bound)) as u32
    }
}

fn column(values: &[u32]) -> Column {
    let mut present = values.to_vec();
    present.sort_unstable();
    present.dedup();
    let mut arena = Arena::default();
    present.iter().for_each(|value| arena.push(format!("{value:07}").as_bytes()));
    let domain = Arc::new(Domain::from_sorted(AttributeType::Text, false, arena));
    let code = |value: &u32| present.binary_search(value).unwrap() as u32;
    Column { domain, codes: Codes::collect(present.len(), values.iter().map(code)) }
}

/// Three of five columns are random, one has a rare value, one is a function of one or two others.
fn planted(width: usize, rows: usize) -> Table {
    let mut random = Random(1);
    let mut columns: Vec<Vec<u32>> = Vec::new();
    for at in 0..width {
        let cells = match at % 5 {
            3 => (0..rows).map(|_| u32::from(random.below(RARE[at % 3]) == 0)).collect(),
            4 if at > 10 && at % 2 == 0 => columns[at - 3].iter().map(|cell| cell % 16).collect(),
            4 if at > 10 => {
                let cells = columns[at - 3].iter().zip(&columns[at - 7]);
                cells.map(|(one, other)| (one % 50 * 7 + other % 50 * 13) % 17).collect()
            }
            _ => (0..rows).map(|_| random.below(VALUES[at * 7 % VALUES.len()])).collect(),
        };
        columns.push(cells);
    }
    Table::new((0..width).map(|at| at.to_string()).collect(), columns.iter().map(|cells| column(cells)).collect())
}

fn search(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("discovery");
    group.sample_size(10).sampling_mode(SamplingMode::Flat);
    for (width, rows) in TABLES {
        let table = planted(width, rows);
        group.throughput(Throughput::Elements((rows * width) as u64));
        for (name, scope) in [("singles", DiscoveryScope::Singles), ("pairs", DiscoveryScope::SinglesAndPairs)] {
            let options = DiscoveryOptions { scope, ..DiscoveryOptions::default() };
            group.bench_function(format!("{name}/{width}x{rows}"), |bencher| {
                bencher.iter(|| discover_dependencies(black_box(&table), &options, &Control::default()).unwrap());
            });
        }
    }
    group.finish();
}

criterion_group!(benches, search);
criterion_main!(benches);
