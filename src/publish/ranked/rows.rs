//! The buckets of rows that are at hand, as an engine with the same rows makes them.

use std::cmp::Ordering;

use rayon::prelude::*;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::keys::{UseKey, encoded_cell};
use super::plan::plan_buckets;
use super::segments::Segment;
use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, Table};
use crate::publication::Guarantee;
use crate::publish::assign::BucketAssignment;
use crate::publish::input::AttributeBuckets;
use crate::random::ReleaseKey;

/// The rows between two looks whether the job was cancelled.
const ROWS_BETWEEN_LOOKS: usize = 1 << 16;

/// The rows of a table with what they are ranked by.
pub struct RankedRows<'a> {
    /// The rows in canonical order: equal ones stand next to each other.
    table: &'a Table,
    /// The columns that rank rows, in the order of their encodings.
    columns: &'a [RankingColumn],
    /// The number of each row among equal ones, from 1.
    copies: Vec<u32>,
    key: &'a ReleaseKey,
}

/// A column with its cells as the engine encodes them.
pub struct RankingColumn {
    /// The attribute of the table.
    pub attribute: Attr,
    /// The encoded cell of each code.
    pub cells: Vec<String>,
}

impl<'a> RankedRows<'a> {
    /// Numbers equal rows of a table whose rows stand in the order of these columns.
    #[must_use]
    pub fn new(table: &'a Table, columns: &'a [RankingColumn], key: &'a ReleaseKey) -> Self {
        let codes: Vec<_> = columns.iter().map(|of| &table.column(of.attribute).codes).collect();
        let mut copies: Vec<u32> = Vec::with_capacity(table.rows());
        for row in 0..table.rows() {
            let before = copies.last().filter(|_| codes.iter().all(|of| of.get(row - 1) == of.get(row)));
            copies.push(before.map_or(1, |before| before + 1));
        }
        Self { table, columns, copies, key }
    }

    /// The keyed number of each row.
    fn numbers(&self, key: &UseKey, control: &Control) -> Result<Vec<u64>, Cancelled> {
        let number = |text: &mut String, row: usize| {
            text.clear();
            text.push_str(key.digits());
            for RankingColumn { attribute, cells } in self.columns {
                text.push_str(&cells[self.table.column(*attribute).codes.get(row) as usize]);
            }
            text.push_str(&encoded_cell(Some(&self.copies[row].to_string())));
            let mut first = [0; 8];
            first.copy_from_slice(&Sha256::digest(&*text)[..8]);
            u64::from_be_bytes(first) >> 4
        };
        let mut numbers = vec![0; self.table.rows()];
        let pieces = numbers.par_chunks_mut(ROWS_BETWEEN_LOOKS).enumerate();
        let of_piece = |(piece, numbers): (usize, &mut [u64])| {
            control.check()?;
            let mut text = Zeroizing::new(String::new());
            let first = piece * ROWS_BETWEEN_LOOKS;
            numbers.iter_mut().enumerate().for_each(|(at, found)| *found = number(&mut text, first + at));
            Ok(())
        };
        pieces.map(of_piece).collect::<Result<(), Cancelled>>()?;
        Ok(numbers)
    }
}

impl AttributeBuckets for RankedRows<'_> {
    /// By the rank of each row among those of its value, as a plan from the counts of the attribute places it.
    ///
    /// The buckets follow from the rows, the key and the name of the attribute, and not from the table that publishes it.
    fn of_attribute(
        &self,
        sensitive: Attr,
        guarantees: &[Guarantee],
        control: &Control,
    ) -> Result<BucketAssignment, Cancelled> {
        let (column, name) = (self.table.column(sensitive), self.table.name(sensitive));
        let Ok(plan) = plan_buckets(&column.counts(), guarantees, self.key, name) else {
            // an ineligible rule is refused before tables are chosen
            return Ok(BucketAssignment { bucket_of: vec![0; self.table.rows()], buckets: 1 });
        };
        let numbers = self.numbers(&UseKey::of_attribute(self.key, name), control)?;
        let value = |row: u32| column.codes.get(row as usize);
        let mut rows: Vec<u32> = (0..self.table.rows() as u32).collect();
        // rows stand in canonical order, so that their positions decide between equal numbers
        rows.par_sort_unstable_by_key(|&row| (value(row), numbers[row as usize], row));
        control.check()?;
        let mut bucket_of = vec![0; rows.len()];
        for of_value in rows.chunk_by(|&one, &other| value(one) == value(other)) {
            let segments = plan.segments.iter().filter(|segment| segment.value == value(of_value[0]));
            for segment in segments {
                for rank in segment.first..segment.end {
                    bucket_of[of_value[rank as usize] as usize] = bucket(segment, rank);
                }
            }
        }
        Ok(BucketAssignment { bucket_of, buckets: plan.buckets() as u32 })
    }
}

/// The bucket of a rank of a segment.
const fn bucket(segment: &Segment, rank: u64) -> u32 {
    (segment.base + (segment.position + rank - segment.first) % segment.buckets) as u32
}

/// How two rows stand to each other in the order of some columns.
#[must_use]
pub fn compare_rows(table: &Table, columns: &[Attr], one: u32, other: u32) -> Ordering {
    let code = |attr: Attr, row: u32| table.column(attr).codes.get(row as usize);
    let differ = |attr: &Attr| code(*attr, one).cmp(&code(*attr, other));
    columns.iter().map(differ).find(|compared| compared.is_ne()).unwrap_or(Ordering::Equal)
}
