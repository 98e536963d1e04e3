//! Counterfeits: fake sensitive values in each bucket.
//!
//! An adversary who knows the values of all other rows of a bucket is not certain of the last one.

use ahash::AHashMap;

use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, Codes, Column, Table};
use crate::privacy::links::Strata;
use crate::publish::assign::BucketAssignment;
use crate::random::RandomStream;

/// Smallest number of rows of a value that predicts sensitive values.
const MIN_VALUE_ROWS: u64 = 30;
/// Factor by which a value makes a sensitive value rarer than in the table, so that a counterfeit of it would be recognized.
const RARITY_FACTOR: u64 = 10;

/// A fake sensitive value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::publish) struct Counterfeit {
    /// Bucket that holds the value.
    pub(in crate::publish) bucket: u32,
    /// Code of the value.
    pub(in crate::publish) code: u32,
}

/// The counterfeits of all buckets.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct DrawnCounterfeits {
    /// The counterfeits, bucket by bucket.
    pub(super) values: Vec<Counterfeit>,
    /// Number of counterfeits that some row of their bucket makes unlikely.
    pub(super) seen_through: u64,
}

/// A draw of counterfeits for the buckets of a table.
pub(super) struct CounterfeitDraw<'a> {
    table: &'a Table,
    column: &'a Column,
    counts: Vec<u64>,
    unlikely: Vec<UnlikelyByValue>,
    /// Strata that the buckets lie in: values of other strata can be ruled out. `None` for the whole table.
    pub(super) strata: Option<&'a Strata>,
    stream: &'a mut RandomStream,
    control: &'a Control,
}

/// Sensitive codes that each value of an attribute makes unlikely.
struct UnlikelyByValue {
    attribute: Attr,
    codes: AHashMap<u32, Vec<u32>>,
}

impl<'a> CounterfeitDraw<'a> {
    /// A draw for one sensitive attribute.
    pub(super) fn new(
        table: &'a Table,
        sensitive: Attr,
        stream: &'a mut RandomStream,
        control: &'a Control,
    ) -> Result<Self, Cancelled> {
        let column = table.column(sensitive);
        let counts = column.counts();
        let attributes = table.attributes().without(sensitive);
        let unlikely = attributes.iter().map(|attribute| unlikely_by(attribute, table, column, &counts, control));
        let unlikely = unlikely.collect::<Result<_, _>>()?;
        Ok(Self { table, column, counts, unlikely, strata: None, stream, control })
    }

    /// Draws `number` counterfeits for each bucket, distinct and absent from it. Values that few rows make unlikely come first.
    pub(super) fn draw(&mut self, buckets: &BucketAssignment, number: u32) -> Result<DrawnCounterfeits, Cancelled> {
        let mut rows_of: Vec<Vec<u32>> = vec![Vec::new(); buckets.buckets as usize];
        for (&bucket, row) in buckets.bucket_of.iter().zip(0..) {
            rows_of[bucket as usize].push(row);
        }
        let mut drawn = DrawnCounterfeits { values: Vec::new(), seen_through: 0 };
        let mut codes_of = self.codes_by_stratum();
        for (bucket, rows) in (0..).zip(&rows_of) {
            self.control.check()?;
            let mut present = vec![false; self.counts.len()];
            let mut unlikely_for = vec![0_u64; self.counts.len()];
            for &row in rows {
                present[self.column.codes.get(row as usize) as usize] = true;
                self.unlikely_for(row).into_iter().for_each(|code| unlikely_for[code as usize] += 1);
            }
            let stratum = rows.first().zip(self.strata).map_or(0, |(&row, strata)| strata.of_row()[row as usize]);
            let codes = &mut codes_of[stratum as usize];
            // the sort is stable, so that the draw orders equally unlikely values
            self.stream.shuffle(codes);
            let mut absent: Vec<u32> = codes.iter().copied().filter(|&code| !present[code as usize]).collect();
            absent.sort_by_key(|&code| unlikely_for[code as usize]);
            absent.truncate(number as usize);
            drawn.seen_through += absent.iter().filter(|code| unlikely_for[**code as usize] > 0).count() as u64;
            drawn.values.extend(absent.into_iter().map(|code| Counterfeit { bucket, code }));
        }
        Ok(drawn)
    }

    /// The sensitive codes that occur, for each stratum or for the whole table.
    fn codes_by_stratum(&self) -> Vec<Vec<u32>> {
        let occurring = |counts: &[u64]| {
            let occurring = (0..).zip(counts).filter(|(_, count)| **count > 0);
            occurring.map(|(code, _)| code).collect::<Vec<u32>>()
        };
        let Some(strata) = self.strata else { return vec![occurring(&self.counts)] };
        let of_rows = |rows: &[u32]| {
            let mut counts = vec![0; self.counts.len()];
            rows.iter().for_each(|&row| counts[self.column.codes.get(row as usize) as usize] += 1);
            occurring(&counts)
        };
        strata.split().iter().map(of_rows).collect()
    }

    /// Sensitive codes that some value of a row makes unlikely, each once.
    fn unlikely_for(&self, row: u32) -> Vec<u32> {
        let codes = self.unlikely.iter().filter_map(|UnlikelyByValue { attribute, codes }| {
            codes.get(&self.table.column(*attribute).codes.get(row as usize))
        });
        let mut codes: Vec<u32> = codes.flatten().copied().collect();
        codes.sort_unstable();
        codes.dedup();
        codes
    }
}

/// Sensitive codes that the frequent values of an attribute make unlikely.
fn unlikely_by(
    attribute: Attr,
    table: &Table,
    sensitive: &Column,
    counts: &[u64],
    control: &Control,
) -> Result<UnlikelyByValue, Cancelled> {
    let rows = table.rows() as u128;
    let column = table.column(attribute);
    let support = column.counts();
    let mut together: AHashMap<u32, AHashMap<u32, u64>> = AHashMap::new();
    for (row, (value, code)) in column.codes.iter().zip(sensitive.codes.iter()).enumerate() {
        if row.is_multiple_of(Control::STRIDE) {
            control.check()?;
        }
        if support[value as usize] >= MIN_VALUE_ROWS {
            *together.entry(value).or_default().entry(code).or_default() += 1;
        }
    }
    let rare = |(value, seen): (u32, AHashMap<u32, u64>)| {
        let rows_here = u128::from(support[value as usize]);
        let is_rare = |code: &u32| {
            let here = u128::from(seen.get(code).copied().unwrap_or(0));
            let overall = u128::from(counts[*code as usize]);
            overall > 0 && here * rows * u128::from(RARITY_FACTOR) <= overall * rows_here
        };
        (value, (0..counts.len() as u32).filter(is_rare).collect::<Vec<u32>>())
    };
    let codes = together.into_iter().map(rare).filter(|(_, codes)| !codes.is_empty()).collect();
    Ok(UnlikelyByValue { attribute, codes })
}

/// The codes of a column, followed by those of counterfeits.
pub(in crate::publish) fn with_counterfeits(codes: &Codes, values: usize, counterfeits: &[Counterfeit]) -> Codes {
    let all: Vec<u32> = codes.iter().chain(counterfeits.iter().map(|counterfeit| counterfeit.code)).collect();
    Codes::collect(values, all.into_iter())
}
