//! Apache Parquet in and out.

mod pages;
mod reader;
mod writer;

pub(super) use reader::open;
pub use writer::ParquetWriter;
