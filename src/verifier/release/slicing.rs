//! Checks of sliced tables [Li et al. 2012, sections 2.1 and 3.2].
//!
//! Take a row q of the original without its sensitive value, and the buckets B of the published table that match it.
//! The weight of a bucket is `g(q,B) = n_1 ... n_(c-1) / size^c`, where `n_i` is the number of rows of column i that
//! match q. The weight of a value s is `w(q,s)`, the sum of `g(q,B) n(u,s)`. No value may have more than 1/l of the
//! sum of all weights.
//!
//! # Citations
//! docs/spec/slicing.md#verification

use ahash::{AHashMap, AHashSet};
use num_bigint::BigUint;

use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, AttrSet, Codes, Column, Table, write_span};
use crate::publication::{MethodDetails, Ratio, SlicedDiversity, TableProtection};
use crate::verifier::contract::checks::{CheckLog, CheckName};
use crate::verifier::contract::claim::{SlicingClaim, is_boxed, parts};
use crate::verifier::contract::input::{VerifierError, VerifierInput};
use crate::verifier::read::joint_column::JointColumn;
use crate::verifier::read::part::{ParsedColumn, ParsedPart};

/// How many boxes of a part hold fewer rows than declared.
pub(in crate::verifier) fn rare_boxes(
    input: &VerifierInput<'_>,
    part: &ParsedPart,
    control: &Control,
) -> Result<usize, Cancelled> {
    let MethodDetails::Slicing { column_k: Some(k), .. } = &input.publication.method_details else { return Ok(0) };
    let boxed = part.columns.iter().filter(|column| column.cells.is_some()).map(|column| column.attribute).collect();
    let joint = JointColumn::new(part, boxed, control)?;
    Ok(joint.map_or(0, |joint| joint.counts().iter().filter(|rows| *rows < k).count()))
}

/// The code of the cell that each row of the original has in a part, by its box.
///
/// The cell is the interval from the smallest to the largest value of the box, open where a value is missing. `None`
/// where the part lacks such a cell.
pub(in crate::verifier) fn intervals(column: &ParsedColumn, original: &Column, box_of: &[u32]) -> Option<Codes> {
    let domain = &original.domain;
    let mut ends: AHashMap<u32, (bool, Option<(u32, u32)>)> = AHashMap::new();
    for (&of, code) in box_of.iter().zip(original.codes.iter()) {
        let (missing, ends) = ends.entry(of).or_default();
        if domain.has_missing() && code == 0 {
            *missing = true;
        } else {
            *ends = Some(ends.map_or((code, code), |(low, high)| (low.min(code), high.max(code))));
        }
    }
    let cells: AHashMap<Option<&[u8]>, u32> = column.cells.as_ref()?.iter().map(Option::as_deref).zip(0..).collect();
    let mut text = Vec::new();
    let mut code_of: AHashMap<u32, u32> = AHashMap::new();
    for (of, (missing, ends)) in ends {
        text.clear();
        let cell = match ends {
            None => None,
            Some((low, high)) => {
                write_span(if missing { None } else { domain.value(low) }, domain.value(high)?, &mut text);
                Some(text.as_slice())
            }
        };
        code_of.insert(of, *cells.get(&cell)?);
    }
    let codes: Vec<u32> = box_of.iter().map(|of| code_of[of]).collect();
    (codes.len() == original.codes.len()).then_some(Codes::U32(codes))
}

