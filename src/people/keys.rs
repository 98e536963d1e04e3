//! Person keys of the rows of a table.

use unicode_normalization::UnicodeNormalization;

use super::fold::Fold;
use super::hash::{KeyedHash, KeyedHasher};
use crate::microdata::{Chunk, ChunkColumn};

/// The columns of a key system in a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SystemColumns {
    /// The name of the key system.
    pub system: String,
    /// How its components are folded.
    pub fold: Fold,
    /// A column for each component, in the order of the key system.
    pub columns: Vec<usize>,
}

impl SystemColumns {
    /// Columns whose texts identify persons as they are written.
    #[must_use]
    pub fn alone(system: &str, columns: Vec<usize>) -> Self {
        Self { system: system.to_owned(), fold: Fold::Exact, columns }
    }
}

/// The key of a row.
#[derive(Clone, Copy)]
pub(super) struct RowKey {
    pub(super) person: u128,
    /// The hash of the key as it counts as written.
    pub(super) spelling: u128,
}

/// The components of the keys of a chunk, by code.
pub(super) struct KeyComponents<'a, H: ?Sized> {
    hasher: &'a H,
    system: String,
    columns: Vec<ComponentColumn<'a>>,
}

struct ComponentColumn<'a> {
    number: usize,
    column: &'a ChunkColumn,
    /// Folded, and as it counts as written. None of what is missing or empty.
    texts: Vec<Option<ComponentTexts>>,
}

struct ComponentTexts {
    folded: String,
    spelling: String,
}

impl<'a, H: KeyedHasher + ?Sized> KeyComponents<'a, H> {
    pub(super) fn new(hasher: &'a H, system: &SystemColumns, chunk: &'a Chunk) -> Self {
        let texts = |value: &[u8]| {
            let text = String::from_utf8_lossy(value);
            let folded = system.fold.apply(&text).into_owned();
            let spelling = if system.fold == Fold::Exact { folded.clone() } else { text.nfc().collect() };
            (!folded.is_empty()).then_some(ComponentTexts { folded, spelling })
        };
        let column = |&number: &usize| {
            let column = &chunk.columns[number];
            let texts = std::iter::once(None).chain(column.values().iter().map(texts)).collect();
            ComponentColumn { number, column, texts }
        };
        Self { hasher, system: system.system.clone(), columns: system.columns.iter().map(column).collect() }
    }

    /// The key of a row, or the column that it has no value of.
    pub(super) fn key(&self, row: usize) -> Result<RowKey, usize> {
        let (mut folded, mut spelling) = (vec![self.system.as_bytes()], vec![self.system.as_bytes()]);
        for ComponentColumn { number, column, texts } in &self.columns {
            let texts = texts[column.codes().get(row) as usize].as_ref().ok_or(*number)?;
            folded.push(texts.folded.as_bytes());
            spelling.push(texts.spelling.as_bytes());
        }
        let person = self.hasher.keyed("person", &folded).0;
        let spelling = if spelling == folded { person } else { self.hasher.keyed("spelling", &spelling).0 };
        Ok(RowKey { person, spelling })
    }
}

/// The person of each row of a chunk, by a key system; `None` of a row without a key.
pub fn person_hashes<H: KeyedHasher + ?Sized>(
    hasher: &H,
    system: &SystemColumns,
    chunk: &Chunk,
) -> Vec<Option<KeyedHash>> {
    let components = KeyComponents::new(hasher, system, chunk);
    (0..chunk.rows as usize).map(|row| components.key(row).ok().map(|key| KeyedHash(key.person))).collect()
}
