//! Reading of published parts, row by row.

use std::io::Read;

use super::cells::{ModelError, damaged};
use crate::control::Control;
use crate::microdata::formats::IngestLimits;
use crate::microdata::formats::csv::{Record, RecordError, Scanner};
use crate::microdata::{AttrSet, ValueKey};
use crate::publication::{Part, PublishedBytes, TableName};

/// Largest number of rows for which memory is reserved: a part may claim more rows than it has.
const MAX_RESERVED_ROWS: u64 = 1 << 20;

/// A part to read.
#[derive(Clone, Copy)]
pub(super) struct PartSource<'a> {
    pub(super) table: &'a TableName,
    pub(super) part: &'a Part,
    /// Attributes that are read.
    pub(super) wanted: AttrSet,
    pub(super) parts: &'a dyn PublishedBytes,
}

impl PartSource<'_> {
    /// Error of a part that contradicts its description.
    pub(super) fn broken(&self) -> ModelError {
        damaged(&format!("{} is not the part that the manifest describes", self.part.file(self.table)))
    }

    /// Indexes of the wanted columns.
    pub(super) fn columns(&self) -> Vec<usize> {
        let columns = &self.part.columns;
        (0..columns.len()).filter(|&at| self.wanted.contains(columns[at].attribute)).collect()
    }

    /// Number of rows for which memory is reserved.
    pub(super) fn reserved_rows(&self) -> usize {
        self.part.len.min(MAX_RESERVED_ROWS) as usize
    }

    /// Reads all rows; returns the bucket of each, from 0, if the part has buckets.
    ///
    /// `cell` gets the number of a wanted column, and the text of the cell with its key: `None` for the missing value.
    ///
    /// # Errors
    /// [`ModelError`]
    pub(super) fn read(
        &self,
        control: &Control,
        mut cell: impl FnMut(usize, Option<(&[u8], ValueKey)>),
    ) -> Result<Vec<u32>, ModelError> {
        let part = self.part;
        let columns = self.columns();
        let width = part.columns.len() + usize::from(part.bucketed);
        let null = if width == 1 { part.null.as_deref().map(str::as_bytes) } else { Some(&b""[..]) };
        let body = self.parts.open(&part.file(self.table))?;
        let mut scanner = Scanner::new(body, (width > 1).then_some(b','), &IngestLimits::of_own_parts());
        if next(&mut scanner)?.is_none_or(|header| header.len() != width) {
            return Err(self.broken());
        }
        let mut labels = Vec::with_capacity(if part.bucketed { self.reserved_rows() } else { 0 });
        let mut rows = 0_u64;
        while let Some(record) = next(&mut scanner)? {
            rows += 1;
            if record.len() != width || rows > part.len {
                return Err(self.broken());
            }
            let mut fields = record.iter_with_ends();
            if part.bucketed {
                let label = fields.next().and_then(|(text, ..)| std::str::from_utf8(text).ok()?.parse::<u32>().ok());
                let label = label.filter(|&label| label > 0 && u64::from(label) <= part.len);
                labels.push(label.ok_or_else(|| self.broken())? - 1);
            }
            let mut next = columns.iter().enumerate().peekable();
            for (at, (text, quoted, ends)) in fields.enumerate() {
                let Some((number, _)) = next.next_if(|(_, place)| **place == at) else { continue };
                cell(number, (quoted || Some(text) != null).then_some((text, ends)));
            }
            if rows.is_multiple_of(Control::STRIDE as u64) {
                control.check()?;
            }
        }
        if rows == part.len { Ok(labels) } else { Err(self.broken()) }
    }
}

fn next<'s, R: Read>(scanner: &'s mut Scanner<R>) -> Result<Option<Record<'s>>, ModelError> {
    scanner.next_record().map_err(|error| match error {
        RecordError::Io(error) => ModelError::Io(error),
        _ => damaged("a part is not CSV"),
    })
}
