//! Randomness, through the library: what chance decides in a release has the distribution that the definition gives it.
//!
//! Every test publishes a small table under thousands of keys of one printed seed and reads nothing but the parts. Each row has an
//! identity of its own among the quasi-identifiers, so that its bucket can be read off; the expected distribution comes from
//! [`expected`], which enumerates the definition of largest-l with every choice uniform.

use std::collections::{BTreeMap, BTreeSet};

use guardian::control::Control;
use guardian::ledger::EarlierDisclosures;
use guardian::microdata::Attr;
use guardian::privacy::links::KnownDependencies;
use guardian::publish;
use guardian::publish::assign::largest_l;
use guardian::publish::{PlanInput, SecretRows};
use guardian::random::{RandomStreams, ReleaseKey};
use guardian::report::ManifestTable;
use serde_json::json;

use crate::support::chance::{alike, count, fits, independent};
use crate::support::library::{Job, Original, Random, release, seeds, table};

/// Keys of a test that asks the method alone.
const KEYS: usize = 10_000;

/// Keys of a test that makes whole releases, which take ten times as long; what is wired wrongly shows in fewer.
fn releases() -> usize {
    if seeds() > 1 { 2_500 } else { 1_000 }
}

const SEED: u64 = 0x5EED_0000_2026;

/// The largest p-value, times the number of tests, that counts as a failure.
const LEVEL: f64 = 1e-6;

/// The label of every row, by row.
type Outcome = Vec<u32>;

/// A table `id, v` of these values and the rule `id -> v`.
struct Design {
    values: &'static [&'static str],
    l: usize,
}

/// Every value twice, three buckets of two: all 48 outcomes are equally probable.
const PAIRS: Design = Design { values: &["a", "a", "b", "b", "c", "c"], l: 2 };

/// Buckets {a, x} of three different x; the fourth x is left and joins one of them.
const ONE_LEFT: Design = Design { values: &["a", "a", "a", "b", "c", "d", "e"], l: 2 };

/// The bucket made first holds a and b; the rows that are left over may lack buckets to join.
const UNEVEN: Design = Design { values: &["a", "a", "b", "b", "c", "d", "e"], l: 2 };

impl Design {
    /// The job, with its input rows in the order `order`.
    fn job(&self, order: &[usize]) -> Job {
        let rows: String = order.iter().map(|&row| format!("r{row},{}\n", self.values[row])).collect();
        let guarantee = json!({ "type": "l_diversity", "l": self.l });
        let method = json!({ "type": "versatile", "rules": ["id -> v"], "default_guarantee": guarantee });
        let original = Original::new(table(format!("id,v\n{rows}").as_bytes()));
        original.job(&json!({ "method": method })).unwrap()
    }

    fn order(&self) -> Vec<usize> {
        (0..self.values.len()).collect()
    }
}

/// One outcome a bucketized table, read from the parts of a release: the label of every row, which the first attribute names.
fn outcomes(job: &Job, streams: &RandomStreams) -> Vec<Outcome> {
    let (released, files) = release(job, &EarlierDisclosures::default(), streams).unwrap();
    let outcome = |table: &ManifestTable| {
        let text = std::str::from_utf8(&files.0[&table.parts[0].csv()]).unwrap();
        let rows = text.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
        by_row(rows.map(|cells| (cells[1].to_owned(), cells[0].parse().unwrap())))
    };
    released.manifest.tables.iter().map(outcome).collect()
}

fn by_row(labelled: impl Iterator<Item = (String, u32)>) -> Outcome {
    let mut labelled: Vec<(String, u32)> = labelled.collect();
    labelled.sort();
    labelled.into_iter().map(|(_, label)| label).collect()
}

fn draw(job: &Job, random: &mut Random) -> Vec<Outcome> {
    let draw = |_| outcomes(job, &RandomStreams::Keyed(ReleaseKey::from_bytes(random.key()))).remove(0);
    (0..releases()).map(draw).collect()
}

