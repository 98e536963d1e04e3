//! Slicing and generalization: `cargo bench --bench slicing`. On Adult, and with `LARGE=1` in the environment on up to a million rows
//! made of it. Prints how many buckets come out; times are those of the machine.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a program that measures")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use guardian::control::Control;
use guardian::microdata::{Attr, AttrSet, Coarse, Column, DEFAULT_BINS, Table, phi_squared};
use guardian::publication::{Guarantee, Ratio, ValueDistance};
use guardian::publish::generalize::GeneralizationInput;
use guardian::publish::partition::{MedianSplit, NoAnnotations, PartitionTuning};
use guardian::publish::slicing::{ColumnChoice, CorrelationBins, SlicingDiversity, SlicingPlan};

mod support;

use support::{adult, replicas};

/// The attributes of the paper's smaller table, occupation last.
const OCC_7: [&str; 7] = ["age", "workclass", "education", "marital-status", "race", "sex", "occupation"];

fn attr(table: &Table, name: &str) -> Attr {
    Attr::from(table.names().iter().position(|other| other == name).unwrap())
}

/// Some columns of a table, in this order.
fn only(table: &Table, names: &[&str]) -> Table {
    let columns: Vec<Column> = names.iter().map(|name| table.column(attr(table, name)).clone()).collect();
    Table::new(names.iter().map(|&name| name.to_owned()).collect(), columns)
}

fn slicing(
    table: &Table,
    columns: ColumnChoice,
    diversity: SlicingDiversity,
    min_bucket: Option<usize>,
) -> SlicingPlan {
    SlicingPlan {
        strata: None,
        attributes: table.attributes(),
        sensitive: attr(table, "occupation"),
        columns,
        diversity,
        split: MedianSplit::Relaxed,
        dimensions: None,
        max_attempts: None,
        min_bucket,
        column_k: None,
        bins: CorrelationBins::default(),
        tuning: PartitionTuning::default(),
    }
}

fn mixture(l: u64) -> SlicingDiversity {
    SlicingDiversity::Mixture(Ratio::new(l, 1).unwrap())
}

fn weighted(l: u64) -> SlicingDiversity {
    SlicingDiversity::MixtureWeighted(Ratio::new(l, 1).unwrap())
}

fn alone(l: u64) -> SlicingDiversity {
    SlicingDiversity::Bucket(vec![Guarantee::LDiversity { l }])
}

fn slice(criterion: &mut Criterion, name: &str, table: &Table, slicing: &SlicingPlan) {
    let run = || slicing.slice(table, &NoAnnotations, &Control::default()).map_err(|error| error.to_string()).unwrap();
    println!("{name}: {} buckets", run().buckets.buckets);
    criterion.bench_function(name, |bencher| bencher.iter(|| black_box(run().buckets.buckets)));
}

/// The settings of the specification's measurements, section 5.1.
fn settings(criterion: &mut Criterion) {
    let fifteen = adult();
    let seven = only(&fifteen, &OCC_7);
    let bucketization = || ColumnChoice::SensitiveWidth { count: 2, width: 1 };
    let together = |table: &Table, names: &[&str]| -> AttrSet { names.iter().map(|name| attr(table, name)).collect() };
    let sex = together(&seven, &["sex", "occupation"]);
    let with_sex = || ColumnChoice::Explicit(vec![seven.attributes().minus(sex), sex]);
    for (name, diversity) in [("mixture", mixture as fn(u64) -> SlicingDiversity), ("bucket", alone)] {
        let mut bench = |setting: &str, table: &Table, columns: ColumnChoice, l: u64, min_bucket| {
            let slicing = slicing(table, columns, diversity(l), min_bucket);
            slice(criterion, &format!("{name}/{setting}, l={l}"), table, &slicing);
        };
        bench("OCC-7 bucketization", &seven, bucketization(), 5, Some(1));
        bench("OCC-7 sex+occupation", &seven, with_sex(), 3, Some(1));
        bench("OCC-7 sex+occupation, at least 3 rows", &seven, with_sex(), 3, None);
        bench("OCC-7 c=5", &seven, ColumnChoice::SensitiveWidth { count: 5, width: 1 }, 5, Some(1));
        bench("OCC-7 c=7", &seven, ColumnChoice::Count(7), 5, Some(1));
        bench("OCC-15 bucketization", &fifteen, bucketization(), 5, Some(1));
        bench("OCC-15 c=5", &fifteen, ColumnChoice::SensitiveWidth { count: 5, width: 1 }, 5, Some(1));
    }
}

