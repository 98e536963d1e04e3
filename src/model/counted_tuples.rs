//! Distinct tuples as words with the numbers of their rows, and what follows of each column from all others.
//!
//! Tuples stand in pieces that have values of the highest field of their own: rows that agree in it are in the same piece. So
//! processors take pieces side by side, and their caches hold them.

use rayon::prelude::*;

use super::inferred_rows::{AgreeingRows, InferredRows};
use crate::control::{Cancelled, Control};

/// Bits by which one pass sorts.
const DIGIT_BITS: u32 = 11;

/// Tuples of a piece that are looked at to find ranges of as many tuples.
const SAMPLED_TUPLES: usize = 32;

/// Where a word holds the codes of a column.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct WordField {
    pub(super) shift: u32,
    pub(super) bits: u32,
}

impl WordField {
    pub(super) const fn end(self) -> u32 {
        self.shift + self.bits
    }

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
trait ListedTuple: Copy + Default + Send + Sync {
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
    /// Bits of a word that are used.
    used: u32,
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
            return Self { used, row_bits, list: TupleList::Wide(tuples) };
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
        words.shrink_to_fit();
        Self { used, row_bits, list: TupleList::Narrow(words) }
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
    /// about `piece` tuples.
    pub(super) fn inferred(
        self,
        fields: &[WordField],
        piece: usize,
        control: &Control,
    ) -> Result<Vec<InferredRows>, Cancelled> {
        let Self { used, row_bits, list } = self;
        let highest = fields.iter().position(|field| field.bits > 0 && field.end() == used);
        // bits that are no field's stand above all fields
        let end = fields.last().map_or(0, |field| field.end());
        let parting = highest.map_or(WordField { shift: end, bits: used - end }, |at| fields[at]);
        let turn = TuplesInTurn { row_bits, fields, highest, parting, piece, control };
        match list {
            TupleList::Narrow(mut words) => turn.inferred(&mut words),
            TupleList::Wide(mut tuples) => turn.inferred(&mut tuples),
        }
    }
}

/// Tuples that are sorted by one field after the other.
struct TuplesInTurn<'a> {
    row_bits: u32,
    fields: &'a [WordField],
    /// The field with the highest bits of all.
    highest: Option<usize>,
    /// The highest bits, by which tuples stand in pieces: of that field, or of none.
    parting: WordField,
    piece: usize,
    control: &'a Control,
}

impl TuplesInTurn<'_> {
    /// For each field the rows inferred from all others. The tuples are in the order of their words.
    fn inferred<T: ListedTuple>(&self, tuples: &mut [T]) -> Result<Vec<InferredRows>, Cancelled> {
        // one list for all sorts: what is given back and taken again costs a page fault a page
        let mut room = vec![T::default(); tuples.len()];
        let mut pieces = self.pieces(tuples);
        let rooms = split_at_lengths(&mut room, pieces.iter().map(|piece| piece.len()));
        let found = pieces.par_iter_mut().zip(rooms).map(|(piece, room)| self.in_piece(piece, room));
        let nothing = || vec![InferredRows::default(); self.fields.len()];
        let mut found = found.try_reduce(nothing, |mut sums, more| {
            sums.iter_mut().zip(more).for_each(|(sum, of)| *sum += of);
            Ok(sums)
        })?;
        if let Some(at) = self.highest {
            found[at] = self.across(&pieces, &mut room)?;
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

    /// The rows that are inferred in a piece, but for the field that parts pieces.
    ///
    /// A field whose bits decide last has the tuples that agree in all others next to each other. A stable sort by it makes it
    /// decide first, and the next one last, so that one pass turns from a field to the next. At the end the parting field does.
    fn in_piece<T: ListedTuple>(&self, piece: &mut [T], room: &mut [T]) -> Result<Vec<InferredRows>, Cancelled> {
        let mut found = vec![InferredRows::default(); self.fields.len()];
        for (at, (&field, inferred)) in self.fields.iter().zip(&mut found).enumerate() {
            if self.highest != Some(at) {
                *inferred = self.of_runs(piece, field);
                self.sort(piece, room, field)?;
            }
        }
        Ok(found)
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

    /// The rows whose code of the parting field is inferred, of pieces that are sorted by all others: by ranges of these.
    fn across<T: ListedTuple>(&self, pieces: &[&mut [T]], room: &mut [T]) -> Result<InferredRows, Cancelled> {
        let key = |tuple: &T| self.word(tuple) & !self.parting.mask();
        let step = (self.piece / SAMPLED_TUPLES).max(1);
        let sampled = pieces.iter().flat_map(|piece| piece.iter().step_by(step));
        let mut sampled: Vec<u64> = sampled.map(key).collect();
        sampled.sort_unstable();
        let ranges = room.len().div_ceil(self.piece);
        let mut bounds: Vec<u64> = (1..ranges).map(|at| sampled[sampled.len() * at / ranges]).collect();
        bounds.dedup();
        let before = |piece: &[T], at: usize| match at {
            0 => 0,
            _ => bounds.get(at - 1).map_or(piece.len(), |bound| piece.partition_point(|tuple| key(tuple) < *bound)),
        };
        let of_range = |at: usize| pieces.iter().map(move |piece| &piece[before(piece, at)..before(piece, at + 1)]);
        let lengths = (0..=bounds.len()).map(|at| of_range(at).map(<[T]>::len).sum());
        let found = split_at_lengths(room, lengths).into_par_iter().enumerate().map(|(at, room)| {
            self.control.check()?;
            let mut end = 0;
            for some in of_range(at) {
                room[end..end + some.len()].copy_from_slice(some);
                end += some.len();
            }
            room.sort_unstable_by_key(key);
            Ok(self.of_runs(room, self.parting))
        });
        found.try_reduce(InferredRows::default, |mut sum, more| {
            sum += more;
            Ok(sum)
        })
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

/// Parts of these lengths, one behind the other.
fn split_at_lengths<T>(mut list: &mut [T], lengths: impl Iterator<Item = usize>) -> Vec<&mut [T]> {
    let mut split = |length: usize| {
        let (part, others) = std::mem::take(&mut list).split_at_mut(length);
        list = others;
        part
    };
    lengths.map(&mut split).collect()
}