/// The same from the method itself, before anything is written: a tenth of the time.
fn draw_from_method(job: &Job, random: &mut Random) -> Vec<Outcome> {
    let Job { specification, table, .. } = job;
    let input = PlanInput {
        counts: table,
        published_names: &specification.published_names,
        names: &specification.names,
        earlier: &[],
        active_rules: &[],
        known: &KnownDependencies::default(),
        earlier_releases: None,
        rows: None,
    };
    let design = publish::plan(&specification.method, &input, &Control::default()).unwrap();
    let control = Control::default();
    let order: Vec<u32> = (0..table.rows() as u32).collect();
    let rows = SecretRows { upload: table, permuted: table, order: &order };
    let mut draw = || {
        let streams = RandomStreams::Keyed(ReleaseKey::from_bytes(random.key()));
        let made = publish::execute(&design, &specification.published_names, rows, &streams, &control).unwrap();
        let qi = &made.contents.tables[0][0];
        let names = (0..table.rows()).map(|row| String::from_utf8(qi.columns[0].value(row).unwrap().to_vec()).unwrap());
        let labelled = qi.buckets.as_ref().unwrap().of_rows(0..table.rows());
        by_row(names.zip(labelled.flat_map(|of| of.rows.map(move |_| of.label.unwrap()))))
    };
    (0..KEYS).map(|_| draw()).collect()
}

/// The probability of every outcome: the definition of largest-l, with every choice uniform among the equally entitled.
fn expected(design: &Design) -> BTreeMap<Outcome, f64> {
    let values: BTreeSet<&str> = design.values.iter().copied().collect();
    let values: Vec<&str> = values.into_iter().collect();
    let left: Vec<usize> = values.iter().map(|value| design.values.iter().filter(|v| *v == value).count()).collect();
    let mut structures = BTreeMap::new();
    fill(design.l, &left, &[], 1.0, &mut structures);
    let mut expected = BTreeMap::new();
    for (buckets, probability) in structures {
        // which of the rows of a value stand in which of the buckets that hold it
        let mut placements: Vec<Outcome> = vec![vec![0; design.values.len()]];
        for (value, name) in values.iter().enumerate() {
            let rows: Vec<usize> = (0..design.values.len()).filter(|&row| design.values[row] == *name).collect();
            let holding: Vec<u32> =
                (0..buckets.len()).filter(|&b| buckets[b].contains(&value)).map(|b| b as u32).collect();
            let orders = permutations(&holding);
            placements = placements
                .iter()
                .flat_map(|placed| {
                    orders.iter().map(|order| {
                        let mut placed = placed.clone();
                        rows.iter().zip(order).for_each(|(&row, &bucket)| placed[row] = bucket);
                        placed
                    })
                })
                .collect();
        }
        let labels = permutations(&(1..=buckets.len() as u32).collect::<Vec<_>>());
        let share = probability / (placements.len() * labels.len()) as f64;
        for (placed, labels) in placements.iter().flat_map(|placed| labels.iter().map(move |labels| (placed, labels))) {
            let outcome = placed.iter().map(|&bucket| labels[bucket as usize]).collect();
            *expected.entry(outcome).or_insert(0.0) += share;
        }
    }
    expected
}

/// Makes buckets, as sets of values, of the `left` rows of each value.
fn fill(l: usize, left: &[usize], made: &[Vec<usize>], probability: f64, out: &mut BTreeMap<Vec<Vec<usize>>, f64>) {
    let present: Vec<usize> = (0..left.len()).filter(|&value| left[value] > 0).collect();
    if present.len() >= l {
        // a choice of l values is possible when no value outside it has more rows than one inside
        let choices: Vec<Vec<usize>> = subsets(&present, l)
            .into_iter()
            .filter(|chosen| {
                let least = chosen.iter().map(|&value| left[value]).min().unwrap();
                present.iter().all(|value| chosen.contains(value) || left[*value] <= least)
            })
            .collect();
        for chosen in &choices {
            let mut left = left.to_vec();
            chosen.iter().for_each(|&value| left[value] -= 1);
            let made = [made, std::slice::from_ref(chosen)].concat();
            fill(l, &left, &made, probability / choices.len() as f64, out);
        }
    } else if let Some(&value) = present.first() {
        let lacking: Vec<usize> = (0..made.len()).filter(|&bucket| !made[bucket].contains(&value)).collect();
        for &bucket in &lacking {
            let (mut left, mut made) = (left.to_vec(), made.to_vec());
            left[value] -= 1;
            made[bucket].push(value);
            fill(l, &left, &made, probability / lacking.len() as f64, out);
        }
    } else {
        *out.entry(made.to_vec()).or_insert(0.0) += probability;
    }
}