/// Columns of all attributes that share some: two, of which one has the occupation, and four, of which two have it.
fn covers(table: &Table) -> [(&'static str, u64, Vec<AttrSet>); 2] {
    let set = |names: &[&str]| -> AttrSet { names.iter().map(|name| attr(table, name)).collect() };
    let other_attributes = table.attributes().without(attr(table, "occupation"));
    let (sex, race) = (set(&["sex", "occupation"]), set(&["race", "occupation"]));
    let people = set(&["age", "workclass", "fnlwgt", "education", "education-num", "race"]);
    let lives = set(&[
        "age",
        "marital-status",
        "relationship",
        "capital-gain",
        "capital-loss",
        "hours-per-week",
        "native-country",
        "income",
    ]);
    [("2 shared columns", 3, vec![other_attributes, sex]), ("4 shared columns", 2, vec![people, lives, race, sex])]
}

/// The diversities, by their names.
type Diverse = (&'static str, fn(u64) -> SlicingDiversity);
const DIVERSE: [Diverse; 3] = [("bucket", alone), ("mixture", mixture), ("weighted", weighted)];

/// Columns that share attributes.
fn shared(criterion: &mut Criterion) {
    let table = adult();
    for (setting, l, columns) in covers(&table) {
        for (name, diversity) in DIVERSE {
            let slicing = slicing(&table, ColumnChoice::Explicit(columns.clone()), diversity(l), None);
            slice(criterion, &format!("{name}/OCC-15 {setting}, l={l}"), &table, &slicing);
        }
    }
}

/// So often the fastest of three runs takes on a hundred times the rows: `n^exponent`.
fn scaling(name: &str, mut run: impl FnMut(usize)) {
    const SIZES: [usize; 3] = [10_000, 100_000, 1_000_000];
    if std::env::var("LARGE").is_ok_and(|only| only != "1" && !name.contains(&only)) {
        return;
    }
    let seconds = SIZES.map(|rows| {
        let times = (0..3).map(|_| {
            let began = Instant::now();
            run(rows);
            began.elapsed().as_secs_f64()
        });
        times.fold(f64::INFINITY, f64::min)
    });
    let exponent = (seconds[2] / seconds[0]).log(100.0);
    println!(
        "{name}: {:.3}, {:.3}, {:.3} s at 10k, 100k, 1M rows: n^{exponent:.2}",
        seconds[0], seconds[1], seconds[2]
    );
}

/// `LARGE=1` in the environment: tables of up to a million rows; `LARGE=mixture`: those whose name contains it.
fn large(_: &mut Criterion) {
    if std::env::var_os("LARGE").is_none() {
        return;
    }
    let adult = adult();
    let tables = [10_000, 100_000, 1_000_000].map(|rows| (rows, replicas(&adult, rows)));
    let of = |rows: usize| &tables.iter().find(|(of, _)| *of == rows).unwrap().1;
    for (name, diversity) in [("bucket", alone as fn(u64) -> SlicingDiversity), ("mixture", mixture)] {
        for count in [2, 5] {
            scaling(&format!("slicing, {name}, 15 attributes, c={count}, l=5"), |rows| {
                let table = of(rows);
                let slicing = slicing(table, ColumnChoice::SensitiveWidth { count, width: 1 }, diversity(5), None);
                let sliced = slicing.slice(table, &NoAnnotations, &Control::default());
                black_box(sliced.map_err(|error| error.to_string()).unwrap().buckets.buckets);
            });
        }
    }
    for (setting, l, _) in covers(&adult) {
        for (name, diversity) in DIVERSE {
            scaling(&format!("slicing, {name}, 15 attributes, {setting}, l={l}"), |rows| {
                let table = of(rows);
                let columns = covers(table).into_iter().find(|(of, ..)| *of == setting).unwrap().2;
                let slicing = slicing(table, ColumnChoice::Explicit(columns), diversity(l), None);
                let sliced = slicing.slice(table, &NoAnnotations, &Control::default());
                black_box(sliced.map_err(|error| error.to_string()).unwrap().buckets.buckets);
            });
        }
    }
    let eight = ["age", "workclass", "education", "marital-status", "race", "sex", "native-country", "occupation"];
    for (name, k, guarantees) in [("k=10", 10, vec![]), ("k=5 and l=3", 5, vec![Guarantee::LDiversity { l: 3 }])] {
        scaling(&format!("generalize, 8 attributes, {name}"), |rows| {
            let table = only(of(rows), &eight);
            let occupation = attr(&table, "occupation");
            let generalization = GeneralizationInput {
                strata: None,
                weights: Default::default(),
                quasi_identifiers: table.attributes().without(occupation),
                k,
                guarantees: guarantees.iter().map(|&guarantee| (occupation, guarantee)).collect(),
                split: MedianSplit::Strict,
                max_attempts: None,
            };
            let classes = generalization.classes(&table, &NoAnnotations, &Control::default());
            black_box(classes.map_err(|error| error.to_string()).unwrap().buckets);
        });
    }
}

fn others(criterion: &mut Criterion) {
    let table = adult();
    let coarse: Vec<Coarse> =
        table.attributes().iter().map(|attr| Coarse::new(table.column(attr), DEFAULT_BINS)).collect();
    criterion.bench_function("correlations of 15 attributes", |bencher| {
        bencher.iter(|| {
            let pairs = (0..coarse.len()).flat_map(|a| (0..a).map(move |b| (a, b)));
            pairs.map(|(a, b)| phi_squared(&coarse[a], &coarse[b])).sum::<f64>()
        });
    });
    let occupation = attr(&table, "occupation");
    let generalization = |k, guarantees: &[Guarantee]| GeneralizationInput {
        strata: None,
        weights: Default::default(),
        quasi_identifiers: table.attributes().without(occupation),
        k,
        guarantees: guarantees.iter().map(|&guarantee| (occupation, guarantee)).collect(),
        split: MedianSplit::Strict,
        max_attempts: None,
    };
    let close = Guarantee::TCloseness {
        t: Ratio::new(1, 5).unwrap(),
        distance: ValueDistance::Equal,
        reference: Default::default(),
    };
    for (name, generalization) in [
        ("generalize/k=10", generalization(10, &[])),
        ("generalize/l=5", generalization(1, &[Guarantee::LDiversity { l: 5 }])),
        ("generalize/t=0.2", generalization(1, &[close])),
    ] {
        let run =
            || generalization.classes(&table, &NoAnnotations, &Control::default()).map_err(|e| e.to_string()).unwrap();
        println!("{name}: {} classes", run().buckets);
        criterion.bench_function(name, |bencher| bencher.iter(|| black_box(run().buckets)));
    }
}

fn configured() -> Criterion {
    Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_secs(2))
}

criterion_group! { name = benches; config = configured(); targets = settings, shared, others, large }
criterion_main!(benches);
