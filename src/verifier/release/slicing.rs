//! Sliced tables: what they claim to be, and the definition by which a table holds its guarantee over all buckets together
//! (slicing, section 2), literally.
//!
//! For a row q of the original, known in every attribute but the sensitive one, the buckets of the published table that q may
//! stand in are weighed by `g(q,B) = n_1 ... n_(c-1) / size^c`, with `n_i` the rows of the bucket's column i that are q's; value
//! s then has the weight `w(q,s)`, the sum of `g(q,B) n(u,s)`, and no value may have more than 1/l of the sum of all weights.

use ahash::AHashMap;
use num_bigint::BigUint;

use crate::control::Control;
use crate::microdata::{Attr, AttrSet, Codes, Column, Table, write_span};
use crate::publication::{MethodDetails, Ratio, SlicedDiversity, TableProtection};
use crate::verifier::contract::checks::{CheckLog, CheckName};
use crate::verifier::contract::claim::{SlicingClaim, is_boxed, parts};
use crate::verifier::contract::evidence::{Evidence, VerifierError};
use crate::verifier::read::bucket_classes::JointColumn;
use crate::verifier::read::part::{ParsedColumn, ParsedPart};

/// Every box of a part holds as many rows as is said.
pub(in crate::verifier) fn frequent(evidence: &Evidence<'_>, part: &ParsedPart, place: &str, findings: &mut CheckLog) {
    let MethodDetails::Slicing { column_k: Some(k), .. } = &evidence.publication.method_details else { return };
    let boxed = part.columns.iter().filter(|column| column.cells.is_some()).map(|column| column.attribute).collect();
    let rare = JointColumn::new(part, boxed).map_or(0, |joint| joint.counts().iter().filter(|rows| *rows < k).count());
    if rare > 0 {
        findings.fail(CheckName::Guarantee, format!("{place}: {rare} boxes hold fewer than {k} rows"));
    }
}

/// The code, among the cells of a part, of the interval that each row of the original has by its box: from the smallest to the largest
/// value that rows of the box have, open where one has none. `None` where the part does not have these cells.
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

/// Checks what a publication claims of its columns.
pub(in crate::verifier) fn claims(evidence: &Evidence<'_>, findings: &mut CheckLog) {
    let MethodDetails::Slicing { columns, diversity, column_k } = &evidence.publication.method_details else { return };
    let [table] = &evidence.publication.tables[..] else {
        return findings.fail(CheckName::Columns, "a sliced publication has one table");
    };
    if !parts(table).eq(columns.iter().copied()) || !table.parts.iter().all(|part| part.bucketed) {
        findings
            .fail(CheckName::Columns, format!("table {}: its parts are not the columns that are stated", table.name));
    }
    if column_k.is_some() && !is_boxed(table) {
        findings.fail(CheckName::Columns, format!("table {}: its columns are not generalized", table.name));
    }
    let protected = evidence.publication.rules.iter().map(|rule| rule.protects.attributes());
    let protected = protected.fold(AttrSet::EMPTY, AttrSet::union);
    if columns.last().is_none_or(|last| !protected.is_subset(*last)) {
        findings.fail(
            CheckName::Columns,
            format!("table {}: the sensitive attribute is not in the last column", table.name),
        );
    }
    let shares = columns.iter().map(|column| column.len()).sum::<usize>()
        > columns.iter().fold(AttrSet::EMPTY, |all, column| all.union(*column)).len();
    let contained = |(at, column): (usize, &AttrSet)| {
        columns.iter().enumerate().any(|(other, whole)| other != at && column.is_subset(*whole))
    };
    if columns.iter().enumerate().any(contained) || (shares && column_k.is_some()) {
        findings.fail(CheckName::Columns, format!("table {}: its columns are none of slicing", table.name));
    }
    let guarding = matches!(table.protection, TableProtection::Guarding(_));
    let guards = *diversity == SlicedDiversity::Bucket && !shares;
    if guarding != guards || (!guarding && SlicingClaim::from_evidence(evidence).is_none()) {
        let detail = format!("table {}: its standing is not that of the diversity that is stated", table.name);
        findings.fail(CheckName::Guards, detail);
    }
}

/// Rows of each column by their values and their bucket, the sensitive attribute apart.
struct ColumnRows {
    attributes: Vec<Attr>,
    /// The number of each tuple that occurs.
    tuples: AHashMap<Vec<u32>, u32>,
    /// Per tuple: the buckets that have it, rising, each with how many rows.
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

    /// The tuple of a row of the original.
    fn tuple(&self, original: &Table, row: usize) -> Option<u32> {
        let codes = self.attributes.iter().map(|&attr| original.column(attr).codes.get(row));
        self.tuples.get(&codes.collect::<Vec<u32>>()).copied()
    }

