//! The tests over the whole house, in one binary.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod formats;
#[expect(dead_code, reason = "tests of other rooms use the rest")]
mod harness;
mod readme;