fn subsets(of: &[usize], size: usize) -> Vec<Vec<usize>> {
    match of.split_first() {
        _ if size == 0 => vec![Vec::new()],
        None => Vec::new(),
        Some((&first, rest)) => {
            let with = subsets(rest, size - 1).into_iter().map(|subset| [vec![first], subset].concat());
            with.chain(subsets(rest, size)).collect()
        }
    }
}

fn permutations(of: &[u32]) -> Vec<Vec<u32>> {
    if of.is_empty() {
        return vec![Vec::new()];
    }
    let first = |at: usize| {
        let rest = [&of[..at], &of[at + 1..]].concat();
        permutations(&rest).into_iter().map(move |tail| [vec![of[at]], tail].concat())
    };
    (0..of.len()).flat_map(first).collect()
}

/// Who shares a bucket with whom, whatever the labels: every label replaced by the first row that has it.
fn matching(outcome: &Outcome) -> Outcome {
    outcome.iter().map(|label| outcome.iter().position(|other| other == label).unwrap() as u32).collect()
}

/// Which values stand together, whatever the labels and rows: the values of every bucket, sorted.
fn company(design: &Design, outcome: &Outcome) -> Vec<Vec<&'static str>> {
    let labels: BTreeSet<u32> = outcome.iter().copied().collect();
    let rows_of = |label: u32| (0..outcome.len()).filter(move |&row| outcome[row] == label);
    let mut buckets: Vec<Vec<&str>> =
        labels.into_iter().map(|label| rows_of(label).map(|row| design.values[row]).collect()).collect();
    buckets.sort();
    buckets
}

/// The rows of the largest bucket and its label.
fn largest(outcome: &Outcome) -> (Vec<usize>, u32) {
    let label = *outcome.iter().max_by_key(|label| outcome.iter().filter(|other| other == label).count()).unwrap();
    ((0..outcome.len()).filter(|&row| outcome[row] == label).collect(), label)
}

/// The p-value of each property of the outcomes.
fn judge(design: &Design, outcomes: &[Outcome]) -> Vec<(String, f64)> {
    let expected = expected(design);
    let mut found = Vec::new();
    let mut property = |name: &str, of: &dyn Fn(&Outcome) -> Vec<u32>| {
        let mut wanted = BTreeMap::new();
        for (outcome, probability) in &expected {
            *wanted.entry(of(outcome)).or_insert(0.0) += probability;
        }
        found.push((name.to_owned(), fits(&count(outcomes.iter().map(of)), &wanted)));
    };
    property("outcome", &Outcome::clone);
    property("matching", &matching);
    for row in 0..design.values.len() {
        property(&format!("label of row {row}"), &|outcome| vec![outcome[row]]);
    }
    let as_numbers = |buckets: Vec<Vec<&str>>| -> Vec<u32> {
        buckets.iter().flat_map(|bucket| bucket.iter().map(|v| u32::from(v.as_bytes()[0])).chain([0])).collect()
    };
    property("values that stand together", &|outcome| as_numbers(company(design, outcome)));
    if !design.values.len().is_multiple_of(design.l) {
        property("label of the largest bucket", &|outcome| vec![largest(outcome).1]);
        property("rows of the largest bucket", &|outcome| largest(outcome).0.iter().map(|&row| row as u32).collect());
    }
    found
}

