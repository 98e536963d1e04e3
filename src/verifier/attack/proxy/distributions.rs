use ahash::AHashMap;

use super::agreeing::{AgreeingParts, BucketNumbers, UNTRANSLATED_VALUE, translated};
use crate::control::Control;
use crate::microdata::{Attr, AttrSet, Column};
use crate::verifier::attack::error::AttackError;
use crate::verifier::external::table::{ExternalPart, ExternalTable};
use crate::with_codes;

/// Distribution of an attribute over the possible rows of a target.
pub(super) enum RemainingDistribution<'a> {
    /// The parts are independent within a bucket.
    Apart(RowDistributions),
    /// The parts share attributes.
    Agreeing(AgreeingParts<'a>),
}

impl<'a> RemainingDistribution<'a> {
    pub(super) fn new(
        table: &ExternalTable,
        attribute: Attr,
        known: AttrSet,
        original: &'a ExternalPart,
        control: &Control,
    ) -> Result<Self, AttackError> {
        match table.overlaps() {
            true => AgreeingParts::new(table, attribute, known, original, control).map(Self::Agreeing),
            false => RowDistributions::new(table, attribute, known, original, control).map(Self::Apart),
        }
    }

    pub(super) fn of_row(&self, row: usize) -> Vec<(u32, f64)> {
        match self {
            Self::Apart(distributions) => distributions.of_row(row),
            Self::Agreeing(agreeing) => agreeing.of_row(row),
        }
    }
}

/// The buckets of each tuple in rising order, each with its number of rows with the tuple.
type TupleBucketCounts = AHashMap<u32, Vec<(u32, u32)>>;

/// Distribution of an attribute for each row of the original, from independent parts.
pub(super) struct RowDistributions {
    /// The parts, other than the part of the attribute, that hold known attributes.
    located: Vec<LocatingPart>,
    /// For each row of the original, its tuple in the part of the attribute.
    own: Vec<u32>,
    /// Values in the codes of the original with their counts, by bucket and tuple.
    ///
    /// One bucket holds all rows where no other part locates a target.
    values: AHashMap<(u32, u32), Vec<(u32, u32)>>,
    sizes: Vec<f64>,
}

impl RowDistributions {
    pub(super) fn new(
        table: &ExternalTable,
        attribute: Attr,
        known: AttrSet,
        original: &ExternalPart,
        control: &Control,
    ) -> Result<Self, AttackError> {
        let known = known.without(attribute).intersection(original.attributes());
        let mut numbers = BucketNumbers::default();
        let mut sizes: Vec<f64> = Vec::new();
        let mut located: Vec<LocatingPart> = Vec::new();
        let mut own = None;
        for (index, part) in table.parts.iter().enumerate() {
            control.check()?;
            let bucket = part.bucket.as_ref();
            let buckets = bucket.map_or_else(|| vec![0; part.rows], |bucket| numbers.of_rows(bucket));
            sizes.resize(sizes.len().max(numbers.len()).max(1), 0.0);
            if index == 0 {
                buckets.iter().for_each(|&bucket| sizes[bucket as usize] += 1.0);
            }
            let shown = part.attributes().minus(part.opaque()).intersection(known);
            let holds = part.column(attribute).filter(|_| !part.opaque().contains(attribute));
            if holds.is_none() && shown.is_empty() {
                continue;
            }
            let tuples = TupleNumbers::new(part, shown, original);
            match holds {
                Some(column) => own = Some(HoldingPart { tuples, column, buckets }),
                None => located.push(LocatingPart::new(tuples, buckets)),
            }
        }
        let Some(own) = own else { return Err(AttackError::NotExact) };
        control.check()?;
        let codes = translated(own.column, original.column(attribute));
        let values = own.counted_values(&codes, !located.is_empty());
        Ok(Self { located, own: own.tuples.of_original, values, sizes })
    }

