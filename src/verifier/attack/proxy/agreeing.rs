//! Distribution of an attribute for each row of an original, from a table whose parts share attributes.
//!
//! All joins of the rows of a bucket that agree on shared attributes are equally likely. The expected number of rows
//! with given values is a product of part counts along the join tree. Each count is divided by the rows that agree on
//! the attributes shared with earlier parts. Unknown attributes are summed out, from the leaves of the tree to the
//! part with the attribute. The result is the sum over all buckets.
//!
//! # Citations
//! docs/spec/overlapping-slicing.md#two-weightings

use std::cell::RefCell;

use ahash::AHashMap;

use crate::control::Control;
use crate::microdata::{Attr, AttrSet, Codes, Column};
use crate::verifier::attack::error::AttackError;
use crate::verifier::definition::join_tree::tree;
use crate::verifier::external::overlapping::revealing_parts;
use crate::verifier::external::table::{ExternalPart, ExternalTable};

/// Code of a value that the original does not have.
pub(in crate::verifier) const UNTRANSLATED_VALUE: u32 = u32::MAX;

/// For each code of a part's column, the code of the same value in the original.
pub(in crate::verifier) fn translated(column: &Column, original: Option<&Column>) -> Vec<u32> {
    let known: AHashMap<Option<&[u8]>, u32> =
        original.into_iter().flat_map(|original| original.domain.iter().zip(0..)).collect();
    column.domain.iter().map(|value| known.get(&value).copied().unwrap_or(UNTRANSLATED_VALUE)).collect()
}

/// Numbers of the bucket labels of a table, common to all its parts.
#[derive(Default)]
pub(super) struct BucketNumbers(AHashMap<Option<Vec<u8>>, u32>);

impl BucketNumbers {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The number of the bucket of each row.
    pub(super) fn of_rows(&mut self, bucket: &Column) -> Vec<u32> {
        let number = |label: Option<&[u8]>| {
            let next = self.0.len() as u32;
            *self.0.entry(label.map(<[u8]>::to_vec)).or_insert(next)
        };
        let of_code: Vec<u32> = bucket.domain.iter().map(number).collect();
        bucket.codes.iter().map(|code| of_code[code as usize]).collect()
    }
}

/// Possible values of a row in rising order, each with its share.
type ValueShares = Vec<(u32, f64)>;

/// The bucket of a tuple, its unknown values, and its number of rows.
type TupleCounts = (u32, Vec<u32>, u32);

/// A part in the join tree.
struct PartBranch {
    /// The attributes it shares with the parts before it.
    shared: AttrSet,
    /// Its known attributes, and the others; the target attribute is among the others.
    known: Vec<Attr>,
    open: Vec<Attr>,
    /// Tuples in order of buckets, by their known values.
    tuples: AHashMap<Vec<u32>, Vec<TupleCounts>>,
    /// Number of rows by bucket and shared values.
    agreeing: AHashMap<(u32, Vec<u32>), u32>,
}

/// The relevant parts for one attribute, the part that holds it first.
pub(in crate::verifier) struct AgreeingParts<'a> {
    attribute: Attr,
    branches: Vec<PartBranch>,
    /// The known attributes with the codes of the original.
    original: Vec<(Attr, &'a Codes)>,
    found: RefCell<AHashMap<Vec<u32>, ValueShares>>,
}

impl<'a> AgreeingParts<'a> {
    /// Reads the parts; values have the codes of the original.
    pub(in crate::verifier) fn new(
        table: &ExternalTable,
        attribute: Attr,
        known: AttrSet,
        original: &'a ExternalPart,
        control: &Control,
    ) -> Result<Self, AttackError> {
        let known = known.without(attribute).intersection(original.attributes()).intersection(table.attributes());
        let attributes: Vec<AttrSet> = table.parts.iter().map(ExternalPart::attributes).collect();
        let holds = |part: &usize| attributes[*part].contains(attribute);
        let most = |part: &usize| attributes[*part].intersection(known).len();
        let root = (0..attributes.len()).filter(holds).max_by_key(most).ok_or(AttackError::NotExact)?;
        // the join tree starts with the last part
        let mut used = revealing_parts(&attributes, root, known.with(attribute));
        used.retain(|part| *part != root);
        used.push(root);
        let sets: Vec<AttrSet> = used.iter().map(|&part| attributes[part]).collect();
        let order = tree(&sets).ok_or(AttackError::Circle)?;
        let mut numbers = BucketNumbers::default();
        let mut branches = Vec::with_capacity(order.len());
        for (at, shared) in order {
            control.check()?;
            let part = &table.parts[used[at]];
            if !part.opaque().is_empty() {
                return Err(AttackError::NotExact);
            }
            let bucket = part.bucket.as_ref().ok_or(AttackError::NotExact)?;
            let buckets = numbers.of_rows(bucket);
            branches.push(PartBranch::new(part, known, shared, original, &buckets));
        }
        let codes = original.columns.iter().filter(|(attr, _)| known.contains(*attr));
        let original = codes.map(|(attr, column)| (*attr, &column.codes)).collect();
        Ok(Self { attribute, branches, original, found: RefCell::default() })
    }