fn rejected(tests: &[(String, f64)]) -> Vec<String> {
    let rejected = tests.iter().filter(|(_, p)| p * (tests.len() as f64) < LEVEL);
    rejected.map(|(name, p)| format!("{name}: p = {p:e}")).collect()
}

fn accept(tests: &[(String, f64)]) {
    for (name, p) in tests {
        println!("{name}: p = {p:.4}");
    }
    assert!(rejected(tests).is_empty(), "{}", rejected(tests).join("\n"));
}

/// Runs a test once for every seed that is wanted.
fn with_seeds(test: impl Fn(&mut Random)) {
    for seed in (0..seeds()).map(|number| SEED + number) {
        println!("seed {seed:#x}");
        test(&mut Random(seed));
    }
}

#[test]
fn matchings_and_labels_are_uniform_in_whatever_order_rows_come() {
    let equally = expected(&PAIRS);
    assert_eq!(equally.len(), 48);
    assert!(equally.values().all(|probability| (probability * 48.0 - 1.0).abs() < 1e-9));
    with_seeds(|random| {
        let one = draw(&PAIRS.job(&PAIRS.order()), random);
        let mut tests = judge(&PAIRS, &one);
        let other = draw(&PAIRS.job(&[5, 3, 1, 4, 2, 0]), random);
        tests.push((
            "matchings of rows in another order".to_owned(),
            alike(&[count(one.iter().map(matching)), count(other.iter().map(matching))]),
        ));
        tests.push(("outcomes of rows in another order".to_owned(), alike(&[count(one), count(other)])));
        accept(&tests);
    });
}

/// [`judge`] for [`ONE_LEFT`], and where the row that is left goes.
fn judge_one_left(outcomes: &[Outcome]) -> Vec<(String, f64)> {
    let mut tests = judge(&ONE_LEFT, outcomes);
    // the largest bucket holds one a of three and two others of four, all equally
    let uniform = |categories: Vec<Vec<usize>>| -> BTreeMap<Vec<usize>, f64> {
        let share = 1.0 / categories.len() as f64;
        categories.into_iter().map(|category| (category, share)).collect()
    };
    let part = |from: usize, to: usize| {
        count(outcomes.iter().map(|o| largest(o).0.into_iter().filter(|row| (from..to).contains(row)).collect()))
    };
    tests.push(("the a it joins".to_owned(), fits(&part(0, 3), &uniform(subsets(&[0, 1, 2], 1)))));
    tests.push(("the values there".to_owned(), fits(&part(3, 7), &uniform(subsets(&[3, 4, 5, 6], 2)))));
    tests
}

#[test]
fn a_row_that_is_left_joins_any_bucket_that_lacks_its_value() {
    let job = ONE_LEFT.job(&ONE_LEFT.order());
    with_seeds(|random| {
        let outcomes = draw_from_method(&job, random);
        accept(&judge_one_left(&outcomes));
    });
}

#[test]
fn ties_and_leftovers_are_broken_uniformly() {
    let job = UNEVEN.job(&UNEVEN.order());
    with_seeds(|random| accept(&judge(&UNEVEN, &draw_from_method(&job, random))));
}

/// Two bucketized tables of one release, `p|q` and `x|y`, each of the design [`PAIRS`].
fn two_tables() -> Job {
    let rows: String = PAIRS
        .values
        .iter()
        .enumerate()
        .map(|(row, v)| format!("r{row},{v},r{row},{}\n", PAIRS.values[(row + 1) % 6]))
        .collect();
    // every two attributes are in a rule, so that every class is one attribute and its table takes in one more
    let rules = ["p -> q", "x -> y", "p -> x", "p -> y", "q -> x", "q -> y"];
    let guarantee = json!({ "type": "l_diversity", "l": 2 });
    let method = json!({ "type": "versatile", "rules": rules, "default_guarantee": guarantee });
    Original::new(table(format!("p,q,x,y\n{rows}").as_bytes())).job(&json!({ "method": method })).unwrap()
}

