//! Versatile publishing: `cargo bench --bench versatile`. On a table in the shape of hospital discharges, made here, the same every
//! time. Times are those of the machine; the ratios, taken in one run, say more.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a program that measures")]

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use guardian::control::Control;
use guardian::microdata::{Arena, Attr, AttrSet, AttributeType, Codes, Column, Domain, Table};
use guardian::model::{BucketedColumn, JoinTree, RowGroups, TableView};
use guardian::privacy::PrivacyRule;
use guardian::publication::Guarantee;
use guardian::publish::PlanRows;
use guardian::publish::assign::{assign, largest_l};
use guardian::publish::versatile::{
    AddBackLimits, DecompositionInput, EntropyScorer, TableDraft, add_back, decompose, decompose_greedily,
};
use guardian::random::{RandomStreams, ReleaseKey};
use guardian::spec::{DecompositionScore, UadColoring, UadSettings};

/// The default settings of `uad`.
const UAD: UadSettings = UadSettings { saturate: false, coloring: UadColoring::FreeLast };

/// How many values the columns of the discharge records have.
const VALUES: [u32; 18] =
    [323, 2, 1581, 241, 22, 5, 3391, 3488, 3881, 4193, 4251, 1708, 24, 396, 297, 6, 15_000, 17_432];
const ROWS: usize = 151_551;
const L: u64 = 10;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ word >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        word ^ word >> 31
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

fn column(values: u32, codes: Vec<u32>) -> Column {
    // a domain has no values that do not occur
    let mut present: Vec<u32> = codes.clone();
    present.sort_unstable();
    present.dedup();
    let mut arena = Arena::default();
    present.iter().for_each(|value| arena.push(format!("{value:06}").as_bytes()));
    let mut rank = vec![0; values as usize];
    (0..).zip(&present).for_each(|(at, &value)| rank[value as usize] = at);
    let codes: Vec<u32> = codes.into_iter().map(|code| rank[code as usize]).collect();
    Column {
        domain: Arc::new(Domain::from_sorted(AttributeType::Text, false, arena)),
        codes: Codes::collect(present.len(), codes.into_iter()),
    }
}

/// Half of the cells are skewed and independent, half go with one of forty kinds of case.
fn discharges(rows: usize) -> Table {
    let mut random = Random(1);
    let kinds: Vec<u64> = (0..rows).map(|_| random.below(40)).collect();
    let of = |(at, &values): (usize, &u32)| {
        let mut random = Random(at as u64 + 100);
        let cell = |&kind: &u64| {
            let values = u64::from(values);
            let cell = if random.below(2) == 0 {
                let evenly = (random.below(1 << 20) + 1) as f64 / (1u64 << 20) as f64;
                ((evenly.powf(-1.0 / 0.6) - 1.0) * values as f64 / 40.0).min(values as f64 * 50.0) as u64
            } else {
                kind * 7919 + random.below((values / 20).max(1))
            };
            (cell % values) as u32
        };
        column(values, kinds.iter().map(cell).collect())
    };
    Table::new((0..VALUES.len()).map(|at| format!("a{at}")).collect(), VALUES.iter().enumerate().map(of).collect())
}

/// Five irreducible rules of three known attributes each.
fn rules(table: &Table) -> Vec<PrivacyRule> {
    let most = |attr: Attr| table.column(attr).counts().into_iter().max().unwrap();
    let eligible: Vec<Attr> = table.attributes().iter().filter(|&attr| most(attr) * L <= table.rows() as u64).collect();
    let mut random = Random(7);
    let mut rules: Vec<PrivacyRule> = Vec::new();
    while rules.len() < 5 {
        let sensitive = eligible[random.below(eligible.len() as u64) as usize];
        let mut known = AttrSet::EMPTY;
        while known.len() < 3 {
            known = known.with(Attr(random.below(18) as u8)).without(sensitive);
        }
        if !rules.iter().any(|rule| rule.known == known && rule.sensitive == sensitive) {
            rules.push(PrivacyRule { known, sensitive, guarantee: Guarantee::LDiversity { l: L } });
        }
    }
    rules.sort_by_key(|rule| (rule.sensitive, rule.known.iter().collect::<Vec<_>>()));
    rules
}

