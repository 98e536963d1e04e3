//! A release of one table of tuples in the view of its readers: rows of labels.

use std::io;
use std::io::Read;

use ahash::AHashMap;

use crate::control::Control;
use crate::microdata::{AttributeType, CellShape};
use crate::publication::{EarlierRelease, Part};
use crate::verifier::read::csv::{PartRecords, ReadError};

/// The published rows of a release.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObservedRelease {
    /// Number of rows.
    pub rows: usize,
    /// The published columns.
    pub columns: Vec<ObservedColumn>,
}

/// A published column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObservedColumn {
    /// The name of the attribute.
    pub name: String,
    /// The shape of the cells.
    pub shape: CellShape,
    /// The type of the values that the cells stand for.
    pub kind: AttributeType,
    /// The code of the label of each row.
    pub codes: Vec<u32>,
    /// The label of each code; `None` is an empty cell.
    pub labels: Vec<Option<Vec<u8>>>,
}

impl ObservedRelease {
    /// The view of an earlier release.
    #[must_use]
    pub fn from_earlier(release: &EarlierRelease) -> Self {
        let column = |column: &crate::publication::EarlierColumn| ObservedColumn {
            name: column.name.clone(),
            shape: if column.nodes { CellShape::Node } else { column.shape },
            kind: column.kind,
            codes: column.cells.codes.iter().collect(),
            labels: column.cells.domain.iter().map(|label| label.map(<[u8]>::to_vec)).collect(),
        };
        Self { rows: release.rows, columns: release.columns.iter().map(column).collect() }
    }

    /// Reads a part; `None` when the bytes are not those of the part.
    pub(in crate::verifier) fn read(
        part: &Part,
        kinds: &dyn Fn(usize) -> AttributeType,
        bytes: Box<dyn Read + '_>,
        control: &Control,
    ) -> Result<Option<Self>, crate::verifier::contract::input::VerifierError> {
        let width = part.columns.len();
        let mut reader = PartRecords::new(bytes);
        let mut dictionaries: Vec<AHashMap<Option<Vec<u8>>, u32>> = vec![AHashMap::new(); width];
        let mut columns: Vec<ObservedColumn> = part
            .columns
            .iter()
            .enumerate()
            .map(|(at, column)| ObservedColumn {
                name: column.name.clone(),
                shape: column.cells.shape(),
                kind: kinds(at),
                codes: Vec::new(),
                labels: Vec::new(),
            })
            .collect();
        let mut rows = 0_usize;
        let mut first = true;
        loop {
            let record = match reader.next() {
                Ok(Some(record)) if record.len() == width => record,
                Ok(None) => break,
                Ok(Some(_)) | Err(ReadError::Malformed) => return Ok(None),
                Err(ReadError::Io(error)) => return Err(io_error(error)),
            };
            if std::mem::take(&mut first) {
                continue;
            }
            rows += 1;
            if rows.is_multiple_of(Control::STRIDE) {
                control.check()?;
            }
            let null = if width == 1 { part.null.as_deref().map(str::as_bytes) } else { Some(&b""[..]) };
            for ((column, dictionary), (text, quoted)) in columns.iter_mut().zip(&mut dictionaries).zip(record.iter()) {
                let label = (quoted || Some(text) != null).then(|| text.to_vec());
                let code = *dictionary.entry(label).or_insert_with_key(|label| {
                    column.labels.push(label.clone());
                    column.labels.len() as u32 - 1
                });
                column.codes.push(code);
            }
        }
        Ok(Some(Self { rows, columns }))
    }

    /// The index of a column by its name.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }
}

fn io_error(error: io::Error) -> crate::verifier::contract::input::VerifierError {
    error.into()
}
