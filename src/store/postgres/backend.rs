//! The names that `store::shared` uses of this backend.

pub(in crate::store) use sqlx::PgConnection as Connection;
use sqlx::PgPool;

pub(in crate::store) use super::CHUNKS_PER_DELETE;
pub(in crate::store) use super::PostgresStore as Backend;
pub(in crate::store) use super::document::JsonText as Json;
pub(in crate::store) use super::error::{PostgresTransactionError as TransactionError, failed};
pub(in crate::store) use super::listen::notify;
pub(in crate::store) use super::locks::*;
pub(in crate::store) use super::people::{
    DELETE_PERSONS, LOCKED_COVERAGE, insert_marks, insert_persons, marks_of, persons_of, put_samples, samples_of,
    selected_coverages, share_persons, share_tables,
};
pub(in crate::store) use super::pool::run_transaction;
pub(in crate::store) use super::queue::CLAIM;
use super::store_metadata::CHAIN_KEYS;
use crate::ports::StoreError;
pub(in crate::store) use crate::store::shared::api_keys::postgres::log;
pub(in crate::store) use crate::store::shared::chains::postgres::{chain_of, join_coverage, settle_chain, step_chain};
pub(in crate::store) use crate::store::shared::people::postgres::{
    all_marks, delete_marks, end_announced, enter_marks, list_coverage, locked, next_ticket, people_changed,
    registry_of, standing, system_number, void_unpublished,
};
pub(in crate::store) use crate::store::shared::people_entries::postgres::{define, live_places};
pub(in crate::store) use crate::store::shared::queue::postgres::{end_running, erase_key};
pub(in crate::store) use crate::store::shared::tenants::postgres::settings_of;

impl Backend {
    pub(in crate::store) const fn reader(&self) -> &PgPool {
        &self.pool
    }

    pub(in crate::store) const fn writer(&self) -> &PgPool {
        &self.pool
    }

    pub(in crate::store) const fn heartbeat_pool(&self) -> &PgPool {
        &self.heart
    }

    /// Writes the keys of chains anew, without those that were deleted.
    pub(in crate::store) async fn forget_chain_keys(&self) -> Result<(), StoreError> {
        self.scour(&[CHAIN_KEYS]).await;
        Ok(())
    }

    /// Does nothing: erased rows stay in the pages of the server until a vacuum.
    pub(in crate::store) async fn empty_journal(&self) -> Result<(), StoreError> {
        Ok(())
    }
}
