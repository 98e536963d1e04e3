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

/// What to do with a file whose texts are not UTF-8.
pub(super) const SAVE_AS_UTF_8: &str = "save the file as UTF-8";

/// How files of other formats begin, and what to do with them.
const OTHER_FORMATS: [(&[u8], &str); 9] = [
    (b"\xFF\xFE", "the file is UTF-16; save it as UTF-8"),
    (b"\xFE\xFF", "the file is UTF-16; save it as UTF-8"),
    (b"PAR1", "the file is Parquet, and was to be read as CSV"),
    (b"ARROW1", "the file is Arrow, and was to be read as CSV"),
    (b"FEA1", "the file is Feather of version 1; write it as Feather of version 2, or as Parquet"),
    (b"PK\x03\x04", "the file is a workbook or another ZIP archive; save one sheet as CSV"),
    (b"\xD0\xCF\x11\xE0", "the file is an old workbook; save one sheet as CSV"),
    (b"\x1F\x8B", "the file is compressed by gzip, and was to be read as plain"),
    (b"\x28\xB5\x2F\xFD", "the file is compressed by zstd, and was to be read as plain"),
];

/// What a file is, instead of CSV, that begins so; `None` where nothing shows it.
pub(super) fn other_format(beginning: &[u8]) -> Option<&'static str> {
    OTHER_FORMATS.iter().find(|(mark, _)| beginning.starts_with(mark)).map(|(_, what)| *what)
}
