//! Tests of the whole: the house, the service and the library from outside. One binary, so that it is linked once.

mod chance;
mod house;
mod library;
mod randomness;
mod source;
mod worlds;
