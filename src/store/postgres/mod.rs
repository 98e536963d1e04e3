//! The shared store: one Postgres database (15 or later) that any number of processes use at the same time.
//!
//! **Locks** (see `locks`). Transactions are READ COMMITTED and lock the rows that they decide by; nothing here needs SERIALIZABLE. What a
//! decision rests on is always one of:
//! - a job's row, for whatever a worker writes: the statements require its token, and a row that changed while they waited is
//!   looked at again;
//! - the ledger's row of (tenant, series, content hash), for a commit: entries are written only under its lock, so that a
//!   version that equals the checked one stays so until the commit ends;
//! - the row of the series, for the same and for statements about it; of all series of a tenant, for uploads, each of which is to
//!   have been compared with those before it;
//! - an advisory lock of the reuse key, for what is not there yet: a job is not queued between a commit's look for waiting jobs
//!   and its end;
//! - a policy's row, for the number of its next version;
//! - an advisory lock of the dataset, for chunks that no reader can see yet;
//! - an advisory lock of the master key, for whatever wraps a key: see `store_metadata`;
//! - an advisory lock of all claims, for whose turn it is and how many jobs of a tenant run;
//! - a unique index, for two claims of equal jobs: the second one is tried again.
//!
//! Locks are always taken in this order: claims, reuse key, ledger, series, the transaction's own job, other jobs by id. A transaction that
//! Postgres gives up all the same (serialization failure, deadlock) is tried again, a bounded number of times.
//!
//! **Time.** Leases follow the database's clock, which all processes share: it is read where the store is handed the
//! caller's time, after the locks are taken. Other times stay the caller's.
//!
//! **Connections.** Heartbeats have a small pool of their own, so that no upload keeps a worker from extending its lease; a
//! listener has one connection for wake-ups. LISTEN and the lock of migrations (see `schema`) belong to a session: a pooler in
//! between must pool sessions, not transactions.
//!
//! **Erasing.** Postgres does not overwrite what is deleted: it stays in pages until a vacuum, and in its log until that is
//! recycled. They are out of reach of every query at once, but not of an adversary who has the disk. Of a purged dataset only encrypted rows
//! stay: the table of the wrapped keys is written anew with every purge and rotation. The log, backups and standbys keep a wrapped
//! key as long as they keep anything of its time. Erased keys of jobs stay in pages until a vacuum.

pub(super) mod backend;
mod datasets;
mod document;
mod error;
mod listen;
mod locks;
mod people;
mod pool;
mod queue;
mod releases;
mod schema;
mod store_metadata;
#[cfg(test)]
pub(crate) mod tests;

pub use pool::PostgresStore;
pub use store_metadata::SharedStoreLock;

/// How many chunks one transaction deletes, so that none of them is long.
pub(super) const CHUNKS_PER_DELETE: i64 = 64;
