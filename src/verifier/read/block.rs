//! Rows of a block of a part: labels and codes.

use std::io::Empty;

use super::dictionary::{BlockDictionary, OtherValues, PartDictionary};
use crate::microdata::formats::csv::{Record, Scanner};
use crate::microdata::{Codes, ValueKey};
use crate::publication::Part;

/// Number of rows of a batch of codes, which fits the nearest cache.
const BATCH_ROWS_IN_CACHE: usize = 1 << 10;

/// Parser of blocks, one after the other.
pub(super) struct BlockParser {
    /// The field of the last label and the label; most rows repeat the label before.
    last_label: (LabelField, Option<u32>),
    columns: Vec<BatchColumn>,
}

/// One attribute while a block is parsed.
struct BatchColumn {
    dictionary: BlockDictionary,
    batch: Vec<u32>,
}

/// The key, length and quoting of the field of a label.
type LabelField = (ValueKey, usize, bool);

/// The rows of a block up to its end or its first fault.
pub(super) struct BlockRows {
    /// Number of rows before the fault.
    pub(super) rows: usize,
    /// The label of each row, in a bucketed part.
    pub(super) labels: Vec<u32>,
    pub(super) columns: Vec<BlockColumn>,
    pub(super) fault: Option<RowFault>,
}

/// One attribute in a block.
pub(super) struct BlockColumn {
    /// Codes of the dictionary of the part, then those of `others`.
    pub(super) codes: Codes,
    pub(super) others: OtherValues,
}

/// Why a row cannot be parsed.
pub(super) enum RowFault {
    Malformed,
    Label,
}

impl BlockParser {
    pub(super) fn new<'d>(known: impl Iterator<Item = &'d PartDictionary<'d>>) -> Self {
        let column = |known| BatchColumn {
            dictionary: BlockDictionary::new(known),
            batch: Vec::with_capacity(BATCH_ROWS_IN_CACHE),
        };
        Self { last_label: ((ValueKey::from_bytes(b""), 0, false), None), columns: known.map(column).collect() }
    }

    /// Parses a block. `known` has the values that were seen before, for each column of the part.
    pub(super) fn parse<'d>(
        &mut self,
        part: &Part,
        known: impl Iterator<Item = &'d PartDictionary<'d>>,
        block: &mut Scanner<Empty>,
    ) -> BlockRows {
        let known: Vec<&PartDictionary<'_>> = known.collect();
        let mut codes: Vec<Codes> = known.iter().map(|known| Codes::with_capacity(known.len(), 0)).collect();
        let (mut rows, mut labels) = (0, Vec::new());
        let width = usize::from(part.bucketed) + part.columns.len();
        let fault = loop {
            let record = match block.next_record() {
                Ok(Some(record)) if record.len() == width => record,
                Ok(None) => break None,
                Ok(Some(_)) | Err(_) => break Some(RowFault::Malformed),
            };
            if let Err(fault) = self.add(part, &known, record, &mut labels) {
                break Some(fault);
            }
            rows += 1;
            if rows % BATCH_ROWS_IN_CACHE == 0 {
                self.flush(&known, &mut codes);
            }
        };
        if fault.is_some() {
            self.columns.iter_mut().for_each(BatchColumn::forget);
        }
        self.flush(&known, &mut codes);
        let others = self.columns.iter_mut().map(|column| column.dictionary.take());
        let columns = codes.into_iter().zip(others).map(|(codes, others)| BlockColumn { codes, others }).collect();
        BlockRows { rows, labels, columns, fault }
    }

    #[inline]
    fn add(
        &mut self,
        part: &Part,
        known: &[&PartDictionary<'_>],
        record: Record<'_>,
        labels: &mut Vec<u32>,
    ) -> Result<(), RowFault> {
        let mut fields = record.iter_with_ends();
        if part.bucketed {
            let (text, quoted, ends) = fields.next().ok_or(RowFault::Malformed)?;
            // the key of a short text determines it
            let field = (ends, text.len(), quoted);
            if field != self.last_label.0 || text.len() > 16 {
                self.last_label = (field, label(text, quoted));
            }
            labels.push(self.last_label.1.ok_or(RowFault::Label)?);
        }
        let is_single = !part.bucketed && part.columns.len() == 1;
        let null = part.null.as_deref().map(str::as_bytes);
        for (at, (bytes, quoted, ends)) in fields.enumerate() {
            let (column, known) = (&mut self.columns[at], known[at]);
            // in a part of one column an empty line is ambiguous
            if is_single && !quoted && bytes.is_empty() {
                return Err(RowFault::Malformed);
            }
            let missing = !quoted && if is_single { null == Some(bytes) } else { bytes.is_empty() };
            match missing {
                true => column.batch.push(column.dictionary.missing(known)),
                false => column.dictionary.push(known, bytes, ends, &mut column.batch),
            }
        }
        Ok(())
    }

    /// Moves the batches to the codes, which widen with the dictionaries.
    fn flush(&mut self, known: &[&PartDictionary<'_>], codes: &mut [Codes]) {
        for ((column, known), codes) in self.columns.iter_mut().zip(known).zip(codes) {
            column.dictionary.resolve(known, &mut column.batch);
            codes.extend_narrowed(column.dictionary.len(known), &column.batch);
            column.batch.clear();
        }
    }
}

impl BatchColumn {
    /// Gives a batch up.
    fn forget(&mut self) {
        self.dictionary.forget();
        self.batch.clear();
    }
}

/// Parses a label: a canonical decimal of at least 1.
fn label(text: &[u8], quoted: bool) -> Option<u32> {
    if quoted || !matches!(text, [b'1'..=b'9', ..]) {
        return None;
    }
    text.iter().try_fold(0_u32, |label, &byte| {
        let digit = byte.is_ascii_digit().then(|| u32::from(byte - b'0'))?;
        label.checked_mul(10)?.checked_add(digit)
    })
}
