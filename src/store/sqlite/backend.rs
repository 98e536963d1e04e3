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
pub(in crate::store) use super::error::{TransactionError, failed};
pub(in crate::store) use super::pool::run_transaction;
pub(in crate::store) use super::queue::CLAIM;
use crate::ports::{LedgerCopy, ReleaseRecord};
use crate::store::shared::Notification;
pub(in crate::store) use crate::store::shared::api_keys::sqlite::log;
pub(in crate::store) use crate::store::shared::queue::sqlite::{end_running, erase_key};
pub(in crate::store) use crate::store::shared::tenants::sqlite::settings_of;
pub(in crate::store) use crate::store::sql::life::RELEASE_STATE;
pub(in crate::store) use crate::store::sql::policies::POLICY_ID;
pub(in crate::store) use crate::store::sql::queue::{EXPIRED, OVERDUE, STATUS, WAITING_ALIKE};
use crate::store::sql::{disclosures, people};

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

    pub(in crate::store) async fn lease_time(
        &self,
        _: &mut Connection,
        now: DateTime<Utc>,
    ) -> Result<DateTime<Utc>, sqlx::Error> {
        Ok(now)
    }
}

pub(in crate::store) async fn notify(_: &mut Connection, _: Notification) -> Result<(), sqlx::Error> {
    Ok(())
}

pub(in crate::store) async fn lock_keys(_: &mut Connection) -> Result<(), sqlx::Error> {
    Ok(())
}

pub(in crate::store) async fn lock_claims(_: &mut Connection) -> Result<(), sqlx::Error> {
    Ok(())
}

pub(in crate::store) async fn lock_reuse_key(_: &mut Connection, _: &[u8; 32]) -> Result<(), sqlx::Error> {
    Ok(())
}

pub(in crate::store) async fn lock_job(_: &mut Connection, _: Uuid) -> Result<(), sqlx::Error> {
    Ok(())
}

pub(in crate::store) async fn lock_dataset(_: &mut Connection, _: Uuid) -> Result<(), sqlx::Error> {
    Ok(())
}

pub(in crate::store) async fn share_dataset(_: &mut Connection, _: Uuid) -> Result<(), sqlx::Error> {
    Ok(())
}

pub(in crate::store) async fn lock_for_import(_: &mut Connection, _: &LedgerCopy) -> Result<(), sqlx::Error> {
    Ok(())
}

/// The version of the ledger of a release's content.
pub(in crate::store) async fn lock_ledger(
    connection: &mut Connection,
    release: &ReleaseRecord,
) -> Result<i64, sqlx::Error> {
    let version: Option<i64> = sqlx::query_scalar(disclosures::LEDGER_VERSION)
        .bind(&release.tenant)
        .bind(&release.series)
        .bind(release.content_hash.as_slice())
        .fetch_optional(connection)
        .await?;
    Ok(version.unwrap_or(0))
}

/// The version of a series.
pub(in crate::store) async fn lock_series(
    connection: &mut Connection,
    tenant: &str,
    series: &str,
) -> Result<i64, sqlx::Error> {
    let version: Option<i64> =
        sqlx::query_scalar(people::SERIES_VERSION).bind(tenant).bind(series).fetch_optional(connection).await?;
    Ok(version.unwrap_or(0))
}