fn streams() -> RandomStreams {
    RandomStreams::Keyed(ReleaseKey::from_bytes([3; 32]))
}

fn ground(table: &Table) -> DecompositionInput<'static> {
    DecompositionInput::new(table.attributes(), rules(table), &[], &[])
}

/// GD with attributes added back: the tables, and how many additions were made.
fn gd(table: &Table, fill: bool) -> (Vec<TableDraft>, usize) {
    let (ground, streams, control) = (ground(table), streams(), Control::default());
    let start = decompose_greedily(&ground, ground.rules[0].sensitive, &control).unwrap();
    let before: usize = start.iter().map(|draft| draft.attributes.len()).sum();
    let rows = PlanRows::new(table, table, &streams);
    let mut scorer = EntropyScorer::draw(&ground, rows, DecompositionScore::Entropy, &control).unwrap();
    let bounds = AddBackLimits { fill, work: u64::MAX };
    let drafts = add_back(&ground, start, &mut scorer, bounds, &control).unwrap();
    let after: usize = drafts.iter().map(|draft| draft.attributes.len()).sum();
    (drafts, after - before)
}

fn uad_core(c: &mut Criterion) {
    let table = discharges(ROWS);
    let rules = rules(&table);
    c.bench_function("uad: decomposition and the buckets of its tables", |b| {
        b.iter(|| {
            let tables = decompose(table.attributes(), &rules, UAD);
            for sensitive in tables.iter().filter_map(|table| table.sensitive) {
                let mut stream = streams().stream("bench");
                let guarantees = [Guarantee::LDiversity { l: L }];
                black_box(assign(table.column(sensitive), &guarantees, &mut stream, &Control::default()).unwrap());
            }
            tables
        });
    });
}

/// What the decomposition and the buckets of ten to a hundred and fifty times the rows take: `n^exponent`.
fn scaling(_: &mut Criterion) {
    const SIZES: [usize; 3] = [10_000, 151_551, 1_500_000];
    let tables = SIZES.map(discharges);
    let seconds = tables.each_ref().map(|table| {
        let rules = rules(&tables[1]);
        let times = (0..5).map(|_| {
            let began = Instant::now();
            let decomposed = decompose(table.attributes(), &rules, UAD);
            for sensitive in decomposed.iter().filter_map(|table| table.sensitive) {
                let guarantees = [Guarantee::LDiversity { l: L }];
                let mut stream = streams().stream("bench");
                black_box(assign(table.column(sensitive), &guarantees, &mut stream, &Control::default()).unwrap());
            }
            began.elapsed().as_secs_f64()
        });
        times.fold(f64::INFINITY, f64::min)
    });
    let exponent = (seconds[2] / seconds[0]).log(150.0);
    println!("uad, {SIZES:?} rows: {:.4}, {:.4}, {:.4} s: n^{exponent:.2}", seconds[0], seconds[1], seconds[2]);
}

fn anatomy(c: &mut Criterion) {
    let table = discharges(ROWS);
    let sensitive = table.column(rules(&table)[0].sensitive);
    let mut group = c.benchmark_group("anatomy");
    group.throughput(Throughput::Elements(ROWS as u64));
    group.bench_function("rows to buckets, on codes", |b| {
        b.iter(|| largest_l(sensitive, L, &mut streams().stream("bench"), &Control::default()).unwrap());
    });
    group.finish();
}