    /// The possible values of a row of the original in rising order, with shares.
    ///
    /// Empty where the table has no such row.
    pub(super) fn of_row(&self, row: usize) -> Vec<(u32, f64)> {
        let mut shares: Vec<(u32, f64)> = Vec::new();
        let mut add = |bucket: u32, weight: f64| {
            for &(value, count) in self.values.get(&(bucket, self.own[row])).into_iter().flatten() {
                shares.push((value, weight * f64::from(count)));
            }
        };
        match self.located.split_first() {
            None => add(0, 1.0),
            Some((first, others)) => {
                for &(bucket, count) in first.of_row(row) {
                    let size = self.sizes[bucket as usize].max(1.0);
                    let in_others = others.iter().map(|part| {
                        let buckets = part.of_row(row);
                        let at = buckets.binary_search_by_key(&bucket, |&(of, _)| of);
                        at.map_or(0.0, |at| f64::from(buckets[at].1)) / size
                    });
                    add(bucket, f64::from(count) * in_others.product::<f64>() / size);
                }
            }
        }
        // equal values stay in the order of buckets, so that rounded sums are deterministic
        shares.sort_by_key(|&(value, _)| value);
        let all: f64 = shares.iter().map(|&(_, share)| share).sum();
        let runs = shares.chunk_by(|a, b| a.0 == b.0);
        runs.map(|run| (run[0].0, run.iter().map(|&(_, share)| share).sum::<f64>() / all)).collect()
    }
}

/// A part that locates targets by known attributes.
struct LocatingPart {
    /// The tuple of each row of the original.
    of_original: Vec<u32>,
    buckets: TupleBucketCounts,
}

impl LocatingPart {
    fn new(tuples: TupleNumbers, buckets: Vec<u32>) -> Self {
        let mut places: Vec<(u32, u32)> = tuples.of_rows.into_iter().zip(buckets).collect();
        places.sort_unstable();
        let mut of_tuple = TupleBucketCounts::new();
        for run in places.chunk_by(|a, b| a == b) {
            of_tuple.entry(run[0].0).or_default().push((run[0].1, run.len() as u32));
        }
        Self { of_original: tuples.of_original, buckets: of_tuple }
    }

    /// The buckets that a row of the original matches, each with its number of matching rows.
    fn of_row(&self, row: usize) -> &[(u32, u32)] {
        self.buckets.get(&self.of_original[row]).map_or(&[], Vec::as_slice)
    }
}

/// The part of the attribute.
struct HoldingPart<'a> {
    tuples: TupleNumbers,
    column: &'a Column,
    /// The bucket of each row.
    buckets: Vec<u32>,
}

impl HoldingPart<'_> {
    /// Values with their counts, by bucket and tuple; `codes` translates the codes of the column.
    fn counted_values(&self, codes: &[u32], by_bucket: bool) -> AHashMap<(u32, u32), Vec<(u32, u32)>> {
        let mut places: Vec<(u32, u32, u32)> = Vec::with_capacity(self.buckets.len());
        for (row, (&tuple, &bucket)) in self.tuples.of_rows.iter().zip(&self.buckets).enumerate() {
            let bucket = if by_bucket { bucket } else { 0 };
            places.push((bucket, tuple, codes[self.column.codes.get(row) as usize]));
        }
        places.sort_unstable();
        let mut values: AHashMap<(u32, u32), Vec<(u32, u32)>> = AHashMap::new();
        for run in places.chunk_by(|a, b| a == b) {
            let (bucket, tuple, value) = run[0];
            values.entry((bucket, tuple)).or_default().push((value, run.len() as u32));
        }
        values
    }
}

/// Tuple numbers of the rows of a part and of the original: equal numbers for equal values.
struct TupleNumbers {
    of_rows: Vec<u32>,
    of_original: Vec<u32>,
}

impl TupleNumbers {
    fn new(part: &ExternalPart, attributes: AttrSet, original: &ExternalPart) -> Self {
        let (mut of_rows, mut of_original) = (vec![0_u32; part.rows], vec![0_u32; original.rows]);
        for attr in attributes.iter() {
            let (Some(column), Some(known)) = (part.column(attr), original.column(attr)) else { continue };
            let codes = translated(column, Some(known));
            let mut pairs: AHashMap<(u32, u32), u32> = AHashMap::new();
            for (tuple, code) in of_rows.iter_mut().zip(column.codes.iter()) {
                let next = pairs.len() as u32;
                *tuple = *pairs.entry((*tuple, codes[code as usize])).or_insert(next);
            }
            with_codes!(&known.codes, codes => for (tuple, &code) in of_original.iter_mut().zip(codes) {
                *tuple = pairs.get(&(*tuple, wide(code))).copied().unwrap_or(UNTRANSLATED_VALUE);
            });
        }
        Self { of_rows, of_original }
    }
}

/// Widens a code of any width.
fn wide(code: impl Into<u32>) -> u32 {
    code.into()
}
