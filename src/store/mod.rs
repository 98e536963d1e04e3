//! Persistence: the backends behind the traits of `ports`. Statements, rows and most queries are shared; locks, connections
//! and errors differ by backend.

#[macro_use]
mod run_sql;

#[cfg(test)]
pub(crate) mod conformance;
mod migrations;
mod open;
pub mod postgres;
mod pulse;
mod rows;
mod shared;
mod sql;
pub mod sqlite;

pub use open::OpenStore;