/// Checks the claims of a sliced publication about its columns.
pub(in crate::verifier) fn claims(input: &VerifierInput<'_>, log: &mut CheckLog) {
    let MethodDetails::Slicing { columns, diversity, column_k } = &input.publication.method_details else { return };
    let [table] = &input.publication.tables[..] else {
        return log.fail(CheckName::Columns, "a sliced publication has one table");
    };
    if !parts(table).eq(columns.iter().copied()) || !table.parts.iter().all(|part| part.bucketed) {
        log.fail(CheckName::Columns, format!("table {}: its parts are not the declared columns", table.name));
    }
    if column_k.is_some() && !is_boxed(table) {
        log.fail(CheckName::Columns, format!("table {}: its columns are not generalized", table.name));
    }
    let protected = input.publication.rules.iter().map(|rule| rule.protects.attributes());
    let protected = protected.fold(AttrSet::EMPTY, AttrSet::union);
    if columns.last().is_none_or(|last| !protected.is_subset(*last)) {
        log.fail(
            CheckName::Columns,
            format!("table {}: the sensitive attribute is not in the last column", table.name),
        );
    }
    let shares = columns.iter().map(|column| column.len()).sum::<usize>()
        > columns.iter().fold(AttrSet::EMPTY, |all, column| all.union(*column)).len();
    let contained = |(at, column): (usize, &AttrSet)| {
        columns.iter().enumerate().any(|(other, outer)| other != at && column.is_subset(*outer))
    };
    if columns.iter().enumerate().any(contained) || (shares && column_k.is_some()) {
        log.fail(CheckName::Columns, format!("table {}: its columns are not those of slicing", table.name));
    }
    let guarding = matches!(table.protection, TableProtection::Guarding(_));
    let guards = *diversity == SlicedDiversity::Bucket && !shares;
    if guarding != guards || (!guarding && SlicingClaim::from_input(input).is_none()) {
        let detail = format!("table {}: its protection is not that of the declared diversity", table.name);
        log.fail(CheckName::Guards, detail);
    }
}

/// Rows of a column by their values and bucket, without the sensitive attribute.
struct ColumnRows {
    attributes: Vec<Attr>,
    /// The number of each occurring tuple.
    tuples: AHashMap<Vec<u32>, u32>,
    /// For each tuple its buckets in rising order, each with its number of rows.
    buckets: Vec<Vec<(u32, u64)>>,
}

impl ColumnRows {
    fn new(part: &ParsedPart, sensitive: Attr) -> Option<Self> {
        let labels = part.labels.as_ref()?;
        let used: Vec<_> = part.columns.iter().filter(|column| column.attribute != sensitive).collect();
        let mut tuples: AHashMap<Vec<u32>, u32> = AHashMap::new();
        let mut found: Vec<AHashMap<u32, u64>> = Vec::new();
        for (row, &label) in labels.iter().enumerate() {
            let tuple: Vec<u32> = used.iter().map(|column| column.codes.get(row)).collect();
            let next = tuples.len() as u32;
            let number = *tuples.entry(tuple).or_insert(next);
            if number == next {
                found.push(AHashMap::new());
            }
            *found[number as usize].entry(label).or_default() += 1;
        }
        let sorted = |buckets: AHashMap<u32, u64>| {
            let mut buckets: Vec<(u32, u64)> = buckets.into_iter().collect();
            buckets.sort_unstable();
            buckets
        };
        let attributes = used.iter().map(|column| column.attribute).collect();
        Some(Self { attributes, tuples, buckets: found.into_iter().map(sorted).collect() })
    }

    /// The number of the tuple that a row of the original has.
    fn tuple(&self, original: &Table, row: usize) -> Option<u32> {
        let codes = self.attributes.iter().map(|&attr| original.column(attr).codes.get(row));
        self.tuples.get(&codes.collect::<Vec<u32>>()).copied()
    }

    fn rows(&self, tuple: u32, bucket: u32) -> u64 {
        let buckets = &self.buckets[tuple as usize];
        buckets.binary_search_by_key(&bucket, |(label, _)| *label).map_or(0, |at| buckets[at].1)
    }
}

/// Counts of a bucket that matches a row.
///
/// These are its size, the matching rows of each column, and the sensitive values of matching rows in the last
/// column.
struct MatchedBucketCounts<'a> {
    size: u64,
    rows: Vec<u64>,
    values: &'a [(u32, u64)],
}

