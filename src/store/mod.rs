//! Persistence: the backends behind the traits that `jobs` declares. SQL text and the shapes of rows are shared between
//! backends; what differs (locking, connections, errors) stands in each.

#[cfg(test)]
pub(crate) mod conformance;
mod migrations;
mod open;
pub mod postgres;
mod pulse;
mod rows;
mod sql;
pub mod sqlite;

pub use open::OpenStore;
