//! The embedded store: one SQLite file that one process at a time may open.
//!
//! Writes go through a pool of one connection in `BEGIN IMMEDIATE` transactions: a deferred transaction that reads first cannot
//! always become a writer, and no timeout helps it. Reads have a pool of their own and never wait for a writer (WAL).

mod datasets;
mod disclosures;
mod error;
mod keys;
mod life;
mod people;
mod pins;
mod policies;
mod pool;
mod portable;
mod pulse;
mod queue;
mod releases;
mod repeats;
mod taxonomies;
mod tenants;
#[cfg(test)]
mod tests;
mod tx;

pub use pool::SqliteStore;

/// How many chunks one transaction deletes: each may be megabytes that are overwritten, and others wait meanwhile.
const DELETED_AT_ONCE: i64 = 64;
