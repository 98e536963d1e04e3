//! Some rows of a table in another engine, in which dependencies of pairs are tried before all rows are asked: what does not hold in
//! some rows does not hold in all.

use ahash::AHashMap;
use sha2::{Digest, Sha256};

use super::coded::CodedColumn;

/// The longest text that is kept as it is, in bytes; of others the hash is, so that long cells take no memory.
const MOST_KEPT: usize = 32;

/// Some rows, by codes of their cells.
#[derive(Default)]
pub struct RowSample(Vec<CodedColumn>);

impl RowSample {
    /// Adds a row, the cells of all columns of the table in their order.
    pub fn push<'a>(&mut self, cells: impl IntoIterator<Item = Option<&'a [u8]>>) {
        for (column, cell) in cells.into_iter().enumerate() {
            if column == self.0.len() {
                self.0.push(CodedColumn::default());
            }
            match cell.filter(|cell| cell.len() > MOST_KEPT) {
                None => self.0[column].push(cell),
                // a byte longer than any text that is kept
                Some(long) => self.0[column].push(Some(&[Sha256::digest(long).as_slice(), &[0]].concat())),
            }
        }
    }

    /// Which of the columns `dependents` do not follow from a pair of columns: two rows that agree in the pair differ there.
    pub(super) fn refuted(&self, pair: [usize; 2], dependents: &[usize]) -> Vec<bool> {
        let mut refuted = vec![false; dependents.len()];
        let codes = |column: usize| self.0.get(column).map_or(&[][..], CodedColumn::codes);
        let (one, other) = (codes(pair[0]), codes(pair[1]));
        let mut firsts: AHashMap<u64, usize> = AHashMap::default();
        for (row, (&one, &other)) in one.iter().zip(other).enumerate() {
            let first = *firsts.entry(u64::from(one) << 32 | u64::from(other)).or_insert(row);
            for (refuted, &dependent) in refuted.iter_mut().zip(dependents).filter(|_| first != row) {
                let codes = codes(dependent);
                *refuted |= codes[first] != codes[row];
            }
            if first != row && refuted.iter().all(|refuted| *refuted) {
                break;
            }
        }
        refuted
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn long_cells_differ_by_their_ends() {
        let [long, other] = ["x", "y"].map(|end| "long".repeat(40) + end);
        let refuted = |second: &str| {
            let mut sample = RowSample::default();
            for cell in [&long, second] {
                sample.push(["a", "b", cell].map(|cell| Some(cell.as_bytes())));
            }
            sample.refuted([0, 1], &[2])
        };
        assert_eq!((refuted(&other), refuted(&long), refuted("")), (vec![true], vec![false], vec![true]));
    }

    proptest! {
        #[test]
        fn a_sample_refutes_what_two_of_its_rows_contradict(
            rows in prop::collection::vec(prop::collection::vec(prop::option::of(0_u8..3), 4), 0..40),
        ) {
            let mut sample = RowSample::default();
            let texts = [b"0", b"1", b"2"];
            for row in &rows {
                sample.push(row.iter().map(|cell| cell.map(|cell| &texts[usize::from(cell)][..])));
            }
            let contradicts = |to: usize| {
                rows.iter().any(|a| rows.iter().any(|b| (a[0], a[1]) == (b[0], b[1]) && a[to] != b[to]))
            };
            prop_assert_eq!(sample.refuted([0, 1], &[2, 3]), vec![contradicts(2), contradicts(3)]);
        }
    }
}
