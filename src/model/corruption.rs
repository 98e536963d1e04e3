//! Corruption: posteriors of an adversary who knows the sensitive values of some rows of a bucket.
//!
//! # Citations
//! - [Tao et al. 2008], corruption.
//! - [Wang et al. 2012, section 6]
//! - `docs/spec/bucketize.md#corruption`

use std::collections::BTreeMap;

use super::cells::PublishedRows;
use crate::control::{Cancelled, Control};
use crate::microdata::Attr;

/// Probability of a value, as `(count, of)`; `None` if no row remains.
type Posterior = Option<(u64, u64)>;

/// Largest posterior of a value in each bucket, for an adversary who knows the worst choice of a number of its rows.
///
/// Buckets are in the order of their labels. Empty if no part holds the attribute.
///
/// # Errors
/// [`Cancelled`]
pub fn corrupted(
    cells: &PublishedRows,
    table: usize,
    sensitive: Attr,
    known: u64,
    control: &Control,
) -> Result<Option<Vec<Posterior>>, Cancelled> {
    let table = &cells.tables[table];
    let part = table.parts.iter().find(|part| part.column(sensitive).is_some());
    let Some((part, codes)) = part.and_then(|part| Some((part, part.column(sensitive)?))) else { return Ok(None) };
    let mut counts: Vec<BTreeMap<u32, u64>> = vec![BTreeMap::new(); table.buckets.len()];
    for (row, (&bucket, code)) in part.labels.iter().zip(codes.iter()).enumerate() {
        if row.is_multiple_of(Control::STRIDE) {
            control.check()?;
        }
        *counts[bucket as usize].entry(code).or_default() += 1;
    }
    let of_bucket = |(bucket, (counts, &size)): (usize, (&BTreeMap<u32, u64>, &u32))| {
        posterior(counts.values().copied(), u64::from(size), u64::from(part.counterfeits.of(bucket)), known)
    };
    Ok(Some(counts.iter().zip(&table.buckets).enumerate().map(of_bucket).collect()))
}

/// Posterior in a bucket of `size` rows, some of which are counterfeits with values that the bucket does not hold otherwise.
fn posterior(counts: impl Iterator<Item = u64>, size: u64, counterfeits: u64, known: u64) -> Posterior {
    let left = size.checked_sub(known).filter(|left| *left > 0)?;
    let (mut most, mut single) = (0, 0);
    for count in counts {
        most = count.max(most);
        single += u64::from(count == 1);
    }
    // a repeated value is real: the adversary knows rows with other values
    let real = (most > 1).then(|| (most.min(left), left));
    let single = single.saturating_sub(counterfeits).min(left);
    let alone = (single > 0).then(|| {
        // one of the remaining rows, each equally likely
        if single == left { (1, left + counterfeits) } else { (single, (single + counterfeits) * left) }
    });
    [real, alone]
        .into_iter()
        .flatten()
        .max_by(|(a, of_a), (b, of_b)| (u128::from(*a) * u128::from(*of_b)).cmp(&(u128::from(*b) * u128::from(*of_a))))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the definition: an adversary who knows `known` rows, chosen for the worst, and weighs every choice of counterfeits and every
    /// matching alike.
    fn literal(values: &[u32], counterfeits: usize, known: usize) -> Option<f64> {
        let rows = values.len() - counterfeits;
        let left = rows.checked_sub(known).filter(|left| *left > 0)?;
        let count = |value: u32| values.iter().filter(|v| **v == value).count();
        let mut worst = 0.0_f64;
        // any choice of values that stand there once may be the counterfeits
        let single: Vec<usize> = (0..values.len()).filter(|at| count(values[*at]) == 1).collect();
        let fakes: Vec<Vec<usize>> = choices(&single, counterfeits);
        for fake in &fakes {
            let real: Vec<usize> = (0..values.len()).filter(|at| !fake.contains(at)).collect();
            for revealed in choices(&real, known) {
                let rest: Vec<usize> = (0..values.len()).filter(|at| !revealed.contains(at)).collect();
                let worlds: Vec<&Vec<usize>> =
                    fakes.iter().filter(|other| other.iter().all(|at| !revealed.contains(at))).collect();
                let mut seen = rest.iter().map(|at| values[*at]).collect::<Vec<u32>>();
                seen.dedup();
                for value in seen {
                    let mean: f64 = worlds
                        .iter()
                        .map(|assignment| {
                            let has =
                                rest.iter().filter(|at| !assignment.contains(at) && values[**at] == value).count();
                            has as f64 / left as f64
                        })
                        .sum::<f64>()
                        / worlds.len() as f64;
                    worst = worst.max(mean);
                }
            }
        }
        Some(worst)
    }

    fn choices(of: &[usize], number: usize) -> Vec<Vec<usize>> {
        match (of.split_first(), number) {
            (_, 0) => vec![Vec::new()],
            (None, _) => Vec::new(),
            (Some((first, rest)), _) => {
                let with = choices(rest, number - 1).into_iter().map(|mut more| {
                    more.push(*first);
                    more
                });
                with.chain(choices(rest, number)).collect()
            }
        }
    }

    #[test]
    fn who_knows_some_finds_the_others_as_the_definition_says() {
        let buckets: [(&[u32], usize); 7] = [
            (&[1, 2, 3, 4], 0),
            (&[1, 2, 3, 4, 5], 1),
            (&[1, 2, 3, 4, 5, 6], 2),
            (&[1, 1, 2, 3], 0),
            (&[1, 1, 2, 3, 4], 1),
            (&[1, 1, 1, 2, 2, 3, 4], 1),
            (&[1, 1, 2, 2, 3, 4], 2),
        ];
        for (values, counterfeits) in buckets {
            let size = values.len() - counterfeits;
            for known in 0..=size + 1 {
                let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
                values.iter().for_each(|value| *counts.entry(*value).or_default() += 1);
                let found = posterior(counts.into_values(), size as u64, counterfeits as u64, known as u64);
                let found = found.map(|(count, of)| count as f64 / of as f64);
                let expected = literal(values, counterfeits, known);
                let same = match (found, expected) {
                    (Some(found), Some(expected)) => (found - expected).abs() < 1e-12,
                    (found, expected) => found == expected,
                };
                assert!(same, "{values:?}, {counterfeits} of nobody, {known} known: {found:?} {expected:?}");
            }
        }
        // of ten and one, nine are known: a half
        assert_eq!(posterior(std::iter::repeat_n(1, 11), 10, 1, 9), Some((1, 2)));
    }
}
