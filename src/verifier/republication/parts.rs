//! The parts of a night, read for the audits.

use std::collections::BTreeMap;
use std::io::Read;

use ahash::AHashMap;
use sha2::{Digest, Sha256};

use super::chain::{ChainBucket, ChainNight};
use crate::control::{Cancelled, Control};
use crate::microdata::{Column, Table};
use crate::publication::{Part, PreviousNight, Publication, PublishedBytes, ReadColumn, ReadPart};
use crate::verifier::contract::input::{PartsReader, VerifierError};
use crate::verifier::read::csv::{PartRecords, ReadError};

/// A row of a sensitive part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShownSlot {
    /// The label of its bucket.
    pub label: u32,
    /// The place of its value among all that are shown.
    pub value: u32,
}

/// The values of each bucket in the sensitive part.
#[derive(Default)]
pub struct ShownSignatures {
    values: Vec<Option<Vec<u8>>>,
    places: AHashMap<Vec<u8>, u32>,
    /// The place of the missing value.
    missing: Option<u32>,
    slots: Vec<ShownSlot>,
}

impl ShownSignatures {
    /// Those of a sensitive part that the verifier has read; `None` where it is not one.
    #[must_use]
    pub fn from_read(sensitive: &ReadPart) -> Option<Self> {
        let ReadPart { labels, columns } = sensitive;
        let [ReadColumn { column: Column { domain, codes }, .. }] = &columns[..] else { return None };
        let slot = |(label, value): (&u32, u32)| Some(ShownSlot { label: label.checked_add(1)?, value });
        let slots = labels.iter().zip(codes.iter()).map(slot).collect::<Option<_>>()?;
        let values = domain.iter().map(|value| value.map(<[u8]>::to_vec)).collect();
        let mut shown = Self { values, slots, ..Self::default() };
        shown.sort();
        (labels.len() == codes.len()).then_some(shown)
    }

    /// The values that are shown, each once; others may be among them.
    #[must_use]
    pub fn values(&self) -> &[Option<Vec<u8>>] {
        &self.values
    }

    /// The slots of each bucket, by label.
    pub fn buckets(&self) -> impl Iterator<Item = &[ShownSlot]> {
        self.slots.chunk_by(|a, b| a.label == b.label)
    }

    fn push(&mut self, label: u32, value: Option<&[u8]>) {
        let known = match value {
            Some(text) => self.places.get(text).copied(),
            None => self.missing,
        };
        let place = known.unwrap_or_else(|| {
            let place = self.values.len() as u32;
            if let Some(text) = value {
                self.places.insert(text.to_vec(), place);
            } else {
                self.missing = Some(place);
            }
            self.values.push(value.map(<[u8]>::to_vec));
            place
        });
        self.slots.push(ShownSlot { label, value: place });
    }

    /// Brings the rows of each bucket together; parts have them so.
    fn sort(&mut self) {
        self.slots.sort_by_key(|slot| slot.label);
    }
}

#[cfg(test)]
impl<'v> FromIterator<(u32, Option<&'v [u8]>)> for ShownSignatures {
    fn from_iter<I: IntoIterator<Item = (u32, Option<&'v [u8]>)>>(rows: I) -> Self {
        let mut shown = Self::default();
        rows.into_iter().for_each(|(label, value)| shown.push(label, value));
        shown.sort();
        shown
    }
}

/// The digest of what a night and the nights before it published, from the bytes of its parts: SHA-256 of a line with the digest of the
/// night before, or `first`, and one line for each part with its own SHA-256 and its file.
///
/// # Errors
/// [`VerifierError`] when the caller cancels, or when a part cannot be read.
pub fn night_digest(
    publication: &Publication,
    previous: Option<&PreviousNight>,
    parts: &dyn PublishedBytes,
    control: &Control,
) -> Result<String, VerifierError> {
    let mut chained = Sha256::new();
    chained.update(previous.map_or("first", |previous| &previous.digest.0));
    chained.update(b"\n");
    let mut block = vec![0; 1 << 16];
    for (table, part) in publication.tables.iter().flat_map(|table| table.parts.iter().map(move |part| (table, part))) {
        let file = part.file(&table.name);
        let (mut bytes, mut hash) = (parts.open(&file)?, Sha256::new());
        loop {
            control.check()?;
            match bytes.read(&mut block)? {
                0 => break,
                length => hash.update(&block[..length]),
            }
        }
        chained.update(format!("{}  {file}\n", digits(&hash.finalize())));
    }
    Ok(digits(&chained.finalize()))
}

