//! Arrow IPC streams in and out, and Arrow files in.

mod reader;
mod sizes;
mod writer;

pub use reader::ArrowReader;
pub use writer::ArrowStreamWriter;
