//! Tests of the whole: the house, the library, and the service from outside: over HTTP, through the binary, and from the
//! published bytes alone. One binary, so that it is linked once.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail by panicking, and print their seeds")]

mod catalogue;
mod chance;
mod command_line;
mod durability;
mod events;
mod faults_http;
mod faults_specification;
mod faults_upload;
mod figures;
mod flow;
mod formats;
mod formats_out;
mod harness;
mod house;
mod idempotency;
mod identity;
mod injection;
mod ledger;
mod library;
mod life;
mod outside;
mod randomness;
mod readme;
mod real_data;
mod source;
mod torture;
mod uploads;
mod worlds;
