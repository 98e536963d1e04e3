//! CSV (RFC 4180) in and out. An unquoted empty field is a missing value, a quoted empty field is the empty string.

mod blocks;
mod detect;
mod error;
mod marks;
mod options;
mod reader;
mod repeated;
mod scanner;
mod write;

pub use blocks::RecordBlocks;
pub use detect::detect_delimiter;
pub use error::{CsvFault, RecordError};
pub use options::CsvOptions;
pub use reader::{CsvReader, read_table};
pub use scanner::{Record, Scanner};
pub use write::{RowWriter, header, null_marker, quote};