fn digits(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The parts of a night, and the table that it was made of.
#[derive(Clone, Copy)]
pub struct NightParts<'a> {
    /// The description of the release.
    pub publication: &'a Publication,
    /// The bytes of its parts.
    pub parts: &'a dyn PublishedBytes,
    /// The original.
    pub original: &'a Table,
    /// The hash of the person of each row of the original.
    pub persons: &'a [[u8; 16]],
}

/// Reader of the signatures of a night, as the verifier reads its parts.
pub struct SignatureReader<'r> {
    /// Reads the same parts.
    next: &'r mut dyn PartsReader,
    shown: Option<ShownSignatures>,
}

impl<'r> SignatureReader<'r> {
    /// A reader before another.
    pub fn new(next: &'r mut dyn PartsReader) -> Self {
        Self { next, shown: None }
    }

    /// The signatures; `None` where parts were not read, or are not those of a night.
    #[must_use]
    pub fn finish(self) -> Option<ShownSignatures> {
        self.shown
    }
}

impl PartsReader for SignatureReader<'_> {
    fn read(&mut self, index: usize, parts: Vec<ReadPart>) -> Result<(), Cancelled> {
        self.shown = match &parts[..] {
            [_, sensitive] if index == 0 => ShownSignatures::from_read(sensitive),
            _ => None,
        };
        self.next.read(index, parts)
    }
}

/// Reads the sensitive part of a night; `None` where it is not one.
///
/// # Errors
/// [`VerifierError`] when the caller cancels, or when the part cannot be read.
pub fn shown_signatures(
    publication: &Publication,
    parts: &dyn PublishedBytes,
    control: &Control,
) -> Result<Option<ShownSignatures>, VerifierError> {
    let [table] = &publication.tables[..] else { return Ok(None) };
    let [_, sensitive] = &table.parts[..] else { return Ok(None) };
    let mut shown = ShownSignatures::default();
    let is_read = each_row(sensitive, &sensitive.file(&table.name), parts, control, |label, values| {
        values.for_each(|value| shown.push(label, value));
    })?;
    shown.sort();
    Ok(is_read.then_some(shown))
}

impl NightParts<'_> {
    /// Links the rows of the known part with persons, by tuples that stand in one bucket alone.
    ///
    /// `None` where the release has not two parts that buckets link.
    ///
    /// # Errors
    /// [`VerifierError`] when the caller cancels, or when a part cannot be read.
    pub fn link(&self, control: &Control) -> Result<Option<ChainNight>, VerifierError> {
        let Self { publication, parts, original, persons } = *self;
        let Some(shown) = shown_signatures(publication, parts, control)? else { return Ok(None) };
        let [table] = &publication.tables[..] else { return Ok(None) };
        let Some(known) = table.parts.first() else { return Ok(None) };
        let places: Vec<usize> = (0..known.columns.len()).collect();
        let Some(mut rows) = rows(known, &known.file(&table.name), parts, CellHashing { places: &places, control })?
        else {
            return Ok(None);
        };
        rows.sort_unstable_by_key(|row| row.hash);
        let mut tuples: Vec<([u8; 16], [u8; 16])> = Vec::with_capacity(persons.len());
        for (row, person) in persons.iter().enumerate().take(original.rows()) {
            let cells = known.columns.iter().map(|column| original.column(column.attribute).value(row));
            tuples.push((hash_of_cells(cells), *person));
            if row.is_multiple_of(Control::STRIDE) {
                control.check()?;
            }
        }
        tuples.sort_unstable_by_key(|(hash, _)| *hash);
        let mut tuples = tuples.chunk_by(|a, b| a.0 == b.0).peekable();
        let mut buckets = empty_buckets(&shown);
        let mut night = ChainNight::default();
        for equal in rows.chunk_by(|a, b| a.hash == b.hash) {
            while tuples.next_if(|tuple| tuple[0].0 < equal[0].hash).is_some() {}
            let persons = tuples.next_if(|tuple| tuple[0].0 == equal[0].hash).unwrap_or_default();
            // rows that are equal and all published in one bucket are interchangeable
            let is_placed = persons.len() == equal.len() && equal.iter().all(|row| row.label == equal[0].label);
            for (at, row) in equal.iter().enumerate() {
                let Some(bucket) = buckets.get_mut(&row.label) else { return Ok(None) };
                bucket.members.push(persons.get(at).map(|(_, person)| *person).filter(|_| is_placed));
            }
            if !is_placed {
                night.unplaced.extend(persons.iter().map(|(_, person)| *person));
            }
        }
        night.buckets = buckets.into_values().collect();
        Ok(Some(night))
    }
}