/// Checks the claim of columns without shared attributes for the rows of the original.
///
/// `read` has all parts of the table.
pub(in crate::verifier) fn check(
    input: &VerifierInput<'_>,
    claim: &SlicingClaim,
    read: &[ParsedPart],
    control: &Control,
    log: &mut CheckLog,
) -> Result<(), VerifierError> {
    let Some(original) = input.original else { return Ok(()) };
    let unread = "a sliced table could not be read completely";
    if input.publication.tables.first().is_none_or(|table| table.parts.len() != read.len()) {
        log.fail(CheckName::Guarantee, unread);
        return Ok(());
    }
    let Some(counts) = BucketCounts::new(read, claim.sensitive) else {
        log.fail(CheckName::Guarantee, unread);
        return Ok(());
    };
    let mut examined: AHashSet<Vec<u32>> = AHashSet::new();
    let mut broken = 0_u64;
    // also with buckets weighted by their size
    let weighted = claim.diversity == SlicedDiversity::MixtureWeighted;
    for row in 0..original.rows() {
        if row % 256 == 0 {
            control.check()?;
        }
        let identity: Option<Vec<u32>> = counts.columns.iter().map(|column| column.tuple(original, row)).collect();
        let Some(identity) = identity else {
            log.fail(CheckName::Guarantee, "a row of the original stands in no bucket");
            return Ok(());
        };
        if examined.contains(&identity) {
            continue;
        }
        let matching = counts.matching(&identity);
        let satisfied = (0..=u32::from(weighted)).all(|power| keeps(&matching, claim.l, power, counts.excluded));
        broken += u64::from(!satisfied);
        examined.insert(identity);
    }
    if broken > 0 {
        let detail = format!("{broken} kinds of rows do not keep l over the buckets that match them");
        log.fail(CheckName::Guarantee, detail);
    }
    Ok(())
}

/// Counts of all buckets of a sliced table.
struct BucketCounts<'a> {
    columns: Vec<ColumnRows>,
    /// Number of rows of each bucket.
    sizes: AHashMap<u32, u64>,
    /// Sensitive values with their counts, by tuple of the last column and bucket.
    values: AHashMap<(u32, u32), Vec<(u32, u64)>>,
    /// The excluded sensitive values.
    excluded: &'a [u32],
}

impl<'a> BucketCounts<'a> {
    /// `None` when a part lacks labels, or the last one lacks the sensitive attribute.
    fn new(read: &'a [ParsedPart], sensitive: Attr) -> Option<Self> {
        let columns: Vec<ColumnRows> =
            read.iter().map(|part| ColumnRows::new(part, sensitive)).collect::<Option<_>>()?;
        let (last, last_rows) = (read.last()?, columns.last()?);
        let protected = last.columns.iter().find(|column| column.attribute == sensitive)?;
        let known: Vec<_> = last.columns.iter().filter(|column| column.attribute != sensitive).collect();
        let mut sizes: AHashMap<u32, u64> = AHashMap::new();
        let mut values: AHashMap<(u32, u32), Vec<(u32, u64)>> = AHashMap::new();
        for (row, &label) in last.labels.as_ref()?.iter().enumerate() {
            *sizes.entry(label).or_default() += 1;
            let tuple: Vec<u32> = known.iter().map(|column| column.codes.get(row)).collect();
            let value = protected.codes.get(row);
            let counts = values.entry((last_rows.tuples[&tuple], label)).or_default();
            match counts.iter_mut().find(|(of, _)| *of == value) {
                Some((_, count)) => *count += 1,
                None => counts.push((value, 1)),
            }
        }
        Some(Self { columns, sizes, values, excluded: &protected.declared.excluded })
    }

