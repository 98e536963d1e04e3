//! `census ROWS OUT [people | wide COLUMNS | near COLUMNS]`: writes a table for benchmarks, the same bytes every time.
//!
//! Plain: eight columns like those of a census, skewed as such columns are; no occupation takes more than 7.5% of the rows.
//! `people`: these, behind a unique number and a text of about three million values.
//! `wide`: so many columns of 2 to 40 values. `near`: so many columns of nearly distinct numbers, and `s`, one of 100 values.

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;

const COLUMNS: [(&str, usize); 8] = [
    ("age", 76),
    ("gender", 2),
    ("education", 14),
    ("marital", 6),
    ("race", 9),
    ("workclass", 10),
    ("country", 83),
    ("occupation", 50),
];
const WORDS: [&str; 12] =
    ["adm", "craft", "farm", "handler", "local", "north", "priv", "prof", "repair", "sales", "self-emp", "tech"];
const MOST_OF_AN_OCCUPATION: f64 = 0.075;

/// A column: its values and their running shares.
struct Column {
    values: Vec<String>,
    upto: Vec<f64>,
}

impl Column {
    fn new(name: &str, len: usize) -> Self {
        let value = |index: usize| match name {
            "age" => (15 + index).to_string(),
            "gender" => ["Male", "Female"][index].to_owned(),
            _ => format!("{}-{}-{index}", WORDS[index * 5 % WORDS.len()], WORDS[index * 7 % WORDS.len()]),
        };
        let exponent = if name == "occupation" { 0.6 } else { 1.0 };
        let weights: Vec<f64> = (1..=len).map(|rank| (rank as f64).powf(-exponent)).collect();
        let all: f64 = weights.iter().sum();
        let most = if name == "occupation" { 0.98 * MOST_OF_AN_OCCUPATION } else { 1.0 };
        let capped: Vec<f64> = weights.iter().map(|weight| (weight / all).min(most)).collect();
        let scale = 1.0 / capped.iter().sum::<f64>();
        let mut sum = 0.0;
        let upto = capped.iter().map(|share| {
            sum += share * scale;
            sum
        });
        Self { upto: upto.collect(), values: (0..len).map(value).collect() }
    }

    fn draw(&self, rng: &mut ChaCha20Rng) -> &str {
        let at = rng.random::<f64>();
        let index = self.upto.partition_point(|&upto| upto <= at);
        &self.values[index.min(self.values.len() - 1)]
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (rows, path) = match &arguments[..] {
        [rows, path, ..] => (rows.parse::<u32>()?, path),
        _ => return Err("usage: census ROWS OUT [people | wide COLUMNS | near COLUMNS]".into()),
    };
    let mut rng = ChaCha20Rng::seed_from_u64(7);
    let mut out = BufWriter::new(File::create(path)?);
    match (arguments.get(2).map(String::as_str), arguments.get(3).map_or(Ok(0), |number| number.parse::<usize>())?) {
        (None | Some("people"), _) => {
            let columns = COLUMNS.map(|(name, len)| Column::new(name, len));
            let people = arguments.len() > 2;
            writeln!(out, "{}{}", if people { "id,name," } else { "" }, COLUMNS.map(|(name, _)| name).join(","))?;
            for number in 0..rows {
                if people {
                    // an odd factor makes numbers that look drawn, and are all different
                    let id = 1_000_000_000 + u64::from(number.wrapping_mul(2_654_435_761));
                    let name = rng.random_range(0..3_000_000_u32);
                    let words = [name % 12, name / 12 % 12].map(|word| WORDS[word as usize]);
                    write!(out, "{id},{} {} of the {name}th house,", words[0], words[1])?;
                }
                let row: Vec<&str> = columns.iter().map(|column| column.draw(&mut rng)).collect();
                writeln!(out, "{}", row.join(","))?;
            }
        }
        (Some("wide"), columns) => {
            writeln!(out, "{}", (0..columns).map(|column| format!("c{column}")).collect::<Vec<_>>().join(","))?;
            for _ in 0..rows {
                let row = (0..columns).map(|column| format!("v{}", rng.random_range(0..2 + column % 39)));
                writeln!(out, "{}", row.collect::<Vec<_>>().join(","))?;
            }
        }
        (Some("near"), columns) => {
            let names = (0..columns).map(|column| format!("n{column},"));
            writeln!(out, "{}s", names.collect::<String>())?;
            for _ in 0..rows {
                let row: String = (0..columns).map(|_| format!("{},", rng.random_range(0..20 * rows))).collect();
                writeln!(out, "{row}s{}", rng.random_range(0..100))?;
            }
        }
        _ => return Err("the third argument is `people`, `wide` or `near`".into()),
    }
    Ok(out.flush()?)
}
