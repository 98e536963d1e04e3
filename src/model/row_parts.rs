//! Parts of rows that share no code of a column.

use std::borrow::Cow;
use std::ops::Range;

use rayon::prelude::*;

use super::counted_tuples::bits;
use crate::control::{Cancelled, Control};

/// Bits of the classes of codes that are counted to find parts of about as many rows.
const CLASS_BITS: u32 = 16;

/// Rows in parts, each with codes of its own: rows with the same code are in the same part.
///
/// A part has the codes of some classes, which are ranges of as many codes.
pub(super) struct RowParts {
    /// Bits of the codes of a class.
    shift: u32,
    parts: Vec<RowPart>,
}

/// Rows whose codes are of these classes.
struct RowPart {
    classes: Range<u32>,
    rows: usize,
}

/// Some rows of a table.
pub(super) enum RowSelection {
    /// This number of rows, from the first.
    All(usize),
    /// These, rising.
    Listed(Vec<u32>),
}

impl RowSelection {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::All(rows) => *rows,
            Self::Listed(rows) => rows.len(),
        }
    }

    /// The rows, `size` at a time.
    pub(super) fn chunks(&self, size: usize) -> impl Iterator<Item = Cow<'_, [u32]>> {
        (0..self.len()).step_by(size).map(move |start| {
            let end = self.len().min(start + size);
            match self {
                Self::All(_) => Cow::Owned((start as u32..end as u32).collect()),
                Self::Listed(rows) => Cow::Borrowed(&rows[start..end]),
            }
        })
    }
}

impl RowParts {
    /// Parts of at most `most` rows, or of one class, by codes below `values`.
    pub(super) fn new<T: Copy + Into<u32>>(
        codes: &[T],
        values: usize,
        most: usize,
        control: &Control,
    ) -> Result<Self, Cancelled> {
        let shift = bits(values).saturating_sub(CLASS_BITS);
        let mut sizes = vec![0_usize; (values.saturating_sub(1) >> shift) + 1];
        for codes in codes.chunks(Control::STRIDE) {
            control.check()?;
            codes.iter().for_each(|&code| sizes[(code.into() >> shift) as usize] += 1);
        }
        let mut parts: Vec<RowPart> = Vec::new();
        for (class, &size) in (0_u32..).zip(&sizes) {
            match parts.last_mut() {
                Some(part) if part.rows + size <= most => {
                    part.classes.end = class + 1;
                    part.rows += size;
                }
                _ => parts.push(RowPart { classes: class..class + 1, rows: size }),
            }
        }
        Ok(Self { shift, parts })
    }

    /// Calls `look` with the rows of each part, side by side; `codes` are those that parts were made of.
    pub(super) fn each<T: Copy + Into<u32> + Sync, R: Send>(
        &self,
        codes: &[T],
        control: &Control,
        look: impl Fn(RowSelection) -> Result<R, Cancelled> + Sync,
    ) -> Result<Vec<R>, Cancelled> {
        let look = |part| look(RowSelection::Listed(self.rows(part, codes, control)?));
        self.parts.par_iter().with_max_len(1).map(look).collect()
    }

    fn rows<T: Copy + Into<u32>>(&self, part: &RowPart, codes: &[T], control: &Control) -> Result<Vec<u32>, Cancelled> {
        let (first, classes) = (part.classes.start, part.classes.end - part.classes.start);
        // each row is written, and stays if it is of the part: no branch is guessed wrong
        let (mut rows, mut found) = (vec![0; part.rows + 1], 0);
        for (chunk, codes) in codes.chunks(Control::STRIDE).enumerate() {
            control.check()?;
            for (row, &code) in (chunk * Control::STRIDE..).zip(codes) {
                rows[found] = row as u32;
                found += usize::from((code.into() >> self.shift).wrapping_sub(first) < classes);
            }
        }
        rows.truncate(part.rows);
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_row_is_in_the_part_of_its_code(
            bits in 1u32..21,
            codes in prop::collection::vec(prop_oneof![4 => 0u32..3, 1 => any::<u32>()], 0..60),
            most in 1usize..70,
        ) {
            let values = 1_usize << bits;
            let codes: Vec<u32> = codes.iter().map(|code| code % values as u32).collect();
            let control = Control::default();
            let parts = RowParts::new(&codes, values, most, &control).unwrap();
            let mut part_of_code = std::collections::BTreeMap::new();
            let mut seen = Vec::new();
            for (at, part) in parts.parts.iter().enumerate() {
                let rows = parts.rows(part, &codes, &control).unwrap();
                prop_assert!(rows.is_sorted());
                let classes: std::collections::BTreeSet<u32> = rows.iter().map(|row| codes[*row as usize] >> parts.shift).collect();
                prop_assert!(rows.len() <= most || classes.len() == 1);
                for row in rows {
                    prop_assert_eq!(*part_of_code.entry(codes[row as usize]).or_insert(at), at);
                    seen.push(row);
                }
            }
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..codes.len() as u32).collect::<Vec<_>>());
        }
    }
}
