//! The names that `store::shared` uses of this backend.
//!
//! The locks do nothing: a transaction is the only writer from its beginning.

use chrono::{DateTime, Utc};
pub(in crate::store) use sqlx::SqliteConnection as Connection;
use sqlx::SqlitePool;
pub(in crate::store) use sqlx::types::Json;
use uuid::Uuid;

pub(in crate::store) use super::CHUNKS_PER_DELETE;
pub(in crate::store) use super::SqliteStore as Backend;
pub(in crate::store) use super::error::{SqliteTransactionError as TransactionError, failed};
pub(in crate::store) use super::people::{
    DELETE_PERSONS, LOCKED_COVERAGE, insert_marks, insert_persons, marks_of, persons_of, put_samples, samples_of,
    selected_coverages, share_persons, share_tables,
};
pub(in crate::store) use super::pool::run_transaction;
pub(in crate::store) use super::queue::CLAIM;
use crate::ports::{LedgerCopy, ReleaseRecord, StoreError};
use crate::store::shared::Notification;
pub(in crate::store) use crate::store::shared::api_keys::sqlite::log;
pub(in crate::store) use crate::store::shared::chains::sqlite::{chain_of, join_coverage, settle_chain, step_chain};
pub(in crate::store) use crate::store::shared::people::sqlite::{
    all_marks, delete_marks, end_announced, enter_marks, list_coverage, locked, next_ticket, people_changed,
    registry_of, standing, system_number, void_unpublished,
};
pub(in crate::store) use crate::store::shared::people_entries::sqlite::{define, live_places};
pub(in crate::store) use crate::store::shared::queue::sqlite::{end_running, erase_key};
pub(in crate::store) use crate::store::shared::tenants::sqlite::settings_of;
pub(in crate::store) use crate::store::sql::chains::PUT_CHAIN_PIECE;
pub(in crate::store) use crate::store::sql::life::RELEASE_STATE;
pub(in crate::store) use crate::store::sql::policies::POLICY_ID;
pub(in crate::store) use crate::store::sql::queue::{EXPIRED, OVERDUE, STATUS, WAITING_ALIKE};
use crate::store::sql::{disclosures, series as series_sql};

impl Backend {
    pub(in crate::store) const fn reader(&self) -> &SqlitePool {
        &self.reader
    }

    pub(in crate::store) const fn writer(&self) -> &SqlitePool {
        &self.writer
    }

    pub(in crate::store) const fn heartbeat_pool(&self) -> &SqlitePool {
        &self.reader
    }

    pub(in crate::store) async fn check_master_key(&self, _: &mut Connection) -> Result<(), sqlx::Error> {
        Ok(())
    }

    /// Does nothing: what is deleted is overwritten.
    pub(in crate::store) async fn forget_chain_keys(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Does nothing, as for keys of chains.
    pub(in crate::store) async fn scour_again(&self) {}

    pub(in crate::store) async fn lease_time(
        &self,
        _: &mut Connection,
        now: DateTime<Utc>,
    ) -> Result<DateTime<Utc>, sqlx::Error> {
        Ok(now)
    }
}

/// Declares functions that do nothing.
macro_rules! nothing_to_do {
    ($($name:ident($($argument:ty),*);)*) => {
        $(pub(in crate::store) async fn $name(_: &mut Connection $(, _: $argument)*) -> Result<(), sqlx::Error> {
            Ok(())
        })*
    };
}

nothing_to_do! {
    notify(Notification);
    lock_keys();
    lock_claims();
    lock_reuse_key(&[u8; 32]);
    lock_job(Uuid);
    lock_chain(Uuid);
    lock_dataset(Uuid);
    share_dataset(Uuid);
    lock_for_import(&LedgerCopy);
}

/// The version of the ledger of a release's content.
pub(in crate::store) async fn lock_ledger(
    connection: &mut Connection,
    release: &ReleaseRecord,
) -> Result<i64, sqlx::Error> {
    let version: Option<i64> = run_sql!(
        query_scalar.fetch_optional,
        connection,
        disclosures::LEDGER_VERSION,
        &release.tenant,
        &release.series,
        release.content_hash.as_slice()
    )?;
    Ok(version.unwrap_or(0))
}

/// The version of a series.
pub(in crate::store) async fn lock_series(
    connection: &mut Connection,
    tenant: &str,
    series: &str,
) -> Result<i64, sqlx::Error> {
    let version: Option<i64> =
        run_sql!(query_scalar.fetch_optional, connection, series_sql::SERIES_VERSION, tenant, series)?;
    Ok(version.unwrap_or(0))
}
