//! Decomposition: `cargo bench --bench decompose`. Groups on codes, for tables of ten thousand to a million rows of fifty primary values as
//! frequent as in a flat Zipf's law; then what is done to the groups for another attribute. Times are those of the machine.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a program that measures")]

use std::collections::BTreeSet;
use std::hint::black_box;
use std::sync::Arc;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use guardian::control::Control;
use guardian::microdata::{Arena, AttributeType, Codes, Column, Domain};
use guardian::publish::assign::largest_l;
use guardian::publish::decompose::{
    PossibleTuples, RowsByGroup, SensitiveCodesByRow, breaches, fresh_pick, fresh_swap, groups_of, optimal_l, repeats,
    swap_noise,
};
use guardian::random::{RandomStream, RandomStreams, ReleaseKey};

mod support;

use support::{adult, replicas};

/// Rows of the tables that groups are made of.
const ROWS: [u32; 3] = [10_000, 100_000, 1_000_000];
/// Rows of the table that the other steps are measured on.
const STEPS: u32 = 100_000;
const PRIMARY: u32 = 50;
const OTHER: u32 = 40;
/// Rows of Adult, and of replicas of it.
const OF_ADULT: [usize; 3] = [45_222, 204_000, 1_000_000];
/// Number of values that each group lists.
const WANTED: u64 = 8;

fn stream() -> RandomStream {
    RandomStreams::Keyed(ReleaseKey::from_bytes([7; 32])).stream("bench")
}

/// Codes, of which the first is drawn about three times as often as the last; in the order of the drawing.
fn drawn(stream: &mut RandomStream, rows: u32, values: u32) -> Vec<u32> {
    (0..rows).map(|_| stream.below(values).min(stream.below(values + values / 2))).collect()
}

fn column(codes: &[u32], values: u32) -> Column {
    let mut arena = Arena::default();
    (0..values).for_each(|value| arena.push(format!("{value:03}").as_bytes()));
    let domain = Arc::new(Domain::from_sorted(AttributeType::Text, false, arena));
    Column { domain, codes: Codes::collect(values as usize, codes.iter().copied()) }
}

fn l_of(column: &Column) -> u64 {
    optimal_l(&column.counts())
}

/// Groups on codes: the time is that of rows, whatever their number.
fn scaling(c: &mut Criterion) {
    let mut group = c.benchmark_group("largest_l");
    group.sample_size(10);
    for rows in ROWS {
        let column = column(&drawn(&mut stream(), rows, PRIMARY), PRIMARY);
        let l = l_of(&column);
        group.throughput(Throughput::Elements(rows.into()));
        group.bench_with_input(BenchmarkId::from_parameter(rows), &column, |b, column| {
            b.iter(|| black_box(largest_l(column, l, &mut stream(), &Control::default()).unwrap()));
        });
    }
    group.finish();
}

/// Rows with two sensitive attributes, and their groups by the first.
fn grouped() -> (SensitiveCodesByRow, RowsByGroup) {
    let mut draw = stream();
    let primary = drawn(&mut draw, STEPS, PRIMARY);
    // the other attribute goes with the primary one: of each value half of the rows have one of five
    let other = primary
        .iter()
        .map(|value| if draw.below(2) == 0 { (value * 7 + draw.below(5)) % OTHER } else { draw.below(OTHER) })
        .collect();
    let column = column(&primary, PRIMARY);
    let assigned = largest_l(&column, l_of(&column).min(10), &mut draw, &Control::default()).unwrap();
    let groups = groups_of(&assigned.bucket_of, assigned.buckets);
    (SensitiveCodesByRow { primary, others: vec![other] }, groups)
}

fn steps(c: &mut Criterion) {
    let control = Control::default();
    let (sensitive, groups) = grouped();
    let all = |groups: &RowsByGroup| groups.iter().map(|group| repeats(&sensitive, group)).sum::<usize>();
    let picked = fresh_pick(&sensitive, &groups, &mut stream(), &control).unwrap();
    let swapped = fresh_swap(&sensitive, picked.clone(), &control).unwrap();
    println!(
        "repeats in {} groups: {}, {} picked, {} exchanged",
        groups.len(),
        all(&groups),
        all(&picked),
        all(&swapped)
    );
    let noisy = swap_noise(&sensitive, groups.clone(), &[WANTED], &mut stream(), &control).unwrap();
    println!("noise of groups by largest-l alone: {} values, {} groups merged", noisy.noise.len(), noisy.merged);
    let mut group = c.benchmark_group("steps_100k");
    group.sample_size(10).throughput(Throughput::Elements(STEPS.into()));
    group.bench_function("fresh_pick", |b| {
        b.iter(|| black_box(fresh_pick(&sensitive, &groups, &mut stream(), &control).unwrap()));
    });
    group.bench_function("fresh_swap", |b| {
        b.iter_batched(
            || picked.clone(),
            |picked| black_box(fresh_swap(&sensitive, picked, &control).unwrap()),
            BatchSize::LargeInput,
        );
    });
    group.bench_function("swap_noise", |b| {
        b.iter_batched(
            || groups.clone(),
            |groups| black_box(swap_noise(&sensitive, groups, &[WANTED], &mut stream(), &control).unwrap()),
            BatchSize::LargeInput,
        );
    });
    group.bench_function("conclusions", |b| {
        b.iter(|| {
            let candidates = PossibleTuples::new(&sensitive, &noisy.groups, &noisy.sets, &control).unwrap();
            black_box(breaches(&candidates, &[WANTED], 2))
        });
    });
    group.finish();
    let listed: BTreeSet<usize> = noisy.sets.iter().map(|sets| sets[0].len()).collect();
    println!("values listed of a group: {listed:?}");
}

/// Occupation and age of Adult by the largest l of both: groups of seven rows that list 35 ages.
fn of_adult(c: &mut Criterion) {
    let (control, table) = (Control::default(), adult());
    let mut group = c.benchmark_group("adult");
    group.sample_size(10);
    for rows in OF_ADULT {
        let table = replicas(&table, rows);
        let of = |name: &str| table.column(table.names().iter().position(|other| other == name).unwrap().into());
        let (occupation, age) = (of("occupation"), of("age"));
        let (l, wanted) = (l_of(occupation), l_of(age));
        let codes = |column: &Column| column.codes.iter().collect();
        let sensitive = SensitiveCodesByRow { primary: codes(occupation), others: vec![codes(age)] };
        let assigned = largest_l(occupation, l, &mut stream(), &control).unwrap();
        let groups = groups_of(&assigned.bucket_of, assigned.buckets);
        let noise = || swap_noise(&sensitive, groups.clone(), &[wanted], &mut stream(), &control).unwrap();
        let noisy = noise();
        println!(
            "{rows} rows of Adult: {} groups, {wanted} ages each, {} of noise",
            noisy.groups.len(),
            noisy.noise.len()
        );
        group.throughput(Throughput::Elements(rows as u64));
        group.bench_function(BenchmarkId::new("swap_noise", rows), |b| b.iter(|| black_box(noise().noise.len())));
        group.bench_function(BenchmarkId::new("conclusions", rows), |b| {
            b.iter(|| {
                let candidates = PossibleTuples::new(&sensitive, &noisy.groups, &noisy.sets, &control).unwrap();
                black_box(breaches(&candidates, &[wanted], 2))
            });
        });
    }
    group.finish();
}

criterion_group!(benches, scaling, steps, of_adult);
criterion_main!(benches);
