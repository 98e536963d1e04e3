//! Republishes a changing table and prints what the nights cost: counterfeits, errors of COUNT queries, processor time, and the state.
//!
//! ```text
//! cargo run --profile bench --example nights -- examples/data/adult.csv.gz occupation 10000 50
//! ```
//!
//! Every night the stated share of the persons leaves, and as many enter, by a fixed seed. A query asks for two columns and the
//! sensitive one, with values that select about 5 % of the combinations; the error is relative, its mean over 150 queries. `once`
//! buckets the table of the night anew, as no second night may. `apart` adds up what was published of the newcomers of each night,
//! of whom some have left, and `scaled` corrects its number of rows. Processor time is that of the thread (`/proc/self/schedstat`).
#![expect(clippy::print_stdout, reason = "an example that prints figures")]

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs::{self, File};

use flate2::read::GzDecoder;
use guardian::control::Control;
use guardian::publication::{BucketMerging, ChangedValues};
use guardian::random::{RandomStreams, ReleaseKey};
use guardian::republication::{Diversity, Night, NightInput, NightTerms, SensitiveText, State};

/// The l of the nights.
const L: u64 = 3;

/// The columns that queries ask for, where a table has them.
const KNOWN: [&str; 7] = ["age", "workclass", "education", "marital-status", "race", "sex", "gender"];

/// How many queries there are.
const QUERIES: usize = 150;

type Fallible<T> = Result<T, Box<dyn Error>>;

/// A table whose rows persons repeat.
struct Source {
    /// The values of the sensitive column, rising.
    values: Vec<SensitiveText>,
    sensitive: Vec<u32>,
    /// The codes of each known column, and their number.
    known: Vec<(Vec<u32>, u32)>,
}

/// A generator of numbers (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

/// Which values a query asks for, by code.
struct Query {
    columns: [usize; 2],
    chosen: [Vec<bool>; 2],
    sensitive: Vec<bool>,
}

/// Rows of persons, each with the share of each sensitive value that a reader gives it.
#[derive(Default)]
struct Shares {
    persons: Vec<u64>,
    signatures: Vec<Vec<u32>>,
}

impl Shares {
    fn add(&mut self, other: Self) {
        self.persons.extend(other.persons);
        self.signatures.extend(other.signatures);
    }
}

impl Source {
    fn read(path: &str, column: &str) -> Fallible<Self> {
        let mut reader = csv::Reader::from_reader(GzDecoder::new(File::open(path)?));
        let names: Vec<String> = reader.headers()?.iter().map(str::to_owned).collect();
        let place = |name: &str| names.iter().position(|known| known == name);
        let at = place(column).ok_or("no such column")?;
        let rows: Vec<csv::StringRecord> = reader.records().collect::<Result<_, _>>()?;
        let rows: Vec<&csv::StringRecord> = rows.iter().filter(|row| !row[at].is_empty() && &row[at] != "?").collect();
        let codes = |at: usize| {
            let distinct: BTreeSet<&str> = rows.iter().map(|row| &row[at]).collect();
            let distinct: Vec<&str> = distinct.into_iter().collect();
            let code = |row: &&csv::StringRecord| distinct.binary_search(&&row[at]).map_or(0, |code| code as u32);
            (rows.iter().map(code).collect::<Vec<u32>>(), distinct)
        };
        let (sensitive, distinct) = codes(at);
        let values = distinct.iter().map(|text| Some(text.as_bytes().into())).collect();
        let known = KNOWN.iter().filter_map(|name| place(name)).map(&codes);
        let known = known.map(|(codes, distinct)| (codes, distinct.len() as u32)).collect();
        Ok(Self { values, sensitive, known })
    }

    /// The row that a person repeats.
    fn row(&self, person: u64) -> usize {
        Numbers(person ^ 0xABCD).below(self.sensitive.len())
    }

