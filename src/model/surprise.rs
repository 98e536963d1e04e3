//! Cross entropy between the original and the model, for the owner alone.

use std::collections::{BTreeMap, HashMap};

use ahash::RandomState;

use super::cells::{PartCells, PartCounterfeits, PublishedRows, TableCells};
use super::shape::Factor;
use crate::control::{Cancelled, Control};
use crate::microdata::{AttrSet, Table, branches};
use crate::publication::PublishedTable;
use crate::with_codes;

/// Marker of a row of the original whose values no row of a part has.
const NO_MATCHING_ROW: u32 = u32::MAX;

/// Cross entropy, in nats, between the original and the estimate of a factor: the mean of `-ln p~` over its rows.
///
/// Attribute `i` is column `i` of the original. Infinite if some row is impossible.
///
/// # Errors
/// [`Cancelled`]
pub fn cross_entropy(
    factor: &Factor,
    cells: &PublishedRows,
    original: &Table,
    control: &Control,
) -> Result<f64, Cancelled> {
    let Factor { table, view } = factor;
    let table = &cells.tables[*table];
    let mut used: Vec<(&PartCells, AttrSet)> =
        table.parts.iter().zip(view.parts().iter().copied()).filter(|(_, used)| !used.is_empty()).collect();
    // the part with most attributes has the fewest buckets for each of its tuples
    used.sort_by_key(|(_, attributes)| std::cmp::Reverse(attributes.len()));
    let mut parts = Vec::with_capacity(used.len());
    for (part, attributes) in used {
        parts.push(DistinctTuples::new(&TupleSource { table, part, attributes }, cells, original, control)?);
    }
    let mut occurring: BTreeMap<Vec<u32>, u64> = BTreeMap::new();
    for row in 0..original.rows() {
        if row % Control::STRIDE == 0 {
            control.check()?;
        }
        *occurring.entry(parts.iter().map(|part| part.of_original[row]).collect()).or_default() += 1;
    }
    let Some((first, others)) = parts.split_first() else { return Ok(0.0) };
    let mut sum = 0.0;
    for (looked, (tuple, &rows)) in occurring.iter().enumerate() {
        if looked % 256 == 0 {
            control.check()?;
        }
        let share: f64 = first
            .runs_of(tuple[0])
            .iter()
            .map(|&TupleRun { bucket, rows, .. }| {
                let size = table.buckets.get(bucket as usize).map_or(1.0, |&size| f64::from(size));
                let others = others.iter().zip(&tuple[1..]).map(|(part, &of_part)| {
                    part.count_in(of_part, bucket) / (size + f64::from(part.counterfeits.of(bucket as usize)))
                });
                f64::from(rows) * others.product::<f64>()
            })
            .sum();
        sum -= rows as f64 * (share / table.rows as f64).ln();
    }
    Ok(sum / original.rows().max(1) as f64)
}

/// Cross entropy for a table whose parts share attributes, all of them read.
///
/// In a bucket, the expected number of copies of a row follows from all matchings of parts that agree. `None` if the parts form
/// no tree.
///
/// # Errors
/// [`Cancelled`]
pub fn cross_entropy_of_columns(
    table: &PublishedTable,
    cells: &PublishedRows,
    original: &Table,
    control: &Control,
) -> Result<Option<f64>, Cancelled> {
    let sets: Vec<AttrSet> =
        table.parts.iter().map(|part| part.columns.iter().map(|column| column.attribute).collect()).collect();
    let (Some(tree), Some(read)) = (branches(&sets), cells.tables.first()) else { return Ok(None) };
    let (mut parts, mut shared) = (Vec::with_capacity(sets.len()), Vec::new());
    let tuples = |part: usize, attributes: AttrSet| {
        let tuples = TupleSource { table: read, part: &read.parts[part], attributes };
        DistinctTuples::new(&tuples, cells, original, control)
    };
    for branch in &tree {
        parts.push(tuples(branch.set, sets[branch.set])?);
        if branch.on != branch.set {
            shared.push(if branch.shared.is_empty() { None } else { Some(tuples(branch.set, branch.shared)?) });
        }
    }
    let mut occurring: BTreeMap<Vec<u32>, (usize, u64)> = BTreeMap::new();
    for row in 0..original.rows() {
        if row % Control::STRIDE == 0 {
            control.check()?;
        }
        let (_, rows) = occurring.entry(parts.iter().map(|part| part.of_original[row]).collect()).or_insert((row, 0));
        *rows += 1;
    }
    let mut sum = 0.0;
    for (looked, (tuple, &(row, rows))) in occurring.iter().enumerate() {
        if looked % 256 == 0 {
            control.check()?;
        }
        let of_parts = parts.iter().zip(tuple).map(|(part, &tuple)| part.runs_of(tuple));
        let fewest = of_parts.min_by_key(|runs| runs.len()).unwrap_or_default();
        let expected = |&TupleRun { bucket, .. }: &TupleRun| {
            let times: f64 = parts.iter().zip(tuple).map(|(part, &tuple)| part.count_in(tuple, bucket)).product();
            let over = shared.iter().map(|shared| match shared {
                // rows that agree on all attributes agree on the shared ones
                Some(shared) => shared.count_in(shared.of_original[row], bucket).max(1.0),
                None => read.buckets.get(bucket as usize).map_or(1.0, |&size| f64::from(size)),
            });
            times / over.product::<f64>()
        };
        let expected: f64 = fewest.iter().map(expected).sum();
        sum -= rows as f64 * (expected / read.rows as f64).ln();
    }
    Ok(Some(sum / original.rows().max(1) as f64))
}