fn independence(pairs: &[(Outcome, Outcome)]) -> Vec<(String, f64)> {
    let of = |name: &str, one: &dyn Fn(&Outcome) -> Outcome, other: &dyn Fn(&Outcome) -> Outcome| {
        (name.to_owned(), independent(pairs.iter().map(|(a, b)| (one(a), other(b)))))
    };
    // the labels of the buckets, by the first row of each
    let labels = |outcome: &Outcome| -> Outcome {
        let first = |row: &usize| matching(outcome)[*row] as usize == *row;
        (0..outcome.len()).filter(first).map(|row| outcome[row]).collect()
    };
    vec![
        of("matchings of both", &matching, &matching),
        of("labels of both", &labels, &labels),
        of("matchings of one, labels of the other", &matching, &labels),
        of("labels of one, matchings of the other", &labels, &matching),
    ]
}

#[test]
fn two_tables_of_a_release_share_no_chance() {
    let job = two_tables();
    with_seeds(|random| {
        let draw = |_| {
            let mut tables = outcomes(&job, &RandomStreams::Keyed(ReleaseKey::from_bytes(random.key())));
            assert_eq!(tables.len(), 2);
            (tables.remove(0), tables.remove(0))
        };
        let pairs: Vec<(Outcome, Outcome)> = (0..releases()).map(draw).collect();
        let mut tests = independence(&pairs);
        for (name, of) in [("first", 0), ("second", 1)] {
            let side = |pair: &(Outcome, Outcome)| if of == 0 { pair.0.clone() } else { pair.1.clone() };
            let side: Vec<Outcome> = pairs.iter().map(side).collect();
            // both tables hold every value twice; which rows are equal differs
            let labels = count(side.iter().flat_map(|outcome| outcome.iter().copied().enumerate()));
            let uniform = labels.keys().map(|&key| (key, 1.0 / 18.0)).collect();
            assert_eq!(labels.len(), 18);
            tests.push((format!("labels of the {name}"), fits(&labels, &uniform)));
        }
        accept(&tests);
    });
}

#[test]
fn planted_biases_are_found() {
    let mut random = Random(SEED);
    // no randomness at all
    let job = PAIRS.job(&PAIRS.order());
    let fixed = vec![outcomes(&job, &RandomStreams::Identity).remove(0); KEYS];
    assert!(rejected(&judge(&PAIRS, &fixed)).len() > 5);
    // labels in the order in which buckets are made
    let mut in_order = |design: &Design| -> Vec<Outcome> {
        let job = design.job(&design.order());
        let column = job.table.column(Attr::from(1));
        let mut draw = || {
            let mut stream = RandomStreams::Keyed(ReleaseKey::from_bytes(random.key())).stream("assign");
            largest_l(column, design.l as u64, &mut stream, &Control::default()).unwrap().bucket_of
        };
        (0..KEYS).map(|_| draw().iter().map(|bucket| bucket + 1).collect()).collect()
    };
    let found = rejected(&judge(&UNEVEN, &in_order(&UNEVEN)));
    assert!(found.iter().any(|test| test.starts_with("label of row")), "{found:?}");
    // the same outcomes with labels drawn: the matchings alone were as they should be
    assert!(!found.iter().any(|test| test.starts_with("matching") || test.starts_with("values")), "{found:?}");
    // one stream for two tables
    let pairs: Vec<(Outcome, Outcome)> =
        draw_from_method(&job, &mut random).into_iter().map(|o| (o.clone(), o)).collect();
    assert!(rejected(&independence(&pairs)).len() >= 2);
    // a residual row in a revealing bucket: one key in ten puts it with the first a
    let one_left = ONE_LEFT.job(&ONE_LEFT.order());
    let mut biased = draw_from_method(&one_left, &mut random);
    for outcome in biased.iter_mut().step_by(10) {
        let joined = largest(outcome).0[0];
        outcome.swap(0, joined);
    }
    assert!(!rejected(&judge_one_left(&biased)).is_empty());
}
