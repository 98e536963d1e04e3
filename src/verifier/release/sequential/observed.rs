//! A release of one table of tuples as its readers see it: labels, and nothing else.

use std::io;
use std::io::Read;

use ahash::AHashMap;

use crate::control::Control;
use crate::microdata::{AttributeType, CellShape};
use crate::publication::{EarlierRelease, Part};
use crate::verifier::read::csv::{PartRecords, ReadError};

/// The rows of a release.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObservedRelease {
    /// How many there are.
    pub rows: usize,
    /// Its columns.
    pub columns: Vec<ObservedColumn>,
}

/// A column as it was published.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObservedColumn {
    /// The attribute.
    pub name: String,
    /// What its cells are.
    pub shape: CellShape,
    /// The type of the values behind them.
    pub kind: AttributeType,
    /// The label of each row.
    pub codes: Vec<u32>,
    /// What labels say; `None` is an empty cell.
    pub labels: Vec<Option<Vec<u8>>>,
}

impl ObservedRelease {
    /// An earlier release.
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

    /// A part, from its bytes; `None` when they are not those of the part.
    pub(in crate::verifier) fn read(
        part: &Part,
        kinds: &dyn Fn(usize) -> AttributeType,
        bytes: Box<dyn Read + '_>,
        control: &Control,
    ) -> Result<Option<Self>, crate::verifier::contract::evidence::VerifierError> {
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

    /// Where a column stands.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }
}

fn io_error(error: io::Error) -> crate::verifier::contract::evidence::VerifierError {
    error.into()
}
