//! The parts of a night, read for the audits.

use std::collections::{BTreeMap, HashMap};

use super::chain::{ChainBucket, ChainNight};
use crate::control::Control;
use crate::microdata::Table;
use crate::publication::{Part, Publication, PublishedBytes};
use crate::verifier::contract::input::VerifierError;
use crate::verifier::read::csv::{PartRecords, ReadError};

/// The values of each bucket in the sensitive part, by label.
pub type ShownSignatures = BTreeMap<u32, Vec<Option<Vec<u8>>>>;

/// A label and the values after it.
type LabelledRow = (u32, Vec<Option<Vec<u8>>>);

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
    let Some(rows) = rows(sensitive, &sensitive.file(&table.name), parts, control)? else { return Ok(None) };
    let mut shown = ShownSignatures::new();
    for (label, values) in rows {
        shown.entry(label).or_default().extend(values);
    }
    Ok(Some(shown))
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
        let Some(rows) = rows(known, &known.file(&table.name), parts, control)? else { return Ok(None) };
        let mut tuples: HashMap<Vec<Option<Vec<u8>>>, Vec<u32>> = HashMap::new();
        for (label, tuple) in rows {
            tuples.entry(tuple).or_default().push(label);
        }
        let mut persons_of: HashMap<Vec<Option<Vec<u8>>>, Vec<[u8; 16]>> = HashMap::new();
        for (row, person) in persons.iter().enumerate().take(original.rows()) {
            let value = |attr| original.column(attr).value(row).map(<[u8]>::to_vec);
            let tuple = known.columns.iter().map(|column| value(column.attribute)).collect();
            persons_of.entry(tuple).or_default().push(*person);
        }
        let mut buckets: BTreeMap<u32, ChainBucket> = BTreeMap::new();
        for (label, mut signature) in shown {
            signature.sort();
            buckets.insert(label, ChainBucket { label, members: Vec::new(), signature });
        }
        let mut night = ChainNight::default();
        for (tuple, labels) in tuples {
            let persons = persons_of.remove(&tuple).unwrap_or_default();
            // rows that are equal and all published in one bucket are interchangeable
            let is_placed = persons.len() == labels.len() && labels.iter().all(|label| *label == labels[0]);
            for (at, label) in labels.iter().enumerate() {
                let Some(bucket) = buckets.get_mut(label) else { return Ok(None) };
                bucket.members.push(persons.get(at).copied().filter(|_| is_placed));
            }
            if !is_placed {
                night.unplaced.extend(persons);
            }
        }
        night.buckets = buckets.into_values().collect();
        Ok(Some(night))
    }
}

/// The rows of a bucketed part; `None` where they are malformed.
fn rows(
    part: &Part,
    file: &str,
    parts: &dyn PublishedBytes,
    control: &Control,
) -> Result<Option<Vec<LabelledRow>>, VerifierError> {
    let mut reader = PartRecords::new(parts.open(file)?);
    let mut rows = Vec::new();
    let mut is_header = true;
    loop {
        let record = match reader.next() {
            Ok(Some(record)) => record,
            Ok(None) => break,
            Err(ReadError::Malformed) => return Ok(None),
            Err(ReadError::Io(error)) => return Err(error.into()),
        };
        if std::mem::take(&mut is_header) {
            continue;
        }
        let mut fields = record.iter();
        let label = fields.next().and_then(|(text, _)| std::str::from_utf8(text).ok()?.parse().ok());
        let values: Vec<Option<Vec<u8>>> =
            fields.map(|(text, quoted)| (quoted || !text.is_empty()).then(|| text.to_vec())).collect();
        let Some(label) = label.filter(|_| part.bucketed && values.len() == part.columns.len()) else {
            return Ok(None);
        };
        rows.push((label, values));
        if rows.len().is_multiple_of(Control::STRIDE) {
            control.check()?;
        }
    }
    Ok(Some(rows))
}