/// Links the rows of the known parts of several nights with each other, by the cells of these columns: who knows no table takes rows
/// with equal cells, which stand in one row of each night alone, for one person.
///
/// `None` where the release has not two parts that buckets link, or lacks a column.
///
/// # Errors
/// [`VerifierError`] when the caller cancels, or when a part cannot be read.
pub fn link_by_cells(
    publication: &Publication,
    parts: &dyn PublishedBytes,
    columns: &[String],
    control: &Control,
) -> Result<Option<ChainNight>, VerifierError> {
    let Some(shown) = shown_signatures(publication, parts, control)? else { return Ok(None) };
    let [table] = &publication.tables[..] else { return Ok(None) };
    let Some(known) = table.parts.first() else { return Ok(None) };
    let place = |name: &String| known.columns.iter().position(|column| column.name == *name);
    let Some(places) = columns.iter().map(place).collect::<Option<Vec<usize>>>() else { return Ok(None) };
    let Some(mut rows) = rows(known, &known.file(&table.name), parts, CellHashing { places: &places, control })? else {
        return Ok(None);
    };
    rows.sort_unstable_by_key(|row| row.hash);
    let mut buckets = empty_buckets(&shown);
    let mut unplaced = Vec::new();
    for equal in rows.chunk_by(|a, b| a.hash == b.hash) {
        for row in equal {
            let Some(bucket) = buckets.get_mut(&row.label) else { return Ok(None) };
            bucket.members.push(Some(row.hash).filter(|_| equal.len() == 1));
        }
        if equal.len() > 1 {
            unplaced.push(equal[0].hash);
        }
    }
    Ok(Some(ChainNight { buckets: buckets.into_values().collect(), unplaced }))
}

fn hash_of_cells<'c>(cells: impl Iterator<Item = Option<&'c [u8]>>) -> [u8; 16] {
    let mut hash = Sha256::new();
    for cell in cells {
        hash.update([u8::from(cell.is_some())]);
        hash.update((cell.unwrap_or_default().len() as u64).to_le_bytes());
        hash.update(cell.unwrap_or_default());
    }
    let digest: [u8; 32] = hash.finalize().into();
    digest.first_chunk().copied().unwrap_or_default()
}

/// The buckets of a night, without members.
fn empty_buckets(shown: &ShownSignatures) -> BTreeMap<u32, ChainBucket> {
    let bucket = |slots: &[ShownSlot]| {
        let mut signature: Vec<_> = slots.iter().map(|slot| shown.values[slot.value as usize].clone()).collect();
        signature.sort();
        (slots[0].label, ChainBucket { label: slots[0].label, members: Vec::new(), signature })
    };
    shown.buckets().map(bucket).collect()
}

/// A row: its label, and a hash of some of its cells.
struct HashedRow {
    label: u32,
    hash: [u8; 16],
}

/// The places of the cells that are hashed.
#[derive(Clone, Copy)]
struct CellHashing<'a> {
    places: &'a [usize],
    control: &'a Control,
}

/// The rows of a bucketed part; `None` where they are malformed.
fn rows(
    part: &Part,
    file: &str,
    parts: &dyn PublishedBytes,
    hashing: CellHashing<'_>,
) -> Result<Option<Vec<HashedRow>>, VerifierError> {
    let (mut rows, CellHashing { places, control }) = (Vec::new(), hashing);
    let is_read = each_row(part, file, parts, control, |label, values| {
        let cells: Vec<Option<&[u8]>> = values.collect();
        rows.push(HashedRow { label, hash: hash_of_cells(places.iter().map(|place| cells[*place])) });
    })?;
    Ok(is_read.then_some(rows))
}

/// The values of a record after its label.
type RowValues<'v> = &'v mut dyn Iterator<Item = Option<&'v [u8]>>;

/// Reads the rows of a bucketed part one by one; whether they are well-formed.
fn each_row(
    part: &Part,
    file: &str,
    parts: &dyn PublishedBytes,
    control: &Control,
    mut take: impl FnMut(u32, RowValues<'_>),
) -> Result<bool, VerifierError> {
    let mut reader = PartRecords::new(parts.open(file)?);
    let (mut number, width) = (0_usize, 1 + part.columns.len());
    loop {
        let record = match reader.next() {
            Ok(Some(record)) => record,
            Ok(None) => return Ok(part.bucketed),
            Err(ReadError::Malformed) => return Ok(false),
            Err(ReadError::Io(error)) => return Err(error.into()),
        };
        number += 1;
        if number == 1 {
            continue;
        }
        if record.len() != width {
            return Ok(false);
        }
        let mut fields = record.iter();
        let label = fields.next().and_then(|(text, _)| std::str::from_utf8(text).ok()?.parse().ok());
        let Some(label) = label else { return Ok(false) };
        take(label, &mut fields.map(|(text, quoted)| (quoted || !text.is_empty()).then_some(text)));
        if number.is_multiple_of(Control::STRIDE) {
            control.check()?;
        }
    }
}