    /// The possible values of a row of the original in rising order, with shares.
    ///
    /// Empty where the table has no such row.
    pub(in crate::verifier) fn of_row(&self, row: usize) -> ValueShares {
        let row_values: Vec<u32> = self.original.iter().map(|(_, codes)| codes.get(row)).collect();
        if let Some(found) = self.found.borrow().get(&row_values) {
            return found.clone();
        }
        let found = self.weigh(&row_values).unwrap_or_default();
        self.found.borrow_mut().insert(row_values, found.clone());
        found
    }

    fn weigh(&self, row_values: &[u32]) -> Option<ValueShares> {
        let mut of_branches: Vec<&[TupleCounts]> = Vec::with_capacity(self.branches.len());
        for branch in &self.branches {
            let known: Vec<u32> = branch.known.iter().map(|attr| self.known_value(row_values, *attr)).collect();
            of_branches.push(branch.tuples.get(&known)?);
        }
        let fewest = *of_branches.iter().min_by_key(|tuples| tuples.len())?;
        let target = self.branches[0].open.iter().position(|attr| *attr == self.attribute)?;
        let matching = MatchingTuples { row_values, of_branches, target };
        let mut sums: AHashMap<u32, f64> = AHashMap::new();
        for run in fewest.chunk_by(|a, b| a.0 == b.0) {
            self.add_bucket(&matching, run[0].0, &mut sums);
        }
        let all: f64 = sums.values().sum();
        let mut shares: ValueShares =
            sums.into_iter().filter(|(_, sum)| *sum > 0.0).map(|(value, sum)| (value, sum / all)).collect();
        shares.sort_unstable_by_key(|(value, _)| *value);
        Some(shares)
    }

    /// The value of a known attribute in a row of the original.
    fn known_value(&self, row_values: &[u32], attr: Attr) -> u32 {
        let at = self.original.iter().position(|(of, _)| *of == attr);
        at.map_or(UNTRANSLATED_VALUE, |at| row_values[at])
    }

    /// Adds the expected rows of a bucket that match a row, by the value of the target attribute.
    fn add_bucket(&self, matching: &MatchingTuples<'_>, bucket: u32, sums: &mut AHashMap<u32, f64>) {
        let mut messages: Vec<BranchMessage> = Vec::new();
        let mut free = 1.0;
        for (at, branch) in self.branches.iter().enumerate().rev() {
            let mut of_shared: AHashMap<Vec<u32>, f64> = AHashMap::new();
            for (_, open, rows) in in_bucket(matching.of_branches[at], bucket) {
                let of = |set: AttrSet| -> Vec<u32> {
                    let open = |attr: Attr| branch.open.iter().position(|of| *of == attr).map(|at| open[at]);
                    let known = |attr: Attr| self.known_value(matching.row_values, attr);
                    set.iter().map(|attr| open(attr).unwrap_or_else(|| known(attr))).collect()
                };
                let incoming = messages.iter().filter(|message| message.to == at);
                let incoming = incoming.map(|message| message.sums.get(&of(message.shared)).copied().unwrap_or(0.0));
                let weight = f64::from(*rows) * incoming.product::<f64>();
                if at == 0 {
                    *of_shared.entry(vec![open[matching.target]]).or_default() += weight;
                    continue;
                }
                let shared = of(branch.shared);
                let agreeing = branch.agreeing.get(&(bucket, shared.clone())).copied().unwrap_or(1);
                *of_shared.entry(shared).or_default() += weight / f64::from(agreeing);
            }
            if at == 0 {
                for (value, weight) in of_shared {
                    *sums.entry(value[0]).or_default() += weight * free;
                }
                break;
            }
            let to = (0..at).find(|&before| branch.shared.is_subset(self.branches[before].set()));
            match to.filter(|_| !branch.shared.is_empty()) {
                Some(to) => messages.push(BranchMessage { to, shared: branch.shared, sums: of_shared }),
                None => free *= of_shared.values().sum::<f64>(),
            }
        }
    }
}

/// The tuples that match a row of the original.
struct MatchingTuples<'a> {
    /// The values of the known attributes.
    row_values: &'a [u32],
    /// For each branch, its matching tuples in order of buckets.
    of_branches: Vec<&'a [TupleCounts]>,
    /// The index of the target attribute among the unknown ones of the first branch.
    target: usize,
}

