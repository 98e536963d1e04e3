//! Joint values of several columns.

use std::borrow::Cow;

use ahash::AHashMap;

use super::row_keys::BucketOffsets;
use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, AttrSet, Codes};

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

/// A part with a code for each cell: of a release, or of an external table.
pub(in crate::verifier) trait CodedPart {
    /// The codes of an attribute; `None` when the part lacks it.
    fn coded(&self, attr: Attr) -> Option<JointColumn<'_>>;
}

/// Joint values of several columns, as one code for each row.
pub(in crate::verifier) struct JointColumn<'a> {
    pub(in crate::verifier) codes: Cow<'a, Codes>,
    /// Number of codes.
    pub(in crate::verifier) size: usize,
}

impl<'a> JointColumn<'a> {
    /// The joint column of `attributes`; `None` when there are none or the part lacks one.
    ///
    /// A single attribute keeps its codes.
    pub(in crate::verifier) fn new(
        part: &'a impl CodedPart,
        attributes: AttrSet,
        control: &Control,
    ) -> Result<Option<Self>, Cancelled> {
        let columns: Option<Vec<Self>> = attributes.iter().map(|attr| part.coded(attr)).collect();
        let mut columns = columns.unwrap_or_default().into_iter();
        let Some(mut joint) = columns.next() else { return Ok(None) };
        for other in columns {
            let mut codes: Vec<u32> = joint.codes.iter().collect();
            let size = refine(&mut codes, &other.codes, control)? as usize;
            joint = Self { codes: Cow::Owned(Codes::U32(codes)), size };
        }
        Ok(Some(joint))
    }

    /// Number of rows with each code.
    pub(in crate::verifier) fn counts(&self) -> Vec<u64> {
        let mut counts = vec![0; self.size];
        self.codes.iter().for_each(|code| counts[code as usize] += 1);
        counts
    }

    /// The codes ordered by bucket, for the labels that `buckets` counted.
    pub(in crate::verifier) fn by_bucket(self, labels: &[u32], buckets: &BucketOffsets) -> Self {
        if labels.is_sorted() {
            return self;
        }
        let mut codes: Vec<u32> = vec![0; labels.len()];
        let mut next: Vec<usize> = buckets.ranges().map(|range| range.start).collect();
        for (&label, code) in labels.iter().zip(self.codes.iter()) {
            let place = &mut next[label as usize - 1];
            codes[*place] = code;
            *place += 1;
        }
        Self { codes: Cow::Owned(Codes::U32(codes)), size: self.size }
    }
}
