//! Republishes a changing table and prints what the nights cost: counterfeits, and CPU of a night.
//!
//! ```text
//! cargo run --profile bench --example nights -- examples/data/adult.csv.gz occupation 10000 50
//! ```
//!
//! Every night the stated share of the persons leaves, and as many enter, by a fixed seed.
#![expect(clippy::print_stdout, reason = "an example that prints figures")]

use std::error::Error;
use std::fs::File;
use std::time::Instant;

use flate2::read::GzDecoder;
use guardian::control::Control;
use guardian::publication::{BucketMerging, ChangedValues};
use guardian::random::{RandomStreams, ReleaseKey};
use guardian::republication::{Diversity, Night, NightInput, NightRow, NightTerms, PersonHash, SensitiveText, State};

/// The l of the nights.
const L: u64 = 3;

/// What a night is drawn from.
struct Nights {
    values: Vec<SensitiveText>,
    /// The value of each person of the source, which later persons repeat.
    source: Vec<u32>,
    merging: BucketMerging,
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
}

impl Nights {
    fn row(&self, person: u64) -> NightRow {
        // spread over the whole range, as hashes are
        let (high, low) = (Numbers(person).next(), Numbers(!person).next());
        let hash = u128::from(high) << 64 | u128::from(low);
        NightRow { person: PersonHash(hash.to_be_bytes()), value: self.source[person as usize % self.source.len()] }
    }

    fn night(&self, state: &State, here: &[u64], key: u64) -> Result<Night, Box<dyn Error>> {
        let rows: Vec<NightRow> = here.iter().map(|person| self.row(*person)).collect();
        let terms = NightTerms {
            founding: &Diversity { l: L },
            changes: ChangedValues::Withhold,
            group: L as u32,
            merging: self.merging,
            min_newcomers: if state.nights() == 0 { L } else { 60 },
            grace: 3,
            forget_after: None,
        };
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&key.to_le_bytes());
        let streams = RandomStreams::Keyed(ReleaseKey::from_bytes(bytes));
        let input = NightInput { rows: &rows, values: &self.values };
        Ok(Night::new(state, input, &terms, &streams, &Control::default())?)
    }

    /// Prints the counterfeits of each published row at some nights, the bytes of the state, and the time of the last night.
    fn run(&self, size: u64, nights: u64, churn: f64) -> Result<(), Box<dyn Error>> {
        let mut numbers = Numbers(1);
        let mut here: Vec<u64> = (0..size).collect();
        let (mut next, mut state) = (size, State::new(Vec::new()));
        print!("{churn:>5.2} {:>6}", self.merging.as_str());
        for number in 1..=nights {
            let began = Instant::now();
            let night = self.night(&state, &here, number)?;
            let took = began.elapsed();
            state = night.state;
            if [1, 10, 25, 50, 100, 1_000].contains(&number) || number == nights {
                let slots: usize = night.buckets.iter().map(|bucket| bucket.signature.len()).sum();
                let rows: u64 = night.buckets.iter().map(|bucket| bucket.members).sum();
                let share = (slots as u64 - rows) as f64 / rows as f64;
                print!(
                    " | night {number}: {share:.3}, {} waited, {:.0} ms",
                    night.tally.waiting,
                    took.as_secs_f64() * 1e3
                );
            }
            for _ in 0..(size as f64 * churn) as u64 {
                let place = (numbers.next() % here.len() as u64) as usize;
                here[place] = next;
                next += 1;
            }
        }
        println!(
            " | {:.1} bytes a person of {}",
            state.to_bytes().len() as f64 / state.persons() as f64,
            state.persons()
        );
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, column, size, nights] = &arguments[..] else {
        return Err("nights TABLE.csv.gz COLUMN PERSONS NIGHTS".into());
    };
    let mut reader = csv::Reader::from_reader(GzDecoder::new(File::open(path)?));
    let at = reader.headers()?.iter().position(|name| name == column).ok_or("no such column")?;
    let texts: Vec<String> = reader.records().map(|row| Ok(row?[at].to_owned())).collect::<Result<_, csv::Error>>()?;
    let texts: Vec<&String> = texts.iter().filter(|text| !text.is_empty() && *text != "?").collect();
    let mut distinct = texts.clone();
    distinct.sort();
    distinct.dedup();
    let values: Vec<SensitiveText> = distinct.iter().map(|text| Some(text.as_bytes().into())).collect();
    let source: Vec<u32> = texts.iter().map(|text| distinct.binary_search(text).map_or(0, |at| at as u32)).collect();
    for churn in [0.01, 0.02, 0.05] {
        for merging in [BucketMerging::Never, BucketMerging::Single] {
            let nights_of = Nights { values: values.clone(), source: source.clone(), merging };
            nights_of.run(size.parse()?, nights.parse()?, churn)?;
        }
    }
    Ok(())
}
