//! Claims and heartbeats of jobs.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::types::Json;
use uuid::Uuid;

use super::SqliteStore;
use super::pool::run_transaction;
use crate::control::Progress;
use crate::ports::{Heartbeat, LeaseToken, StoreError};
use crate::store::rows::alive;
use crate::store::sql::queue as sql;
use crate::store::sql::queue::{next_of_tenant, turns};

/// SQLite needs no lock on the chosen row: under the write lock one UPDATE is atomic, and what it counts does not change meanwhile.
pub(in crate::store) const CLAIM: &str = concat!(
    "-- claim\n",
    turns!(),
    ",
offers AS (
    SELECT t.tenant, t.running, t.served_at, (",
    next_of_tenant!(),
    ") AS id
    FROM turns AS t WHERE t.running < $4)
UPDATE jobs SET status = 'running', lease_token = $1, lease_expires_at = $2, started_at = $3, attempt = attempt + 1,
    progress = NULL
WHERE id = (SELECT o.id FROM offers AS o WHERE o.id IS NOT NULL ORDER BY o.running, o.served_at NULLS FIRST, o.tenant LIMIT 1)
RETURNING id, tenant"
);

impl SqliteStore {
    pub(in crate::store) async fn extend_lease(
        &self,
        id: Uuid,
        token: LeaseToken,
        progress: Option<Progress>,
        lease: Duration,
        now: DateTime<Utc>,
    ) -> Result<Heartbeat, StoreError> {
        run_transaction("heartbeat", || async {
            let mut tx = self.begin().await?;
            let beat: Option<bool> = run_sql!(
                query_scalar.fetch_optional,
                &mut *tx,
                sql::HEARTBEAT,
                id,
                token.0,
                now + lease,
                progress.map(Json),
                now
            )?;
            tx.commit().await?;
            Ok(alive(beat))
        })
        .await
    }

    pub(in crate::store) async fn expire_leases(&self, now: DateTime<Utc>) -> Result<u64, StoreError> {
        run_transaction("expire_all_leases", || async {
            let mut tx = self.begin().await?;
            let expired = run_sql!(query.execute, &mut *tx, sql::EXPIRE_ALL, now)?;
            tx.commit().await?;
            Ok(expired.rows_affected())
        })
        .await
    }
}
