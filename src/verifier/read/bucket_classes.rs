//! Classes of rows that a guard bounds.
//!
//! A class has the rows of a bucket that agree on the known attributes of the protected part.

use std::borrow::Cow;
use std::ops::Range;

use ahash::AHashMap;

use super::part::{ParsedColumn, ParsedPart};
use super::row_keys::BucketOffsets;
use crate::microdata::{AttrSet, Codes};
use crate::publication::TableGuard;

/// Joint values of several columns, as one code for each row.
pub(in crate::verifier) struct JointColumn<'a> {
    pub(in crate::verifier) codes: Cow<'a, Codes>,
    /// Number of codes.
    pub(in crate::verifier) size: usize,
}

impl<'a> JointColumn<'a> {
    /// The joint column of `attributes`; `None` when there are none or the part lacks one.
    pub(in crate::verifier) fn new(part: &'a ParsedPart, attributes: AttrSet) -> Option<Self> {
        let column = |attr| part.columns.iter().find(|column| column.attribute == attr);
        let columns: Vec<&ParsedColumn> = attributes.iter().map(column).collect::<Option<_>>()?;
        let (first, others) = columns.split_first()?;
        let mut joint = Self { codes: Cow::Borrowed(&first.codes), size: first.size };
        for other in others {
            joint = Self::joined(&joint.codes, &other.codes);
        }
        Some(joint)
    }

    /// Joins two columns: a code for each pair of codes, in order of appearance.
    pub(in crate::verifier) fn joined<'b>(left: &Codes, right: &Codes) -> JointColumn<'b> {
        let mut numbers: AHashMap<(u32, u32), u32> = AHashMap::new();
        let mut codes = Vec::with_capacity(left.len());
        for pair in left.iter().zip(right.iter()) {
            let next = numbers.len() as u32;
            codes.push(*numbers.entry(pair).or_insert(next));
        }
        JointColumn { codes: Cow::Owned(Codes::U32(codes)), size: numbers.len() }
    }

    /// Number of rows with each code.
    pub(in crate::verifier) fn counts(&self) -> Vec<u64> {
        let mut counts = vec![0; self.size];
        self.codes.iter().for_each(|code| counts[code as usize] += 1);
        counts
    }

    /// The codes ordered by bucket.
    fn by_bucket(self, part: &ParsedPart, buckets: &BucketOffsets) -> Option<Self> {
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

/// The rows of a part, divided into the classes of a guard.
pub(in crate::verifier) struct BucketClasses<'a> {
    /// The protected attributes.
    pub(in crate::verifier) protected: JointColumn<'a>,
    /// The known attributes of the same part, if there are any.
    known: Option<JointColumn<'a>>,
    buckets: &'a BucketOffsets,
}

impl<'a> BucketClasses<'a> {
    /// The classes of a guard; `None` when `part` lacks a protected attribute.
    pub(in crate::verifier) fn new(
        part: &'a ParsedPart,
        buckets: &'a BucketOffsets,
        guard: &TableGuard,
    ) -> Option<Self> {
        let here: AttrSet = part.columns.iter().map(|column| column.attribute).collect();
        let protected = JointColumn::new(part, guard.protects.attributes())?.by_bucket(part, buckets)?;
        let known_here = guard.known.intersection(here);
        let known = match known_here.is_empty() {
            true => None,
            false => Some(JointColumn::new(part, known_here)?.by_bucket(part, buckets)?),
        };
        Some(Self { protected, known, buckets })
    }

    /// Calls `visit` with the protected values of each class, rising.
    pub(in crate::verifier) fn each(&self, mut visit: impl FnMut(&[u32])) {
        let (mut class, mut pairs): (Vec<u32>, Vec<(u32, u32)>) = (Vec::new(), Vec::new());
        let protected = &self.protected.codes;
        for range in self.buckets.ranges().filter(|range: &Range<usize>| !range.is_empty()) {
            let Some(known) = &self.known else {
                class.clear();
                class.extend(range.map(|row| protected.get(row)));
                class.sort_unstable();
                visit(&class);
                continue;
            };
            pairs.clear();
            pairs.extend(range.map(|row| (known.codes.get(row), protected.get(row))));
            pairs.sort_unstable();
            for alike in pairs.chunk_by(|a, b| a.0 == b.0) {
                class.clear();
                class.extend(alike.iter().map(|pair| pair.1));
                visit(&class);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::microdata::{Attr, AttrSet};
    use crate::publication::Protected;
    use crate::verifier::contract::checks::CheckName;
    use crate::verifier::definition::share::ShareOfRows;
    use crate::verifier::tests::fixture::{Cell, VerifierFixture, failed, guard};

    /// One bucket; one part holds attribute 0, and another one attributes 1 and 2.
    fn fixture(rows: &[[&str; 3]], known: &[u8], protects: Protected) -> VerifierFixture {
        let cell = |cell: &&str| -> Cell { Some((*cell).to_owned()) };
        let rows: Vec<Vec<Cell>> = rows.iter().map(|row| row.iter().map(cell).collect()).collect();
        let labels = vec![1; rows.len()];
        let mut fixture = VerifierFixture::new(&["x", "s", "t"], rows);
        fixture.bucketized(&[0], &[("sa", &[1, 2])], vec![guard(known, protects, 2)], labels);
        fixture
    }

    #[test]
    fn guard_known_attribute_in_protected_part_divides_buckets() {
        let corners = [["a", "s", "t"], ["b", "s", "u"], ["c", "v", "t"], ["d", "v", "u"]];
        let diagonal = [["a", "s", "t"], ["b", "s", "t"], ["c", "v", "u"], ["d", "v", "u"]];
        let s = Protected::Attribute(Attr(1));
        assert_eq!(failed(&fixture(&corners, &[0, 2], s).verify()), []);
        // both values are equally frequent in the bucket; given a known t, the value is certain
        assert_eq!(failed(&fixture(&diagonal, &[0], s).verify()), []);
        assert_eq!(failed(&fixture(&diagonal, &[0, 2], s).verify()), [CheckName::Guarantee]);
        let report = fixture(&corners, &[0, 2], s).verify();
        let posteriors = report.tables[0].posteriors[&Attr(1)];
        assert_eq!((posteriors.worst, posteriors.smallest_bucket), (ShareOfRows::new(1, 2), 4));
    }

    #[test]
    fn guard_combination_bounds_joint_values() {
        let both = Protected::Joint([Attr(1), Attr(2)].into_iter().collect::<AttrSet>());
        let mostly = [["a", "s", "t"], ["b", "s", "u"], ["c", "s", "v"], ["d", "w", "u"]];
        let report = fixture(&mostly, &[0], both).verify();
        assert_eq!(failed(&report), []);
        assert_eq!(report.tables[0].combined[&both.attributes()].worst, ShareOfRows::new(1, 4));
        let twice = [["a", "s", "t"], ["b", "s", "t"], ["c", "s", "t"], ["d", "w", "u"]];
        assert_eq!(failed(&fixture(&twice, &[0], both).verify()), [CheckName::Guarantee]);
        // one of the two attributes stands in another part
        let mut apart = fixture(&mostly, &[], Protected::Joint([Attr(0), Attr(1)].into_iter().collect()));
        assert_eq!(failed(&apart.verify()), [CheckName::Guarantee, CheckName::Guards]);
        apart.publication.tables.clear();
        assert!(failed(&apart.verify()).contains(&CheckName::Columns));
    }
}
