//! Tests of the whole: the house, the service and the library from outside. One binary, so that it is linked once.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail by panicking, and print their seeds")]

mod chance;
mod house;
mod library;
mod outside;
mod randomness;
mod real_data;
mod source;
mod worlds;
