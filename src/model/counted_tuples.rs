//! Distinct tuples as words with the numbers of their rows, and what follows of columns from all others.

use super::inferred_rows::{AgreeingRows, InferredRows};
use crate::control::{Cancelled, Control};

/// Bits by which one pass sorts.
const DIGIT_BITS: u32 = 11;

/// Where a word holds the codes of a column.
#[derive(Clone, Copy)]
pub(super) struct WordField {
    pub(super) shift: u32,
    pub(super) bits: u32,
}

impl WordField {
    fn mask(self) -> u64 {
        if self.bits == 0 { 0 } else { (u64::MAX >> (u64::BITS - self.bits)) << self.shift }
    }
}

/// Bits that hold the numbers below `values`.
pub(super) fn bits(values: usize) -> u32 {
    u64::BITS - (values.max(1) as u64 - 1).leading_zeros()
}

/// A tuple, and the rows that have it.
#[derive(Clone, Copy, Default)]
struct CountedTuple {
    word: u64,
    rows: u32,
}

/// A tuple as it is kept in a list.
trait ListedTuple: Copy + Default {
    /// The tuple; a word stands above the number of its rows, for which there are `row_bits`.
    fn counted(self, row_bits: u32) -> CountedTuple;
}

impl ListedTuple for u64 {
    #[inline]
    fn counted(self, row_bits: u32) -> CountedTuple {
        CountedTuple { word: self >> row_bits, rows: (self & ((1 << row_bits) - 1)) as u32 }
    }
}

impl ListedTuple for CountedTuple {
    #[inline]
    fn counted(self, _: u32) -> CountedTuple {
        self
    }
}

/// Distinct tuples in the order of their words.
pub(super) struct CountedTuples {
    /// Bits for the number of rows behind a narrow word.
    row_bits: u32,
    list: TupleList,
}

enum TupleList {
    /// Each word stands above the number of its rows.
    Narrow(Vec<u64>),
    /// Words that leave no room for the number.
    Wide(Vec<CountedTuple>),
}

impl CountedTuples {
    /// The tuples of rows with these words, which are sorted and take `used` bits.
    pub(super) fn new(mut words: Vec<u64>, used: u32) -> Self {
        let row_bits = bits(words.len() + 1);
        if used + row_bits > u64::BITS {
            let runs = || words.chunk_by(|one, next| one == next);
            let mut tuples = Vec::with_capacity(runs().count());
            tuples.extend(runs().map(|run| CountedTuple { word: run[0], rows: run.len() as u32 }));
            return Self { row_bits, list: TupleList::Wide(tuples) };
        }
        // in place: a table of distinct rows takes no second list
        let (mut tuples, mut row) = (0, 0);
        while let Some(&word) = words.get(row) {
            let rows = words[row..].iter().take_while(|next| **next == word).count();
            words[tuples] = word << row_bits | rows as u64;
            tuples += 1;
            row += rows;
        }
        words.truncate(tuples);
        Self { row_bits, list: TupleList::Narrow(words) }
    }

    /// The tuples with the words that some of `rows` rows have; `counts` has the number of rows of each word.
    pub(super) fn from_counts(counts: &[u32], rows: usize) -> Self {
        let row_bits = bits(rows + 1);
        let occurring = (0_u64..).zip(counts).filter(|(_, count)| **count > 0);
        let words = occurring.map(|(word, &count)| word << row_bits | u64::from(count)).collect();
        Self { row_bits, list: TupleList::Narrow(words) }
    }

    /// Number of tuples that one row has.
    pub(super) fn unique(&self) -> u64 {
        let unique = match &self.list {
            TupleList::Narrow(words) => words.iter().filter(|word| word.counted(self.row_bits).rows == 1).count(),
            TupleList::Wide(tuples) => tuples.iter().filter(|tuple| tuple.rows == 1).count(),
        };
        unique as u64
    }

    /// For each of `fields`, which stand in this order from the lowest bits, the rows inferred from all others; by pieces of
    /// about `piece` tuples, which agree in no value of `parting`, the highest bits.
    pub(super) fn inferred(
        self,
        fields: &[WordField],
        parting: WordField,
        piece: usize,
        control: &Control,
    ) -> Result<Vec<InferredRows>, Cancelled> {
        let turn = TuplesInTurn { row_bits: self.row_bits, fields, parting, piece, control };
        match self.list {
            TupleList::Narrow(mut words) => turn.inferred(&mut words),
            TupleList::Wide(mut tuples) => turn.inferred(&mut tuples),
        }
    }
}

