//! How well tables that are tied by bucket hide who is in them: of the tuples that they might hold, those that the original has
//! and those that it has not, by how many buckets match them in every part (slicing, section 7). Needs the original.

pub(in crate::verifier) mod joined;

use std::collections::BTreeSet;

use ahash::AHashMap;
use joined::{MembershipError, MembershipReport, PartJoin, PartTuples, TupleEstimate, class, drawn, in_turn, less};

use crate::control::Control;
use crate::microdata::{Attr, AttrSet, Column};
use crate::verifier::external::table::{ExternalPart, ExternalTable};

/// So many steps are looked for every tuple; beyond, some are drawn.
const MAX_EXACT_STEPS: u64 = 1 << 27;

/// The rows of all parts, times the buckets in words of 64, are at most so many: each tuple has a bit for each bucket.
const MAX_BITMAP_WORDS: u64 = 1 << 25;

/// Tuples of some attributes.
pub(in crate::verifier) struct TupleSearch {
    rows: [u64; 3],
    originals: [u64; 3],
    /// All that match.
    tuples: [TupleEstimate; 3],
    fake: TupleEstimate,
}

/// Looks for the tuples of a table whose parts are all tied by bucket; `None` when a part lacks its labels, or a row of the
/// original is in no bucket, so that the table is not made from it.
///
/// # Errors
/// [`MembershipError`]
pub fn members(
    table: &ExternalTable,
    original: &[(Attr, &Column)],
    protected: AttrSet,
    control: &Control,
) -> Result<Option<MembershipReport>, MembershipError> {
    let buckets = table.parts.iter().filter_map(|part| part.bucket.as_ref()).map(|bucket| bucket.domain.len() as u64);
    let rows: u64 = table.parts.iter().map(|part| part.rows as u64).sum();
    let words = rows.saturating_mul(buckets.max().unwrap_or(0).div_ceil(64));
    if words > MAX_BITMAP_WORDS {
        return Err(MembershipError::TooMany { limit: MAX_BITMAP_WORDS, found: words });
    }
    let Some(full) = found(table, original, (table.attributes(), AttrSet::EMPTY), control)? else { return Ok(None) };
    let beside = table.attributes().minus(protected);
    let none = TupleEstimate { value: 0.0, standard_error: 0.0, exact: true };
    // of what is protected throughout nothing is known
    let fake_qi = match beside.is_empty() {
        true => none,
        false => match found(table, original, (beside, protected.intersection(repeated(table))), control)? {
            Some(known) => known.fake,
            None => return Ok(None),
        },
    };
    let fakes = [0, 1, 2].map(|class| less(full.tuples[class], full.originals[class]));
    Ok(Some(MembershipReport { fake_full: full.fake, fake_qi, rows: full.rows, originals: full.originals, fakes }))
}

/// The attributes that stand in several parts.
pub(in crate::verifier) fn repeated(table: &ExternalTable) -> AttrSet {
    let (mut once, mut more) = (AttrSet::EMPTY, AttrSet::EMPTY);
    for part in &table.parts {
        more = more.union(once.intersection(part.attributes()));
        once = once.union(part.attributes());
    }
    more
}

/// Looks for tuples of `shown` attributes; they agree, in some bucket, on values of `hidden` ones, too.
pub(in crate::verifier) fn found(
    table: &ExternalTable,
    original: &[(Attr, &Column)],
    (shown, hidden): (AttrSet, AttrSet),
    control: &Control,
) -> Result<Option<TupleSearch>, MembershipError> {
    let attributes = shown.union(hidden);
    let used: Vec<&ExternalPart> = table.parts.iter().filter(|part| part.attributes().meets(attributes)).collect();
    let Some(first) = used.first().and_then(|part| part.bucket.as_ref()) else { return Ok(None) };
    let labels: AHashMap<Option<&[u8]>, u32> = first.domain.iter().zip(0..).collect();
    let words = labels.len().div_ceil(64).max(1);
    let mut parts = Vec::with_capacity(used.len());
    for part in used {
        control.check()?;
        let Some(read) = PartTuples::new(part, original, attributes, &labels, words) else { return Ok(None) };
        parts.push(read);
    }
    let joined = PartJoin::new(in_turn(parts), hidden, words);
    let rows = original.first().map_or(0, |(_, column)| column.codes.len());
    let mut seen: BTreeSet<Vec<u32>> = BTreeSet::new();
    let (mut of_rows, mut originals) = ([0; 3], [0; 3]);
    for row in 0..rows {
        if row % 256 == 0 {
            control.check()?;
        }
        let tuple: Option<Vec<u32>> = joined.parts.iter().map(|part| part.number(original, row)).collect();
        let Some(tuple) = tuple else { return Ok(None) };
        let told = joined.told(&tuple);
        let matching = joined.matching(&told);
        of_rows[class(matching)] += 1;
        if seen.insert(if hidden.is_empty() { tuple } else { told }) {
            originals[class(matching)] += 1;
        }
    }
    let tuples = match joined.counted(MAX_EXACT_STEPS, control)? {
        Some(found) => found.map(|found| TupleEstimate { value: found as f64, standard_error: 0.0, exact: true }),
        None => drawn(&joined, labels.len(), control)?,
    };
    let exact = tuples.iter().all(|tuples| tuples.exact);
    // classes of one sample: their deviations add up to no less than that of the whole
    let value: f64 = tuples.iter().map(|tuples| tuples.value).sum();
    let standard_error = tuples.iter().map(|tuples| tuples.standard_error.powi(2)).sum::<f64>().sqrt();
    let fake = less(TupleEstimate { value, standard_error, exact }, seen.len() as u64);
    Ok(Some(TupleSearch { rows: of_rows, originals, tuples, fake }))
}
