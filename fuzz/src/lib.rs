//! What the fuzz targets do with one input. The tests of the project do the same with a few.

pub mod chunk;
pub mod compression;
pub mod csv;
pub mod reading;
pub mod rule;
pub mod specification;
pub mod tokens;
pub mod verify;
