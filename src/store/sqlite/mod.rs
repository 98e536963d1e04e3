//! The embedded store: one SQLite file that one process at a time may open.
//!
//! Writes go through a pool of one connection in `BEGIN IMMEDIATE` transactions: a deferred transaction that reads first cannot
//! always become a writer, and no timeout helps it. Reads have a pool of their own and never wait for a writer (WAL).

pub(super) mod backend;
mod datasets;
mod error;
mod people;
mod pool;
mod queue;
mod releases;
mod store_metadata;
#[cfg(test)]
mod tests;

pub use pool::SqliteStore;

/// Each chunk may be megabytes to overwrite, while other writers wait.
pub(super) const CHUNKS_PER_DELETE: i64 = 64;
