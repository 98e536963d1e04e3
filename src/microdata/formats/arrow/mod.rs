//! Arrow IPC streams in and out, and Arrow files in.

mod file;
mod reader;
mod sizes;
mod writer;

pub(super) use file::{ARROW_FILE_MAGIC, open_file};
pub(super) use reader::open_stream;
pub use writer::ArrowStreamWriter;
