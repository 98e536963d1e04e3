//! The rows among which a guard must hold: those of a bucket that agree in what the guard takes as known beside what it protects.

use std::borrow::Cow;
use std::ops::Range;

use ahash::AHashMap;

use super::part::{ParsedColumn, ParsedPart};
use super::row_keys::BucketOffsets;
use crate::microdata::{AttrSet, Codes};
use crate::publication::TableGuard;

/// The values of several columns together, as one code per row.
pub(in crate::verifier) struct JointColumn<'a> {
    pub(in crate::verifier) codes: Cow<'a, Codes>,
    /// How many codes there are.
    pub(in crate::verifier) size: usize,
}

impl<'a> JointColumn<'a> {
    /// The columns of a part that hold `attributes`; `None` when there are none or the part does not hold all.
    pub(in crate::verifier) fn new(part: &'a ParsedPart, attributes: AttrSet) -> Option<Self> {
        let column = |attr| part.columns.iter().find(|column| column.attribute == attr);
        let columns: Vec<&ParsedColumn> = attributes.iter().map(column).collect::<Option<_>>()?;
        let (first, others) = columns.split_first()?;
        let mut joint = Self { codes: Cow::Borrowed(&first.codes), size: first.size };
        for other in others {
            joint = Self::beside(&joint.codes, &other.codes);
        }
        Some(joint)
    }

    /// A code for each pair of codes, in the order in which pairs are met.
    pub(in crate::verifier) fn beside<'b>(left: &Codes, right: &Codes) -> JointColumn<'b> {
        let mut numbers: AHashMap<(u32, u32), u32> = AHashMap::new();
        let mut codes = Vec::with_capacity(left.len());
        for pair in left.iter().zip(right.iter()) {
            let next = numbers.len() as u32;
            codes.push(*numbers.entry(pair).or_insert(next));
        }
        JointColumn { codes: Cow::Owned(Codes::U32(codes)), size: numbers.len() }
    }

    /// How often each code occurs.
    pub(in crate::verifier) fn counts(&self) -> Vec<u64> {
        let mut counts = vec![0; self.size];
        self.codes.iter().for_each(|code| counts[code as usize] += 1);
        counts
    }

    /// The codes bucket after bucket.
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

/// The rows of a part as a guard sees them.
pub(in crate::verifier) struct BucketClasses<'a> {
    /// What is protected.
    pub(in crate::verifier) protected: JointColumn<'a>,
    /// What is known beside it in the same part, if anything.
    known: Option<JointColumn<'a>>,
    buckets: &'a BucketOffsets,
}

impl<'a> BucketClasses<'a> {
    /// The classes of a guard whose protected attributes all stand in `part`; `None` when they do not.
    pub(in crate::verifier) fn new(
        part: &'a ParsedPart,
        buckets: &'a BucketOffsets,
        guard: &TableGuard,
    ) -> Option<Self> {
        let here: AttrSet = part.columns.iter().map(|column| column.attribute).collect();
        let protected = JointColumn::new(part, guard.protects.attributes())?.by_bucket(part, buckets)?;
        let beside = guard.known.intersection(here);
        let known = match beside.is_empty() {
            true => None,
            false => Some(JointColumn::new(part, beside)?.by_bucket(part, buckets)?),
        };
        Some(Self { protected, known, buckets })
    }

    /// Hands every class to `visit`: what is protected in each of its rows, rising.
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
    use crate::verifier::tests::fixture::{Cell, World, failed, guard};

    /// Attribute 0 beside the pair 1, 2 in one part, all in one bucket.
    fn world(rows: &[[&str; 3]], known: &[u8], protects: Protected) -> World {
        let cell = |cell: &&str| -> Cell { Some((*cell).to_owned()) };
        let rows: Vec<Vec<Cell>> = rows.iter().map(|row| row.iter().map(cell).collect()).collect();
        let labels = vec![1; rows.len()];
        let mut world = World::new(&["x", "s", "t"], rows);
        world.tied(&[0], &[("sa", &[1, 2])], vec![guard(known, protects, 2)], labels);
        world
    }

    #[test]
    fn what_is_known_in_the_same_part_divides_a_bucket() {
        let corners = [["a", "s", "t"], ["b", "s", "u"], ["c", "v", "t"], ["d", "v", "u"]];
        let diagonal = [["a", "s", "t"], ["b", "s", "t"], ["c", "v", "u"], ["d", "v", "u"]];
        let s = Protected::Attribute(Attr(1));
        assert_eq!(failed(&world(&corners, &[0, 2], s).audit()), []);
        // each of the two values is as frequent in the bucket; beside a known t it is certain
        assert_eq!(failed(&world(&diagonal, &[0], s).audit()), []);
        assert_eq!(failed(&world(&diagonal, &[0, 2], s).audit()), [CheckName::Guarantee]);
        let audit = world(&corners, &[0, 2], s).audit();
        let posteriors = audit.tables[0].posteriors[&Attr(1)];
        assert_eq!((posteriors.worst, posteriors.smallest_bucket), ((1, 2), 4));
    }

    #[test]
    fn a_combination_is_looked_at_as_a_whole() {
        let both = Protected::Joint([Attr(1), Attr(2)].into_iter().collect::<AttrSet>());
        let mostly = [["a", "s", "t"], ["b", "s", "u"], ["c", "s", "v"], ["d", "w", "u"]];
        let audit = world(&mostly, &[0], both).audit();
        assert_eq!(failed(&audit), []);
        assert_eq!(audit.tables[0].combined[&both.attributes()].worst, (1, 4));
        let twice = [["a", "s", "t"], ["b", "s", "t"], ["c", "s", "t"], ["d", "w", "u"]];
        assert_eq!(failed(&world(&twice, &[0], both).audit()), [CheckName::Guarantee]);
        // one of the two does not stand in the part
        let mut apart = world(&mostly, &[], Protected::Joint([Attr(0), Attr(1)].into_iter().collect()));
        assert_eq!(failed(&apart.audit()), [CheckName::Guarantee, CheckName::Guards]);
        apart.publication.tables.clear();
        assert!(failed(&apart.audit()).contains(&CheckName::Columns));
    }
}
