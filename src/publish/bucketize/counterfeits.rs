//! Counterfeits: sensitive values of nobody in each bucket, so that whoever finds out the values of all others of a bucket is not
//! certain of the last one.

use ahash::AHashMap;

use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, Table};
use crate::random::RandomStream;

/// A value of an attribute says something of sensitive values when it has so many rows.
const MIN_VALUE_ROWS: u64 = 30;
/// And makes one this much rarer than it is in the table, or more: a counterfeit of it would be seen through.
const RARITY_FACTOR: u64 = 10;

/// Draws so many counterfeits for each bucket, each with a value that the bucket has not and no other of its counterfeits has: a
/// bucket and a code each, those of a bucket together. Of the values that the fewest rows of the bucket make unlikely; tells, too, how
/// many counterfeits some row makes unlikely all the same.
///
/// # Errors
/// [`Cancelled`] when told to stop.
pub(super) fn draw(
    table: &Table,
    sensitive: Attr,
    (bucket_of, buckets): (&[u32], u32),
    number: u32,
    stream: &mut RandomStream,
    control: &Control,
) -> Result<(Vec<(u32, u32)>, u64), Cancelled> {
    let column = table.column(sensitive);
    let counts = column.counts();
    let unlikely = unlikely(table, sensitive, &counts, control)?;
    let mut rows_of: Vec<Vec<u32>> = vec![Vec::new(); buckets as usize];
    for (&bucket, row) in bucket_of.iter().zip(0..) {
        rows_of[bucket as usize].push(row);
    }
    let (mut drawn, mut seen_through) = (Vec::new(), 0);
    let mut values: Vec<u32> = (0..).zip(&counts).filter(|(_, count)| **count > 0).map(|(code, _)| code).collect();
    for (bucket, rows) in (0..).zip(&rows_of) {
        control.check()?;
        let mut present = vec![false; counts.len()];
        let mut excluded = vec![0_u64; counts.len()];
        for &row in rows {
            present[column.codes.get(row as usize) as usize] = true;
            let mut of_row: Vec<u32> = unlikely
                .iter()
                .filter_map(|(attr, by)| by.get(&table.column(*attr).codes.get(row as usize)))
                .flatten()
                .copied()
                .collect();
            of_row.sort_unstable();
            of_row.dedup();
            of_row.into_iter().for_each(|code| excluded[code as usize] += 1);
        }
        // the sort is stable: of equally good ones the order is drawn
        stream.shuffle(&mut values);
        let mut free: Vec<u32> = values.iter().copied().filter(|&code| !present[code as usize]).collect();
        free.sort_by_key(|&code| excluded[code as usize]);
        free.truncate(number as usize);
        seen_through += free.iter().filter(|code| excluded[**code as usize] > 0).count() as u64;
        drawn.extend(free.into_iter().map(|code| (bucket, code)));
    }
    Ok((drawn, seen_through))
}

/// Per attribute and value, the sensitive values that it makes unlikely.
type Unlikely = Vec<(Attr, AHashMap<u32, Vec<u32>>)>;

fn unlikely(table: &Table, sensitive: Attr, counts: &[u64], control: &Control) -> Result<Unlikely, Cancelled> {
    let rows = table.rows() as u128;
    let codes = &table.column(sensitive).codes;
    let mut all = Vec::new();
    for attr in table.attributes().without(sensitive).iter() {
        let column = table.column(attr);
        let support = column.counts();
        let mut together: AHashMap<u32, AHashMap<u32, u64>> = AHashMap::new();
        for (row, (value, code)) in column.codes.iter().zip(codes.iter()).enumerate() {
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
        all.push((attr, together.into_iter().map(rare).filter(|(_, codes)| !codes.is_empty()).collect()));
    }
    Ok(all)
}