    fn queries(&self, seed: u64) -> Vec<Query> {
        let mut numbers = Numbers(seed);
        let mut query = || {
            let one = numbers.below(self.known.len());
            let other = (one + 1 + numbers.below(self.known.len() - 1)) % self.known.len();
            let mut chosen = |size: u32| {
                let wanted = ((f64::from(size) * 0.05_f64.cbrt()).ceil() as usize).max(1);
                let mut chosen = vec![false; size as usize];
                while chosen.iter().filter(|is_chosen| **is_chosen).count() < wanted {
                    chosen[numbers.below(size as usize)] = true;
                }
                chosen
            };
            Query {
                columns: [one, other],
                chosen: [chosen(self.known[one].1), chosen(self.known[other].1)],
                sensitive: chosen(self.values.len() as u32),
            }
        };
        (0..QUERIES).map(|_| query()).collect()
    }

    /// What a query counts in rows.
    fn count(&self, query: &Query, of: &Shares) -> f64 {
        let mut sum = 0.0;
        for (person, signature) in of.persons.iter().zip(&of.signatures) {
            let row = self.row(*person);
            let is_chosen = |side: usize| query.chosen[side][self.known[query.columns[side]].0[row] as usize];
            if is_chosen(0) && is_chosen(1) {
                let hits = signature.iter().filter(|value| query.sensitive[**value as usize]).count();
                sum += hits as f64 / signature.len() as f64;
            }
        }
        sum
    }

    /// The mean relative error of estimates, for queries that count something.
    fn error(&self, queries: &[Query], truth: &Shares, estimate: &Shares, scale: f64) -> f64 {
        let errors = queries.iter().filter_map(|query| {
            let counted = self.count(query, truth);
            (counted > 0.0).then(|| (scale * self.count(query, estimate) - counted).abs() / counted)
        });
        let errors: Vec<f64> = errors.collect();
        errors.iter().sum::<f64>() / errors.len() as f64
    }

    fn truth(&self, here: &[u64]) -> Shares {
        let signatures = here.iter().map(|person| vec![self.sensitive[self.row(*person)]]).collect();
        Shares { persons: here.to_vec(), signatures }
    }

    fn night(&self, state: &State, here: &[u64], order: Order) -> Fallible<Night> {
        let hash = |&person: &u64| {
            // spread over the whole range, as hashes are
            let (high, low) = (Numbers(person).next(), Numbers(!person).next());
            (u128::from(high) << 64 | u128::from(low)).to_be_bytes()
        };
        let persons: Vec<[u8; 16]> = here.iter().map(hash).collect();
        let value_of: Vec<u32> = here.iter().map(|&person| self.sensitive[self.row(person)]).collect();
        let rows: Vec<u32> = (0..here.len() as u32).collect();
        let terms = NightTerms {
            founding: &Diversity { l: L },
            changes: ChangedValues::Withhold,
            group: L as u32,
            merging: order.merging,
            min_newcomers: if state.nights() == 0 { L } else { 20 * L },
            grace: 3,
            forget_after: None,
        };
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&order.key.to_le_bytes());
        let streams = RandomStreams::Keyed(ReleaseKey::from_bytes(bytes));
        let input = NightInput { persons: &persons, value_of: &value_of, values: &self.values, order: &rows };
        Ok(Night::new(state.clone(), input, &terms, &streams, &Control::default())?)
    }

    /// What a night shows of the persons in it.
    fn shown(&self, night: &Night, here: &[u64]) -> Shares {
        let code: Vec<u32> =
            night.values.iter().map(|value| self.values.binary_search(value).map_or(0, |code| code as u32)).collect();
        let mut shown = Shares::default();
        for (person, bucket) in here.iter().zip(&night.bucket_of) {
            let Some(bucket) = bucket else { continue };
            let signature = night.signature(night.buckets[*bucket as usize]);
            shown.persons.push(*person);
            shown.signatures.push(signature.iter().map(|value| code[*value as usize]).collect());
        }
        shown
    }
}

/// How a night is drawn.
#[derive(Clone, Copy)]
struct Order {
    merging: BucketMerging,
    key: u64,
}