/// Expected rows, summed over the unknown attributes of a branch.
struct BranchMessage {
    /// The branch that receives it.
    to: usize,
    shared: AttrSet,
    /// By the values of the shared attributes.
    sums: AHashMap<Vec<u32>, f64>,
}

/// The tuples of one bucket, of tuples in order of buckets.
fn in_bucket(tuples: &[TupleCounts], bucket: u32) -> &[TupleCounts] {
    let from_bucket = &tuples[tuples.partition_point(|(of, ..)| *of < bucket)..];
    &from_bucket[..from_bucket.partition_point(|(of, ..)| *of == bucket)]
}

impl PartBranch {
    fn new(part: &ExternalPart, known: AttrSet, shared: AttrSet, original: &ExternalPart, buckets: &[u32]) -> Self {
        let read = |attr: &Attr| {
            let column = part.column(*attr)?;
            let codes = translated(column, original.column(*attr));
            Some(column.codes.iter().map(|code| codes[code as usize]).collect::<Vec<u32>>())
        };
        let (known_attributes, open): (Vec<Attr>, Vec<Attr>) =
            part.attributes().iter().partition(|attr| known.contains(*attr));
        let columns = |attrs: &[Attr]| attrs.iter().filter_map(read).collect::<Vec<_>>();
        let (of_known, of_open) = (columns(&known_attributes), columns(&open));
        let of_shared = columns(&shared.iter().collect::<Vec<_>>());
        let at = |columns: &[Vec<u32>], row: usize| columns.iter().map(|column| column[row]).collect::<Vec<u32>>();
        let mut places: AHashMap<Vec<u32>, Vec<(u32, Vec<u32>)>> = AHashMap::new();
        let mut agreeing: AHashMap<(u32, Vec<u32>), u32> = AHashMap::new();
        for (row, &bucket) in buckets.iter().enumerate() {
            places.entry(at(&of_known, row)).or_default().push((bucket, at(&of_open, row)));
            *agreeing.entry((bucket, at(&of_shared, row))).or_default() += 1;
        }
        let counted = |mut places: Vec<(u32, Vec<u32>)>| {
            places.sort_unstable();
            let runs = places.chunk_by(|a, b| a == b);
            runs.map(|run| (run[0].0, run[0].1.clone(), run.len() as u32)).collect()
        };
        let tuples = places.into_iter().map(|(known, places)| (known, counted(places))).collect();
        Self { shared, known: known_attributes, open, tuples, agreeing }
    }

    fn set(&self) -> AttrSet {
        self.known.iter().chain(&self.open).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::verifier::tests::external_overlapping::{COVERS, buckets, given, original, seen_of};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        /// The expected number of rows with given values, over all buckets, equals that over all possible worlds.
        #[test]
        fn agreeing_parts_random_tables_match_possible_worlds(
            rows in prop::collection::vec((0u32..2, 0u32..2, 0u32..2, 0u32..3, 0usize..2), 1..6),
            cover in 0..COVERS.len(), known in 0u8..8, attribute in 0u8..4,
        ) {
            let columns = COVERS[cover];
            let present: Vec<u8> = (0..4).filter(|attr| columns.iter().any(|column| column.contains(attr))).collect();
            prop_assume!(present.contains(&attribute));
            let (codes, buckets) = buckets(&rows);
            let known: Vec<u8> =
                present.iter().copied().filter(|&attr| attr != attribute && known >> attr & 1 == 1).collect();
            let (table, original) = (given(&codes, columns, &rows), original(&codes));
            let of = known.iter().map(|&attr| Attr(attr)).collect();
            let found = AgreeingParts::new(&table, Attr(attribute), of, &original, &Control::default()).unwrap();
            for (row, row_values) in codes.iter().enumerate() {
                let mut weights: std::collections::BTreeMap<u32, f64> = std::collections::BTreeMap::new();
                for bucket in &buckets {
                    for (values, share) in seen_of(&codes, bucket, columns) {
                        if known.iter().all(|attr| values[attr] == row_values[usize::from(*attr)]) {
                            *weights.entry(values[&attribute]).or_default() += share;
                        }
                    }
                }
                let all: f64 = weights.values().sum();
                let column = original.column(Attr(attribute)).unwrap();
                let here: Vec<(u32, f64)> = found.of_row(row);
                prop_assert_eq!(here.len(), weights.len());
                for (code, share) in here {
                    let value: u32 = std::str::from_utf8(column.domain.value(code).unwrap()).unwrap().parse().unwrap();
                    prop_assert!((share - weights[&value] / all).abs() < 1e-9, "{share} {weights:?}");
                }
            }
        }
    }
}
