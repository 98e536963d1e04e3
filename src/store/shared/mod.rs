//! Queries that both backends run alike.
//!
//! Each file implements one trait of `ports` and expands once per backend. A generic function would need a bound for every type
//! that it binds or decodes. The module `backend` of each store names what differs: locks, clocks, notifications and some
//! statements.

/// Expands items once for SQLite and once for Postgres, each among the names of its module `backend`.
macro_rules! both_stores {
    ($($item:tt)*) => {
        pub(in crate::store) mod sqlite {
            use super::*;
            use crate::store::sqlite::backend::*;

            $($item)*
        }

        pub(in crate::store) mod postgres {
            use super::*;
            use crate::store::postgres::backend::*;

            $($item)*
        }
    };
}

pub(super) mod api_keys;
pub(super) mod chains;
mod datasets;
mod disclosures;
mod former_series;
mod idempotency;
mod lifecycle;
mod named_documents;
mod parts;
pub(super) mod people;
pub(super) mod people_entries;
mod portable;
pub(super) mod queue;
mod queue_stats;
mod releases;
pub(super) mod store_metadata;
pub(super) mod tenants;

/// What other processes that use the store should look at.
#[derive(Clone, Copy)]
pub(super) enum Notification {
    /// A job waits, or the job that a waiting one depends on has ended.
    Queued,
    /// Cancellation of a running job was requested.
    Cancel,
    /// A job that no other waits for has ended.
    Changed,
}
