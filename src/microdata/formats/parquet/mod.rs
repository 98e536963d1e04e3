//! Apache Parquet in and out.

mod pages;
mod reader;
mod writer;

pub use reader::{ParquetReader, spooled};
pub use writer::ParquetWriter;
