//! Classes of rows that a guard bounds.
//!
//! A class has the rows of a bucket that agree on the known attributes of the protected part.

use std::borrow::Cow;
use std::ops::Range;

use super::joint_column::{CodedPart, JointColumn};
use super::part::ParsedPart;
use super::row_keys::BucketOffsets;
use crate::control::{Cancelled, Control};
use crate::microdata::AttrSet;
use crate::publication::TableGuard;

/// The rows of a part, divided into the classes of a guard, or by labels.
pub(in crate::verifier) struct BucketClasses<'a> {
    /// The protected attributes.
    pub(in crate::verifier) protected: JointColumn<'a>,
    /// The known attributes of the same part, if there are any.
    known: Option<JointColumn<'a>>,
    buckets: Cow<'a, BucketOffsets>,
}

impl<'a> BucketClasses<'a> {
    /// The classes of a guard; `None` when `part` lacks a protected attribute.
    pub(in crate::verifier) fn new(
        part: &'a ParsedPart,
        buckets: &'a BucketOffsets,
        guard: &TableGuard,
        control: &Control,
    ) -> Result<Option<Self>, Cancelled> {
        let Some(labels) = &part.labels else { return Ok(None) };
        let here: AttrSet = part.columns.iter().map(|column| column.attribute).collect();
        let joint = |attributes: AttrSet| -> Result<_, Cancelled> {
            Ok(JointColumn::new(part, attributes, control)?.map(|joint| joint.by_bucket(labels, buckets)))
        };
        // most parts do not hold what a guard protects
        let Some(protected) = joint(guard.protects.attributes())? else { return Ok(None) };
        let known = joint(guard.known.intersection(here))?;
        Ok(Some(Self { protected, known, buckets: Cow::Borrowed(buckets) }))
    }

    /// The classes of rows with equal `labels`, which are numbers from 1; `None` when `part` lacks one of `protects`.
    pub(in crate::verifier) fn labelled(
        part: &'a impl CodedPart,
        labels: &[u32],
        protects: AttrSet,
        control: &Control,
    ) -> Result<Option<Self>, Cancelled> {
        let (joint, buckets) = (JointColumn::new(part, protects, control)?, BucketOffsets::count(labels));
        Ok(joint.zip(buckets).map(|(joint, buckets)| Self {
            protected: joint.by_bucket(labels, &buckets),
            known: None,
            buckets: Cow::Owned(buckets),
        }))
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
