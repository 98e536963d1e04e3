//! Tests of the whole: the house, the library, and the service from outside: over HTTP, through the binary, and from the
//! published bytes alone. One binary, so that it is linked once.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail by panicking, and print their seeds")]

mod at_rest;
mod catalogue;
mod chance;
mod command_line;
mod containers;
mod contract;
mod doors;
mod durability;
mod endings;
mod events;
mod examples;
mod faults_http;
mod faults_specification;
mod faults_upload;
mod figures;
mod flow;
mod formats;
mod formats_out;
mod gateway;
mod harness;
mod house;
mod idempotency;
mod identity;
mod issuer;
mod jwt;
mod ledger;
mod library;
mod life;
mod limits;
mod matrix;
mod metrics;
mod nginx;
mod openapi;
mod outside;
mod oversight;
mod policies;
mod randomness;
mod readme;
mod real_data;
mod source;
mod stores;
mod telemetry;
mod uploads;
mod worlds;