/// The rows of a bucket with a tuple.
#[derive(Clone, Copy)]
struct TupleRun {
    tuple: u32,
    bucket: u32,
    rows: u32,
}

/// Distinct tuples of a part, numbered.
struct DistinctTuples {
    /// Tuple of each row of the original.
    of_original: Vec<u32>,
    /// Tuples of buckets, by tuple, then by bucket.
    runs: Vec<TupleRun>,
    /// Counterfeits of the buckets.
    counterfeits: PartCounterfeits,
}

/// The tuples of a part over some of its attributes.
struct TupleSource<'a> {
    table: &'a TableCells,
    part: &'a PartCells,
    attributes: AttrSet,
}

impl DistinctTuples {
    fn new(
        TupleSource { table, part, attributes }: &TupleSource<'_>,
        cells: &PublishedRows,
        original: &Table,
        control: &Control,
    ) -> Result<Self, Cancelled> {
        let mut of_rows = vec![0_u32; part.rows(table.rows)];
        let mut of_original = vec![0_u32; original.rows()];
        for attr in attributes.iter() {
            control.check()?;
            let (Some(codes), Some(domain)) = (part.column(attr), cells.domain(attr)) else { continue };
            let column = original.column(attr);
            let known: HashMap<Option<&[u8]>, u32, RandomState> = domain.iter().zip(0..).collect();
            let here: Vec<u32> =
                column.domain.iter().map(|value| known.get(&value).copied().unwrap_or(NO_MATCHING_ROW)).collect();
            let mut pairs: HashMap<(u32, u32), u32, RandomState> = HashMap::default();
            with_codes!(codes, codes => for (tuple, &code) in of_rows.iter_mut().zip(codes) {
                let next = pairs.len() as u32;
                *tuple = *pairs.entry((*tuple, widened(code))).or_insert(next);
            });
            with_codes!(&column.codes, codes => for (tuple, &code) in of_original.iter_mut().zip(codes) {
                *tuple = pairs.get(&(*tuple, here[code as usize])).copied().unwrap_or(NO_MATCHING_ROW);
            });
        }
        control.check()?;
        let bucket = |row: usize| part.labels.get(row).copied().unwrap_or(0);
        let mut places: Vec<(u32, u32)> =
            of_rows.iter().enumerate().map(|(row, &tuple)| (tuple, bucket(row))).collect();
        places.sort_unstable();
        let runs = places
            .chunk_by(|a, b| a == b)
            .map(|run| TupleRun { tuple: run[0].0, bucket: run[0].1, rows: run.len() as u32 })
            .collect();
        Ok(Self { of_original, runs, counterfeits: part.counterfeits.clone() })
    }

    /// Runs of a tuple.
    fn runs_of(&self, tuple: u32) -> &[TupleRun] {
        let first = self.runs.partition_point(|run| run.tuple < tuple);
        let number = self.runs[first..].partition_point(|run| run.tuple == tuple);
        &self.runs[first..first + number]
    }

    fn count_in(&self, tuple: u32, bucket: u32) -> f64 {
        let found = self.runs.binary_search_by_key(&(tuple, bucket), |run| (run.tuple, run.bucket));
        found.map_or(0.0, |at| f64::from(self.runs[at].rows))
    }
}

/// A code of any width.
fn widened(code: impl Into<u32>) -> u32 {
    code.into()
}
