//! Claims and heartbeats of jobs.

use std::time::Duration;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::PostgresStore;
use super::document::JsonText;
use super::error::failed;
use crate::control::Progress;
use crate::ports::{Heartbeat, LeaseToken, StoreError};
use crate::store::rows::alive;
use crate::store::sql::queue as sql;
use crate::store::sql::queue::{next_of_tenant, turns};

/// Tenants are asked in the order of their turns, and the first job that is found ends the search: the nested loop takes what is
/// ordered as it comes, so that only the row that is taken is locked. Rows that somebody else is about to move are passed over.
/// MATERIALIZED keeps the planner from looking for the row again while it updates, and locking another one. Equal jobs that two
/// claims choose at once meet at the unique index of running jobs.
pub(in crate::store) const CLAIM: &str = concat!(
    "-- claim\n",
    turns!(),
    ",
ordered AS MATERIALIZED (
    SELECT tenant FROM turns WHERE running < $4 ORDER BY running, served_at NULLS FIRST, tenant),
next AS MATERIALIZED (
    SELECT n.id FROM ordered AS t CROSS JOIN LATERAL (",
    next_of_tenant!(),
    " FOR UPDATE OF q SKIP LOCKED) AS n
    LIMIT 1)
UPDATE jobs AS j SET status = 'running', lease_token = $1, lease_expires_at = $2, started_at = $3, attempt = j.attempt + 1,
    progress = NULL
FROM next WHERE j.id = next.id
RETURNING j.id, j.tenant"
);

impl PostgresStore {
    pub(in crate::store) async fn extend_lease(
        &self,
        id: Uuid,
        token: LeaseToken,
        progress: Option<Progress>,
        lease: Duration,
        now: DateTime<Utc>,
    ) -> Result<Heartbeat, StoreError> {
        let mut connection = self.heart.acquire().await.map_err(failed)?;
        let now = self.lease_time(&mut connection, now).await.map_err(failed)?;
        let beat = run_sql!(
            query_scalar.fetch_optional,
            &mut *connection,
            sql::HEARTBEAT,
            id,
            token.0,
            now + lease,
            progress.map(JsonText),
            now
        )
        .map_err(failed)?;
        Ok(alive(beat))
    }

    pub(in crate::store) async fn expire_leases(&self, now: DateTime<Utc>) -> Result<u64, StoreError> {
        let mut connection = self.pool.acquire().await.map_err(failed)?;
        let now = self.lease_time(&mut connection, now).await.map_err(failed)?;
        let expired = run_sql!(query.execute, &mut *connection, sql::EXPIRE_ALL, now).map_err(failed)?;
        Ok(expired.rows_affected())
    }
}