    fn rows(&self, tuple: u32, bucket: u32) -> u64 {
        let buckets = &self.buckets[tuple as usize];
        buckets.binary_search_by_key(&bucket, |(label, _)| *label).map_or(0, |at| buckets[at].1)
    }
}

/// A bucket that a row may stand in: its size, the rows of each column that are the row's, and how often each sensitive value
/// stands beside what the row has in the last one.
struct MatchedBucketCounts<'a> {
    size: u64,
    rows: Vec<u64>,
    values: &'a [(u32, u64)],
}

/// Checks the claim of columns that share no attribute against the rows of the original, in what the parts show; `read` are all parts of the table.
pub(in crate::verifier) fn check(
    evidence: &Evidence<'_>,
    claim: &SlicingClaim,
    read: &[ParsedPart],
    control: &Control,
    findings: &mut CheckLog,
) -> Result<(), VerifierError> {
    let Some(original) = evidence.original else { return Ok(()) };
    let unread = "a sliced table could not be read whole";
    if evidence.publication.tables.first().is_none_or(|table| table.parts.len() != read.len()) {
        findings.fail(CheckName::Guarantee, unread);
        return Ok(());
    }
    let columns: Option<Vec<ColumnRows>> = read.iter().map(|part| ColumnRows::new(part, claim.sensitive)).collect();
    let (Some(columns), Some((last, before))) = (columns, read.split_last()) else {
        findings.fail(CheckName::Guarantee, unread);
        return Ok(());
    };
    let protected = last.columns.iter().find(|column| column.attribute == claim.sensitive);
    let (Some(protected), Some(labels)) = (protected, &last.labels) else {
        findings.fail(CheckName::Guarantee, unread);
        return Ok(());
    };
    let mut sizes: AHashMap<u32, u64> = AHashMap::new();
    labels.iter().for_each(|&label| *sizes.entry(label).or_default() += 1);
    let beside = &columns[before.len()];
    let mut values: AHashMap<(u32, u32), Vec<(u32, u64)>> = AHashMap::new();
    for (row, &label) in labels.iter().enumerate() {
        let tuple: Vec<u32> = last
            .columns
            .iter()
            .filter(|column| column.attribute != claim.sensitive)
            .map(|column| column.codes.get(row))
            .collect();
        let value = protected.codes.get(row);
        let counts = values.entry((beside.tuples[&tuple], label)).or_default();
        match counts.iter_mut().find(|(of, _)| *of == value) {
            Some((_, count)) => *count += 1,
            None => counts.push((value, 1)),
        }
    }
    let mut judged: AHashMap<Vec<u32>, bool> = AHashMap::new();
    let mut broken = 0_u64;
    // also with buckets weighed by their size
    let weighted = claim.diversity == SlicedDiversity::MixtureWeighted;
    for row in 0..original.rows() {
        if row % 256 == 0 {
            control.check()?;
        }
        let identity: Option<Vec<u32>> = columns.iter().map(|column| column.tuple(original, row)).collect();
        let Some(identity) = identity else {
            findings.fail(CheckName::Guarantee, "a row of the original stands in no bucket");
            return Ok(());
        };
        if judged.contains_key(&identity) {
            continue;
        }
        let (rarest, tuple) = columns
            .iter()
            .zip(&identity)
            .min_by_key(|(column, tuple)| column.buckets[**tuple as usize].len())
            .map_or((beside, identity[before.len()]), |(column, tuple)| (column, *tuple));
        let matching = rarest.buckets[tuple as usize].iter().filter_map(|&(bucket, _)| {
            let rows: Vec<u64> =
                columns.iter().zip(&identity).map(|(column, &tuple)| column.rows(tuple, bucket)).collect();
            let values = values.get(&(identity[before.len()], bucket))?;
            rows.iter().all(|rows| *rows > 0).then_some(MatchedBucketCounts { size: sizes[&bucket], rows, values })
        });
        let matching: Vec<MatchedBucketCounts<'_>> = matching.collect();
        let kept = (0..=u32::from(weighted)).all(|power| keeps(&matching, claim.l, power, &protected.stated.excluded));
        broken += u64::from(!kept);
        judged.insert(identity, kept);
    }
    if broken > 0 {
        let detail = format!("{broken} kinds of rows do not keep l over the buckets that they may stand in");
        findings.fail(CheckName::Guarantee, detail);
    }
    Ok(())
}

/// Sums that are so near to the bound, relatively, are computed without rounding.
const SUM_EPSILON: f64 = 1e-9;

/// Whether no value has more than 1/l of the weights of a row, buckets weighed once more by their size to this power.
fn keeps(matching: &[MatchedBucketCounts<'_>], l: Ratio, power: u32, excluded: &[u32]) -> bool {
    let mut weights: Vec<(u32, f64)> = Vec::new();
    let mut small = false;
    for bucket in matching {
        let size = bucket.size as f64;
        // of the last column each value has its own rows
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

/// The same in integers: all weights times the product of the sizes, to the power of the number of columns.
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
