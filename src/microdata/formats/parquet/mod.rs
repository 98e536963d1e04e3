//! Apache Parquet in and out.

mod pages;
mod reader;
mod writer;

pub use reader::ParquetReader;
pub use writer::ParquetWriter;
