//! Person keys of the rows of a table.

use std::borrow::Cow;

use rayon::prelude::*;
use unicode_normalization::UnicodeNormalization;

use super::fold::Fold;
use super::hash::{KeyedHash, KeyedHasher, labelled, put_text};
use crate::microdata::{Chunk, ChunkColumn};

/// Rows or values that a processor hashes at once.
pub(super) const ROWS_AT_ONCE: usize = 1 << 12;

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
    /// The hash of the key as it counts as written, where it is written otherwise than it is folded.
    pub(super) spelling: Option<u128>,
}

/// The components of the keys of a chunk, by code.
pub(super) struct KeyComponents<'a, H: ?Sized> {
    hasher: &'a H,
    /// What stands before the components of a person, and of a spelling.
    person: Vec<u8>,
    spelling: Vec<u8>,
    columns: Vec<ComponentColumn<'a>>,
}

struct ComponentColumn<'a> {
    number: usize,
    column: &'a ChunkColumn,
    /// None of what is missing or empty.
    texts: Vec<Option<ComponentTexts<'a>>>,
}

impl<'a> ComponentColumn<'a> {
    fn texts(&self, row: usize) -> Option<&ComponentTexts<'a>> {
        self.texts[self.column.codes().get(row) as usize].as_ref()
    }
}

struct ComponentTexts<'a> {
    folded: Cow<'a, str>,
    /// As it counts as written, if that is another text.
    spelling: Option<Cow<'a, str>>,
}

/// One of the texts of a component.
type TextOf<'a> = for<'t> fn(&'t ComponentTexts<'a>) -> &'t str;

impl<'a> ComponentTexts<'a> {
    fn new(fold: Fold, value: &'a [u8]) -> Option<Self> {
        let text = str::from_utf8(value).map_or_else(|_| String::from_utf8_lossy(value), Cow::Borrowed);
        let folded = match &text {
            Cow::Borrowed(text) => fold.apply(text),
            Cow::Owned(text) => Cow::Owned(fold.apply(text).into_owned()),
        };
        if folded.is_empty() {
            return None;
        }
        let spelling = (fold != Fold::Exact).then(|| if text.is_ascii() { text } else { text.nfc().collect() });
        let spelling = spelling.filter(|spelling| *spelling != folded);
        Some(Self { folded, spelling })
    }

    fn folded(&self) -> &str {
        &self.folded
    }

    fn spelling(&self) -> &str {
        self.spelling.as_ref().unwrap_or(&self.folded)
    }
}

impl<'a, H: KeyedHasher + ?Sized> KeyComponents<'a, H> {
    pub(super) fn new(hasher: &'a H, system: &SystemColumns, chunk: &'a Chunk) -> Self {
        let column = |&number: &usize| {
            let column = &chunk.columns[number];
            let mut texts = vec![None];
            texts.par_extend(
                column.values().par_iter(ROWS_AT_ONCE).map(|value| ComponentTexts::new(system.fold, value)),
            );
            ComponentColumn { number, column, texts }
        };
        let before = |label| labelled(label, &[system.system.as_bytes()]);
        let columns = system.columns.iter().map(column).collect();
        Self { hasher, person: before("person"), spelling: before("spelling"), columns }
    }

    /// The key of each of some rows, or the column that it has no value of.
    pub(super) fn keys(&self, rows: &[usize]) -> Vec<Result<RowKey, usize>> {
        rows.par_iter().with_min_len(ROWS_AT_ONCE).map_init(Vec::new, |room, row| self.key(*row, room)).collect()
    }

    /// The key of a row, or the column that it has no value of. `room` is for bytes that are hashed.
    pub(super) fn key(&self, row: usize, room: &mut Vec<u8>) -> Result<RowKey, usize> {
        let person = self.person(row, room)?;
        let mut texts = self.columns.iter().filter_map(|column| column.texts(row));
        let is_other = texts.any(|texts| texts.spelling.is_some());
        let spelling = is_other.then(|| self.keyed(&self.spelling, row, ComponentTexts::spelling, room));
        Ok(RowKey { person, spelling })
    }

    /// The person of a row, or the column that it has no value of.
    fn person(&self, row: usize, room: &mut Vec<u8>) -> Result<u128, usize> {
        match self.columns.iter().find(|column| column.texts(row).is_none()) {
            Some(column) => Err(column.number),
            None => Ok(self.keyed(&self.person, row, ComponentTexts::folded, room)),
        }
    }

    fn keyed(&self, before: &[u8], row: usize, text: TextOf<'a>, room: &mut Vec<u8>) -> u128 {
        room.clear();
        room.extend_from_slice(before);
        let texts = self.columns.iter().filter_map(|column| column.texts(row));
        texts.for_each(|texts| put_text(room, text(texts).as_bytes()));
        self.hasher.keyed_bytes(room).0
    }
}

/// The person of each row of a chunk, by a key system; `None` of a row without a key.
pub fn person_hashes<H: KeyedHasher + ?Sized>(
    hasher: &H,
    system: &SystemColumns,
    chunk: &Chunk,
) -> Vec<Option<KeyedHash>> {
    let components = KeyComponents::new(hasher, system, chunk);
    let person = |room: &mut Vec<u8>, row| components.person(row, room).ok().map(KeyedHash);
    (0..chunk.rows as usize).into_par_iter().with_min_len(ROWS_AT_ONCE).map_init(Vec::new, person).collect()
}
