use ahash::AHashMap;

use crate::microdata::{Attr, AttrSet, Column};
use crate::verifier::external::table::ExternalPart;

/// The distinct tuples of a part, each with its buckets.
pub(in crate::verifier) struct PartTuples {
    pub(super) numbers: AHashMap<Vec<u32>, u32>,
    pub(super) attributes: Vec<Attr>,
    /// The tuples, by their numbers.
    pub(super) tuples: Vec<Vec<u32>>,
    /// One bit for each bucket, tuple after tuple.
    bits: Vec<u64>,
    /// The tuples of each bucket.
    pub(super) of_bucket: Vec<Vec<u32>>,
}

/// Orders parts for the join.
///
/// Parts that share attributes with earlier ones come first, then those with fewer tuples.
pub(in crate::verifier) fn in_turn(mut left: Vec<PartTuples>) -> Vec<PartTuples> {
    let mut parts: Vec<PartTuples> = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let shares = |part: &PartTuples| parts.iter().any(|before| before.set().meets(part.set()));
        let next = (0..left.len()).min_by_key(|&at| (!shares(&left[at]), left[at].numbers.len())).unwrap_or(0);
        parts.push(left.remove(next));
    }
    parts
}

impl PartTuples {
    /// Reads the tuples in the codes of the original; `None` where the original lacks a value.
    pub(in crate::verifier) fn new(
        part: &ExternalPart,
        original: &[(Attr, &Column)],
        attributes: AttrSet,
        labels: &AHashMap<Option<&[u8]>, u32>,
        words: usize,
    ) -> Option<Self> {
        let bucket = part.bucket.as_ref()?;
        let label: Vec<u32> = bucket.domain.iter().map(|label| labels.get(&label).copied()).collect::<Option<_>>()?;
        let mut columns: Vec<(Attr, &Column, Vec<u32>)> = Vec::new();
        for (attr, column) in part.columns.iter().filter(|(attr, _)| attributes.contains(*attr)) {
            let (_, of) = original.iter().find(|(of, _)| of == attr)?;
            let codes: AHashMap<Option<&[u8]>, u32> = of.domain.iter().zip(0..).collect();
            let known = column.domain.iter().map(|value| codes.get(&value).copied()).collect::<Option<_>>()?;
            columns.push((*attr, column, known));
        }
        let mut read = Self {
            numbers: AHashMap::new(),
            attributes: columns.iter().map(|(attr, ..)| *attr).collect(),
            tuples: Vec::new(),
            bits: Vec::new(),
            of_bucket: vec![Vec::new(); labels.len()],
        };
        for row in 0..part.rows {
            let tuple: Vec<u32> =
                columns.iter().map(|(_, column, known)| known[column.codes.get(row) as usize]).collect();
            let next = read.tuples.len() as u32;
            let number = *read.numbers.entry(tuple).or_insert_with_key(|tuple| {
                read.tuples.push(tuple.clone());
                next
            });
            if number == next {
                read.bits.resize(read.bits.len() + words, 0);
            }
            let bucket = label[bucket.codes.get(row) as usize];
            let word = &mut read.bits[number as usize * words + bucket as usize / 64];
            if *word & 1 << (bucket % 64) == 0 {
                *word |= 1 << (bucket % 64);
                read.of_bucket[bucket as usize].push(number);
            }
        }
        Some(read)
    }

    pub(super) fn set(&self) -> AttrSet {
        self.attributes.iter().copied().collect()
    }

    /// Values of a tuple for some attributes, in the order of the attributes.
    pub(super) fn within(&self, tuple: u32, of: AttrSet) -> Vec<u32> {
        let place = |attr: Attr| self.attributes.iter().position(|known| *known == attr);
        of.iter().filter_map(|attr| Some(self.tuples[tuple as usize][place(attr)?])).collect()
    }

    pub(in crate::verifier) fn number(&self, original: &[(Attr, &Column)], row: usize) -> Option<u32> {
        let code = |attr: &Attr| original.iter().find(|(of, _)| of == attr).map(|(_, column)| column.codes.get(row));
        self.numbers.get(&self.attributes.iter().map(code).collect::<Option<Vec<u32>>>()?).copied()
    }

    pub(super) fn buckets(&self, tuple: u32, words: usize) -> &[u64] {
        &self.bits[tuple as usize * words..][..words]
    }
}