/// Tuples that are sorted by one field after the other, in pieces that the caches hold.
struct TuplesInTurn<'a> {
    row_bits: u32,
    fields: &'a [WordField],
    /// The highest bits, by which tuples stand in pieces.
    parting: WordField,
    piece: usize,
    control: &'a Control,
}

impl TuplesInTurn<'_> {
    /// For each field the rows inferred from all others. The tuples are in the order of their words.
    fn inferred<T: ListedTuple>(&self, tuples: &mut [T]) -> Result<Vec<InferredRows>, Cancelled> {
        let mut found = vec![InferredRows::default(); self.fields.len()];
        let mut room = Vec::new();
        for piece in self.pieces(tuples) {
            if room.len() < piece.len() {
                room.resize(piece.len(), T::default());
            }
            let length = piece.len();
            self.add_piece(piece, &mut room[..length], &mut found)?;
        }
        Ok(found)
    }

    fn word<T: ListedTuple>(&self, tuple: &T) -> u64 {
        tuple.counted(self.row_bits).word
    }

    /// Pieces of some tuples, each with highest bits of its own.
    fn pieces<'t, T: ListedTuple>(&self, mut tuples: &'t mut [T]) -> Vec<&'t mut [T]> {
        let parting = |tuple: &T| self.word(tuple) & self.parting.mask();
        let mut pieces = Vec::new();
        while let Some(last) = tuples.get(self.piece).map(parting) {
            let end = tuples.partition_point(|tuple| parting(tuple) <= last);
            let (piece, others) = std::mem::take(&mut tuples).split_at_mut(end);
            pieces.push(piece);
            tuples = others;
        }
        pieces.push(tuples);
        pieces
    }

    /// Adds the rows that are inferred in a piece.
    ///
    /// A field whose bits decide last has the tuples that agree in all others next to each other. A stable sort by it makes it
    /// decide first, and the next one last, so that one pass turns from a field to the next.
    fn add_piece<T: ListedTuple>(
        &self,
        piece: &mut [T],
        room: &mut [T],
        found: &mut [InferredRows],
    ) -> Result<(), Cancelled> {
        for (at, (&field, inferred)) in self.fields.iter().zip(found).enumerate() {
            if at > 0 {
                self.sort(piece, room, self.fields[at - 1])?;
            }
            *inferred += self.of_runs(piece, field);
        }
        Ok(())
    }

    /// The rows whose code of a field is inferred, of tuples that agree in all others next to each other.
    fn of_runs<T: ListedTuple>(&self, tuples: &[T], field: WordField) -> InferredRows {
        let mut inferred = InferredRows::default();
        let others = !field.mask();
        for run in tuples.chunk_by(|one, next| self.word(one) & others == self.word(next) & others) {
            let agree = |sum: AgreeingRows, tuple: &T| {
                let rows = tuple.counted(self.row_bits).rows;
                AgreeingRows { rows: sum.rows + rows, most: sum.most.max(rows) }
            };
            inferred.add_agreeing(run.iter().fold(AgreeingRows::default(), agree));
        }
        inferred
    }

    /// Sorts by the bits of a field; stable.
    fn sort<T: ListedTuple>(&self, tuples: &mut [T], room: &mut [T], field: WordField) -> Result<(), Cancelled> {
        // digits of equal widths
        let passes = field.bits.div_ceil(DIGIT_BITS);
        for pass in 0..passes {
            let (from, upto) = (field.bits * pass / passes, field.bits * (pass + 1) / passes);
            let digit = |tuple: &T| (self.word(tuple) >> (field.shift + from)) as usize & ((1 << (upto - from)) - 1);
            self.control.check()?;
            let mut ends = vec![0_usize; 1 << (upto - from)];
            tuples.iter().for_each(|tuple| ends[digit(tuple)] += 1);
            if ends.contains(&tuples.len()) {
                continue;
            }
            let mut start = 0;
            for end in &mut ends {
                start += std::mem::replace(end, start);
            }
            for tuples in tuples.chunks(Control::STRIDE) {
                self.control.check()?;
                for tuple in tuples {
                    let end = &mut ends[digit(tuple)];
                    room[*end] = *tuple;
                    *end += 1;
                }
            }
            tuples.copy_from_slice(room);
        }
        Ok(())
    }
}
