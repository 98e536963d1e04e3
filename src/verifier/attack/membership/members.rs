use std::collections::BTreeSet;

use ahash::AHashMap;

use super::join::PartJoin;
use super::part_tuples::{PartTuples, in_turn};
use super::report::{MembershipError, MembershipReport, TupleEstimate, class, less};
use super::sampling::drawn;
use crate::control::Control;
use crate::microdata::{Attr, AttrSet, Column};
use crate::verifier::external::table::{ExternalPart, ExternalTable};

/// Maximal number of steps of the exact count; above it, the attack samples.
const MAX_EXACT_STEPS: u64 = 1 << 27;

/// Maximal size of the bitmaps in 64-bit words.
///
/// The size is the number of rows of all parts times the words of one bit for each bucket.
const MAX_BITMAP_WORDS: u64 = 1 << 25;

/// Counts of the tuples over some attributes, by class of matching buckets.
pub(in crate::verifier) struct TupleSearch {
    rows: [u64; 3],
    originals: [u64; 3],
    /// All matching tuples.
    tuples: [TupleEstimate; 3],
    fake: TupleEstimate,
}

/// Counts the tuples that match the buckets of a table.
///
/// `None` when a part has no labels, or when no bucket holds a row of the original: then the table is not made from
/// it.
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
    let all = MatchedAttributes { shown: table.attributes(), hidden: AttrSet::EMPTY };
    let Some(full) = count_matching(table, original, all, control)? else { return Ok(None) };
    let known = table.attributes().minus(protected);
    let none = TupleEstimate { value: 0.0, standard_error: 0.0, exact: true };
    // if all attributes are protected, the adversary knows none
    let of_known = MatchedAttributes { shown: known, hidden: protected.intersection(table.repeated()) };
    let fake_qi = match known.is_empty() {
        true => none,
        false => match count_matching(table, original, of_known, control)? {
            Some(known) => known.fake,
            None => return Ok(None),
        },
    };
    let fakes = [0, 1, 2].map(|class| less(full.tuples[class], full.originals[class]));
    Ok(Some(MembershipReport { fake_full: full.fake, fake_qi, rows: full.rows, originals: full.originals, fakes }))
}

/// Attributes of counted tuples.
#[derive(Clone, Copy)]
pub(in crate::verifier) struct MatchedAttributes {
    /// The attributes of the tuples.
    pub(in crate::verifier) shown: AttrSet,
    /// Other attributes, on whose values the parts of a bucket agree.
    pub(in crate::verifier) hidden: AttrSet,
}

/// Counts the tuples of the shown attributes that agree in a bucket on the hidden ones.
pub(in crate::verifier) fn count_matching(
    table: &ExternalTable,
    original: &[(Attr, &Column)],
    MatchedAttributes { shown, hidden }: MatchedAttributes,
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
        let visible = joined.visible_values(&tuple);
        let matching = joined.matching(&visible);
        of_rows[class(matching)] += 1;
        if seen.insert(if hidden.is_empty() { tuple } else { visible }) {
            originals[class(matching)] += 1;
        }
    }
    let tuples = match joined.counted(MAX_EXACT_STEPS, control)? {
        Some(found) => found.map(|found| TupleEstimate { value: found as f64, standard_error: 0.0, exact: true }),
        None => drawn(&joined, labels.len(), control)?,
    };
    let exact = tuples.iter().all(|tuples| tuples.exact);
    // the classes come from one sample: their added deviations are an upper bound of the deviation of the sum
    let value: f64 = tuples.iter().map(|tuples| tuples.value).sum();
    let standard_error = tuples.iter().map(|tuples| tuples.standard_error.powi(2)).sum::<f64>().sqrt();
    let fake = less(TupleEstimate { value, standard_error, exact }, seen.len() as u64);
    Ok(Some(TupleSearch { rows: of_rows, originals, tuples, fake }))
}