    /// The buckets that match a row, given by its tuples in the columns.
    fn matching(&self, identity: &[u32]) -> Vec<MatchedBucketCounts<'_>> {
        let columns = || self.columns.iter().zip(identity);
        let rarest = columns().min_by_key(|(column, tuple)| column.buckets[**tuple as usize].len());
        let (Some((rarest, &tuple)), Some(&last)) = (rarest, identity.last()) else { return Vec::new() };
        let matched = |&(bucket, _): &(u32, u64)| {
            let rows: Vec<u64> = columns().map(|(column, &tuple)| column.rows(tuple, bucket)).collect();
            let values = self.values.get(&(last, bucket))?;
            rows.iter().all(|rows| *rows > 0).then_some(MatchedBucketCounts { size: self.sizes[&bucket], rows, values })
        };
        rarest.buckets[tuple as usize].iter().filter_map(matched).collect()
    }
}

/// Relative distance from the bound below which sums are computed without rounding.
const SUM_EPSILON: f64 = 1e-9;

/// Whether no value has more than 1/l of the weights of a row.
///
/// A bucket has the additional weight `size^power`.
fn keeps(matching: &[MatchedBucketCounts<'_>], l: Ratio, power: u32, excluded: &[u32]) -> bool {
    let mut weights: Vec<(u32, f64)> = Vec::new();
    let mut small = false;
    for bucket in matching {
        let size = bucket.size as f64;
        // the last column counts the rows of each value
        let columns = &bucket.rows[..bucket.rows.len() - 1];
        let share: f64 = columns.iter().map(|&rows| rows as f64 / size).product::<f64>() / size;
        small |= share < f64::MIN_POSITIVE.sqrt();
        for &(value, rows) in bucket.values {
            let weight = share * rows as f64 * if power == 1 { size } else { 1.0 };
            match weights.iter_mut().find(|(of, _)| *of == value) {
                Some((_, sum)) => *sum += weight,
                None => weights.push((value, weight)),
            }
        }
    }
    let out = |value: u32| excluded.contains(&value);
    let all: f64 = weights.iter().map(|(_, weight)| weight).sum();
    let left: f64 = weights.iter().filter(|(value, _)| !out(*value)).map(|(_, weight)| weight).sum();
    let l_near = l.to_f64();
    let mut kept = true;
    for &(value, weight) in &weights {
        let among = if out(value) { all } else { left };
        if small || (l_near * weight - among).abs() <= SUM_EPSILON * all {
            return keeps_exactly(matching, l, power, excluded);
        }
        kept &= l_near * weight < among;
    }
    kept && left > 0.0
}

/// The same in integers, with all weights multiplied by a power of the product of the sizes.
fn keeps_exactly(matching: &[MatchedBucketCounts<'_>], l: Ratio, power: u32, excluded: &[u32]) -> bool {
    let mut sizes: Vec<u64> = matching.iter().map(|bucket| bucket.size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let product: BigUint = sizes.iter().map(|&size| BigUint::from(size)).product();
    let mut weights: Vec<(u32, BigUint)> = Vec::new();
    for bucket in matching {
        let columns = &bucket.rows[..bucket.rows.len() - 1];
        let mut share = (&product / bucket.size).pow(bucket.rows.len() as u32);
        columns.iter().for_each(|&rows| share *= rows);
        if power == 1 {
            share *= bucket.size;
        }
        for &(value, rows) in bucket.values {
            let weight = &share * rows;
            match weights.iter_mut().find(|(of, _)| *of == value) {
                Some((_, sum)) => *sum += weight,
                None => weights.push((value, weight)),
            }
        }
    }
    let out = |value: u32| excluded.contains(&value);
    let all: BigUint = weights.iter().map(|(_, weight)| weight).sum();
    let left: BigUint = weights.iter().filter(|(value, _)| !out(*value)).map(|(_, weight)| weight).sum();
    left > BigUint::ZERO
        && weights.iter().all(|(value, weight)| {
            let among = if out(*value) { &all } else { &left };
            weight * l.numerator() <= among * l.denominator()
        })
}
