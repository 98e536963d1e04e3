//! Arrow IPC streams in and out.

mod reader;
mod writer;

pub use reader::ArrowReader;
pub use writer::ArrowStreamWriter;
