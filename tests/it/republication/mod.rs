//! The same growing table, published night after night.

mod adversary;
mod interrupted;
mod nights;
mod offline;
