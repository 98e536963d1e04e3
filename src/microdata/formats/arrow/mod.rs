//! Arrow IPC streams in and out, and Arrow files in.

mod file;
mod reader;
mod sizes;
mod writer;

pub use file::{ARROW_FILE_MAGIC, ArrowFileReader};
pub use reader::ArrowReader;
pub use writer::ArrowStreamWriter;
