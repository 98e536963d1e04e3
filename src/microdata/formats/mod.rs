//! How tables are read and written: formats and compression.

mod arrays;
pub mod arrow;
mod collect;
pub mod compression;
pub mod csv;
mod error;
pub(super) mod input;
mod json_array;
pub mod ndjson;
pub(super) mod open;
pub mod parquet;
mod spool;
mod typed;

pub use super::limits::IngestLimits;
pub use compression::{Encoding, LimitExceededError};
pub use error::IngestError;
pub use input::{InputFormat, TableReader};
pub use open::open;
pub use typed::{DecimalScales, TypedColumn, TypedKind, TypedRows, parse_units};
