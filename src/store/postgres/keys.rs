//! Keys of requests that can be repeated.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::{PostgresStore, failed};
use crate::jobs::{KeyRecord, Keys, NewKey, StoreError};
use crate::store::rows::KeyRow;
use crate::store::sql::keys as sql;

#[async_trait]
impl Keys for PostgresStore {
    async fn claim_key(&self, key: &NewKey) -> Result<Option<KeyRecord>, StoreError> {
        loop {
            let claimed = sqlx::query(sql::CLAIM_KEY)
                .bind(&key.tenant)
                .bind(key.route)
                .bind(&key.name)
                .bind(key.resource)
                .bind(key.content_hash.as_ref().map(<[u8; 32]>::as_slice))
                .bind(key.began_at)
                .bind(key.lease_until)
                .execute(&self.pool)
                .await
                .map_err(failed)?;
            if claimed.rows_affected() > 0 {
                return Ok(None);
            }
            let held: Option<KeyRow> = sqlx::query_as(sql::KEY)
                .bind(&key.tenant)
                .bind(key.route)
                .bind(&key.name)
                .fetch_optional(&self.pool)
                .await
                .map_err(failed)?;
            // let go of between the two: it is free
            if let Some(held) = held {
                return KeyRecord::try_from(held).map(Some);
            }
        }
    }

    async fn drop_key(&self, resource: Uuid) -> Result<(), StoreError> {
        sqlx::query(sql::DROP_KEY).bind(resource).execute(&self.pool).await.map_err(failed)?;
        Ok(())
    }

    async fn renew_key(&self, resource: Uuid, until: DateTime<Utc>) -> Result<bool, StoreError> {
        let renewed = sqlx::query(sql::RENEW_KEY).bind(resource).bind(until).execute(&self.pool).await;
        Ok(renewed.map_err(failed)?.rows_affected() > 0)
    }

    async fn note_content(&self, resource: Uuid, content_hash: &[u8; 32]) -> Result<bool, StoreError> {
        let hash = content_hash.as_slice();
        let noted = sqlx::query(sql::NOTE_CONTENT).bind(resource).bind(hash).execute(&self.pool).await;
        Ok(noted.map_err(failed)?.rows_affected() > 0)
    }

    async fn expire_keys(&self, before: DateTime<Utc>) -> Result<u64, StoreError> {
        let expired = sqlx::query(sql::EXPIRE_KEYS).bind(before).execute(&self.pool).await.map_err(failed)?;
        Ok(expired.rows_affected())
    }

    async fn lapse_keys(&self, now: DateTime<Utc>) -> Result<(), StoreError> {
        sqlx::query(sql::LAPSE_KEYS).bind(now).execute(&self.pool).await.map_err(failed)?;
        Ok(())
    }
}
