//! Joint values of several columns.

use std::borrow::Cow;

use ahash::AHashMap;

use super::part::{ParsedColumn, ParsedPart};
use super::row_keys::BucketOffsets;
use crate::control::{Cancelled, Control};
use crate::microdata::{AttrSet, Codes};

/// Refines the class of each row by a column, and gives the number of classes; their numbers rise in the order of rows.
pub(in crate::verifier) fn refine(ids: &mut [u32], codes: &Codes, control: &Control) -> Result<u32, Cancelled> {
    let mut known: AHashMap<(u32, u32), u32> = AHashMap::new();
    for (row, (id, code)) in ids.iter_mut().zip(codes.iter()).enumerate() {
        if row.is_multiple_of(Control::STRIDE) {
            control.check()?;
        }
        let next = known.len() as u32;
        *id = *known.entry((*id, code)).or_insert(next);
    }
    Ok(known.len() as u32)
}

/// Joint values of several columns, as one code for each row.
pub(in crate::verifier) struct JointColumn<'a> {
    pub(in crate::verifier) codes: Cow<'a, Codes>,
    /// Number of codes.
    pub(in crate::verifier) size: usize,
}

impl<'a> JointColumn<'a> {
    /// The joint column of `attributes`; `None` when there are none or the part lacks one.
    pub(in crate::verifier) fn new(
        part: &'a ParsedPart,
        attributes: AttrSet,
        control: &Control,
    ) -> Result<Option<Self>, Cancelled> {
        let column = |attr| part.columns.iter().find(|column| column.attribute == attr);
        let columns: Option<Vec<&ParsedColumn>> = attributes.iter().map(column).collect();
        let Some((first, others)) = columns.as_ref().and_then(|columns| columns.split_first()) else {
            return Ok(None);
        };
        if others.is_empty() {
            return Ok(Some(Self { codes: Cow::Borrowed(&first.codes), size: first.size }));
        }
        let mut codes: Vec<u32> = first.codes.iter().collect();
        let mut size = first.size;
        for other in others {
            size = refine(&mut codes, &other.codes, control)? as usize;
        }
        Ok(Some(Self { codes: Cow::Owned(Codes::U32(codes)), size }))
    }

    /// Number of rows with each code.
    pub(in crate::verifier) fn counts(&self) -> Vec<u64> {
        let mut counts = vec![0; self.size];
        self.codes.iter().for_each(|code| counts[code as usize] += 1);
        counts
    }

    /// The codes ordered by bucket.
    pub(in crate::verifier) fn by_bucket(self, part: &ParsedPart, buckets: &BucketOffsets) -> Option<Self> {
        let labels = part.labels.as_ref()?;
        if labels.is_sorted() {
            return Some(self);
        }
        let mut codes: Vec<u32> = vec![0; part.rows];
        let mut next: Vec<usize> = buckets.ranges().map(|range| range.start).collect();
        for (&label, code) in labels.iter().zip(self.codes.iter()) {
            let place = &mut next[label as usize - 1];
            codes[*place] = code;
            *place += 1;
        }
        Some(Self { codes: Cow::Owned(Codes::U32(codes)), size: self.size })
    }
}