/// A candidate: the groups of a table with one attribute more, and the entropy of the estimate. A bare pass looks at the same
/// groups, codes and shares and only adds them up.
fn candidate(c: &mut Criterion) {
    let table = discharges(ROWS);
    let control = Control::default();
    let sensitive = rules(&table)[0].sensitive;
    let column = table.column(sensitive);
    let assignment = largest_l(column, L, &mut streams().stream("bench"), &control).unwrap();
    let bucket_of = assignment.bucket_of.clone();
    let mut values_of: Vec<Vec<u32>> = vec![Vec::new(); assignment.buckets as usize];
    bucket_of.iter().enumerate().for_each(|(row, &bucket)| values_of[bucket as usize].push(column.codes.get(row)));
    let buckets = BucketedColumn::new(column, assignment.bucket_of, assignment.buckets as usize, &control).unwrap();
    let known: AttrSet = [0, 1, 4].map(Attr).into_iter().filter(|&attr| attr != sensitive).collect();
    let groups = RowGroups::new(&table, known, &control).unwrap();
    let more = [table.column(Attr(3))];
    let mut group = c.benchmark_group("candidate");
    group.bench_function("score", |b| {
        b.iter(|| buckets.estimate_entropy(&groups.refined(&more, &control).unwrap(), &control).unwrap());
    });
    group.bench_function("bare pass", |b| {
        b.iter(|| {
            let mut sum = 0u64;
            for (row, &bucket) in bucket_of.iter().enumerate() {
                let values: u64 = values_of[bucket as usize].iter().map(|&value| u64::from(value)).sum();
                sum = sum.wrapping_add(values ^ u64::from(groups.of_row()[row]) ^ u64::from(more[0].codes.get(row)));
            }
            sum
        });
    });
    group.finish();
}

fn guardian_decomposition(c: &mut Criterion) {
    let table = discharges(ROWS);
    for fill in [false, true] {
        let (drafts, additions) = gd(&table, fill);
        println!("gd, fill {fill}: {} tables, {additions} additions", drafts.len());
    }
    let mut group = c.benchmark_group("gd");
    group.sample_size(10).sampling_mode(SamplingMode::Flat).warm_up_time(Duration::from_millis(1));
    group.bench_function("with attributes added back", |b| b.iter(|| gd(&table, false)));
    group.bench_function("with attributes added back, fill", |b| b.iter(|| gd(&table, true)));
    group.finish();
}

/// The score of drafts by its definition, nothing kept from one to the next.
struct Literal<'a> {
    table: &'a Table,
    bucket_of: HashMap<Attr, Vec<u32>>,
    protected: AttrSet,
}

