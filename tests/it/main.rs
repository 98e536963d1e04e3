//! The whole service from outside: over HTTP, through the binary, and from the published bytes alone.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod catalogue;
mod command_line;
mod durability;
mod faults_http;
mod faults_specification;
mod faults_upload;
mod figures;
mod flow;
mod harness;
mod ledger;
mod uploads;
