//! Tests of the whole: the house, the library, and the service from outside: over HTTP, through the binary, and from the
//! published bytes alone. One binary, so that it is linked once.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail by panicking, and print their seeds")]

mod architecture;
mod ledger;
mod methods;
mod operations;
mod reading;
mod republication;
mod security;
mod sequential;
mod service;
mod support;
mod verification;
