//! Chunks to columns: one dictionary for all rows, then codes in canonical order.

use super::chunk::ChunkColumn;
use super::domain::Domain;
use super::interner::Interner;
use super::limits::{DictionaryError, IngestLimits};
use super::table::{Codes, Column, Table};
use super::value::AttributeType;

/// Puts the chunks of one column together.
pub struct ColumnBuilder {
    interner: Interner,
    /// Of the interner, raised by 1: code 0 is the missing value.
    codes: Codes,
    missing: bool,
    limits: IngestLimits,
}

impl ColumnBuilder {
    /// A column of as many distinct values as `limits` allow, a missing one not counted.
    #[must_use]
    pub fn new(limits: &IngestLimits) -> Self {
        let limits = limits.clone();
        Self { interner: Interner::default(), codes: Codes::U8(Vec::new()), missing: false, limits }
    }

    /// Appends the rows of a chunk.
    ///
    /// # Errors
    /// [`DictionaryError`]; the column is of no use then.
    pub fn push(&mut self, chunk: &ChunkColumn) -> Result<(), DictionaryError> {
        let mut map = Vec::with_capacity(chunk.values().len() + 1);
        map.push(0);
        for value in chunk.values().iter() {
            map.push(self.interner.intern(value) + 1);
        }
        // a chunk is small, so that checking after it suffices
        self.limits.check_dictionary(&self.interner)?;
        self.missing |= chunk.missing() > 0;
        self.codes.extend_mapped(self.interner.len() + 1, chunk.codes(), |code| map[code]);
        Ok(())
    }

    /// The column, with codes in canonical order. Its type is `kind`, which must admit all values, or is inferred from them.
    #[must_use]
    pub fn finish(mut self, kind: Option<AttributeType>) -> Column {
        let values = self.interner.take();
        let kind = kind.unwrap_or_else(|| AttributeType::infer(values.iter()));
        let (domain, ranks) = Domain::sort(kind, self.missing, &values);
        let map: Vec<u32> = std::iter::once(0).chain(ranks).collect();
        let codes = self.codes.renumbered(&map, domain.len());
        Column { domain, codes }
    }
}

/// Puts chunks of several columns together.
pub struct TableBuilder {
    names: Vec<String>,
    kinds: Vec<Option<AttributeType>>,
    columns: Vec<ColumnBuilder>,
}

impl TableBuilder {
    /// A table of named columns; `kinds` are the types where they are given rather than inferred.
    ///
    /// # Panics
    /// When there are not as many types as names.
    #[must_use]
    pub fn new(names: Vec<String>, kinds: Vec<Option<AttributeType>>, limits: &IngestLimits) -> Self {
        assert_eq!(names.len(), kinds.len(), "one type a column");
        let columns = names.iter().map(|_| ColumnBuilder::new(limits)).collect();
        Self { names, kinds, columns }
    }

    /// Appends rows: a chunk of each column, in the order of the columns.
    ///
    /// # Errors
    /// [`DictionaryError`]; the table is of no use then.
    ///
    /// # Panics
    /// When there are not as many chunks as columns.
    pub fn push<'a>(&mut self, chunks: impl ExactSizeIterator<Item = &'a ChunkColumn>) -> Result<(), DictionaryError> {
        assert_eq!(chunks.len(), self.columns.len(), "one chunk a column");
        self.columns.iter_mut().zip(chunks).try_for_each(|(column, chunk)| column.push(chunk))
    }

    /// The table.
    #[must_use]
    pub fn finish(self) -> Table {
        let columns = self.columns.into_iter().zip(self.kinds).map(|(column, kind)| column.finish(kind)).collect();
        Table::new(self.names, columns)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn chunk(rows: &[Option<u32>]) -> ChunkColumn {
        let mut interner = Interner::default();
        let mut code = |value: u32| interner.intern(value.to_string().as_bytes()) as u16 + 1;
        let codes: Vec<u16> = rows.iter().map(|row| row.map_or(0, &mut code)).collect();
        ChunkColumn::new(interner.take(), &codes)
    }

    fn build(chunks: &[Vec<Option<u32>>], kind: Option<AttributeType>) -> Column {
        let mut builder = ColumnBuilder::new(&IngestLimits::default());
        chunks.iter().for_each(|rows| builder.push(&chunk(rows)).unwrap());
        builder.finish(kind)
    }

    fn check(chunks: &[Vec<Option<u32>>], kind: Option<AttributeType>) {
        let column = build(chunks, kind);
        let rows: Vec<Option<String>> = chunks.iter().flatten().map(|row| row.map(|value| value.to_string())).collect();
        let read: Vec<_> = (0..column.codes.len())
            .map(|row| column.value(row).map(|value| String::from_utf8(value.to_vec()).unwrap()))
            .collect();
        assert_eq!(read, rows);
        assert_eq!(column.domain.has_missing(), rows.contains(&None));
        assert!(column.counts().iter().all(|&count| count > 0), "only values that occur");
        assert_eq!(
            column.codes,
            Codes::collect(column.domain.len(), column.codes.iter().collect::<Vec<_>>().into_iter())
        );
    }

    proptest! {
        #[test]
        fn rows_survive(chunks in prop::collection::vec(prop::collection::vec(prop::option::of(0..50_u32), 0..60), 0..6), text: bool) {
            check(&chunks, text.then_some(AttributeType::Text));
        }
    }

    #[test]
    fn codes_are_as_narrow_as_the_domain() {
        for distinct in [255, 256, 257, 0xFFFF, 0x1_0000, 0x1_0001, 70_000_u32] {
            for missing in [false, true] {
                let mut rows: Vec<_> = (0..distinct).map(Some).collect();
                rows.extend(missing.then_some(None));
                let chunks: Vec<_> = rows.chunks(40_000).map(<[_]>::to_vec).collect();
                check(&chunks, None);
            }
        }
    }

    #[test]
    fn the_type_decides_the_order() {
        let chunks = [vec![Some(10), Some(9), None]];
        let first = |kind| build(&chunks, kind).domain.value(1).unwrap().to_vec();
        assert_eq!(first(None), b"9");
        assert_eq!(first(Some(AttributeType::Text)), b"10");
        assert_eq!(build(&[vec![None]], None).domain.kind(), AttributeType::Text);
    }

    #[test]
    fn distinct_values_are_limited() {
        let mut builder = ColumnBuilder::new(&IngestLimits { max_distinct: 3, ..IngestLimits::default() });
        builder.push(&chunk(&[Some(1), Some(2), None])).unwrap();
        builder.push(&chunk(&[Some(1), Some(3)])).unwrap();
        let full = builder.push(&chunk(&[Some(4)])).unwrap_err();
        assert_eq!((full.limit, full.found), (3, 4));
        let mut builder = ColumnBuilder::new(&IngestLimits { max_dictionary_bytes: 60, ..IngestLimits::default() });
        builder.push(&chunk(&[Some(1), Some(2)])).unwrap();
        assert_eq!(builder.push(&chunk(&[Some(3)])).unwrap_err().limit, 60);
    }
}
