//! What the scanner refuses.

use std::io;

/// Why a record cannot be read. No message carries what the record holds.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The record is not CSV.
    #[error("record {record}, byte {byte}: {fault}")]
    Malformed {
        /// The record, the first one (a header) being 0.
        record: u64,
        /// Where in the input, in bytes from its beginning.
        byte: u64,
        /// The field of the record, from 0.
        field: usize,
        /// What is wrong.
        fault: CsvFault,
    },
    /// A field or a record exceeds its limit.
    #[error("record {record}, byte {byte}: {what} of more than {limit} bytes")]
    TooLarge {
        /// The record, the first one being 0.
        record: u64,
        /// Where the record begins, in bytes from the beginning of the input.
        byte: u64,
        /// `"field"` or `"record"`.
        what: &'static str,
        /// The limit in bytes.
        limit: u64,
        /// The size in bytes as far as it was read.
        found: u64,
    },
    /// The input cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// What makes a record malformed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CsvFault {
    /// `"a"b`
    #[error("text after a closing quote")]
    TextAfterQuote,
    /// `a"b`
    #[error("a quote inside an unquoted field; quote the field and double the quote")]
    BareQuote,
    /// A carriage return that no line feed follows, outside quotes.
    #[error("a carriage return without a line feed outside quotes")]
    BareCarriageReturn,
    /// The input ends inside a quoted field.
    #[error("a quote that is never closed, or a truncated file")]
    UnclosedQuote,
}
