//! Cells to chunks, for the formats whose values come typed.

use std::collections::HashMap;

use super::error::IngestError;
use crate::microdata::interner::VALUE_OVERHEAD;
use crate::microdata::limits::IngestLimits;
use crate::microdata::names::ColumnNames;
use crate::microdata::{AttributeType, CHUNK_ROWS, Chunk, ChunkColumn, Interner};

/// Number of bytes of dictionaries at which a chunk ends early, so that memory is bounded.
pub(super) const CHUNK_VALUES: usize = 8 << 20;
/// The most codes of a chunk, over all its columns.
pub(super) const CHUNK_CELLS: usize = 8 << 20;

/// Columns under construction. Every column takes its own cells; a row is complete when each has one.
pub(super) struct Collector {
    names: Vec<String>,
    positions: HashMap<String, usize>,
    known: ColumnNames,
    columns: Vec<ColumnUnderConstruction>,
    /// Types by name that the caller gave, as far as no column took them.
    given: Vec<(String, AttributeType)>,
    max_columns: u64,
    max_field: usize,
    max_rows: u64,
    /// Rows of the chunks before.
    before: u64,
    values: usize,
}

struct ColumnUnderConstruction {
    interner: Interner,
    codes: Vec<u16>,
    given: Option<AttributeType>,
}

impl Collector {
    pub(super) fn new(types: Vec<(String, AttributeType)>, limits: &IngestLimits) -> Self {
        Self {
            names: Vec::new(),
            positions: HashMap::new(),
            known: ColumnNames::default(),
            columns: Vec::new(),
            given: types,
            max_columns: limits.max_columns,
            max_field: usize::try_from(limits.max_field_bytes).unwrap_or(usize::MAX),
            max_rows: limits.max_rows,
            before: 0,
            values: 0,
        }
    }

    /// Adds a column, in which the first `missing` rows of the chunk have no value.
    pub(super) fn add_column(&mut self, name: &str, missing: usize) -> Result<usize, IngestError> {
        let index = self.columns.len();
        self.known.add(name).map_err(|detail| malformed(None, None, detail))?;
        self.positions.insert(name.to_owned(), index);
        if index as u64 >= self.max_columns {
            return Err(IngestError::TooManyColumns { limit: self.max_columns, found: index as u64 + 1 });
        }
        self.names.push(name.to_owned());
        let at = self.given.iter().position(|(known, _)| known == name);
        let given = at.map(|at| self.given.swap_remove(at).1);
        // how many columns there will be is not known yet: the later ones get smaller caches
        let interner = Interner::among(index + 1);
        self.columns.push(ColumnUnderConstruction { given, codes: vec![0; missing], interner });
        Ok(index)
    }

    /// All columns are there.
    pub(super) fn columns_are_complete(&mut self) -> Result<(), IngestError> {
        self.given.pop().map_or(Ok(()), |(name, _)| Err(IngestError::UnknownTypeColumn(name)))
    }

    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    pub(super) fn position(&self, name: &str) -> Option<usize> {
        self.positions.get(name).copied()
    }

    /// The type that the caller gave for a column.
    pub(super) fn given(&self, column: usize) -> Option<AttributeType> {
        self.columns[column].given
    }

    /// The rows of `column` in the chunk under way.
    pub(super) fn len(&self, column: usize) -> usize {
        self.columns[column].codes.len()
    }

    /// The next row of a column, counted from 1 over the whole table.
    pub(super) fn next_row(&self, column: usize) -> u64 {
        self.before + self.len(column) as u64 + 1
    }

    /// The rows of the chunks before the one under way.
    pub(super) const fn before(&self) -> u64 {
        self.before
    }

    /// Refuses the next cell of a column.
    #[cold]
    pub(super) fn refuse(&self, column: usize, detail: impl Into<String>) -> IngestError {
        malformed(Some(self.next_row(column)), Some(self.names[column].clone()), detail.into())
    }

    /// Appends a missing value.
    pub(super) fn missing(&mut self, column: usize) {
        self.columns[column].codes.push(0);
    }

    /// Appends a value.
    pub(super) fn value(&mut self, column: usize, value: &[u8]) -> Result<(), IngestError> {
        if value.len() > self.max_field {
            let (limit, found) = (self.max_field as u64, value.len() as u64);
            return Err(IngestError::TooLarge {
                what: "bytes of a field",
                limit,
                found,
                row: Some(self.next_row(column)),
            });
        }
        let building = &mut self.columns[column];
        let known = building.interner.len() as u32;
        let code = building.interner.intern(value);
        if code == known {
            if let Some(kind) = building.given.filter(|kind| !kind.admits(value)) {
                return Err(self.refuse(column, format!("the value is not of type {}", kind.name())));
            }
            self.values += value.len() + VALUE_OVERHEAD;
        }
        // a chunk has at most 65,535 rows, and so as many values
        self.columns[column].codes.push(code as u16 + 1);
        Ok(())
    }

    /// How many more rows the chunk takes.
    pub(super) fn room(&self) -> usize {
        if self.values > CHUNK_VALUES {
            return 0;
        }
        let most = (CHUNK_CELLS / self.columns.len().max(1)).clamp(1, CHUNK_ROWS);
        most.saturating_sub(self.columns.first().map_or(0, |column| column.codes.len()))
    }

    /// The rows so far as a chunk, if there are any.
    pub(super) fn finish(&mut self) -> Result<Option<Chunk>, IngestError> {
        let rows = self.columns.first().map_or(0, |column| column.codes.len());
        self.before += rows as u64;
        if self.before > self.max_rows {
            return Err(IngestError::TooLarge { what: "rows", limit: self.max_rows, found: self.before, row: None });
        }
        self.values = 0;
        if rows == 0 {
            return Ok(None);
        }
        let finish = |building: &mut ColumnUnderConstruction| {
            let column = ChunkColumn::new(building.interner.take(), &building.codes);
            building.codes.clear();
            column
        };
        Ok(Some(Chunk { rows: rows as u32, columns: self.columns.iter_mut().map(finish).collect() }))
    }
}

/// The input is not a table in its format.
pub(super) fn malformed(row: Option<u64>, column: Option<String>, detail: impl Into<String>) -> IngestError {
    IngestError::Malformed { row, column, byte: None, detail: detail.into() }
}
