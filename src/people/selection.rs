//! The order by which rows of a person are chosen.

use crate::microdata::formats::IngestLimits;
use crate::microdata::{AttributeType, Chunk, DictionaryError, Domain, Interner};

/// The place of a row in the order; rows without a value come last.
pub(super) type RowRank = u32;

/// The values of the column by which rows are chosen, while a table is read.
pub(super) struct OrderValues<'a> {
    column: usize,
    values: Interner,
    limits: &'a IngestLimits,
}

impl<'a> OrderValues<'a> {
    pub(super) fn new(column: usize, limits: &'a IngestLimits) -> Self {
        Self { column, values: Interner::default(), limits }
    }

    /// Takes the values of a chunk.
    ///
    /// # Errors
    /// [`DictionaryError`] when they exceed the limits.
    pub(super) fn add(&mut self, chunk: &Chunk) -> Result<(), DictionaryError> {
        let column = &chunk.columns[self.column];
        for value in column.values().iter() {
            self.values.intern(value);
        }
        self.limits.check_dictionary(&self.values)
    }

    /// The order of the values, by the type of their column.
    pub(super) fn rank(self, kinds: &[Option<AttributeType>]) -> RowOrder {
        let Self { column, values, .. } = self;
        let kind = kinds[column].unwrap_or_else(|| AttributeType::infer(values.values().iter()));
        let (_, ranks) = Domain::sort(kind, false, values.values());
        RowOrder { column, values, ranks }
    }
}

/// The order by which rows are chosen. It takes memory for its values, and none for rows.
pub(super) struct RowOrder {
    pub(super) column: usize,
    values: Interner,
    ranks: Vec<RowRank>,
}

impl RowOrder {
    /// The rank of each row of a chunk of the table.
    pub(super) fn ranks(&self, chunk: &Chunk) -> Vec<RowRank> {
        let column = &chunk.columns[self.column];
        let rank = |value: &[u8]| self.values.get(value).map_or(RowRank::MAX, |code| self.ranks[code as usize]);
        let of_code: Vec<RowRank> = std::iter::once(RowRank::MAX).chain(column.values().iter().map(rank)).collect();
        column.codes().iter().map(|code| of_code[code as usize]).collect()
    }
}
