//! Apache Parquet in and out.

mod files;
mod merged;
mod pages;
mod reader;
mod writer;

pub use files::ParquetFiles;
pub use merged::MergedParquet;
pub(super) use reader::open;
pub use writer::ParquetWriter;
