//! The same growing table, published night after night.

mod nights;
mod offline;
