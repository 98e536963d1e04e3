//! Canonical order: rows by bucket label, then by the attributes from left to right.
//!
//! Codes are ranks, so comparing codes compares values.

use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, Column, Table};
use crate::with_codes;

/// The rows in canonical order of `attrs`, each group of equal label for itself when there are labels (`1..=groups`).
pub(super) fn canonical_order(
    table: &Table,
    attrs: &[Attr],
    labels: Option<(&[u32], u32)>,
    control: &Control,
) -> Result<Vec<u32>, Cancelled> {
    let columns: Vec<&Column> = attrs.iter().map(|&attr| table.column(attr)).collect();
    let bits: u32 = columns.iter().map(|column| width(column)).sum();
    match bits {
        0..=64 => order_by_keys::<u64>(table.rows(), &columns, labels, control),
        65..=128 => order_by_keys::<u128>(table.rows(), &columns, labels, control),
        _ => {
            let (mut order, starts) = grouped(table.rows(), labels);
            for group in starts.windows(2) {
                control.advance((group[1] - group[0]) as u64)?;
                order[group[0]..group[1]].sort_unstable_by(|&a, &b| {
                    let codes = |row: u32| columns.iter().map(move |column| column.codes.get(row as usize));
                    codes(a).cmp(codes(b))
                });
            }
            Ok(order)
        }
    }
}

/// How many bits a code of the column takes.
fn width(column: &Column) -> u32 {
    column.domain.len().saturating_sub(1).checked_ilog2().map_or(0, |highest| highest + 1)
}

/// A word that holds the codes of a tuple, the first attribute in the highest bits.
trait Key: Copy + Ord + Default {
    fn append(self, width: u32, code: impl Into<u32>) -> Self;
}

impl Key for u64 {
    fn append(self, width: u32, code: impl Into<u32>) -> Self {
        self << width | Self::from(code.into())
    }
}

impl Key for u128 {
    fn append(self, width: u32, code: impl Into<u32>) -> Self {
        self << width | Self::from(code.into())
    }
}

fn order_by_keys<K: Key>(
    rows: usize,
    columns: &[&Column],
    labels: Option<(&[u32], u32)>,
    control: &Control,
) -> Result<Vec<u32>, Cancelled> {
    let mut keys = vec![K::default(); rows];
    for column in columns.iter().filter(|column| width(column) > 0) {
        let width = width(column);
        with_codes!(&column.codes, codes => for (key, &code) in keys.iter_mut().zip(codes) {
            *key = key.append(width, code);
        });
        control.check()?;
    }
    let (order, starts) = grouped(rows, labels);
    let mut pairs: Vec<(K, u32)> = order.into_iter().map(|row| (keys[row as usize], row)).collect();
    drop(keys);
    let mut done = 0;
    for group in starts.windows(2) {
        pairs[group[0]..group[1]].sort_unstable_by_key(|pair| pair.0);
        if group[1] - done >= Control::STRIDE {
            control.advance((group[1] - done) as u64)?;
            done = group[1];
        }
    }
    control.advance((rows - done) as u64)?;
    Ok(pairs.into_iter().map(|pair| pair.1).collect())
}

/// The rows grouped by label, and where each group starts and the last one ends.
fn grouped(rows: usize, labels: Option<(&[u32], u32)>) -> (Vec<u32>, Vec<usize>) {
    let Some((labels, groups)) = labels else { return ((0..rows as u32).collect(), vec![0, rows]) };
    let mut starts = vec![0usize; groups as usize + 1];
    for &label in labels {
        starts[label as usize] += 1;
    }
    for group in 1..starts.len() {
        starts[group] += starts[group - 1];
    }
    // starts[label] is now where the label's rows end; filled from behind it becomes where they start
    let mut order = vec![0u32; rows];
    let mut next = starts.clone();
    for (row, &label) in labels.iter().enumerate().rev() {
        let slot = &mut next[label as usize];
        *slot -= 1;
        order[*slot] = row as u32;
    }
    (order, starts)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::microdata::{Arena, AttributeType, Codes, Domain};

    fn table(domains: &[usize], rows: &[Vec<u32>]) -> Table {
        let column = |(index, &len): (usize, &usize)| {
            let mut arena = Arena::default();
            (0..len).for_each(|value| arena.push(format!("{value:09}").as_bytes()));
            Column {
                domain: Arc::new(Domain::from_sorted(AttributeType::Text, false, arena)),
                codes: Codes::collect(len, rows.iter().map(|row| row[index] % len as u32)),
            }
        };
        let columns = domains.iter().enumerate().map(column).collect();
        Table::new((0..domains.len()).map(|i| format!("a{i}")).collect(), columns)
    }

    proptest! {
        #[test]
        fn the_order_is_by_label_and_then_left_to_right(
            wide in 1usize..8, rows in prop::collection::vec(prop::collection::vec(any::<u32>(), 8), 0..60), groups in 1u32..9
        ) {
            // few narrow attributes fit u64, more u128, many none
            let domains = vec![[1usize, 3, 300, 70_000][wide % 4]; wide + 1];
            let table = table(&domains, &rows);
            let attrs: Vec<Attr> = table.attributes().iter().collect();
            let labels: Vec<u32> = rows.iter().map(|row| row[7] % groups + 1).collect();
            let order = canonical_order(&table, &attrs, Some((&labels, groups)), &Control::default()).unwrap();
            let tuple = |row: u32| {
                let codes: Vec<u32> = attrs.iter().map(|&a| table.column(a).codes.get(row as usize)).collect();
                (labels[row as usize], codes)
            };
            prop_assert!(order.windows(2).all(|pair| tuple(pair[0]) <= tuple(pair[1])));
            let mut all = order.clone();
            all.sort_unstable();
            prop_assert_eq!(all, (0..rows.len() as u32).collect::<Vec<_>>());
        }
    }
}