impl Literal<'_> {
    fn tuple(&self, set: AttrSet, row: usize) -> Vec<u32> {
        set.iter().map(|attr| self.table.column(attr).codes.get(row)).collect()
    }

    fn entropy<K>(estimate: &HashMap<K, f64>) -> f64 {
        estimate.values().map(|p| -p * p.ln()).sum()
    }

    fn plain(&self, set: AttrSet) -> f64 {
        let mut estimate: HashMap<Vec<u32>, f64> = HashMap::new();
        for row in 0..self.table.rows() {
            *estimate.entry(self.tuple(set, row)).or_default() += 1.0 / self.table.rows() as f64;
        }
        Self::entropy(&estimate)
    }

    fn bucketized(&self, known: AttrSet, sensitive: Attr) -> f64 {
        let mut inside: HashMap<u32, Vec<u32>> = HashMap::new();
        let bucket_of = &self.bucket_of[&sensitive];
        for (row, &bucket) in bucket_of.iter().enumerate() {
            inside.entry(bucket).or_default().push(self.table.column(sensitive).codes.get(row));
        }
        let mut estimate: HashMap<(Vec<u32>, u32), f64> = HashMap::new();
        for (row, bucket) in bucket_of.iter().enumerate() {
            let values = &inside[bucket];
            for &value in values {
                let share = 1.0 / (self.table.rows() * values.len()) as f64;
                *estimate.entry((self.tuple(known, row), value)).or_default() += share;
            }
        }
        Self::entropy(&estimate)
    }

    fn score(&self, drafts: &[TableDraft]) -> Option<f64> {
        let view = |draft: &TableDraft| match draft.sensitive.iter().next() {
            Some(sensitive) if draft.attributes.len() > 1 => TableView::bucketized(draft.attributes, sensitive),
            _ => TableView::plain(draft.attributes),
        };
        if !JoinTree::from_views(&drafts.iter().map(view).collect::<Vec<_>>()).is_decomposable() {
            return None;
        }
        let mut counted: Vec<TableDraft> = drafts
            .iter()
            .map(|draft| {
                let hidden = self.protected.minus(draft.sensitive);
                TableDraft { attributes: draft.attributes.minus(hidden), ..*draft }
            })
            .collect();
        let shown = counted.iter().fold(AttrSet::EMPTY, |all, draft| all.union(draft.attributes));
        let alone = self.protected.minus(shown);
        counted.extend(alone.iter().map(|attr| TableDraft::plain(AttrSet::one(attr))));
        let tree = JoinTree::from_views(&counted.iter().map(view).collect::<Vec<_>>());
        let tables = tree.members.iter().map(|&member| {
            let draft = counted[member];
            match draft.sensitive.iter().next() {
                Some(sensitive) if draft.attributes.len() > 1 => self.bucketized(draft.known(), sensitive),
                _ => self.plain(draft.attributes),
            }
        });
        let shared = tree.edges.iter().filter(|edge| !edge.separator.is_empty()).map(|edge| self.plain(edge.separator));
        Some(tables.sum::<f64>() - shared.sum::<f64>())
    }
}

fn literal_gd(table: &Table) -> Vec<TableDraft> {
    let (ground, control) = (ground(table), Control::default());
    let bucket_of = ground.protected().iter().map(|attr| {
        let mut stream = streams().stream(&format!("assign/{}", attr.0));
        (attr, assign(table.column(attr), ground.guarantees(attr), &mut stream, &control).unwrap().bucket_of)
    });
    let literal = Literal { table, bucket_of: bucket_of.collect(), protected: ground.protected() };
    let mut drafts = decompose_greedily(&ground, ground.rules[0].sensitive, &control).unwrap();
    let mut current = literal.score(&drafts).unwrap();
    loop {
        let mut best: Option<(f64, Vec<TableDraft>)> = None;
        for at in 0..drafts.len() {
            for attr in ground.attributes.minus(drafts[at].attributes).iter() {
                let mut added = drafts.clone();
                added[at] = added[at].with(attr);
                if !ground.holds(&added) {
                    continue;
                }
                let Some(score) = literal.score(&added) else { continue };
                if best.as_ref().is_none_or(|(lowest, _)| score < lowest - 1e-12) {
                    best = Some((score, added));
                }
            }
        }
        match best {
            Some((score, added)) if current - score >= 1e-9 => (current, drafts) = (score, added),
            _ => return drafts,
        }
    }
}

/// Incremental against literal, in one run on a sample; both come to the same tables.
fn incremental_against_literal(_: &mut Criterion) {
    let table = discharges(2_000);
    let time = |work: &dyn Fn() -> Vec<TableDraft>| {
        let began = Instant::now();
        let drafts = work();
        (drafts, began.elapsed().as_secs_f64())
    };
    let mut fastest = f64::INFINITY;
    let mut incremental = Vec::new();
    for _ in 0..5 {
        let (drafts, seconds) = time(&|| gd(&table, false).0);
        (incremental, fastest) = (drafts, fastest.min(seconds));
    }
    let (literal, seconds) = time(&|| literal_gd(&table));
    assert_eq!(incremental, literal);
    println!("gd on 2,000 rows: incremental {fastest:.4} s, literal {seconds:.2} s, {:.0} times", seconds / fastest);
}

criterion_group!(benches, uad_core, scaling, anatomy, candidate, guardian_decomposition, incremental_against_literal);
criterion_main!(benches);