/// Seconds of a processor that this thread has taken.
fn processor_seconds() -> Fallible<f64> {
    let statistics = fs::read_to_string("/proc/self/schedstat")?;
    let nanoseconds = statistics.split(' ').next().ok_or("no statistics of the process")?;
    Ok(nanoseconds.parse::<f64>()? / 1e9)
}

/// Prints the figures of some nights, and what the last one and the state take.
fn run(source: &Source, size: u64, nights: u64, setting: (f64, BucketMerging)) -> Fallible<()> {
    let (churn, merging) = setting;
    let mut numbers = Numbers(1);
    let mut here: Vec<u64> = (0..size).collect();
    let (mut next, mut state) = (size, State::new(Vec::new()));
    let (mut apart, mut pending) = (Shares::default(), here.clone());
    let mut of_night: BTreeMap<u64, f64> = BTreeMap::new();
    println!("churn {churn:.2}, merge {}", merging.as_str());
    for number in 1..=nights {
        let before = processor_seconds()?;
        let night = source.night(&state, &here, Order { merging, key: number })?;
        of_night.insert(number, processor_seconds()? - before);
        if let Ok(alone) = source.night(&State::new(Vec::new()), &pending, Order { merging, key: !number })
            && !alone.buckets.is_empty()
        {
            apart.add(source.shown(&alone, &std::mem::take(&mut pending)));
        }
        if [1, 10, 25, 50, 100, 1_000].contains(&number) || number == nights {
            let began = processor_seconds()?;
            let once = source.night(&State::new(Vec::new()), &here, Order { merging, key: !number })?;
            let took = processor_seconds()? - began;
            let slots: usize = night.buckets.iter().map(|bucket| night.signature(*bucket).len()).sum();
            let rows: u64 = night.buckets.iter().map(|bucket| bucket.members).sum();
            let (queries, truth) = (source.queries(number), source.truth(&here));
            let error = |of: &Shares, scale: f64| source.error(&queries, &truth, of, scale);
            println!(
                "  night {number}: counterfeits {:.3}, waiting {}, error {:.3} (once {:.3}, apart {:.3}, scaled {:.3}), \
                 processor {:.4} s (once {took:.4} s)",
                (slots as u64 - rows) as f64 / rows as f64,
                night.tally.waiting,
                error(&source.shown(&night, &here), 1.0),
                error(&source.shown(&once, &here), 1.0),
                error(&apart, 1.0),
                error(&apart, here.len() as f64 / apart.persons.len().max(1) as f64),
                of_night[&number],
            );
        }
        state = night.state;
        let entering = next..next + (size as f64 * churn) as u64;
        next = entering.end;
        pending.extend(entering.clone());
        for person in entering {
            let place = numbers.below(here.len());
            here[place] = person;
        }
    }
    let mean = |from: u64, to: u64| {
        let of: Vec<f64> = of_night.range(from..=to).map(|(_, seconds)| *seconds).collect();
        of.iter().sum::<f64>() / of.len().max(1) as f64
    };
    let persons = state.persons();
    println!(
        "  processor of a night: {:.4} s on nights 2 to 11, {:.4} s on the last ten; state: {:.1} bytes a person of {persons}",
        mean(2, 11),
        mean(nights.saturating_sub(9), nights),
        state.to_bytes().len() as f64 / persons as f64
    );
    Ok(())
}

fn main() -> Fallible<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, column, size, nights, churns @ ..] = &arguments[..] else {
        return Err("nights TABLE.csv.gz COLUMN PERSONS NIGHTS [CHURN ...]".into());
    };
    let source = Source::read(path, column)?;
    let mut all: Vec<f64> = churns.iter().map(|churn| churn.parse()).collect::<Result<_, _>>()?;
    if all.is_empty() {
        all = vec![0.01, 0.02, 0.05];
    }
    for churn in all {
        for merging in [BucketMerging::Never, BucketMerging::Single] {
            run(&source, size.parse()?, nights.parse()?, (churn, merging))?;
        }
    }
    Ok(())
}
